//! One point: an engine of its own on threads of ours, an arrangement of keys, loaded, then updated in open and in closed
//! loop.
//!
//! ```text
//! each worker's thread: load ─ meet ─ open loop ─ meet ─ closed loop ─ meet ─ step until told to stop
//! ```
//! Workers step while they wait for each other, as what one waits for may be another's work. Latency is from when a batch
//! was due until it can be read in the arrangement.
#![forbid(unsafe_code)]

use crate::options::{Load, Point};
use crate::results::{Outcome, Sample};
use hdrhistogram::Histogram;
use kpg::client::{HostedWorker, MergeState, Metrics};
use kpg::prelude::{Config, Engine, Error, Input, Published};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};
use workloads::machine::{self, Meter};
use workloads::open_loop::histogram;
use workloads::{Answer, Distribution, OpenLoop, Report, Unit};

/// Updates of a worker's share that it loads at one time.
const LOADED: u64 = 50_000;
/// Keys that are looked up at the end.
const LOOKED_UP: u64 = 20_000;

/// What a worker's thread is given once the dataflow stands.
struct Job {
    input: Input<u64, u64>,
    published: Published<u64, ()>,
}

/// What all threads of a point share.
struct Common<'a> {
    point: &'a Point,
    load: &'a Load,
    keys_are: Distribution,
    engine: &'a Engine,
    met: AtomicUsize,
    stop: AtomicBool,
}

/// What a thread found.
struct Found {
    latencies: Histogram<u64>,
    /// How long the closed loop took.
    closed: Duration,
    series: Vec<Sample>,
    /// Times that it gave updates.
    times: u64,
    /// As the closed loop ended.
    metrics: Metrics,
}

/// Runs one point.
///
/// # Errors
/// What the engine says; a distribution that is none.
///
/// # Panics
/// If a worker's thread does.
pub fn run(point: &Point, load: &Load) -> Result<Outcome, Error> {
    let keys_are = point.keys_are.parse().map_err(Error::Config)?;
    let config = Config::default().workers(point.workers).merge_policy(point.policy()).pinned(false);
    let (engine, seeds) = Engine::start_hosted(config)?;
    let (met, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let common = Common { point, load, keys_are, engine: &engine, met, stop };
    let meter = Meter::start();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (index, seed) in seeds.into_iter().enumerate() {
            let (give, jobs) = channel();
            let (tell, found) = channel();
            let common = &common;
            scope.spawn(move || {
                machine::pin(index);
                let worker = seed.start();
                let job = wait_for(&jobs, &worker, &common.stop);
                let mut thread = job.map(|job| Thread { index: index as u64, worker: &worker, job, common, round: 0 });
                if let Some(thread) = &mut thread {
                    // Who does not listen has failed.
                    let _ = tell.send(thread.live());
                }
                // The thread's input stays: the arrangement is not to close.
                while !common.stop.load(SeqCst) {
                    worker.step();
                }
            });
            threads.push((give, found));
        }
        let stop = Stop(&common.stop);
        let (_query, (input, published)) = engine.install("merge-lab", |scope| {
            let (input, keys) = scope.input::<u64>();
            (input, keys.arrange_by_self().publish())
        })?;
        for (give, _) in &threads {
            let job = Job { input: input.clone(), published: published.clone() };
            let _ = give.send(job);
        }
        drop(input);
        let found: Vec<Found> =
            threads.iter().map(|(_, found)| found.recv().expect("a worker's thread panicked")).collect();
        let others = meter.others();
        let outcome = report(&common, found, &published, others)?;
        drop(stop);
        Ok(outcome)
    })
}

/// Stops the threads, however this one ends.
struct Stop<'a>(&'a AtomicBool);
impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

fn wait_for(jobs: &Receiver<Job>, worker: &HostedWorker, stop: &AtomicBool) -> Option<Job> {
    while !stop.load(SeqCst) {
        if let Ok(job) = jobs.try_recv() {
            return Some(job);
        }
        worker.step();
    }
    None
}

struct Thread<'a> {
    index: u64,
    worker: &'a HostedWorker,
    job: Job,
    common: &'a Common<'a>,
    /// The time of what is put in next.
    round: u64,
}

impl Thread<'_> {
    fn live(&mut self) -> Found {
        let Common { point, load, .. } = self.common;
        let peers = point.workers as u64;
        let rounds = load.keys.div_ceil(LOADED * peers);
        for round in 0..rounds {
            let numbers = round * LOADED * peers..((round + 1) * LOADED * peers).min(load.keys);
            for i in self.share(numbers) {
                self.put(self.common.keys_are.key(load.keys, i), 1);
            }
            self.complete(1);
        }
        self.meet(1);
        let start = Instant::now();
        let (latencies, mut series, mut times) = self.open_loop(start);
        self.meet(2);
        let (closed, from) = (load.closed / point.batch, Instant::now());
        let first = open_loop(point, load).due_by(u64::MAX) * point.batch;
        for round in 0..closed {
            let numbers = first + round * point.batch..first + (round + 1) * point.batch;
            self.update(numbers);
            self.complete(1);
            times += 1;
            self.sample(start, &mut series);
        }
        let closed = from.elapsed();
        let metrics = self.common.engine.metrics();
        self.meet(3);
        Found { latencies, closed, series, times, metrics }
    }

    fn open_loop(&mut self, start: Instant) -> (Histogram<u64>, Vec<Sample>, u64) {
        let Common { point, load, .. } = self.common;
        let schedule = open_loop(point, load);
        let (worker, this) = (self.worker, std::cell::RefCell::new((self, Vec::new(), 0)));
        let share = (this.borrow().0.index, point.workers as u64);
        let serve = |from: u64, to: u64| {
            let (thread, series, times) = &mut *this.borrow_mut();
            thread.update(from * point.batch..to * point.batch);
            thread.complete(to - from);
            *times += 1;
            thread.sample(start, series);
        };
        let idle = || {
            worker.step();
            let (thread, series, _) = &mut *this.borrow_mut();
            thread.sample(start, series);
        };
        let latencies = schedule.run(share, serve, idle);
        let (_, series, times) = this.into_inner();
        (latencies, series, times)
    }

    fn share(&self, numbers: std::ops::Range<u64>) -> impl Iterator<Item = u64> + use<> {
        let peers = self.common.point.workers as u64;
        let first = numbers.start + (peers + self.index - numbers.start % peers) % peers;
        (first..numbers.end).step_by(peers as usize)
    }
    fn put(&mut self, key: u64, diff: i64) {
        self.job.input.update(key, diff).expect("the query runs");
    }
    fn update(&mut self, numbers: std::ops::Range<u64>) {
        for u in self.share(numbers) {
            let (key, diff) = self.common.keys_are.update(self.common.load.keys, u);
            self.put(key, diff);
        }
    }
    /// Goes on by so many times, and steps until what is before can be read.
    fn complete(&mut self, times: u64) {
        self.round += times;
        self.job.input.advance_to(self.round).expect("times go forward");
        while !self.job.published.is_complete(&(self.round - 1)) {
            self.worker.step();
        }
    }
    /// Steps until all threads have come to the `nth` meeting.
    fn meet(&self, nth: usize) {
        self.common.met.fetch_add(1, SeqCst);
        while self.common.met.load(SeqCst) < nth * self.common.point.workers {
            self.worker.step();
        }
    }
    /// Looks at the arrangement, if it is time to: one thread does.
    fn sample(&self, start: Instant, series: &mut Vec<Sample>) {
        if self.index > 0 {
            return;
        }
        let seconds = start.elapsed().as_secs_f64();
        if series.last().is_some_and(|last| seconds - last.seconds < self.common.load.sample) {
            return;
        }
        let state = state(&self.common.engine.metrics());
        let batches = state.batches as f64 / self.common.point.workers as f64;
        series.push(Sample { seconds, batches, debt: state.debt, merges: state.open_merges });
    }
}

fn open_loop(point: &Point, load: &Load) -> OpenLoop {
    let warm = Duration::from_secs_f64(load.warm);
    OpenLoop { rate: load.rate / point.batch, warm, end: warm + Duration::from_secs_f64(load.seconds) }
}

fn state(metrics: &Metrics) -> MergeState {
    metrics.queries[0].arrangements[0].merging
}

fn report(common: &Common, found: Vec<Found>, published: &Published<u64, ()>, others: f64) -> Result<Outcome, Error> {
    let Common { point, load, .. } = common;
    let mut report = Report { engine: "kpg".to_string(), workload: "merge-lab".to_string(), ..Report::default() };
    report.parameters =
        BTreeMap::from([("policy".to_string(), point.policy_name()), ("workload".to_string(), point.workload_name())]);
    report.disturbed = others;
    let mut latencies = histogram();
    found.iter().for_each(|one| latencies.add(&one.latencies).expect("of the same bounds"));
    report.latencies("", &latencies);
    let closed = load.closed / point.batch * point.batch;
    let longest = found.iter().map(|one| one.closed).max().unwrap_or_default();
    if closed > 0 {
        report.metric("throughput", closed as f64 / longest.as_secs_f64(), Unit::PerSecond);
    }
    let state = state(&found[0].metrics);
    let series = found.iter().flat_map(|one| one.series.iter().copied()).collect::<Vec<_>>();
    let mean = |of: fn(&Sample) -> f64| series.iter().map(of).sum::<f64>() / series.len().max(1) as f64;
    let most = |of: fn(&Sample) -> f64| series.iter().map(of).fold(0.0, f64::max);
    report.metric("write amplification", state.write_amplification(), Unit::Count);
    report.metric("batches", mean(|sample| sample.batches), Unit::Count);
    report.metric("most batches", most(|sample| sample.batches), Unit::Count);
    report.metric("debt", mean(|sample| sample.debt as f64), Unit::Count);
    report.metric("most debt", most(|sample| sample.debt as f64), Unit::Count);
    let (live, peak) = found[0]
        .metrics
        .arenas
        .iter()
        .fold((0, 0), |(live, peak), arena| (live + arena.live_bytes, peak + arena.peak_bytes));
    report.metric("bytes", live as f64, Unit::Bytes);
    report.metric("peak bytes", peak as f64, Unit::Bytes);

    let updates = load.keys + open_loop(point, load).due_by(u64::MAX) * point.batch + closed;
    report.metric("updates", updates as f64, Unit::Count);
    report.metric("merged", state.written as f64, Unit::Count);
    report.metric("inserted", state.inserted as f64, Unit::Count);
    report.metric("times", found.iter().map(|one| one.times).max().unwrap_or_default() as f64, Unit::Count);
    let snapshot = published.snapshot()?;
    let mut answer = Answer::default();
    snapshot.iter().for_each(|(key, (), count)| answer.add(&[key], count));
    report.answer = answer.hex();
    let from = Instant::now();
    let found: usize = (0..LOOKED_UP).map(|i| snapshot.get(&common.keys_are.key(load.keys, i * 7)).count()).sum();
    report.metric("look-up", from.elapsed().as_nanos() as f64 / LOOKED_UP as f64, Unit::Nanoseconds);
    report.metric("looked up", found as f64, Unit::Count);
    Ok(Outcome { point: (*point).clone(), load: (*load).clone(), report, series })
}
