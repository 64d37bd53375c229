//! The fabric: what carries messages between workers, FIFO per (sender, receiver).
//!
//! ```text
//!   worker 0                                             worker 1
//!   send(1, m) ────────── ring 0→1 ───────────────────▶ receive: Message { from: 0, m }
//!   broadcast(e) ──────── log 0 ───────────────────────▶ receive: Progress { from: 0, e }
//!   flush, park ───────── wakes 1, once ───────────────▶ park returns
//! ```
//!
//! What is promised. The messages of one sender to one receiver arrive in order; so do one sender's entries. Nothing
//! else: messages may overtake entries and entries messages, and senders are not ordered among each other. Everything
//! sent arrives if the receiver goes on receiving. A receiver may be asleep until the sender has flushed; parking
//! flushes.
//!
//! [`threads()`] is for workers on threads of their own; [`simulation()`] for all on one thread, with a seeded delivery
//! that does what the promise permits. Another fabric (between processes) is one more file. Next stop: the worker.
#![forbid(unsafe_code)]

mod simulation;
mod threads;

pub use simulation::{SimFabric, scheduled, simulation};
pub use threads::{ThreadFabric, threads};

use crate::sync::Unparker;
use std::time::Duration;

/// What a worker receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming<M, P> {
    /// A message for this worker alone.
    Message {
        /// The sender; also this worker itself.
        from: usize,
        /// What it sent.
        message: M,
    },
    /// An entry for every worker but the sender.
    Progress {
        /// The sender, another worker.
        from: usize,
        /// What it broadcast.
        entry: P,
    },
}

impl<M, P> Incoming<M, P> {
    /// The sender.
    pub fn from(&self) -> usize {
        match self {
            Incoming::Message { from, .. } | Incoming::Progress { from, .. } => *from,
        }
    }
}

/// One worker's end of a fabric.
pub trait Fabric<M, P> {
    /// Which worker this is.
    fn index(&self) -> usize;

    /// How many workers there are, this one included.
    fn peers(&self) -> usize;

    /// Sends a message to one worker, also to this one. It arrives, at the latest, once this end has flushed.
    fn send(&mut self, to: usize, message: M);

    /// Sends a clone of an entry to each of the other workers. It arrives, at the latest, once this end has flushed.
    fn broadcast(&mut self, entry: P);

    /// Wakes those to whom something was sent since the last flush: once each, however much that was. To be called
    /// at the end of each step.
    fn flush(&mut self);

    /// Hands what has arrived to `f`, `limit` items at most; returns how many. No sender can starve the others.
    fn receive(&mut self, limit: usize, f: &mut dyn FnMut(Incoming<M, P>)) -> usize;

    /// Whether something is there to receive, or (in a simulation) on its way to this worker.
    fn has_incoming(&self) -> bool;

    /// Flushes, then sleeps until something arrives, an unparker of this worker is used, or the timeout is over. May
    /// return early; returns at once if there is something to receive, and in a simulation always.
    fn park(&mut self, timeout: Option<Duration>);

    /// One unparker per worker, in the order of their indexes: for clients, who may keep clones.
    fn unparkers(&self) -> &[Unparker];
}
