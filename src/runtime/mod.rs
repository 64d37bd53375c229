//! Runtime: workers, what carries messages between them, and the commands that they execute in one order.
#![forbid(unsafe_code)]

mod clock;
mod commands;
pub mod fabric;
mod message;
mod query;
mod schedule;
pub mod topology;
mod worker;

pub use clock::Clock;
pub use commands::{AtRest, Command, CommandLog, Install};
pub use message::{Changes, DataflowId, Envelope, ProgressEntry};
pub use query::{Ending, Failure, Lag, Query, Wake};
pub use schedule::Schedule;
pub use worker::{Local, Mailbox, Poke, Round, Runnable, Setup, Worker};
