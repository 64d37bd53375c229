//! The invariants that a fresh implementation breaks first, each with the test that catches a breach.
//!
//! Those marked with a star were seen to fail when the line that they guard was broken.
//!
//! | invariant | test |
//! |---|---|
//! | 1 reduce at joins of times | `reduce::inv_01…` * |
//! | 2 pending outlives input | `reduce::inv_02…` *, `cases::results::case_10…` * |
//! | 3 seeds before netting | `reduce::inv_03…` *, `cases::results::case_11…` * |
//! | 4 reduce's capabilities | `reduce::inv_04…` *, at each rest of `reduce::inv_01…` * and `inv_02…` * |
//! | 5 join once | `join::inv_05…` *, `cases::results::case_01…` to `case_09…` |
//! | 6 a join's holds | `join::inv_06…` * |
//! | 7 rep | `order::laws_on_small_lattices`, `order::rep_of_nested_times` |
//! | 8 batches before cuts merge | `trace_lives::random_lives`, `join::inv_05…` * |
//! | 9 handles, meets | `trace_lives::random_lives` |
//! | 10 chains and their ends | `trace_lives::random_lives`, `imports::inv_10…` * |
//! | 11 frontiers inside batches | `join::inv_11…` * |
//! | 12 import at any moment | `imports::inv_12…` * |
//! | 13 the batcher's frontier | `trace_lives::random_lives`, `cases::rest::case_12…` * |
//! | 14 counts of messages | `closing::inv_14…` * |
//! | 15 negative counts | `progress_replicas::no_replica_passes_what_lives` |
//! | 16 whole change batches | `progress_replicas::a_split_batch_is_caught`, `…::produced_follows_from_consumed` |
//! | 17 capabilities of one port | `misuse` |
//! | 18 feedback | `loops::inv_18…` * |
//! | 19 true first frontiers | `closing::inv_21_closing_is_heard`, `progress_replicas` |
//! | 20 reachability | `progress_reachability` (with a mutant of its own), `progress_naiad` |
//! | 21 closing | `closing::inv_21…` * |
//! | 22 `Ord` extends the order | `order`, `trace_lives::random_lives` |
//! | 23 determinism | `determinism::inv_23…` * |
//! | 24 the upper | `published::inv_24…` * |
//! | 25 one published value | `published::inv_25…`, loom models of `sync` |
//! | 26 birth | `progress_replicas::a_birth_without_the_others_is_caught`, `closing::inv_26…` |
//! | 27 wrapping | `progress_refused::a_counter_at_its_maximum`, `loops::inv_27…` * |
//! | 28 default hold | `published::inv_28…` * |
//! | 29 views through rep | `imports::inv_29…` * |
//! | 30, 31 ends and waiters | `misuse` |
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
