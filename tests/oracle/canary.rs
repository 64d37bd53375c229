//! The oracle can fail: with a mistake made on purpose in the naive evaluator it says so.

use super::generate::{Shape, program};
use super::naive::Mutant;
use super::run::run;
use std::time::Duration;

/// All operators, by [`super::program::Op::name`].
pub const OPERATORS: [&str; 41] = [
    "input",
    "constant",
    "import",
    "import of a stream",
    "enter",
    "enter_at",
    "enter of an arrangement",
    "variable",
    "variable, eager",
    "variable of a source",
    "map",
    "flat_map",
    "filter",
    "negate",
    "concat",
    "explode",
    "consolidate",
    "inspect",
    "delay",
    "filter of an arrangement",
    "negate of an arrangement",
    "as_collection",
    "flat_map_ref",
    "own unary with notifications",
    "own binary",
    "join",
    "join_arranged",
    "join_core",
    "join_core of a view, right",
    "join_core of a view, left",
    "own binary with cursors",
    "semijoin",
    "antijoin",
    "reduce",
    "count",
    "distinct",
    "count_arranged",
    "threshold_arranged",
    "threshold",
    "iterate",
    "iterative",
];

/// Of each operator: that the evaluator loses a datum of it.
#[test]
fn an_operator_that_loses_a_datum_is_noticed() {
    OPERATORS.into_iter().for_each(|name| is_noticed(Mutant::Loses(name)));
}

/// A program that fails in simulation comes with a minimal schedule; one that does not, with none.
#[test]
fn a_failure_has_a_schedule() {
    let mutant = Some(Mutant::ReduceForgetsNegative);
    let mut programs = (0..400).map(|seed| program(seed, Shape { dimensions: 1, workers: 2, simulated: true }));
    let report = programs.find_map(|program| crate::schedule_of(&program, mutant)).expect("it is noticed");
    assert!(report.contains("is expected") && report.contains(" are enough, found in "), "{report}");
    let right = program(1, Shape { dimensions: 1, workers: 2, simulated: true });
    assert_eq!(crate::schedule_of(&right, None), None);
}

fn is_noticed(mutant: Mutant) {
    for seed in 0..400 {
        let program = program(seed, Shape { dimensions: 1 + seed as usize % 2, workers: 1, simulated: true });
        match run(&program, Some(mutant), Duration::from_secs(20)) {
            Err(text) if text.contains("is expected") => return,
            // A loop of the mutant may never come to rest.
            _ => {}
        }
    }
    panic!("{mutant:?} was not noticed in 400 programs");
}

macro_rules! canaries {
    ($($name:ident: $mutant:expr;)*) => { $(
        #[test]
        fn $name() {
            is_noticed($mutant);
        }
    )* }
}

canaries! {
    a_distinct_that_keeps_negatives_is_noticed: Mutant::DistinctKeepsNegative;
    a_join_that_forgets_a_key_is_noticed: Mutant::JoinForgetsKey(1);
    a_reduce_that_forgets_negatives_is_noticed: Mutant::ReduceForgetsNegative;
    a_loop_that_stops_early_is_noticed: Mutant::LoopStopsEarly;
    a_delay_that_does_nothing_is_noticed: Mutant::DelayForgets;
    an_import_that_forgets_a_datum_is_noticed: Mutant::ImportForgets((1, 1));
    a_stream_that_has_a_history_is_noticed: Mutant::StreamHasHistory;
    a_negate_that_does_nothing_is_noticed: Mutant::NegateForgets;
}
