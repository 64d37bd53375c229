//! Invariants 10, 12 and 29: chains of batches and their ends, imports at any moment, views through rep_F.

use crate::support::*;
use kpg::operators::PublishedArrangement;
use kpg::order::PartialOrder;
use kpg::prelude::*;
use kpg::trace::OrdBatch;

type Shared<T> = PublishedArrangement<OrdBatch<u64, u64, T, i64>>;

/// Epoch `time` of a collection in which each of eight keys moves on.
fn epoch(time: u64) -> Vec<((u64, u64), i64)> {
    let of = |time: u64, diff: i64| (0..8).map(move |key| ((key, time * (key + 1) % 11), diff));
    match time {
        0 => of(0, 1).collect(),
        _ => of(time, 1).chain(of(time - 1, -1)).collect(),
    }
}

fn model(epochs: u64) -> Vec<((u64, u64), u64, i64)> {
    (0..epochs).flat_map(|time| epoch(time).into_iter().map(move |(datum, diff)| (datum, time, diff))).collect()
}

const EPOCHS: u64 = 24;
/// What poisons the source.
const POISON: u64 = u64::MAX;

struct Source {
    query: Query,
    input: Input<u64, (u64, u64)>,
    shared: Shared<u64>,
}

fn source(sim: &Sim) -> Source {
    let (query, (input, shared)) = sim
        .engine
        .install("source", |scope| {
            let (input, data) = scope.input::<(u64, u64)>();
            let data = data.map_named("checked", |(key, val)| {
                assert!(key != POISON, "poison");
                (key, val)
            });
            (input, data.arrange_by_key().publish())
        })
        .unwrap();
    Source { query, input, shared }
}

struct Importer {
    first: u64,
    plain: Heard<(u64, u64), u64>,
    squared: Heard<(u64, (u64, u64)), u64>,
}

fn import(sim: &Sim, shared: &Shared<u64>) -> Importer {
    let (_query, (clock, plain, squared)) = sim
        .engine
        .install("importer", |scope| {
            let arranged = shared.import(scope);
            let (clock, _) = scope.input::<u64>();
            let squared = arranged.join_core(&arranged, |key, v, w| Some((key, (v, w))));
            (clock, arranged.as_collection(|key, val| (key, val)).subscribe(), squared.subscribe())
        })
        .unwrap();
    Importer { first: clock.time(), plain: Heard::new(plain), squared: Heard::new(squared) }
}

impl Importer {
    fn check(&mut self, model: &[((u64, u64), u64, i64)]) {
        let (first, last) = (self.first, EPOCHS + 2);
        self.plain.check(first..last, |at| sums(model, at));
        self.squared.check(first..last, |at| joined(&sums(model, at), &sums(model, at)));
        assert!(self.plain.updates.iter().all(|(_, time, _)| *time >= first), "an update before the first time");
    }
}

/// Runs the source for `steps` single steps, epoch by epoch; then `then`, then the rest if `goes_on`.
fn run(sim: &Sim, source: &mut Source, random: &mut Random, steps: std::ops::Range<u64>) {
    for step in steps {
        let time = source.input.time();
        if step % 3 == 0 && time < EPOCHS {
            for (datum, diff) in epoch(time) {
                source.input.update(datum, diff).unwrap();
                if random.below(4) == 0 {
                    source.input.flush().unwrap();
                }
            }
            source.input.advance_to(time + 1).unwrap();
        }
        sim.step(random);
    }
}

/// The import is installed after each number of steps, so at each moment of the merges that go on: history and what is
/// live fit together, each accumulation is one that was.
#[test]
fn inv_12_import_in_mid_merge_at_every_moment() {
    let all = model(EPOCHS);
    let total = EPOCHS * 3 + 20;
    for moment in 0..total {
        let random = &mut Random::new(moment);
        let sim = simulated(1 + moment as usize % 2, moment, MergePolicy::lazy());
        let mut source = source(&sim);
        run(&sim, &mut source, random, 0..moment);
        let mut importer = import(&sim, &source.shared);
        importer.check(&all);
        for step in moment..total {
            run(&sim, &mut source, random, step..step + 1);
            importer.check(&all);
        }
        assert_eq!(source.input.time(), EPOCHS);
        drop(source.input);
        sim.settle();
        assert!(importer.plain.is_closed() && importer.squared.is_closed());
        importer.check(&all);
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Closed,
    Retired,
    Poisoned,
}

/// Each of the three ends after each number of steps, two workers at different points: a closed chain is heard to its
/// end, also by late importers; after the two others what is complete is true, and nothing more comes (CASES 30, 33).
fn ends(end: End) {
    let all = model(EPOCHS);
    for moment in (1..EPOCHS * 3).step_by(2) {
        let random = &mut Random::new(moment + 500);
        let sim = simulated(2, moment, MergePolicy::lazy());
        let mut source = source(&sim);
        let mut importer = import(&sim, &source.shared);
        run(&sim, &mut source, random, 0..moment);
        importer.check(&all);
        let time = source.input.time();
        match end {
            End::Closed => drop(source.input),
            End::Retired => source.query.retire_cascade().unwrap(),
            End::Poisoned => {
                source.input.insert((POISON, 0)).unwrap();
                source.input.flush().unwrap();
                // From here on it may fail at any time, and says so.
                let _ = source.input.advance_to(time + 1);
            }
        }
        sim.settle();
        let complete = importer.plain.subscription.complete();
        if end == End::Closed {
            assert!(complete.is_empty());
            let mut late = import(&sim, &source.shared);
            sim.settle();
            assert!(late.plain.is_closed());
            late.check(&model(time));
            importer.check(&model(time));
            continue;
        }
        assert!(complete.less_equal(&time), "{end:?} at {moment}: {complete:?} has passed what was never sealed");
        let updates = loop {
            match importer.plain.subscription.poll() {
                Ok(updates) if updates.is_empty() => panic!("the importer did not hear of {end:?} at {moment}"),
                Ok(updates) => importer.plain.updates.extend(updates),
                Err(Error::SourceEnded { source, .. }) if source == "source" => break importer.plain.updates,
                Err(Error::Retired { .. }) if end == End::Retired => break importer.plain.updates,
                Err(error) => panic!("{error}"),
            }
        };
        for at in (importer.first..EPOCHS).filter(|at| !complete.less_equal(at)) {
            assert_eq!(sums(&updates, &at), sums(&all, &at), "{end:?} after {moment} steps, at {at}");
        }
    }
}

#[test]
fn inv_10_closed_chains_are_heard_to_their_end() {
    ends(End::Closed);
}

#[test]
fn inv_10_retired_chains_seal_nothing() {
    ends(End::Retired);
}

#[test]
fn inv_10_poisoned_chains_seal_nothing() {
    ends(End::Poisoned);
}

/// Two sources over pairs, one ahead in the first coordinate, one in the second; imported as of the join of both, where
/// times of either may lie beyond its upper: join, reduce and updates against what was put in.
#[test]
fn inv_29_views_through_rep() {
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let policy = if seed % 2 == 0 { MergePolicy::lazy() } else { MergePolicy::eager() };
        let sim = simulated(1 + seed as usize % 2, seed, policy);
        let source = |scope: &Scope<'_, Time2>| {
            let (input, data) = scope.input::<(u64, u64)>();
            (input, data.arrange_by_key().publish())
        };
        let (_a, (left, shared_left)) = sim.engine.install_at::<Time2, _, _>("left", source).unwrap();
        let (_b, (right, shared_right)) = sim.engine.install_at::<Time2, _, _>("right", source).unwrap();
        let (mut left, mut right) = (Feed::new(left), Feed::new(right));
        let bias = random.below(4);
        let life = |sim: &Sim, random: &mut Random, rounds: u64, left: &mut Feed, right: &mut Feed| {
            for _ in 0..rounds {
                for _ in 0..random.below(4) {
                    if random.coin() { left.push(random, 2, 3) } else { right.push(random, 2, 3) }
                }
                // One of them is slow.
                if random.below(4) >= bias {
                    left.advance(random);
                } else {
                    right.advance(random);
                }
                sim.some_steps(random, 6);
            }
        };
        life(&sim, random, seed % 12, &mut left, &mut right);
        if seed % 3 == 0 {
            sim.settle();
        }
        let (_query, (clock, both, largest, plain)) = sim
            .engine
            .install_at::<Time2, _, _>("importer", |scope| {
                let (a, b) = (shared_left.import(scope), shared_right.import(scope));
                let (clock, _) = scope.input::<u64>();
                let largest =
                    a.reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[vals.len() - 1].0, 1)));
                (
                    clock,
                    a.join_core(&b, |key, v, w| Some((key, (v, w)))).subscribe(),
                    largest.join_core(&b, |key, v, w| Some((key, (v, w)))).subscribe(),
                    b.as_collection(|key, val| (key, val)).subscribe(),
                )
            })
            .unwrap();
        let first = clock.time();
        let mut heard = (Heard::new(both), Heard::new(largest), Heard::new(plain));
        let from = || square().filter(move |at| first.less_equal(at));
        let mut check = |left: &[((u64, u64), Time2, i64)], right: &[((u64, u64), Time2, i64)]| {
            heard.0.check(from(), |at| joined(&sums(left, at), &sums(right, at)));
            heard.1.check(from(), |at| {
                let mut last = Sums::new();
                for (key, val) in sums(left, at).into_keys() {
                    last.retain(|(other, _), _| *other != key);
                    last.insert((key, val), 1);
                }
                joined(&last, &sums(right, at))
            });
            heard.2.check(from(), |at| sums(right, at));
            heard.0.is_closed() && heard.1.is_closed() && heard.2.is_closed()
        };
        drop(clock);
        for _ in 0..10 {
            life(&sim, random, 1, &mut left, &mut right);
            check(&left.model, &right.model);
        }
        let (left, right) = (left.close(), right.close());
        sim.settle();
        assert!(check(&left, &right), "seed {seed}: not closed");
    }
}
