//! Invariants 14, 21 and 26: counts of messages, closing, birth.

use crate::support::*;
use kpg::dataflow::{Interest, Updates};
use kpg::operators::{Chunk, UpdatesInput, UpdatesOutput};
use kpg::prelude::*;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Pushes that come to nothing: an empty message of a user's operator, chunks that a filter empties, all of them into
/// exchanges (CASES 13). What is counted as sent is counted as received, or the probe would never finish.
#[test]
fn inv_14_empty_buffers_are_counted_alike() {
    for workers in 1..=3 {
        for seed in 0..10 {
            let random = &mut Random::new(seed);
            let sim = simulated(workers, seed, MergePolicy::default());
            let (_query, (mut input, output, probe)) = sim
                .engine
                .install("empty", |scope| {
                    let (input, data) = scope.input::<u64>();
                    let padded = data.unary(
                        "pad",
                        |input: &mut UpdatesInput<_, u64, i64>, output: &mut UpdatesOutput<_, u64, i64>, _| {
                            while let Some((token, chunk)) = input.next() {
                                let empty: Chunk<u64, u64, i64> = Rc::new(Updates::default());
                                output.send(&token, empty.clone());
                                output.send(&token, chunk);
                                output.send(&token, empty);
                            }
                            false
                        },
                    );
                    let none = padded.filter(|x| x > 1_000_000).consolidate();
                    let cancelled = padded.concat(&padded.negate()).consolidate();
                    let all = padded.consolidate().concat(&none).concat(&cancelled).concat(&cancelled.distinct());
                    (input, all.subscribe(), all.probe())
                })
                .unwrap();
            let mut heard = Heard::new(output);
            for time in 0..10 {
                for _ in 0..random.below(3) {
                    input.insert(time).unwrap();
                    input.flush().unwrap();
                    input.remove(time).unwrap();
                    input.flush().unwrap();
                }
                sim.some_steps(random, 5);
                input.advance_to(time + 1).unwrap();
            }
            sim.settle();
            assert_eq!(sorted(&probe.frontier()), [10]);
            drop(input);
            sim.settle();
            assert!(heard.is_closed() && probe.frontier().is_empty(), "workers {workers}, seed {seed}");
            heard.check(0..20, |_| Sums::new());
            assert!(heard.updates.is_empty());
        }
    }
}

/// Every kind of node below an input that closes hears of the empty frontier, a sink that holds nothing too.
#[test]
fn inv_21_closing_is_heard() {
    for workers in 1..=2 {
        let sim = simulated(workers, 3, MergePolicy::default());
        let kept = Arc::new(());
        let calls = Arc::new([const { AtomicUsize::new(0) }; 2]);
        let (_query, (input, _other)) = sim
            .engine
            .install("closing", |scope| {
                let (input, data) = scope.input::<u64>();
                for (at, interest) in [Interest::Held, Interest::Always].into_iter().enumerate() {
                    let mut builder = scope.operator("sink").interest(interest);
                    let mut port = builder.input(&data.distinct());
                    let (calls, kept) = (calls.clone(), kept.clone());
                    builder.build(move |_| {
                        let _ = &kept;
                        while port.next().is_some() {}
                        if port.frontier().is_empty() {
                            calls[at].fetch_add(1, Ordering::Relaxed);
                        }
                        false
                    });
                }
                // Lives on when the input has closed.
                let (other, data) = scope.input::<u64>();
                data.probe();
                (input, other)
            })
            .unwrap();
        sim.settle();
        assert_eq!(Arc::strong_count(&kept), 1 + 2 * workers);
        assert!(calls.iter().all(|count| count.load(Ordering::Relaxed) == 0), "an empty frontier before its time");
        drop(input);
        sim.settle();
        assert!(calls.iter().all(|count| count.load(Ordering::Relaxed) >= workers), "{calls:?}");
        assert_eq!(Arc::strong_count(&kept), 1, "an operator that nothing can reach any more is kept");
    }
}

/// What is done releases its state, though another branch of the same dataflow lives.
#[test]
fn inv_21_a_closed_branch_releases_its_memory() {
    let engine = threads(2);
    let (query, (mut done, mut alive, probe)) = engine
        .install("branches", |scope| {
            let (done, a) = scope.input::<(u64, u64)>();
            let (alive, b) = scope.input::<(u64, u64)>();
            let counted =
                a.arrange_by_key().reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[0].0, 1)));
            let counted = counted.as_collection(|key, val| (key, val)).join(&a);
            (done, alive, counted.map(|(key, _)| key).concat(&b.map(|(key, _)| key)).probe())
        })
        .unwrap();
    for key in 0..50_000 {
        done.insert((key, key)).unwrap();
    }
    done.advance_to(1).unwrap();
    alive.advance_to(1).unwrap();
    probe.wait_past(&0, LONG).unwrap();
    let full = query.bytes().private;
    drop(done);
    alive.insert((1, 1)).unwrap();
    alive.advance_to(2).unwrap();
    probe.wait_past(&1, LONG).unwrap();
    let deadline = std::time::Instant::now() + LONG;
    while query.bytes().private * 40 > full && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let left = query.bytes().private;
    assert!(left * 40 <= full, "{full} bytes, {left} after it closed");
    assert!(query.error().is_none());
}

/// A worker that builds at once and drops its capabilities, before the other has built: nothing is taken for closed
/// that is not, and messages for what is not yet built are delivered once it is (CASES 6).
#[test]
fn inv_26_birth_and_a_worker_that_builds_late() {
    let config = Config::default().workers(2).pinned(false);
    let (engine, seeds) = Engine::start_hosted(config).unwrap();
    let threads: Vec<_> = seeds
        .into_iter()
        .enumerate()
        .map(|(index, seed)| {
            std::thread::spawn(move || {
                let worker = seed.start();
                while !worker.is_stopped() {
                    worker.step();
                    // One is so slow that the other has long built, and run ahead as far as it may.
                    std::thread::sleep(std::time::Duration::from_micros(if index == 1 { 3000 } else { 20 }));
                }
            })
        })
        .collect();
    for round in 0..10u64 {
        let (query, (input, mut output)) = engine
            .install("late", |scope| {
                let (input, data) = scope.input::<u64>();
                (input, scope.constant(0..100).concat(&data).consolidate().subscribe())
            })
            .unwrap();
        let mut input = input;
        if round % 2 == 0 {
            input.insert(1000).unwrap();
        }
        drop(input);
        let got = output.wait_past(&0, LONG).unwrap();
        assert_eq!(got.len(), 100 + (round as usize + 1) % 2);
        query.retire().unwrap();
    }
    engine.shutdown(LONG).unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
