//! The merge of three batches or more: a fan-out above two.
//!
//! ```text
//! order   2   0   3   1        inputs by their next key
//!         b   d   d   g        b, and what of 2 is before d, is copied; then d is a key of 0 and 3
//! ```
//! An input that has moved on finds its place by a search: a stretch costs the logarithm of the inputs. Within a key of
//! several inputs they are looked through one after the other.
#![forbid(unsafe_code)]

use super::super::Ref;
use super::super::compare::compare;
use super::super::layers::{Layers, range};
use super::output::{Input, Output, folded};
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar};
use std::cmp::Ordering;
use std::ops::Range;

/// So many keys from one side in a row are a stretch: from there on copying whole is cheaper.
const STRETCH: usize = 12;

/// A merge of batches that have updates.
pub(super) struct Many<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    inputs: Vec<Input<K, V, T, R>>,
    // Whether each key has one val and each val one update.
    flat: bool,
    // Of each input, the position of the first key not yet done.
    keys: Vec<usize>,
    // The inputs not at their end, by that key.
    order: Vec<usize>,
    // So many of `order`, the first ones, have the key that the merge is inside of; none, if it is between keys.
    inside: usize,
    // Of each input, the vals of that key not yet done.
    vals: Vec<Range<usize>>,
    pub(super) output: Output<K, V, T, R>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Many<K, V, T, R> {
    pub(super) fn new(inputs: Vec<Input<K, V, T, R>>) -> Self {
        let count = inputs.len();
        let output = Output::new(&inputs);
        let flat = inputs.iter().all(|input| {
            let layers = &input.layers;
            layers.key_ends.uniform() == Some(1) && layers.val_ends.uniform() == Some(1)
        });
        let (keys, vals) = (vec![0; count], vec![0..0; count]);
        let mut many = Many { inputs, flat, keys, order: Vec::new(), inside: 0, vals, output };
        (0..count).for_each(|side| many.enlist(side));
        many
    }
    pub(super) fn work(&mut self, fuel: &mut isize) {
        while *fuel > 0 && !self.output.is_sealed() {
            if self.order.is_empty() {
                *fuel -= self.output.seal_on(*fuel as usize);
                continue;
            }
            if self.inside > 0 {
                *fuel -= self.step_val(*fuel as usize);
                continue;
            }
            if self.flat {
                self.work_flat(fuel);
                if *fuel <= 0 {
                    continue;
                }
            }
            *fuel -= self.step_key(*fuel as usize);
        }
    }
    pub(super) fn remaining(&self) -> usize {
        self.output.remaining((0..self.inputs.len()).map(|side| self.inputs[side].layers.len() - self.done(side)).sum())
    }
    /// Updates of an input that lie before the current position.
    fn done(&self, side: usize) -> usize {
        let input = &self.inputs[side].layers;
        let inside = self.order[..self.inside].contains(&side);
        input.val_ends.start(if inside { self.vals[side].start } else { input.key_ends.start(self.keys[side]) })
    }
    fn compare(&self, a: usize, b: usize) -> Ordering {
        let key = |side: usize| self.inputs[side].layers.keys.get(self.keys[side]);
        compare::<K>(key(a), key(b))
    }
    /// Puts an input into the order, unless it has ended.
    fn enlist(&mut self, side: usize) {
        if self.keys[side] < self.inputs[side].layers.keys.len() {
            let at = self.order.partition_point(|other| self.compare(*other, side).is_lt());
            self.order.insert(at, side);
        }
    }

    /// Merges keys one by one where each has one val and one update, until the fuel is used up, a key of several inputs
    /// comes, or a stretch has begun.
    fn work_flat(&mut self, fuel: &mut isize) {
        let Many { inputs, keys, order, output, .. } = self;
        let layers = &mut output.layers;
        let mut heads: Vec<_> = order.iter().map(|side| inputs[*side].layers.keys.get(keys[*side])).collect();
        let mut stretch = 0;
        while *fuel > 0 && stretch < STRETCH && order.len() > 1 && compare::<K>(heads[0], heads[1]).is_lt() {
            let (side, key) = (order[0], heads[0]);
            let input = &inputs[side].layers;
            let time = folded(input.times.get(keys[side]), inputs[side].floor);
            push_one(layers, key, input, keys[side], time);
            keys[side] += 1;
            *fuel -= 1;
            stretch += 1;
            if keys[side] == input.keys.len() {
                order.remove(0);
                heads.remove(0);
                continue;
            }
            heads[0] = input.keys.get(keys[side]);
            let at = heads[1..].partition_point(|other| compare::<K>(*other, heads[0]).is_lt());
            if at > 0 {
                order[..=at].rotate_left(1);
                heads[..=at].rotate_left(1);
                stretch = 0;
            }
        }
    }

    /// From between keys: copies a stretch of keys that one input alone has, or enters a key. What it cost.
    fn step_key(&mut self, fuel: usize) -> isize {
        let side = self.order[0];
        let having = self.order.iter().take_while(|other| self.compare(**other, side).is_eq()).count();
        let (input, low) = (&self.inputs[side].layers, self.keys[side]);
        if having > 1 || input.updates(range(&input.key_ends, low)).len() > fuel.max(1) {
            self.inside = having;
            for side in &self.order[..having] {
                self.vals[*side] = range(&self.inputs[*side].layers.key_ends, self.keys[*side]);
            }
            return 1;
        }
        let limit = input.keys.len().min(low.saturating_add(fuel.max(1)));
        let end = match self.order.get(1) {
            // The key at `low` is known to be before the other's.
            Some(other) => input.keys.seek(low + 1, limit, self.inputs[*other].layers.keys.get(self.keys[*other])),
            None => limit,
        };
        let high = self.inputs[side].fitting_keys(low, end, fuel);
        let cost = input.updates(input.vals(low..high)).len();
        self.output.copy_keys(&self.inputs[side], low..high);
        self.keys[side] = high;
        self.order.remove(0);
        self.enlist(side);
        cost as isize
    }

    /// From inside a key: copies a stretch of vals that one input alone has, merges a val, or ends the key.
    fn step_val(&mut self, fuel: usize) -> isize {
        let having = &self.order[..self.inside];
        let left = |side: &&usize| !self.vals[**side].is_empty();
        let val = |side: usize| self.inputs[side].layers.vals.get(self.vals[side].start);
        let Some(&side) =
            having.iter().filter(left).reduce(|a, b| if compare::<V>(val(*b), val(*a)).is_lt() { b } else { a })
        else {
            self.end_key();
            return 0;
        };
        // The least val of the others, if it is not the same.
        let (mut next, mut shared) = (None, false);
        for &other in having.iter().filter(left).filter(|other| **other != side) {
            if compare::<V>(val(other), val(side)).is_eq() {
                shared = true;
            } else if next.is_none_or(|next| compare::<V>(val(other), val(next)).is_lt()) {
                next = Some(other);
            }
        }
        let cost = if shared {
            let least = self.inputs[side].layers.clone();
            let least = least.vals.get(self.vals[side].start);
            for &other in &self.order[..self.inside] {
                let (vals, input) = (&self.vals[other], &self.inputs[other]);
                if !vals.is_empty() && compare::<V>(input.layers.vals.get(vals.start), least).is_eq() {
                    self.output.fold(input, vals.start);
                    self.vals[other].start += 1;
                }
            }
            self.output.flush(least)
        } else {
            let (input, vals) = (&self.inputs[side].layers, &self.vals[side]);
            let limit = vals.end.min(vals.start.saturating_add(fuel.max(1)));
            let end = next.map_or(limit, |other| input.vals.seek(vals.start + 1, limit, val(other)));
            let high = self.inputs[side].fitting_vals(vals.start, end, fuel);
            let stretch = vals.start..high;
            self.output.copy_vals(&self.inputs[side], stretch.clone());
            self.vals[side].start = high;
            self.inputs[side].layers.updates(stretch).len()
        };
        cost as isize
    }

    fn end_key(&mut self) {
        let first = self.order[0];
        self.output.layers.end_key(self.inputs[first].layers.keys.get(self.keys[first]));
        let having: Vec<usize> = self.order.drain(..std::mem::take(&mut self.inside)).collect();
        for side in having {
            self.keys[side] += 1;
            self.enlist(side);
        }
    }
}

#[inline(always)]
fn push_one<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    output: &mut Layers<K, V, T, R>,
    key: Ref<'_, K>,
    input: &Layers<K, V, T, R>,
    index: usize,
    time: T,
) {
    output.times.push(time);
    output.diffs.push(input.diffs.get(index));
    output.vals.push(input.vals.get(index));
    output.val_ends.push(output.times.len());
    output.keys.push(key);
    output.key_ends.push(output.vals.len());
}
