//! Rounds in which hardly any data moves: what progress and scheduling cost.
#![forbid(unsafe_code)]

use super::clock::{Clock, WARM, closed};
use super::crew;
use crate::setting::Setting;
use differential_dataflow::input::Input;
use differential_dataflow::trace::TraceReader;
use differential_dataflow::trace::implementations::spine_fueled::SpineBatch;
use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::rc::Rc;
use std::time::Instant;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::channels::pact::Pipeline;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{ConnectLoop, Feedback, Input as _, Probe};
use timely::progress::frontier::AntichainRef;
use timely::worker::Worker;
use workloads::generate::{below, rnd};
use workloads::{Report, Spec, Unit, machine};

/// Rounds that no worker begins before all have ended the one before.
pub fn barrier(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let rounds: u64 = spec.get("rounds");
    let clocks = crew::run(spec, setting, move |worker, barrier| {
        barrier.wait();
        if setting.inputs { by_inputs(worker, rounds) } else { by_a_loop(worker, rounds) }
    });
    clocks[0].report(report);
    report.answer = clocks[0].latencies.len().to_string();
    Ok(())
}

/// A cycle in which each worker holds a time until the frontier has reached it, then the next: timely's own example.
fn by_a_loop(worker: &mut Worker, rounds: u64) -> Clock {
    let clock = Rc::new(RefCell::new(Clock::start()));
    worker.dataflow::<u64, _, _>(|scope| {
        let clock = Rc::clone(&clock);
        let (handle, stream) = scope.feedback::<Vec<u64>>(1);
        let held =
            stream.unary_frontier::<CapacityContainerBuilder<_>, _, _, _>(Pipeline, "Barrier", |capability, _| {
                let mut held = Some(capability);
                move |(input, frontier), _output| {
                    input.for_each_stamp(|_, _| {});
                    let passed = |time: &u64| !frontier.frontier().less_equal(time);
                    while let Some(capability) = held.take_if(|capability| passed(capability.time())) {
                        let next = capability.time() + 1;
                        match next.cmp(&WARM) {
                            Ordering::Less => {}
                            Ordering::Equal => *clock.borrow_mut() = Clock::start(),
                            Ordering::Greater => clock.borrow_mut().round(),
                        }
                        held = (next < WARM + rounds).then(|| capability.delayed(&next));
                    }
                }
            });
        held.connect_loop(handle);
    });
    while worker.step() {}
    clock.replace(Clock::start())
}

/// Each worker's input moves, and it waits for a probe.
fn by_inputs(worker: &mut Worker, rounds: u64) -> Clock {
    let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
        let (input, stream) = scope.new_input::<Vec<u64>>();
        (input, stream.probe().0)
    });
    closed(rounds, |round| {
        input.advance_to(round + 1);
        while probe.less_than(&(round + 1)) {
            worker.step();
        }
    })
}

/// A record, or none but the passing of time, through maps.
pub fn chain(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (length, records, rounds): (usize, u64, u64) = (spec.get("length"), spec.get("records"), spec.get("rounds"));
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let came = Rc::new(Cell::new(0));
        let (mut input, probe) = worker.dataflow::<u64, _, _>(|scope| {
            let (input, mut data) = scope.new_collection::<u64, isize>();
            for _ in 1..length {
                data = data.map(|datum| datum + 1);
            }
            let came = Rc::clone(&came);
            let last = data.map(move |datum| {
                came.set(came.get() + 1);
                datum + 1
            });
            (input, last.probe().0)
        });
        barrier.wait();
        let clock = closed(rounds, |round| {
            if worker.index() == 0 {
                (0..records).for_each(|_| input.insert(round));
            }
            input.advance_to(round + 1);
            input.flush();
            while probe.less_than(&(round + 1)) {
                worker.step();
            }
        });
        (clock, came.get())
    });
    outcomes[0].0.report(report);
    report.answer = (outcomes.iter().map(|(_, came)| came).sum::<u64>() - WARM * records).to_string();
    Ok(())
}

/// Many dataflows of which one gets an update, and all move.
pub fn idle(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let (dataflows, length): (usize, usize) = (spec.get("dataflows"), spec.get("length"));
    let rounds: u64 = spec.get("rounds");
    let empty = machine::resident();
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let start = Instant::now();
        let mut built: Vec<_> = (0..dataflows)
            .map(|_| {
                worker.dataflow::<u64, _, _>(|scope| {
                    let (input, mut data) = scope.new_collection::<u64, isize>();
                    for _ in 0..length {
                        data = data.map(|datum| datum + 1);
                    }
                    let arranged = data.map(|datum| (datum, ())).arrange_by_key();
                    (input, arranged.stream.probe().0, arranged.trace)
                })
            })
            .collect();
        let took = start.elapsed();
        barrier.wait();
        let mut clock = Clock::start();
        for round in 0..rounds {
            if worker.index() == 0 {
                built[below(rnd(60, round), dataflows as u64) as usize].0.insert(round);
            }
            for (input, _, _) in &mut built {
                input.advance_to(round + 1);
                input.flush();
            }
            for (_, probe, trace) in &mut built {
                while probe.less_than(&(round + 1)) {
                    worker.step();
                }
                trace.set_logical_compaction(AntichainRef::new(&[round + 1]));
                trace.set_physical_compaction(AntichainRef::new(&[round + 1]));
            }
            clock.round();
        }
        let (mut came, resident) = (0, machine::resident());
        for (_, _, trace) in &mut built {
            trace.map_spans(|span| came += span.inner.as_ref().map_or(0, |batch| batch.len()));
        }
        (took, clock, resident, came)
    });
    let (took, clock, resident, _) = &outcomes[0];
    report.metric("built", took.as_nanos() as f64, Unit::Nanoseconds);
    clock.report(report);
    report.metric("resident", resident.saturating_sub(empty) as f64, Unit::Bytes);
    report.answer = outcomes.iter().map(|(.., came)| came).sum::<usize>().to_string();
    Ok(())
}
