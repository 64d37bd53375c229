//! The schedule of a simulation: the seeded choices that are left to the system otherwise, and a trace of what came of
//! them.
//!
//! Which worker steps next and how often, how much a step may do, when there is time to merge: all may be so in a run on
//! threads. What is delivered when is the fabric's (`fabric/simulation.rs`). The trace is a hash of each step, message
//! and change batch in their order, so two runs with the same trace were the same. Next stop: `worker`.
#![forbid(unsafe_code)]

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// The choices of one simulation.
pub struct Schedule {
    random: u64,
    trace: DefaultHasher,
    events: u64,
}

/// What a step may do at most, each as likely: little, so that everything yields everywhere, and all.
const QUANTA: [usize; 5] = [1, 4, 32, 256, usize::MAX];

impl Schedule {
    /// As `seed` says.
    pub fn new(seed: u64) -> Self {
        Schedule { random: seed ^ 0x5851_f42d_4c95_7f2d, trace: DefaultHasher::new(), events: 0 }
    }

    /// A number below `bound`, from splitmix64 as in the fabric.
    pub fn below(&mut self, bound: usize) -> usize {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }

    /// How many of `workers` are to step in this round, and in which order: each twice at most, and some not.
    pub fn round(&mut self, workers: usize) -> Vec<usize> {
        (0..workers).map(|_| self.below(workers)).collect()
    }

    /// How much the next step may do, at most `most`.
    pub fn quantum(&mut self, most: usize) -> usize {
        QUANTA[self.below(QUANTA.len())].min(most)
    }

    /// Notes what happened.
    pub fn note(&mut self, event: impl Hash) {
        event.hash(&mut self.trace);
        self.events += 1;
    }

    /// A hash of all that happened, and how much that was.
    pub fn trace(&self) -> (u64, u64) {
        (self.trace.finish(), self.events)
    }
}
