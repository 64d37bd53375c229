//! Handles of what has ended: a retired query, a dropped engine, a source that is imported.

use super::common::*;
use kpg::prelude::*;
use kpg::runtime::Ending;
use std::time::{Duration, Instant};

type Handles = (Input<u64, (u64, u64)>, Subscription<u64, (u64, u64)>, Probe<u64>, Published<u64, u64>);

fn install(engine: &Engine) -> (Query, Handles) {
    engine
        .install("source", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.subscribe(), numbers.probe(), numbers.arrange_by_key().publish())
        })
        .unwrap()
}

/// Every call of every handle.
fn assert_all_give(handles: &mut Handles, want: &Error) {
    let (input, sub, probe, published) = handles;
    assert_eq!(input.insert((1, 1)).unwrap_err(), *want);
    assert_eq!(input.update_at((1, 1), 100, 1).unwrap_err(), *want);
    assert_eq!(input.flush().unwrap_err(), *want);
    assert_eq!(input.try_flush().unwrap_err(), *want);
    assert_eq!(input.flush_timeout(SOON).unwrap_err(), *want);
    assert_eq!(input.advance_to(100).unwrap_err(), *want);
    assert_eq!(input.clone().insert((2, 2)).unwrap_err(), *want);
    assert_eq!(sub.wait_past(&100, SOON).unwrap_err(), *want);
    assert_eq!(sub.poll().unwrap_err(), *want);
    assert_eq!(probe.wait_past(&100, SOON).unwrap_err(), *want);
    assert_eq!(published.snapshot().err(), Some(want.clone()));
    assert_eq!(published.snapshot_at(&0).err(), Some(want.clone()));
    assert_eq!(published.wait_snapshot(&100, SOON).err(), Some(want.clone()));
    assert_eq!(published.hold(&0).err(), Some(want.clone()));
    assert!(!want.to_string().is_empty());
}

/// Retired: what was complete before can still be taken, everything else is `Retired`; an import is refused.
#[test]
fn handles_of_a_retired_query() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, mut handles) = install(&engine);
    handles.0.insert((1, 1)).unwrap();
    handles.0.advance_to(1).unwrap();
    handles.2.wait_past(&0, SOON).unwrap();
    eventually("the subscription has passed 0", || !handles.1.complete().less_equal(&0));
    query.retire().unwrap();
    assert_eq!(handles.1.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
    assert_all_give(&mut handles, &Error::Retired { query: "source".into() });
    let gone = engine.install("late", |scope| {
        handles.3.import(scope);
    });
    let want = Error::SourceGone { query: "late".into(), source: "source".into() };
    assert_eq!(gone.unwrap_err(), want);
    let follow = witness.published.clone();
    assert_eq!(handles.0.follow(&follow).unwrap_err(), Error::Retired { query: "source".into() });
    witness.check();
}

/// Another engine's arrangement lies in another engine's memory.
#[test]
fn import_from_another_engine() {
    let (one, other) = (engine(), engine());
    let (_, handles) = install(&one);
    let (_, _others) = install(&other);
    let gone = other.install("importer", |scope| {
        handles.3.import(scope);
    });
    assert_eq!(gone.unwrap_err(), Error::SourceGone { query: "importer".into(), source: "source".into() });
    Witness::install(&other).check();
}

/// A query that others import from stays, unless all go; those get a typed error, transitively.
#[test]
fn retiring_what_is_imported() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (source, mut handles) = install(&engine);
    let (middle, (mut copy, published)) = engine
        .install("middle", |scope| {
            let copy = handles.3.import(scope).as_collection(|k, v| (k, v));
            (copy.subscribe(), copy.arrange_by_key().publish())
        })
        .unwrap();
    let (last, (mut end, mut own)) = engine
        .install("last", |scope| {
            let (own, more) = scope.input::<(u64, u64)>();
            (published.import(scope).as_collection(|k, v| (k, v)).concat(&more).subscribe(), own)
        })
        .unwrap();
    own.advance_to(9).unwrap();
    handles.0.insert((1, 1)).unwrap();
    handles.0.advance_to(1).unwrap();
    assert_eq!(end.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
    // Refused, and nothing has happened: a handle would be needed to try again.
    let refused = source.retire();
    let want = Error::Imported { query: "source".into(), by: vec!["middle".into(), "last".into()] };
    assert_eq!(refused, Err(want));
    handles.0.insert((2, 2)).unwrap();
    handles.0.advance_to(2).unwrap();
    assert_eq!(end.wait_past(&1, SOON).unwrap(), [((2, 2), 1, 1)]);
    assert_eq!(copy.wait_past(&1, SOON).unwrap().len(), 2);

    middle.retire_cascade().unwrap();
    assert_eq!(copy.wait_past(&2, SOON).unwrap_err(), Error::Retired { query: "middle".into() });
    let ended = Error::SourceEnded { query: "last".into(), source: "middle".into(), ending: Ending::Retired };
    assert_eq!(end.wait_past(&2, SOON).unwrap_err(), ended);
    assert_eq!(own.insert((3, 3)).unwrap_err(), ended);
    assert_eq!(end.complete(), Antichain::from_elem(2));
    last.retire().unwrap();
    // The source has lost its importers only.
    handles.0.insert((3, 3)).unwrap();
    handles.0.advance_to(3).unwrap();
    handles.2.wait_past(&2, SOON).unwrap();
    assert_eq!(handles.3.wait_snapshot(&2, SOON).unwrap().get(&3).collect::<Vec<_>>(), [(3, 1)]);
    witness.check();
}

/// An engine that is gone: every handle says `Shutdown`, at once.
#[test]
fn handles_of_a_dropped_engine() {
    let engine = engine();
    let (query, mut handles) = install(&engine);
    let snapshot = {
        handles.0.insert((1, 1)).unwrap();
        handles.0.advance_to(1).unwrap();
        handles.3.wait_snapshot(&0, SOON).unwrap()
    };
    assert_eq!(handles.1.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
    in_time("dropping an engine", move || drop(engine));
    assert_all_give(&mut handles, &Error::Shutdown);
    assert_eq!(query.error(), Some(Error::Shutdown));
    assert_eq!(query.retire(), Err(Error::Shutdown));
    assert_eq!(snapshot.get(&1).collect::<Vec<_>>(), [(1, 1)]);
    drop((handles, snapshot));
}

/// A loop that never comes to rest is cut in steps: others stay exact, and it holds up neither retire nor shutdown.
#[test]
fn a_loop_without_end() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let endless = || {
        let installed = engine.install("endless", |scope| {
            let (mut input, numbers) = scope.input::<u64>();
            let looped = numbers.iterate(|_, inner| inner.map(|number| number.wrapping_add(1)));
            let probe = looped.probe();
            if scope.index() == 0 {
                input.insert(1).unwrap();
                input.flush().unwrap();
            }
            (input, probe)
        });
        installed.unwrap()
    };
    let (query, (mut input, probe)) = endless();
    input.advance_to(1).unwrap();
    for _ in 0..10 {
        witness.check();
    }
    assert!(matches!(probe.wait_past(&0, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    query.retire().unwrap();
    let (_, (mut input, _probe)) = endless();
    input.advance_to(1).unwrap();
    witness.check();
    let start = Instant::now();
    let report = engine.shutdown(SOON / 10).unwrap();
    assert!(!report.drained, "it never comes to rest");
    assert!(start.elapsed() < SOON / 2);
}

/// A shutdown waits no longer than it is told; whoever is late stops when he can.
#[test]
fn shutdown_has_a_deadline() {
    let engine = engine();
    let (_, mut handles) = install(&engine);
    let (_, mut sleepy) = engine
        .install("sleepy", |scope| {
            let (input, numbers) = scope.input::<u64>();
            numbers.inspect(|_, _, _| std::thread::sleep(Duration::from_millis(300))).probe();
            input
        })
        .unwrap();
    sleepy.insert(1).unwrap();
    sleepy.flush().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    assert!(matches!(engine.shutdown(Duration::from_millis(20)), Err(Error::Deadline { .. })));
    assert!(start.elapsed() < Duration::from_millis(200), "{:?}", start.elapsed());
    assert_all_give(&mut handles, &Error::Shutdown);
}

/// What is retired in mid-flight gives nothing that was never true (CASES 30, 33): whole prefixes only.
#[test]
fn retired_in_mid_flight() {
    let engine = engine();
    for round in 0..50 {
        let (source, mut handles) = install(&engine);
        let (importer, mut copy) = engine
            .install("importer", |scope| handles.3.import(scope).as_collection(|k, v| (k, v)).subscribe())
            .unwrap();
        let mut input = handles.0.clone();
        let feeding = std::thread::spawn(move || {
            for t in 0_u64.. {
                let fed = (0..50).try_for_each(|k| input.insert((k, t))).and_then(|()| input.advance_to(t + 1));
                if fed.is_err() {
                    break;
                }
            }
        });
        drop(handles.0);
        std::thread::sleep(Duration::from_millis(round % 5));
        source.retire_cascade().unwrap();
        feeding.join().unwrap();
        for sub in [&mut handles.1, &mut copy] {
            // Nor is it closed, though the input was dropped: it was refused before.
            let through = sub.complete().as_single().copied().expect("a retired query seals nothing");
            let mut counts = std::collections::BTreeMap::<u64, usize>::new();
            match sub.poll() {
                Ok(changes) => changes.iter().for_each(|((_, v), _, _)| *counts.entry(*v).or_default() += 1),
                Err(error) => assert!(matches!(error, Error::Retired { .. } | Error::SourceEnded { .. })),
            }
            assert!(counts.keys().all(|t| *t < through), "through {through}: {counts:?}");
            assert!(counts.values().all(|count| *count == 50), "half an epoch: {counts:?}");
            assert_eq!(counts.len() as u64, through);
        }
        importer.retire().unwrap();
    }
}
