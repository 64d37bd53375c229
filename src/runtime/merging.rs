//! How far an arrangement's merging is: told by its workers, read from any thread.
#![forbid(unsafe_code)]

use crate::sync::Counter;

/// What an arrangement took in and merged so far, and how it is now. Updates count, not bytes.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct MergeState {
    /// Batches inserted so far.
    pub batches_inserted: u64,
    /// Updates inserted so far.
    pub inserted: u64,
    /// Merges that ended so far.
    pub merges: u64,
    /// Updates that these wrote.
    pub written: u64,
    /// Batches that a reader meets now; those that are being merged are among them.
    pub batches: u64,
    /// Merges in progress.
    pub open_merges: u64,
    /// Fuel that merges need which could run now, in about updates read.
    pub debt: u64,
}

impl MergeState {
    /// How many updates merges wrote for each one inserted, so far; 0 if none was.
    pub fn write_amplification(&self) -> f64 {
        if self.inserted == 0 { 0.0 } else { self.written as f64 / self.inserted as f64 }
    }
    fn values(&self) -> [u64; VALUES] {
        let MergeState { batches_inserted, inserted, merges, written, batches, open_merges, debt } = *self;
        [batches_inserted, inserted, merges, written, batches, open_merges, debt]
    }
    fn of(values: [u64; VALUES]) -> Self {
        let [batches_inserted, inserted, merges, written, batches, open_merges, debt] = values;
        MergeState { batches_inserted, inserted, merges, written, batches, open_merges, debt }
    }
}

const VALUES: usize = 7;

/// One worker's values, on cache lines of their own.
#[derive(Default)]
#[repr(align(128))]
struct Shard([Counter; VALUES]);

/// An arrangement's state on each worker. Each value is replaced for itself: a reader may see some older than others.
pub struct MergeGauges {
    shards: Box<[Shard]>,
}

impl MergeGauges {
    /// Of an arrangement on `peers` workers that has taken in nothing.
    pub fn new(peers: usize) -> Self {
        MergeGauges { shards: (0..peers).map(|_| Shard::default()).collect() }
    }
    /// Tells how it is on `worker`, which alone tells that. Cost: a few stores.
    pub fn tell(&self, worker: usize, state: &MergeState) {
        self.shards[worker].0.iter().zip(state.values()).for_each(|(counter, value)| counter.set(value));
    }
    /// The sums over all workers.
    pub fn read(&self) -> MergeState {
        let mut sums = [0; VALUES];
        for shard in &self.shards {
            sums.iter_mut().zip(&shard.0).for_each(|(sum, counter)| *sum += counter.get());
        }
        MergeState::of(sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_over_workers_is_read() {
        let gauges = MergeGauges::new(2);
        let state = MergeState::of([1, 2, 3, 4, 5, 6, 7]);
        gauges.tell(0, &MergeState::of([9; VALUES]));
        gauges.tell(0, &state);
        gauges.tell(1, &MergeState::of([10, 20, 30, 40, 50, 60, 70]));
        assert_eq!(gauges.read(), MergeState::of([11, 22, 33, 44, 55, 66, 77]));
        assert_eq!(state.write_amplification(), 2.0);
        assert_eq!(MergeState::default().write_amplification(), 0.0);
    }
}
