//! A column of lists: all items one after the other, and where each list ends.
//!
//! Items are encoded as any column of theirs, save that bytes stay contiguous: a stored `Vec<u8>` is read as
//! `&[u8]`.
use crate::offsets::Offsets;
use crate::seal::Sealer;
use crate::slice::Slice;
use crate::traits::{Column, Columnar};
use std::fmt;

/// A column of `Vec<T>`.
pub struct Vecs<T: Columnar> {
    items: T::Column,
    ends: Offsets,
}

impl<T: Columnar> Vecs<T> {
    /// The items of all lists.
    #[must_use]
    pub fn items(&self) -> &T::Column {
        &self.items
    }
    /// Where each list ends.
    #[must_use]
    pub fn ends(&self) -> &Offsets {
        &self.ends
    }
}

impl<T: Columnar> Default for Vecs<T> {
    fn default() -> Self {
        Vecs { items: T::Column::default(), ends: Offsets::default() }
    }
}

impl<T: Columnar> fmt::Debug for Vecs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries((0..self.len()).map(|index| self.get(index))).finish()
    }
}

impl<T: Columnar> Columnar for Vec<T> {
    type Ref<'a> = Slice<'a, T>;
    type Column = Vecs<T>;
    #[inline]
    fn borrow(&self) -> Slice<'_, T> {
        Slice::from_values(self)
    }
    #[inline]
    fn to_owned(value: Slice<'_, T>) -> Vec<T> {
        value.to_vec()
    }
    #[inline]
    fn reborrow<'b, 'a: 'b>(value: Slice<'a, T>) -> Slice<'b, T> {
        value
    }
    #[inline]
    fn hash(value: Slice<'_, T>) -> u64 {
        T::hash_slice(value)
    }
}

impl<T: Columnar> Column for Vecs<T> {
    type Owned = Vec<T>;
    const PREFIX_EXACT: bool = false;

    #[inline]
    fn len(&self) -> usize {
        self.ends.len()
    }
    #[inline]
    fn get(&self, index: usize) -> Slice<'_, T> {
        let (lower, upper) = self.ends.bounds(index);
        Slice::from_part(&self.items, lower, upper)
    }
    fn push(&mut self, value: Slice<'_, T>) {
        value.append_to(&mut self.items);
        self.ends.push(self.items.len());
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let (first, last) = other.ends.span(lower, upper);
        self.items.extend_from(&other.items, first, last);
        self.ends.extend_from(&other.ends, lower, upper);
    }
    fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }
    fn reserve(&mut self, additional: usize) {
        self.ends.reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.items.seal_items_in(sealer) && self.ends.seal_in(sealer)
    }
    fn bytes(&self) -> usize {
        self.items.bytes() + self.ends.bytes()
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        let (lower, upper) = self.ends.bounds(index);
        self.items.range_prefix(lower, upper)
    }
    fn check_invariants(&self) {
        self.items.check_invariants();
        self.ends.check_invariants();
        assert_eq!(self.ends.last(), self.items.len());
    }
}
