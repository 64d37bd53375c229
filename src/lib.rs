//! kpg
#![deny(unsafe_op_in_unsafe_fn)]
pub mod client;
pub mod dataflow;
pub mod operators;
pub mod order;
pub mod progress;
pub mod runtime;
pub mod sync;
pub mod trace;
