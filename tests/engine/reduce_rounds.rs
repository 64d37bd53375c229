//! Components, attached late to a graph whose edges go on to come, so that several times are in the loop at once while
//! rounds of its reduce take several quanta.
//!
//! Guards what `reduce` does when the frontier moves while a round is open: it looks again at what became due. A wrong
//! sleep there is not known to be met by these seeds; what they do show is that late attachment gives the right labels.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const NODES: u32 = 3000;
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers below `bound` that look random.
fn random(state: &mut u64, bound: u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    ((*state >> 32) as u32) % bound
}

/// (node, smallest node of its component), by following labels until none gets smaller.
fn plain(edges: &[(u32, u32)]) -> BTreeMap<u32, u32> {
    let mut labels: BTreeMap<u32, u32> = edges.iter().flat_map(|&(a, b)| [(a, a), (b, b)]).collect();
    loop {
        let mut changed = false;
        for &(a, b) in edges {
            let least = labels[&a].min(labels[&b]);
            for node in [a, b] {
                changed |= labels.insert(node, least) != Some(least);
            }
        }
        if !changed {
            return labels;
        }
    }
}

/// Components, attached late, while edges go on to come: several times are in the loop at once.
fn attached_late(workers: usize, seed: u64) {
    let (engine, _workers) =
        Engine::start_simulated(Config::default().workers(workers), seed).expect("the configuration is fine");
    let (_graph, (mut input, edges)) = engine
        .install("graph", |scope| {
            let (input, edges) = scope.input::<(u32, u32)>();
            (input, edges.flat_map(|(a, b)| [(a, b), (b, a)]).arrange_by_key().publish())
        })
        .expect("the dataflow is fine");
    let mut state = seed * 2 + 1;
    let mut all = Vec::new();
    for round in 0..4 {
        for _ in 0..NODES / 2 {
            let edge = (random(&mut state, NODES), random(&mut state, NODES));
            input.insert(edge).expect("the query goes on");
            all.push(edge);
        }
        if round < 2 {
            input.advance_to(round + 1).expect("the query goes on");
        }
    }
    let (_query, mut labels) = engine
        .install("components", |scope| {
            let edges = edges.import(scope);
            let own = edges.as_collection(|node, _| (node, node)).consolidate();
            let labels = own.iterate(|inner, labels| {
                let next = labels.arrange_by_key().join_core(&edges.enter(inner), |_, label, to| Some((to, label)));
                let all = next.concat(&own.enter(inner)).arrange_by_key();
                let least = all.reduce(|_, labels, least| least.push((labels[0].0, 1)));
                least.as_collection(|node, label| (node, label))
            });
            labels.subscribe()
        })
        .expect("the dataflow is fine");
    for time in 3..8 {
        let edge = (random(&mut state, NODES), random(&mut state, NODES));
        input.advance_to(time).expect("the query goes on");
        input.insert(edge).expect("the query goes on");
        all.push(edge);
    }
    input.advance_to(8).expect("the query goes on");
    let mut found = BTreeMap::new();
    for (pair, _, diff) in labels.wait_past(&7, PATIENCE).expect("the query goes on") {
        *found.entry(pair).or_insert(0) += diff;
    }
    found.retain(|_, count| *count != 0);
    let expected: BTreeMap<(u32, u32), i64> = plain(&all).into_iter().map(|pair| (pair, 1)).collect();
    assert!(found == expected, "{workers} workers, seed {seed}: components differ");
}

#[test]
fn components_attached_while_edges_come() {
    for seed in 1..5 {
        attached_late(1, seed);
        attached_late(2, seed);
    }
}
