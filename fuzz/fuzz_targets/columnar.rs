//! Columns of every kind, encoded, read, sorted, merged, sought: `columnar/src/check.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kpg_columnar::check::check_bytes(bytes, kpg_fuzz::planted()));
