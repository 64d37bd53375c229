//! Where bytes live.
use std::ops::{Deref, DerefMut};

/// An owned, growable block of plain values in the current thread's arena.
#[derive(Debug)]
pub struct Buffer<T: Copy + 'static> { plain: Vec<T> }
impl<T: Copy + 'static> Default for Buffer<T> { fn default() -> Self { Self::new() } }
impl<T: Copy + 'static> Buffer<T> {
    /// An empty buffer; allocates nothing.
    pub fn new() -> Self { Buffer { plain: Vec::new() } }
    /// An empty buffer with room for `capacity` values.
    pub fn with_capacity(capacity: usize) -> Self { Buffer { plain: Vec::with_capacity(capacity) } }
    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) { self.plain.push(value) }
    /// Appends a slice.
    pub fn extend_from_slice(&mut self, values: &[T]) { self.plain.extend_from_slice(values) }
    /// Makes room for `additional` more values.
    pub fn reserve(&mut self, additional: usize) { self.plain.reserve(additional) }
    /// Empties the buffer and keeps its block.
    pub fn clear(&mut self) { self.plain.clear() }
    /// Keeps the first `len` values.
    pub fn truncate(&mut self, len: usize) { self.plain.truncate(len) }
    /// Values it can hold without another allocation.
    pub fn capacity(&self) -> usize { self.plain.capacity() }
}
impl<T: Copy + 'static> Deref for Buffer<T> { type Target = [T]; #[inline] fn deref(&self) -> &[T] { &self.plain } }
impl<T: Copy + 'static> DerefMut for Buffer<T> { #[inline] fn deref_mut(&mut self) -> &mut [T] { &mut self.plain } }
