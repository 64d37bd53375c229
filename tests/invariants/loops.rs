//! Invariants 18 and 27: loops whose counter is small, or near its maximum.

use crate::support::*;
use kpg::prelude::*;

/// What leaves a loop of `C` rounds in which each (name, round it enters at, steps) is stepped on in each round.
fn count<C: Timestamp + Ord>(eager: bool, workers: usize, round: impl Fn(u64) -> C + Copy + Send + Sync + 'static) {
    let sim = simulated(workers, 5, MergePolicy::default());
    let (query, (mut input, probe, output)) = sim
        .engine
        .install("count", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            let inner = scope.nest_counted::<C>("count");
            let source = data.enter_at(&inner, move |(name, _)| round(name));
            let variable = if eager { Variable::eager(&source) } else { Variable::new_from(&source) };
            let value = variable.map(|(name, steps)| (name, steps + 1));
            let value = variable.set(&value);
            (input, value.leave().probe(), value.leave().subscribe())
        })
        .unwrap();
    let mut heard = Heard::new(output);
    // All in one message: its stamp is the least of their times. Names say how many rounds are left for them.
    for name in [0, 3, 200] {
        input.insert((name, 0)).unwrap();
    }
    input.advance_to(1).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [1], "the frontier goes on, and never back");
    heard.check(0..1, |_| [((0, 1), 1), ((3, 4), 1), ((200, 201), 1)].into());
    input.remove((3, 0)).unwrap();
    drop(input);
    sim.settle();
    assert!(heard.is_closed() && query.error().is_none());
    heard.check(0..2, |at| {
        if *at == 0 {
            [((0, 1), 1), ((3, 4), 1), ((200, 201), 1)].into()
        } else {
            [((0, 1), 1), ((200, 201), 1)].into()
        }
    });
}

#[test]
fn inv_18_feedback_past_the_counter() {
    for workers in 1..=2 {
        for eager in [false, true] {
            count::<u8>(eager, workers, |name| (255 - name) as u8);
        }
    }
}

/// Also CASES 8 and 23: records beyond the last round are dropped by their own time.
#[test]
fn inv_27_counters_never_wrap() {
    for workers in 1..=2 {
        for eager in [false, true] {
            count::<u16>(eager, workers, |name| u16::MAX - name as u16);
            count::<u32>(eager, workers, |name| u32::MAX - name as u32);
            count::<u64>(eager, workers, |name| u64::MAX - name);
        }
    }
}
