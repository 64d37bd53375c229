//! A large arrangement: what it takes up, and what dataflows on it cost.
#![forbid(unsafe_code)]

use super::clock::Clock;
use super::crew;
use super::sums::{Sums, total};
use crate::setting::Setting;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::cursor::cursor_list;
use differential_dataflow::trace::implementations::spine_fueled::SpineBatch;
use differential_dataflow::trace::implementations::{KeySpine, ValSpine};
use differential_dataflow::trace::{BatchCursor, BatchKey, BatchVal, Cursor, Navigable, Trace, TraceReader};
use differential_dataflow::{AsCollection, ExchangeData, VecCollection};
use std::time::{Duration, Instant};
use timely::dataflow::operators::{Probe, ToStream, probe};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;
use workloads::generate::{Keys, below, rnd};
use workloads::{Answer, Report, Spec, Unit, machine};

/// At most so long is waited for merges, where any are made without updates.
const SETTLING: Duration = Duration::from_secs(20);
/// Rounds without an update, in which the allocator may give back what is free.
const EMPTY_ROUNDS: u64 = 2000;

/// An input and what is arranged of it.
struct Stored<D: ExchangeData, Tr: TraceReader> {
    input: InputSession<u64, D, isize>,
    probe: probe::Handle<u64>,
    trace: TraceAgent<Tr>,
    time: u64,
}

impl<D, Tr> Stored<D, Tr>
where
    D: ExchangeData,
    Tr: Trace<Time = u64, Batch: Navigable + SpineBatch> + 'static,
{
    fn new(
        worker: &mut Worker,
        arrange: impl for<'s> FnOnce(VecCollection<'s, u64, D, isize>) -> Arranged<'s, TraceAgent<Tr>>,
    ) -> Self {
        worker.dataflow(|scope| {
            let (input, data) = scope.new_collection();
            let arranged = arrange(data);
            Stored { input, probe: arranged.stream.probe().0, trace: arranged.trace, time: 0 }
        })
    }
    /// Ends the current time. The trace can still be read at it.
    fn finish(&mut self, worker: &mut Worker) {
        self.time += 1;
        self.input.advance_to(self.time);
        self.input.flush();
        while self.probe.less_than(&self.time) {
            worker.step();
        }
        self.trace.set_logical_compaction(AntichainRef::new(&[self.time - 1]));
        self.trace.set_physical_compaction(AntichainRef::new(&[self.time]));
    }
    fn load(&mut self, worker: &mut Worker, count: u64, batch: u64, datum: impl Fn(u64) -> D) {
        let (index, peers) = (worker.index(), worker.peers());
        let step = batch * peers as u64;
        for first in (0..count).step_by(step as usize) {
            let numbers = first..count.min(first + step);
            numbers.skip(index).step_by(peers).for_each(|number| self.input.insert(datum(number)));
            self.finish(worker);
        }
    }
    /// Merges on until all is one batch, if merges are made without updates.
    fn settle(&mut self, worker: &mut Worker, setting: Setting) {
        (0..EMPTY_ROUNDS).for_each(|_| self.finish(worker));
        let start = Instant::now();
        while setting.idle.is_some() && self.batches() > 1 && start.elapsed() < SETTLING {
            worker.step();
        }
    }
    fn batches(&self) -> usize {
        let mut batches = 0;
        self.trace.map_spans(|span| batches += usize::from(span.inner.as_ref().is_some_and(|batch| batch.len() > 0)));
        batches
    }
    fn content(&mut self, parts: impl Fn(BatchKey<'_, Tr>, BatchVal<'_, Tr>) -> [u64; 2], used: usize) -> Answer
    where
        BatchCursor<Tr>: Cursor<Time = u64, Diff = isize>,
    {
        let mut answer = Answer::default();
        let batches = self.trace.batches_through(Antichain::new().borrow()).expect("all of it can be had");
        let (mut cursor, batches) = cursor_list(batches);
        while let Some(key) = cursor.get_key(&batches) {
            while let Some(val) = cursor.get_val(&batches) {
                let mut count = 0;
                cursor.map_times(&batches, |_, diff| count += BatchCursor::<Tr>::owned_diff(diff));
                answer.add(&parts(key, val)[..used], count as i64);
                cursor.step_val(&batches);
            }
            cursor.step_key(&batches);
        }
        answer
    }
}

/// The whole life of a dataflow, over and over: built, imports, joins, all results known, shut down.
pub fn join(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (keys, queries, repeat) = (spec.get::<u64>("keys"), spec.get::<u64>("queries"), spec.get::<u64>("repeat"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index(), worker.peers());
        let mut base = Stored::<u64, KeySpine<u64, u64, isize>>::new(worker, |keys| keys.arrange_by_self());
        base.load(worker, keys, 100_000, |number| number);
        base.settle(worker, setting);
        let sums = Sums::default();
        barrier.wait();
        let mut clock = Clock::start();
        for round in 0..repeat {
            let numbers = (round * queries..(round + 1) * queries).skip(index).step_by(peers);
            let asked: Vec<_> = numbers.map(|number| (below(rnd(7, number), keys), 0, 1isize)).collect();
            clock.skip();
            let (probe, mut button) = worker.dataflow(|scope| {
                let (base, button) = base.trace.import_core(scope, "base");
                let asked = asked.to_stream(scope).as_collection().arrange_by_self();
                let results = asked.join_core(base, |key, (), ()| Some(*key));
                (sums.watch(results, |_| 0).probe().0, button)
            });
            while probe.less_than(&base.time) {
                worker.step();
            }
            button.press();
            while worker.installed_dataflows().len() > 1 {
                worker.step();
            }
            clock.round();
        }
        (clock, sums.get())
    });
    report.latencies("", &outcomes[0].0.latencies);
    report.answer = total(outcomes.iter().map(|(_, sums)| *sums)).0.to_string();
    Ok(())
}

/// Many dataflows on one arrangement, each joined with a key of its own; then keys come and go.
pub fn attached(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (keys, queries) = (Keys { keys: spec.get("keys") }, spec.get::<u64>("queries"));
    let (batch, rounds) = (spec.get::<u64>("batch"), spec.get::<u64>("rounds"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index(), worker.peers());
        let mut base = Stored::<u64, KeySpine<u64, u64, isize>>::new(worker, |keys| keys.arrange_by_self());
        base.load(worker, keys.keys, 100_000, |number| keys.key(number));
        let sums = Sums::default();
        barrier.wait();
        let start = Instant::now();
        let attach = |query| {
            let asked = (index == 0).then(|| (below(rnd(7, query), keys.keys), 0, 1isize));
            worker.dataflow(|scope| {
                let asked = asked.to_stream(scope).as_collection().arrange_by_self();
                let results = asked.join_core(base.trace.import(scope), |key, (), ()| Some(*key));
                sums.watch(results, |_| 0).probe().0
            })
        };
        let probes: Vec<_> = (0..queries).map(attach).collect();
        let finish = |worker: &mut Worker, time: u64| {
            for probe in &probes {
                while probe.less_than(&time) {
                    worker.step();
                }
            }
        };
        finish(worker, base.time);
        let took = start.elapsed();
        let mut clock = Clock::start();
        for round in 0..rounds {
            for number in (round * batch..(round + 1) * batch).skip(index).step_by(peers) {
                let (key, diff) = keys.update(number);
                base.input.update(key, diff as isize);
            }
            base.finish(worker);
            finish(worker, base.time);
            clock.round();
        }
        (took, clock, machine::resident(), sums.get())
    });
    let (took, clock, resident, _) = &outcomes[0];
    report.metric("attached", took.as_nanos() as f64, Unit::Nanoseconds);
    report.metric("updates", (rounds * batch) as f64 / clock.elapsed().as_secs_f64(), Unit::PerSecond);
    report.latencies("round", &clock.latencies);
    report.metric("resident", *resident as f64, Unit::Bytes);
    report.answer = total(outcomes.iter().map(|(.., sums)| *sums)).0.to_string();
    Ok(())
}

/// Bytes an update, as loaded and merged, and at most while it was loaded.
pub fn memory(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let updates: u64 = spec.get("updates");
    match spec.text("kind") {
        "keys" => occupied::<u64, KeySpine<u64, u64, isize>>(
            (spec, setting, report),
            |keys| keys.arrange_by_self(),
            |number| rnd(3, number),
            |stored| stored.content(|key, ()| [*key, 0], 1),
        ),
        "edges" => occupied::<(u32, u32), ValSpine<u32, u32, u64, isize>>(
            (spec, setting, report),
            |edges| edges.arrange_by_key(),
            move |number| (below(rnd(4, number), updates / 10) as u32, (rnd(5, number) >> 32) as u32),
            |stored| stored.content(|source, target| [u64::from(*source), u64::from(*target)], 2),
        ),
        kind => return Err(format!("kind={kind}: there are keys and edges")),
    }
    Ok(())
}

fn occupied<D, Tr>(
    (spec, setting, report): (&Spec, Setting, &mut Report),
    arrange: impl for<'s> Fn(VecCollection<'s, u64, D, isize>) -> Arranged<'s, TraceAgent<Tr>> + Send + Sync + 'static,
    datum: impl Fn(u64) -> D + Send + Sync + 'static,
    content: impl Fn(&mut Stored<D, Tr>) -> Answer + Send + Sync + 'static,
) where
    D: ExchangeData,
    Tr: Trace<Time = u64, Batch: Navigable + SpineBatch> + 'static,
{
    let (updates, batch) = (spec.get::<u64>("updates"), spec.get::<u64>("batch"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let mut stored = Stored::new(worker, &arrange);
        let empty = machine::resident();
        barrier.wait();
        let start = Instant::now();
        stored.load(worker, updates, batch, &datum);
        let (loading, loaded, peak) = (start.elapsed(), machine::resident(), machine::peak_resident());
        stored.settle(worker, setting);
        let (settled, batches) = (machine::resident(), stored.batches());
        let bytes = [loaded, settled, peak].map(|bytes| bytes.saturating_sub(empty));
        (loading, bytes, batches, content(&mut stored))
    });
    let (loading, [loaded, settled, peak], batches, _) = outcomes[0];
    report.metric("loading", loading.as_nanos() as f64, Unit::Nanoseconds);
    for (name, bytes) in [("loaded resident", loaded), ("settled resident", settled), ("peak resident", peak)] {
        report.metric(name, bytes as f64 / updates as f64, Unit::Bytes);
    }
    report.metric("settled batches", batches as f64, Unit::Count);
    let mut answer = Answer::default();
    outcomes.iter().for_each(|(.., part)| answer.merge(*part));
    report.answer = answer.hex();
}
