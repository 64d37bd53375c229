//! One check for the property, the fuzz target `dataflow` and the replay of saved inputs: bytes choose a program, the
//! engine runs it in simulation, and all that it delivers is compared.

use super::generate::program_of;
use super::naive::Mutant;
use super::run::run;
use std::time::Duration;

/// How long a time may take to complete: only a program that fails comes near it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs the program that `bytes` choose, if they choose one that is modest; whether they did. A planted fault is for
/// canaries: a mistake of the evaluator.
///
/// # Panics
/// If the engine and the evaluator differ. The message has the program.
pub fn check_bytes(bytes: &[u8], planted: bool) -> bool {
    let Some(program) = program_of(bytes) else { return false };
    let mutant = planted.then_some(Mutant::ReduceForgetsNegative);
    if let Err(fault) = run(&program, mutant, PATIENCE) {
        panic!("{fault}\n{program}");
    }
    true
}
