//! A batch: updates indexed by key and val, immutable and shared.
//!
//! ```text
//! keys      a        b             sorted, distinct
//! key ends  2        3             where a key's vals end
//! vals      x    y   z             sorted and distinct for each key
//! val ends  1    3   4             where a val's updates end
//! times     1    0 2 1             sorted for each (key, val)
//! diffs     1    1-1 1
//! ```
//! Invariants: each key has a val, each val an update; diffs are not zero and times of a (key, val) distinct, save
//! where the sum of equal ones does not fit; all times are beyond the batch's lower bound and none beyond its upper.
//! All bytes lie in columns, a sample of the keys of large batches too. Before: `builder`. Next stop: `cursor`.
#![forbid(unsafe_code)]

use super::cursor::LayersCursor;
use super::{Batch, Ref};
use crate::order::{Antichain, PartialOrder, Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Offsets, Sealer};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The items of list `index`.
#[inline]
pub(super) fn range(ends: &Offsets, index: usize) -> Range<usize> {
    let (lower, upper) = ends.bounds(index);
    lower..upper
}

/// The content of a batch, without bounds.
pub struct Layers<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    pub(crate) keys: K::Column,
    pub(crate) key_ends: Offsets,
    pub(crate) vals: V::Column,
    pub(crate) val_ends: Offsets,
    pub(crate) times: T::Column,
    pub(crate) diffs: R::Column,
    /// Every `SAMPLE`-th key, if there are many: a seek from afar looks here first, in a few cache lines.
    sample: K::Column,
}

/// So many keys have one in the sample.
const SAMPLE: usize = 64;
/// Batches of fewer keys have no sample: galloping over them touches about as few cache lines.
const SAMPLED: usize = 64 * SAMPLE;

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Default for Layers<K, V, T, R> {
    fn default() -> Self {
        Layers {
            keys: Default::default(),
            key_ends: Default::default(),
            vals: Default::default(),
            val_ends: Default::default(),
            times: Default::default(),
            diffs: Default::default(),
            sample: Default::default(),
        }
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Layers<K, V, T, R> {
    /// Number of updates.
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }
    /// True iff there is no update.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
    /// Number of keys.
    pub fn key_count(&self) -> usize {
        self.keys.len()
    }
    /// Arena bytes in use.
    pub fn bytes(&self) -> usize {
        self.keys.bytes()
            + self.key_ends.bytes()
            + self.vals.bytes()
            + self.val_ends.bytes()
            + self.times.bytes()
            + self.diffs.bytes()
            + self.sample.bytes()
    }
    /// The updates of the vals in `vals`.
    #[inline]
    pub(crate) fn updates(&self, vals: Range<usize>) -> Range<usize> {
        self.val_ends.start(vals.start)..self.val_ends.start(vals.end)
    }
    /// The vals of the keys in `keys`.
    #[inline]
    pub(crate) fn vals(&self, keys: Range<usize>) -> Range<usize> {
        self.key_ends.start(keys.start)..self.key_ends.start(keys.end)
    }

    /// Appends an update of the val that `end_val` is next told.
    #[inline]
    pub(crate) fn push_update(&mut self, time: T, diff: R) {
        self.times.push(time);
        self.diffs.push(diff);
    }
    /// Ends `val`, if it has updates.
    #[inline]
    pub(crate) fn end_val(&mut self, val: Ref<'_, V>) {
        if self.times.len() > self.val_ends.last() {
            self.vals.push(val);
            self.val_ends.push(self.times.len());
        }
    }
    /// Ends `key`, if it has vals.
    #[inline]
    pub(crate) fn end_key(&mut self, key: Ref<'_, K>) {
        if self.vals.len() > self.key_ends.last() {
            self.keys.push(key);
            self.key_ends.push(self.vals.len());
        }
    }
    /// Makes ready to take what merging `inputs` gives. `folds`: times become few, and perhaps one.
    pub(crate) fn prepare_merge(&mut self, inputs: &[&Self], folds: bool) {
        fn each<'a, L, C>(inputs: &[&'a L], column: fn(&L) -> &C) -> Vec<&'a C> {
            inputs.iter().map(|input| column(input)).collect()
        }
        self.keys.prepare_merge(&each(inputs, |input| &input.keys), false);
        self.vals.prepare_merge(&each(inputs, |input| &input.vals), false);
        self.diffs.prepare_merge(&each(inputs, |input| &input.diffs), true);
        // Ends of single items are a line, as far as they are, and need no memory.
        let reserve = |ends: &mut Offsets, of: Vec<&Offsets>| {
            if of.iter().any(|ends| ends.uniform() != Some(1)) {
                ends.reserve(of.iter().map(|ends| ends.len()).sum());
            }
        };
        reserve(&mut self.key_ends, each(inputs, |input| &input.key_ends));
        reserve(&mut self.val_ends, each(inputs, |input| &input.val_ends));
        if !folds {
            self.times.prepare_merge(&each(inputs, |input| &input.times), false);
        }
    }
    /// Takes the smallest encodings, and the sample. Cost: linear.
    pub(crate) fn seal(&mut self) {
        self.seal_in(&mut Sealer::new(), &mut { usize::MAX });
    }
    /// The same in slices: for `fuel` values looked at or written. True once it is done.
    pub(crate) fn seal_in(&mut self, sealer: &mut Sealer, fuel: &mut usize) -> bool {
        if self.keys.len() >= SAMPLED {
            while self.sample.len() < self.keys.len().div_ceil(SAMPLE) {
                if *fuel == 0 {
                    return false;
                }
                self.sample.push(self.keys.get(self.sample.len() * SAMPLE));
                *fuel -= 1;
            }
        }
        sealer.slice(fuel, |sealer| {
            self.keys.seal_in(sealer)
                && self.key_ends.seal_in(sealer)
                && self.vals.seal_in(sealer)
                && self.val_ends.seal_in(sealer)
                && self.times.seal_in(sealer)
                && self.diffs.seal_in(sealer)
                && self.sample.seal_in(sealer)
        })
    }

    /// The first key from `from` on that is not before `key`. Cost: the logarithm of the distance.
    pub(crate) fn seek_key(&self, from: usize, key: Ref<'_, K>) -> usize {
        let len = self.keys.len();
        if self.sample.is_empty() || len - from <= SAMPLE {
            return self.keys.seek(from, len, key);
        }
        let near = self.keys.seek(from, from + SAMPLE, K::reborrow(key));
        if near < from + SAMPLE {
            return near;
        }
        let sampled = self.sample.seek(from / SAMPLE + 1, self.sample.len(), K::reborrow(key));
        // All keys up to the sampled one before are before `key`, and the next sampled one is not.
        let lower = near.max((sampled - 1) * SAMPLE);
        self.keys.seek(lower, len.min(sampled * SAMPLE), key)
    }

    /// Puts into `found` the first index whose key is not before each of `keys`, which ascend. Where there is a sample, in
    /// two rounds, so that looking for one key need not wait for another.
    pub(super) fn seek_keys(&self, keys: &[Ref<'_, K>], found: &mut Vec<usize>) {
        let len = self.keys.len();
        found.clear();
        let mut from = 0;
        if self.sample.is_empty() {
            found.extend(keys.iter().map(|key| {
                from = self.keys.seek(from, len, K::reborrow(*key));
                from
            }));
            return;
        }
        for key in keys {
            // The key sought lies behind the last sampled one that is before it.
            from = self.sample.seek(from, self.sample.len(), K::reborrow(*key));
            found.push(from.saturating_sub(1) * SAMPLE);
        }
        // The last window is cut off by the end.
        let whole = found.partition_point(|start| start + SAMPLE <= len);
        self.keys.seek_windows(&mut found[..whole], SAMPLE, &keys[..whole]);
        for (start, key) in found[whole..].iter_mut().zip(&keys[whole..]) {
            *start = self.keys.seek(*start, len, K::reborrow(*key));
        }
    }

    /// See [`Batch::sum_keys`].
    fn sum_keys(&self, keys: &[Ref<'_, K>], most: usize, sums: &mut [R::Sum]) -> bool {
        let mut found = Vec::with_capacity(keys.len());
        self.seek_keys(keys, &mut found);
        let flat = self.key_ends.uniform() == Some(1) && self.val_ends.uniform() == Some(1);
        for ((at, key), sum) in found.into_iter().zip(keys).zip(sums) {
            if at == self.keys.len() || self.keys.get(at) != K::reborrow(*key) {
                continue;
            }
            if flat {
                self.diffs.get(at).add_to(sum);
                continue;
            }
            for val in range(&self.key_ends, at) {
                let updates = range(&self.val_ends, val);
                if updates.len() > most {
                    return false;
                }
                updates.for_each(|index| self.diffs.get(index).add_to(sum));
            }
        }
        true
    }

    /// Checks what the head of this file states of a batch's content. Cost: linear.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn check_invariants(&self) {
        assert_eq!(self.keys.len(), self.key_ends.len());
        assert_eq!(self.vals.len(), self.key_ends.last());
        assert_eq!(self.vals.len(), self.val_ends.len());
        assert_eq!(self.times.len(), self.val_ends.last());
        assert_eq!(self.times.len(), self.diffs.len());
        if !self.sample.is_empty() {
            assert_eq!(self.sample.len(), self.keys.len().div_ceil(SAMPLE));
            (0..self.sample.len())
                .for_each(|at| assert!(self.sample.get(at) == self.keys.get(at * SAMPLE), "sample {at}"));
        }
        for key in 0..self.keys.len() {
            assert!(key == 0 || self.keys.get(key - 1) < self.keys.get(key), "keys ascend");
            let vals = range(&self.key_ends, key);
            assert!(!vals.is_empty(), "a key has vals");
            for val in vals.clone() {
                assert!(val == vals.start || self.vals.get(val - 1) < self.vals.get(val), "vals ascend");
                assert!(!range(&self.val_ends, val).is_empty(), "a val has updates");
                self.check_updates(range(&self.val_ends, val));
            }
        }
    }

    fn check_updates(&self, updates: Range<usize>) {
        let mut start = updates.start;
        while start < updates.end {
            let time = self.times.get(start);
            let mut sum = R::Sum::default();
            let mut end = start;
            while end < updates.end && self.times.get(end) == time {
                self.diffs.get(end).add_to(&mut sum);
                end += 1;
            }
            assert!(end == updates.end || time < self.times.get(end), "times ascend");
            assert!(!R::sum_is_zero(&sum), "no update vanishes");
            assert_eq!(R::from_sum(sum).is_some(), end - start == 1, "what fits is summed up");
            start = end;
        }
    }
}

struct Bounded<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    layers: Arc<Layers<K, V, T, R>>,
    lower: Antichain<T>,
    upper: Antichain<T>,
}

/// An ordered batch: [`Layers`] and bounds. A clone shares it.
pub struct OrdBatch<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    // The layers are shared apart from the bounds: an empty neighbour is merged by new bounds alone.
    shared: Arc<Bounded<K, V, T, R>>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> OrdBatch<K, V, T, R> {
    /// The content `layers`, between `lower` and `upper`.
    pub(crate) fn new(layers: Arc<Layers<K, V, T, R>>, lower: Antichain<T>, upper: Antichain<T>) -> Self {
        OrdBatch { shared: Arc::new(Bounded { layers, lower, upper }) }
    }
    /// The content.
    #[inline]
    pub fn layers(&self) -> &Arc<Layers<K, V, T, R>> {
        &self.shared.layers
    }
    /// Arena bytes in use.
    pub fn bytes(&self) -> usize {
        self.layers().bytes()
    }
    /// Checks the invariants of the content and the bounds. Cost: linear.
    ///
    /// # Panics
    /// If they do not hold.
    pub fn check_invariants(&self) {
        self.layers().check_invariants();
        assert!(self.lower().before_equal(self.upper()), "{:?} not before {:?}", self.lower(), self.upper());
        for index in 0..self.len() {
            let time = self.layers().times.get(index);
            assert!(self.lower().less_equal(&time), "{time:?} not beyond {:?}", self.lower());
        }
    }
    /// As `check_invariants`, and no time is beyond the upper bound: so of batches that no merge has folded further.
    ///
    /// # Panics
    /// If it does not hold.
    pub fn check_upper(&self) {
        for index in 0..self.len() {
            let time = self.layers().times.get(index);
            assert!(!self.upper().less_equal(&time), "{time:?} beyond {:?}", self.upper());
        }
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Clone for OrdBatch<K, V, T, R> {
    fn clone(&self) -> Self {
        OrdBatch { shared: self.shared.clone() }
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> fmt::Debug for OrdBatch<K, V, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OrdBatch {{ {} updates, {:?} to {:?} }}", self.len(), self.lower(), self.upper())
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Batch for OrdBatch<K, V, T, R> {
    type Key = K;
    type Val = V;
    type Time = T;
    type Diff = R;
    type Cursor<'a> = LayersCursor<'a, K, V, T, R>;

    fn cursor(&self) -> Self::Cursor<'_> {
        LayersCursor::new(&self.shared.layers)
    }
    fn sum_keys(&self, keys: &[Ref<'_, K>], most: usize, sums: &mut [R::Sum]) -> bool {
        self.shared.layers.sum_keys(keys, most, sums)
    }
    fn only_time(&self) -> Option<T> {
        self.shared.layers.times.constant()
    }
    #[inline]
    fn len(&self) -> usize {
        self.shared.layers.len()
    }
    #[inline]
    fn lower(&self) -> &Antichain<T> {
        &self.shared.lower
    }
    #[inline]
    fn upper(&self) -> &Antichain<T> {
        &self.shared.upper
    }
}

/// The frontier of all times: the bound at which a trace starts.
pub fn start<T: Timestamp + PartialOrder>() -> Antichain<T> {
    Antichain::from_elem(T::minimum())
}
