//! Dataflow programs in simulation against a naive evaluator: `tests/oracle/check.rs`.
#![no_main]
// The same files have what the tests choose by seeds.
#![allow(dead_code)]

#[path = "../../tests/oracle/build.rs"]
mod build;
#[path = "../../tests/oracle/check.rs"]
mod check;
#[path = "../../tests/oracle/generate.rs"]
mod generate;
#[path = "../../tests/oracle/naive.rs"]
mod naive;
#[path = "../../tests/oracle/own.rs"]
mod own;
#[path = "../../tests/oracle/program.rs"]
mod program;
#[path = "../../tests/oracle/rng.rs"]
mod rng;
#[path = "../../tests/oracle/run.rs"]
mod run;

use libfuzzer_sys::Corpus;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| -> Corpus {
    match check::check_bytes(bytes, kpg_fuzz::planted()) {
        true => Corpus::Keep,
        // No program that is modest.
        false => Corpus::Reject,
    }
});
