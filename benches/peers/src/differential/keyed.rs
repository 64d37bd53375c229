//! One input of keys, and what is maintained of it: arranged, or counted.
//!
//! Reads of the past are given up as soon as a time is complete, so that the trace may compact.
#![forbid(unsafe_code)]

use super::clock::{Clock, WARM, closed};
use super::crew;
use crate::setting::Setting;
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::CountTotal;
use differential_dataflow::operators::arrange::TraceAgent;
use differential_dataflow::trace::cursor::cursor_list;
use differential_dataflow::trace::implementations::KeySpine;
use differential_dataflow::trace::implementations::spine_fueled::SpineBatch;
use differential_dataflow::trace::{Cursor, TraceReader};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;
use timely::dataflow::operators::{Inspect, Probe, probe};
use timely::progress::Antichain;
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;
use workloads::generate::Keys;
use workloads::open_loop::{OpenLoop, histogram};
use workloads::{Answer, Report, Spec, Unit};

/// Keys that a worker loads at one time.
const LOAD: u64 = 100_000;
/// Updates of the round whose changes are the answer.
const LAST: u64 = 1000;

/// What comes out beside progress.
#[derive(Default)]
struct Seen {
    /// How many updates came: in batches, as counts, or through the map.
    came: Cell<u64>,
    /// Once this is some: each change of a count.
    changes: RefCell<Option<Vec<((u64, isize), isize)>>>,
}

/// A dataflow of one input.
struct Keyed {
    input: InputSession<u64, u64, isize>,
    probe: probe::Handle<u64>,
    trace: Option<TraceAgent<KeySpine<u64, u64, isize>>>,
    seen: Rc<Seen>,
}

impl Keyed {
    fn new(worker: &mut Worker, operator: &str, mapped: bool) -> Result<Self, String> {
        worker.dataflow(|scope| {
            let (input, mut keys) = scope.new_collection::<u64, isize>();
            let seen = Rc::new(Seen::default());
            if mapped {
                let (seen, counts) = (Rc::clone(&seen), u64::from(operator == "map"));
                keys = keys.map(move |key| {
                    seen.came.set(seen.came.get() + counts);
                    key
                });
            }
            let (probe, trace) = match operator {
                "map" => (keys.probe().0, None),
                "form" => {
                    let seen = Rc::clone(&seen);
                    let spans = keys.arrange_by_self().stream.inspect(move |span| {
                        let formed = span.inner.as_ref().map_or(0, |batch| batch.len());
                        seen.came.set(seen.came.get() + formed as u64);
                    });
                    (spans.probe().0, None)
                }
                "arrange" => {
                    let arranged = keys.arrange_by_self();
                    (arranged.stream.probe().0, Some(arranged.trace))
                }
                "count-total" => (watched(keys.count_total(), &seen), None),
                "count" => (watched(keys.count(), &seen), None),
                _ => return Err(format!("operator={operator}: there are map, form, arrange, count-total, count")),
            };
            Ok(Keyed { input, probe, trace, seen })
        })
    }
    /// Moves the input to `time`, and steps until all before is done.
    fn finish(&mut self, worker: &mut Worker, time: u64) {
        self.input.advance_to(time);
        self.input.flush();
        while self.probe.less_than(&time) {
            worker.step();
        }
        if let Some(trace) = &mut self.trace {
            trace.set_logical_compaction(AntichainRef::new(&[time]));
            trace.set_physical_compaction(AntichainRef::new(&[time]));
        }
    }
    fn update(&mut self, keys: Keys, number: u64) {
        let (key, diff) = keys.update(number);
        self.input.update(key, diff as isize);
    }
    /// Puts the first keys in, all workers in turn; returns the time after.
    fn load(&mut self, worker: &mut Worker, keys: Keys) -> u64 {
        let (index, peers) = (worker.index(), worker.peers());
        let at_a_time = LOAD * peers as u64;
        let rounds = keys.keys.div_ceil(at_a_time);
        for round in 0..rounds {
            let numbers = round * at_a_time..keys.keys.min((round + 1) * at_a_time);
            numbers.skip(index).step_by(peers).for_each(|number| self.input.insert(keys.key(number)));
            self.finish(worker, round + 1);
        }
        self.seen.came.set(0);
        rounds
    }
    /// After updates below `next`, before `time`, this worker's part of the answer: what is in the arrangement, or what
    /// changes of the counts if more updates come.
    fn answer(&mut self, worker: &mut Worker, keys: Keys, next: u64, time: u64) -> Answer {
        if self.trace.is_some() {
            return self.content().0;
        }
        *self.seen.changes.borrow_mut() = Some(Vec::new());
        let numbers = (next..next + LAST).skip(worker.index()).step_by(worker.peers());
        numbers.for_each(|number| self.update(keys, number));
        self.finish(worker, time + 1);
        let (changes, mut answer) = (self.seen.changes.take().unwrap_or_default(), Answer::default());
        changes.iter().for_each(|&((key, count), diff)| answer.add(&[key, count as u64], diff as i64));
        answer
    }
    /// Each key with its count, and how many there are.
    fn content(&mut self) -> (Answer, u64) {
        let (mut answer, mut keys) = (Answer::default(), 0);
        let trace = self.trace.as_mut().expect("what is arranged has a trace");
        let batches = trace.batches_through(Antichain::new().borrow()).expect("all of it can be had");
        let (mut cursor, batches) = cursor_list(batches);
        while let Some(&key) = cursor.get_key(&batches) {
            let mut count = 0;
            while cursor.val_valid(&batches) {
                cursor.map_times(&batches, |_, diff| count += *diff);
                cursor.step_val(&batches);
            }
            if count != 0 {
                answer.add(&[key, count as u64], 1);
                keys += 1;
            }
            cursor.step_key(&batches);
        }
        (answer, keys)
    }
}

/// Notes how many counts change, and which once that is asked for.
fn watched(counts: VecCollection<'_, u64, (u64, isize), isize>, seen: &Rc<Seen>) -> probe::Handle<u64> {
    let seen = Rc::clone(seen);
    let noted = counts.inspect_core(move |event| {
        let Ok((_, updates)) = event else { return };
        seen.came.set(seen.came.get() + updates.len() as u64);
        if let Some(changes) = seen.changes.borrow_mut().as_mut() {
            changes.extend(updates.iter().map(|&(datum, _, diff)| (datum, diff)));
        }
    });
    noted.probe().0
}

/// Closed loop: a round's updates are put in when those of the round before are done.
pub fn throughput(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (operator, keys) = (spec.text("operator").to_string(), Keys { keys: spec.get("keys") });
    let (batch, rounds): (u64, u64) = (spec.get("batch"), spec.get("rounds"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index() as u64, worker.peers() as u64);
        let mut keyed = Keyed::new(worker, &operator, false)?;
        let time = keyed.load(worker, keys);
        barrier.wait();
        let mut clock = Clock::start();
        for round in 0..rounds {
            let first = (round * peers + index) * batch;
            (first..first + batch).for_each(|number| keyed.update(keys, number));
            keyed.finish(worker, time + round + 1);
            clock.round();
        }
        let formed = keyed.seen.came.get();
        let answer = match operator.as_str() {
            "form" => Answer::default(),
            _ => keyed.answer(worker, keys, rounds * batch * peers, time + rounds),
        };
        Ok::<_, String>((clock, formed, answer))
    });
    let (mut all, mut slowest, mut formed, mut answer) = (histogram(), Duration::ZERO, 0, Answer::default());
    for outcome in outcomes {
        let (clock, part, hash) = outcome?;
        slowest = slowest.max(clock.elapsed());
        all.add(&clock.latencies).expect("of the same bounds");
        formed += part;
        answer.merge(hash);
    }
    let updates = (batch * rounds) as f64 * spec.workers() as f64;
    report.metric("updates", updates / slowest.as_secs_f64(), Unit::PerSecond);
    report.latencies("round", &all);
    report.answer = if spec.text("operator") == "form" { formed.to_string() } else { answer.hex() };
    Ok(())
}

/// Open loop: whatever is due is put in, each update at its own time, whenever all before is done.
pub fn latency(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (operator, keys) = (spec.text("operator").to_string(), Keys { keys: spec.get("keys") });
    let seconds = |name| Duration::from_secs_f64(spec.get(name));
    let schedule = OpenLoop { rate: spec.get("rate"), warm: seconds("warm"), end: seconds("seconds") };
    let updates = schedule.due_by(u64::MAX);
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let share = (worker.index() as u64, worker.peers() as u64);
        let mut keyed = Keyed::new(worker, &operator, false)?;
        let base = keyed.load(worker, keys);
        let stepping = RefCell::new(&mut *worker);
        barrier.wait();
        let serve = |from: u64, to: u64| {
            let first = from + (share.1 + share.0 - from % share.1) % share.1;
            for number in (first..to).step_by(share.1 as usize) {
                let (key, diff) = keys.update(number);
                keyed.input.update_at(key, base + number, diff as isize);
            }
            keyed.finish(&mut stepping.borrow_mut(), base + to);
        };
        let latencies = schedule.run(share, serve, || {
            stepping.borrow_mut().step();
        });
        Ok::<_, String>((latencies, keyed.answer(worker, keys, updates, base + updates)))
    });
    let (mut all, mut answer) = (histogram(), Answer::default());
    for outcome in outcomes {
        let (latencies, part) = outcome?;
        all.add(&latencies).expect("of the same bounds");
        answer.merge(part);
    }
    report.latencies("", &all);
    report.answer = answer.hex();
    Ok(())
}

/// One record a round, put in by the first worker.
pub fn single(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (operator, rounds) = (spec.text("operator").to_string(), spec.get::<u64>("rounds"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let mut keyed = Keyed::new(worker, &operator, true)?;
        barrier.wait();
        let clock = closed(rounds, |round| {
            if worker.index() == 0 {
                keyed.input.insert(round);
            }
            keyed.finish(worker, round + 1);
        });
        let came = if keyed.trace.is_some() { keyed.content().1 } else { keyed.seen.came.get() };
        Ok::<_, String>((clock, came))
    });
    let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, _>>()?;
    outcomes[0].0.report(report);
    report.answer = (outcomes.iter().map(|(_, came)| came).sum::<u64>() - WARM).to_string();
    Ok(())
}
