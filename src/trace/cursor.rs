//! A position in the layers of one batch. Moving on costs O(1), seeking the logarithm of the distance.
#![forbid(unsafe_code)]

use super::layers::{Layers, range};
use super::{Cursor, Ref};
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar};
use std::cmp::Ordering;
use std::ops::Range;

/// A position in [`Layers`].
pub struct LayersCursor<'a, K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    layers: &'a Layers<K, V, T, R>,
    key: usize,
    // The current key: it is asked for more often than it changes.
    at: Option<Ref<'a, K>>,
    // The vals of the current key from the current one on.
    vals: Range<usize>,
}

impl<'a, K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> LayersCursor<'a, K, V, T, R> {
    pub(crate) fn new(layers: &'a Layers<K, V, T, R>) -> Self {
        let mut cursor = LayersCursor { layers, key: 0, at: None, vals: 0..0 };
        cursor.go_to(0);
        cursor.rewind_vals();
        cursor
    }
    /// To the key at an index, or past the last; its vals are still to be found.
    #[inline]
    fn go_to(&mut self, key: usize) {
        self.key = key;
        self.at = (key < self.layers.keys.len()).then(|| self.layers.keys.get(key));
    }
    /// Where the updates of the current (key, val) lie.
    #[inline]
    fn times(&self) -> Range<usize> {
        if self.vals.is_empty() { 0..0 } else { range(&self.layers.val_ends, self.vals.start) }
    }
}

impl<'a, K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Cursor<'a> for LayersCursor<'a, K, V, T, R> {
    type Key = K;
    type Val = V;
    type Time = T;
    type Diff = R;

    #[inline]
    fn key(&self) -> Option<Ref<'a, K>> {
        self.at
    }
    #[inline]
    fn val(&self) -> Option<Ref<'a, V>> {
        (!self.vals.is_empty()).then(|| self.layers.vals.get(self.vals.start))
    }
    #[inline]
    fn step_key(&mut self) {
        self.go_to(self.layers.keys.len().min(self.key + 1));
        self.rewind_vals();
    }
    fn seek_key(&mut self, key: Ref<'_, K>) {
        self.seek_key_exact(key);
        self.rewind_vals();
    }
    #[inline]
    fn seek_key_exact(&mut self, key: Ref<'_, K>) -> bool {
        let here = |at: Option<Ref<'a, K>>| at.map(|at| K::reborrow(at).cmp(&K::reborrow(key)));
        let found = match here(self.at) {
            Some(Ordering::Less) => {
                self.go_to(self.layers.seek_key(self.key + 1, K::reborrow(key)));
                self.vals = 0..0;
                here(self.at) == Some(Ordering::Equal)
            }
            order => order == Some(Ordering::Equal),
        };
        if found {
            self.rewind_vals();
        }
        found
    }
    #[inline]
    fn step_val(&mut self) {
        self.vals.start = self.vals.end.min(self.vals.start + 1);
    }
    fn seek_val(&mut self, val: Ref<'_, V>) {
        self.vals.start = self.layers.vals.seek(self.vals.start, self.vals.end, val);
    }
    #[inline]
    fn rewind_vals(&mut self) {
        self.vals = if self.at.is_some() { range(&self.layers.key_ends, self.key) } else { 0..0 };
    }
    #[inline]
    fn time_count(&self) -> usize {
        self.times().len()
    }
    #[inline]
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(T, R)) {
        let times = self.times();
        let end = range.end.min(times.len());
        for index in times.start + range.start.min(end)..times.start + end {
            f(self.layers.times.get(index), self.layers.diffs.get(index));
        }
    }
    #[inline]
    fn position(&self) -> usize {
        self.key
    }
    #[inline]
    fn val_position(&self) -> usize {
        if self.at.is_some() { self.vals.start.saturating_sub(range(&self.layers.key_ends, self.key).start) } else { 0 }
    }
    fn resume(&mut self, position: usize, val_position: usize) {
        self.go_to(position.min(self.layers.keys.len()));
        self.rewind_vals();
        self.vals.start += val_position.min(self.vals.len());
    }
}
