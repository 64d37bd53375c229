//! What this thread has entered: an arena, a tag; and a number that tells threads apart.
//!
//! The record has no destructor, so it can be read at any moment of a thread's life, also while other thread-local
//! values are being dropped. Invariants: the arena pointer is null or an arena that this thread owns; the tag
//! pointer is null, or a leaked handle, or lent by a scope that has not ended; and null while no guard of a tag lives and
//! no scope lasts.
//!
//! **Scopes count late.** While a scope lends a tag without a cap, what is charged to it and what it is relieved of on this
//! thread adds up here, and reaches the record in one piece: when the scope ends, when another tag becomes current, when
//! this thread asks, and when it is much. Threads that work for one tag would else write its word for each block, each in
//! turn. `pending` is 0 unless `defers`; who lends the tag has a handle of it, so the record is there.

use crate::inner::Inner;
use crate::tag::{Tag, TagInner};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

/// No thread has this number, and an arena with this owner has none.
pub(crate) const NOBODY: u64 = 0;
/// So many bytes are counted late at most.
pub(crate) const LATE: isize = 1 << 20;
/// The number of a thread that has never entered an arena; never the owner of one.
const UNNAMED: u64 = u64::MAX;

struct Current {
    arena: Cell<*const Inner>,
    tag: Cell<*mut TagInner>,
    /// Whether `tag` is lent by the innermost scope: it is no handle then.
    lent: Cell<bool>,
    /// Guards of tags that live, and scopes that last.
    tags_entered: Cell<usize>,
    /// Whether the tag is lent and has no cap, so that it is counted late.
    defers: Cell<bool>,
    /// Bytes charged less those relieved of, which the record does not know yet; and the most that they have been.
    pending: Cell<isize>,
    most: Cell<isize>,
    thread: Cell<u64>,
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            arena: Cell::new(ptr::null()),
            tag: Cell::new(ptr::null_mut()),
            lent: Cell::new(false),
            tags_entered: Cell::new(0),
            defers: Cell::new(false),
            pending: Cell::new(0),
            most: Cell::new(0),
            thread: Cell::new(UNNAMED),
        }
    };
}

/// The arena and the tag that are current.
#[inline]
pub(crate) fn get() -> (*const Inner, *mut TagInner) {
    CURRENT.with(|current| (current.arena.get(), current.tag.get()))
}

/// Sets the current arena; returns the one before.
pub(crate) fn swap_arena(arena: *const Inner) -> *const Inner {
    CURRENT.with(|current| current.arena.replace(arena))
}

/// Counts `bytes` more, or less, for `tag`, if that is what a scope counts late here: whether it did.
#[inline]
pub(crate) fn count_late(tag: *const TagInner, bytes: isize) -> bool {
    CURRENT.with(|current| {
        let late = current.defers.get() && ptr::eq(current.tag.get(), tag);
        if late {
            let pending = current.pending.get() + bytes;
            current.pending.set(pending);
            current.most.set(current.most.get().max(pending));
            if pending.unsigned_abs() >= LATE.unsigned_abs() {
                current.settle();
            }
        }
        late
    })
}

/// Tells the record of the current tag what has been counted here.
#[inline]
pub(crate) fn settle() {
    CURRENT.with(Current::settle);
}

impl Current {
    #[inline]
    fn settle(&self) {
        if self.most.get() > 0 || self.pending.get() != 0 {
            // SAFETY: something was counted late, so the tag is lent by a scope that has not ended, and its record there.
            unsafe { &*self.tag.get() }.settle(self.pending.take(), self.most.take());
        }
    }
}

/// Makes a tag current for one guard more; returns the one before.
pub(crate) fn enter_tag(tag: Tag) -> Option<Tag> {
    CURRENT.with(|current| current.tags_entered.set(current.tags_entered.get() + 1));
    swap_tag(Some(tag))
}

/// Makes what was current `before` a guard current again. Not so for the last guard, which leaves nothing: if guards went
/// out of order, what was before it has been left since, and its handle would stay here when the thread ends.
pub(crate) fn leave_tag(before: Option<Tag>) {
    let left = CURRENT.with(|current| {
        let left = current.tags_entered.get() - 1;
        current.tags_entered.set(left);
        left
    });
    drop(swap_tag(before.filter(|_| left > 0)));
}

/// Sets the current tag; returns a handle of the one before.
fn swap_tag(tag: Option<Tag>) -> Option<Tag> {
    settle();
    let raw = tag.map_or(ptr::null_mut(), |tag| tag.into_raw().as_ptr());
    let (before, lent) = CURRENT.with(|current| {
        current.defers.set(false);
        (current.tag.replace(raw), current.lent.replace(false))
    });
    // SAFETY: what is in the cell was leaked by `into_raw` here, and has just been taken out of it; or it is lent, by a
    // scope that has not ended, whose tag stays: then the handle is not ours, and is leaked again.
    let before = ptr::NonNull::new(before).map(|before| unsafe { Tag::from_raw(before) })?;
    if lent {
        let handle = before.clone();
        before.into_raw();
        return Some(handle);
    }
    Some(before)
}

/// Calls `f` with `tag` current, without a handle of its own: nothing is written that another thread might be reading.
pub(crate) fn lend_tag<O>(tag: &Tag, f: impl FnOnce() -> O) -> O {
    /// Makes current again what was so before the scope, also if it panics.
    struct Restore {
        tag: *mut TagInner,
        lent: bool,
        defers: bool,
    }
    impl Drop for Restore {
        fn drop(&mut self) {
            let (here, before) = CURRENT.with(|current| {
                current.settle();
                let left = current.tags_entered.get() - 1;
                current.tags_entered.set(left);
                // As in `leave_tag`: what was before has been left meanwhile, if nothing else is entered.
                let (tag, lent) = if left > 0 { (self.tag, self.lent) } else { (ptr::null_mut(), false) };
                current.defers.set(left > 0 && self.defers);
                let here = (current.tag.replace(tag), current.lent.replace(lent));
                (here, (if left > 0 { ptr::null_mut() } else { self.tag }, self.lent))
            });
            for (tag, lent) in [here, before] {
                // SAFETY: what is not lent was leaked in `swap_tag`, and is in no cell any more.
                drop(ptr::NonNull::new(tag).filter(|_| !lent).map(|tag| unsafe { Tag::from_raw(tag) }));
            }
        }
    }
    let _restore = CURRENT.with(|current| {
        current.settle();
        current.tags_entered.set(current.tags_entered.get() + 1);
        Restore {
            tag: current.tag.replace(tag.as_raw().as_ptr()),
            lent: current.lent.replace(true),
            defers: current.defers.replace(!tag.is_capped()),
        }
    });
    f()
}

/// A handle of the current tag.
pub(crate) fn tag() -> Option<Tag> {
    let current = swap_tag(None);
    let handle = current.clone();
    drop(swap_tag(current));
    handle
}

/// This thread's number as far as it has one: enough to compare with an owner.
#[inline]
pub(crate) fn thread() -> u64 {
    CURRENT.with(|current| current.thread.get())
}

/// This thread's number. Numbers are never used again, unlike addresses of thread-local values.
pub(crate) fn named_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(NOBODY + 1);
    CURRENT.with(|current| {
        if current.thread.get() == UNNAMED {
            current.thread.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        current.thread.get()
    })
}
