//! Faults at every point: whatever fails, and wherever, it is one query's typed error, or is survived.
//!
//! ```text
//! a program (`program.rs`), a query that imports from it, a witness that has nothing to do with either
//!   panic at the n-th call of user code ┐
//!   the n-th allocation fails           ├─ for every n ─▶ results exact, or one typed error that names its place
//!   an end after the n-th step          ┘                 the witness exact; bytes what they were
//! a worker that is not stepped for long ─▶ results exact     epochs, queries by the thousand ─▶ memory flat
//! ```
//! Mostly in simulation, so that the n-th is the same each time. `KPG_HEAVY=1` leaves out nothing: a million epochs, ten
//! thousand queries, every n. Cost of the whole otherwise: below 40 seconds.
#![forbid(unsafe_code)]

#[path = "faults/allocations.rs"]
mod allocations;
#[path = "faults/common.rs"]
mod common;
#[path = "faults/ends.rs"]
mod ends;
#[path = "faults/flat.rs"]
mod flat;
#[path = "faults/panics.rs"]
mod panics;
#[path = "faults/program.rs"]
mod program;
#[path = "faults/starved.rs"]
mod starved;
mod witness;
