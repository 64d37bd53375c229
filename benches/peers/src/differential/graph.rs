//! Graphs: one that stays as it is, step by step; and one that changes.
//!
//! The static one has times that are all alike, and diffs of 32 bits: the least that the engine can do with. Its queries
//! are those of upstream's experiments. The changing one has the algorithms that come with the engine.
#![forbid(unsafe_code)]

use super::clock::Clock;
use super::crew;
use super::sums::{Sums, total};
use crate::setting::Setting;
use differential_dataflow::algorithms::graphs::bfs::bfs_arranged;
use differential_dataflow::algorithms::graphs::propagate::propagate_core;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::ThresholdTotal;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::operators::iterate::{Iterate, Variable};
use differential_dataflow::trace::implementations::ValSpine;
use differential_dataflow::{AsCollection, Data, VecCollection};
use std::time::{Duration, Instant};
use timely::dataflow::Scope;
use timely::dataflow::operators::{Probe, ToStream, probe};
use timely::order::Product;
use timely::progress::Timestamp;
use timely::worker::Worker;
use workloads::generate::{random_edge, rmat_edge};
use workloads::{Report, Spec, Unit, machine};

type Edge = (u32, u32);
type Index = TraceAgent<ValSpine<u32, u32, (), i32>>;

/// After so many records an input lets the worker take them, which keeps them in the cache.
const CHUNK: usize = 65_536;

/// Puts many records in at the current time.
pub fn put_in<
    T: Timestamp + differential_dataflow::lattice::Lattice,
    D: Data,
    R: differential_dataflow::difference::Semigroup,
>(
    worker: &mut Worker,
    input: &mut InputSession<T, D, R>,
    data: impl Iterator<Item = D>,
    one: R,
) {
    for (number, datum) in data.enumerate() {
        input.update(datum, one.clone());
        if number % CHUNK == CHUNK - 1 {
            input.flush();
            worker.step();
        }
    }
}

/// Node 0, which the first worker has.
fn root<'s, T: Timestamp, R: differential_dataflow::difference::Semigroup + 'static>(
    scope: Scope<'s, T>,
    index: usize,
    one: R,
) -> VecCollection<'s, T, u32, R> {
    let root = (index == 0).then_some((0, T::minimum(), one));
    root.to_stream(scope).as_collection()
}

/// What there is a path to.
fn reach<'s>(scope: Scope<'s, ()>, forward: &mut Index, index: usize) -> VecCollection<'s, (), u32, i32> {
    let (forward, roots) = (forward.import(scope), root(scope, index, 1));
    scope.iterate(|inner, reached| {
        let (forward, roots) = (forward.enter(inner), roots.enter(inner));
        let next = forward.join_core(reached.arrange_by_self(), |_, target, ()| Some(*target));
        next.concat(roots).distinct_total_core()
    })
}

/// Each node's distance.
fn distances<'s>(scope: Scope<'s, ()>, forward: &mut Index, index: usize) -> VecCollection<'s, (), Edge, i32> {
    let forward = forward.import(scope);
    let roots = root(scope, index, 1).map(|node| (node, 0));
    scope.iterate(|inner, distances: VecCollection<_, Edge, i32>| {
        let (forward, roots) = (forward.enter(inner), roots.enter(inner));
        let next = forward.join_core(distances.arrange_by_key(), |_, target, distance| Some((*target, distance + 1)));
        next.concat(roots).reduce(|_, distances, least| least.push((*distances[0].0, 1)))
    })
}

/// Each node's least connected one: small labels come first.
fn components<'s>(scope: Scope<'s, ()>, forward: &mut Index, backward: &mut Index) -> VecCollection<'s, (), Edge, i32> {
    let (forward, backward) = (forward.import(scope), backward.import(scope));
    let own = forward.clone().as_collection(|source, target| *source.min(target)).distinct_total_core::<i32>();
    scope.iterative::<u64, _, _>(|inner| {
        let own =
            own.map(|node| (node, node)).enter_at(inner, |(_, label)| 256 * u64::from(32 - label.leading_zeros()));
        let (forward, backward) = (forward.enter(inner), backward.enter(inner));
        let (labels, before) = Variable::new(inner, Product::new((), 1));
        let before: VecCollection<_, Edge, i32> = before;
        let before = before.arrange_by_key();
        let from_sources = before.clone().join_core(forward, |_, label, target| Some((*target, *label)));
        let from_targets = before.join_core(backward, |_, label, source| Some((*source, *label)));
        let all = from_sources.concat(from_targets).concat(own);
        let least = all.reduce(|_, labels, least| least.push((*labels[0].0, 1)));
        labels.set(least.clone());
        least.leave(scope)
    })
}

/// Steps until a dataflow is complete: how long that took from its building on.
fn complete(worker: &mut Worker, build: impl FnOnce(Scope<'_, ()>) -> probe::Handle<()>) -> Duration {
    let start = Instant::now();
    let probe = worker.dataflow(build);
    while !probe.done() {
        worker.step();
    }
    start.elapsed()
}

/// R-MAT.
pub fn graph(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let scale: u32 = spec.get("scale");
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index(), worker.peers());
        let edges: Vec<Edge> = (0..16 << scale).skip(index).step_by(peers).map(|i| rmat_edge(scale, i)).collect();
        let (reached, distant, connected) = <(Sums, Sums, Sums)>::default();
        barrier.wait();

        let start = Instant::now();
        let (mut input, probe, mut forward) = worker.dataflow::<(), _, _>(|scope| {
            let (input, edges) = scope.new_collection::<Edge, i32>();
            let arranged = edges.arrange_by_key();
            (input, arranged.stream.probe().0, arranged.trace)
        });
        put_in(worker, &mut input, edges.into_iter(), 1);
        input.close();
        while !probe.done() {
            worker.step();
        }
        let mut took = vec![("index", start.elapsed())];
        barrier.wait();
        let reach = |scope: Scope<'_, ()>| reached.watch(reach(scope, &mut forward, index), |_| 0).probe().0;
        took.push(("reach", complete(worker, reach)));
        barrier.wait();
        let sssp = |scope: Scope<'_, ()>| {
            distant.watch(distances(scope, &mut forward, index), |(_, d)| i64::from(*d)).probe().0
        };
        took.push(("sssp", complete(worker, sssp)));
        barrier.wait();
        let mut backward = None;
        let reverse = |scope: Scope<'_, ()>| {
            let edges = forward.import(scope).as_collection(|source, target| (*target, *source));
            let arranged = edges.arrange_by_key();
            backward = Some(arranged.trace);
            arranged.stream.probe().0
        };
        took.push(("reverse", complete(worker, reverse)));
        let mut backward = backward.expect("was arranged");
        barrier.wait();
        let wcc = |scope: Scope<'_, ()>| {
            let labels = components(scope, &mut forward, &mut backward);
            connected.watch(labels, |(node, label)| i64::from(node == label)).probe().0
        };
        took.push(("wcc", complete(worker, wcc)));
        (took, [reached.get(), distant.get(), connected.get()])
    });
    for (name, took) in &outcomes[0].0 {
        report.metric(*name, took.as_nanos() as f64, Unit::Nanoseconds);
    }
    let sums = |number: usize| total(outcomes.iter().map(|(_, sums)| sums[number]));
    report.answer = format!("{} {} {}", sums(0).0, sums(1).1, sums(2).1);
    Ok(())
}

/// A random graph that changes.
pub fn incremental(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let query = spec.text("query").to_string();
    let (nodes, edges) = (spec.get::<u64>("nodes"), spec.get::<u64>("edges"));
    let (change, rounds) = (spec.get::<u64>("change"), spec.get::<u64>("rounds"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index() as u64, worker.peers() as u64);
        let sums = Sums::default();
        let built = worker.dataflow::<u64, _, _>(|scope| {
            let (input, edges) = scope.new_collection::<Edge, isize>();
            let found = match query.as_str() {
                "bfs" => bfs_arranged(edges.arrange_by_key(), root(scope, index as usize, 1)),
                "wcc" => {
                    let own = edges.clone().map(|(source, target)| source.min(target)).distinct();
                    let both = edges.clone().map(|(source, target)| (target, source)).concat(edges);
                    propagate_core(both.arrange_by_key(), own.map(|node| (node, node)), |label| u64::from(*label))
                }
                query => return Err(format!("query={query}: there are bfs and wcc")),
            };
            Ok((input, sums.watch(found, |(_, number)| i64::from(*number)).probe().0))
        });
        let (mut input, probe) = built?;
        let edge = |number| random_edge(nodes, 12, number);
        let own = |from: u64, to: u64| (from..to).filter(|number| number % peers == index);
        barrier.wait();
        let start = Instant::now();
        put_in(worker, &mut input, own(0, edges).map(edge), 1);
        input.advance_to(1);
        input.flush();
        while probe.less_than(&1) {
            worker.step();
        }
        let initial = start.elapsed();
        let mut clock = Clock::start();
        for round in 0..rounds {
            let (from, to) = (round * change, (round + 1) * change);
            own(from, to).for_each(|number| input.remove(edge(number)));
            own(edges + from, edges + to).for_each(|number| input.insert(edge(number)));
            input.advance_to(round + 2);
            input.flush();
            while probe.less_than(&(round + 2)) {
                worker.step();
            }
            clock.round();
        }
        Ok::<_, String>((initial, clock, machine::resident(), sums.get()))
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    let (initial, clock, resident, _) = &outcomes[0];
    report.metric("initial", initial.as_nanos() as f64, Unit::Nanoseconds);
    report.latencies("", &clock.latencies);
    report.metric("resident", *resident as f64, Unit::Bytes);
    let (count, sum) = total(outcomes.iter().map(|(.., sums)| *sums));
    report.answer = format!("{count} {sum}");
    Ok(())
}
