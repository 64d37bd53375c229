//! Memory: caps, what is dropped, what is installed and retired over and over.

use super::common::*;
use kpg::columnar::Opaque;
use kpg::prelude::*;
use kpg::runtime::Failure;

fn out_of_memory(error: &Error) -> bool {
    matches!(error, Error::Poisoned { failure: Failure::OutOfMemory(text), .. } if text.contains("out of memory"))
}

/// Feeds until it fails; the error.
fn fill(input: &mut Input<u64, (u64, u64)>) -> Error {
    for t in 0..10_000 {
        for n in 0..2_000 {
            if let Err(error) = input.insert((t * 2_000 + n, n)) {
                return error;
            }
        }
        if let Err(error) = input.advance_to(t + 1) {
            return error;
        }
    }
    panic!("twenty million updates and no end of memory");
}

/// An arena's cap ends the query that asks for more, and nothing else; what it had is given back.
#[test]
fn an_arenas_cap_ends_who_asked() {
    quiet();
    let engine = Engine::start(config().arena_cap(16 << 20)).unwrap();
    let mut witness = Witness::install(&engine);
    witness.check();
    for _ in 0..3 {
        let (query, mut input) = engine
            .install("hungry", |scope| {
                let (input, numbers) = scope.input_with::<(u64, u64), i64>(1 << 14);
                let arranged = numbers.arrange_by_key();
                arranged.join_core(&arranged, |_, a, _| Some(a)).probe();
                input
            })
            .unwrap();
        let error = fill(&mut input);
        assert!(out_of_memory(&error), "{error:?}");
        drop(input);
        eventually("it is freed", || query.bytes().private == 0);
        query.retire().unwrap();
        witness.check();
    }
}

/// A query's own cap.
#[test]
fn a_querys_cap_ends_it() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, mut input) = engine
        .install_capped::<u64, _, _>("capped", Some(4 << 20), |scope| {
            let (input, numbers) = scope.input_with::<(u64, u64), i64>(1 << 14);
            let arranged = numbers.arrange_by_key();
            arranged.join_core(&arranged, |_, a, _| Some(a)).probe();
            input
        })
        .unwrap();
    let error = fill(&mut input);
    assert!(out_of_memory(&error), "{error:?}");
    assert!(error.to_string().contains("capped"), "{error}");
    drop(input);
    eventually("it is freed", || query.bytes().private == 0);
    witness.check();
}

/// Values that own memory outside of the arenas count by the size that they give, and are given back with the query.
#[test]
fn opaque_values_count_for_the_cap() {
    let engine = Engine::start(config()).unwrap();
    let (query, (mut input, probe, published)) = engine
        .install_capped::<u64, _, _>("capped", Some(4 << 20), |scope| {
            let (input, texts) = scope.input::<Opaque<String>>();
            let arranged = texts.arrange_by_self();
            (input, arranged.as_collection(|_, ()| ()).probe(), arranged.publish())
        })
        .unwrap();
    let mut failed = None;
    for n in 0..100u64 {
        let text = Opaque(format!("{n:02}").repeat(50_000));
        failed =
            input.insert(text).and_then(|()| input.advance_to(n + 1)).and_then(|()| probe.wait_past(&n, SOON)).err();
        if failed.is_some() {
            // A hundred thousand bytes each, and what merges make of them, where there is room for it.
            assert!((10..=42).contains(&n), "after {n}");
            break;
        }
    }
    assert!(out_of_memory(&failed.expect("more than ten million bytes are beyond the cap")));
    drop((input, published));
    query.retire_timeout(SOON).unwrap();
    eventually("it is given back", || query.bytes().private + query.bytes().shared == 0);
}

/// What a query publishes counts for its cap as what it holds for itself does.
#[test]
fn what_is_published_counts_for_the_cap() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, (mut input, published)) = engine
        .install_capped::<u64, _, _>("capped", Some(4 << 20), |scope| {
            let (input, numbers) = scope.input_with::<(u64, u64), i64>(1 << 14);
            (input, numbers.arrange_by_key().publish())
        })
        .unwrap();
    // Each time is complete before the next, so that hardly anything is held otherwise.
    let error = (0..2000).find_map(|t| {
        let fed = (0..500).try_for_each(|n| input.insert((t * 500 + n, n)));
        let shown =
            fed.and_then(|()| input.advance_to(t + 1)).and_then(|()| published.wait_snapshot(&t, SOON).map(drop));
        shown.err()
    });
    let error = error.expect("the cap ends it");
    assert!(out_of_memory(&error), "{error:?}");
    assert!(error.to_string().contains("capped"), "{error}");
    drop((input, published));
    eventually("it is freed", || query.bytes().private + query.bytes().shared == 0);
    witness.check();
}

/// What waits in an input's queue is the query's, and its cap a bound of the queue: who puts in waits, and the query
/// goes on as soon as its workers take what waits. What was taken is nobody's any more.
#[test]
fn what_waits_in_an_input_counts_for_the_cap() {
    let engine = engine();
    let (query, (input, mut sub)) = engine
        .install_capped::<u64, _, _>("capped", Some(1 << 20), |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.map(|_| 0u64).subscribe())
        })
        .unwrap();
    let blocked = Blocked::worker_0(&engine);
    let mut sessions = [input.clone(), input];
    let mut added = 0;
    // Not full by its own bound, which is a million.
    while sessions[0].insert_timeout(scattered(added), std::time::Duration::from_millis(100)).is_ok() {
        added += 1;
        assert!(added < 500_000, "the cap does not hold for what waits");
    }
    assert!(query.bytes().private > 1 << 17 && query.bytes().private <= 1 << 20, "{:?}", query.bytes());
    assert_eq!(query.error(), None);
    drop(blocked);
    for session in &mut sessions {
        session.insert(scattered(added)).unwrap();
        session.advance_to(1).unwrap();
    }
    assert_eq!(sub.wait_past(&0, SOON).unwrap(), [(0, 0, added as i64 + 2)]);
    drop((sessions, sub));
    eventually("it is freed", || query.bytes().private < 16 << 10);
}

/// What idle workers merge stays on the account of the query whose trace it is: so its cap counts it.
#[test]
fn merged_batches_stay_on_their_account() {
    let engine = engine();
    let empty = live(&engine);
    let (query, (mut input, _open, _probe)) = engine
        .install("arranged", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            let arranged = numbers.arrange_by_key();
            // A reader of the trace, so that it is kept; as long as its other side is open.
            let (open, keys) = scope.input::<u64>();
            let joined = arranged.join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v)));
            (input, open, joined.concat(&numbers).probe())
        })
        .unwrap();
    for t in 0..20 {
        (0..2000).for_each(|n| input.insert((t * 2000 + n, n)).unwrap());
        input.advance_to(t + 1).unwrap();
    }
    let deadline = std::time::Instant::now() + SOON;
    loop {
        let (all, own) = (live(&engine) - empty, query.bytes().private);
        if own > 40_000 * 2 && all.abs_diff(own) < 16 << 10 {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "of {all} live bytes, {own} are the query's");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// A subscription that nobody has any more gathers nothing.
#[test]
fn a_dropped_subscription_gathers_nothing() {
    let engine = engine();
    let (query, (mut input, probe, sub)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input::<u64>();
            // One that does not even leave the closure, too.
            numbers.subscribe();
            (input, numbers.probe(), numbers.subscribe())
        })
        .unwrap();
    drop(sub);
    for t in 0..200 {
        (0..1000).for_each(|n| input.insert(n).unwrap());
        input.advance_to(t + 1).unwrap();
        probe.wait_past(&t, SOON).unwrap();
    }
    eventually("nothing is kept", || query.bytes().private < 64 << 10);
    assert!(live(&engine) < 1 << 20, "{}", live(&engine));
}

/// Three hundred queries come and go on a running engine: the live bytes are the same after each. (Thousands, and what
/// the process then holds: `tests/faults/flat.rs`.)
#[test]
fn three_hundred_queries_leave_nothing() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    (0..10).for_each(|_| witness.check());
    let mut base = None;
    for _ in 0..300 {
        witness.passing_query(&engine);
        let base = *base.get_or_insert_with(|| live(&engine));
        eventually("the live bytes are what they were", || live(&engine) <= base);
        assert_eq!(engine.metrics().queries.len(), 1);
    }
    witness.check();
    witness.retire();
    assert_eq!(engine.metrics().queries.len(), 0);
}

/// Ten thousand handles that come and go are forgotten: sessions, clones, snapshots, holds, futures.
#[test]
fn ten_thousand_handles_leave_nothing() {
    let engine = engine();
    let (query, (mut input, probe, published, mut sub)) = engine
        .install("handles", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.probe(), numbers.arrange_by_key().publish(), numbers.subscribe())
        })
        .unwrap();
    input.insert((1, 1)).unwrap();
    input.advance_to(1).unwrap();
    published.wait_snapshot(&0, SOON).unwrap();
    let waker = std::task::Waker::noop();
    let before = live(&engine);
    for _ in 0..10_000 {
        let mut session = input.clone();
        session.follow(&published).unwrap();
        drop((session, probe.clone(), published.clone()));
        drop((published.snapshot_at(&0).unwrap(), published.hold(&0).unwrap()));
        let mut future = std::pin::pin!(sub.past(9));
        assert!(future.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    }
    assert!(live(&engine) <= before + (64 << 10), "{} then {}", before, live(&engine));
    // A tick costs what it did: nobody is left who would have to hear of it.
    let start = std::time::Instant::now();
    for t in 1..2001 {
        input.advance_to(t + 1).unwrap();
        probe.wait_past(&t, SOON).unwrap();
    }
    assert!(start.elapsed() < SOON / 4, "two thousand ticks took {:?}", start.elapsed());
    query.retire().unwrap();
}

/// A query that keeps an arrangement of `(scattered(n), n)`, and feeds it in pieces.
struct Kept {
    query: Query,
    input: Input<u64, (u64, u64)>,
    probe: Probe<u64>,
    published: Published<u64, u64>,
    time: u64,
}

/// Keys that no encoding makes short.
fn scattered(n: u64) -> u64 {
    n.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Kept {
    fn install(engine: &Engine, name: &str) -> Kept {
        let (query, (input, probe, published)) = engine
            .install(name, |scope| {
                let (input, numbers) = scope.input::<(u64, u64)>();
                let arranged = numbers.arrange_by_key();
                (input, arranged.as_collection(|k, _| k).probe(), arranged.publish())
            })
            .unwrap();
        Kept { query, input, probe, published, time: 0 }
    }
    fn feed(&mut self, numbers: std::ops::Range<u64>, diff: i64) {
        numbers.for_each(|n| self.input.update((scattered(n), n), diff).unwrap());
        self.time += 1;
        self.input.advance_to(self.time).unwrap();
        self.probe.wait_past(&(self.time - 1), SOON).unwrap();
    }
}

/// A merge is never needed for truth: where memory is short it waits, its query goes on and answers right, and what has
/// come apart is merged once there is room.
#[test]
fn a_merge_that_gets_no_memory_waits() {
    quiet();
    let cap = 32 << 20;
    let engine = Engine::start(config().workers(1).arena_cap(cap)).unwrap();
    let (count, step) = (200_000, 2_000);
    let mut kept = Kept::install(&engine, "kept");
    (0..count).step_by(step).for_each(|n| kept.feed(n..n + step as u64, 1));
    eventually("it is merged", || live(&engine) < 24 * count as usize);
    let merged = live(&engine);
    let mut ballast = Kept::install(&engine, "ballast");
    let mut next = 0;
    // Its own merges soon wait too.
    while live(&engine) < cap - (2 << 20) {
        ballast.feed(next..next + step as u64, 1);
        next += step as u64;
    }
    // All but the last step's keys go; what is left beside the ballast is too little to merge these with those.
    let (last, gone) = (count - step as u64, 48_000);
    (0..gone).step_by(step).for_each(|n| kept.feed(n..n + step as u64, -1));
    let snapshot = kept.published.wait_snapshot(&(kept.time - 1), SOON).unwrap();
    for n in (0..count).step_by(997) {
        let want = (n >= gone).then_some((n, 1));
        assert_eq!(snapshot.get(&scattered(n)).last(), want, "{n}");
    }
    drop(snapshot);
    let Kept { query, input, probe, published, .. } = ballast;
    query.retire().unwrap();
    drop((input, probe, published));
    (gone..last).step_by(step).for_each(|n| kept.feed(n..n + step as u64, -1));
    // What goes and comes: each batch is a chance to merge.
    for _ in 0..100 {
        kept.feed(0..step as u64, 1);
        kept.feed(0..step as u64, -1);
    }
    eventually("it is merged at last", || live(&engine) < merged / 2);
    let snapshot = kept.published.wait_snapshot(&(kept.time - 1), SOON).unwrap();
    assert_eq!(snapshot.get(&scattered(last - 1)).count(), 0);
    assert_eq!(snapshot.get(&scattered(last)).last(), Some((last, 1)));
}
