//! Hangs: what must come to rest, and what must go on.

use crate::support::*;
use kpg::dataflow::{Capability, CapabilitySet, Updates};
use kpg::prelude::*;
use kpg::trace::Batcher;
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};

/// The same record inserted and removed at time 5, in two pushes: nothing is left that a capability would be held for.
#[test]
fn case_12_what_cancels_holds_nothing() {
    let mut batcher = Batcher::<u64, u64, i64>::new();
    for diff in [1, -1] {
        let mut updates = Updates::default();
        updates.push(7, 5, diff);
        batcher.push(updates);
    }
    assert!(batcher.frontier().is_empty());
    assert!(batcher.seal(&Antichain::from_elem(1)).is_none());
    assert!(batcher.frontier().is_empty());

    // The same in a dataflow: with its other input closed, an operator fed by the arrangement sees all the way to it.
    let sim = simulated(2, 1, MergePolicy::default());
    let (_query, (mut input, probe)) = sim
        .engine
        .install("cancel", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.arrange_by_self().as_collection(|datum, ()| datum).probe())
        })
        .unwrap();
    for diff in [1, -1] {
        input.update_at(7, 5, diff).unwrap();
        input.flush().unwrap();
    }
    input.advance_to(1).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [1]);
    drop(input);
    sim.settle();
    assert!(probe.frontier().is_empty());
}

/// An operator keeps a capability until an input, on which nothing ever comes, has passed its time: it is scheduled
/// again then, and lets go.
#[test]
fn case_14_a_capability_on_an_empty_stream() {
    for workers in 1..=2 {
        let engine = threads(workers);
        let (_query, (mut data, mut quiet, probe)) = engine
            .install("hold", |scope| {
                let (data, a) = scope.input::<u64>();
                let (quiet, b) = scope.input::<u64>();
                let mut builder = scope.operator("holder");
                let (mut first, mut second) = (builder.input(&a), builder.input(&b));
                let (output, result) = builder.output::<u64, i64>();
                let mut held = CapabilitySet::new();
                builder.build(move |_| {
                    while let Some((token, _)) = first.next() {
                        let mut now = CapabilitySet::new();
                        output.retain(&token, &mut now);
                        held.insert(now.delayed(&5).unwrap());
                    }
                    while second.next().is_some() {}
                    if !second.frontier().less_equal(&5) {
                        held.clear();
                    }
                    false
                });
                (data, quiet, result.probe())
            })
            .unwrap();
        data.insert(1).unwrap();
        data.advance_to(10).unwrap();
        quiet.advance_to(5).unwrap();
        probe.wait_past(&4, LONG).unwrap();
        assert!(!probe.is_past(&5));
        quiet.advance_to(6).unwrap();
        probe.wait_past(&5, LONG).unwrap();
    }
}

thread_local! {
    static KEPT: RefCell<Option<Capability<u64>>> = const { RefCell::new(None) };
}

/// The last capability of a dataflow is dropped from outside its steps: what is downstream hears of it.
#[test]
fn case_17_the_last_capability_dropped_from_outside() {
    let build = |scope: &Scope<'_, u64>| {
        let mut builder = scope.operator("source");
        let (output, result) = builder.source::<u64, i64>();
        builder.build_source(output, |_output, capability| {
            KEPT.with(|kept| *kept.borrow_mut() = Some(capability));
            |_: &mut kpg::dataflow::Fuel| false
        });
        result.distinct().probe()
    };
    // Dropped by whoever owns the worker, between steps.
    let sim = simulated(1, 1, MergePolicy::default());
    let (_query, probe) = sim.engine.install("kept", build).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [0]);
    let dropped = KEPT.with(|kept| kept.borrow_mut().take());
    drop(dropped.expect("the source was started"));
    sim.settle();
    assert!(probe.frontier().is_empty());

    // Dropped inside a step of another dataflow, on threads.
    let engine = threads(2);
    let (_query, probe) = engine.install("kept", build).unwrap();
    let (_other, input) = engine
        .install("dropper", |scope| {
            let (input, data) = scope.input::<u64>();
            let mut builder = scope.operator("dropper");
            let mut port = builder.input_exchanged(&data, |x| x);
            builder.build(move |_| {
                while port.next().is_some() {
                    let dropped = KEPT.with(|kept| kept.borrow_mut().take());
                    drop(dropped);
                }
                false
            });
            input
        })
        .unwrap();
    let mut input = input;
    assert!(!probe.is_past(&0));
    input.insert(0).unwrap();
    input.insert(1).unwrap();
    input.flush().unwrap();
    probe.wait_past(&u64::MAX, LONG).unwrap();
}

/// A worker is gone before its last progress was heard: whoever waits is not left to wait without a deadline, and a
/// shutdown comes to its end.
#[test]
fn case_18_a_worker_that_leaves() {
    let config = Config::default().workers(2).pinned(false);
    let (engine, mut seeds) = Engine::start_hosted(config).unwrap();
    let leave = std::sync::Arc::new(AtomicBool::new(false));
    let (last, first) = (seeds.pop().unwrap(), seeds.pop().unwrap());
    let stays = std::thread::spawn(move || {
        let worker = first.start();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(std::time::Duration::from_millis(1));
            }
        }
    });
    let leaves = std::thread::spawn({
        let leave = leave.clone();
        move || {
            let worker = last.start();
            while !leave.load(Ordering::Acquire) {
                worker.step();
            }
        }
    });
    let (_query, (mut input, output)) = engine
        .install("left", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.distinct().subscribe())
        })
        .unwrap();
    let mut output = output;
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    output.wait_past(&0, LONG).unwrap();
    leave.store(true, Ordering::Release);
    leaves.join().unwrap();
    // The loss is reported, or a deadline passes; in no case comes an answer that lacks the part of the one that is gone.
    let put = input.insert(2).and_then(|()| input.advance_to(2));
    match put.and_then(|()| output.wait_past(&1, std::time::Duration::from_millis(100))) {
        Err(error) => assert!(matches!(error, Error::Shutdown | Error::Deadline { .. }), "{error}"),
        Ok(changes) => assert_eq!(changes, [(2, 1, 1)]),
    }
    let _ = engine.shutdown(LONG / 15).expect("the one that is gone is counted as gone");
    stays.join().unwrap();
}

/// A body whose value carries + and − of the same records round: the loop comes to rest.
#[test]
fn case_29_feedback_that_cancels() {
    for workers in 1..=2 {
        let sim = simulated(workers, 3, MergePolicy::default());
        let (_query, (mut input, output, probe)) = sim
            .engine
            .install("cancel", |scope| {
                let (input, data) = scope.input::<u64>();
                let out = data.iterate(|_, inner| {
                    let more = inner.map(|x| x + 1000);
                    inner.concat(&more).concat(&more.negate()).concat(&inner.negate()).concat(inner)
                });
                (input, out.consolidate().subscribe(), out.probe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        for time in 0..5 {
            input.insert(time).unwrap();
            input.advance_to(time + 1).unwrap();
            sim.settle();
            assert_eq!(sorted(&probe.frontier()), [time + 1]);
        }
        heard.check(0..5, |at| (0..=*at).map(|x| (x, 1)).collect());
    }
}

/// A clone of a session that follows starts where that one has come to, not where it was last told to be.
#[test]
fn a_clone_of_a_session_that_follows() {
    let sim = simulated(2, 5, MergePolicy::default());
    let (query, (mut source, shared, mut follower, probe)) = sim
        .engine
        .install("follow", |scope| {
            let (source, data) = scope.input::<(u64, u64)>();
            let (follower, other) = scope.input::<u64>();
            (source, data.arrange_by_key().publish(), follower, other.probe())
        })
        .unwrap();
    follower.advance_to(1).unwrap();
    follower.follow(&shared).unwrap();
    source.advance_to(10).unwrap();
    sim.settle();
    assert_eq!(sorted(&probe.frontier()), [10]);
    let clone = follower.clone();
    assert_eq!(clone.time(), 10);
    sim.settle();
    drop(follower);
    sim.settle();
    assert!(query.error().is_none(), "{:?}", query.error());
    assert_eq!(sorted(&probe.frontier()), [10]);
}
