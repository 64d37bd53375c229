//! A simulation: an engine whose workers all run on this thread, in the order, with the delays and at the time that a
//! seed says. For the tests of services that embed kpg.
//!
//! ```text
//! seed ─┬─ fabric: what arrives when, FIFO per sender and no more
//!       ├─ schedule: which worker steps, how much of a step it does, when it merges     ─▶ one run, repeated bit for bit
//!       └─ clock: a step takes a microsecond; when nothing is left to do, time goes on to the deadline waited for
//! ```
//! Whatever a simulation does may happen on threads; most of it does not in a test's lifetime. No clock of the system is
//! read. Cost: that of the steps; a wait for what never comes takes no time.
#![forbid(unsafe_code)]

use super::config::Config;
use super::engine::Engine;
use super::error::Error;
use super::hosted::HostedWorker;
use super::metrics::Report;
use super::waiting;
use crate::runtime::Schedule;
use crate::trace::MergePolicy;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// How a simulation is run.
///
/// A service's dataflow is checked against an oracle of one's own, under as many seeds as one likes; one that fails, fails
/// again:
///
/// ```
/// use kpg::simulation::Simulation;
/// use std::collections::BTreeMap;
/// use std::time::Duration;
///
/// for seed in 0..20 {
///     let engine = Simulation::new(seed).workers(3).start()?;
///     // The service: how many orders each customer has open.
///     let (_query, (mut orders, mut counts)) = engine.install("open orders", |scope| {
///         let (input, orders) = scope.input::<(u32, u64)>();
///         (input, orders.map(|(customer, _)| customer).count().subscribe())
///     })?;
///     // The oracle, fed alike, and what has been heard of the service, summed up.
///     let (mut oracle, mut heard) = (BTreeMap::new(), BTreeMap::new());
///     for round in 0..10 {
///         orders.insert((round as u32 % 4, round))?;
///         *oracle.entry(round as u32 % 4).or_insert(0) += 1;
///         orders.advance_to(round + 1)?;
///         for ((customer, count), _time, diff) in counts.wait_past(&round, Duration::from_secs(1))? {
///             if diff > 0 { heard.insert(customer, count) } else { None };
///         }
///         assert_eq!(heard, oracle, "seed {seed}, round {round}");
///     }
/// }
/// # Ok::<(), kpg::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    seed: u64,
    config: Config,
    workers: Option<usize>,
}

impl Simulation {
    /// A simulation of two workers that merge as the seed says.
    pub fn new(seed: u64) -> Self {
        let policies = [MergePolicy::default(), MergePolicy::lazy(), MergePolicy::eager()];
        let policy = policies[Schedule::new(!seed).below(policies.len())];
        Simulation { seed, config: Config::default().workers(2).merge_policy(policy), workers: None }
    }

    /// Number of workers, at least 1.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = Some(count);
        self
    }

    /// What else an engine is told: caps, the merge policy, the greatest quantum, the number of workers, if
    /// [`Simulation::workers`] does not say.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Starts it on this thread.
    ///
    /// # Errors
    /// A configuration that cannot be run.
    pub fn start(self) -> Result<Simulated, Error> {
        let Simulation { seed, config, workers } = self;
        let config = workers.into_iter().fold(config, Config::workers);
        let schedule = Rc::new(RefCell::new(Schedule::new(seed)));
        let (engine, workers) = Engine::simulate(config, seed, Some(schedule.clone()))?;
        let start = engine.clock().now();
        Ok(Simulated { engine, workers, schedule, start })
    }
}

/// A simulated engine: it has all the methods of [`Engine`]. Its workers are stepped while a call waits, by
/// [`Simulated::step`] and [`Simulated::settle`], and by nobody else: a wait without a deadline for what will never come
/// fails with `Deadline` rather than hang.
pub struct Simulated {
    engine: Engine,
    workers: Vec<HostedWorker>,
    schedule: Rc<RefCell<Schedule>>,
    start: Instant,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Simulation, {:?}, after {:?}", self.engine, self.elapsed())
    }
}

impl Deref for Simulated {
    type Target = Engine;
    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Simulated {
    /// Steps the workers for one round of the schedule; true iff there was, or is, something to do.
    pub fn step(&self) -> bool {
        let workers: Vec<_> = self.workers.iter().map(|worker| worker.worker.clone()).collect();
        waiting::step_round(&workers)
    }

    /// Steps the workers until there is nothing left to do, and nothing on its way. A dataflow that never comes to rest
    /// by itself never does so here.
    pub fn settle(&self) {
        while self.step() {}
    }

    /// The engine, and its workers to be stepped one by one, each as far as the schedule says; calls that wait go on to
    /// step them all.
    pub fn into_parts(self) -> (Engine, Vec<HostedWorker>) {
        (self.engine, self.workers)
    }

    /// How much simulated time has passed.
    pub fn elapsed(&self) -> Duration {
        self.engine.clock().now().saturating_duration_since(self.start)
    }

    /// Lets simulated time pass, without a step.
    pub fn pass(&self, time: Duration) {
        self.engine.clock().pass(time);
    }

    /// A hash of all that has happened, each step, message and change batch in their order: equal for two runs that were
    /// the same.
    pub fn trace(&self) -> u64 {
        self.schedule.borrow().trace().0
    }

    /// How many events [`Simulated::trace`] is of.
    pub fn events(&self) -> u64 {
        self.schedule.borrow().trace().1
    }

    /// As [`Engine::shutdown`].
    ///
    /// # Errors
    /// As there.
    pub fn shutdown(self, timeout: Duration) -> Result<Report, Error> {
        self.engine.shutdown(timeout)
    }
}
