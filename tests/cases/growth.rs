//! Growth and cliffs. What is timed runs in a simulation and is the processor time of this thread, so that it does not
//! depend on who else uses the machine. Bounds are wide: they are there to tell linear from quadratic.

use crate::support::*;
use kpg::prelude::*;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// What a machine whose memory is slow just then may add; what is quadratic takes far longer.
const NOISE: Duration = Duration::from_secs(1);

/// Processor time of this thread so far; of the wall where the system does not say.
fn clock() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    let used = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = used.and_then(|text| text.split_whitespace().next()?.parse().ok());
    used.map_or_else(|| start.elapsed(), Duration::from_nanos)
}

/// How long `work` takes at best.
fn best(times: usize, mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let start = clock();
        work();
        clock() - start
    };
    (0..times).map(|_| time(&mut work)).min().expect("at least once")
}

fn live(engine: &Engine) -> usize {
    engine.metrics().arenas.iter().map(|arena| arena.live_bytes).sum()
}

/// A hundred thousand epochs on one input; a second one that is never fed and follows; a third with data of once and
/// for all. Memory is flat.
#[test]
fn case_24_many_epochs() {
    let engine = threads(2);
    let (_graph, (mut fast, shared)) = engine
        .install("fast", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            (input, data.arrange_by_key().publish())
        })
        .unwrap();
    let (_query, (mut idle, mut still, output)) = engine
        .install("joined", |scope| {
            let data = shared.import(scope);
            let (idle, a) = scope.input::<(u64, u64)>();
            let (still, b) = scope.input::<(u64, u64)>();
            let all = a.join_arranged(&data).map(|(key, _)| (key, 0));
            let kept = b.join_arranged(&data).map(|(key, (v, w))| (key, v + w));
            (idle, still, all.concat(&kept).count().probe())
        })
        .unwrap();
    still.insert((1, 1)).unwrap();
    idle.follow(&shared).unwrap();
    still.follow(&shared).unwrap();
    let mut marks = Vec::new();
    let epochs = 100_000;
    for time in 0..epochs {
        if time % 4 != 3 {
            fast.insert((time % 3, time)).unwrap();
            if time >= 4 {
                fast.remove(((time - 4) % 3, time - 4)).unwrap();
            }
        }
        fast.advance_to(time + 1).unwrap();
        if time % 200 == 199 {
            output.wait_past(&time, LONG).unwrap();
            marks.push(live(&engine));
        }
    }
    let early = *marks[20..100].iter().max().unwrap();
    let late = *marks[400..].iter().max().unwrap();
    assert!(late <= 2 * early + (1 << 20), "{early} bytes early, {late} late");
}

/// A second input that never advances: what it keeps is charged to its query, whose cap ends it; others go on.
#[test]
fn case_24_an_input_that_never_advances_is_ended_by_its_cap() {
    let Sim { engine, workers } = simulated(2, 1, MergePolicy::default());
    let (capped, (mut fast, stuck, probe)) = engine
        .install_capped::<u64, _, _>("capped", Some(8 << 20), |scope| {
            let (fast, a) = scope.input::<(u64, u64)>();
            let (stuck, b) = scope.input::<(u64, u64)>();
            (fast, stuck, a.join(&b).probe())
        })
        .unwrap();
    let (_other, (mut input, mut output)) = engine
        .install("other", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.distinct().subscribe())
        })
        .unwrap();
    let mut time = 0u64;
    let deadline = Instant::now() + LONG;
    let mut most = 0;
    let error = loop {
        assert!(Instant::now() < deadline, "{} bytes and no end", capped.bytes().private);
        most = most.max(capped.bytes().private);
        let batch = (0..1000).try_for_each(|n| {
            fast.insert((n % 10, time * 1000 + n))?;
            if time > 0 { fast.remove((n % 10, (time - 1) * 1000 + n)) } else { Ok(()) }
        });
        if let Err(error) = batch.and_then(|()| fast.advance_to(time + 1)) {
            break error;
        }
        // Taken as it comes, for otherwise all that fits the input's queue would be taken in one step.
        for _ in 0..20 {
            workers.iter().for_each(|worker| {
                worker.step();
            });
        }
        time += 1;
    };
    assert!(
        matches!(&error, Error::Poisoned { query, failure: kpg::runtime::Failure::OutOfMemory(_), .. } if query == "capped"),
        "{error}"
    );
    assert!(most > 1 << 20, "what it kept was not shown: {most}");
    assert!(probe.wait_past(&0, LONG).is_err());
    drop(stuck);
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    assert_eq!(output.wait_past(&0, LONG).unwrap(), [(1, 0, 1)]);
}

/// A handle closed for reads, while others read on: merging goes on, also past a reader that is done.
#[test]
fn case_25_readers_that_are_done() {
    let engine = threads(1);
    let (query, (mut input, mut closed, shared, probe)) = engine
        .install("graph", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            let (closed, other) = scope.input::<(u64, u64)>();
            let arranged = data.arrange_by_key();
            // The join lets the trace go when its other input has closed.
            let joined = other.join_arranged(&arranged);
            (input, closed, arranged.publish(), joined.probe())
        })
        .unwrap();
    closed.insert((0, 0)).unwrap();
    drop(closed);
    for time in 0..20_000u64 {
        input.insert((time % 5, time)).unwrap();
        if time > 0 {
            input.remove(((time - 1) % 5, time - 1)).unwrap();
        }
        input.advance_to(time + 1).unwrap();
        if time % 100 == 0 {
            probe.wait_past(&time, LONG).unwrap();
            assert!(shared.wait_snapshot(&time, LONG).unwrap().get(&(time % 5)).eq([(time, 1)]));
        }
    }
    assert!(query.bytes().shared + query.bytes().private < 2 << 20, "{:?}", query.bytes());
}

fn one_key(epochs: u64, at_once: bool) {
    let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
    let (_query, (mut input, mut output, shared)) = engine
        .install("one key", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            let arranged = data.arrange_by_key();
            let counts = arranged
                .reduce(|_, vals, output: &mut Vec<(i64, i64)>| output.push((vals.iter().map(|v| v.1).sum(), 1)));
            (input, counts.as_collection(|_, count| count).subscribe(), arranged.publish())
        })
        .unwrap();
    // All at once, the history is held meanwhile; epoch by epoch, it folds: each look at a key reads what is held of it.
    let hold = at_once.then(|| shared.hold(&0).unwrap());
    for time in 0..epochs {
        let diff = if time % 2 == 0 { 1 } else { -1 };
        input.update_at((0, time % 4 / 2), time, diff).unwrap();
        if !at_once && time % 50 == 49 {
            input.advance_to(time + 1).unwrap();
        }
    }
    input.advance_to(epochs).unwrap();
    let updates = output.wait_past(&(epochs - 1), LONG).unwrap();
    assert_eq!(updates.len() as u64, epochs);
    // Held history is readable anywhere; let go, it folds.
    for time in [0, epochs / 2, epochs - 2].into_iter().filter(|_| at_once) {
        assert_eq!(shared.snapshot_at(&time).unwrap().get(&0).count(), 1);
    }
    drop(hold);
    input.advance_to(epochs + 1).unwrap();
    shared.wait_snapshot(&epochs, LONG).unwrap();
    assert_eq!(shared.snapshot().unwrap().get(&0).count(), 0);
}

/// A hundred thousand distinct times on one key, in one batch and in small ones; compaction; reads: near-linear.
#[test]
fn case_26_many_times_on_one_key() {
    for at_once in [true, false] {
        let small = best(3, || one_key(25_000, at_once));
        let large = best(3, || one_key(100_000, at_once));
        println!("one key, at once {at_once}: 25,000 times {small:?}, 100,000 times {large:?}");
        assert!(large < small * 8 + NOISE, "{small:?} for 25,000, {large:?} for 100,000");
    }
}

fn maps_in_a_row(count: usize) {
    let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
    let (query, (mut input, mut output)) = engine
        .install("maps", |scope| {
            let (input, data) = scope.input::<u64>();
            let mut out = data;
            for _ in 0..count {
                out = out.map(|x| x + 1);
            }
            (input, out.subscribe())
        })
        .unwrap();
    input.insert(0).unwrap();
    input.advance_to(1).unwrap();
    assert_eq!(output.wait_past(&0, LONG).unwrap(), [(count as u64, 0, 1)]);
    query.retire().unwrap();
}

fn ports(count: usize) {
    let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
    let (query, (mut inputs, mut output)) = engine
        .install("ports", |scope| {
            let (inputs, data): (Vec<_>, Vec<_>) = (0..count).map(|_| scope.input::<u64>()).unzip();
            (inputs, Collection::concat_all(&data).consolidate().subscribe())
        })
        .unwrap();
    let last = inputs.len() as u64 - 1;
    inputs[last as usize].insert(last).unwrap();
    inputs.clear();
    assert_eq!(output.wait_past(&0, LONG).unwrap(), [(last, 0, 1)]);
    query.retire().unwrap();
}

/// A user's operator with many inputs of its own.
fn many_inputs(count: usize) {
    let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
    let (query, (mut input, probe)) = engine
        .install("inputs", |scope| {
            let (input, data) = scope.input::<u64>();
            let mut builder = scope.operator("wide");
            let mut all: Vec<_> = (0..count).map(|_| builder.input(&data)).collect();
            let (mut output, result) = builder.output::<u64, i64>();
            builder.build(move |_| {
                for port in &mut all {
                    while let Some((token, chunk)) = port.next() {
                        output.send(&token, chunk);
                    }
                }
                false
            });
            (input, result.probe())
        })
        .unwrap();
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    probe.wait_past(&0, LONG).unwrap();
    query.retire().unwrap();
}

/// A hundred thousand maps in a row; concat of ten thousand inputs; a node of ten thousand ports: built, run and
/// dropped in linear time, and without recursion (a worker's stack is of ordinary size).
#[test]
fn case_27_wide_and_long_dataflows() {
    for (what, work, size) in [
        ("maps", maps_in_a_row as fn(usize), 100_000),
        ("inputs of a concat", ports as fn(usize), 10_000),
        ("inputs of a node", many_inputs as fn(usize), 10_000),
    ] {
        let small = best(2, || work(size / 4));
        let large = best(3, || work(size));
        println!("{what}: {} in {small:?}, {size} in {large:?}", size / 4);
        assert!(large < small * 8 + NOISE, "{what}: {small:?}, then {large:?}");
    }
}

fn tiny_loop(workers: usize) -> Duration {
    let engine = threads(workers);
    let (_query, (mut input, mut output)) = engine
        .install("countdown", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.iterate(|_, inner| inner.map(|x| x.saturating_sub(1))).consolidate().subscribe())
        })
        .unwrap();
    let start = Instant::now();
    input.insert(500).unwrap();
    input.advance_to(1).unwrap();
    assert_eq!(output.wait_past(&0, LONG).unwrap(), [(0, 0, 1)]);
    start.elapsed()
}

/// A loop that exchanges one record a round, on more workers than cores: slower by a factor that is small against
/// what waiting out a time slice each round would cost.
#[test]
fn case_28_a_tiny_exchange_loop() {
    let few = (0..3).map(|_| tiny_loop(1)).min().unwrap();
    let many = (0..3).map(|_| tiny_loop(6)).min().unwrap();
    println!("500 rounds: {few:?} on 1 worker, {many:?} on 6");
    assert!(many < few * 60 + Duration::from_millis(300), "{few:?} on 1 worker, {many:?} on 6");
}

/// Forty ticks of one source that so many dataflows import, of which one gets an update; and of so many dataflows with
/// inputs of their own.
fn many_dataflows(count: u64) -> (Duration, Duration) {
    let Sim { engine, workers: _workers } = simulated(2, 1, MergePolicy::default());
    let (_source, (mut input, shared)) = engine
        .install("source", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            (input, data.arrange_by_key().publish())
        })
        .unwrap();
    input.advance_to(1).unwrap();
    shared.wait_snapshot(&0, LONG).unwrap();
    let importers: Vec<_> = (0..count)
        .map(|n| {
            let importer = engine.install("importer", |scope| {
                let data = shared.import(scope).filter(move |key, _| key == n);
                data.as_collection(|_, val| val).subscribe()
            });
            importer.unwrap().1
        })
        .collect();
    let mut importers = importers;
    let ticks = 40u64;
    // Summed: the clock of a thread moves on by the time slices of the system.
    let (mut imported, mut with_inputs) = (Duration::ZERO, Duration::ZERO);
    for time in 1..=ticks {
        let start = clock();
        input.insert((time % count, time)).unwrap();
        input.advance_to(time + 1).unwrap();
        let heard = importers[(time % count) as usize].wait_past(&time, LONG).unwrap();
        assert!(heard.iter().any(|(val, _, _)| *val == time));
        imported += clock() - start;
    }
    let own: Vec<_> = (0..count)
        .map(|_| {
            let own = engine.install("own", |scope| {
                let (input, data) = scope.input::<u64>();
                (input, data.distinct().subscribe())
            });
            own.unwrap().1
        })
        .collect();
    let mut own = own;
    for time in 0..ticks {
        let start = clock();
        let which = (time * 7 % count) as usize;
        own[which].0.insert(time).unwrap();
        own.iter_mut().for_each(|(input, _)| input.advance_to(time + 1).unwrap());
        let changes = own[which].1.wait_past(&time, LONG).unwrap();
        assert!(changes.iter().any(|(datum, at, diff)| (*datum, *at, *diff) == (time, time, 1)));
        with_inputs += clock() - start;
    }
    (imported, with_inputs)
}

#[test]
fn case_31_a_thousand_dataflows_one_update() {
    // Ten times as many: what is quadratic takes a hundred times as long.
    let small = many_dataflows(100);
    let large = many_dataflows(1000);
    println!("forty ticks of 100 dataflows: {small:?}; of 1,000: {large:?} (importing, with inputs of their own)");
    assert!(large.0 < small.0 * 60 + 3 * NOISE, "{small:?}, {large:?}");
    assert!(large.1 < small.1 * 60 + 3 * NOISE, "{small:?}, {large:?}");
}

/// Thirty times both halves of a collection put together again: thirty doublings of the paths, linear work. A thousand
/// producers into one concat, a thousand consumers behind it.
#[test]
fn case_32_paths_that_double() {
    let start = clock();
    let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
    let (_query, (mut input, mut output)) = engine
        .install("doubled", |scope| {
            let (input, data) = scope.input::<u64>();
            let mut out = data;
            for bit in 0..30 {
                out = out.filter(move |x| x >> bit & 1 == 0).concat(&out.filter(move |x| x >> bit & 1 == 1));
            }
            (input, out.subscribe())
        })
        .unwrap();
    (0..1000).for_each(|x| input.insert(x).unwrap());
    input.advance_to(1).unwrap();
    let updates = output.wait_past(&0, LONG).unwrap();
    assert!(updates.into_iter().eq((0..1000).map(|x| (x, 0, 1))));
    println!("thirty doublings: {:?}", clock() - start);

    let wide = |size: usize| {
        let Sim { engine, workers: _workers } = simulated(1, 1, MergePolicy::default());
        let (query, (mut inputs, probes)) = engine
            .install("wide", |scope| {
                let (inputs, data): (Vec<_>, Vec<_>) = (0..size).map(|_| scope.input::<u64>()).unzip();
                let all = Collection::concat_all(&data);
                (inputs, (0..size).map(|_| all.probe()).collect::<Vec<_>>())
            })
            .unwrap();
        inputs[0].insert(1).unwrap();
        inputs.iter_mut().for_each(|input| input.advance_to(1).unwrap());
        probes.iter().for_each(|probe| probe.wait_past(&0, LONG).unwrap());
        query.retire().unwrap();
    };
    let small = best(2, || wide(250));
    let large = best(1, || wide(1000));
    println!("producers and consumers: 250 {small:?}, 1,000 {large:?}");
    assert!(large < small * 12 + Duration::from_millis(100), "{small:?}, {large:?}");
}
