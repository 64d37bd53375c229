//! Owner tags: whose bytes are these?
//!
//! A [`Tag`] counts the bytes of the blocks that were allocated while it was the thread's current tag, until they
//! are freed, on whatever thread. It can have a cap of its own.
//!
//! The count is the reference count too: every block is a multiple of 64 bytes, so bit 0 of the word is free to say
//! that a handle exists, and who brings the word to 0 frees the record:
//!
//! ```text
//! word = live bytes | 1 while there are handles          one RMW for a block allocated, one for it freed
//! ```
//!
//! A tag may be part of another: what it counts, that one counts too, and whose cap is exceeded refuses. A part's record
//! keeps a handle of the whole.
//!
//! A scope counts late, on its thread (`current.rs`): meanwhile the word may lack what was charged, and be less than 0, if
//! another thread frees that; bit 0 is there as long as the scope is.
//!
//! Invariant: a block is charged only while its tag is current, hence while a handle exists: nothing revives a 0.

use crate::current;
use crate::error::{Cause, OutOfMemory};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The record that handles and blocks share.
///
/// On lines of its own: all workers of a query write it.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct TagInner {
    name: String,
    /// What it is a part of.
    whole: Option<Tag>,
    /// Live bytes, a multiple of 64, plus 1 while `handles` isn't 0.
    word: AtomicUsize,
    /// The greatest number of live bytes so far.
    peak: AtomicUsize,
    /// `usize::MAX` for none.
    cap: AtomicUsize,
    /// Handles and entered guards.
    handles: AtomicUsize,
}

/// The live bytes that a word says: none, while what was charged is still to come.
#[inline]
fn live(word: usize) -> usize {
    (word & !1).cast_signed().max(0).cast_unsigned()
}

impl TagInner {
    /// Counts `bytes` more.
    ///
    /// # Errors
    /// Where the cap would be exceeded; then nothing is counted.
    #[inline]
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), OutOfMemory> {
        if current::count_late(self, bytes.cast_signed()) {
            return Ok(());
        }
        self.charge_now(bytes)
    }

    fn charge_now(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let Some(whole) = &self.whole else { return self.charge_own(bytes) };
        whole.inner().charge_now(bytes)?;
        self.charge_own(bytes).inspect_err(|_| whole.inner().uncharge(bytes))
    }

    /// Counts what a scope has counted: `change` more, or less, after up to `most` more.
    pub(crate) fn settle(&self, change: isize, most: isize) {
        let before = match change {
            0 => self.word.load(Ordering::Relaxed),
            _ => self.word.fetch_add(change.cast_unsigned(), Ordering::Release),
        };
        self.raise_peak((before & !1).cast_signed().saturating_add(most).max(0).cast_unsigned());
        if let Some(whole) = &self.whole {
            whole.inner().settle(change, most);
        }
    }

    #[inline]
    fn raise_peak(&self, live: usize) {
        if live > self.peak.load(Ordering::Relaxed) {
            self.peak.fetch_max(live, Ordering::Relaxed);
        }
    }

    /// Takes back what was charged here, where a handle is at hand and so the record stays.
    fn uncharge(&self, bytes: usize) {
        self.word.fetch_sub(bytes, Ordering::Release);
        if let Some(whole) = &self.whole {
            whole.inner().uncharge(bytes);
        }
    }

    #[inline]
    fn charge_own(&self, bytes: usize) -> Result<(), OutOfMemory> {
        let cap = self.cap.load(Ordering::Relaxed);
        // Relaxed: a handle exists, so the record stays; a block is handed over by other means.
        let now = if cap == usize::MAX {
            live(self.word.fetch_add(bytes, Ordering::Relaxed).wrapping_add(bytes))
        } else {
            self.charge_capped(bytes, cap)?
        };
        self.raise_peak(now);
        Ok(())
    }

    fn charge_capped(&self, bytes: usize, cap: usize) -> Result<usize, OutOfMemory> {
        let fits = |word: usize| (live(word).saturating_add(bytes) <= cap).then(|| word.wrapping_add(bytes));
        match self.word.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(word) => Ok(live(word.wrapping_add(bytes))),
            Err(word) => Err(OutOfMemory {
                requested: bytes,
                live: live(word),
                cap: Some(cap),
                who: self.name.clone(),
                cause: Cause::TagCap,
            }),
        }
    }
}

/// Counts `bytes` less, and frees the record if it was the last that knew it.
///
/// # Safety
/// `tag` was charged `bytes` for a block which is gone now.
#[inline]
pub(crate) unsafe fn discharge(tag: NonNull<TagInner>, bytes: usize) {
    if current::count_late(tag.as_ptr(), -bytes.cast_signed()) {
        return;
    }
    // SAFETY: what is charged keeps the record alive, until `release` has taken it away.
    if let Some(whole) = unsafe { &tag.as_ref().whole } {
        whole.inner().uncharge(bytes);
    }
    // SAFETY: as the caller says.
    unsafe { release(tag, bytes) };
}

/// Takes `bytes` from the word, and frees the record if that was all.
///
/// # Safety
/// `bytes` is what a block was charged that is gone now, or 1 for the last handle.
#[inline]
unsafe fn release(tag: NonNull<TagInner>, bytes: usize) {
    // All that others did with the record happens before it is freed; not by a fence, which sanitizers do not know.
    // SAFETY: what is in the word keeps the record alive, until this very subtraction.
    let before = unsafe { tag.as_ref() }.word.fetch_sub(bytes, Ordering::AcqRel);
    if before == bytes {
        // SAFETY: the word is 0: no handle, no block. The record was leaked from a box.
        drop(unsafe { Box::from_raw(tag.as_ptr()) });
    }
}

/// Whose bytes are these: a name with counters and perhaps a cap. Cheap to clone.
pub struct Tag {
    inner: NonNull<TagInner>,
}

// SAFETY: all of the record is atomics and an immutable name.
unsafe impl Send for Tag {}
// SAFETY: as above.
unsafe impl Sync for Tag {}

impl Tag {
    /// A tag without a cap.
    pub fn new(name: impl Into<String>) -> Tag {
        Tag::with_cap(name, None)
    }

    /// A tag whose blocks may have at most `cap_bytes` together.
    pub fn with_cap(name: impl Into<String>, cap_bytes: Option<usize>) -> Tag {
        Tag::build(name.into(), cap_bytes, None)
    }

    /// A tag that is a part of this one: its blocks count for both, and this one's cap holds for them as well.
    pub fn part(&self, name: impl Into<String>) -> Tag {
        Tag::build(name.into(), None, Some(self.clone()))
    }

    fn build(name: String, cap_bytes: Option<usize>, whole: Option<Tag>) -> Tag {
        let inner = Box::new(TagInner {
            name,
            whole,
            word: AtomicUsize::new(1),
            peak: AtomicUsize::new(0),
            cap: AtomicUsize::new(cap_bytes.unwrap_or(usize::MAX)),
            handles: AtomicUsize::new(1),
        });
        Tag { inner: NonNull::from(Box::leak(inner)) }
    }

    fn inner(&self) -> &TagInner {
        // SAFETY: bit 0 of the word keeps the record while a handle exists.
        unsafe { self.inner.as_ref() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner().name
    }

    /// Bytes of its blocks that are live. Of what other threads have done in a scope that lasts, up to a megabyte each may not
    /// be counted yet.
    pub fn live_bytes(&self) -> usize {
        current::settle();
        live(self.inner().word.load(Ordering::Relaxed))
    }

    /// The greatest number of live bytes so far.
    pub fn peak_bytes(&self) -> usize {
        current::settle();
        self.inner().peak.load(Ordering::Relaxed)
    }

    /// Its cap.
    pub fn cap_bytes(&self) -> Option<usize> {
        Some(self.inner().cap.load(Ordering::Relaxed)).filter(|&cap| cap != usize::MAX)
    }

    /// Changes the cap. One below what is live refuses what comes and takes nothing away.
    pub fn set_cap(&self, cap_bytes: Option<usize>) {
        self.inner().cap.store(cap_bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Makes it this thread's current tag until the guard is dropped, in place of the one before.
    pub fn enter(&self) -> EnteredTag {
        EnteredTag { before: current::enter_tag(self.clone()), here: PhantomData }
    }

    /// Calls `f` with this as the thread's current tag: as `enter`, but it counts no handle, and, if there is no cap, its bytes
    /// in one piece, so that threads which do so all the time don't write where the others read.
    pub fn scope<O>(&self, f: impl FnOnce() -> O) -> O {
        current::lend_tag(self, f)
    }

    /// Whether there is a cap, its own or the whole's.
    pub(crate) fn is_capped(&self) -> bool {
        let inner = self.inner();
        self.cap_bytes().is_some() || inner.whole.as_ref().is_some_and(Tag::is_capped)
    }

    /// Counts `bytes`, a multiple of 64, of something that is no block.
    ///
    /// # Errors
    /// Where a cap would be exceeded.
    pub(crate) fn charge(&self, bytes: usize) -> Result<(), OutOfMemory> {
        self.inner().charge(bytes)
    }

    /// Takes back what `charge` counted.
    pub(crate) fn uncharge(&self, bytes: usize) {
        self.inner().uncharge(bytes);
    }

    /// The pointer, which is no handle.
    pub(crate) fn as_raw(&self) -> NonNull<TagInner> {
        self.inner
    }

    /// Leaks the handle as a pointer.
    pub(crate) fn into_raw(self) -> NonNull<TagInner> {
        std::mem::ManuallyDrop::new(self).inner
    }

    /// # Safety
    /// `inner` comes from `into_raw`, and is used once.
    pub(crate) unsafe fn from_raw(inner: NonNull<TagInner>) -> Tag {
        Tag { inner }
    }
}

impl Clone for Tag {
    fn clone(&self) -> Tag {
        self.inner().handles.fetch_add(1, Ordering::Relaxed);
        Tag { inner: self.inner }
    }
}

impl Drop for Tag {
    fn drop(&mut self) {
        if self.inner().handles.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: the last handle takes away bit 0, which was there for the handles, as if it were a block.
            unsafe { release(self.inner, 1) };
        }
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tag").field("name", &self.name()).field("live_bytes", &self.live_bytes()).finish()
    }
}

/// While it lives, what this thread allocates belongs to a tag. See [`Tag::enter`].
#[derive(Debug)]
#[must_use = "the tag is current only while the guard lives"]
pub struct EnteredTag {
    before: Option<Tag>,
    here: PhantomData<*mut ()>,
}

impl Drop for EnteredTag {
    fn drop(&mut self) {
        current::leave_tag(self.before.take());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Buffer;
    use crate::current::LATE;

    #[test]
    fn a_block_is_counted_until_it_is_freed_anywhere() {
        let tag = Tag::new("orders");
        let buffer = {
            let _entered = tag.enter();
            Buffer::<u64>::with_capacity(8)
        };
        let other = Buffer::<u64>::with_capacity(8);
        assert_eq!((tag.live_bytes(), tag.peak_bytes()), (64, 64));
        std::thread::spawn(move || drop((buffer, other))).join().expect("the thread ends well");
        assert_eq!((tag.live_bytes(), tag.peak_bytes()), (0, 64));
    }

    #[test]
    fn a_nested_tag_replaces_and_restores() {
        let (outer, inner) = (Tag::new("outer"), Tag::new("inner"));
        let _outer = outer.enter();
        let guard = inner.enter();
        let first = Buffer::<u8>::with_capacity(1);
        drop(guard);
        let second = Buffer::<u8>::with_capacity(100);
        assert_eq!((inner.live_bytes(), outer.live_bytes()), (64, 128));
        drop((first, second));
    }

    #[test]
    fn guards_dropped_in_any_order_are_sound() {
        let (a, b) = (Tag::new("a"), Tag::new("b"));
        let (first, second) = (a.enter(), b.enter());
        drop((a, b));
        drop(first);
        drop(Buffer::<u8>::with_capacity(1));
        drop(second);
        drop(Buffer::<u8>::with_capacity(1));
        assert!(current::tag().is_none(), "all have been left");
    }

    /// What one may allocate and where it counts.
    fn counted(tag: &Tag) -> bool {
        let before = tag.live_bytes();
        let block = Buffer::<u8>::with_capacity(1);
        let counts = tag.live_bytes() - before == 64;
        drop(block);
        counts
    }

    #[test]
    fn a_scope_counts_no_handle_and_restores() {
        let (outer, inner) = (Tag::new("outer"), Tag::new("inner"));
        let handles = |tag: &Tag| tag.inner().handles.load(Ordering::Relaxed);
        outer.scope(|| {
            assert!(counted(&outer));
            inner.scope(|| assert!(counted(&inner)));
            assert!(counted(&outer));
            let entered = inner.enter();
            assert!(counted(&inner));
            drop(entered);
            assert!(counted(&outer));
            assert_eq!(current::tag().map(|tag| tag.name().to_string()).as_deref(), Some("outer"));
        });
        assert_eq!((handles(&outer), handles(&inner)), (1, 1));
        assert!(current::tag().is_none());
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| outer.scope(|| panic!("as users do"))));
        assert!(panicked.is_err() && current::tag().is_none(), "a scope that panics is left");
    }

    /// What another thread sees.
    fn seen(tag: &Tag) -> usize {
        std::thread::scope(|scope| scope.spawn(|| tag.live_bytes()).join().expect("the thread ends well"))
    }

    #[test]
    fn a_scope_counts_in_one_piece() {
        let whole = Tag::new("query");
        let tag = whole.part("own");
        let block = |bytes| Buffer::<u8>::with_capacity(bytes);
        let (kept, elsewhere) = tag.scope(|| {
            let (kept, elsewhere) = (block(64), block(128));
            drop(block(1024));
            assert_eq!((seen(&tag), seen(&whole)), (0, 0), "others see it when it is over");
            // A block that was not counted yet, freed by a thread that counts at once.
            std::thread::scope(|scope| scope.spawn(|| drop(elsewhere)).join().expect("the thread ends well"));
            assert_eq!((seen(&tag), seen(&whole)), (0, 0), "less than nothing is nothing");
            let elsewhere = block(128);
            let half = LATE.unsigned_abs() / 2;
            let large = [block(half), block(half)];
            assert_eq!(seen(&tag), 192 + 2 * half, "much is counted at once");
            drop(large);
            assert_eq!(tag.live_bytes(), 192, "who asks sees all that it did");
            (kept, elsewhere)
        });
        assert_eq!((seen(&tag), seen(&whole)), (192, 192));
        let most = 64 + 128 + LATE.unsigned_abs();
        assert_eq!((tag.peak_bytes(), whole.peak_bytes()), (most, most));
        tag.scope(|| {
            drop(kept);
            let other = whole.part("other");
            other.scope(|| assert_eq!(seen(&tag), 128, "another tag is current"));
            drop(elsewhere);
        });
        assert_eq!((seen(&tag), seen(&whole)), (0, 0));
    }

    #[test]
    fn a_scope_with_a_cap_counts_at_once() {
        let whole = Tag::with_cap("query", Some(128));
        let tag = whole.part("own");
        tag.scope(|| {
            let first = Buffer::<u8>::with_capacity(128);
            assert_eq!((seen(&tag), seen(&whole)), (128, 128));
            assert!(Buffer::<u8>::try_with_capacity(1).is_err(), "the whole's cap");
            drop(first);
        });
        assert_eq!((seen(&tag), seen(&whole)), (0, 0));
    }

    #[test]
    fn a_guard_that_outlives_a_scope_is_sound() {
        let (a, b, c) = (Tag::new("a"), Tag::new("b"), Tag::new("c"));
        let before = a.enter();
        let leaked = b.scope(|| {
            let leaked = c.enter();
            assert!(counted(&c));
            leaked
        });
        assert!(counted(&a), "the scope's end brought back what was before it");
        drop(leaked);
        drop(before);
        // A guard older than the scope, dropped inside it.
        let older = a.enter();
        b.scope(|| {
            drop(older);
            drop(Buffer::<u8>::with_capacity(1));
        });
        assert!(current::tag().is_none(), "all have been left");
        let handles = |tag: &Tag| tag.inner().handles.load(Ordering::Relaxed);
        assert_eq!([handles(&a), handles(&b), handles(&c)], [1; 3], "no handle is lost");
    }

    #[test]
    fn a_block_outlives_the_handles_of_its_tag() {
        let tag = Tag::new("gone");
        let buffer = {
            let _entered = tag.enter();
            Buffer::<u64>::with_capacity(100)
        };
        drop(tag);
        drop(buffer);
    }

    #[test]
    fn a_whole_counts_its_parts_and_caps_them() {
        let whole = Tag::with_cap("query", Some(192));
        let (first, second) = (whole.part("own"), whole.part("shared"));
        let in_part = |tag: &Tag, bytes| {
            let _entered = tag.enter();
            Buffer::<u8>::try_with_capacity(bytes)
        };
        let (a, b) = (
            in_part(&first, 64).expect("there is as much memory"),
            in_part(&second, 128).expect("there is as much memory"),
        );
        assert_eq!((whole.live_bytes(), first.live_bytes(), second.live_bytes()), (192, 64, 128));
        let refused = in_part(&first, 1).unwrap_err();
        assert_eq!((refused.who.as_str(), refused.live, refused.cap), ("query", 192, Some(192)));
        assert_eq!((whole.live_bytes(), first.live_bytes()), (192, 64), "what was refused counts nowhere");
        drop(a);
        assert_eq!((whole.live_bytes(), whole.peak_bytes()), (128, 192));
        // A part's own cap gives back what the whole had counted.
        second.set_cap(Some(128));
        assert_eq!(in_part(&second, 1).unwrap_err().who, "shared");
        assert_eq!(whole.live_bytes(), 128);
        // The blocks outlive the handles; the last block of a part lets go of the whole.
        drop((first, second));
        std::thread::spawn(move || drop(b)).join().expect("the thread ends well");
        assert_eq!(whole.live_bytes(), 0);
    }

    #[test]
    fn the_cap_refuses_and_says_so() {
        let tag = Tag::with_cap("orders", Some(128));
        let _entered = tag.enter();
        let mut buffer = Buffer::<u64>::try_with_capacity(8).expect("there is as much memory");
        let refused = Buffer::<u64>::try_with_capacity(16).unwrap_err();
        assert_eq!(refused.cause, Cause::TagCap);
        assert_eq!((refused.requested, refused.live, refused.cap), (128, 64, Some(128)));
        assert!(refused.to_string().contains("orders has 64 bytes live of at most 128"));
        tag.set_cap(None);
        buffer.reserve(16);
    }
}
