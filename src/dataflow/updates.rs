//! What flows on a stream of updates: columns of (data, time, diff).
#![forbid(unsafe_code)]

use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar};

/// Updates in columns, in no order and not consolidated. Their bytes lie in the current arena.
#[derive(Debug)]
pub struct Updates<D: Columnar, T: Timestamp, R: Semigroup> {
    /// The data.
    pub data: D::Column,
    /// When.
    pub times: T::Column,
    /// How many more.
    pub diffs: R::Column,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Default for Updates<D, T, R> {
    fn default() -> Self {
        Updates { data: Default::default(), times: Default::default(), diffs: Default::default() }
    }
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Updates<D, T, R> {
    /// Number of updates.
    #[inline]
    pub fn len(&self) -> usize {
        self.times.len()
    }
    /// True iff there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }
    /// Appends an update.
    #[inline]
    pub fn push(&mut self, data: D::Ref<'_>, time: T, diff: R) {
        self.data.push(data);
        self.times.push(time);
        self.diffs.push(diff);
    }
    /// The update at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> (D::Ref<'_>, T, R) {
        (self.data.get(index), self.times.get(index), self.diffs.get(index))
    }
    /// All updates.
    pub fn iter(&self) -> impl Iterator<Item = (D::Ref<'_>, T, R)> {
        (0..self.len()).map(|i| self.get(i))
    }
    /// Appends `other[lower..upper]`.
    pub fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        self.data.extend_from(&other.data, lower, upper);
        self.times.extend_from(&other.times, lower, upper);
        self.diffs.extend_from(&other.diffs, lower, upper);
    }
    /// Appends `other[index]` for each index, column by column.
    pub fn gather(&mut self, other: &Self, indices: &[u32]) {
        self.data.gather(&other.data, indices);
        self.times.gather(&other.times, indices);
        self.diffs.gather(&other.diffs, indices);
    }
    /// Removes all updates; the block of the data stays. Times and diffs are often all the same, which takes no block, as
    /// long as there is none.
    pub fn clear(&mut self) {
        self.data.clear();
        self.times = Default::default();
        self.diffs = Default::default();
    }
    /// Arena bytes in use.
    pub fn bytes(&self) -> usize {
        self.data.bytes() + self.times.bytes() + self.diffs.bytes()
    }
}
