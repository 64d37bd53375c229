//! The view of a list of values: a part of a column, or owned values seen as one.
//!
//! Both look the same, so that an owned `Vec<T>` and a stored one have one reference type, order and hash.
use crate::hash::combine;
use crate::int::Int;
use crate::ints::Ints;
use crate::traits::{Column, Columnar};
use std::cmp::Ordering;
use std::fmt;

/// A `Copy` view of a list of values, ordered lexicographically as `Vec<T>` is.
pub struct Slice<'a, T: Columnar> {
    repr: Repr<'a, T>,
}

enum Repr<'a, T: Columnar> {
    Values(&'a [T]),
    Part { items: &'a T::Column, lower: usize, upper: usize },
}

impl<'a, T: Columnar> Slice<'a, T> {
    /// Views owned values.
    #[inline]
    #[must_use]
    pub fn from_values(values: &'a [T]) -> Self {
        Slice { repr: Repr::Values(values) }
    }

    /// Views `items[lower..upper]`.
    #[inline]
    #[must_use]
    pub(crate) fn from_part(items: &'a T::Column, lower: usize, upper: usize) -> Self {
        Slice { repr: Repr::Part { items, lower, upper } }
    }

    /// Number of values.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        match self.repr {
            Repr::Values(values) => values.len(),
            Repr::Part { lower, upper, .. } => upper - lower,
        }
    }

    /// True iff there is no value.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// If `index` is not below `len`.
    #[inline]
    #[must_use]
    pub fn get(self, index: usize) -> T::Ref<'a> {
        match self.repr {
            Repr::Values(values) => values[index].borrow(),
            Repr::Part { items, lower, upper } => {
                assert!(index < upper - lower, "index {index} of a list of {}", upper - lower);
                items.get(lower + index)
            }
        }
    }

    /// The values in order.
    #[inline]
    #[must_use]
    pub fn iter(self) -> SliceIter<'a, T> {
        SliceIter { slice: self, next: 0, end: self.len() }
    }

    /// Copies the values out.
    #[must_use]
    pub fn to_vec(self) -> Vec<T> {
        match self.repr {
            Repr::Values(values) => values.to_vec(),
            Repr::Part { .. } => self.iter().map(T::to_owned).collect(),
        }
    }

    /// Appends the values to a column.
    pub(crate) fn append_to(self, column: &mut T::Column) {
        match self.repr {
            Repr::Values(values) => column.push_values(values),
            Repr::Part { items, lower, upper } => column.extend_from(items, lower, upper),
        }
    }
}

impl<'a, T: Int + Columnar<Column = Ints<T>>> Slice<'a, T> {
    /// The values as a slice, unless they are stored in fewer bits. Always for bytes.
    #[inline]
    #[must_use]
    pub fn as_slice(self) -> Option<&'a [T]> {
        match self.repr {
            Repr::Values(values) => Some(values),
            Repr::Part { items, lower, upper } => items.as_plain().map(|all| &all[lower..upper]),
        }
    }
}

impl<'a> Slice<'a, u8> {
    /// The bytes.
    #[inline]
    #[must_use]
    pub fn as_bytes(self) -> &'a [u8] {
        self.as_slice().expect("items of lists of bytes are never encoded")
    }
}

/// The hash of a list, item by item.
pub(crate) fn hash_items<T: Columnar>(values: Slice<'_, T>) -> u64 {
    let mut state = values.len() as u64;
    for value in values {
        state = combine(state, T::hash(value));
    }
    state
}

impl<T: Columnar> Clone for Slice<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Columnar> Copy for Slice<'_, T> {}
impl<T: Columnar> Clone for Repr<'_, T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Columnar> Copy for Repr<'_, T> {}
impl<T: Columnar> PartialEq for Slice<'_, T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.cmp(other) == Ordering::Equal
    }
}
impl<T: Columnar> Eq for Slice<'_, T> {}
impl<T: Columnar> PartialOrd for Slice<'_, T> {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T: Columnar> Ord for Slice<'_, T> {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        T::compare_slices(*self, *other)
    }
}
impl<T: Columnar> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(*self).finish()
    }
}

/// The values of a [`Slice`] in order.
pub struct SliceIter<'a, T: Columnar> {
    slice: Slice<'a, T>,
    next: usize,
    end: usize,
}

impl<'a, T: Columnar> Iterator for SliceIter<'a, T> {
    type Item = T::Ref<'a>;
    #[inline]
    fn next(&mut self) -> Option<T::Ref<'a>> {
        if self.next == self.end {
            return None;
        }
        self.next += 1;
        Some(self.slice.get(self.next - 1))
    }
    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}
impl<T: Columnar> DoubleEndedIterator for SliceIter<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        Some(self.slice.get(self.end))
    }
}
impl<T: Columnar> ExactSizeIterator for SliceIter<'_, T> {}
impl<T: Columnar> Clone for SliceIter<'_, T> {
    fn clone(&self) -> Self {
        SliceIter { ..*self }
    }
}
impl<T: Columnar> fmt::Debug for SliceIter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}
impl<'a, T: Columnar> IntoIterator for Slice<'a, T> {
    type Item = T::Ref<'a>;
    type IntoIter = SliceIter<'a, T>;
    #[inline]
    fn into_iter(self) -> SliceIter<'a, T> {
        self.iter()
    }
}
