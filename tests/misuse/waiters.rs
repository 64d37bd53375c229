//! The whole table (Invariant 31): each kind of waiter is woken by each kind of end, with that end's error.
//!
//! ```text
//!              probe  subscription  future  blocked flush  snapshot wait
//! retired        ✓         ✓          ✓           ✓              ✓
//! …
//! ```
//! Worker 0 is kept inside a step all the while, so that queues stay full: an end reaches waiters without it.

use super::common::*;
use kpg::prelude::*;
use kpg::runtime::{Ending, Failure};
use std::sync::mpsc;
use std::time::Duration;

type Pairs = Input<u64, (u64, u64)>;

fn panics_at_13(pair: (u64, u64)) -> (u64, u64) {
    assert!(pair.0 != 13, "not 13");
    pair
}

/// Ends something of (engine, source, target), given an input of each of both that poisons it.
type End = fn(Engine, Query, Query, Pairs, Pairs);

/// Has worker 0 kept busy and one waiter of each kind asleep on the query "target"; does `end`; compares.
fn row(want: &Error, end: End) {
    let engine = engine();
    let (source, (bad_source, published)) = engine
        .install("source", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.map(panics_at_13).arrange_by_key().publish())
        })
        .unwrap();
    let (target, (mut full, bad_target, probe, mut sub, mut future, snapshots)) = engine
        .install("target", |scope| {
            let (full, a) = scope.input_with::<(u64, u64), i64>(1);
            let (bad, b) = scope.input::<(u64, u64)>();
            let imported = published.import(scope).as_collection(|k, v| (k, v));
            let all = imported.concat(&a).concat(&b.map(panics_at_13));
            (full, bad, all.probe(), all.subscribe(), all.subscribe(), all.arrange_by_key().publish())
        })
        .unwrap();
    let blocked = Blocked::worker_0(&engine);
    let (sender, results) = mpsc::channel();
    let spawn = |kind: &'static str, call: Box<dyn FnOnce() -> Result<(), Error> + Send>| {
        let sender = sender.clone();
        std::thread::spawn(move || sender.send((kind, call())));
    };
    let long = SOON * 2;
    spawn("probe", Box::new(move || probe.wait_past(&7, long)));
    spawn("subscription", Box::new(move || sub.wait_past(&7, long).map(drop)));
    spawn("future", Box::new(move || super::owners::block_on(future.past(7)).map(drop)));
    spawn("snapshot", Box::new(move || snapshots.wait_snapshot(&7, long).map(drop)));
    // The first goes to worker 0, which does not take it; there is no room for the second.
    full.insert((1, 1)).unwrap();
    full.flush().unwrap();
    full.insert((1, 1)).unwrap();
    spawn("flush", Box::new(move || full.flush()));
    std::thread::sleep(Duration::from_millis(20));

    let ending = std::thread::spawn(move || end(engine, source, target, bad_source, bad_target));
    let mut kinds = Vec::new();
    for _ in 0..5 {
        let (kind, result) = results.recv_timeout(SOON).expect("some waiter was never woken");
        assert_eq!(result.as_ref(), Err(want), "{kind}");
        kinds.push(kind);
    }
    kinds.sort_unstable();
    assert_eq!(kinds, ["flush", "future", "probe", "snapshot", "subscription"]);
    drop(blocked);
    ending.join().unwrap();
}

/// Two messages: one to each worker, and worker 1 is free.
fn poison(mut input: Pairs) {
    for _ in 0..2 {
        input.insert((13, 13)).unwrap();
        input.flush().unwrap();
    }
}

fn source_ended(ending: Ending) -> Error {
    Error::SourceEnded { query: "target".into(), source: "source".into(), ending }
}

fn not_13() -> Failure {
    Failure::Panic("not 13".into())
}

#[test]
fn retired() {
    let want = Error::Retired { query: "target".into() };
    row(&want, |_engine, _, target, _, _| target.retire().unwrap());
}

#[test]
fn poisoned() {
    let want = Error::Poisoned { query: "target".into(), operator: "map".into(), failure: not_13() };
    row(&want, |engine, _, target, _, bad| {
        poison(bad);
        assert!(matches!(ending(&target), Error::Poisoned { .. }));
        drop(engine);
    });
}

#[test]
fn source_retired() {
    row(&source_ended(Ending::Retired), |_engine, source, _, _, _| source.retire_cascade().unwrap());
}

#[test]
fn source_poisoned() {
    let end = Ending::Poisoned { operator: "map".into(), failure: not_13() };
    row(&source_ended(end), |engine, source, _, bad, _| {
        poison(bad);
        assert!(matches!(ending(&source), Error::Poisoned { .. }));
        drop(engine);
    });
}

#[test]
fn shut_down() {
    row(&Error::Shutdown, |engine, _, _, _, _| {
        // It cannot drain, for worker 0 is busy; and may stop before that comes.
        let _ = engine.shutdown(SOON / 40);
    });
}

#[test]
fn engine_dropped() {
    row(&Error::Shutdown, |engine, _, _, _, _| drop(engine));
}
