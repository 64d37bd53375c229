//! Merging two adjacent batches in slices, folding their times.
//!
//! ```text
//! first   a a b   d d f        per key: a stretch that one input alone has is copied whole,
//! second      b c     f g      a key of both is merged val by val, a val of both time by time
//! ```
//! Times become `rep(time, since)`: what no reader can tell apart becomes one. A stretch is copied as it lies where
//! no time changes, and all but its times where each val has one update. Then the output is sealed. One unit of fuel is
//! about one update; a call goes beyond its fuel by no more than the updates of one (key, val). Before: `spine`. Next stop: `layers`.
#![forbid(unsafe_code)]

use super::compare::compare;
mod flat;
mod woven;

use super::consolidate::consolidate_times;
use super::layers::{Layers, OrdBatch, range};
use super::{Batch, builder};
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp, rep};
use kpg_columnar::{Column, Columnar, Sealer};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// A batch that a spine can hold: it can be merged with its neighbour.
pub trait MergeBatch: Batch {
    /// A merge under way.
    type Merger: Merge<Self>;
    /// Starts merging two adjacent batches; times fold at `since`. Cost: O(1), save for memory.
    fn begin_merge(first: &Self, second: &Self, since: &Antichain<Self::Time>) -> Self::Merger;
    /// A batch without updates.
    fn empty(lower: Antichain<Self::Time>, upper: Antichain<Self::Time>) -> Self;
    /// Memory it keeps.
    fn bytes(&self) -> usize;
    /// Checks its invariants.
    ///
    /// # Panics
    /// If they do not hold.
    fn check_invariants(&self) {}
}

/// A batch that can be made of what an arrangement seals.
pub trait SealBatch: MergeBatch {
    /// The batch of `updates`, which are sorted by (key, val, time), consolidated, and within the bounds.
    fn seal(
        updates: Updates<(Self::Key, Self::Val), Self::Time, Self::Diff>,
        lower: Antichain<Self::Time>,
        upper: Antichain<Self::Time>,
    ) -> Self;
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> SealBatch for OrdBatch<K, V, T, R> {
    fn seal(updates: Updates<(K, V), T, R>, lower: Antichain<T>, upper: Antichain<T>) -> Self {
        super::builder::batch_from_sorted(updates, lower, upper)
    }
}

/// A merge under way. Dropped before it is done, it leaves no trace.
pub trait Merge<B>: 'static {
    /// Works until `fuel` is used up (it may go below zero, see the implementation) or the merge is done.
    fn work(&mut self, fuel: &mut isize);
    /// Whether it is done.
    fn is_done(&self) -> bool;
    /// Fuel that the rest needs, about.
    fn remaining(&self) -> usize;
    /// The merged batch.
    ///
    /// # Panics
    /// If it is not done.
    fn finish(self) -> B;
}

/// The greatest index in `low + 1..=high` up to which there are at most `fuel` updates, or `low + 1`.
fn fitting(low: usize, high: usize, fuel: usize, start: impl Fn(usize) -> usize) -> usize {
    let limit = start(low).saturating_add(fuel.max(1));
    if start(high) <= limit {
        return high;
    }
    kpg_columnar::gallop(high, low + 1, |index| start(index + 1) <= limit)
}

/// The output of a merge takes its encodings.
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

/// A merge of two [`OrdBatch`]es.
pub struct Merger<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    inputs: [OrdBatch<K, V, T, R>; 2],
    since: Antichain<T>,
    // Whether some time of the input may change.
    folds: [bool; 2],
    // Whether each key of both inputs has one val and each val one update.
    flat: bool,
    // If it is flat: the time that all updates fold to, if it is one and known.
    common_time: Option<T>,
    // Positions of the first key not yet done.
    keys: [usize; 2],
    // If inside a key: the vals not yet done, and which inputs have the key.
    inside: Option<([Range<usize>; 2], [bool; 2])>,
    output: Layers<K, V, T, R>,
    // Once all is merged.
    sealing: Option<Sealing>,
    // An input that is the result as it stands, the other one being empty.
    whole: Option<Arc<Layers<K, V, T, R>>>,
    scratch: Vec<(T, R)>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> MergeBatch for OrdBatch<K, V, T, R> {
    type Merger = Merger<K, V, T, R>;

    fn begin_merge(first: &Self, second: &Self, since: &Antichain<T>) -> Merger<K, V, T, R> {
        assert!(first.upper() == second.lower(), "{first:?} and {second:?} are not adjacent");
        let whole = match (first.is_empty(), second.is_empty()) {
            (_, true) => Some(first.layers().clone()),
            (true, false) => Some(second.layers().clone()),
            (false, false) => None,
        };
        // Where all times are beyond `since`, each is its own representative.
        let folds = [first, second].map(|b| !since.is_empty() && !since.before_equal(b.lower()));
        let mut output = Layers::default();
        if whole.is_none() {
            output.prepare_merge(first.layers(), second.layers(), folds.contains(&true));
        }
        let inputs = [first.clone(), second.clone()];
        let flat = inputs.iter().all(|input| flat::is_flat(input.layers()));
        let common_time = if flat { woven::common_time([first, second], folds, since) } else { None };
        Merger {
            inputs,
            since: since.clone(),
            folds,
            flat,
            common_time,
            keys: [0; 2],
            inside: None,
            output,
            sealing: None,
            whole,
            scratch: Vec::new(),
        }
    }
    fn empty(lower: Antichain<T>, upper: Antichain<T>) -> Self {
        builder::empty_batch(lower, upper)
    }
    fn bytes(&self) -> usize {
        self.layers().bytes()
    }
    fn check_invariants(&self) {
        OrdBatch::check_invariants(self);
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Merge<OrdBatch<K, V, T, R>> for Merger<K, V, T, R> {
    fn work(&mut self, fuel: &mut isize) {
        while *fuel > 0 && !self.is_done() {
            if self.is_merged() {
                *fuel -= self.seal_on(*fuel as usize);
                continue;
            }
            if self.flat && self.inside.is_none() {
                match self.common_time {
                    Some(time) => self.work_woven(time, fuel),
                    None => self.work_flat(fuel),
                }
                if *fuel <= 0 || self.is_merged() {
                    continue;
                }
            }
            *fuel -= if self.inside.is_some() { self.step_val(*fuel as usize) } else { self.step_key(*fuel as usize) };
        }
    }
    fn is_done(&self) -> bool {
        self.whole.is_some() || self.sealing.as_ref().is_some_and(|sealing| sealing.done)
    }
    fn remaining(&self) -> usize {
        match &self.sealing {
            _ if self.is_done() => 0,
            Some(sealing) => sealing.remaining,
            None => {
                let rest: usize = (0..2).map(|side| self.input(side).len() - self.done(side)).sum();
                rest + sealing_fuel(self.output.len() + rest)
            }
        }
    }
    fn finish(mut self) -> OrdBatch<K, V, T, R> {
        assert!(self.is_done(), "a merge is finished once it is done");
        let layers = self.whole.take().unwrap_or_else(|| Arc::new(self.output));
        OrdBatch::new(layers, self.inputs[0].lower().clone(), self.inputs[1].upper().clone())
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Merger<K, V, T, R> {
    fn input(&self, side: usize) -> &Layers<K, V, T, R> {
        self.inputs[side].layers()
    }
    fn at_end(&self, side: usize) -> bool {
        self.keys[side] == self.input(side).keys.len()
    }
    /// Whether the output has all updates; it may still have to be sealed.
    fn is_merged(&self) -> bool {
        self.inside.is_none() && (0..2).all(|side| self.at_end(side))
    }
    /// Seals the output for about `fuel`. What it cost.
    fn seal_on(&mut self, fuel: usize) -> isize {
        let len = self.output.len();
        let sealing = self.sealing.get_or_insert_with(|| Sealing {
            sealer: Sealer::new(),
            // Each value is looked at and perhaps written. With eight bytes a value that makes a quarter of the updates.
            rate: (self.output.bytes() / len.max(1)).max(1),
            remaining: sealing_fuel(len),
            done: false,
        });
        let given = fuel.saturating_mul(sealing.rate);
        let mut left = given;
        sealing.done = self.output.seal_in(&mut sealing.sealer, &mut left);
        let cost = (given - left).div_ceil(sealing.rate);
        sealing.remaining = if sealing.done { 0 } else { sealing.remaining.saturating_sub(cost).max(1) };
        cost as isize
    }
    /// Updates of an input that lie before the current position.
    fn done(&self, side: usize) -> usize {
        let input = self.input(side);
        match &self.inside {
            Some((vals, has)) if has[side] => input.val_ends.start(vals[side].start),
            _ => input.val_ends.start(input.key_ends.start(self.keys[side])),
        }
    }

    /// From between keys: copies a stretch of keys that one input alone has, or enters a key. What it cost.
    fn step_key(&mut self, fuel: usize) -> isize {
        let [a, b] = [0, 1].map(|side| self.input(side));
        let order = match (self.at_end(0), self.at_end(1)) {
            (false, false) => compare::<K>(a.keys.get(self.keys[0]), b.keys.get(self.keys[1])),
            (false, true) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let side = match order {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => {
                let vals = [0, 1].map(|side| range(&self.input(side).key_ends, self.keys[side]));
                self.inside = Some((vals, [true; 2]));
                return 1;
            }
        };
        let (input, other) = (self.input(side), self.input(1 - side));
        let low = self.keys[side];
        let vals = range(&input.key_ends, low);
        if input.updates(vals.clone()).len() > fuel.max(1) {
            let mut both = [0..0, 0..0];
            both[side] = vals;
            let mut has = [false; 2];
            has[side] = true;
            self.inside = Some((both, has));
            return 1;
        }
        let limit = input.keys.len().min(low.saturating_add(fuel.max(1)));
        let end = if self.at_end(1 - side) {
            limit
        } else {
            // The key at `low` is known to be before the other's.
            input.keys.seek(low + 1, limit, other.keys.get(self.keys[1 - side]))
        };
        let high = fitting(low, end, fuel, |key| input.val_ends.start(input.key_ends.start(key)));
        let cost = input.updates(input.vals(low..high)).len();
        self.copy_keys(side, low..high);
        self.keys[side] = high;
        cost as isize
    }

    /// From inside a key: copies a stretch of vals that one input alone has, merges a val, or ends the key.
    fn step_val(&mut self, fuel: usize) -> isize {
        let (vals, has) = self.inside.clone().expect("called inside a key");
        let [a, b] = [0, 1].map(|side| self.inputs[side].layers().clone());
        let order = match (vals[0].is_empty(), vals[1].is_empty()) {
            (true, true) => {
                let side = if has[0] { 0 } else { 1 };
                let key = self.inputs[side].layers().keys.get(self.keys[side]);
                self.output.end_key(key);
                (0..2).filter(|side| has[*side]).for_each(|side| self.keys[side] += 1);
                self.inside = None;
                return 0;
            }
            (false, false) => compare::<V>(a.vals.get(vals[0].start), b.vals.get(vals[1].start)),
            (false, true) => Ordering::Less,
            (true, false) => Ordering::Greater,
        };
        let mut next = vals.clone();
        let cost = match order {
            Ordering::Equal => {
                for side in 0..2 {
                    self.fold_into_scratch(side, vals[side].start);
                    next[side].start += 1;
                }
                let cost = self.scratch.len();
                self.flush_scratch(a.vals.get(vals[0].start));
                cost
            }
            _ => {
                let side = if order.is_lt() { 0 } else { 1 };
                let (input, other) = if side == 0 { (&a, &b) } else { (&b, &a) };
                let low = vals[side].start;
                let limit = vals[side].end.min(low.saturating_add(fuel.max(1)));
                let end = if vals[1 - side].is_empty() {
                    limit
                } else {
                    input.vals.seek(low + 1, limit, other.vals.get(vals[1 - side].start))
                };
                let high = fitting(low, end, fuel, |val| input.val_ends.start(val));
                let stretch = low..high;
                let cost = input.updates(stretch.clone()).len();
                self.copy_vals(side, stretch);
                next[side].start = high;
                cost
            }
        };
        self.inside = Some((next, has));
        cost as isize
    }

    /// Copies keys that the other input does not have.
    fn copy_keys(&mut self, side: usize, keys: Range<usize>) {
        let vals = self.input(side).vals(keys.clone());
        if self.copies_whole(side, &vals) {
            self.copy_vals(side, vals);
            let input = self.inputs[side].layers();
            self.output.keys.extend_from(&input.keys, keys.start, keys.end);
            self.output.key_ends.extend_from(&input.key_ends, keys.start, keys.end);
        } else {
            let input = self.inputs[side].layers().clone();
            for key in keys {
                self.copy_vals(side, range(&input.key_ends, key));
                self.output.end_key(input.keys.get(key));
            }
        }
    }

    /// Whether no updates of these vals can come together: none folds, or each val has one.
    fn copies_whole(&self, side: usize, vals: &Range<usize>) -> bool {
        !self.folds[side] || self.input(side).updates(vals.clone()).len() == vals.len()
    }

    /// Copies vals that the other input does not have.
    fn copy_vals(&mut self, side: usize, vals: Range<usize>) {
        if !self.copies_whole(side, &vals) {
            let input = self.inputs[side].layers().clone();
            for val in vals {
                self.fold_into_scratch(side, val);
                self.flush_scratch(input.vals.get(val));
            }
            return;
        }
        let input = self.inputs[side].layers();
        let updates = input.updates(vals.clone());
        self.output.vals.extend_from(&input.vals, vals.start, vals.end);
        self.output.val_ends.extend_from(&input.val_ends, vals.start, vals.end);
        self.output.diffs.extend_from(&input.diffs, updates.start, updates.end);
        if let Some(time) = self.common_time {
            self.output.times.push_many(time, updates.len());
        } else if self.folds[side] {
            for index in updates {
                self.output.times.push(rep(&input.times.get(index), &self.since));
            }
        } else {
            self.output.times.extend_from(&input.times, updates.start, updates.end);
        }
    }

    fn fold_into_scratch(&mut self, side: usize, val: usize) {
        let input = self.inputs[side].layers();
        for index in range(&input.val_ends, val) {
            let time = input.times.get(index);
            let time = if self.folds[side] { rep(&time, &self.since) } else { time };
            self.scratch.push((time, input.diffs.get(index)));
        }
    }
    fn flush_scratch(&mut self, val: super::Ref<'_, V>) {
        consolidate_times(&mut self.scratch);
        for (time, diff) in self.scratch.drain(..) {
            self.output.push_update(time, diff);
        }
        self.output.end_val(val);
    }
}

#[cfg(test)]
mod tests;
