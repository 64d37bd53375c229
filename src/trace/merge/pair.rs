//! The merge of two batches.
#![forbid(unsafe_code)]

use super::super::compare::compare;
use super::super::layers::range;
use super::output::{Input, Output};
use super::woven::Plans;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar};
use std::cmp::Ordering;
use std::ops::Range;

/// A merge of two batches that have updates.
pub(super) struct Pair<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    pub(super) inputs: [Input<K, V, T, R>; 2],
    // Whether each key of an input has one val, and each val one update.
    pub(super) single: [[bool; 2]; 2],
    // Positions of the first key not yet done.
    pub(super) keys: [usize; 2],
    // If inside a key: the vals not yet done, and which inputs have the key.
    inside: Option<([Range<usize>; 2], [bool; 2])>,
    pub(super) plans: Plans<T, R>,
    pub(super) output: Output<K, V, T, R>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    pub(super) fn new(inputs: [Input<K, V, T, R>; 2]) -> Self {
        let single = [0, 1].map(|side| {
            let layers = &inputs[side].layers;
            [&layers.key_ends, &layers.val_ends].map(|ends| ends.uniform() == Some(1))
        });
        let mut output = Output::new(&inputs);
        output.common_time = inputs[0].common_time.filter(|time| inputs[1].common_time == Some(*time));
        Pair { inputs, single, keys: [0; 2], inside: None, plans: Plans::default(), output }
    }
    pub(super) fn work(&mut self, fuel: &mut isize) {
        while *fuel > 0 && !self.output.is_sealed() {
            if self.is_merged() {
                *fuel -= self.output.seal_on(*fuel as usize);
                continue;
            }
            if self.inside.is_none() {
                self.work_words(fuel);
                self.work_woven(fuel);
                if *fuel <= 0 || self.is_merged() {
                    continue;
                }
            }
            *fuel -= if self.inside.is_some() { self.step_val(*fuel as usize) } else { self.step_key(*fuel as usize) };
        }
    }
    pub(super) fn remaining(&self) -> usize {
        self.output.remaining((0..2).map(|side| self.inputs[side].layers.len() - self.done(side)).sum())
    }

    pub(super) fn at_end(&self, side: usize) -> bool {
        self.keys[side] == self.inputs[side].layers.keys.len()
    }
    /// Whether the output has all updates; it may still have to be sealed.
    fn is_merged(&self) -> bool {
        self.inside.is_none() && (0..2).all(|side| self.at_end(side))
    }
    /// Updates of an input that lie before the current position.
    fn done(&self, side: usize) -> usize {
        let input = &self.inputs[side].layers;
        match &self.inside {
            Some((vals, has)) if has[side] => input.val_ends.start(vals[side].start),
            _ => input.val_ends.start(input.key_ends.start(self.keys[side])),
        }
    }

    /// From between keys: copies a stretch of keys that one input alone has, or enters a key. What it cost.
    fn step_key(&mut self, fuel: usize) -> isize {
        let [a, b] = [0, 1].map(|side| &self.inputs[side].layers);
        let order = match (self.at_end(0), self.at_end(1)) {
            (false, false) => compare::<K>(a.keys.get(self.keys[0]), b.keys.get(self.keys[1])),
            (false, true) => Ordering::Less,
            _ => Ordering::Greater,
        };
        let side = match order {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => {
                let vals = [0, 1].map(|side| range(&self.inputs[side].layers.key_ends, self.keys[side]));
                self.inside = Some((vals, [true; 2]));
                return 1;
            }
        };
        let (input, other) = (&self.inputs[side].layers, &self.inputs[1 - side].layers);
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
        let high = self.inputs[side].fitting_keys(low, end, fuel);
        let cost = input.updates(input.vals(low..high)).len();
        self.output.copy_keys(&self.inputs[side], low..high);
        self.keys[side] = high;
        cost as isize
    }

    /// From inside a key: copies a stretch of vals that one input alone has, merges a val, or ends the key.
    fn step_val(&mut self, fuel: usize) -> isize {
        let (vals, has) = self.inside.clone().expect("called inside a key");
        let [a, b] = [0, 1].map(|side| &self.inputs[side].layers);
        let order = match (vals[0].is_empty(), vals[1].is_empty()) {
            (true, true) => {
                let side = if has[0] { 0 } else { 1 };
                self.output.layers.end_key(self.inputs[side].layers.keys.get(self.keys[side]));
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
                    self.output.fold(&self.inputs[side], vals[side].start);
                    next[side].start += 1;
                }
                self.output.flush(a.vals.get(vals[0].start))
            }
            _ => {
                let side = if order.is_lt() { 0 } else { 1 };
                let (input, other) = if side == 0 { (a, b) } else { (b, a) };
                let low = vals[side].start;
                let limit = vals[side].end.min(low.saturating_add(fuel.max(1)));
                let end = if vals[1 - side].is_empty() {
                    limit
                } else {
                    input.vals.seek(low + 1, limit, other.vals.get(vals[1 - side].start))
                };
                let high = self.inputs[side].fitting_vals(low, end, fuel);
                let cost = input.updates(low..high).len();
                self.output.copy_vals(&self.inputs[side], low..high);
                next[side].start = high;
                cost
            }
        };
        self.inside = Some((next, has));
        cost as isize
    }
}
