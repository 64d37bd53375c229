//! `Buffer<T>`: an owned, growable block of plain values.
//!
//! ```text
//! start ──► | value | value | … | len │ room │ capacity |      the arena is found from the address, by a mask
//! ```
//!
//! Invariants: `start..start + len` is initialized; `capacity` is what the block's class holds, so no byte of it goes
//! to waste; `capacity` is 0 exactly when there is no block (and `usize::MAX` for types without a size, which never
//! have one). A failed allocation changes nothing, so a buffer is sound while its method unwinds.
//! Cost: `push` is one comparison and a store; growing doubles.

use crate::error::{Cause, OutOfMemory};
use crate::inner;
use crate::layout;
use crate::tag::TagInner;
use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};

/// An owned, growable block of plain values in the current thread's arena.
///
/// The block is aligned to 64 bytes, keeps its arena alive, and may be dropped on any thread. It grows in the arena
/// that is current at that moment, which need not be the one it came from. Methods that need memory unwind with
/// [`OutOfMemory`] as payload where it is refused; those named `try_` return it. Either way the buffer is unchanged.
pub struct Buffer<T: Copy + 'static> {
    /// Dangling while there is no block.
    start: NonNull<T>,
    /// 0..=capacity.
    len: usize,
    /// In values.
    capacity: usize,
    /// The tag that was charged for the block, or null.
    tag: *mut TagInner,
    values: PhantomData<T>,
}

// SAFETY: a buffer owns its values; blocks and tags may be freed on any thread.
unsafe impl<T: Copy + Send + 'static> Send for Buffer<T> {}
// SAFETY: a shared buffer gives shared values only.
unsafe impl<T: Copy + Sync + 'static> Sync for Buffer<T> {}

impl<T: Copy + 'static> Buffer<T> {
    const SIZE: usize = {
        assert!(align_of::<T>() <= layout::UNIT, "blocks are aligned to 64 bytes only");
        size_of::<T>()
    };
    /// The capacity without a block.
    const NONE: usize = if Self::SIZE == 0 { usize::MAX } else { 0 };

    /// An empty buffer; allocates nothing.
    pub const fn new() -> Self {
        Buffer { start: NonNull::dangling(), len: 0, capacity: Self::NONE, tag: ptr::null_mut(), values: PhantomData }
    }

    /// An empty buffer with room for `capacity` values.
    pub fn with_capacity(capacity: usize) -> Self {
        Self::try_with_capacity(capacity).unwrap_or_else(|refused| unwind(refused))
    }

    /// An empty buffer with room for `capacity` values.
    ///
    /// # Errors
    /// Where the memory is refused.
    pub fn try_with_capacity(capacity: usize) -> Result<Self, OutOfMemory> {
        let mut buffer = Self::new();
        if capacity > buffer.capacity {
            buffer.reallocate(capacity)?;
        }
        Ok(buffer)
    }

    /// Appends one value.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.len == self.capacity {
            self.grow_by_one();
        }
        // SAFETY: len < capacity, so the place lies in the block (or the type has no size).
        unsafe { self.start.add(self.len).write(value) };
        self.len += 1;
    }

    /// Appends one value.
    ///
    /// # Errors
    /// Where the memory is refused.
    #[inline]
    pub fn try_push(&mut self, value: T) -> Result<(), OutOfMemory> {
        self.try_reserve(1)?;
        self.push(value);
        Ok(())
    }

    /// Appends a slice.
    #[inline]
    pub fn extend_from_slice(&mut self, values: &[T]) {
        self.reserve(values.len());
        // SAFETY: there is room for them, and a slice that is borrowed can't lie in the room of this buffer.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr(), self.start.as_ptr().add(self.len), values.len()) };
        self.len += values.len();
    }

    /// Appends a slice.
    ///
    /// # Errors
    /// Where the memory is refused.
    pub fn try_extend_from_slice(&mut self, values: &[T]) -> Result<(), OutOfMemory> {
        self.try_reserve(values.len())?;
        self.extend_from_slice(values);
        Ok(())
    }

    /// Appends `value(0)`, `value(1)`, … `count` values. They are written where they stay, without a look at the capacity for each,
    /// so that simple ones are compiled to vectors. If one panics, none is appended.
    #[inline]
    pub fn extend_with(&mut self, count: usize, value: impl Fn(usize) -> T) {
        self.reserve(count);
        // SAFETY: within the block, or at its end.
        let room = unsafe { self.start.as_ptr().add(self.len) };
        for index in 0..count {
            // SAFETY: there is room for `count` values. `value` cannot reach the buffer, which is borrowed mutably; the length counts
            // what was written only once all is.
            unsafe { room.add(index).write(value(index)) };
        }
        self.len += count;
    }

    /// Makes room for `additional` more values.
    #[inline]
    pub fn reserve(&mut self, additional: usize) {
        if additional > self.capacity - self.len {
            self.grow(additional).unwrap_or_else(|refused| unwind(refused));
        }
    }

    /// Makes room for `additional` more values.
    ///
    /// # Errors
    /// Where the memory is refused.
    #[inline]
    pub fn try_reserve(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        if additional > self.capacity - self.len {
            self.grow(additional)?;
        }
        Ok(())
    }

    /// Cuts it to `len` values, or fills it up with `value`.
    pub fn resize(&mut self, len: usize, value: T) {
        if len > self.len {
            let more = len - self.len;
            self.reserve(more);
            self.spare_capacity_mut()[..more].fill(MaybeUninit::new(value));
        }
        self.len = len;
    }

    /// Empties the buffer and keeps its block.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Keeps the first `len` values.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Values it can hold without another allocation.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Moves to a smaller block if one suffices. Where that is refused it stays as it is.
    pub fn shrink_to_fit(&mut self) {
        if self.len == 0 {
            *self = Self::new();
        } else if layout::class_of(self.len * Self::SIZE) < layout::class_of(self.block_bytes()) {
            // What can't be shrunk for want of memory is still whole.
            let _kept = self.reallocate(self.len);
        }
    }

    /// The size of its block: what it counts for in the accounts of its arena and its tag.
    pub fn block_bytes(&self) -> usize {
        if self.has_block() {
            // SAFETY: the block is out as long as the buffer has it.
            unsafe { crate::chunk::block_bytes(self.start.cast()) }
        } else {
            0
        }
    }

    /// The room behind the values, for kernels that write it themselves and then call [`Buffer::set_len`].
    #[inline]
    pub fn spare_capacity_mut(&mut self) -> &mut [MaybeUninit<T>] {
        let room = if Self::SIZE == 0 { usize::MAX - self.len } else { self.capacity - self.len };
        // SAFETY: `room` values after `len` lie in the block, borrowed as `self` is; they may be uninitialized.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr().add(self.len).cast(), room) }
    }

    /// Sets the length.
    ///
    /// # Safety
    /// `len` is at most the capacity, and the first `len` values are initialized.
    #[inline]
    pub unsafe fn set_len(&mut self, len: usize) {
        debug_assert!(len <= self.capacity, "{len} values in room for {}", self.capacity);
        self.len = len;
    }

    #[inline]
    fn has_block(&self) -> bool {
        Self::SIZE != 0 && self.capacity != 0
    }

    #[cold]
    #[inline(never)]
    fn grow_by_one(&mut self) {
        self.grow(1).unwrap_or_else(|refused| unwind(refused));
    }

    /// Grows to twice the capacity, or to what is needed if that is more or if twice is refused.
    #[cold]
    fn grow(&mut self, additional: usize) -> Result<(), OutOfMemory> {
        let needed = self.len.saturating_add(additional);
        let doubled = layout::grown_capacity(self.capacity, needed);
        match self.reallocate(doubled) {
            Err(refused) if doubled > needed && refused.cause != Cause::Injected => self.reallocate(needed),
            done => done,
        }
    }

    /// Moves to a block for at least `capacity` values, which is at least `len`.
    fn reallocate(&mut self, capacity: usize) -> Result<(), OutOfMemory> {
        debug_assert!(capacity >= self.len);
        // A type without a size comes here only when its count overflows: that asks for more than there is.
        let bytes = if Self::SIZE == 0 { usize::MAX } else { layout::array_bytes(capacity, Self::SIZE) };
        let block = inner::allocate(bytes)?;
        let start: NonNull<T> = block.start.cast();
        // SAFETY: the new block is another one, and holds at least `len` values.
        unsafe { ptr::copy_nonoverlapping(self.start.as_ptr(), start.as_ptr(), self.len) };
        self.release();
        self.start = start;
        self.capacity = block.bytes / Self::SIZE.max(1);
        self.tag = block.tag;
        Ok(())
    }

    /// Frees the block, if there is one. The fields are stale afterwards.
    #[inline]
    fn release(&mut self) {
        if self.has_block() {
            // SAFETY: block and tag come from `allocate`; whoever calls overwrites or forgets them.
            unsafe { inner::free(self.start.cast(), self.tag) };
        }
    }
}

/// Unwinds with the refusal as payload, without running the panic hook.
#[cold]
#[inline(never)]
pub(crate) fn unwind(refused: OutOfMemory) -> ! {
    std::panic::resume_unwind(Box::new(refused))
}

impl<T: Copy + 'static> Drop for Buffer<T> {
    #[inline]
    fn drop(&mut self) {
        self.release();
    }
}

impl<T: Copy + 'static> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Copy + 'static> Clone for Buffer<T> {
    /// A copy in the current arena, with no more room than its class has.
    fn clone(&self) -> Self {
        let mut copy = Self::new();
        copy.extend_from_slice(self);
        copy
    }
}

impl<T: Copy + fmt::Debug + 'static> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Copy + 'static> Deref for Buffer<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` values are initialized, and borrowed as `self` is. With len 0 the pointer is
        // aligned and not null.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy + 'static> DerefMut for Buffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed for writing.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}
