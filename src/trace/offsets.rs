//! Where the range of each item of a layer ends in the layer below: an ascending column of integers.
//!
//! ```text
//! keys   a  b     c          ends  1  3  4        range(1) = 1..3
//! vals   x  y  z  w
//! ```
//! Sealed, a stride costs nothing. This is the one place that knows how offsets are stored. Next stop: `layers`.
#![forbid(unsafe_code)]

use kpg_columnar::{Column, Columnar};
use std::ops::Range;

/// Ends of adjacent ranges, the first of which starts at 0.
#[derive(Default)]
pub(crate) struct Offsets {
    ends: <u64 as Columnar>::Column,
}

impl Offsets {
    /// Number of ranges.
    #[inline]
    pub fn len(&self) -> usize {
        self.ends.len()
    }
    /// Where range `index` starts; for `len()`, where the last one ends.
    #[inline]
    pub fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends.get(index - 1) as usize }
    }
    /// Where the last range ends.
    #[inline]
    pub fn last(&self) -> usize {
        self.start(self.len())
    }
    /// Range `index`.
    #[inline]
    pub fn range(&self, index: usize) -> Range<usize> {
        self.start(index)..self.ends.get(index) as usize
    }
    /// Appends a range that ends at `end`.
    #[inline]
    pub fn push(&mut self, end: usize) {
        debug_assert!(end >= self.last());
        self.ends.push(end as u64);
    }
    /// Appends ranges of the same lengths as those of `other` in `range`.
    pub fn extend_from(&mut self, other: &Offsets, range: Range<usize>) {
        let (from, to) = (other.start(range.start), self.last());
        self.ends.reserve(range.len());
        for index in range {
            self.ends.push((other.ends.get(index) as usize - from + to) as u64);
        }
    }
    /// The greatest `index` in `range` such that ranges `range.start..index` span at most `limit` items, and more
    /// than nothing if the range is not empty. Cost: a binary search.
    pub fn span(&self, range: Range<usize>, limit: usize) -> usize {
        let from = self.start(range.start);
        let (mut low, mut high) = (range.start + 1, range.end);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if self.start(middle) - from <= limit { low = middle } else { high = middle - 1 }
        }
        low.min(range.end)
    }
    pub fn reserve(&mut self, additional: usize) {
        self.ends.reserve(additional);
    }
    pub fn seal(&mut self) {
        self.ends.seal();
    }
    pub fn bytes(&self) -> usize {
        self.ends.bytes()
    }
}
