//! Rules applied until nothing follows any more, with results that can be retracted: transitive closure, and an analysis
//! of what pointers point to.
//!
//! The answers: of closure, how many pairs there are, and the sum of (3 × source + target); of pointers, how many of
//! value flow, memory alias and value alias there are at last, and how many were changed meanwhile.
#![forbid(unsafe_code)]

use crate::graphs;
use crate::host::Host;
use crate::watch::{self, Sums};
use kpg::prelude::*;
use std::time::{Duration, Instant};
use workloads::files::{self, Facts};
use workloads::generate::{below, gnp, grid, rnd, tree};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit, machine};

/// The graph of this name: tree-HEIGHT, grid-SIDE, gnp-NODES (of a thousandth of all edges), or a file.
///
/// # Panics
/// If there is none.
pub fn edges(name: &str) -> Vec<(u32, u32)> {
    let number = |text: &str| text.parse::<u32>().unwrap_or_else(|_| panic!("graph={name}: which size?"));
    match name.split_once('-') {
        Some(("tree", height)) => tree(number(height)),
        Some(("grid", side)) => grid(number(side)),
        Some(("gnp", nodes)) => gnp(number(nodes).into(), 0.001),
        _ => files::edges(name).unwrap_or_else(|error| panic!("graph={name}: {error}")),
    }
}

/// Puts data in at time 0, each worker its share, and waits for the result: the sessions of each worker, at time 1, and
/// how long it took.
fn put_in<D: Columnar + Copy + Send + Sync + 'static>(
    host: &Host,
    inputs: Vec<(Input<u64, D>, Vec<D>)>,
    probe: &Probe<u64>,
) -> (Vec<Vec<Input<u64, D>>>, Duration) {
    let (probe, peers) = (probe.clone(), host.turn.peers);
    let mut shares: Vec<Vec<(Input<u64, D>, Vec<D>)>> = (0..peers).map(|_| Vec::new()).collect();
    for (input, data) in inputs {
        for (own, session) in host.sessions(input).into_iter().enumerate() {
            shares[own].push((session, data.iter().copied().skip(own).step_by(peers).collect()));
        }
    }
    let done = host.together(shares, move |turn, share| {
        let start = Instant::now();
        let put = |(mut input, data): (Input<u64, D>, Vec<D>)| {
            data.iter().for_each(|datum| input.insert(*datum).expect("the query goes on"));
            input.advance_to(1).expect("time goes on");
            input
        };
        let sessions: Vec<_> = share.into_iter().map(put).collect();
        turn.until(|| probe.is_past(&0));
        (sessions, start.elapsed())
    });
    let took = done.iter().map(|(_, took)| *took).max().expect("a worker");
    (done.into_iter().map(|(sessions, _)| sessions).collect(), took)
}

/// Transitive closure.
pub fn closure(spec: &Spec, report: &mut Report) {
    let edges = edges(spec.text("graph"));
    let host = Host::start(spec.workers());
    let sums = Sums::default();
    let install = host.engine.install("closure", |scope| {
        let (input, edges) = scope.input::<(u32, u32)>();
        let number = |(source, target): (u32, u32)| 3 * i64::from(source) + i64::from(target);
        (input, watch::sums(&graphs::closure(&edges), &sums, number))
    });
    let (_, (input, probe)) = install.expect("a dataflow that can be built");
    let (_sessions, took) = put_in(&host, vec![(input, edges)], &probe);
    let (tuples, sum) = sums.get();
    report.metric("took", took.as_nanos() as f64, Unit::Nanoseconds);
    report.metric("tuples", tuples as f64, Unit::Count);
    let peak = machine::peak_resident();
    report.metric("peak resident", peak as f64, Unit::Bytes);
    report.metric("peak a tuple", peak as f64 / tuples as f64, Unit::Bytes);
    report.answer = format!("{tuples} {sum}");
    host.stop();
}

/// Points-to analysis; then single facts go and come back.
pub fn pointers(spec: &Spec, report: &mut Report) {
    let name = spec.text("facts");
    let Facts { assign, dereference } = files::facts(name).unwrap_or_else(|error| panic!("facts={name}: {error}"));
    let host = Host::start(spec.workers());
    let (flow, memory, value) = <(Sums, Sums, Sums)>::default();
    let install = host.engine.install("pointers", |scope| {
        let (assigning, assigns) = scope.input::<(u32, u32)>();
        let (dereferencing, dereferences) = scope.input::<(u32, u32)>();
        let found = graphs::pointers(&assigns, &dereferences);
        let counted = [&flow, &memory, &value].into_iter().zip(&found);
        let counted: Vec<_> = counted.map(|(sums, pairs)| watch::sum_up(pairs, sums, |_| 0)).collect();
        (assigning, dereferencing, Collection::concat_all(&counted).probe())
    });
    let (_, (assigning, dereferencing, probe)) = install.expect("a dataflow that can be built");
    let (sessions, took) = put_in(&host, vec![(assigning, assign.clone()), (dereferencing, dereference)], &probe);
    report.metric("initial", took.as_nanos() as f64, Unit::Nanoseconds);
    let rounds = spec.get::<u64>("rounds");
    let sizes = move || [&flow, &memory, &value].map(|sums| sums.get().0);
    let at_first = sizes();
    let before = at_first.iter().sum::<i64>();
    let seen = sizes.clone();
    let mut all = host.together(sessions, move |turn, mut sessions| {
        let (mut removed, mut restored, mut lost) = (histogram(), histogram(), 0);
        for time in 1..=2 * rounds {
            let fact = assign[below(rnd(50, (time - 1) / 2), assign.len() as u64) as usize];
            let (latencies, diff) = if time % 2 == 1 { (&mut removed, -1) } else { (&mut restored, 1) };
            let start = Instant::now();
            if turn.index == 0 {
                sessions[0].update(fact, diff).expect("the query goes on");
            }
            sessions.iter_mut().for_each(|input| input.advance_to(time + 1).expect("time goes on"));
            turn.until(|| probe.is_past(&time));
            latencies.saturating_record(start.elapsed().as_nanos() as u64);
            if turn.index == 0 {
                lost += before - seen().iter().sum::<i64>();
                // Nobody goes on before this was read.
            }
            turn.meet();
        }
        (removed, restored, lost)
    });
    let (removed, restored, lost) = all.swap_remove(0);
    report.latencies("remove", &removed);
    report.latencies("restore", &restored);
    report.metric("peak resident", machine::peak_resident() as f64, Unit::Bytes);
    let [flow, memory, value] = sizes();
    assert_eq!([flow, memory, value], at_first, "what went came back");
    report.answer = format!("{flow} {memory} {value} {lost}");
    host.stop();
}
