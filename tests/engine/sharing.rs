//! What queries share, and who pays for it: published streams, lag, quanta of stages, rest at the end.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use kpg::runtime::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(20);

fn engine(workers: usize) -> Engine {
    Engine::start(Config::default().workers(workers).pinned(false)).unwrap()
}

/// A published stream: from now on, each change once, no history.
#[test]
fn a_stream_shows_what_changes_from_now_on() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let (_, (mut input, probe, stream)) = engine
            .install("source", |scope| {
                let (input, numbers) = scope.input::<u64>();
                (input, numbers.probe(), numbers.publish_stream())
            })
            .unwrap();
        // Whoever came before knows when a round is complete in what is published.
        let (_, mut early) = engine.install("early", |scope| stream.import(scope).subscribe()).unwrap();
        for round in 0..50u64 {
            input.insert(round).unwrap();
            input.advance_to(round + 1).unwrap();
            assert_eq!(early.wait_past(&round, SOON).unwrap(), [(round, round, 1)]);
        }
        let (query, mut changes) = engine.install("late", |scope| stream.import(scope).subscribe()).unwrap();
        for round in 50..60u64 {
            input.insert(round).unwrap();
            input.remove(round - 50).unwrap();
            input.advance_to(round + 1).unwrap();
        }
        let got = changes.wait_past(&59, SOON).unwrap().into_vec();
        let late: Vec<_> = got.iter().copied().filter(|(_, time, _)| *time >= 50).collect();
        let mut expected = Vec::new();
        for round in 50..60u64 {
            expected.extend([(round - 50, round, -1), (round, round, 1)]);
        }
        assert_eq!(late, expected, "at {workers} workers");
        // What was complete long before is no part of it: whole rounds from one on, of which the last few may be.
        let (before, _) = got.split_at(got.len() - expected.len());
        let first = 50 - before.len() as u64;
        assert!(before.iter().copied().eq((first..50).map(|round| (round, round, 1))), "{before:?}");
        assert!(got.len() <= expected.len() + 4, "{} changes at {workers} workers", got.len());
        query.retire().unwrap();
        // No history: what is kept does not grow with what has been put in.
        let kept = |engine: &Engine| engine.metrics().queries.iter().map(|q| q.bytes.shared).sum::<usize>();
        let before = kept(&engine);
        for round in 60..400u64 {
            for i in 0..100 {
                input.insert(round * 100 + i).unwrap();
            }
            input.advance_to(round + 1).unwrap();
            probe.wait_past(&round, SOON).unwrap();
        }
        assert!(kept(&engine) < before + 64 * 1024 * workers, "{} bytes were {before}", kept(&engine));
    }
}

/// An input that is never advanced: what its query keeps of what it shares is shown, grows, and goes when it catches up.
#[test]
fn lag_is_shown_and_goes_with_it() {
    let (engine, mut input, probe, published) = source();
    let (lazy, mut idle) = engine
        .install("lazy", |scope| {
            let (input, keys) = scope.input::<u64>();
            published.import(scope).join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v))).probe();
            input
        })
        .unwrap();
    churn(&mut input, &probe, 1..120);
    let deadline = Instant::now() + SOON;
    let mut time = 120;
    let lag = || lazy.lags().iter().map(|lag| lag.bytes).sum::<usize>();
    while lag() < 32 * 1024 {
        assert!(Instant::now() < deadline, "{:?}", lazy.lags());
        churn(&mut input, &probe, time..time + 10);
        time += 10;
    }
    assert_eq!(lazy.lags()[0].source, "source");
    // The last rounds may count: they came after it was last looked at.
    while lag() > 4096 {
        assert!(Instant::now() < deadline, "{:?}", lazy.lags());
        idle.advance_to(time).unwrap();
        churn(&mut input, &probe, time..time + 10);
        time += 10;
    }
}

/// The cap of the query that lags ends it, and it alone.
#[test]
fn lag_beyond_the_cap_ends_the_query_that_lags() {
    let (engine, mut input, probe, published) = source();
    let (lazy, (_idle, lagging)) = engine
        .install_capped::<u64, _, _>("lazy", Some(64 * 1024), |scope| {
            let (input, keys) = scope.input::<u64>();
            let pairs = published.import(scope).join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v)));
            (input, pairs.probe())
        })
        .unwrap();
    let deadline = Instant::now() + SOON;
    let mut time = 1;
    while lazy.error().is_none() {
        assert!(Instant::now() < deadline, "{:?}", lazy.lags());
        churn(&mut input, &probe, time..time + 10);
        time += 10;
    }
    match lagging.wait_past(&time, SOON) {
        Err(Error::Poisoned { query, operator, failure: Failure::OutOfMemory(text) }) => {
            assert_eq!((query.as_str(), operator.as_str()), ("lazy", "import"));
            assert!(text.contains("let them follow"), "{text}");
        }
        other => panic!("{other:?}"),
    }
    churn(&mut input, &probe, time..time + 10);
    assert_eq!(published.wait_snapshot(&(time + 9), SOON).unwrap().get(&1).count(), 1);
}

type Source = (Engine, Input<u64, (u64, u64)>, Probe<u64>, Published<u64, u64>);

fn source() -> Source {
    let engine = engine(2);
    let (_, (input, probe, published)) = engine
        .install("source", |scope| {
            let (input, pairs) = scope.input::<(u64, u64)>();
            let arranged = pairs.arrange_by_key();
            (input, arranged.as_collection(|_, _| ()).probe(), arranged.publish())
        })
        .unwrap();
    (engine, input, probe, published)
}

/// Each key's val is replaced in each round.
fn churn(input: &mut Input<u64, (u64, u64)>, probe: &Probe<u64>, rounds: std::ops::Range<u64>) {
    for round in rounds {
        for key in 0..50 {
            if round > 1 {
                input.remove((key, round - 1)).unwrap();
            }
            input.insert((key, round)).unwrap();
        }
        input.advance_to(round + 1).unwrap();
        probe.wait_past(&round, SOON).unwrap();
    }
}

/// Stages that make much of little don't hold others up: they yield, and nothing is lost or passed meanwhile.
#[test]
fn stages_yield_and_lose_nothing() {
    let engine = engine(2);
    let (_, (mut small, mut quick)) = engine
        .install("quick", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.subscribe())
        })
        .unwrap();
    let (_, (mut big, mut counts, probe)) = engine
        .install("big", |scope| {
            let (input, numbers) = scope.input::<u64>();
            let many = numbers.flat_map(|n| (0..200u64).map(move |i| n * 200 + i));
            let more = many.flat_map(|n| (0..20u64).map(move |i| n * 20 + i)).map(|n| n % 7);
            (input, more.count().subscribe(), more.probe())
        })
        .unwrap();
    for n in 0..500 {
        big.insert(n).unwrap();
    }
    big.advance_to(1).unwrap();
    let mut slowest = Duration::ZERO;
    for round in 0..20 {
        let start = Instant::now();
        small.insert(round).unwrap();
        small.advance_to(round + 1).unwrap();
        assert_eq!(quick.wait_past(&round, SOON).unwrap(), [(round, round, 1)]);
        slowest = slowest.max(start.elapsed());
    }
    probe.wait_past(&0, SOON).unwrap();
    let total: i64 = counts.wait_past(&0, SOON).unwrap().iter().map(|((_, count), _, diff)| count * diff).sum();
    assert_eq!(total, 500 * 200 * 20);
    assert!(slowest < Duration::from_secs(5), "{slowest:?}");
}

/// A million updates from one step, or a thousand that a stage turns into a million, are more than a turn's work: a worker's
/// step passes on a bounded part of them, and what is left holds the frontier.
#[test]
fn a_stage_yields_inside_a_message_and_a_dataflow_after_a_turn() {
    // A turn is four quanta; each stage that is fed once more before it stops adds a message.
    let bound = 8 * kpg::dataflow::QUANTUM as u64;
    for expand in [1u64, 1_000] {
        let [mapped, made, passed] = [0; 3].map(|zero| Arc::new(AtomicU64::new(zero)));
        let (engine, mut seeds) = Engine::start_hosted(Config::default().workers(1).pinned(false)).unwrap();
        let worker = seeds.remove(0).start();
        let (_, (mut input, probe)) = engine
            .install("large messages", |scope| {
                let (input, numbers) = scope.input::<u64>();
                let large = numbers.unary::<u64, i64>("one message", move |input, output, _| {
                    while let Some((token, chunk)) = input.next() {
                        let mut session = output.session(&token);
                        for (n, time, diff) in chunk.iter() {
                            (0..1_000_000 / expand).for_each(|i| session.give(n + i, time, diff));
                        }
                    }
                    false
                });
                let counting = |counter: &Arc<AtomicU64>| {
                    let counter = counter.clone();
                    move |by| counter.fetch_add(by, Relaxed)
                };
                let (mapped, made, passed) = (counting(&mapped), counting(&made), counting(&passed));
                let mapping = large.map(move |n| n + mapped(1).min(1));
                let many = mapping.flat_map(move |n| {
                    made(expand);
                    (0..expand).map(move |i| n + i)
                });
                let passing = many.filter(|n| n > 0).inspect(move |_, _, _| _ = passed(1));
                (input, passing.probe())
            })
            .unwrap();
        input.insert(1).unwrap();
        input.advance_to(1).unwrap();
        let mut before = [0; 3];
        loop {
            worker.step();
            let now = [&mapped, &made, &passed].map(|counter| counter.load(Relaxed));
            assert!((0..3).all(|i| now[i] - before[i] <= bound), "{before:?} to {now:?} in one step");
            before = now;
            if probe.is_past(&0) {
                break;
            }
        }
        assert_eq!(passed.load(Relaxed), 1_000_000);
        engine.shutdown(SOON).unwrap();
    }
}

/// Time passes over an arrangement that has nothing pending: it mints no batch, and its readers take no step.
#[test]
fn an_idle_arrangement_mints_no_batch() {
    let deliveries = Arc::new(AtomicU64::new(0));
    let engine = engine(1);
    let (_, (mut idle, mut busy, probe)) = engine
        .install("idle", |scope| {
            let (idle, numbers) = scope.input::<u64>();
            let (busy, others) = scope.input::<u64>();
            let mut reader = scope.operator("reader");
            let mut batches = reader.input_arranged(&numbers.arrange_by_self());
            let (_, nothing) = reader.output::<u64, i64>();
            let count = deliveries.clone();
            reader.build(move |_| {
                while batches.next().is_some() {
                    count.fetch_add(1, Relaxed);
                }
                false
            });
            (idle, busy, nothing.concat(&others).probe())
        })
        .unwrap();
    idle.insert(1).unwrap();
    for time in 0..1_000 {
        busy.insert(time).unwrap();
        idle.advance_to(time + 1).unwrap();
        busy.advance_to(time + 1).unwrap();
        probe.wait_past(&time, SOON).unwrap();
    }
    assert_eq!(deliveries.load(Relaxed), 1);
    engine.shutdown(SOON).unwrap();
}

/// Shutting down lets what was put in come through first.
#[test]
fn shutdown_drains() {
    let engine = engine(2);
    let (_, (mut input, mut sums)) = engine
        .install("sum", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.map(|n| n % 10).count().subscribe())
        })
        .unwrap();
    for n in 0..100_000 {
        input.insert(n).unwrap();
    }
    input.advance_to(1).unwrap();
    let report = engine.shutdown(SOON).unwrap();
    assert!(report.drained);
    assert_eq!(sums.wait_past(&0, SOON).unwrap().len(), 10);
    assert_eq!(input.insert(1), Err(Error::Shutdown));
}

/// What a subscription handed over can be read in the arrangements below it until it hands over more: in its own
/// dataflow, and in one that imports. Without a hold that history is folded away.
#[test]
fn a_subscription_that_holds_keeps_what_it_hands_over_readable() {
    for workers in 1..=2 {
        let engine = engine(workers);
        let (_, (mut input, probe, shared, mut plain, mut own)) = engine
            .install("source", |scope| {
                let (input, data) = scope.input::<(u64, u64)>();
                let arranged = data.arrange_by_key();
                let shared = arranged.publish();
                let out = arranged.as_collection(|k, v| (k, v));
                (input, out.probe(), shared.clone(), out.subscribe(), out.subscribe_holding(&[&shared]))
            })
            .unwrap();
        let (_, mut imported) = engine
            .install("importer", |scope| {
                shared.import(scope).as_collection(|k, v| (k, v)).subscribe_holding(&[&shared])
            })
            .unwrap();
        // At time t key t % 4 has the one val t in place of t - 4.
        let mut feed = |times: std::ops::Range<u64>| {
            for t in times {
                input.insert((t % 4, t)).unwrap();
                if t >= 4 {
                    input.remove((t % 4, t - 4)).unwrap();
                }
                input.advance_to(t + 1).unwrap();
                probe.wait_past(&t, SOON).unwrap();
            }
        };
        let check = |t: u64| {
            let snapshot = shared.snapshot_at(&t).unwrap_or_else(|error| panic!("at {t}: {error}"));
            let vals: Vec<_> = snapshot.iter().map(|(k, v, diff)| ((k, v), diff)).collect();
            let mut expected: Vec<_> = (t.saturating_sub(3)..=t).map(|u| ((u % 4, u), 1)).collect();
            expected.sort_unstable();
            let mut vals = vals;
            vals.sort_unstable();
            assert_eq!(vals, expected, "at {t}");
        };
        let folded = |t: u64| matches!(shared.snapshot_at(&t), Err(kpg::Error::Compacted { .. }));
        feed(0..200);
        for sub in [&mut own, &mut imported] {
            let through = sub.wait_past(&5, SOON).unwrap();
            assert!(!through.is_empty());
        }
        plain.wait_past(&199, SOON).unwrap();
        (0..=5).for_each(check);
        for sub in [&mut own, &mut imported] {
            sub.wait_past(&120, SOON).unwrap();
        }
        // A take that hands over nothing new lets nothing go.
        assert!(own.wait_past(&100, SOON).unwrap().is_empty());
        feed(200..400);
        (6..=120).for_each(check);
        // The holds went along.
        assert!(folded(4), "history before the last take is kept");
        imported.poll().unwrap();
        own.poll().unwrap();
        feed(400..600);
        (121..=399).for_each(check);
        assert!(folded(119));
        // They end with the subscriptions; the other subscription held nothing all the while.
        drop(imported);
        feed(600..700);
        (121..=399).for_each(check);
        drop(own);
        feed(700..900);
        assert!(folded(121) && folded(399) && folded(800), "history is kept though nobody holds it");
        assert!(!plain.wait_past(&899, SOON).unwrap().is_empty());
    }
}

/// What a thousand queries that import cost per tick while nobody watches them: hardly anything. Yet what they keep of
/// their source goes along, they hear of data at once, and who waits for a time hears of each.
#[test]
fn queries_that_nobody_watches_do_not_hear_each_tick() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    const IDLE: usize = 100;
    for workers in 1..=2 {
        let (queries, ticks) = if workers == 1 { (1000, 10_000) } else { (100, 2_000) };
        let config = Config::default().workers(workers).idle_tick(IDLE);
        let (engine, steppers) = Engine::start_simulated(config, workers as u64).unwrap();
        let settle = || {
            // As often as a message may be held back, and again.
            let mut quiet = 0;
            while quiet < 8 {
                quiet = if steppers.iter().filter(|worker| worker.step()).count() > 0 { 0 } else { quiet + 1 };
            }
        };
        let (_, (mut input, shared)) = engine
            .install("source", |scope| {
                let (input, data) = scope.input::<(u64, u64)>();
                (input, data.arrange_by_key().publish())
            })
            .unwrap();
        let seen = std::sync::Arc::new(AtomicUsize::new(0));
        for _ in 0..queries {
            let install = engine.install("unwatched", |scope| {
                let seen = seen.clone();
                let (a, b) = (shared.import(scope), shared.import(scope));
                // Arranged and counted, so that there are capabilities while there is data.
                let joined = a.join_core(&b, |key, v, w| Some((key, v + w)));
                joined.map(|(key, _)| key).count().inspect(move |_, _, _| {
                    seen.fetch_add(1, Ordering::SeqCst);
                });
            });
            install.unwrap();
        }
        settle();
        let steps = || engine.metrics().queries.iter().filter(|q| q.name == "unwatched").map(|q| q.node_steps).sum();
        let tick = |input: &mut Input<u64, (u64, u64)>, ticks: u64| {
            for _ in 0..ticks {
                input.advance_to(input.time() + 1).unwrap();
                steppers.iter().for_each(|worker| {
                    worker.step();
                });
            }
            settle();
        };
        let before: u64 = steps();
        let mut spent = 0;
        for done in (0..ticks).step_by(500) {
            tick(&mut input, 500);
            spent = steps() - before;
            // Two imports each, on each worker, every hundredth tick, and who hears the last of them of their frontiers.
            let most = (queries * workers * 2 * 4) as u64 * ((done + 500) / IDLE as u64 + 1);
            assert!(spent <= most, "{spent} steps for {done} ticks and more at {workers} workers, at most {most}");
        }
        assert!(spent > 0, "nobody heard anything");
        // Data is heard of at once, to the end: the count comes once its time is complete.
        for round in 1..=3 {
            input.insert((7, round)).unwrap();
            tick(&mut input, 2);
            // The new count, and the old one, if there was one.
            assert_eq!(seen.load(Ordering::SeqCst), queries * (2 * round as usize - 1), "in round {round}");
        }
        // What they keep of the source lags by the ticks they were not told of, and no more.
        let start = input.time();
        for round in 0..30 {
            input.insert((round % 3 + 100, round)).unwrap();
            tick(&mut input, 10);
        }
        assert!(
            matches!(shared.snapshot_at(&(start + 10)), Err(kpg::Error::Compacted { .. })),
            "the source keeps its history"
        );
        // Who waits for each time hears of each.
        let (_, probe) =
            engine.install("watched", |scope| shared.import(scope).as_collection(|k, v| (k, v)).probe()).unwrap();
        for _ in 0..10 {
            let time = input.time();
            input.advance_to(time + 1).unwrap();
            probe.wait_past(&time, SOON).unwrap();
        }
    }
}

/// A probe of an arrangement follows its times, and is no reader: without one no batch is kept.
#[test]
fn a_probe_of_an_arrangement_is_no_reader() {
    let engine = engine(2);
    let (query, (mut input, probe)) = engine
        .install("probed", |scope| {
            let (input, pairs) = scope.input::<(u64, u64)>();
            (input, pairs.arrange_by_key().probe())
        })
        .unwrap();
    let mut most = 0;
    for time in 0..50u64 {
        (0..1000u64).for_each(|key| input.insert((key.wrapping_mul(0x9E37_79B9_7F4A_7C15), time)).unwrap());
        assert!(!probe.is_past(&time));
        input.advance_to(time + 1).unwrap();
        probe.wait_past(&time, SOON).unwrap();
        most = most.max(query.bytes().private + query.bytes().shared);
    }
    assert!(most < 20 * 16 * 1000, "{most} B of 50 rounds of 16,000");
}
