//! Lives of a trace: seals, holds, cuts, snapshots during merges: `src/trace/check.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kpg::trace::check::check_bytes(bytes, kpg_fuzz::planted()));
