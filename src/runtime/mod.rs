//! Runtime: workers, what carries messages between them, and the commands that they execute in one order.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod commands;
mod decision;
pub mod fabric;
#[cfg(not(loom))]
mod merging;
#[cfg(not(loom))]
mod message;
#[cfg(all(test, loom))]
mod protocol;
#[cfg(not(loom))]
mod query;
mod schedule;
pub mod topology;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use clock::Clock;
#[cfg(not(loom))]
pub use commands::{AtRest, Command, CommandLog, Install};
pub use decision::{Choice, Decision, Decisions, Freight, Lane, Merging, NoDecision, Place};
#[cfg(not(loom))]
pub use merging::{MergeGauges, MergeState};
#[cfg(not(loom))]
pub use message::{Changes, DataflowId, Envelope, ProgressEntry};
#[cfg(not(loom))]
pub use query::{Ending, Failure, Lag, Query, Wake};
pub use schedule::{Schedule, Tape, Waiting};
#[cfg(not(loom))]
pub use worker::{Local, Mailbox, Poke, Round, Runnable, Setup, Worker};
