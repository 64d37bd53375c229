//! Invariants 24, 25 and 28: what any thread reads of a published arrangement.

use crate::support::*;
use kpg::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// After each single step of either worker: what is called complete is all there, and complete only goes on (CASES 21).
#[test]
fn inv_24_upper_never_passes_what_is_unsealed() {
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let sim = simulated(2, seed, MergePolicy::lazy());
        let (_query, (mut input, shared)) = sim
            .engine
            .install("graph", |scope| {
                let (input, data) = scope.input::<(u64, u64)>();
                (input, data.arrange_by_key().publish())
            })
            .unwrap();
        let mut model = Vec::new();
        let mut before = 0;
        for time in 0..20u64 {
            for _ in 0..random.below(6) {
                let (datum, diff) = ((random.below(6), random.below(3)), random.below(3) as i64 - 1);
                input.update(datum, diff).unwrap();
                input.flush().unwrap();
                model.push((datum, time, diff));
                sim.some_steps(random, 2);
            }
            input.advance_to(time + 1).unwrap();
            for _ in 0..random.below(8) {
                sim.step(random);
                let complete = sorted(&shared.complete());
                assert!(
                    complete.len() == 1 && complete[0] >= before && complete[0] <= time + 1,
                    "{before}, {complete:?}"
                );
                before = complete[0];
                if before > 0 {
                    let snapshot = shared.snapshot_at(&(before - 1)).expect("the latest complete time is readable");
                    let read: Sums<_> = snapshot.iter().map(|(key, val, diff)| ((key, val), diff)).collect();
                    assert_eq!(read, sums(&model, &(before - 1)), "seed {seed}, at {}", before - 1);
                }
            }
        }
    }
}

/// Readers at full speed while epochs go by and merges go on: every one of the keys, on both shards, shows the very
/// time that the snapshot is of.
#[test]
fn inv_25_one_published_value() {
    let engine = threads(2);
    let (_query, (mut input, shared)) = engine
        .install("clock", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            (input, data.arrange_by_key().publish())
        })
        .unwrap();
    let (done, reads) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let Ok(snapshot) = shared.snapshot() else { continue };
                    let time = *snapshot.time();
                    assert!(time >= last, "went back from {last} to {time}");
                    last = time;
                    for key in 0..16 {
                        let vals: Vec<_> = snapshot.get(&key).collect();
                        assert_eq!(vals, [(time, 1)], "key {key}");
                    }
                    let complete = shared.complete();
                    assert!(!complete.less_equal(&time));
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for time in 0..4000u64 {
            for key in 0..16 {
                input.insert((key, time)).unwrap();
                if time > 0 {
                    input.remove((key, time - 1)).unwrap();
                }
            }
            input.advance_to(time + 1).unwrap();
            if time % 64 == 0 {
                shared.wait_snapshot(&time, LONG).unwrap();
            }
        }
        shared.wait_snapshot(&3999, LONG).unwrap();
        done.store(true, Ordering::Relaxed);
    });
    assert!(reads.into_inner() > 10, "the readers came to nothing");
}

/// Two workers of which one is stepped far more seldom, a stream that never stops: from the first complete time on some
/// time is readable at every moment, and memory stays bounded.
#[test]
fn inv_28_default_hold() {
    for seed in 0..20 {
        let random = &mut Random::new(seed);
        let sim = simulated(2, seed, MergePolicy::eager());
        let (query, (mut input, shared)) = sim
            .engine
            .install("stream", |scope| {
                let (input, data) = scope.input::<(u64, u64)>();
                (input, data.arrange_by_key().publish())
            })
            .unwrap();
        let (slow, ratio) = (random.below(2) as usize, 1 + random.below(30));
        let mut most = 0;
        for time in 0..400u64 {
            for key in 0..8 {
                input.insert((key, time)).unwrap();
                if time > 0 {
                    input.remove((key, time - 1)).unwrap();
                }
            }
            input.advance_to(time + 1).unwrap();
            for _ in 0..4 {
                let which = if random.below(ratio) == 0 { slow } else { 1 - slow };
                sim.workers[which].step();
                if shared.complete() != Antichain::from_elem(0) {
                    let snapshot =
                        shared.snapshot().unwrap_or_else(|error| panic!("seed {seed}, time {time}: {error}"));
                    let at = *snapshot.time();
                    assert!(snapshot.get(&3).eq([(at, 1)]), "seed {seed}");
                    most = most.max(at);
                }
            }
        }
        sim.settle();
        assert_eq!(*shared.snapshot().unwrap().time(), 399, "seed {seed}; got to {most} on the way");
        assert!(query.bytes().shared < 1 << 20, "{:?}", query.bytes());
    }
}
