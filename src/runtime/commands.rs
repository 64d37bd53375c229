//! The sequenced commands: every worker executes the same list in the same order.
#![forbid(unsafe_code)]

use super::message::DataflowId;
use super::query::Ending;
use super::worker::Local;
use crate::sync::Mutex;
use std::rc::Rc;
use std::sync::Arc;

/// Builds a dataflow on the worker that executes it.
pub trait Install: Send + Sync {
    /// Runs on each worker once, unless the install was given up before.
    fn execute(&self, worker: &Rc<Local>);
}

/// What every worker does, in the order of the log.
#[derive(Clone)]
pub enum Command {
    /// Build the dataflow of this number.
    Install(DataflowId, Arc<dyn Install>),
    /// Free the dataflow of this number.
    End(DataflowId, Ending),
    /// Stop stepping.
    Stop,
}

/// The log of commands of one engine.
///
/// Kept whole for the slowest worker; what all have executed is dropped.
#[derive(Default)]
pub struct CommandLog {
    inner: Mutex<Log>,
}

#[derive(Default)]
struct Log {
    dropped: usize,
    commands: std::collections::VecDeque<Command>,
    executed: Vec<usize>,
}

impl CommandLog {
    /// A log that `workers` workers read.
    pub fn new(workers: usize) -> Self {
        CommandLog { inner: Mutex::new(Log { executed: vec![0; workers], ..Log::default() }) }
    }

    /// Appends what `make` gives, in one piece with whatever it decides.
    pub fn append(&self, command: Command) {
        self.inner.lock().commands.push_back(command);
    }

    /// The command after the first `done`, for the worker that has executed `done` of them.
    pub fn next(&self, worker: usize, done: usize) -> Option<Command> {
        let mut log = self.inner.lock();
        log.executed[worker] = done;
        let all = log.executed.iter().copied().min().expect("an engine has a worker");
        while log.dropped < all {
            log.commands.pop_front();
            log.dropped += 1;
        }
        log.commands.get(done - log.dropped).cloned()
    }
}
