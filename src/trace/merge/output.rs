//! What a merge writes: stretches of one input, updates of a val that several have, and at the end the encodings.
#![forbid(unsafe_code)]

use super::super::consolidate::consolidate_times;
use super::super::layers::{Layers, OrdBatch, range};
use super::super::{Batch, Ref};
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Sealer};
use std::ops::Range;
use std::sync::Arc;

/// A batch that is merged.
pub(super) struct Input<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    pub layers: Arc<Layers<K, V, T, R>>,
    /// What its times are joined with, if some may change.
    pub floor: Option<T>,
    /// The time that all of its updates fold to, if it is one and known without looking at each.
    pub common_time: Option<T>,
}

/// The representative of a time.
#[inline]
pub(super) fn folded<T: Timestamp>(time: T, floor: Option<T>) -> T {
    floor.map_or(time, |floor| time.join(&floor))
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Input<K, V, T, R> {
    /// `floor`: what times are joined with, if anybody reads.
    pub fn new(batch: &OrdBatch<K, V, T, R>, floor: Option<T>) -> Self {
        let floor = floor.filter(|floor| !batch.lower().elements().iter().all(|time| floor.less_equal(time)));
        let constant = batch.layers().times.constant().map(|time| folded(time, floor));
        // All times that are not beyond the floor are joined with it.
        let joined = || {
            let upper = batch.upper().as_single()?;
            floor.filter(|floor| T::TOTAL && upper.less_equal(floor))
        };
        Input { layers: batch.layers().clone(), floor, common_time: constant.or_else(joined) }
    }
    /// Whether no updates of these vals can come together: none folds, or each val has one.
    fn copies_whole(&self, vals: &Range<usize>) -> bool {
        self.floor.is_none() || self.layers.updates(vals.clone()).len() == vals.len()
    }
    /// The end of the stretch of keys from `low` on that ends at `end` at most and costs `fuel` at most, but for its first.
    pub fn fitting_keys(&self, low: usize, end: usize, fuel: usize) -> usize {
        let layers = &self.layers;
        fitting(low, end, fuel, |key| layers.val_ends.start(layers.key_ends.start(key)))
    }
    /// The same of vals.
    pub fn fitting_vals(&self, low: usize, end: usize, fuel: usize) -> usize {
        fitting(low, end, fuel, |val| self.layers.val_ends.start(val))
    }
}

/// The greatest index in `low + 1..=high` up to which there are at most `fuel` updates, or `low + 1`.
fn fitting(low: usize, high: usize, fuel: usize, start: impl Fn(usize) -> usize) -> usize {
    let limit = start(low).saturating_add(fuel.max(1));
    if start(high) <= limit {
        return high;
    }
    kpg_columnar::gallop(high, low + 1, |index| start(index + 1) <= limit)
}

/// The output takes its encodings.
struct Sealing {
    sealer: Sealer,
    // Values a unit of fuel is for.
    rate: usize,
    // Fuel the rest needs, about.
    remaining: usize,
    done: bool,
}

/// Fuel that sealing needs, about, for so many updates.
fn sealing_fuel(updates: usize) -> usize {
    updates / 4 + 1
}

/// The output of a merge.
pub(super) struct Output<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    pub layers: Layers<K, V, T, R>,
    /// The time that all updates fold to, if it is one and known.
    pub common_time: Option<T>,
    // Once all is merged.
    sealing: Option<Sealing>,
    scratch: Vec<(T, R)>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Output<K, V, T, R> {
    /// Room for all of `inputs`.
    pub fn new(inputs: &[Input<K, V, T, R>]) -> Self {
        let mut layers = Layers::default();
        let all: Vec<_> = inputs.iter().map(|input| &*input.layers).collect();
        layers.prepare_merge(&all, inputs.iter().any(|input| input.floor.is_some()));
        Output { layers, common_time: None, sealing: None, scratch: Vec::new() }
    }
    /// Copies keys that no other input has.
    pub fn copy_keys(&mut self, input: &Input<K, V, T, R>, keys: Range<usize>) {
        let from = &input.layers;
        let vals = from.vals(keys.clone());
        if input.copies_whole(&vals) {
            self.copy_vals(input, vals);
            self.layers.keys.extend_from(&from.keys, keys.start, keys.end);
            self.layers.key_ends.extend_from(&from.key_ends, keys.start, keys.end);
        } else {
            for key in keys {
                self.copy_vals(input, range(&from.key_ends, key));
                self.layers.end_key(from.keys.get(key));
            }
        }
    }
    /// Copies vals that no other input has.
    pub fn copy_vals(&mut self, input: &Input<K, V, T, R>, vals: Range<usize>) {
        let from = &input.layers;
        if !input.copies_whole(&vals) {
            for val in vals {
                self.fold(input, val);
                self.flush(from.vals.get(val));
            }
            return;
        }
        let updates = from.updates(vals.clone());
        self.layers.vals.extend_from(&from.vals, vals.start, vals.end);
        self.layers.val_ends.extend_from(&from.val_ends, vals.start, vals.end);
        self.layers.diffs.extend_from(&from.diffs, updates.start, updates.end);
        if let Some(time) = self.common_time {
            self.layers.times.push_many(time, updates.len());
        } else if input.floor.is_some() {
            for index in updates {
                self.layers.times.push(folded(from.times.get(index), input.floor));
            }
        } else {
            self.layers.times.extend_from(&from.times, updates.start, updates.end);
        }
    }
    /// Gathers the updates of a val.
    pub fn fold(&mut self, input: &Input<K, V, T, R>, val: usize) {
        for index in range(&input.layers.val_ends, val) {
            let time = folded(input.layers.times.get(index), input.floor);
            self.scratch.push((time, input.layers.diffs.get(index)));
        }
    }
    /// Writes what was gathered, as updates of `val`. How many they were.
    pub fn flush(&mut self, val: Ref<'_, V>) -> usize {
        let gathered = self.scratch.len();
        consolidate_times(&mut self.scratch);
        for (time, diff) in self.scratch.drain(..) {
            self.layers.push_update(time, diff);
        }
        self.layers.end_val(val);
        gathered
    }

    pub fn is_sealed(&self) -> bool {
        self.sealing.as_ref().is_some_and(|sealing| sealing.done)
    }
    #[cfg(test)]
    pub fn is_sealing(&self) -> bool {
        self.sealing.is_some()
    }
    /// Fuel that is needed, about, when `rest` updates are still to be merged.
    pub fn remaining(&self, rest: usize) -> usize {
        match &self.sealing {
            Some(sealing) => sealing.remaining,
            None => rest + sealing_fuel(self.layers.len() + rest),
        }
    }
    /// Seals for about `fuel`. What it cost.
    pub fn seal_on(&mut self, fuel: usize) -> isize {
        let len = self.layers.len();
        let sealing = self.sealing.get_or_insert_with(|| Sealing {
            sealer: Sealer::new(),
            // Each value is looked at and perhaps written. With eight bytes a value that makes a quarter of the updates.
            rate: (self.layers.bytes() / len.max(1)).max(1),
            remaining: sealing_fuel(len),
            done: false,
        });
        let given = fuel.saturating_mul(sealing.rate);
        let mut left = given;
        sealing.done = self.layers.seal_in(&mut sealing.sealer, &mut left);
        let cost = (given - left).div_ceil(sealing.rate);
        sealing.remaining = if sealing.done { 0 } else { sealing.remaining.saturating_sub(cost).max(1) };
        cost as isize
    }
}
