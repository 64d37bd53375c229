//! The engine: workers, and the queries installed on them.
//!
//! Installing is one closure, run once on each worker; `install` returns when all have left it, so it may borrow. Which
//! queries import from which is decided here, where commands are sequenced, never from a worker's local state.
#![forbid(unsafe_code)]

use super::error::Error;
use super::metrics::{Metrics, QueryBytes, QueryMetrics, Report, bytes_of};
use super::subscription::Slot;
use super::waiting::{self, Role};
use crate::dataflow::{Agreement, Build, Core, Dataflow, InstallFault, InstallShared, QUANTUM, Scope};
use crate::order::Timestamp;
use crate::runtime::fabric::{self, Fabric};
use crate::runtime::{Command, CommandLog, DataflowId, Ending, Envelope, Install, Lag, Local, Mailbox, ProgressEntry};
use crate::runtime::{Setup, Worker, topology};
use crate::sync::{Entered, Monitor, Mutex, Outcome, ScopedCall, unique};
use crate::trace::MergePolicy;
use kpg_arena::{Arena, ArenaConfig};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How an engine is run. `Config::default()` takes every core, one pinned worker each, and no cap on memory.
#[derive(Clone, Debug)]
pub struct Config {
    workers: usize,
    pinned: bool,
    arena: ArenaConfig,
    merge_policy: MergePolicy,
    quantum: usize,
    install_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: topology::usable_cores(),
            pinned: true,
            arena: ArenaConfig::default(),
            merge_policy: MergePolicy::default(),
            quantum: QUANTUM as usize,
            install_timeout: Duration::from_secs(30),
        }
    }
}

impl Config {
    /// Number of workers, at least 1.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = count;
        self
    }
    /// Whether each worker is pinned to a core of its own; if there are more workers than cores, none is.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }
    /// The most bytes that each worker's arena holds live; a query that asks for more ends with an error.
    pub fn arena_cap(mut self, bytes: usize) -> Self {
        self.arena.cap_bytes = Some(bytes);
        self
    }
    /// How workers' arenas behave otherwise.
    pub fn arena(mut self, config: ArenaConfig) -> Self {
        self.arena = config;
        self
    }
    /// How traces merge: what each new batch pays, between short steps and few batches.
    pub fn merge_policy(mut self, policy: MergePolicy) -> Self {
        self.merge_policy = policy;
        self
    }
    /// About how many updates an operator may touch before it yields, at least 1: less shortens steps, more shortens the
    /// work as a whole. Tests set it to very little, so that everything yields everywhere.
    pub fn quantum(mut self, updates: usize) -> Self {
        self.quantum = updates.clamp(1, isize::MAX as usize / 8);
        self
    }
    /// How long an install waits for the slowest worker before it gives up with `Deadline`.
    pub fn install_timeout(mut self, timeout: Duration) -> Self {
        self.install_timeout = timeout;
        self
    }
}

struct Entry {
    query: Arc<crate::runtime::Query>,
    imports: Vec<DataflowId>,
}

#[derive(Default)]
struct Registry {
    next: DataflowId,
    queries: BTreeMap<DataflowId, Entry>,
    /// How many commands there are, once the last of them is the stop.
    stopping: Option<usize>,
}

struct Shared {
    commands: Arc<CommandLog>,
    mailboxes: Arc<[Arc<Mailbox>]>,
    arenas: Vec<Arena>,
    registry: Mutex<Registry>,
    install_timeout: Duration,
}

impl Shared {
    fn append(&self, command: Command) -> usize {
        let count = self.commands.append(command);
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        count
    }

    /// Waits until all workers have executed so many commands; steps those that this thread owns.
    fn wait_executed(&self, count: usize, deadline: Instant) -> bool {
        match waiting::role() {
            Role::Inside => false,
            Role::Client => self.commands.wait_executed(count, deadline),
            Role::Owner(workers) => loop {
                let busy = waiting::step_all(&workers);
                if self.commands.is_executed(count) {
                    return true;
                }
                if Instant::now() >= deadline {
                    return false;
                }
                if !busy {
                    std::thread::sleep(Duration::from_micros(20));
                }
            },
        }
    }

    /// Sequences the stop; gives how many commands there are with it.
    fn stop(&self) -> usize {
        let mut registry = self.registry.lock();
        if let Some(count) = registry.stopping {
            return count;
        }
        let queries: Vec<_> = std::mem::take(&mut registry.queries).into_values().collect();
        let count = self.append(Command::Stop);
        registry.stopping = Some(count);
        drop(registry);
        queries.iter().for_each(|entry| {
            entry.query.end(Ending::Shutdown);
        });
        count
    }
}

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

/// A worker that a host's thread is to own.
pub struct WorkerSeed {
    fabric: Box<dyn Fabric<Envelope, ProgressEntry> + Send>,
    setup: SeedSetup,
    leaving: Leaving,
}

struct SeedSetup {
    shared: Arc<Shared>,
    engine: u64,
    index: usize,
    merge_policy: MergePolicy,
    quantum: usize,
}

impl SeedSetup {
    fn new(shared: &Arc<Shared>, engine: u64, index: usize, config: &Config) -> Self {
        let Config { merge_policy, quantum, .. } = *config;
        SeedSetup { shared: shared.clone(), engine, index, merge_policy, quantum }
    }
    fn setup(&self) -> Setup {
        Setup {
            commands: self.shared.commands.clone(),
            mailboxes: self.shared.mailboxes.clone(),
            arena: self.shared.arenas[self.index].clone(),
            engine: self.engine,
            defaults: Box::new(self.merge_policy),
            quantum: self.quantum,
        }
    }
}

/// Counts a worker as gone when dropped, however its thread ends, and if none ever starts it.
struct Leaving {
    shared: Arc<Shared>,
    index: usize,
}
impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.commands.leave(self.index);
    }
}

/// A worker on a thread that the host owns: step it in a loop.
pub struct HostedWorker {
    worker: Rc<RefCell<Worker>>,
    _leaving: Leaving,
}

impl WorkerSeed {
    /// The worker, owned by this thread from now on.
    pub fn start(self) -> HostedWorker {
        let worker = Rc::new(RefCell::new(Worker::new(self.fabric, self.setup.setup())));
        waiting::own(&worker);
        HostedWorker { worker, _leaving: self.leaving }
    }
}

impl HostedWorker {
    /// Steps once; true iff there was, or is, something to do.
    pub fn step(&self) -> bool {
        self.worker.borrow_mut().step()
    }
    /// Steps for about `budget`, or until there is nothing to do; true iff there is more.
    pub fn step_for(&self, budget: Duration) -> bool {
        let end = Instant::now() + budget;
        loop {
            if !self.step() {
                return false;
            }
            if Instant::now() >= end {
                return true;
            }
        }
    }
    /// Sleeps until there may be something to do, at most `timeout`.
    pub fn park(&self, timeout: Duration) {
        self.worker.borrow_mut().park(Some(timeout));
    }
    /// Whether the engine has stopped.
    pub fn is_stopped(&self) -> bool {
        self.worker.borrow().is_stopped()
    }
}

fn prepare(config: &Config, unparkers: &[crate::sync::Unparker]) -> Result<Arc<Shared>, Error> {
    let workers = config.workers;
    let mailboxes: Arc<[Arc<Mailbox>]> = unparkers.iter().map(|unparker| Worker::mailbox(unparker.clone())).collect();
    let arenas =
        (0..workers).map(|index| Arena::new(ArenaConfig { name: format!("worker {index}"), ..config.arena.clone() }));
    Ok(Arc::new(Shared {
        commands: Arc::new(CommandLog::new(workers)),
        mailboxes,
        arenas: arenas.collect(),
        registry: Mutex::new(Registry::default()),
        install_timeout: config.install_timeout,
    }))
}

impl Engine {
    /// Starts an engine on threads of its own.
    ///
    /// # Errors
    /// A configuration without workers; threads that the system refuses.
    pub fn start(config: Config) -> Result<Engine, Error> {
        let pinned = config.pinned && config.workers <= topology::usable_cores();
        let (mut engine, seeds) = Engine::start_hosted(config)?;
        let cores = topology::cores();
        for (index, seed) in seeds.into_iter().enumerate() {
            let core = if pinned { cores.get(index).copied() } else { None };
            let thread = std::thread::Builder::new().name(format!("kpg worker {index}")).spawn(move || {
                if let Some(core) = core {
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
    /// A configuration without workers.
    pub fn start_hosted(config: Config) -> Result<(Engine, Vec<WorkerSeed>), Error> {
        check(&config)?;
        let ends = fabric::threads::<Envelope, ProgressEntry>(config.workers);
        let shared = prepare(&config, ends[0].unparkers())?;
        let engine = unique();
        let seeds = ends.into_iter().enumerate().map(|(index, end)| WorkerSeed {
            fabric: Box::new(end),
            setup: SeedSetup::new(&shared, engine, index, &config),
            leaving: Leaving { shared: shared.clone(), index },
        });
        let seeds = seeds.collect();
        Ok((Engine { shared, threads: Vec::new() }, seeds))
    }

    /// An engine whose workers all run on this thread, with messages delayed and interleaved as `seed` says: the same
    /// seed, the same run. Blocking calls step the workers.
    ///
    /// # Errors
    /// A configuration without workers.
    pub fn start_simulated(config: Config, seed: u64) -> Result<(Engine, Vec<HostedWorker>), Error> {
        check(&config)?;
        let ends = fabric::simulation::<Envelope, ProgressEntry>(config.workers, seed);
        let shared = prepare(&config, ends[0].unparkers())?;
        let engine = unique();
        let workers = ends.into_iter().enumerate().map(|(index, end)| {
            let setup = SeedSetup::new(&shared, engine, index, &config);
            let worker = Rc::new(RefCell::new(Worker::new(Box::new(end), setup.setup())));
            waiting::own(&worker);
            HostedWorker { worker, _leaving: Leaving { shared: shared.clone(), index } }
        });
        let workers = workers.collect();
        Ok((Engine { shared, threads: Vec::new() }, workers))
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
        self.install_capped::<T, O, F>(name, None, closure)
    }

    /// As `install_at`, with a cap on the bytes that the query may hold for itself; past it, it ends with an error.
    ///
    /// # Errors
    /// As `install`.
    pub fn install_capped<T, O, F>(&self, name: &str, cap_bytes: Option<usize>, closure: F) -> Result<(Query, O), Error>
    where
        T: Timestamp,
        O: Send,
        F: for<'s> Fn(&Scope<'s, T>) -> O + Send + Sync,
    {
        waiting::check_may_wait("install")?;
        let peers = self.workers();
        let mut registry = self.shared.registry.lock();
        if registry.stopping.is_some() {
            return Err(Error::Shutdown);
        }
        let id = registry.next;
        registry.next += 1;
        let query = crate::runtime::Query::new(id, name, cap_bytes);
        registry.queries.insert(id, Entry { query: query.clone(), imports: Vec::new() });
        let install = InstallShared::new(query.clone(), peers);
        let result: Slot<O> = Mutex::new(None);
        let run = |local: &Rc<Local>| build_on::<T, O, F>(local, id, &install, &closure, &result);
        let deadline = Instant::now() + self.shared.install_timeout;
        let mut registry = Some(registry);
        let shared = &self.shared;
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
                        if !waiting::step_all(&workers) {
                            call.wait_until(Some(Instant::now() + Duration::from_micros(50)));
                        }
                    }
                    _ => {
                        call.wait_until(Some(deadline));
                    }
                }
                Instant::now() < deadline && !shared.commands.is_stopped()
            },
        );
        match self.conclude(outcome, &install, name) {
            Ok(()) => {
                let output = result.into_inner().expect("worker 0 ran the closure to its end");
                let mut registry = self.shared.registry.lock();
                if let Some(entry) = registry.queries.get_mut(&id) {
                    entry.imports = install.imports();
                }
                drop(registry);
                install.release_handles();
                Ok((Query { query, shared: self.shared.clone() }, output))
            }
            Err(error) => {
                install.give_up();
                drop(result);
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
            lags: entry.query.lags(),
            ended: entry.query.ending().is_some(),
        });
        Metrics { queries: queries.collect(), arenas: self.shared.arenas.iter().map(Arena::stats).collect() }
    }

    /// Lets the workers come to rest, for at most three quarters of `timeout`; then stops them and waits for them.
    ///
    /// Says whether they came to rest: if so, whatever was put in before is in what handles show.
    ///
    /// # Errors
    /// `Deadline`, if they had not stopped by then; they stop when they can. `WouldBlock` inside a step.
    pub fn shutdown(mut self, timeout: Duration) -> Result<Report, Error> {
        waiting::check_may_wait("shutdown")?;
        let start = Instant::now();
        let drained = self.drain(start + timeout * 3 / 4);
        let metrics = self.metrics();
        let count = self.shared.stop();
        if !self.shared.wait_executed(count, start + timeout) {
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
    fn drain(&self, deadline: Instant) -> bool {
        let states = Arc::new(Monitor::new(vec![None; self.workers()]));
        self.shared.append(Command::Drain(states.clone()));
        let mut before = None;
        loop {
            let look = waiting::wait(&states, Some(deadline), "all workers had come to rest", |states| {
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

fn check(config: &Config) -> Result<(), Error> {
    if config.workers == 0 {
        return Err(Error::Config("an engine needs at least one worker: Config::workers(1)".to_string()));
    }
    Ok(())
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
    match Dataflow::finish(&build, T::COORDINATES) {
        Ok(dataflow) => local.built.borrow_mut().push((id, Box::new(dataflow))),
        Err(fault) => install.fail(fault),
    }
    install.built(local.index, Dataflow::digest(&build));
    local.mailboxes.iter().for_each(|mailbox| mailbox.wake());
}

/// An installed query. Dropping this leaves it installed; `retire` takes it down.
pub struct Query {
    query: Arc<crate::runtime::Query>,
    shared: Arc<Shared>,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.query.fmt(f)
    }
}

impl Query {
    /// The name it was installed under.
    pub fn name(&self) -> &str {
        &self.query.name
    }

    /// Its memory.
    pub fn bytes(&self) -> QueryBytes {
        bytes_of(&self.query)
    }

    /// What it keeps of others' arrangements because it lags: who, from when on, about how many bytes.
    pub fn lags(&self) -> Vec<Lag> {
        self.query.lags()
    }

    /// The error that its handles give, if it has ended.
    pub fn error(&self) -> Option<Error> {
        Error::ended(&self.query)
    }

    /// Takes the query down on all workers: operators, messages, memory. Its handles give `Retired` from now on.
    ///
    /// # Errors
    /// `Imported`, while others import from it; `Deadline`, if a worker has not freed its part within 30 s; `Shutdown`;
    /// `WouldBlock` inside a step.
    pub fn retire(self) -> Result<(), Error> {
        self.end(false)
    }

    /// As `retire`, together with all that import from it, transitively: those end with `SourceEnded`.
    ///
    /// # Errors
    /// As `retire`, but for `Imported`.
    pub fn retire_cascade(self) -> Result<(), Error> {
        self.end(true)
    }

    fn end(self, cascade: bool) -> Result<(), Error> {
        waiting::check_may_wait("retire")?;
        let count = {
            let mut registry = self.shared.registry.lock();
            if registry.stopping.is_some() {
                return Err(Error::Shutdown);
            }
            let all = importers(&registry, self.query.id);
            // Those that are being installed have told the query already, and the registry not yet.
            let by = self.query.importers();
            if !by.is_empty() && !cascade {
                return Err(Error::Imported { query: self.query.name.clone(), by });
            }
            self.query.end(Ending::Retired);
            let mut count = 0;
            // Importers first, so that none outlives what it reads.
            for id in all.iter().rev() {
                registry.queries.remove(id);
                count = self.shared.append(Command::End(*id, Ending::Retired));
            }
            count
        };
        if self.shared.wait_executed(count, Instant::now() + Duration::from_secs(30)) {
            Ok(())
        } else {
            Err(Error::Deadline { what: format!("all workers had freed query {:?}", self.query.name) })
        }
    }
}

/// A query and all that import from it, transitively, sources before importers.
fn importers(registry: &Registry, id: DataflowId) -> Vec<DataflowId> {
    let mut all = vec![id];
    // Numbers grow, and a query imports only from those before it.
    for (other, entry) in registry.queries.range(id..) {
        if entry.imports.iter().any(|source| all.contains(source)) {
            all.push(*other);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A closure that panics once it has published and imported leaves nothing with the others on its worker.
    #[test]
    fn a_failed_install_withdraws_its_offers() {
        let (engine, workers) = Engine::start_simulated(Config::default().workers(1), 1).unwrap();
        let (_, published) =
            engine.install("source", |scope| scope.input::<(u32, u32)>().1.arrange_by_key().publish()).unwrap();
        let offers = || workers[0].worker.borrow().local().offers.borrow().len();
        assert_eq!(offers(), 1);
        for _ in 0..3 {
            let failed = engine.install("failing", |scope| {
                let imported = published.import(scope);
                let _again = imported.as_collection(|k, v| (k, v)).arrange_by_key().publish();
                std::panic::resume_unwind(Box::new("meant"));
            });
            assert!(matches!(failed, Err(Error::InstallPanicked { .. })));
        }
        assert_eq!(offers(), 1);
    }
}
