//! The tracker against brute force: random nested graphs, random counts, some negative for a while.
#![forbid(unsafe_code)]

mod progress_graphs;

use kpg::order::{Antichain, Coords};
use kpg::progress::{ChangeBatch, Location, Tracker};
use progress_graphs::{Rng, World, minimal, random};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn sorted(frontier: &Antichain<Coords>) -> Vec<Coords> {
    let mut out = frontier.elements().to_vec();
    out.sort_unstable();
    out
}

type Counts = BTreeMap<(Location, Coords), i64>;

/// Applies random changes in rounds, and checks each round against `expected`; returns all changes.
fn check(
    rng: &mut Rng,
    world: &World,
    tracker: &mut Tracker,
    most: u64,
    expected: impl Fn(&Counts) -> Vec<BTreeSet<Coords>>,
) -> Vec<(Location, Coords, i64)> {
    let mut counts = Counts::new();
    let mut all = Vec::new();
    for _ in 0..12 {
        let before: Vec<_> = world.locations().map(|l| tracker.frontier(l).clone()).collect();
        for _ in 0..1 + rng.below(6) {
            let known = rng.below(counts.len() + 1);
            let (location, time) = match counts.keys().nth(known) {
                Some(&pointstamp) if rng.chance(70) => pointstamp,
                _ => {
                    let location = rng.below(world.graph.location_count()) as Location;
                    (location, world.time(rng, location, most))
                }
            };
            let diff = rng.below(5) as i64 - 2;
            tracker.update(location, time, diff);
            all.push((location, time, diff));
            *counts.entry((location, time)).or_default() += diff;
        }
        counts.retain(|_, count| *count != 0);
        let mut changed = BTreeSet::new();
        tracker.propagate(|location| assert!(changed.insert(location), "told twice of {location}"));
        tracker.check_invariants();
        assert_eq!(tracker.is_empty(), counts.is_empty());
        for (location, times) in world.locations().zip(expected(&counts)) {
            assert_eq!(sorted(tracker.frontier(location)), minimal(&times), "{}", world.graph.location_name(location));
            assert_eq!(changed.contains(&location), *tracker.frontier(location) != before[location as usize]);
            let here = counts.iter().filter(|x| x.0.0 == location).map(|(x, &count)| (x.1, count));
            assert_eq!(tracker.counts(location), here.collect::<Vec<_>>());
        }
    }
    for ((location, time), count) in counts {
        tracker.update(location, time, -count);
        all.push((location, time, -count));
    }
    tracker.propagate(|_| {});
    assert!(tracker.is_empty() && world.locations().all(|l| tracker.frontier(l).is_empty()));
    all
}

/// Edge by edge over all times there are: each coordinate is at most 2 or 3, so that loops meet their maxima.
#[test]
fn as_could_result_in_with_small_maxima() {
    for seed in 0..150 {
        let mut rng = Rng(seed);
        let maximum = 2 + seed % 2;
        let world = random(&mut rng, (seed % 3) as usize, maximum);
        let world = &world;
        let mut tracker = Tracker::new(Arc::new(random(&mut Rng(seed), world.root, maximum).graph));
        check(&mut rng, world, &mut tracker, maximum, |counts| {
            let mut out = vec![BTreeSet::new(); world.graph.location_count()];
            for (&pointstamp, _) in counts.iter().filter(|x| *x.1 > 0) {
                for (location, time) in world.could_result_in(pointstamp) {
                    out[location as usize].insert(time);
                }
            }
            out
        });
    }
}

/// By the antichains of the summaries of all paths, with no maximum in reach. And in any order of delivery.
#[test]
fn as_summaries_of_paths() {
    for seed in 0..150 {
        let mut rng = Rng(1000 + seed);
        let world = random(&mut rng, (seed % 3) as usize, u64::MAX);
        let world = &world;
        let graph = Arc::new(random(&mut Rng(1000 + seed), world.root, u64::MAX).graph);
        let paths: Vec<_> = world.locations().map(|l| world.paths(l)).collect();
        let expected = |counts: &Counts| {
            let mut out = vec![BTreeSet::new(); world.graph.location_count()];
            for ((from, time), _) in counts.iter().filter(|x| *x.1 > 0) {
                for (&to, summaries) in &paths[*from as usize] {
                    let times = summaries.iter().filter_map(|s| s.apply(time, &world.maxima(to)));
                    out[to as usize].extend(times);
                }
            }
            out
        };
        let mut tracker = Tracker::new(graph.clone());
        let mut all = check(&mut rng, world, &mut tracker, 5, expected);

        // A prefix of all changes, in another order and other batches, comes to the same.
        all.truncate(all.len() / 2);
        let mut counts = Counts::new();
        all.iter().for_each(|&(l, t, diff)| *counts.entry((l, t)).or_default() += diff);
        for index in 1..all.len() {
            all.swap(index, rng.below(index + 1));
        }
        let mut tracker = Tracker::new(graph.clone());
        while !all.is_empty() {
            let mut batch = ChangeBatch::new();
            batch.extend(all.drain(..(1 + rng.below(4)).min(all.len())));
            tracker.apply(&mut batch);
            assert!(batch.is_empty());
            tracker.propagate(|_| {});
            tracker.check_invariants();
        }
        for (location, times) in world.locations().zip(expected(&counts)) {
            assert_eq!(sorted(tracker.frontier(location)), minimal(&times));
        }
    }
}

/// The comparison above is worth something: an update that a tracker never hears of shows.
#[test]
fn a_lost_update_is_caught() {
    let caught = (0..50).filter(|&seed| {
        let mut rng = Rng(seed);
        let world = random(&mut rng, 1, 3);
        let mut tracker = Tracker::new(Arc::new(random(&mut Rng(seed), 1, 3).graph));
        let mut expected = vec![BTreeSet::new(); world.graph.location_count()];
        let lost = rng.below(4);
        for index in 0..4 {
            let location = rng.below(world.graph.location_count()) as Location;
            let time = world.time(&mut rng, location, 3);
            if index != lost {
                tracker.update(location, time, 1);
            }
            world.could_result_in((location, time)).into_iter().for_each(|(to, time)| {
                expected[to as usize].insert(time);
            });
        }
        tracker.propagate(|_| {});
        world.locations().zip(&expected).any(|(l, times)| sorted(tracker.frontier(l)) != minimal(times))
    });
    assert!(caught.count() >= 25);
}

/// The graphs above are worth something: they have loops, depth, and backward edges.
#[test]
fn random_graphs_are_rich() {
    let (mut deep, mut rounds) = (0, 0);
    for seed in 0..150 {
        let world = random(&mut Rng(seed), (seed % 3) as usize, u64::MAX);
        deep += usize::from(world.locations().any(|l| world.graph.coordinates(l) >= world.root + 3));
        rounds += usize::from(world.locations().any(|l| {
            let paths = world.paths(l);
            let again = world.graph.edges(l).any(|(to, _)| world.paths(to).contains_key(&l));
            again && paths.len() > 4
        }));
    }
    assert!(deep > 15 && rounds > 75, "{deep} with three levels, {rounds} with cycles");
}
