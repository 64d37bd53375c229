//! kpg
#![deny(unsafe_op_in_unsafe_fn)]
#[cfg(not(loom))]
pub mod client;
#[cfg(not(loom))]
pub mod dataflow;
#[cfg(not(loom))]
pub mod operators;
#[cfg(not(loom))]
pub mod order;
#[cfg(not(loom))]
pub mod progress;
#[cfg(not(loom))]
pub mod runtime;
pub mod sync;
#[cfg(not(loom))]
pub mod trace;
