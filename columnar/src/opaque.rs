//! Any other ordered type, kept as it is: the one column outside the arena.
//!
//! Each value owns its memory; [`HeapSize`] tells how much, so that it is counted, on the tag that is current when a column
//! gets its first value.
use crate::hash::FixedHasher;
use crate::seal::Sealer;
use crate::traits::{Column, Columnar};
use std::fmt::Debug;
use std::hash::{Hash, Hasher};

/// How much memory a value owns besides its own bytes.
pub trait HeapSize {
    /// Bytes owned through pointers; must not change while the value lies in a column.
    fn heap_bytes(&self) -> usize {
        0
    }
}

macro_rules! no_heap {
    ($($type:ty),*) => { $(impl HeapSize for $type {})* };
}
no_heap!((), bool, char, u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

impl HeapSize for String {
    fn heap_bytes(&self) -> usize {
        self.capacity()
    }
}
impl<T: HeapSize> HeapSize for Vec<T> {
    fn heap_bytes(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(T::heap_bytes).sum::<usize>()
    }
}
impl<T: HeapSize> HeapSize for Option<T> {
    fn heap_bytes(&self) -> usize {
        self.as_ref().map_or(0, T::heap_bytes)
    }
}
impl<T: HeapSize> HeapSize for Box<T> {
    fn heap_bytes(&self) -> usize {
        size_of::<T>() + T::heap_bytes(self)
    }
}

/// A value stored as it is, for types that have no column of their own. Read as `&Opaque<T>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Opaque<T>(pub T);

impl<T> From<T> for Opaque<T> {
    fn from(value: T) -> Self {
        Opaque(value)
    }
}

impl<T> std::ops::Deref for Opaque<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// A column of [`Opaque`] values.
#[derive(Debug)]
pub struct Opaques<T> {
    values: Vec<Opaque<T>>,
    heap_bytes: usize,
    account: kpg_arena::Foreign,
}

impl<T> Default for Opaques<T> {
    fn default() -> Self {
        Opaques { values: Vec::new(), heap_bytes: 0, account: kpg_arena::Foreign::default() }
    }
}

impl<T> Columnar for Opaque<T>
where
    T: Ord + Clone + Hash + Debug + HeapSize + Send + Sync + 'static,
{
    type Ref<'a> = &'a Opaque<T>;
    type Column = Opaques<T>;
    #[inline]
    fn borrow(&self) -> &Opaque<T> {
        self
    }
    #[inline]
    fn to_owned(value: &Opaque<T>) -> Self {
        value.clone()
    }
    #[inline]
    fn reborrow<'b, 'a: 'b>(value: &'a Opaque<T>) -> &'b Opaque<T> {
        value
    }
    fn hash(value: &Opaque<T>) -> u64 {
        let mut hasher = FixedHasher::default();
        value.0.hash(&mut hasher);
        hasher.finish()
    }
}

impl<T> Column for Opaques<T>
where
    T: Ord + Clone + Hash + Debug + HeapSize + Send + Sync + 'static,
{
    type Owned = Opaque<T>;
    const PREFIX_EXACT: bool = false;
    const PREFIX_BITS: u32 = 0;

    #[inline]
    fn len(&self) -> usize {
        self.values.len()
    }
    #[inline]
    fn get(&self, index: usize) -> &Opaque<T> {
        &self.values[index]
    }
    fn push(&mut self, value: &Opaque<T>) {
        // The clone is measured, for it may own less than the original.
        let value = value.clone();
        self.heap_bytes += value.0.heap_bytes();
        self.values.push(value);
        self.account.cover(self.bytes());
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let values = &other.values[lower..upper];
        self.heap_bytes += values.iter().map(|value| value.0.heap_bytes()).sum::<usize>();
        self.values.extend_from_slice(values);
        self.account.cover(self.bytes());
    }
    fn clear(&mut self) {
        self.values.clear();
        self.heap_bytes = 0;
        self.account.fit(self.bytes());
    }
    fn reserve(&mut self, additional: usize) {
        self.values.reserve(additional);
        self.account.cover(self.bytes());
    }
    /// In one step: the system's allocator shrinks what is large in place.
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        sealer.part(|_, _| {
            self.values.shrink_to_fit();
            self.account.fit(self.bytes());
            true
        })
    }
    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<T>() + self.heap_bytes
    }
    #[inline]
    fn prefix(&self, _: usize) -> u64 {
        0
    }
    fn check_invariants(&self) {
        let heap_bytes: usize = self.values.iter().map(|value| value.0.heap_bytes()).sum();
        assert_eq!(heap_bytes, self.heap_bytes);
    }
}
