//! The program is retired, or loses one of its handles, after every number of steps.

use super::common::{SOON, Witness, simulated, unaccounted};
use super::program::{Fuse, Importer, Pair32, Program, ROUNDS};
use super::witness::live;
use kpg::prelude::*;
use kpg::runtime::Ending;
use kpg::simulation::Simulation;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What ends, and what then must hold.
#[derive(Copy, Clone, Debug, PartialEq)]
enum End {
    /// Nothing, for comparison.
    Nothing,
    /// The program, while nobody imports from it.
    Retire,
    /// The program, with its importer.
    Cascade,
    /// Its input is dropped, with a round that it has gathered: that round is the last, and it closes.
    Input,
    /// Its subscription.
    Results,
    /// Its probe.
    Probe,
    /// Its published arrangement; an importer keeps what it has.
    Published,
    /// The importer's subscription, with its `Query`.
    Copy,
    /// Its `Query`: nothing changes, but that it can only be closed from then on.
    Query,
}

/// All is put in, then comes the end after `steps` rounds of steps: whether the workers were still busy then, and how many
/// bytes were live when they had come to rest and what handles gave was taken.
fn run(end: End, steps: u64) -> (bool, usize) {
    let engine = simulated(3);
    let mut witness = Witness::install(&engine);
    let before = unaccounted(&engine);
    let mut program = Program::install(&engine, &Fuse::new(0), &witness).unwrap();
    let mut importer = (end != End::Retire).then(|| Importer::install(&engine, &program).unwrap());
    let mut last = ROUNDS - 1;
    (0..=last).for_each(|t| program.feed(t).unwrap());
    (0..=last).for_each(|_| witness.put_in().unwrap());
    let busy = (0..steps).all(|_| engine.step());
    let mut gone = false;
    match end {
        End::Nothing => {}
        End::Retire => {
            let _ = program.query.as_ref().unwrap().retire_timeout(Duration::ZERO);
            gone = true;
        }
        End::Cascade => {
            let _ = program.query.as_ref().unwrap().retire_cascade_timeout(Duration::ZERO);
            gone = true;
        }
        End::Input => {
            program.gather(ROUNDS).unwrap();
            drop(program.input.take());
            last = ROUNDS;
            witness.put_in().unwrap();
        }
        End::Results => drop(program.results.take()),
        End::Probe => drop(program.probe.take()),
        End::Published => drop(program.published.take()),
        End::Copy => drop(importer.take()),
        End::Query => drop(program.query.take()),
    }
    engine.settle();
    let retired = Error::Retired { query: "program".into() };
    if gone {
        // What was complete before stays, all of it; nothing comes after it.
        if let Err(error) = program.hear(last) {
            assert_eq!(error, retired);
        }
        let more = program.results.as_mut().unwrap().wait_past(&ROUNDS, SOON);
        assert_eq!(more.unwrap_err(), retired);
        assert_eq!(program.probe.as_ref().unwrap().wait_past(&ROUNDS, SOON), Err(retired.clone()));
        assert_eq!(program.input.as_mut().unwrap().advance_to(ROUNDS + 1), Err(retired));
        if let Some(importer) = &mut importer {
            let heard = importer.copy.wait_past(&ROUNDS, SOON);
            let Err(Error::SourceEnded { query, source, ending: Ending::Retired }) = &heard else {
                panic!("{end:?} after {steps} steps: the importer heard {heard:?}");
            };
            assert_eq!((query.as_str(), source.as_str()), ("importer", "program"));
        }
    } else {
        if program.results.is_some() {
            program.hear(last).unwrap();
        }
        if let Some(importer) = &mut importer {
            importer.hear(last).unwrap();
        }
        if let Some(probe) = &program.probe {
            assert!(probe.is_past(&last));
        }
    }
    witness.catch_up().unwrap();
    let kept = live(&engine);
    drop(importer);
    if end == End::Query {
        // Nobody can take it down: it closes with its handles and with what it imports.
        let results = program.results.take().unwrap();
        drop(program);
        engine.settle();
        assert_eq!(unaccounted(&engine), before, "{end:?} after {steps} steps");
        witness.check();
        assert!(!results.complete().is_empty(), "{end:?} after {steps} steps: what it imports is open");
        drop(witness);
        engine.settle();
        assert!(results.complete().is_empty(), "{end:?} after {steps} steps: it has not closed");
        let queries = engine.metrics().queries;
        assert!(queries.len() == 3 && queries.iter().all(|query| !query.ended), "{queries:?}");
        return (busy, kept);
    }
    program.end(|| {
        engine.step();
    });
    engine.settle();
    assert_eq!(unaccounted(&engine), before, "{end:?} after {steps} steps");
    assert_eq!(engine.metrics().queries.len(), 1);
    witness.check();
    (busy, kept)
}

fn at_every_step(end: End) {
    let mut steps = 0;
    loop {
        let (busy, kept) = run(end, steps);
        if matches!(end, End::Results | End::Probe | End::Published | End::Copy) {
            let with_all = run(End::Nothing, steps).1;
            assert!(
                kept <= with_all,
                "{end:?} after {steps} steps: {kept} bytes are kept, {with_all} with all handles"
            );
        }
        if !busy {
            break;
        }
        steps += 1;
    }
    println!("{end:?}: {steps} steps");
    assert!(steps > 10, "{end:?}: it rested after {steps} steps");
}

#[test]
fn retired_at_every_step() {
    at_every_step(End::Retire);
}

#[test]
fn retired_with_its_importer_at_every_step() {
    at_every_step(End::Cascade);
}

#[test]
fn each_handle_dropped_at_every_step() {
    [End::Input, End::Results, End::Probe, End::Published, End::Copy, End::Query].into_iter().for_each(at_every_step);
}

/// A query that is retired in the middle of a step, by user code of another one, which then drops its input: what the worker
/// still does for it in that step closes nothing, for itself or for its importer. Nor is what was gathered meanwhile part of
/// anything.
#[test]
fn an_input_dropped_after_the_end_closes_nothing() {
    type Doomed = Arc<Mutex<Option<(Query, Input<u64, Pair32>)>>>;
    for seed in 0..16 {
        let engine = Simulation::new(seed).workers(1).start().unwrap();
        let doomed = Doomed::default();
        let (_other, mut other) = engine
            .install("other", |scope| {
                let (input, numbers) = scope.input::<u64>();
                let doomed = doomed.clone();
                let ends = numbers.inspect(move |_, _, _| {
                    if let Some((query, input)) = doomed.lock().unwrap().take() {
                        let _ = query.retire_cascade_timeout(Duration::ZERO);
                        drop(input);
                    }
                });
                ends.probe();
                input
            })
            .unwrap();
        let (query, (mut input, mut results, published)) = engine
            .install("doomed", |scope| {
                let (input, numbers) = scope.input::<Pair32>();
                (input, numbers.subscribe(), numbers.arrange_by_key().publish())
            })
            .unwrap();
        let (_importer, mut copy) = engine
            .install("importer", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe())
            .unwrap();
        input.insert((1, 1)).unwrap();
        input.advance_to(1).unwrap();
        engine.settle();
        // Both inputs are due in the next step, the other one's first.
        other.insert(1).unwrap();
        other.flush().unwrap();
        input.insert((2, 2)).unwrap();
        input.flush().unwrap();
        input.insert((3, 3)).unwrap();
        *doomed.lock().unwrap() = Some((query, input));
        engine.settle();
        assert!(doomed.lock().unwrap().is_none());
        for of in [&mut results, &mut copy] {
            assert_eq!(of.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
            assert!(matches!(of.poll(), Err(Error::Retired { .. } | Error::SourceEnded { .. })));
            assert_eq!(of.complete(), Antichain::from_elem(1));
        }
    }
}
