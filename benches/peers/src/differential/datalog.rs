//! Rules applied until nothing follows any more, with results that can be retracted: diffs of 64 bits.
#![forbid(unsafe_code)]

use super::crew;
use super::graph::put_in;
use super::sums::{Sums, total};
use crate::setting::{Setting, Time};
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::lattice::Lattice;
use differential_dataflow::operators::ThresholdTotal;
use differential_dataflow::operators::iterate::{Iterate, Variable};
use std::time::{Duration, Instant};
use timely::dataflow::operators::probe;
use timely::order::{Product, TotalOrder};
use timely::progress::Timestamp;
use timely::progress::timestamp::Refines;
use timely::worker::Worker;
use workloads::files::{self, Facts};
use workloads::generate::{below, gnp, grid, rnd, tree};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit, machine};

type Pair = (u32, u32);
type Pairs<'s, T> = VecCollection<'s, T, Pair, i64>;

/// The graph of this name: tree-HEIGHT, grid-SIDE, gnp-NODES (of a thousandth of all edges), or a file.
fn edges(name: &str) -> Result<Vec<Pair>, String> {
    let number = |text: &str| text.parse::<u32>().map_err(|_| format!("graph={name}: which size?"));
    Ok(match name.split_once('-') {
        Some(("tree", height)) => tree(number(height)?),
        Some(("grid", side)) => grid(number(side)?),
        Some(("gnp", nodes)) => gnp(number(nodes)?.into(), 0.001),
        _ => files::edges(name).map_err(|error| format!("graph={name}: {error}"))?,
    })
}

/// (x, y): a path of at least one edge leads from x to y.
fn paths<T: Timestamp + Lattice>(edges: Pairs<'_, T>) -> Pairs<'_, T> {
    let forward = edges.clone().arrange_by_key();
    edges.scope().iterate(|inner, paths: VecCollection<_, Pair, i64>| {
        let by_end = paths.map(|(from, to)| (to, from)).arrange_by_key();
        let longer = by_end.join_core(forward.enter(inner), |_, from, to| Some((*from, *to)));
        longer.concat(edges.enter(inner)).distinct_core()
    })
}

/// The same where times are ordered totally in the loop too, which needs no times outside of it.
fn paths_total(edges: Pairs<'_, ()>) -> Pairs<'_, ()> {
    let forward = edges.clone().arrange_by_key();
    edges.scope().iterate(|inner, paths: VecCollection<_, Pair, i64>| {
        let by_end = paths.map(|(from, to)| (to, from)).arrange_by_key();
        let longer = by_end.join_core(forward.enter(inner), |_, from, to| Some((*from, *to)));
        longer.concat(edges.enter(inner)).distinct_total_core()
    })
}

/// Builds the rules, puts the edges in, waits for all that follows.
fn follow<T: Timestamp + Lattice + TotalOrder + Refines<()>>(
    worker: &mut Worker,
    edges: &[Pair],
    rules: impl FnOnce(Pairs<'_, T>) -> Pairs<'_, T>,
) -> (Duration, (i64, i64)) {
    let (index, peers, sums) = (worker.index(), worker.peers(), Sums::default());
    let (mut input, probe) = worker.dataflow::<T, _, _>(|scope| {
        let (input, edges) = scope.new_collection::<Pair, i64>();
        let number = |(source, target): &Pair| 3 * i64::from(*source) + i64::from(*target);
        (input, sums.watch(rules(edges), number).probe().0)
    });
    let start = Instant::now();
    put_in(worker, &mut input, edges.iter().copied().skip(index).step_by(peers), 1);
    input.close();
    while !probe.done() {
        worker.step();
    }
    (start.elapsed(), sums.get())
}

/// Transitive closure.
pub fn closure(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let edges = edges(spec.text("graph"))?;
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        barrier.wait();
        match setting.time {
            Time::Numbers => follow::<u64>(worker, &edges, paths),
            Time::One => follow::<()>(worker, &edges, paths),
            Time::OneTotal => follow::<()>(worker, &edges, paths_total),
        }
    });
    let took = outcomes.iter().map(|(took, _)| *took).max().expect("a worker");
    let (tuples, sum) = total(outcomes.iter().map(|(_, sums)| *sums));
    report.metric("took", took.as_nanos() as f64, Unit::Nanoseconds);
    report.metric("tuples", tuples as f64, Unit::Count);
    let peak = machine::peak_resident();
    report.metric("peak resident", peak as f64, Unit::Bytes);
    report.metric("peak a tuple", peak as f64 / tuples as f64, Unit::Bytes);
    report.answer = format!("{tuples} {sum}");
    Ok(())
}

/// The rules of Graspan's points-to analysis, every arrangement made once:
///
/// ```text
/// F(x, x)  for each x of A or D      V(a, b) ← F(x, a), F(x, b)
/// F(a, b) ← A(a, x), F(x, b)         V(a, b) ← F(x, a), M(x, y), F(y, b)
/// F(a, b) ← A(a, x), M(x, y), F(y, b)
/// M(a, b) ← D(x, a), V(x, y), D(y, b)
/// ```
fn points<'s>(assigns: Pairs<'s, u64>, dereferences: Pairs<'s, u64>) -> [Pairs<'s, u64>; 3] {
    let outer = assigns.scope();
    let nodes = assigns.clone().concat(dereferences.clone()).flat_map(|(a, b)| [(a, a), (b, b)]).distinct_core::<i64>();
    let assigned = assigns.map(|(a, x)| (x, a));
    let (by_source, dereferences) = (assigned.clone().arrange_by_key(), dereferences.arrange_by_key());
    outer.iterative::<u64, _, _>(|inner| {
        let (nodes, assigned) = (nodes.enter(inner), assigned.enter(inner));
        let (by_source, dereferences) = (by_source.enter(inner), dereferences.enter(inner));
        let (flow, flows) = Variable::new(inner, Product::new(0, 1));
        let (memory, memories) = Variable::new(inner, Product::new(0, 1));
        let (flows, memories): (VecCollection<_, Pair, i64>, VecCollection<_, Pair, i64>) = (flows, memories);
        let (flows, memories) = (flows.arrange_by_key(), memories.arrange_by_key());

        let through_memory = by_source.join_core(memories.clone(), |_, a, y| Some((*y, *a)));
        let next = through_memory.concat(assigned).arrange_by_key();
        let next = next.join_core(flows.clone(), |_, a, b| Some((*a, *b)));
        let found_flow = next.concat(nodes).distinct_core::<i64>();

        let direct = flows.clone().join_core(flows.clone(), |_, a, b| Some((*a, *b)));
        let half = flows.clone().join_core(memories, |_, a, y| Some((*y, *a))).arrange_by_key();
        let through_memory = half.join_core(flows, |_, a, b| Some((*a, *b)));
        let value = through_memory.concat(direct).distinct_core::<i64>();

        let half = value.clone().arrange_by_key();
        let half = half.join_core(dereferences.clone(), |_, y, a| Some((*y, *a))).arrange_by_key();
        let found_memory = half.join_core(dereferences, |_, a, b| Some((*a, *b))).distinct_core::<i64>();

        flow.set(found_flow.clone());
        memory.set(found_memory.clone());
        [found_flow, found_memory, value].map(|found| found.leave(outer))
    })
}

/// Points-to analysis; then single facts go and come back.
pub fn pointers(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (name, rounds) = (spec.text("facts"), spec.get::<u64>("rounds"));
    let Facts { assign, dereference } = files::facts(name).map_err(|error| format!("facts={name}: {error}"))?;
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index(), worker.peers());
        let found: [Sums; 3] = Default::default();
        let (mut assigning, mut dereferencing, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (assigning, assigns) = scope.new_collection::<Pair, i64>();
            let (dereferencing, dereferences) = scope.new_collection::<Pair, i64>();
            let [flow, memory, value] = points(assigns, dereferences);
            let counted = found[0].watch(flow, |_| 0).concat(found[1].watch(memory, |_| 0));
            (assigning, dereferencing, counted.concat(found[2].watch(value, |_| 0)).probe().0)
        });
        let sizes = || [0, 1, 2].map(|relation: usize| found[relation].get().0);
        barrier.wait();
        let start = Instant::now();
        put_in(worker, &mut assigning, assign.iter().copied().skip(index).step_by(peers), 1);
        put_in(worker, &mut dereferencing, dereference.iter().copied().skip(index).step_by(peers), 1);
        finish(worker, [&mut assigning, &mut dereferencing], &probe, 1);
        let (initial, before) = (start.elapsed(), sizes());
        let (mut removed, mut restored, mut lost) = (histogram(), histogram(), 0);
        for time in 1..=2 * rounds {
            let fact = assign[below(rnd(50, (time - 1) / 2), assign.len() as u64) as usize];
            let (latencies, diff) = if time % 2 == 1 { (&mut removed, -1) } else { (&mut restored, 1) };
            let start = Instant::now();
            if index == 0 {
                assigning.update(fact, diff);
            }
            finish(worker, [&mut assigning, &mut dereferencing], &probe, time + 1);
            latencies.saturating_record(start.elapsed().as_nanos() as u64);
            lost += before.iter().sum::<i64>() - sizes().iter().sum::<i64>();
        }
        assert_eq!(sizes(), before, "what went came back");
        (initial, removed, restored, before, lost)
    });
    let (initial, removed, restored, ..) = &outcomes[0];
    report.metric("initial", initial.as_nanos() as f64, Unit::Nanoseconds);
    report.latencies("remove", removed);
    report.latencies("restore", restored);
    report.metric("peak resident", machine::peak_resident() as f64, Unit::Bytes);
    let size = |relation: usize| outcomes.iter().map(|(.., sizes, _)| sizes[relation]).sum::<i64>();
    let lost: i64 = outcomes.iter().map(|(.., lost)| lost).sum();
    report.answer = format!("{} {} {} {lost}", size(0), size(1), size(2));
    Ok(())
}

/// Moves both inputs to `time`, and steps until all before is done.
fn finish(worker: &mut Worker, inputs: [&mut InputSession<u64, Pair, i64>; 2], probe: &probe::Handle<u64>, time: u64) {
    for input in inputs {
        input.advance_to(time);
        input.flush();
    }
    while probe.less_than(&time) {
        worker.step();
    }
}
