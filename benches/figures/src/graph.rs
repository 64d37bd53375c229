//! Graphs: one that stays as it is, step by step; and one that changes.
//!
//! The edges of worker w of n are those with number % n == w. Graph: all at time 0; reach, sssp and wcc are queries of
//! their own, which import the index. Incremental: in each round so many edges come, numbered on, and as many go, the
//! oldest first; the initial time is from the first edge put in to the complete result.
//!
//! The answers: of graph, how many nodes were reached, the sum of their distances, how many components; of incremental,
//! how many nodes have a distance (a label), and the sum of these.
#![forbid(unsafe_code)]

use crate::graphs;
use crate::host::Host;
use crate::plain::{self, Csr};
use crate::watch::{self, Sums};
use kpg::prelude::*;
use std::time::Instant;
use workloads::generate::{random_edge, rmat_edge};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit};

/// Steps until time 0 is complete; reports how long it took since `start`.
fn conclude(host: &Host, name: &str, (probe, start): (&Probe<u64>, Instant), report: &mut Report) {
    host.turn.until(|| probe.is_past(&0));
    report.metric(name, start.elapsed().as_nanos() as f64, Unit::Nanoseconds);
}

/// R-MAT.
pub fn graph(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let scale = spec.get::<u32>("scale");
    let peers = host.turn.peers;
    let edges: Vec<(u32, u32)> = (0..16 << scale).map(|number| rmat_edge(scale, number)).collect();
    let shares: Vec<Vec<_>> = (0..peers).map(|own| edges.iter().copied().skip(own).step_by(peers).collect()).collect();

    let start = Instant::now();
    let install = host.engine.install("index", |scope| {
        let (input, edges) = scope.input::<(u32, u32)>();
        let arranged = edges.arrange_by_key();
        (input, arranged.probe(), arranged.publish())
    });
    let (_, (input, probe, forward)) = install.expect("a dataflow that can be built");
    let waits = probe.clone();
    let inputs =
        host.together(host.sessions(input).into_iter().zip(shares).collect(), move |turn, (mut input, edges)| {
            edges.iter().for_each(|edge| input.insert(*edge).expect("the query goes on"));
            input.advance_to(1).expect("time goes on");
            turn.until(|| waits.is_past(&0));
            input
        });
    conclude(&host, "index", (&probe, start), report);
    let (reached, distances, components) = <(Sums, Sums, Sums)>::default();

    let start = Instant::now();
    let install = host.engine.install("reach", |scope| {
        watch::sums(&graphs::reach(&scope.constant([0]), &forward.import(scope)), &reached, |_| 0)
    });
    let (query, probe) = install.expect("a dataflow that can be built");
    conclude(&host, "reach", (&probe, start), report);
    query.retire().expect("nobody imports from it");

    let start = Instant::now();
    let install = host.engine.install("sssp", |scope| {
        watch::sums(&graphs::distances(&scope.constant([0]), &forward.import(scope)), &distances, |(_, distance)| {
            distance.into()
        })
    });
    let (query, probe) = install.expect("a dataflow that can be built");
    conclude(&host, "sssp", (&probe, start), report);
    query.retire().expect("nobody imports from it");

    let start = Instant::now();
    let install = host.engine.install("reverse", |scope| {
        let arranged = forward.import(scope).as_collection(|source, target| (target, source)).arrange_by_key();
        (arranged.probe(), arranged.publish())
    });
    let (_, (probe, backward)) = install.expect("a dataflow that can be built");
    conclude(&host, "reverse", (&probe, start), report);

    let start = Instant::now();
    let install = host.engine.install("wcc", |scope| {
        let labels = graphs::components(&forward.import(scope), &backward.import(scope));
        watch::sums(&labels, &components, |(node, label)| i64::from(node == label))
    });
    let (_, probe) = install.expect("a dataflow that can be built");
    conclude(&host, "wcc", (&probe, start), report);

    report.answer = format!("{} {} {}", reached.get().0, distances.get().1, components.get().1);
    assert_eq!(reached.get().0, distances.get().0, "what can be reached has a distance");
    drop(inputs);
    host.stop();
    without_an_engine(&edges, 1 << scale, report);
}

/// How long the breadth-first search takes in plain code, on arrays and hash maps.
fn without_an_engine(edges: &[(u32, u32)], nodes: usize, report: &mut Report) {
    let csr = Csr::new(nodes, edges.iter().copied());
    let mut clocked = |name: &str, search: &dyn Fn() -> (i64, i64)| {
        let start = Instant::now();
        let found = search();
        report.metric(name, start.elapsed().as_nanos() as f64, Unit::Nanoseconds);
        found
    };
    let found = clocked("plain arrays", &|| plain::reached(csr.distances(0).into_iter()));
    let fast = |csr: &Csr| plain::reached(csr.distances_hashed::<rustc_hash::FxBuildHasher>(0).into_values());
    let std = |csr: &Csr| plain::reached(csr.distances_hashed::<std::hash::RandomState>(0).into_values());
    assert_eq!(clocked("plain hash map, fx", &|| fast(&csr)), found);
    assert_eq!(clocked("plain hash map, std", &|| std(&csr)), found);
}

/// A random graph that changes.
pub fn incremental(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let (query, sums) = (spec.text("query"), Sums::default());
    let install = host.engine.install(query, |scope| {
        let (input, edges) = scope.input::<(u32, u32)>();
        let forward = edges.arrange_by_key();
        let found = match query {
            "bfs" => graphs::distances(&scope.constant([0]), &forward),
            "wcc" => {
                let backward = edges.map(|(source, target)| (target, source)).arrange_by_key();
                graphs::components(&forward, &backward)
            }
            other => panic!("query={other}: there are bfs and wcc"),
        };
        (input, watch::sums(&found, &sums, |(_, number)| number.into()))
    });
    let (_, (input, probe)) = install.expect("a dataflow that can be built");
    let (nodes, edges) = (spec.get::<u64>("nodes"), spec.get::<u64>("edges"));
    let (change, rounds) = (spec.get::<u64>("change"), spec.get::<u64>("rounds"));
    let shares = host.sessions(input).into_iter().map(|input| (input, probe.clone())).collect();
    let mut all = host.together(shares, move |turn, (mut input, probe)| {
        let edge = |number| random_edge(nodes, 12, number);
        let own =
            |numbers: std::ops::Range<u64>| numbers.filter(|number| number % turn.peers as u64 == turn.index as u64);
        let start = Instant::now();
        own(0..edges).for_each(|number| input.insert(edge(number)).expect("the query goes on"));
        input.advance_to(1).expect("time goes on");
        turn.until(|| probe.is_past(&0));
        let initial = start.elapsed();
        let mut latencies = histogram();
        for round in 0..rounds {
            let start = Instant::now();
            let changed = round * change..(round + 1) * change;
            for number in own(changed.clone()) {
                input.remove(edge(number)).expect("the query goes on");
            }
            for number in own(edges + changed.start..edges + changed.end) {
                input.insert(edge(number)).expect("the query goes on");
            }
            input.advance_to(round + 2).expect("time goes on");
            turn.until(|| probe.is_past(&(round + 1)));
            latencies.saturating_record(start.elapsed().as_nanos() as u64);
        }
        (input, initial, latencies)
    });
    let (_input, initial, latencies) = all.swap_remove(0);
    report.metric("initial", initial.as_nanos() as f64, Unit::Nanoseconds);
    report.latencies("", &latencies);
    report.metric("resident", workloads::machine::resident() as f64, Unit::Bytes);
    let (count, sum) = sums.get();
    report.answer = format!("{count} {sum}");
    host.stop();
}
