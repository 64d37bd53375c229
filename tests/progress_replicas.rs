//! The protocol: several workers take random valid steps, and their change batches arrive at replicas in any order
//! that keeps each sender's. No replica's frontier ever passes a pointstamp that lives; none moves back; all end empty.
//!
//! INVARIANTS 15, 16, 19, 26. Two mutants must be caught: one that sends a step's consumptions before the rest of
//! it, and one whose replicas are born with the initial capabilities of their own worker only.
#![forbid(unsafe_code)]

mod progress_graphs;

use kpg::order::{Antichain, Coords, PartialOrder};
use kpg::progress::{ChangeBatch, Location, Tracker};
use progress_graphs::{Rng, World, random};
use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Copy, Clone, PartialEq)]
enum Mutant {
    None,
    SplitsBatches,
    BornAlone,
}

/// What a worker holds: for each location, capabilities (at outputs) or messages in its queue (at inputs).
type Held = Vec<(Location, Coords)>;
type Batch = Vec<(Location, Coords, i64)>;

struct System<'a> {
    rng: Rng,
    world: &'a World,
    replicas: Vec<Tracker>,
    frontiers: Vec<Vec<Antichain<Coords>>>,
    held: Vec<Held>,
    /// By sender, then receiver.
    ways: Vec<Vec<VecDeque<Batch>>>,
    mutant: Mutant,
}

impl<'a> System<'a> {
    fn new(seed: u64, world: &'a World, graph: Arc<kpg::progress::Graph>, mutant: Mutant) -> Self {
        let workers = 2 + (seed % 2) as usize;
        let sources: Held = (world.nodes.iter().filter(|node| node.inputs.is_empty()))
            .flat_map(|node| &node.outputs)
            .map(|&output| (output, Coords::zero(world.graph.coordinates(output))))
            .collect();
        let mut replicas: Vec<_> = (0..workers).map(|_| Tracker::new(graph.clone())).collect();
        for replica in &mut replicas {
            let count = if mutant == Mutant::BornAlone { 1 } else { workers as i64 };
            sources.iter().for_each(|&(output, time)| replica.update(output, time, count));
            replica.propagate(|_| {});
        }
        let frontiers = replicas.iter().map(|r| world.locations().map(|l| r.frontier(l).clone()).collect()).collect();
        let ways = vec![vec![VecDeque::new(); workers]; workers];
        System { rng: Rng::new(seed), world, replicas, frontiers, held: vec![sources; workers], ways, mutant }
    }

    /// A time at or after `time`, within the maxima.
    fn later(&mut self, location: Location, time: Coords) -> Coords {
        let mut time = time;
        for (value, maximum) in time.as_mut_slice().iter_mut().zip(self.world.maxima(location)) {
            *value = (*value + u64::from(self.rng.chance(25))).min(maximum);
        }
        time
    }

    /// Sends a message at `time` from `output`: to some worker at each input it arrives at.
    fn send(&mut self, output: Location, time: Coords, batch: &mut Batch) {
        for (input, time) in self.world.arrivals(output, time) {
            let receiver = self.rng.below(self.held.len());
            self.held[receiver].push((input, time));
            batch.push((input, time, 1));
        }
    }

    /// One step of a node of `worker`: consumes or downgrades something held, and uses what that entitles to.
    fn step(&mut self, worker: usize, calm: bool) {
        if self.held[worker].is_empty() {
            return;
        }
        let index = self.rng.below(self.held[worker].len());
        let (location, time) = self.held[worker].swap_remove(index);
        let mut batch = vec![(location, time, -1)];
        // Taken at an input: capabilities for the connected outputs. At an output: the capability itself.
        let is_input = self.world.nodes.iter().any(|node| node.inputs.contains(&location));
        let mut entitled = vec![(location, time)];
        if is_input {
            let world = self.world;
            let edges = world.graph.edges(location);
            entitled = edges.filter_map(|(to, s)| Some((to, s.apply(&time, &world.maxima(to))?))).collect();
        }
        for (output, time) in entitled {
            if self.rng.chance(if calm { 15 } else { 60 }) {
                let time = self.later(output, time);
                self.send(output, time, &mut batch);
            }
            if self.rng.chance(if calm { 5 } else { 60 }) {
                let time = self.later(output, time);
                self.held[worker].push((output, time));
                batch.push((output, time, 1));
            }
        }
        let batches = match self.mutant {
            Mutant::SplitsBatches => {
                let (consumed, produced) = batch.into_iter().partition(|update| update.2 < 0);
                vec![consumed, produced]
            }
            _ => vec![batch],
        };
        for batch in batches {
            self.ways[worker].iter_mut().for_each(|way| way.push_back(batch.clone()));
        }
    }

    /// Hands over one batch, or a few at once, from one sender to one replica.
    fn deliver(&mut self) -> Result<bool, String> {
        let workers = self.held.len();
        let start = self.rng.below(workers * workers);
        let waiting = (0..workers * workers).map(|index| (start + index) % (workers * workers));
        let waiting = waiting.map(|index| (index / workers, index % workers));
        let Some((sender, receiver)) = waiting.into_iter().find(|&(s, r)| !self.ways[s][r].is_empty()) else {
            return Ok(false);
        };
        let replica = &mut self.replicas[receiver];
        for _ in 0..1 + self.rng.below(3) {
            let mut changes = ChangeBatch::new();
            changes.extend(self.ways[sender][receiver].pop_front().into_iter().flatten());
            replica.apply(&mut changes);
        }
        replica.propagate(|_| {});
        replica.check_invariants();
        for location in self.world.locations() {
            let before = &mut self.frontiers[receiver][location as usize];
            let now = replica.frontier(location);
            if !before.before_equal(now) {
                return Err(format!("at {location} from {before:?} back to {now:?}"));
            }
            *before = now.clone();
        }
        Ok(true)
    }

    /// No replica's frontier has passed what lives, nor anything that this could result in.
    fn check(&self) -> Result<(), String> {
        for replica in &self.replicas {
            for &(location, time) in self.held.iter().flatten() {
                if !replica.frontier(location).less_equal(&time) {
                    return Err(format!("{:?} at {location} has passed {time:?}", replica.frontier(location)));
                }
            }
        }
        Ok(())
    }
}

fn run(seed: u64, mutant: Mutant) -> Result<usize, String> {
    let make = || random(&mut Rng::new(seed), (seed % 3) as usize, 6);
    let world = make();
    let mut system = System::new(seed, &world, Arc::new(make().graph), mutant);
    let (mut steps, mut hasty) = (0, 0);
    loop {
        let calm = steps > 120;
        if system.rng.chance(if calm { 70 } else { 45 }) {
            let worker = system.rng.below(system.held.len());
            system.step(worker, calm);
            steps += 1;
        } else {
            system.deliver()?;
        }
        let negative = |r: &Tracker| world.locations().any(|l| r.counts(l).iter().any(|x| x.1 < 0));
        hasty += usize::from(system.replicas.iter().any(negative));
        system.check()?;
        if system.held.iter().all(Vec::is_empty) {
            break;
        }
        assert!(steps < 100_000, "seed {seed} does not come to rest");
    }
    while system.deliver()? {}
    for replica in &system.replicas {
        if !replica.is_empty() || world.locations().any(|l| !replica.frontier(l).is_empty()) {
            return Err("a replica is not empty at the end".into());
        }
    }
    Ok(hasty)
}

#[test]
fn no_replica_passes_what_lives() {
    let mut hasty = 0;
    for seed in 0..200 {
        hasty += run(seed, Mutant::None).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    assert!(hasty > 500, "consumptions were heard of before their productions only {hasty} times");
}

/// A consumption ahead of what it entitles to opens a gap that a frontier falls through.
#[test]
fn a_split_batch_is_caught() {
    let caught = (0..40).filter(|&seed| run(seed, Mutant::SplitsBatches).is_err()).count();
    assert!(caught >= 20, "only {caught} of 40");
}

#[test]
fn a_birth_without_the_others_is_caught() {
    let caught = (0..40).filter(|&seed| run(seed, Mutant::BornAlone).is_err()).count();
    assert!(caught >= 20, "only {caught} of 40");
}

/// INVARIANTS 16, as a validator of single batches: all that is produced follows from what the same batch consumes.
#[test]
fn produced_follows_from_consumed() {
    let valid = |world: &World, batch: &Batch| {
        let from: Vec<_> = batch.iter().filter(|u| u.2 < 0).map(|u| world.could_result_in((u.0, u.1))).collect();
        (batch.iter().filter(|u| u.2 > 0))
            .all(|u| from.iter().flatten().any(|&(location, time)| location == u.0 && time.less_equal(&u.1)))
    };
    let mut split = 0;
    for (seed, mutant) in (0..20).flat_map(|seed| [(seed, Mutant::None), (seed, Mutant::SplitsBatches)]) {
        let make = || random(&mut Rng::new(seed), (seed % 3) as usize, 3);
        let world = make();
        let mut system = System::new(seed, &world, Arc::new(make().graph), mutant);
        for _ in 0..60 {
            let worker = system.rng.below(system.held.len());
            system.step(worker, false);
        }
        for batch in system.ways.iter().flat_map(|ways| &ways[0]) {
            match mutant {
                Mutant::None => assert!(valid(&world, batch), "{batch:?}"),
                _ => split += usize::from(!valid(&world, batch)),
            }
        }
    }
    assert!(split > 100, "the validator caught {split} halves of batches");
}
