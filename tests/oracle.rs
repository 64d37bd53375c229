//! Random dataflow programs against a naive evaluator.
//!
//! ```text
//! seed ─▶ generate ─▶ program ─┬─▶ build, run: the engine's answers ─┐
//!                              └─▶ naive: the same from nothing      ┴─▶ equal at each complete time
//! ```
//! `KPG_SEEDS=n` runs n seeds of each kind, `KPG_SEED=s` just one, printing the program; `KPG_FROM=s` starts there.
//! The fuzz target `dataflow` has the programs chosen by bytes (`check`), and what it found is replayed here.
//! A failure prints the seed, the program made smaller as far as that goes, and the first difference; in simulation a
//! minimal schedule besides. That all operators and features occur among the programs, `coverage` counts.
#![forbid(unsafe_code)]

#[path = "oracle/build.rs"]
mod build;
#[path = "oracle/check.rs"]
mod by_bytes;
#[path = "oracle/canary.rs"]
mod canary;
#[path = "oracle/coverage.rs"]
mod coverage;
#[path = "oracle/generate.rs"]
mod generate;
#[path = "oracle/naive.rs"]
mod naive;
#[path = "oracle/own.rs"]
mod own;
#[path = "oracle/program.rs"]
mod program;
#[path = "oracle/regressions.rs"]
mod regressions;
#[path = "oracle/rng.rs"]
mod rng;
#[path = "oracle/run.rs"]
mod run;
#[path = "regressions/saved.rs"]
mod saved;
#[path = "oracle/shrink.rs"]
mod shrink;

use generate::Shape;
use kpg::simulation;
use naive::Mutant;
use program::Program;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// Seeds of each kind, unless told otherwise.
const SEEDS: u64 = 150;

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// How long a time may take to complete, and how long when a program that fails is made smaller.
const PATIENCE: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(2)];

/// Runs a program; a panic is a fault as any.
fn check(program: &Program, patience: Duration) -> Result<(), String> {
    catch_unwind(AssertUnwindSafe(|| run::run(program, None, patience))).unwrap_or_else(|payload| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or(payload.downcast_ref::<&str>().copied()).unwrap_or("something");
        Err(format!("panic: {text}"))
    })
}

/// The smallest schedule under which a simulated program fails.
fn schedule_of(program: &Program, mutant: Option<Mutant>) -> Option<String> {
    let failure =
        simulation::find(program.simulated, |simulation| run::run_in(program, mutant, PATIENCE[1], Some(simulation)));
    failure.map(|failure| format!("Of the program made smaller: {failure}"))
}

fn seeds(shape: impl Fn(u64) -> Shape) {
    let from = variable("KPG_FROM").unwrap_or(0);
    let seeds = match variable("KPG_SEED") {
        Some(seed) => seed..seed + 1,
        None => from..from + variable("KPG_SEEDS").unwrap_or(SEEDS),
    };
    let mut failures = Vec::new();
    for seed in seeds {
        let program = generate::program(seed, shape(seed));
        if variable("KPG_SEED").is_some() {
            println!("{program}");
        }
        let Err(fault) = check(&program, PATIENCE[0]) else { continue };
        println!("seed {seed}: {fault}");
        if failures.is_empty() {
            let (small, fault) = shrink::shrink(program, fault, |program| check(program, PATIENCE[1]));
            println!("seed {seed}, made smaller: {fault}\n{small}");
            println!("{}", schedule_of(&small, None).unwrap_or_default());
        }
        failures.push(seed);
        if failures.len() >= 10 {
            break;
        }
    }
    assert!(failures.is_empty(), "rerun with KPG_SEED: {failures:?}");
}

#[test]
fn total_times_in_simulation() {
    seeds(|seed| Shape { dimensions: 1, workers: 1 + seed as usize % 4, simulated: true });
}

#[test]
fn partial_times_in_simulation() {
    seeds(|seed| Shape { dimensions: 2, workers: 1 + seed as usize % 4, simulated: true });
}

#[test]
fn total_times_on_threads() {
    seeds(|seed| Shape { dimensions: 1, workers: 1 + seed as usize % 4, simulated: false });
}

#[test]
fn partial_times_on_threads() {
    seeds(|seed| Shape { dimensions: 2, workers: 1 + seed as usize % 4, simulated: false });
}

/// As a fuzzer has it: chosen by bytes, and in simulation.
#[test]
fn chosen_by_bytes() {
    for seed in 0..variable("KPG_SEEDS").unwrap_or(SEEDS) {
        let mut rng = rng::Rng::new(seed);
        let len = rng.below(400);
        let bytes: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
        by_bytes::check_bytes(&bytes, false);
    }
}

#[test]
fn saved_inputs() {
    saved::replay("dataflow", |bytes| {
        by_bytes::check_bytes(bytes, false);
    });
}
