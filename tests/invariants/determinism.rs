//! Invariant 23: the consolidated output is the same for any number of workers, batching, schedule and merge policy, and
//! it is right.

use crate::support::*;
use kpg::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const EPOCHS: u64 = 12;
type Out = (u64, u64, u64);
type Changes = BTreeMap<(u64, Out), i64>;

fn script() -> Vec<Vec<((u64, u64), i64)>> {
    let random = &mut Random::new(99);
    let mut live: BTreeSet<(u64, u64)> = BTreeSet::new();
    let mut epochs = Vec::new();
    for _ in 0..EPOCHS {
        let mut epoch = Vec::new();
        for _ in 0..12 {
            let edge = (random.below(12), random.below(12));
            if live.insert(edge) {
                epoch.push((edge, 1));
            } else {
                live.remove(&edge);
                epoch.push((edge, -1));
            }
        }
        epochs.push(epoch);
    }
    epochs
}

fn run(engine: &Engine, seed: u64, mut between: impl FnMut(&mut Random)) -> Changes {
    let random = &mut Random::new(seed);
    let (query, (mut input, mut output)) = engine
        .install("mixed", |scope| {
            let (input, edges) = scope.input::<(u64, u64)>();
            let roots = scope.constant([0u64]);
            let by_source = edges.arrange_by_key();
            let reached = roots.iterate(|inner, reached| {
                let (edges, roots) = (by_source.enter(inner), roots.enter(inner));
                reached.arrange_by_self().join_core(&edges, |_, (), to| Some(to)).concat(&roots).distinct()
            });
            let degrees = edges.map(|(from, _)| from).count();
            let wedges = by_source.join_core(&by_source, |_, a, b| (a < b).then_some((a, b)));
            let most =
                by_source.reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[vals.len() - 1].0, 1)));
            let all = [
                reached.map(|node| (0, node, 0)),
                degrees.map(|(node, count)| (1, node, count as u64)),
                wedges.map(|(a, b)| (2, a, b)),
                most.as_collection(|node, to| (3, node, to)),
                edges.antijoin(&reached).map(|(a, b)| (4, a, b)),
            ];
            (input, Collection::concat_all(&all).subscribe())
        })
        .unwrap();
    for (time, epoch) in script().into_iter().enumerate() {
        for (edge, diff) in epoch {
            // Ahead of its time by as much as may be, or when it is due; in chunks of any size.
            input.update_at(edge, time as u64, diff).unwrap();
            if random.below(3) == 0 {
                input.flush().unwrap();
            }
        }
        if random.coin() {
            input.advance_to(time as u64).unwrap();
            between(random);
        }
    }
    drop(input);
    let updates = output.wait_past(&u64::MAX, LONG).unwrap();
    query.retire().unwrap();
    updates.into_iter().map(|(datum, time, diff)| ((time, datum), diff)).collect()
}

/// What the outputs should add up to at each time, computed anew from the edges.
fn check(changes: &Changes) {
    let mut model = Vec::new();
    for (time, epoch) in script().into_iter().enumerate() {
        model.extend(epoch.into_iter().map(|(edge, diff)| (edge, time as u64, diff)));
    }
    let changes: Vec<(Out, u64, i64)> = changes.iter().map(|((time, datum), diff)| (*datum, *time, *diff)).collect();
    for time in 0..EPOCHS {
        let edges: BTreeSet<(u64, u64)> = sums(&model, &time).into_keys().collect();
        let to = |from: u64| edges.range((from, 0)..=(from, u64::MAX)).map(|(_, to)| *to).collect::<Vec<_>>();
        let mut reached = BTreeSet::from([0]);
        let mut todo = vec![0];
        while let Some(node) = todo.pop() {
            todo.extend(to(node).into_iter().filter(|next| reached.insert(*next)));
        }
        let mut all: Sums<Out> = reached.iter().map(|node| ((0, *node, 0), 1)).collect();
        for from in 0..12 {
            let tos = to(from);
            let Some(last) = tos.last() else { continue };
            all.insert((1, from, tos.len() as u64), 1);
            all.insert((3, from, *last), 1);
            for a in &tos {
                tos.iter().filter(|b| a < b).for_each(|b| *all.entry((2, *a, *b)).or_insert(0) += 1);
                if !reached.contains(&from) {
                    all.insert((4, from, *a), 1);
                }
            }
        }
        assert_eq!(sums(&changes, &time), all, "at {time}");
    }
}

#[test]
fn inv_23_determinism() {
    let policies = [MergePolicy::lazy(), MergePolicy::default(), MergePolicy::eager()];
    let mut expected: Option<Changes> = None;
    let mut compare = |changes: Changes, what: String| match &expected {
        None => {
            check(&changes);
            expected = Some(changes);
        }
        Some(expected) => assert!(*expected == changes, "{what} differs"),
    };
    for workers in 1..=3 {
        for (index, policy) in policies.into_iter().enumerate() {
            let config = Config::default().workers(workers).pinned(false).merge_policy(policy);
            let engine = Engine::start(config).unwrap();
            for seed in 0..3 {
                compare(run(&engine, seed, |_| ()), format!("{workers} workers, policy {index}, seed {seed}"));
            }
        }
    }
    for seed in 0..40 {
        let workers = 1 + seed as usize % 4;
        let sim = simulated(workers, seed, policies[seed as usize % 3]);
        let changes = run(&sim.engine, seed, |random| sim.some_steps(random, 20));
        compare(changes, format!("simulation of {workers} workers, seed {seed}"));
    }
}
