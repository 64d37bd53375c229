//! The tracker against brute force: random nested graphs, random counts, some negative for a while.
#![forbid(unsafe_code)]

mod progress_graphs;

use kpg::progress::{Location, Tracker};
use progress_graphs::check::{check_bytes, paths, small_maxima, sorted};
use progress_graphs::{Rng, minimal, random};
use quickcheck::{Gen, QuickCheck};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Edge by edge over all times there are: each coordinate is at most 2 or 3, so that loops meet their maxima.
#[test]
fn as_could_result_in_with_small_maxima() {
    (0..150).for_each(|seed| small_maxima(&mut Rng::new(seed), (seed % 3) as usize, 2 + seed % 2, false));
}

/// By the antichains of the summaries of all paths, with no maximum in reach. And in any order of delivery.
#[test]
fn as_summaries_of_paths() {
    (0..150).for_each(|seed| paths(&mut Rng::new(1000 + seed), (seed % 3) as usize, false));
}

/// As a fuzzer has it.
#[test]
fn random_bytes() {
    fn one(bytes: Vec<u8>) {
        check_bytes(&bytes, false);
    }
    QuickCheck::new().rng(Gen::new(400)).tests(150).quickcheck(one as fn(Vec<u8>));
}

/// The fuzz target's canary, without the fuzzer: a tracker that is not told of a change.
#[test]
fn a_lost_change_is_caught() {
    let caught = |seed: &u8| std::panic::catch_unwind(|| check_bytes(&[*seed; 9], true)).is_err();
    assert!((0..20).filter(caught).count() >= 10);
}

/// The comparison above is worth something: an update that a tracker never hears of shows.
#[test]
fn a_lost_update_is_caught() {
    let caught = (0..50).filter(|&seed| {
        let mut rng = Rng::new(seed);
        let world = random(&mut rng, 1, 3);
        let mut tracker = Tracker::new(Arc::new(random(&mut Rng::new(seed), 1, 3).graph));
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
        let world = random(&mut Rng::new(seed), (seed % 3) as usize, u64::MAX);
        deep += usize::from(world.locations().any(|l| world.graph.coordinates(l) >= world.root + 3));
        rounds += usize::from(world.locations().any(|l| {
            let paths = world.paths(l);
            let again = world.graph.edges(l).any(|(to, _)| world.paths(to).contains_key(&l));
            again && paths.len() > 4
        }));
    }
    assert!(deep > 15 && rounds > 75, "{deep} with three levels, {rounds} with cycles");
}
