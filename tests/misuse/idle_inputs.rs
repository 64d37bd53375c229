//! Inputs that nobody advances, and inputs that all end.

use super::common::*;
use kpg::prelude::*;
use std::time::Duration;

/// An input left alone holds back its own query only; `follow` moves it along, so that a join against it completes.
#[test]
fn one_that_is_never_advanced_can_follow() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    witness.check();
    let published = witness.published.clone();
    let (_, (mut idle, mut sub)) = engine
        .install("idle", |scope| {
            let (input, keys) = scope.input::<u64>();
            let numbers = published.import(scope);
            let joined = numbers.join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v)));
            (input, joined.subscribe())
        })
        .unwrap();
    idle.insert(1).unwrap();
    for _ in 1..5 {
        witness.check();
    }
    assert!(matches!(sub.wait_past(&3, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    idle.follow(&witness.published).unwrap();
    // 1 and 4 have key 1; the key came at F, the import's first time.
    let got: Vec<_> = sub.wait_past(&4, SOON).unwrap().into_iter().map(|(data, _, diff)| (data, diff)).collect();
    assert_eq!(got, [((1, 1), 1), ((1, 4), 1)]);
    for _ in 5..8 {
        witness.check();
    }
    assert_eq!(sub.wait_past(&7, SOON).unwrap(), [((1, 7), 7, 1)]);
}

/// Following is not the same as holding on: the source's end stops it, with no harm to the input.
#[test]
fn following_a_source_that_ends() {
    let engine = engine();
    let (source, (mut input, published)) = engine
        .install("source", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.arrange_by_key().publish())
        })
        .unwrap();
    let (_, (mut idle, mut sub)) = engine
        .install("idle", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.subscribe())
        })
        .unwrap();
    idle.follow(&published).unwrap();
    input.advance_to(3).unwrap();
    sub.wait_past(&2, SOON).unwrap();
    source.retire().unwrap();
    idle.insert(1).unwrap();
    idle.advance_to(5).unwrap();
    assert_eq!(sub.wait_past(&4, SOON).unwrap(), [(1, 3, 1)]);
}

/// Sessions that follow are moved by others: neither a clone of one nor an `advance_to` may take the input back.
#[test]
fn clones_of_what_follows() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, (mut idle, probe)) = engine
        .install("idle", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.probe())
        })
        .unwrap();
    idle.follow(&witness.published).unwrap();
    for t in 0..100 {
        witness.check();
        probe.wait_past(&t, SOON).unwrap();
        let clone = idle.clone();
        assert_eq!(clone.time(), t + 1);
        drop(clone);
        // In whatever order they come, the later one counts.
        let _ = idle.advance_to(t + 1);
    }
    assert_eq!(query.error(), None);
}

/// A place among the sessions is used again: who has it now follows what he was told, not what the last one was.
#[test]
fn following_ends_with_its_session() {
    let engine = engine();
    let (mut fast, mut slow) = (Witness::install(&engine), Witness::install(&engine));
    let (_, (idle, probe)) = engine
        .install("idle", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.probe())
        })
        .unwrap();
    let mut first = idle.clone();
    first.follow(&fast.published).unwrap();
    drop(first);
    let mut second = idle.clone();
    second.follow(&slow.published).unwrap();
    drop(idle);
    (0..5).for_each(|_| fast.check());
    slow.check();
    probe.wait_past(&0, SOON).unwrap();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(second.time(), 1);
}

/// All inputs closed: everything is complete, for probes, subscriptions, snapshots, importers that come late.
#[test]
fn all_closed() {
    let engine = engine();
    let (_, (mut first, second, mut sub, probe, published)) = engine
        .install("closing", |scope| {
            let (first, a) = scope.input::<(u64, u64)>();
            let (second, b) = scope.input::<(u64, u64)>();
            let arranged = a.concat(&b).distinct().arrange_by_key();
            let out = arranged.as_collection(|k, v| (k, v));
            (first, second, out.subscribe(), out.probe(), arranged.publish())
        })
        .unwrap();
    first.insert((1, 2)).unwrap();
    let clone = first.clone();
    drop((first, second));
    assert!(matches!(probe.wait_past(&0, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    drop(clone);
    assert_eq!(sub.wait_past(&u64::MAX, SOON).unwrap(), [((1, 2), 0, 1)]);
    assert!(sub.complete().is_empty());
    probe.wait_past(&u64::MAX, SOON).unwrap();
    assert!(probe.frontier().is_empty());
    assert_eq!(published.wait_snapshot(&u64::MAX, SOON).unwrap().iter().collect::<Vec<_>>(), [(1, 2, 1)]);
    let (_, mut late) =
        engine.install("late", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe()).unwrap();
    let got: Vec<_> = late.wait_past(&u64::MAX, SOON).unwrap().into_iter().map(|(data, _, r)| (data, r)).collect();
    assert_eq!(got, [((1, 2), 1)]);
    assert!(late.complete().is_empty());
}

/// A sink that counts how often it sees each input's empty frontier (Invariant 21).
#[test]
fn a_closed_input_is_heard_of() {
    use kpg::dataflow::Interest;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let engine = engine();
    let heard = AtomicUsize::new(0);
    let heard = std::sync::Arc::new(heard);
    let (_, (first, second)) = engine
        .install("closing", |scope| {
            let (first, a) = scope.input::<u64>();
            let (second, b) = scope.input::<u64>();
            let heard = heard.clone();
            let mut builder = scope.operator("sink").interest(Interest::Held);
            let (mut a, mut b) = (builder.input(&a), builder.input(&b));
            let mut told = [false; 2];
            builder.build(move |_| {
                while a.next().is_some() || b.next().is_some() {}
                for (told, closed) in told.iter_mut().zip([a.frontier().is_empty(), b.frontier().is_empty()]) {
                    if closed && !std::mem::replace(told, true) {
                        heard.fetch_add(1, Ordering::SeqCst);
                    }
                }
                false
            });
            (first, second)
        })
        .unwrap();
    drop(first);
    eventually("both workers have heard of the first", || heard.load(Ordering::SeqCst) == 2);
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(heard.load(Ordering::SeqCst), 2);
    drop(second);
    eventually("both workers have heard of the second", || heard.load(Ordering::SeqCst) == 4);
}
