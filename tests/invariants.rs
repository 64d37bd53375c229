//! The invariants that a fresh implementation breaks first, each with the test that catches a breach.
#![forbid(unsafe_code)]

#[path = "invariants/closing.rs"]
mod closing;
#[path = "invariants/determinism.rs"]
mod determinism;
#[path = "invariants/imports.rs"]
mod imports;
#[path = "invariants/join.rs"]
mod join;
#[path = "invariants/loops.rs"]
mod loops;
#[path = "invariants/published.rs"]
mod published;
#[path = "invariants/reduce.rs"]
mod reduce;
#[path = "invariants/support.rs"]
mod support;
