//! Keys that come and go: how many updates a second, and how soon each is acknowledged.
//!
//! Workers take turns in loading the first keys, at 100,000 each a time. Throughput: time goes on by one a round, in
//! which worker w of n puts in the w-th n-th of the round's updates. Latency: the time of an update is its number, and
//! worker w puts in those with number % n == w; each worker's time is the number of the next that is due.
//!
//! The answers: of form, how many updates were formed after the loading; of arrange, what is in the arrangement at last;
//! of counts, what changes when 1000 more updates come at one time.
#![forbid(unsafe_code)]

use crate::host::{Host, Turn};
use crate::watch::{self, Tally};
use hdrhistogram::Histogram;
use kpg::prelude::*;
use kpg::trace::Batch;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use workloads::generate::Keys;
use workloads::open_loop::histogram;
use workloads::{Answer, OpenLoop, Report, Spec, Unit};

/// Keys that a worker loads at one time.
const LOAD: u64 = 100_000;
/// Updates of the round whose changes are the answer.
const LAST: u64 = 1000;

/// A running query over keys, all of which are loaded.
struct Running {
    host: Host,
    keys: Keys,
    /// One session for each worker.
    inputs: Vec<Input<u64, u64>>,
    probe: Probe<u64>,
    arranged: Option<Published<u64, ()>>,
    formed: Arc<AtomicU64>,
    tally: Tally,
    /// All inputs are at this time.
    time: u64,
}

impl Running {
    fn load(spec: &Spec, policy: MergePolicy) -> Running {
        let host = Host::start_with(spec.workers(), policy);
        let (formed, tally) = (Arc::new(AtomicU64::new(0)), Tally::default());
        let operator = spec.text("operator");
        let install = host.engine.install(operator, |scope| {
            let (input, keys) = scope.input::<u64>();
            let (probe, published) = match operator {
                "form" => {
                    let formed = formed.clone();
                    let probe = watch::each_batch(&keys.arrange_by_self(), move |batch| {
                        formed.fetch_add(batch.len() as u64, Ordering::Relaxed);
                    });
                    (probe, None)
                }
                "arrange" => {
                    let arranged = keys.arrange_by_self();
                    (arranged.probe(), Some(arranged.publish()))
                }
                "count-total" => (watch::tally(&keys.count(), &tally, |(key, count)| [key, count as u64]), None),
                "count" => (watch::tally_counts(&keys.arrange_by_self().count_arranged(), &tally), None),
                other => panic!("operator={other}: there are form, arrange, count-total and count"),
            };
            (input, probe, published)
        });
        let (_, (input, probe, arranged)) = install.expect("a dataflow that can be built");
        let (keys, inputs) = (Keys { keys: spec.get("keys") }, host.sessions(input));
        let peers = host.turn.peers as u64;
        let rounds = keys.keys.div_ceil(LOAD * peers);
        let mut running = Running { host, keys, inputs, probe, arranged, formed, tally, time: rounds };
        running.together(move |turn, input, probe| {
            for round in 0..rounds {
                let numbers = round * LOAD * peers..keys.keys.min((round + 1) * LOAD * peers);
                for number in numbers.skip(turn.index).step_by(turn.peers) {
                    input.insert(keys.key(number)).expect("the query goes on");
                }
                pass(turn, input, probe, round + 1);
            }
        });
        running.formed.store(0, Ordering::Relaxed);
        running
    }

    /// Does a share of some work on each thread: what each found.
    fn together<O: Send + 'static>(
        &mut self,
        work: impl Fn(&Turn, &mut Input<u64, u64>, &Probe<u64>) -> O + Send + Sync + 'static,
    ) -> Vec<O> {
        let probe = self.probe.clone();
        let done = self.host.together(std::mem::take(&mut self.inputs), move |turn, mut input| {
            let found = work(turn, &mut input, &probe);
            (input, found)
        });
        let (inputs, found) = done.into_iter().unzip();
        self.inputs = inputs;
        found
    }

    /// After updates below `next`: the answer.
    fn finish(mut self, operator: &str, next: u64, report: &mut Report) {
        if operator == "form" {
            report.answer = self.formed.load(Ordering::Relaxed).to_string();
        } else if let Some(arranged) = &self.arranged {
            let mut answer = Answer::default();
            let content = arranged.snapshot().expect("some time is complete");
            content.iter().for_each(|(key, (), count)| answer.add(&[key, count as u64], 1));
            report.answer = answer.hex();
        } else {
            let (keys, time) = (self.keys, self.time);
            self.tally.count_from(time);
            self.together(move |turn, input, probe| {
                for (key, diff) in (next..next + LAST).skip(turn.index).step_by(turn.peers).map(|u| keys.update(u)) {
                    input.update(key, diff).expect("the query goes on");
                }
                pass(turn, input, probe, time + 1);
            });
            report.answer = self.tally.answer().hex();
        }
        drop(self.inputs);
        self.host.stop();
    }
}

fn pass(turn: &Turn, input: &mut Input<u64, u64>, probe: &Probe<u64>, to: u64) {
    input.advance_to(to).expect("time goes on");
    turn.until(|| probe.is_past(&(to - 1)));
}

/// Closed loop.
pub fn throughput(spec: &Spec, report: &mut Report) {
    let mut running = Running::load(spec, MergePolicy::default());
    let (keys, time) = (running.keys, running.time);
    let (rounds, batch) = (spec.get::<u64>("rounds"), spec.get::<u64>("batch"));
    let all = running.together(move |turn, input, probe| {
        let (mut latencies, start) = (histogram(), Instant::now());
        let mut before = start;
        for round in 0..rounds {
            let first = (round * turn.peers as u64 + turn.index as u64) * batch;
            for (key, diff) in (first..first + batch).map(|number| keys.update(number)) {
                input.update(key, diff).expect("the query goes on");
            }
            pass(turn, input, probe, time + round + 1);
            let now = Instant::now();
            latencies.saturating_record((now - before).as_nanos() as u64);
            before = now;
        }
        (latencies, before - start)
    });
    let updates = rounds * batch * running.host.turn.peers as u64;
    let slowest = all.iter().map(|(_, took)| *took).max().expect("a worker");
    report.metric("updates", updates as f64 / slowest.as_secs_f64(), Unit::PerSecond);
    report.latencies("round", &merged(all.into_iter().map(|(latencies, _)| latencies)));
    running.time += rounds;
    running.finish(spec.text("operator"), updates, report);
}

/// Open loop.
pub fn latency(spec: &Spec, report: &mut Report) {
    let policy = match spec.text("effort") {
        "default" => MergePolicy::default(),
        _ => MergePolicy { coefficient: spec.get("effort"), ..MergePolicy::default() },
    };
    let mut running = Running::load(spec, policy);
    let (keys, time) = (running.keys, running.time);
    let seconds = |name| Duration::from_secs_f64(spec.get(name));
    let schedule = OpenLoop { rate: spec.get("rate"), warm: seconds("warm"), end: seconds("seconds") };
    let all = running.together(move |turn, input, probe| {
        let share = (turn.index as u64, turn.peers as u64);
        let serve = |from: u64, to: u64| {
            let first = from + (share.1 + share.0 - from % share.1) % share.1;
            for number in (first..to).step_by(turn.peers) {
                let (key, diff) = keys.update(number);
                input.update_at(key, time + number, diff).expect("the query goes on");
            }
            pass(turn, input, probe, time + to);
        };
        schedule.run(share, serve, || _ = turn.step())
    });
    report.latencies("", &merged(all));
    let updates = schedule.due_by(u64::MAX);
    running.time += updates;
    running.finish(spec.text("operator"), updates, report);
}

/// All in one.
fn merged(all: impl IntoIterator<Item = Histogram<u64>>) -> Histogram<u64> {
    let mut sum = histogram();
    all.into_iter().for_each(|one| sum.add(one).expect("of the same bounds"));
    sum
}
