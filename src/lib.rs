//! kpg
#![deny(unsafe_op_in_unsafe_fn)]
pub mod order;
pub mod sync;
pub mod progress;
pub mod runtime;
pub mod dataflow;
pub mod trace;
pub mod operators;
pub mod client;
