//! What the handles of an engine share: its commands, how its workers are woken, what is installed.
#![forbid(unsafe_code)]

use super::waiting::{self, Role};
use crate::runtime::{Clock, Command, CommandLog, DataflowId, Ending, Mailbox};
use crate::sync::Mutex;
use kpg_arena::Arena;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) struct Entry {
    pub(super) query: Arc<crate::runtime::Query>,
    pub(super) imports: Vec<DataflowId>,
}

#[derive(Default)]
pub(super) struct Registry {
    pub(super) next: DataflowId,
    pub(super) queries: BTreeMap<DataflowId, Entry>,
    /// How many commands there are, once the last of them is the stop.
    pub(super) stopping: Option<usize>,
}

pub(super) struct Shared {
    pub(super) commands: Arc<CommandLog>,
    pub(super) mailboxes: Arc<[Arc<Mailbox>]>,
    pub(super) arenas: Vec<Arena>,
    pub(super) registry: Mutex<Registry>,
    pub(super) clock: Clock,
    pub(super) install_timeout: Duration,
}

impl Shared {
    pub(super) fn append(&self, command: Command) -> usize {
        let count = self.commands.append(command);
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        count
    }

    /// Waits until all workers have executed so many commands; steps those that this thread owns.
    pub(super) fn wait_executed(&self, count: usize, deadline: Option<Instant>) -> bool {
        match waiting::role() {
            Role::Inside => self.commands.is_executed(count),
            Role::Client => self.commands.wait_executed(count, self.clock.by_system(deadline)),
            Role::Owner(workers) => {
                let mut stepper = waiting::Stepper::new(workers, &self.clock, deadline);
                let mut more = !self.clock.is_past(deadline);
                while !self.commands.is_executed(count) {
                    if !more {
                        return false;
                    }
                    more = stepper.step();
                }
                true
            }
        }
    }

    /// Sequences the stop; gives how many commands there are with it.
    pub(super) fn stop(&self) -> usize {
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

/// A slot for one value that crosses threads.
pub(crate) type Slot<O> = Mutex<Option<O>>;
