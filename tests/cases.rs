//! Scenarios in which engines of this kind have gone wrong, each a small program with the behaviour that is right.
//!
//! | scenario | where |
//! |---|---|
//! | 1, 4, 5, 7, 9, 10, 11, 15 | `cases/results.rs` |
//! | 6 | `invariants::closing::inv_26_birth_and_a_worker_that_builds_late` |
//! | 8, 23 | `invariants::loops` |
//! | 12, 14, 17, 18, 29 | `cases/rest.rs` |
//! | 13 | `invariants::closing::inv_14_empty_buffers_are_counted_alike` |
//! | 19, 20, 22, 34 | `cases/times.rs` |
//! | 21 | `invariants::published::inv_24_upper_never_passes_what_is_unsealed` |
//! | 24 to 28, 31, 32 | `cases/growth.rs` |
//! | 30, 33 | `invariants::imports::inv_10_retired_chains_seal_nothing` and its neighbours |
//! | 2, 3, 16 | once there are delta joins |
#![forbid(unsafe_code)]

#[path = "cases/growth.rs"]
mod growth;
#[path = "cases/rest.rs"]
mod rest;
#[path = "cases/results.rs"]
mod results;
#[allow(dead_code, reason = "shared with the tests of the invariants")]
#[path = "invariants/support.rs"]
mod support;
#[path = "cases/times.rs"]
mod times;
