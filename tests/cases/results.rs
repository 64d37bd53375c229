//! Wrong results.

use crate::support::*;
use kpg::dataflow::Interest;
use kpg::operators::Notificator;
use kpg::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

type Edge = (u64, u64);

/// Each node with the least label that reaches it; labels enter in a round that grows with the label's logarithm.
fn labels<'s, T: Timestamp>(
    edges: &Collection<'s, T, Edge>,
    nodes: &Collection<'s, T, (u64, u64)>,
) -> Collection<'s, T, (u64, u64)> {
    let inner = edges.scope().nest("labels");
    let edges = edges.enter(&inner);
    let nodes = nodes.enter_at(&inner, |(_, label)| 256 * (64 - label.leading_zeros()));
    let variable = Variable::new(&inner);
    let moved = variable.join(&edges).map(|(_, (label, to))| (to, label));
    let least = moved
        .concat(&nodes)
        .arrange_by_key()
        .reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[0].0, 1)));
    variable.set(&least.as_collection(|node, label| (node, label))).leave()
}

/// Edges both of whose ends bear one label, turned around.
fn trimmed<'s, T: Timestamp>(cycle: &Collection<'s, T, Edge>) -> Collection<'s, T, Edge> {
    let nodes = cycle.map(|(_, to)| (to, to)).consolidate();
    let labels = labels(cycle, &nodes);
    let once = labels.arrange_by_key();
    let from = cycle.join_arranged(&once).map(|(from, (to, label))| (to, (from, label)));
    from.join_arranged(&once).filter(|(_, ((_, a), b))| a == b).map(|(to, ((from, _), _))| (to, from))
}

fn components(edges: &BTreeSet<Edge>, nodes: u64) -> BTreeSet<Edge> {
    let reach: Vec<BTreeSet<u64>> = (0..nodes)
        .map(|start| {
            let (mut seen, mut todo) = (BTreeSet::new(), vec![start]);
            while let Some(node) = todo.pop() {
                for (_, to) in edges.range((node, 0)..=(node, u64::MAX)) {
                    if seen.insert(*to) {
                        todo.push(*to);
                    }
                }
            }
            seen
        })
        .collect();
    edges.iter().copied().filter(|(from, to)| from == to || reach[*to as usize].contains(from)).collect()
}

/// A batch whose updates cancel in the other side's compacted trace must still be joined: three workers on two cores.
#[test]
fn case_01_strongly_connected_components() {
    const NODES: u64 = 20;
    let engine = threads(3);
    for run in 0..5 {
        let random = &mut Random::new(run);
        let (query, (mut input, mut output)) = engine
            .install("components", |scope| {
                let (input, edges) = scope.input::<Edge>();
                let inside = edges.iterate(|_, inside| trimmed(&trimmed(inside)));
                (input, inside.subscribe())
            })
            .unwrap();
        let (mut edges, mut got) = (BTreeSet::new(), Sums::new());
        for round in 0..20u64 {
            for _ in 0..if round == 0 { 40 } else { 3 } {
                let edge = (random.below(NODES), random.below(NODES));
                if edges.insert(edge) {
                    input.insert(edge).unwrap();
                } else {
                    edges.remove(&edge);
                    input.remove(edge).unwrap();
                }
            }
            input.advance_to(round + 1).unwrap();
            for (edge, _, diff) in output.wait_past(&round, LONG).unwrap() {
                *got.entry(edge).or_insert(0) += diff;
            }
            got.retain(|_, diff| *diff != 0);
            let want: Sums<Edge> = components(&edges, NODES).into_iter().map(|edge| (edge, 1)).collect();
            assert_eq!(got, want, "run {run}, round {round}");
        }
        drop(input);
        query.retire().unwrap();
    }
}

/// Both inputs of a join change, in one step and in different ones: each product once.
#[test]
fn case_04_both_sides_of_a_join_change() {
    for (workers, apart) in [(1, false), (1, true), (2, false), (2, true)] {
        let sim = simulated(workers, 8, MergePolicy::default());
        let (_query, (mut left, mut right, output)) = sim
            .engine
            .install("join", |scope| {
                let (left, a) = scope.input::<(u64, u64)>();
                let (right, b) = scope.input::<(u64, u64)>();
                (left, right, a.join(&b).subscribe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        for time in 0..4 {
            left.insert((1, time)).unwrap();
            left.advance_to(time + 1).unwrap();
            if apart {
                sim.settle();
            }
            right.insert((1, 10 + time)).unwrap();
            right.advance_to(time + 1).unwrap();
            sim.settle();
        }
        heard.check(0..4, |at| (0..=*at).flat_map(|v| (0..=*at).map(move |w| ((1, (v, 10 + w)), 1))).collect());
        assert_eq!(heard.updates.len(), 16);
    }
}

/// A tuple removed before it was ever inserted is not there; inserted once it is still not; twice, and it is there once.
#[test]
fn case_05_distinct_of_what_is_there_less_than_once() {
    let engine = threads(2);
    let (_query, (mut input, mut output)) = engine
        .install("distinct", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.distinct().subscribe())
        })
        .unwrap();
    for (time, diff, expected) in
        [(0, -1, vec![]), (1, 1, vec![]), (2, 1, vec![(7, 2, 1)]), (3, 1, vec![]), (4, -3, vec![(7, 4, -1)])]
    {
        input.update(7, diff).unwrap();
        input.advance_to(time + 1).unwrap();
        assert_eq!(output.wait_past(&time, LONG).unwrap(), expected);
    }
}

/// Asking for later times from inside a notification: each comes once, in order, and none before its time is complete.
#[test]
fn case_07_notifications_asked_for_in_notifications() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sim = simulated(1, 2, MergePolicy::default());
    let (_query, (mut input, probe)) = sim
        .engine
        .install("notify", |scope| {
            let (input, data) = scope.input::<u64>();
            let mut builder = scope.operator("notified").interest(Interest::Held);
            let mut port = builder.input(&data);
            let (output, result) = builder.output::<u64, i64>();
            let (mut notificator, told) = (Notificator::default(), told.clone());
            builder.build(move |_| {
                while let Some((token, chunk)) = port.next() {
                    let mut held = kpg::dataflow::CapabilitySet::new();
                    output.retain(&token, &mut held);
                    for (_, time, _) in chunk.iter() {
                        notificator.notify_at(held.delayed(&time).unwrap());
                    }
                }
                let frontier = port.frontier();
                while let Some(capability) = notificator.next(&frontier) {
                    let time = *capability.time();
                    assert!(!frontier.less_equal(&time));
                    told.lock().unwrap().push(time);
                    if time < 20 {
                        // One further on, one much further, one for now: it has to come after what was asked for earlier.
                        for later in [time + 5, time + 2, time + 2] {
                            notificator.notify_at(capability.delayed(&later).unwrap());
                        }
                    }
                }
                false
            });
            (input, result.probe())
        })
        .unwrap();
    for time in [3, 1, 2] {
        input.update_at(0, time, 1).unwrap();
    }
    for time in 1..40 {
        input.advance_to(time).unwrap();
        sim.settle();
        let told = told.lock().unwrap();
        assert!(told.iter().all(|t| *t < time));
        assert!(told.windows(2).all(|two| two[0] < two[1]), "{told:?}");
        assert_eq!(sorted(&probe.frontier()), [time]);
    }
    // All times 1, 2, 3, and from there on by twos and fives up to below 20, and what is asked for from those.
    let mut expected = BTreeSet::from([1, 2, 3]);
    for time in 1..20 {
        if expected.contains(&time) {
            expected.extend([time + 2, time + 5]);
        }
    }
    assert_eq!(*told.lock().unwrap(), expected.into_iter().collect::<Vec<u64>>());
}

/// Ten incomparable times on each side: a hundred products, each at the join of its two times.
#[test]
fn case_09_products_at_joins_of_incomparable_times() {
    for workers in 1..=2 {
        let sim = simulated(workers, 6, MergePolicy::eager());
        let (_query, (left, right, output)) = sim
            .engine
            .install_at::<Time2, _, _>("join", |scope| {
                let (left, a) = scope.input::<(u64, u64)>();
                let (right, b) = scope.input::<(u64, u64)>();
                (left, right, a.join(&b).subscribe())
            })
            .unwrap();
        let (mut left, mut right, mut output) = (left, right, output);
        for i in 0..10 {
            left.update_at((0, i), pair(2 * i, 18 - 2 * i), 1).unwrap();
            right.update_at((0, i), pair(2 * i + 1, 19 - 2 * i), 1).unwrap();
        }
        drop((left, right));
        sim.settle();
        let got: BTreeMap<_, _> =
            output.poll().unwrap().into_iter().map(|(datum, time, diff)| ((datum, time), diff)).collect();
        let all = (0..10).flat_map(|i| (0..10).map(move |j| (i, j)));
        let expected = all.map(|(i, j)| (((0, (i, j)), pair((2 * i).max(2 * j + 1), (18 - 2 * i).max(19 - 2 * j))), 1));
        assert_eq!(got, expected.collect());
    }
}

/// `+a` at (1,0), then `−a` at (0,1), in batches of their own; a third batch, of another datum, makes them merge when
/// only (1,1) and later are to be told apart: the stored input of `a` is empty. The change due at (1,1) still comes.
#[test]
fn case_10_pending_where_the_stored_input_is_empty() {
    for rest in [false, true] {
        let sim = simulated(1, 1, MergePolicy::eager());
        let (_query, (mut input, output, probe)) = sim
            .engine
            .install_at::<Time2, _, _>("reduce", |scope| {
                let (input, data) = scope.input::<u64>();
                let counts = data.count();
                (input, counts.subscribe(), counts.probe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        let mut other = input.clone();
        input.update_at(5, pair(1, 0), 1).unwrap();
        input.advance_to(pair(2, 0)).unwrap();
        other.advance_to(pair(0, 1)).unwrap();
        sim.settle();
        other.update_at(5, pair(0, 1), -1).unwrap();
        other.advance_to(pair(1, 1)).unwrap();
        sim.settle();
        assert_eq!(sorted(&probe.frontier()), [pair(1, 1), pair(2, 0)]);
        input.update_at(6, pair(2, 0), 1).unwrap();
        input.advance_to(pair(2, 1)).unwrap();
        if rest {
            sim.settle();
            assert_eq!(sorted(&probe.frontier()), [pair(1, 1)]);
        }
        drop((input, other));
        sim.settle();
        assert!(heard.is_closed());
        heard.check(square(), |at| {
            let count = i64::from(at.first >= 1) - i64::from(at.second >= 1);
            let mut all = Sums::new();
            if count != 0 {
                all.insert((5, count), 1);
            }
            if at.first >= 2 {
                all.insert((6, 1), 1);
            }
            all
        });
        // The two that cease at (1,1), besides those that came.
        assert_eq!(heard.updates.len(), 5, "{:?}", heard.updates);
    }
}

/// An update that cancels the stored input exactly: the output is retracted, whatever was merged by then.
#[test]
fn case_11_an_update_that_cancels_what_is_stored() {
    let engine = threads(2);
    let (_query, (mut input, mut output)) = engine
        .install("cancel", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            let least =
                data.arrange_by_key().reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[0].0, 1)));
            (input, least.as_collection(|key, val| (key, val)).subscribe())
        })
        .unwrap();
    for time in (0..40).step_by(2) {
        input.insert((time, 1)).unwrap();
        input.advance_to(time + 1).unwrap();
        assert_eq!(output.wait_past(&time, LONG).unwrap(), [((time, 1), time, 1)]);
        input.remove((time, 1)).unwrap();
        input.advance_to(time + 2).unwrap();
        assert_eq!(output.wait_past(&(time + 1), LONG).unwrap(), [((time, 1), time + 1, -1)]);
    }
}

/// An arrangement imported from another dataflow is used inside a loop: the loop terminates, at each change.
#[test]
fn case_15_an_import_used_inside_a_loop() {
    let engine = threads(2);
    let (_graph, (mut edges, shared)) = engine
        .install("graph", |scope| {
            let (input, edges) = scope.input::<Edge>();
            (input, edges.arrange_by_key().publish())
        })
        .unwrap();
    edges.insert((0, 1)).unwrap();
    edges.advance_to(1).unwrap();
    shared.wait_snapshot(&0, LONG).unwrap();
    let (_reach, (mut roots, mut output)) = engine
        .install("reach", |scope| {
            let edges = shared.import(scope);
            let (input, roots) = scope.input::<u64>();
            let reached = roots.iterate(|inner, reached| {
                let (edges, roots) = (edges.enter(inner), roots.enter(inner));
                reached.arrange_by_self().join_core(&edges, |_, (), to| Some(to)).concat(&roots).distinct()
            });
            (input, reached.subscribe())
        })
        .unwrap();
    roots.insert(0).unwrap();
    roots.follow(&shared).unwrap();
    let mut reached = BTreeSet::new();
    for time in 1..30 {
        edges.insert((time, time + 1)).unwrap();
        if time == 20 {
            edges.remove((5, 6)).unwrap();
        }
        edges.advance_to(time + 1).unwrap();
        for (node, _, diff) in output.wait_past(&time, LONG).unwrap() {
            assert!(if diff == 1 { reached.insert(node) } else { reached.remove(&node) });
        }
        let last = if time < 20 { time + 1 } else { 5 };
        assert!(reached.iter().copied().eq(0..=last), "at {time}: {reached:?}");
    }
}

/// Not one of the list: an update of zero changes nothing, so nobody hears of it, whether it is put in or made.
#[test]
fn an_update_of_zero_is_none() {
    let (engine, _workers) = Engine::start_simulated(Config::default().workers(1), 1).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (_, (mut input, probe)) = engine
        .install("zeros", |scope| {
            let (input, numbers) = scope.input::<u64>();
            let (put, made) = (seen.clone(), seen.clone());
            let exploded = numbers.inspect(move |n, _, r| put.lock().unwrap().push((n, r)));
            let exploded = exploded.explode(|n| [(n + 10, 0), (n + 20, 2)]);
            (input, exploded.inspect(move |n, _, r| made.lock().unwrap().push((n, r))).probe())
        })
        .unwrap();
    input.update(1, 0).unwrap();
    input.update(2, 3).unwrap();
    input.advance_to(1).unwrap();
    probe.wait_past(&0, std::time::Duration::from_secs(5)).unwrap();
    assert_eq!(*seen.lock().unwrap(), [(2, 3), (22, 6)]);
}
