//! The sequenced commands: every worker executes the same list in the same order.
#![forbid(unsafe_code)]

use super::message::DataflowId;
use super::query::Ending;
use super::worker::Local;
use crate::sync::{Counter, Monitor};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

/// Builds a dataflow on the worker that executes it.
pub trait Install: Send + Sync {
    /// Runs on each worker once, unless the install was given up before.
    fn execute(&self, worker: &Rc<Local>);
}

/// While a worker has nothing to do: how much it has ever sent to others, and received.
pub type AtRest = Option<(u64, u64)>;

/// What every worker does, in the order of the log.
#[derive(Clone)]
pub enum Command {
    /// Build the dataflow of this number.
    Install(DataflowId, Arc<dyn Install>),
    /// Free the dataflow of this number.
    End(DataflowId, Ending),
    /// Tell, from now on, whether there is nothing to do: a flag for each worker.
    Drain(Arc<Monitor<Vec<AtRest>>>),
    /// Stop stepping.
    Stop,
}

/// The log of commands of one engine.
///
/// Kept for the slowest worker; what all have executed is dropped.
pub struct CommandLog {
    inner: Monitor<Log>,
    /// How many were ever appended: that workers look at in each step, without the lock that they would fight for.
    appended: Counter,
}

struct Log {
    dropped: usize,
    commands: VecDeque<Command>,
    executed: Vec<usize>,
    stopped: bool,
    /// Who is to be told if a worker leaves.
    drain: Option<Arc<Monitor<Vec<AtRest>>>>,
}

impl Log {
    fn executed_by_all(&self) -> usize {
        self.executed.iter().copied().min().expect("an engine has a worker")
    }
}

impl CommandLog {
    /// A log that `workers` workers read.
    pub fn new(workers: usize) -> Self {
        let log =
            Log { dropped: 0, commands: VecDeque::new(), executed: vec![0; workers], stopped: false, drain: None };
        CommandLog { inner: Monitor::new(log), appended: Counter::default() }
    }

    /// Appends a command; gives how many there are then.
    pub fn append(&self, command: Command) -> usize {
        let mut log = self.inner.lock();
        match &command {
            Command::Stop => log.stopped = true,
            Command::Drain(flags) => log.drain = Some(flags.clone()),
            _ => {}
        }
        log.commands.push_back(command);
        let appended = log.dropped + log.commands.len();
        self.appended.set(appended as u64);
        appended
    }

    /// Whether there are more than the first `done`. One that was just appended may be missed; whoever appends wakes the
    /// workers afterwards, and then it is seen.
    pub fn has_more(&self, done: usize) -> bool {
        self.appended.get() != done as u64
    }

    /// The command after the first `done`, for the worker that has executed `done` of them.
    pub fn next(&self, worker: usize, done: usize) -> Option<Command> {
        let mut log = self.inner.lock();
        let moved = log.executed[worker] != done;
        log.executed[worker] = done;
        if moved {
            let all = log.executed_by_all().min(log.dropped + log.commands.len());
            while log.dropped < all {
                log.commands.pop_front();
                log.dropped += 1;
            }
        }
        let next = log.commands.get(done - log.dropped).cloned();
        drop(log);
        if moved {
            self.inner.notify_all();
        }
        next
    }

    /// A worker has stopped, or is gone: nobody waits for it any more.
    pub fn leave(&self, worker: usize) {
        let mut log = self.inner.lock();
        log.executed[worker] = usize::MAX;
        let drain = log.drain.clone();
        drop(log);
        self.inner.notify_all();
        if let Some(flags) = drain {
            // Under its lock, so that whoever has just looked here is asleep, or looks again.
            drop(flags.lock());
            flags.notify_all();
        }
    }

    /// Whether a worker has stopped, or is gone.
    pub fn has_left(&self) -> bool {
        self.inner.lock().executed.contains(&usize::MAX)
    }

    /// Whether a stop has been sequenced.
    pub fn is_stopped(&self) -> bool {
        self.inner.lock().stopped
    }

    /// Whether all workers have executed the first `count` commands.
    pub fn is_executed(&self, count: usize) -> bool {
        self.inner.lock().executed_by_all() >= count
    }

    /// Waits until something was executed, or the deadline; true iff all workers have executed the first `count`.
    pub fn wait_executed(&self, count: usize, deadline: Option<Instant>) -> bool {
        let mut log = self.inner.lock();
        while log.executed_by_all() < count {
            let (guard, timed_out) = self.inner.wait(log, deadline);
            log = guard;
            if timed_out {
                return log.executed_by_all() >= count;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As long as it runs, however much that is: what one worker has yet to execute is kept, and nothing else.
    #[test]
    fn what_all_have_executed_is_dropped() {
        let log = CommandLog::new(2);
        for round in 0..1000 {
            (0..10).for_each(|id| {
                log.append(Command::End(id, Ending::Retired));
            });
            (10 * round..10 * (round + 1)).for_each(|done| assert!(log.next(0, done).is_some()));
            assert_eq!(log.inner.lock().commands.len(), 10);
            (10 * round..10 * (round + 1)).for_each(|done| assert!(log.next(1, done).is_some()));
            // Each says what it has executed when it asks for more.
            assert!((0..2).all(|worker| log.next(worker, 10 * (round + 1)).is_none()));
            assert_eq!(log.inner.lock().commands.len(), 0);
        }
    }
}
