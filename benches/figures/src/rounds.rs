//! Rounds of next to nothing: what it costs that time goes on.
//!
//! The answer is how many records came out, or, where none goes in, how many rounds there were; rounds that are not
//! measured do not count.
#![forbid(unsafe_code)]

use crate::host::Host;
use crate::watch;
use hdrhistogram::Histogram;
use kpg::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use workloads::generate::{below, rnd};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit, machine};

/// So many rounds come before those that are measured.
const WARM: u64 = 100;

fn clocked(latencies: &mut Histogram<u64>, before: &mut Instant) {
    let now = Instant::now();
    latencies.saturating_record((now - *before).as_nanos() as u64);
    *before = now;
}

/// What worker 0 saw, and how many rounds there were a second.
fn conclude(report: &mut Report, latencies: &Histogram<u64>, start: Instant, end: Instant) {
    report.metric("rounds", latencies.len() as f64 / (end - start).as_secs_f64(), Unit::PerSecond);
    report.latencies("", latencies);
}

/// Each worker moves its session, and waits for all to have moved.
pub fn barrier(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let install = host.engine.install("barrier", |scope| {
        let (input, nothing) = scope.input::<u64>();
        (input, nothing.probe())
    });
    let (_, (input, probe)) = install.expect("a dataflow that can be built");
    let rounds = spec.get::<u64>("rounds");
    let shares = host.sessions(input).into_iter().map(|input| (input, probe.clone())).collect();
    let mut all = host.together(shares, move |turn, (mut input, probe)| {
        let mut pass = |to| {
            input.advance_to(to).expect("time goes on");
            turn.until(|| probe.is_past(&(to - 1)));
        };
        (1..=WARM).for_each(&mut pass);
        let (mut latencies, start) = (histogram(), Instant::now());
        let mut before = start;
        for round in 1..=rounds {
            pass(WARM + round);
            clocked(&mut latencies, &mut before);
        }
        (latencies, start, before)
    });
    let (latencies, start, end) = all.swap_remove(0);
    conclude(report, &latencies, start, end);
    report.answer = latencies.len().to_string();
    host.stop();
}

/// One record a round, put in at worker 0; each worker's session moves.
fn records(host: &Host, input: Input<u64, u64>, probe: Probe<u64>, rounds: u64, records: u64, report: &mut Report) {
    let shares = host.sessions(input).into_iter().map(|input| (input, probe.clone())).collect();
    let mut all = host.together(shares, move |turn, (mut input, probe)| {
        let mut pass = |round| {
            if turn.index == 0 {
                (0..records).for_each(|_| input.insert(round).expect("the query goes on"));
            }
            input.advance_to(round + 1).expect("time goes on");
            turn.until(|| probe.is_past(&round));
        };
        (0..WARM).for_each(&mut pass);
        let (mut latencies, start) = (histogram(), Instant::now());
        let mut before = start;
        for round in 0..rounds {
            pass(WARM + round);
            clocked(&mut latencies, &mut before);
        }
        (latencies, start, before)
    });
    let (latencies, start, end) = all.swap_remove(0);
    conclude(report, &latencies, start, end);
}

/// One record through a map, and more.
pub fn single(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let operator = spec.text("operator");
    let came = Arc::new(AtomicU64::new(0));
    let install = host.engine.install(operator, |scope| {
        let (input, records) = scope.input::<u64>();
        let records = records.map(|record| record);
        let came = came.clone();
        let count = move |many: usize| _ = came.fetch_add(many as u64, Ordering::Relaxed);
        let probe = match operator {
            "map" => watch::each_update(&records, move |_, _, _| count(1)),
            "arrange" => {
                let arranged = records.arrange_by_self();
                let published = arranged.publish();
                let probe = watch::each_batch(&arranged, move |batch| count(kpg::trace::Batch::len(batch)));
                return (input, probe, Some(published));
            }
            "count-total" => watch::each_update(&records.count(), move |_, _, _| count(1)),
            "count" => {
                let counts = records.arrange_by_self().count_arranged();
                watch::each_batch(&counts, move |batch| count(kpg::trace::Batch::len(batch)))
            }
            other => panic!("operator={other}: there are map, arrange, count-total and count"),
        };
        (input, probe, None)
    });
    let (_, (input, probe, _published)) = install.expect("a dataflow that can be built");
    records(&host, input, probe, spec.get("rounds"), 1, report);
    report.answer = (came.load(Ordering::Relaxed) - WARM).to_string();
    host.stop();
}

/// One record, or none, through many maps.
pub fn chain(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let came = Arc::new(AtomicU64::new(0));
    let length = spec.get::<usize>("length");
    let install = host.engine.install("chain", |scope| {
        let (input, records) = scope.input::<u64>();
        let last = (0..length).fold(records, |records, _| records.map(|record| record + 1));
        let came = came.clone();
        (input, watch::each_update(&last, move |_, _, _| _ = came.fetch_add(1, Ordering::Relaxed)))
    });
    let (_, (input, probe)) = install.expect("a dataflow that can be built");
    let each = spec.get("records");
    records(&host, input, probe, spec.get("rounds"), each, report);
    report.answer = (came.load(Ordering::Relaxed) - WARM * each).to_string();
    host.stop();
}

/// Many dataflows of which one gets a record, and all advance.
pub fn idle(spec: &Spec, report: &mut Report) {
    let empty = machine::resident();
    let host = Host::start(spec.workers());
    let (dataflows, length) = (spec.get::<u64>("dataflows"), spec.get::<usize>("length"));
    let came = Arc::new(AtomicU64::new(0));
    let start = Instant::now();
    let mut shares: Vec<Vec<(Input<u64, u64>, Probe<u64>)>> = (0..spec.workers()).map(|_| Vec::new()).collect();
    let mut kept = Vec::new();
    for _ in 0..dataflows {
        let install = host.engine.install("idle", |scope| {
            let (input, records) = scope.input::<u64>();
            let last = (0..length).fold(records, |records, _| records.map(|record| record + 1));
            let arranged = last.map(|record| (record, ())).arrange_by_key();
            let came = came.clone();
            let probe = watch::each_batch(&arranged, move |batch| {
                came.fetch_add(kpg::trace::Batch::len(batch) as u64, Ordering::Relaxed);
            });
            (input, probe, arranged.publish())
        });
        let (_, (input, probe, published)) = install.expect("a dataflow that can be built");
        let sessions = host.sessions(input).into_iter();
        sessions.zip(&mut shares).for_each(|(input, share)| share.push((input, probe.clone())));
        kept.push(published);
    }
    report.metric("built", start.elapsed().as_nanos() as f64, Unit::Nanoseconds);
    let rounds = spec.get::<u64>("rounds");
    let mut all = host.together(shares, move |turn, mut share| {
        let (mut latencies, start) = (histogram(), Instant::now());
        let mut before = start;
        for round in 0..rounds {
            if turn.index == 0 {
                let chosen = below(rnd(60, round), dataflows) as usize;
                share[chosen].0.insert(round).expect("the query goes on");
            }
            share.iter_mut().for_each(|(input, _)| input.advance_to(round + 1).expect("time goes on"));
            share.iter().for_each(|(_, probe)| turn.until(|| probe.is_past(&round)));
            clocked(&mut latencies, &mut before);
        }
        (share, latencies, start, before)
    });
    let (_share, latencies, start, end) = all.swap_remove(0);
    conclude(report, &latencies, start, end);
    report.metric("resident", machine::resident().saturating_sub(empty) as f64, Unit::Bytes);
    report.answer = came.load(Ordering::Relaxed).to_string();
    host.stop();
}
