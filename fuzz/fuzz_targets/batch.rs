//! Batches built, merged with times folded, sought: `src/trace/check/batch.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kpg::trace::check::batch::check_bytes(bytes, kpg_fuzz::planted()));
