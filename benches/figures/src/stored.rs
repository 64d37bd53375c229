//! A large arrangement: what it takes up, and what a new query on it costs.
//!
//! The answers: of join, how many results there were in all; of attached, how many there are at last; of memory, what is in the arrangement.
#![forbid(unsafe_code)]

use crate::host::{Host, Turn};
use crate::watch::{self, Sums};
use kpg::prelude::*;
use std::time::{Duration, Instant};
use workloads::generate::{Keys, below, rnd};
use workloads::open_loop::histogram;
use workloads::{Answer, Report, Spec, Unit, machine};

/// Merging has settled when nothing was to be done so often in a row.
const SETTLED: usize = 1000;
/// At most so long is waited for it.
const SETTLING: Duration = Duration::from_secs(20);

/// How long a worker that is to give idle memory back has nothing to do.
const RESTING: Duration = Duration::from_millis(200);

/// Loads data `0..count`, `batch` of a worker at a time, and steps until the arrangement is complete. Gives the first
/// time that is free.
fn load<D: Columnar + Send + 'static>(
    host: &Host,
    (input, probe): (Input<u64, D>, &Probe<u64>),
    (count, batch): (u64, u64),
    datum: impl Fn(u64) -> D + Send + Sync + 'static,
) -> (Vec<Input<u64, D>>, u64) {
    let shares = host.sessions(input).into_iter().map(|input| (input, probe.clone())).collect();
    let step = batch * host.turn.peers as u64;
    let rounds = count.div_ceil(step);
    let inputs = host.together(shares, move |turn, (mut input, probe)| {
        for round in 0..rounds {
            for number in (round * step..count.min((round + 1) * step)).skip(turn.index).step_by(turn.peers) {
                input.insert(datum(number)).expect("the query goes on");
            }
            input.advance_to(round + 1).expect("time goes on");
            turn.until(|| probe.is_past(&round));
        }
        input
    });
    (inputs, rounds)
}

fn settle(turn: &Turn) {
    let (start, mut idle) = (Instant::now(), 0);
    while idle < SETTLED && start.elapsed() < SETTLING {
        idle = if turn.step() { 0 } else { idle + 1 };
    }
}

fn settle_all(host: &Host) {
    host.together(vec![(); host.turn.peers], |turn, ()| settle(turn));
}

/// Steps with nothing to do for a while: then a worker gives idle memory back to the system.
fn rest_all(host: &Host) {
    host.together(vec![(); host.turn.peers], |turn, ()| {
        let start = Instant::now();
        while start.elapsed() < RESTING {
            turn.step();
        }
    });
}

/// The whole life of a query, over and over: install, import, join, all results known, retired.
pub fn join(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let install = host.engine.install("base", |scope| {
        let (input, keys) = scope.input::<u64>();
        let arranged = keys.arrange_by_self();
        (input, arranged.probe(), arranged.publish())
    });
    let (_, (input, probe, base)) = install.expect("a dataflow that can be built");
    let keys = spec.get::<u64>("keys");
    let (_inputs, free) = load(&host, (input, &probe), (keys, 100_000), |number| number);
    settle_all(&host);

    let (queries, mut next) = (spec.get::<u64>("queries"), 0);
    let (mut latencies, mut results) = (histogram(), 0);
    for _ in 0..spec.get::<u64>("repeat") {
        let asked: Vec<u64> = (next..next + queries).map(|number| below(rnd(7, number), keys)).collect();
        next += queries;
        let sums = Sums::default();
        let start = Instant::now();
        let install = host.engine.install("join", |scope| {
            let asked = scope.constant(asked.iter().copied()).arrange_by_self();
            watch::sums(&asked.join_core(&base.import(scope), |key, (), ()| Some(key)), &sums, |_| 0)
        });
        let (query, probe) = install.expect("a dataflow that can be built");
        host.turn.until(|| probe.is_past(&(free - 1)));
        results += sums.get().0;
        query.retire().expect("nobody imports from it");
        latencies.saturating_record(start.elapsed().as_nanos() as u64);
    }
    report.latencies("", &latencies);
    report.answer = results.to_string();
    host.stop();
}

/// Many queries on one arrangement while it changes.
pub fn attached(spec: &Spec, report: &mut Report) {
    let (host, sums) = (Host::start(spec.workers()), Sums::default());
    let install = host.engine.install("base", |scope| {
        let (input, keys) = scope.input::<u64>();
        let arranged = keys.arrange_by_self();
        (input, arranged.probe(), arranged.publish())
    });
    let (_, (input, probe, base)) = install.expect("a dataflow that can be built");
    let keys = Keys { keys: spec.get("keys") };
    let (inputs, free) = load(&host, (input, &probe), (keys.keys, 100_000), move |number| keys.key(number));
    let start = Instant::now();
    let mut probes = Vec::new();
    for query in 0..spec.get::<u64>("queries") {
        let install = host.engine.install("attached", |scope| {
            let asked = scope.constant([below(rnd(7, query), keys.keys)]).arrange_by_self();
            watch::sums(&asked.join_core(&base.import(scope), |key, (), ()| Some(key)), &sums, |_| 0)
        });
        probes.push(install.expect("a dataflow that can be built").1);
    }
    probes.iter().for_each(|probe| host.turn.until(|| probe.is_past(&(free - 1))));
    report.metric("attached", start.elapsed().as_nanos() as f64, Unit::Nanoseconds);
    let (batch, rounds) = (spec.get::<u64>("batch"), spec.get::<u64>("rounds"));
    let shares = inputs.into_iter().map(|input| (input, probes.clone())).collect();
    let mut all = host.together(shares, move |turn, (mut input, probes)| {
        let mut latencies = histogram();
        let began = Instant::now();
        for round in 0..rounds {
            let start = Instant::now();
            let numbers = (round * batch..(round + 1) * batch).skip(turn.index).step_by(turn.peers);
            for (key, diff) in numbers.map(|number| keys.update(number)) {
                input.update(key, diff).expect("the query goes on");
            }
            let time = free + round;
            input.advance_to(time + 1).expect("time goes on");
            probes.iter().for_each(|probe| turn.until(|| probe.is_past(&time)));
            latencies.saturating_record(start.elapsed().as_nanos() as u64);
        }
        (input, latencies, began.elapsed())
    });
    let (_input, latencies, took) = all.swap_remove(0);
    report.metric("updates", (rounds * batch) as f64 / took.as_secs_f64(), Unit::PerSecond);
    report.latencies("round", &latencies);
    report.metric("resident", machine::resident() as f64, Unit::Bytes);
    report.answer = sums.get().0.to_string();
    host.stop();
}

/// Bytes an update, as loaded, at most until then, and merged. To merge all of it takes both what is merged and what comes out.
pub fn memory(spec: &Spec, report: &mut Report) {
    let updates = spec.get::<u64>("updates");
    match spec.text("kind") {
        "keys" => occupied(spec, report, |number| (rnd(3, number), ()), |key, ()| vec![key]),
        "edges" => {
            let edge = move |number| (below(rnd(4, number), updates / 10) as u32, (rnd(5, number) >> 32) as u32);
            occupied(spec, report, edge, |source, target| vec![source.into(), target.into()])
        }
        other => panic!("kind={other}: there are keys and edges"),
    }
}

fn occupied<K: Columnar + Send + 'static, V: Columnar + Send + 'static>(
    spec: &Spec,
    report: &mut Report,
    datum: impl Fn(u64) -> (K, V) + Send + Sync + 'static,
    parts: impl Fn(K, V) -> Vec<u64>,
) {
    let host = Host::start(spec.workers());
    let install = host.engine.install("memory", |scope| {
        let (input, pairs) = scope.input::<(K, V)>();
        let arranged = pairs.arrange_by_key();
        (input, arranged.probe(), arranged.publish())
    });
    let (_, (input, probe, arranged)) = install.expect("a dataflow that can be built");
    let updates = spec.get::<u64>("updates");
    let empty = machine::resident();
    let start = Instant::now();
    let _inputs = load(&host, (input, &probe), (updates, spec.get("batch")), datum);
    report.metric("loading", start.elapsed().as_nanos() as f64, Unit::Nanoseconds);
    let mut each = |name: &str, bytes: u64| report.metric(name, bytes as f64 / updates as f64, Unit::Bytes);
    let arenas = |host: &Host| {
        let arenas = host.engine.metrics().arenas;
        let sum = |field: fn(&kpg::arena::Stats) -> usize| arenas.iter().map(field).sum::<usize>() as u64;
        (sum(|arena| arena.live_bytes), sum(|arena| arena.reserved_bytes), sum(|arena| arena.peak_bytes))
    };
    let loaded = arenas(&host);
    each("loaded resident", machine::resident().saturating_sub(empty));
    each("loaded live", loaded.0);
    each("peak resident", machine::peak_resident().saturating_sub(empty));
    each("peak live", loaded.2);
    settle_all(&host);
    rest_all(&host);
    let settled = arenas(&host);
    each("settled resident", machine::resident().saturating_sub(empty));
    each("settled live", settled.0);
    each("settled reserved", settled.1);
    let mut answer = Answer::default();
    let content = arranged.snapshot().expect("some time is complete");
    content.iter().for_each(|(key, val, count)| answer.add(&parts(key, val), count));
    report.answer = answer.hex();
    drop(content);
    host.stop();
}
