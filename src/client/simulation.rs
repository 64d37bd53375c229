//! A simulation: an engine whose workers all run on this thread, in the order, with the delays and at the time that a
//! seed says. For the tests of services that embed kpg.
//!
//! ```text
//! seed ─┬─ fabric: what arrives when, FIFO per sender and no more
//!       ├─ schedule: which worker steps, how much of a step it does, when it merges     ─▶ one run, repeated bit for bit
//!       └─ clock: a step takes some microseconds; when nothing is left to do, time goes on to the deadline waited for
//! ```
//! Whatever a simulation does may happen on threads; most of it does not in a test's lifetime. No clock of the system is
//! read. Cost: that of the steps; a wait for what never comes takes no time. Next stop: `check`, which runs many and makes
//! the schedule of one that fails small.
#![forbid(unsafe_code)]

mod check;
mod minimize;

pub use crate::runtime::{Choice, Decision, Decisions, Freight, Lane, Merging, NoDecision, Place};
pub use check::{Failure, check, find, replay};

use super::config::Config;
use super::engine::Engine;
use super::error::Error;
use super::hosted::HostedWorker;
use super::metrics::Report;
use super::waiting;
use crate::runtime::{Schedule, Tape};
use crate::sync::Mutex;
use crate::trace::MergePolicy;
use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a simulation is run. What a seed chooses, and how a service is checked under many: [`check`].
///
/// ```
/// # use kpg::simulation::Simulation;
/// # use std::time::Duration;
/// let engine = Simulation::new(7).workers(3).start()?;
/// let (_query, (mut input, mut counts)) = engine.install("counts", |scope| {
///     let (input, words) = scope.input::<u32>();
///     (input, words.count().subscribe())
/// })?;
/// input.insert(5)?;
/// input.advance_to(1)?;
/// assert_eq!(counts.wait_past(&0, Duration::from_secs(1))?, [((5, 1), 0, 1)]);
/// # Ok::<(), kpg::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Simulation {
    seed: u64,
    config: Option<Config>,
    workers: Option<usize>,
    decisions: Option<Arc<Decisions>>,
    tape: Option<Arc<Mutex<Tape>>>,
}

impl Simulation {
    /// A simulation of two workers that merge as the seed says.
    pub fn new(seed: u64) -> Self {
        Simulation { seed, config: None, workers: None, decisions: None, tape: None }
    }

    /// Its seed, from which a test may take its data as well.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of workers, at least 1.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = Some(count);
        self
    }

    /// What else an engine is told: caps, the merge policy, the greatest quantum, the number of workers, if
    /// [`Simulation::workers`] does not say.
    pub fn config(mut self, config: Config) -> Self {
        self.config = Some(config);
        self
    }

    /// Runs by a list of decisions rather than by what the seed would choose. The list of a run gives that run again.
    /// One from which some were taken gives a run that is the ordinary there: workers step in turn, all that is on its way
    /// arrives, steps are not cut short, last a microsecond, and merge when they have nothing else to do.
    pub fn decisions(mut self, decisions: Decisions) -> Self {
        self.decisions = Some(Arc::new(decisions));
        self
    }

    /// Starts it on this thread.
    ///
    /// # Errors
    /// A configuration that cannot be run.
    pub fn start(self) -> Result<Simulated, Error> {
        let Simulation { seed, config, workers, decisions, tape } = self;
        let schedule = decisions.map_or_else(|| Schedule::new(seed), |decisions| Schedule::by(&decisions));
        let mut schedule = match tape {
            Some(tape) => schedule.kept_on(tape),
            None => schedule,
        };
        let config = config.unwrap_or_else(|| {
            let policy = match schedule.merging(seed) {
                None => MergePolicy::default(),
                Some(Merging::Lazy) => MergePolicy::lazy(),
                Some(Merging::Eager) => MergePolicy::eager(),
            };
            Config::default().workers(2).merge_policy(policy)
        });
        let config = workers.into_iter().fold(config, Config::workers);
        let schedule = Rc::new(RefCell::new(schedule));
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
