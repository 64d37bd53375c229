//! Blocks allocated, grown, freed here and by other threads, under caps: `arena/src/check.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kpg_arena::check::check_bytes(bytes, kpg_fuzz::planted()));
