//! Bad input and misuse: each case ends in a typed error or in progress, never in a hang, and harms nobody else.
//!
//! ```text
//! one query does what it must not  ─▶ its handles: a typed error │ its memory: back to 0
//!                                     every other query (`Witness`): exact, before and after
//! ```
//! Real threads, two workers; every wait has a deadline. Cost of the whole: some ten seconds.
#![forbid(unsafe_code)]

#[path = "misuse/capabilities.rs"]
mod capabilities;
#[path = "misuse/common.rs"]
mod common;
#[path = "misuse/deadlines.rs"]
mod deadlines;
#[path = "misuse/ends.rs"]
mod ends;
#[path = "misuse/idle_inputs.rs"]
mod idle_inputs;
#[path = "misuse/installs.rs"]
mod installs;
#[path = "misuse/memory.rs"]
mod memory;
#[path = "misuse/overflow.rs"]
mod overflow;
#[path = "misuse/owners.rs"]
mod owners;
#[path = "misuse/panics.rs"]
mod panics;
#[path = "misuse/times.rs"]
mod times;
#[path = "misuse/waiters.rs"]
mod waiters;
mod witness;
