//! Runtime: workers, what carries messages between them, and the commands that they execute in one order.
#![forbid(unsafe_code)]

#[cfg(not(loom))]
mod clock;
#[cfg(not(loom))]
mod commands;
pub mod fabric;
#[cfg(not(loom))]
mod message;
#[cfg(all(test, loom))]
mod protocol;
#[cfg(not(loom))]
mod query;
#[cfg(not(loom))]
mod schedule;
pub mod topology;
#[cfg(not(loom))]
mod worker;

#[cfg(not(loom))]
pub use clock::Clock;
#[cfg(not(loom))]
pub use commands::{AtRest, Command, CommandLog, Install};
#[cfg(not(loom))]
pub use message::{Changes, DataflowId, Envelope, ProgressEntry};
#[cfg(not(loom))]
pub use query::{Ending, Failure, Lag, Query, Wake};
#[cfg(not(loom))]
pub use schedule::Schedule;
#[cfg(not(loom))]
pub use worker::{Local, Mailbox, Poke, Round, Runnable, Setup, Worker};
