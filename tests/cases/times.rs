//! Times, panics and overflow, and what is refused.

use crate::support::*;
use kpg::prelude::*;
use kpg::runtime::Failure;

/// An update at 7; the input advances to 6, then to 10, the reduce scheduled before or after its arrange: one change,
/// at 7.
#[test]
fn case_19_a_frontier_that_stops_short() {
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let sim = simulated(1 + seed as usize % 2, seed, MergePolicy::default());
        let (_query, (mut input, output)) = sim
            .engine
            .install("reduce", |scope| {
                let (input, data) = scope.input::<u64>();
                (input, data.count().subscribe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        input.update_at(1, 7, 1).unwrap();
        for time in [6, 10] {
            input.advance_to(time).unwrap();
            sim.some_steps(random, 8);
        }
        sim.settle();
        heard.check(0..10, |at| if *at < 7 { Sums::new() } else { [((1, 1), 1)].into() });
        assert_eq!(heard.updates, [((1, 1), 7, 1)]);
    }
}

/// Several epochs in one batch go through a loop and leave it: each record bears its own time.
#[test]
fn case_20_epochs_of_one_batch_leave_a_loop() {
    for workers in 1..=2 {
        let sim = simulated(workers, 9, MergePolicy::default());
        let (_query, (mut input, output)) = sim
            .engine
            .install("loop", |scope| {
                let (input, data) = scope.input::<u64>();
                (input, data.iterate(|_, inner| inner.map(|x| x / 2).concat(inner).distinct()).subscribe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        for (time, datum) in [(0, 8), (1, 5), (2, 12)] {
            input.update_at(datum, time, 1).unwrap();
        }
        input.update_at(8, 3, -1).unwrap();
        input.advance_to(4).unwrap();
        sim.settle();
        heard.check(0..4, |at| {
            let all: &[u64] = match at {
                0 => &[0, 1, 2, 4, 8],
                1 => &[0, 1, 2, 4, 5, 8],
                2 => &[0, 1, 2, 3, 4, 5, 6, 8, 12],
                _ => &[0, 1, 2, 3, 5, 6, 12],
            };
            all.iter().map(|x| (*x, 1)).collect()
        });
    }
}

/// Diffs beyond i64 in a loop, in a join and in a sum that is handed over: a typed error of this query, the same in
/// every build; others go on.
#[test]
fn case_22_diffs_beyond_their_type() {
    let engine = threads(2);
    let (_other, (mut fine, mut fine_output)) = engine
        .install("fine", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.distinct().subscribe())
        })
        .unwrap();
    for how in 0..3 {
        let (_query, (mut input, mut output)) = engine
            .install("overflow", |scope| {
                let (input, data) = scope.input::<u64>();
                let out = match how {
                    0 => data.iterate(|_, inner| inner.concat(inner).consolidate()),
                    1 => data.map(|x| (x, x)).join(&data.map(|x| (x, x))).map(|(x, _)| x),
                    _ => data.concat(&data),
                };
                (input, out.subscribe())
            })
            .unwrap();
        input.update(1, i64::MAX - 1).unwrap();
        // Beyond the first failure the input may say so as well.
        let _ = input.advance_to(1);
        match output.wait_past(&0, LONG) {
            Err(Error::DiffOverflow) => {}
            Err(Error::Poisoned { failure: Failure::DiffOverflow, .. }) => {}
            other => panic!("kind {how}: {other:?}"),
        }
    }
    fine.insert(3).unwrap();
    fine.advance_to(1).unwrap();
    assert_eq!(fine_output.wait_past(&0, LONG).unwrap(), [(3, 0, 1)]);
}

/// A stream leaves a loop and is entered into it again, without an outer feedback: refused, by name.
#[test]
fn case_34_out_of_a_loop_and_in_again() {
    let engine = threads(2);
    let refused = engine.install("again", |scope| {
        let (input, data) = scope.input::<u64>();
        let inner = scope.nest("the loop");
        let variable = Variable::new_from(&data.enter(&inner));
        let value = variable.distinct();
        let again = value.leave().enter(&inner);
        variable.set(&value.concat(&again));
        input
    });
    match refused {
        Err(Error::Graph { query, reason }) => {
            assert_eq!(query, "again");
            assert!(reason.contains("the loop"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
    // The engine is none the worse for it.
    let (_query, (mut input, mut output)) = engine
        .install("fine", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.distinct().subscribe())
        })
        .unwrap();
    input.insert(1).unwrap();
    drop(input);
    assert_eq!(output.wait_past(&0, LONG).unwrap(), [(1, 0, 1)]);
}
