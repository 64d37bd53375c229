//! Invariants 1 to 4: reduce, over times of two coordinates.

use crate::support::*;
use kpg::prelude::*;

/// The greatest val there is, and how many different ones.
fn best(vals: &[(u64, i64)], output: &mut Vec<(u64, i64)>) {
    if let Some((val, _)) = vals.iter().rev().find(|(_, count)| *count > 0) {
        output.push((*val, 1));
    }
    output.push((100 + vals.len() as u64, 1));
}

fn truth(model: &[((u64, u64), Time2, i64)], at: &Time2) -> Sums<(u64, u64)> {
    let input = sums(model, at);
    let mut out = Sums::new();
    for key in input.keys().map(|(key, _)| *key) {
        let vals: Vec<_> = input.range((key, 0)..=(key, u64::MAX)).map(|((_, val), diff)| (*val, *diff)).collect();
        let mut output = Vec::new();
        best(&vals, &mut output);
        out.extend(output.into_iter().map(|(val, diff)| ((key, val), diff)));
    }
    out
}

type Handles = (Input<Time2, (u64, u64)>, Subscription<Time2, (u64, u64)>, Probe<Time2>);

fn install(sim: &Sim) -> (Query, Handles) {
    let built = sim.engine.install_at::<Time2, _, _>("reduce", |scope| {
        let (input, data) = scope.input::<(u64, u64)>();
        let reduced = data.arrange_by_key().reduce(|_, vals, output: &mut Vec<(u64, i64)>| best(vals, output));
        let reduced = reduced.as_collection(|key, val| (key, val));
        (input, reduced.subscribe(), reduced.probe())
    });
    built.expect("installed")
}

/// A random life; at rest, the output's frontier is the input's: what is pending is beyond it, and nothing else is held.
fn life(seed: u64, workers: usize, policy: MergePolicy, settles: bool) {
    let random = &mut Random::new(seed);
    let sim = simulated(workers, seed, policy);
    let (_query, (input, output, probe)) = install(&sim);
    let mut feed = Feed::new(input);
    let mut heard = Heard::new(output);
    for _ in 0..30 {
        for _ in 0..random.below(4) {
            feed.push(random, 2, 3);
        }
        if random.coin() {
            feed.advance(random);
        }
        sim.some_steps(random, 6);
        heard.check(square(), |at| truth(&feed.model, at));
        if settles || random.below(8) == 0 {
            sim.settle();
            assert_eq!(sorted(&probe.frontier()), sorted(&feed.frontier()), "capabilities held at rest, seed {seed}");
            heard.check(square(), |at| truth(&feed.model, at));
        }
    }
    let model = feed.close();
    sim.settle();
    assert!(heard.is_closed() && probe.frontier().is_empty(), "held although nothing can come, seed {seed}");
    heard.check(square(), |at| truth(&model, at));
}

#[test]
fn inv_01_reduce_at_every_join_of_times() {
    for seed in 0..80 {
        life(seed, 1 + seed as usize % 3, MergePolicy::lazy(), false);
    }
}

/// Eager merges, and a rest after each change: the traces are as compact as they may be.
#[test]
fn inv_02_pending_outlives_compacted_input() {
    for seed in 0..60 {
        life(1000 + seed, 1 + seed as usize % 2, MergePolicy::eager(), true);
    }
}

/// The new update cancels the stored one within the same trace, before or after a merge: the output is retracted.
#[test]
fn inv_03_seeds_before_netting() {
    for (seed, rest) in [(1, true), (2, false), (3, true), (4, false)] {
        let sim = simulated(1 + seed as usize % 2, seed, MergePolicy::eager());
        let (_query, (mut input, output, _)) = install(&sim);
        let mut heard = Heard::new(output);
        let mut model = Vec::new();
        for (time, next, diff) in
            [(pair(0, 0), pair(0, 1), 1), (pair(0, 1), pair(2, 1), -1), (pair(2, 1), pair(2, 2), 1)]
        {
            input.update_at((7, 1), time, diff).unwrap();
            model.push(((7, 1), time, diff));
            input.advance_to(next).unwrap();
            if rest {
                sim.settle();
            }
        }
        drop(input);
        sim.settle();
        assert!(heard.is_closed());
        heard.check(square(), |at| truth(&model, at));
        assert_eq!(heard.updates.iter().filter(|(_, _, diff)| *diff < 0).count(), 2, "{:?}", heard.updates);
    }
}

/// `+a` at (1,0) and `−a` at (0,1) leave work at (1,1) and nothing before: once that is done nothing is held, and a
/// loop around a reduce comes to rest with its input still open.
#[test]
fn inv_04_capabilities_are_the_minimal_pending_times() {
    let sim = simulated(2, 4, MergePolicy::default());
    let (_query, (input, _output, probe)) = install(&sim);
    let mut first = input;
    let mut second = first.clone();
    first.update_at((0, 1), pair(1, 0), 1).unwrap();
    second.update_at((0, 1), pair(0, 1), -1).unwrap();
    first.advance_to(pair(2, 0)).unwrap();
    second.advance_to(pair(0, 2)).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [pair(0, 2), pair(2, 0)]);
    first.advance_to(pair(3, 3)).unwrap();
    second.advance_to(pair(3, 3)).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [pair(3, 3)]);

    let (_query, (mut input, probe)) = sim
        .engine
        .install("loop", |scope| {
            let (input, data) = scope.input::<u64>();
            let out = data.iterate(|_, inner| inner.map(|x| x / 2).concat(inner).distinct());
            (input, out.probe())
        })
        .unwrap();
    for time in 0..10 {
        input.insert(1000 + time).unwrap();
        input.advance_to(time + 1).unwrap();
        sim.settle();
        assert_eq!(sorted(&probe.frontier()), [time + 1]);
    }
}
