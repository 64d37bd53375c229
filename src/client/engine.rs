//! The engine: workers, and the queries installed on them.
//!
//! Installing is one closure, run once on each worker; `install` returns when all have left it, so it may borrow. Which
//! queries import from which is decided here, where commands are sequenced, never from a worker's local state.
#![forbid(unsafe_code)]

use super::config::{Config, InstallOptions};
use super::error::Error;
use super::hosted::{HostedWorker, Leaving, SeedSetup, WorkerSeed};
use super::metrics::{Metrics, QueryMetrics, Report, arrangements_of, bytes_of};
use super::query::Query;
use super::shared::{Entry, Registry, Shared, Slot};
use super::waiting::{self, Role};
use crate::dataflow::{Agreement, Build, Core, Dataflow, InstallFault, InstallShared, Scope};
use crate::order::Timestamp;
use crate::runtime::fabric::{self, Fabric};
use crate::runtime::topology::CoreId;
use crate::runtime::{Clock, Command, CommandLog, DataflowId, Ending, Envelope, Install, Local, Mailbox};
use crate::runtime::{ProgressEntry, Schedule, Worker, topology};
use crate::sync::{Entered, Monitor, Mutex, Outcome, ScopedCall, unique};
use kpg_arena::Arena;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Workers that maintain queries, inside this process. Dropping it stops them; handles that are left give errors.
pub struct Engine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine of {} workers", self.shared.mailboxes.len())
    }
}

fn prepare(
    config: &Config,
    cores: &[Option<CoreId>],
    clock: Clock,
    unparkers: &[crate::sync::Unparker],
) -> Result<Arc<Shared>, Error> {
    let mailboxes: Arc<[Arc<Mailbox>]> = unparkers.iter().map(|unparker| Worker::mailbox(unparker.clone())).collect();
    let arenas = cores.iter().enumerate().map(|(index, core)| Ok(Arena::new(config.arena_of(index, *core)?)));
    Ok(Arc::new(Shared {
        commands: Arc::new(CommandLog::new(cores.len())),
        mailboxes,
        arenas: arenas.collect::<Result<_, Error>>()?,
        registry: Mutex::new(Registry::default()),
        clock,
        install_timeout: config.install_timeout,
    }))
}

impl Engine {
    /// Starts an engine on threads of its own.
    ///
    /// # Errors
    /// A configuration that cannot be run: no workers, a core that is not there or named twice, threads that the system
    /// refuses.
    pub fn start(config: Config) -> Result<Engine, Error> {
        let (mut engine, seeds) = Engine::start_hosted(config)?;
        for (index, seed) in seeds.into_iter().enumerate() {
            let thread = std::thread::Builder::new().name(format!("kpg worker {index}")).spawn(move || {
                if let Some(core) = seed.core {
                    topology::pin(core);
                }
                let worker = seed.start();
                while !worker.is_stopped() {
                    if !worker.step() {
                        worker.worker.borrow_mut().park(None);
                    }
                }
            });
            engine.threads.push(thread.map_err(|error| {
                engine.shared.stop();
                Error::Config(format!("a thread for worker {index} could not be started ({error}): use fewer workers"))
            })?);
        }
        Ok(engine)
    }

    /// An engine whose workers the caller's threads own: start each seed on its thread and step it.
    ///
    /// # Errors
    /// As `start`, but for the threads.
    pub fn start_hosted(config: Config) -> Result<(Engine, Vec<WorkerSeed>), Error> {
        let cores = config.check()?;
        let ends = fabric::threads::<Envelope, ProgressEntry>(cores.len());
        let shared = prepare(&config, &cores, Clock::system(), ends[0].unparkers())?;
        let engine = unique();
        let seeds = ends.into_iter().zip(cores).enumerate().map(|(index, (end, core))| WorkerSeed {
            fabric: Box::new(end),
            setup: SeedSetup::new(&shared, engine, index, &config),
            leaving: Leaving { shared: shared.clone(), index },
            core,
        });
        let seeds = seeds.collect();
        Ok((Engine { shared, threads: Vec::new() }, seeds))
    }

    /// An engine whose workers all run on this thread, with messages delayed and interleaved as `seed` says, and a clock
    /// that moves only as they are stepped: the same seed, the same run. Blocking calls step the workers.
    ///
    /// # Errors
    /// As `start_hosted`.
    pub fn start_simulated(config: Config, seed: u64) -> Result<(Engine, Vec<HostedWorker>), Error> {
        Engine::simulate(config, seed, None)
    }

    /// As `start_simulated`; a schedule, rather than the seed, chooses what is delivered, and how the workers are stepped.
    pub(crate) fn simulate(
        config: Config,
        seed: u64,
        schedule: Option<Rc<RefCell<Schedule>>>,
    ) -> Result<(Engine, Vec<HostedWorker>), Error> {
        let none = vec![None; config.check()?.len()];
        let ends = match &schedule {
            Some(schedule) => fabric::scheduled::<Envelope, ProgressEntry>(none.len(), schedule.clone()),
            None => fabric::simulation(none.len(), seed),
        };
        let shared = prepare(&config, &none, Clock::simulated(), ends[0].unparkers())?;
        let engine = unique();
        let workers = ends.into_iter().enumerate().map(|(index, end)| {
            let setup = SeedSetup::new(&shared, engine, index, &config);
            let leaving = Leaving { shared: shared.clone(), index };
            HostedWorker::new(Worker::new(Box::new(end), setup.setup(schedule.clone())), leaving)
        });
        let workers = workers.collect();
        Ok((Engine { shared, threads: Vec::new() }, workers))
    }

    /// Its clock.
    pub(crate) fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Number of workers.
    pub fn workers(&self) -> usize {
        self.shared.mailboxes.len()
    }

    /// Installs a dataflow over `u64` times: `closure` runs once on each worker; what worker 0's run gives is returned.
    ///
    /// # Errors
    /// What the closure's dataflow makes impossible; a panic in it; `Deadline`; `WouldBlock` inside a step.
    pub fn install<O, F>(&self, name: &str, closure: F) -> Result<(Query, O), Error>
    where
        O: Send,
        F: for<'s> Fn(&Scope<'s, u64>) -> O + Send + Sync,
    {
        self.install_at::<u64, O, F>(name, closure)
    }

    /// As `install`, over times of another type.
    ///
    /// # Errors
    /// As `install`.
    pub fn install_at<T, O, F>(&self, name: &str, closure: F) -> Result<(Query, O), Error>
    where
        T: Timestamp,
        O: Send,
        F: for<'s> Fn(&Scope<'s, T>) -> O + Send + Sync,
    {
        self.install_with::<T, O, F>(name, InstallOptions::default(), closure)
    }

    /// As `install_at`, with a cap on the bytes that the query may hold ([`InstallOptions::cap_bytes`]).
    ///
    /// # Errors
    /// As `install`.
    pub fn install_capped<T, O, F>(&self, name: &str, cap_bytes: Option<usize>, closure: F) -> Result<(Query, O), Error>
    where
        T: Timestamp,
        O: Send,
        F: for<'s> Fn(&Scope<'s, T>) -> O + Send + Sync,
    {
        self.install_with::<T, O, F>(name, InstallOptions { cap_bytes, timeout: None }, closure)
    }

    /// As `install_at`, with a deadline and a cap of its own.
    ///
    /// # Errors
    /// As `install`. With no time at all it is given up at once, unless this thread owns all the workers.
    pub fn install_with<T, O, F>(&self, name: &str, options: InstallOptions, closure: F) -> Result<(Query, O), Error>
    where
        T: Timestamp,
        O: Send,
        F: for<'s> Fn(&Scope<'s, T>) -> O + Send + Sync,
    {
        let result: Slot<O> = Mutex::new(None);
        let build = |local: &Rc<Local>, id: DataflowId, install: &Arc<InstallShared>| {
            build_on::<T, O, F>(local, id, install, &closure, &result);
        };
        let query = self.install_untyped(name, options, &build)?;
        let output = result.into_inner().expect("worker 0 ran the closure to its end");
        Ok((query, output))
    }

    /// As `install_with`, compiled once: `build` is what depends on types.
    fn install_untyped(
        &self,
        name: &str,
        options: InstallOptions,
        build: &(dyn Fn(&Rc<Local>, DataflowId, &Arc<InstallShared>) + Sync),
    ) -> Result<Query, Error> {
        waiting::check_may_wait("install")?;
        let peers = self.workers();
        let mut registry = self.shared.registry.lock();
        if registry.stopping.is_some() {
            return Err(Error::Shutdown);
        }
        let id = registry.next;
        registry.next += 1;
        let query = crate::runtime::Query::new(id, name, options.cap_bytes, self.shared.clock.clone());
        registry.queries.insert(id, Entry { query: query.clone(), imports: Vec::new() });
        let install = InstallShared::new(query.clone(), peers);
        let run = |local: &Rc<Local>| build(local, id, &install);
        let clock = &self.shared.clock;
        let deadline = clock.deadline(options.timeout.unwrap_or(self.shared.install_timeout));
        let mut registry = Some(registry);
        let shared = &self.shared;
        let mut stepper = None;
        let outcome = ScopedCall::run(
            peers,
            &run,
            |call| {
                shared.append(Command::Install(id, Arc::new(Task { call })));
                registry = None;
            },
            &mut |call| {
                match waiting::role() {
                    Role::Owner(workers) => {
                        stepper.get_or_insert_with(|| waiting::Stepper::new(workers, clock, deadline)).step();
                    }
                    _ => {
                        call.wait_until(clock.by_system(deadline));
                    }
                }
                !clock.is_past(deadline) && !shared.commands.is_stopped()
            },
        );
        match self.conclude(outcome, &install, name) {
            Ok(()) => {
                let mut registry = self.shared.registry.lock();
                if let Some(entry) = registry.queries.get_mut(&id) {
                    entry.imports = install.imports();
                }
                drop(registry);
                install.release_handles();
                Ok(Query { query, shared: self.shared.clone() })
            }
            Err(error) => {
                install.give_up();
                query.end(Ending::NotInstalled);
                self.shared.registry.lock().queries.remove(&id);
                self.shared.append(Command::End(id, Ending::NotInstalled));
                Err(error)
            }
        }
    }

    fn conclude(&self, outcome: Outcome, install: &InstallShared, name: &str) -> Result<(), Error> {
        let query = name.to_string();
        match outcome {
            Outcome::Panicked(payload) => {
                let message = crate::runtime::Failure::from_payload(payload).to_string();
                Err(Error::InstallPanicked { query, message })
            }
            Outcome::Closed { .. } if self.shared.commands.is_stopped() => Err(Error::Shutdown),
            Outcome::Closed { .. } => Err(Error::Deadline { what: format!("all workers had built query {name:?}") }),
            Outcome::Completed => match (install.fault(), install.agreement()) {
                (Some(InstallFault::Graph(reason)), _) => Err(Error::Graph { query, reason }),
                (Some(InstallFault::Source(source)), _) => Err(Error::SourceGone { query, source }),
                (None, Agreement::Agreed) => Ok(()),
                _ => Err(Error::Differs { query }),
            },
        }
    }

    /// What the workers' memory is used for.
    pub fn metrics(&self) -> Metrics {
        let queries = self.shared.registry.lock();
        let queries = queries.queries.values().map(|entry| QueryMetrics {
            name: entry.query.name.clone(),
            bytes: bytes_of(&entry.query),
            node_steps: entry.query.steps(),
            lags: entry.query.lags(),
            arrangements: arrangements_of(&entry.query),
            ended: entry.query.ending().is_some(),
        });
        Metrics { queries: queries.collect(), arenas: self.shared.arenas.iter().map(Arena::stats).collect() }
    }

    /// For tests that let an allocation fail: each worker's arena.
    #[cfg(feature = "check")]
    #[doc(hidden)]
    pub fn arenas(&self) -> &[Arena] {
        &self.shared.arenas
    }

    /// Lets the workers come to rest, for at most three quarters of `timeout`; then stops them and waits for them.
    ///
    /// Says whether they came to rest: if so, whatever was put in before is in what handles show.
    ///
    /// # Errors
    /// `Deadline`, if they had not stopped by then; they stop when they can. `WouldBlock` inside a step.
    pub fn shutdown(mut self, timeout: Duration) -> Result<Report, Error> {
        waiting::check_may_wait("shutdown")?;
        let clock = self.shared.clock.clone();
        let deadline = clock.deadline(timeout);
        let drained = self.drain(clock.deadline(timeout / 4 * 3));
        let metrics = self.metrics();
        let count = self.shared.stop();
        if !self.shared.wait_executed(count, deadline) {
            // Not joined: they are not to hold up whoever drops the engine.
            self.threads.clear();
            return Err(Error::Deadline { what: "all workers had stopped".to_string() });
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        Ok(Report { drained, metrics })
    }

    /// Waits until no worker has anything to do and nothing is on its way.
    ///
    /// Each may be at rest when it is looked at while a message wakes one after the other. So they are looked at over and
    /// over: what all had received by one look is all that was sent by the next (Mattern's four counters, 1987).
    /// With a worker that is gone that will never be: they are not waited for then.
    fn drain(&self, deadline: Option<Instant>) -> bool {
        let states = Arc::new(Monitor::new(vec![None; self.workers()]));
        self.shared.append(Command::Drain(states.clone()));
        let mut before = None;
        loop {
            let (clock, commands) = (&self.shared.clock, &self.shared.commands);
            let look = waiting::wait(clock, &states, deadline, "all workers had come to rest", |states| {
                if commands.has_left() {
                    return Some(Err(Error::Shutdown));
                }
                let all: Option<Vec<(u64, u64)>> = states.iter().copied().collect();
                // To be seen afresh the next time.
                all.inspect(|_| states.fill(None)).map(Ok)
            });
            let Ok(all) = look else { return false };
            let (sent, received) = all.iter().fold((0, 0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
            if before == Some(sent) {
                return true;
            }
            before = Some(received);
            self.shared.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shared.stop();
        if matches!(waiting::role(), Role::Client) {
            for thread in self.threads.drain(..) {
                let _ = thread.join();
            }
        }
    }
}

struct Task {
    call: Arc<ScopedCall<Rc<Local>>>,
}

impl Install for Task {
    fn execute(&self, worker: &Rc<Local>) {
        // A panic is kept in the call, for the thread that installs.
        let _: Entered = self.call.enter(worker);
    }
}

fn build_on<T, O, F>(local: &Rc<Local>, id: DataflowId, install: &Arc<InstallShared>, closure: &F, result: &Slot<O>)
where
    T: Timestamp,
    F: for<'s> Fn(&Scope<'s, T>) -> O,
{
    let core = Core::new(id, local.clone());
    let build = Build::new::<T>(core, install.clone());
    let output = closure(&Scope::root(&build));
    if local.index == 0 {
        *result.lock() = Some(output);
    } else {
        drop(output);
    }
    finish_on(local, id, install, &build, T::COORDINATES);
}

fn finish_on(local: &Local, id: DataflowId, install: &InstallShared, build: &Rc<Build>, coordinates: usize) {
    match Dataflow::finish(build, coordinates) {
        Ok(dataflow) => local.built.borrow_mut().push((id, Box::new(dataflow))),
        Err(fault) => install.fail(fault),
    }
    install.built(local.index, Dataflow::digest(build));
    local.mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

#[cfg(test)]
mod tests;
