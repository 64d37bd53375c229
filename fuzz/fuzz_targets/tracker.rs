//! The tracker against brute force on random graphs: `tests/progress_graphs/check.rs`.
#![no_main]

#[path = "../../tests/progress_graphs/mod.rs"]
mod progress_graphs;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| progress_graphs::check::check_bytes(bytes, kpg_fuzz::planted()));
