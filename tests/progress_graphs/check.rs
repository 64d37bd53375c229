//! The tracker against brute force: one check for seeds, for properties, for the fuzz target and for saved inputs.
//!
//! Counts change at random, in rounds; after each the tracker's frontiers must be the minimal times of what `World` finds
//! by walking. A planted fault, for canaries, is a change that the tracker is not told of.

use super::{Rng, World, minimal, random};
use kpg::order::{Antichain, Coords};
use kpg::progress::{ChangeBatch, Location, Tracker};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The elements in their order.
pub fn sorted(frontier: &Antichain<Coords>) -> Vec<Coords> {
    let mut out = frontier.elements().to_vec();
    out.sort_unstable();
    out
}

type Counts = BTreeMap<(Location, Coords), i64>;
type Changes = Vec<(Location, Coords, i64)>;

/// One of the checks below, as bytes choose.
///
/// # Panics
/// If the tracker differs from brute force.
pub fn check_bytes(bytes: &[u8], planted: bool) {
    let mut rng = Rng::of(bytes);
    let root = rng.below(3);
    match rng.below(3) {
        0 => paths(&mut rng, root, planted),
        maximum => small_maxima(&mut rng, root, 1 + maximum as u64, planted),
    }
}

/// Edge by edge over all times there are: each coordinate is at most `maximum`.
pub fn small_maxima(rng: &mut Rng, root: usize, maximum: u64, planted: bool) {
    let graph = random(&mut rng.clone(), root, maximum).graph;
    let world = random(rng, root, maximum);
    let mut tracker = Tracker::new(Arc::new(graph));
    rounds(rng, &world, &mut tracker, maximum, planted, |counts| {
        let mut out = vec![BTreeSet::new(); world.graph.location_count()];
        for (&pointstamp, _) in counts.iter().filter(|x| *x.1 > 0) {
            for (location, time) in world.could_result_in(pointstamp) {
                out[location as usize].insert(time);
            }
        }
        out
    });
}

/// By the antichains of the summaries of all paths, with no maximum in reach. And in any order of delivery.
pub fn paths(rng: &mut Rng, root: usize, planted: bool) {
    let graph = Arc::new(random(&mut rng.clone(), root, u64::MAX).graph);
    let world = random(rng, root, u64::MAX);
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
    let mut all = rounds(rng, &world, &mut tracker, 5, planted, expected);

    // A prefix of all changes, in another order and other batches, comes to the same.
    all.truncate(all.len() / 2);
    let mut counts = Counts::new();
    all.iter().for_each(|&(l, t, diff)| *counts.entry((l, t)).or_default() += diff);
    for index in 1..all.len() {
        all.swap(index, rng.below(index + 1));
    }
    let mut tracker = Tracker::new(graph);
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

/// Applies random changes in rounds, and checks each round against `expected`; returns all changes.
fn rounds(
    rng: &mut Rng,
    world: &World,
    tracker: &mut Tracker,
    most: u64,
    planted: bool,
    expected: impl Fn(&Counts) -> Vec<BTreeSet<Coords>>,
) -> Changes {
    let mut counts = Counts::new();
    let mut all = Vec::new();
    for _ in 0..12 {
        let before: Vec<_> = world.locations().map(|l| tracker.frontier(l).clone()).collect();
        for _ in 0..1 + rng.below(6) {
            let (location, time) = pointstamp(rng, world, &counts, most);
            let diff = rng.below(5) as i64 - 2;
            if !(planted && all.len() == 7) {
                tracker.update(location, time, diff);
            }
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

/// One that is counted, mostly, or any.
fn pointstamp(rng: &mut Rng, world: &World, counts: &Counts, most: u64) -> (Location, Coords) {
    let known = rng.below(counts.len() + 1);
    match counts.keys().nth(known) {
        Some(&pointstamp) if rng.chance(70) => pointstamp,
        _ => {
            let location = rng.below(world.graph.location_count()) as Location;
            (location, world.time(rng, location, most))
        }
    }
}
