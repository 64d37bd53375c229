//! A reduce yields inside a key: one with a million vals, one with 100,000 times. What a worker's step does of either is
//! bounded, and all of it together is linear.
#![forbid(unsafe_code)]

use kpg::client::HostedWorker;
use kpg::dataflow::QUANTUM;
use kpg::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);

/// A turn is four quanta, and a part that cannot stop may end in each; four quanta more are what is read in one go.
const BOUND: u64 = 12 * QUANTUM as u64;

fn hosted() -> (Engine, HostedWorker) {
    let (engine, mut seeds) = Engine::start_hosted(Config::default().workers(1).pinned(false)).unwrap();
    let worker = seeds.remove(0).start();
    (engine, worker)
}

/// Steps until `done`; the most that any of `counters` grew by in a step.
fn most_in_a_step(worker: &mut HostedWorker, counters: &[&AtomicU64], done: impl Fn() -> bool) -> u64 {
    let mut most = 0;
    while !done() {
        let before: Vec<u64> = counters.iter().map(|counter| counter.load(Relaxed)).collect();
        worker.step();
        let grown = counters.iter().zip(before).map(|(counter, before)| counter.load(Relaxed) - before);
        most = most.max(grown.max().unwrap_or(0));
    }
    most
}

/// Reading is seen by a filter of the arrangement, which is asked for each val that is read.
#[test]
fn a_key_of_a_million_vals_is_read_in_slices() {
    const VALS: u64 = 1_000_000;
    let (engine, mut worker) = hosted();
    let [read, read_back] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let (_, (mut input, mut least, probe)) = engine
        .install("hub", |scope| {
            let (input, seeds) = scope.input::<(u64, u64)>();
            let vals = seeds.flat_map(|(first, count)| (0..count).map(move |i| (7u64, first + i)));
            let (read, read_back) = (read.clone(), read_back.clone());
            let counted = vals.arrange_by_key().filter(move |_, _| read.fetch_add(1, Relaxed) < u64::MAX);
            // The output is as large: it is read back by the next, and compared by this one.
            let all = counted.reduce(|_, vals, all| all.extend(vals.iter().map(|(val, diff)| (*val, *diff))));
            let all = all.filter(move |_, _| read_back.fetch_add(1, Relaxed) < u64::MAX);
            let least = all.reduce(|_, vals, least| least.push((vals[0].0, 1)));
            let least = least.as_collection(|key, val| (key, val));
            (input, least.subscribe(), least.probe())
        })
        .unwrap();
    let steps = [(1, VALS, Some((7, 1))), (0, 1, Some((7, 0))), (VALS + 1, 1, None)];
    for (time, (first, count, expected)) in steps.into_iter().enumerate() {
        let time = time as u64;
        [&read, &read_back].iter().for_each(|counter| counter.store(0, Relaxed));
        input.insert((first, count)).unwrap();
        input.advance_to(time + 1).unwrap();
        let most = most_in_a_step(&mut worker, &[&read, &read_back], || probe.is_past(&time));
        assert!(most <= BOUND, "{most} vals read in one step at {time}");
        let total = read.load(Relaxed);
        assert!((VALS..3 * VALS).contains(&total), "{total} vals read at {time}");
        let got = least.wait_past(&time, SOON).unwrap().into_vec();
        let now: Vec<_> = got.iter().filter(|(_, _, diff)| *diff > 0).map(|(pair, _, _)| *pair).collect();
        assert_eq!(now, expected.as_slice());
    }
    engine.shutdown(SOON).unwrap();
}

fn many_times<T: Timestamp>(time: impl Fn(u64) -> T) {
    const TIMES: u64 = 100_000;
    let (engine, mut worker) = hosted();
    let [calls, given] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let (_, (mut input, probe, mut sums)) = engine
        .install_at::<T, _, _>("long life", |scope| {
            let (input, pairs) = scope.input::<(u64, u64)>();
            let (calls, given) = (calls.clone(), given.clone());
            let counts = pairs.arrange_by_key().reduce(move |_, vals, count| {
                calls.fetch_add(1, Relaxed);
                given.fetch_add(vals.len() as u64, Relaxed);
                count.push((vals.iter().map(|(_, diff)| *diff).sum::<i64>(), 1));
            });
            let counts = counts.as_collection(|_, count| count);
            (input, counts.probe(), counts.map(|_| ()).consolidate().subscribe())
        })
        .unwrap();
    for i in 0..TIMES {
        input.update_at((7, i % 5), time(i), 1).unwrap();
    }
    input.advance_to(time(TIMES)).unwrap();
    let most = most_in_a_step(&mut worker, &[&calls, &given], || probe.is_past(&time(TIMES - 1)));
    assert!(most <= BOUND, "{most} calls in one step");
    assert_eq!(calls.load(Relaxed), TIMES);
    drop(input);
    while !probe.frontier().is_empty() {
        worker.step();
    }
    let got = sums.wait_past(&time(TIMES - 1), SOON).unwrap().into_vec();
    assert_eq!(got.iter().map(|(_, _, diff)| diff).sum::<i64>(), 1);
    engine.shutdown(SOON).unwrap();
}

#[test]
fn a_key_of_many_times_is_visited_in_slices() {
    many_times(|i| i);
    many_times(|i| kpg::order::Pair::new(0u64, i));
}
