//! Workers on threads that a host owns.
#![forbid(unsafe_code)]

use super::config::Config;
use super::shared::Shared;
use super::waiting;
use crate::runtime::fabric::Fabric;
use crate::runtime::topology::CoreId;
use crate::runtime::{Envelope, ProgressEntry, Schedule, Setup, Worker};
use crate::trace::MergePolicy;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A worker that a host's thread is to own.
pub struct WorkerSeed {
    pub(super) fabric: Box<dyn Fabric<Envelope, ProgressEntry> + Send>,
    pub(super) setup: SeedSetup,
    pub(super) leaving: Leaving,
    pub(super) core: Option<CoreId>,
}

pub(super) struct SeedSetup {
    shared: Arc<Shared>,
    engine: u64,
    index: usize,
    merge_policy: MergePolicy,
    quantum: usize,
    idle_tick: usize,
}

impl SeedSetup {
    pub(super) fn new(shared: &Arc<Shared>, engine: u64, index: usize, config: &Config) -> Self {
        let Config { merge_policy, quantum, idle_tick, .. } = *config;
        SeedSetup { shared: shared.clone(), engine, index, merge_policy, quantum, idle_tick }
    }
    pub(super) fn setup(&self, schedule: Option<Rc<RefCell<Schedule>>>) -> Setup {
        Setup {
            commands: self.shared.commands.clone(),
            mailboxes: self.shared.mailboxes.clone(),
            arena: self.shared.arenas[self.index].clone(),
            engine: self.engine,
            defaults: Box::new(self.merge_policy),
            quantum: self.quantum,
            idle_tick: self.idle_tick,
            clock: self.shared.clock.clone(),
            schedule,
        }
    }
}

/// Counts a worker as gone when dropped, however its thread ends, and if none ever starts it.
pub(super) struct Leaving {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
}
impl Drop for Leaving {
    fn drop(&mut self) {
        self.shared.commands.leave(self.index);
    }
}

/// A worker on a thread that the host owns: step it in a loop.
pub struct HostedWorker {
    pub(super) worker: Rc<RefCell<Worker>>,
    leaving: Leaving,
}

impl WorkerSeed {
    /// The worker, owned by this thread from now on.
    pub fn start(self) -> HostedWorker {
        HostedWorker::new(Worker::new(self.fabric, self.setup.setup(None)), self.leaving)
    }

    /// The core that its thread should be pinned to, by the system's number; [`super::Config::cores`] says which, and
    /// pinning is the host's.
    pub fn core(&self) -> Option<usize> {
        self.core.map(|core| core.id)
    }
}

impl HostedWorker {
    pub(super) fn new(worker: Worker, leaving: Leaving) -> Self {
        let worker = Rc::new(RefCell::new(worker));
        waiting::own(&worker);
        HostedWorker { worker, leaving }
    }
    /// Steps once; true iff there was, or is, something to do.
    pub fn step(&self) -> bool {
        self.worker.borrow_mut().step()
    }
    /// Steps for about `budget`, or until there is nothing to do; true iff there is more.
    pub fn step_for(&self, budget: Duration) -> bool {
        let clock = &self.leaving.shared.clock;
        let end = clock.deadline(budget);
        loop {
            if !self.step() {
                return false;
            }
            if clock.is_past(end) {
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
