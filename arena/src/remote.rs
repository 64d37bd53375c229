//! The remote-free list: blocks that other threads dropped, for the owner to collect.
//!
//! A Treiber stack whose links lie in the blocks themselves; only ever emptied whole, so there is no ABA.
//!
//! ```text
//! any thread   push(block):  block.next = head;  CAS head → block        (Release: hands the block over)
//! the owner    take():       swap head → null                            (Acquire: receives all of them)
//! ```
//!
//! **The end of an arena.** When its last handle goes, blocks may still be out, and nobody will collect any more.
//! The one who closes counts them: `close` takes what is on the list, writes the number still out into `left`, and
//! replaces the null head by the mark CLOSED. If a block came in between, that fails and it takes again. Every
//! block still out then meets CLOSED, for all pushes before it were counted; its dropper subtracts one from `left`,
//! and who brings it to 0 is the last that knows the arena, and frees it.
//!
//! Invariants: once CLOSED, head never changes. A pusher's CAS on the list (or its subtraction) is the last time
//! that it touches the arena. Cost: one CAS a push, one swap for any number of blocks.
//!
//! The same source runs under loom in this package's tests, with a mutant for each ordering in `Orders`.

use sync::{AtomicPtr, AtomicUsize, Ordering, UnsafeCell};

/// The atomics, from std or from loom. Only this package's own tests use loom's: a model of the engine that links
/// this package gets std's.
#[cfg(not(all(loom, test)))]
mod sync {
    pub(super) use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

    /// `std::cell::UnsafeCell` with loom's interface.
    #[derive(Debug)]
    pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

    impl<T> UnsafeCell<T> {
        #[inline]
        pub(super) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
            f(self.0.get())
        }
        #[inline]
        pub(super) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
            f(self.0.get())
        }
    }
}
#[cfg(all(loom, test))]
mod sync {
    pub(super) use loom::cell::UnsafeCell;
    pub(super) use loom::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
}

/// What a block on the list begins with.
#[derive(Debug)]
pub(crate) struct Link {
    next: UnsafeCell<*mut Link>,
}

/// The head that a closed list has for ever. No block has this address: blocks are aligned to 64.
const CLOSED: *mut Link = std::ptr::without_provenance_mut(1);

/// What became of a pushed block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// The owner will collect it.
    Queued,
    /// The arena was closed; the block is dead. The caller now has to call [`RemoteList::settle`].
    Closed,
}

/// The orderings of the list; parameters, so that a model can weaken each and must then fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Orders {
    /// Of a push: hands the block over.
    pub(crate) push: Ordering,
    /// Of taking: receives all blocks on the list. A chain of pushes is one release sequence.
    pub(crate) take: Ordering,
    /// Of closing: publishes `left` and what the closer did.
    pub(crate) close: Ordering,
    /// Of a push that finds the list closed: receives `left`.
    pub(crate) closed: Ordering,
    /// Of settling: what this thread did happens before the last one frees the arena.
    pub(crate) settle: Ordering,
}

const ORDERS: Orders = Orders {
    push: Ordering::Release,
    take: Ordering::Acquire,
    close: Ordering::Release,
    closed: Ordering::Acquire,
    settle: Ordering::AcqRel,
};

/// The list, one per arena.
#[derive(Debug)]
pub(crate) struct RemoteList {
    /// The block pushed last, null, or CLOSED.
    head: AtomicPtr<Link>,
    /// Once CLOSED: blocks that are still out, never 0 before the last is settled.
    left: AtomicUsize,
}

impl RemoteList {
    /// An empty, open list.
    pub(crate) fn new() -> RemoteList {
        RemoteList { head: AtomicPtr::new(std::ptr::null_mut()), left: AtomicUsize::new(0) }
    }

    /// Whether there was nothing to take a moment ago.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.load(Ordering::Relaxed).is_null()
    }

    /// Hands a block to the owner.
    ///
    /// # Safety
    /// `block` points to memory for a `Link`, aligned, which the caller owns and gives up. It belongs to the arena
    /// of this list and is counted as out.
    pub(crate) unsafe fn push(&self, block: *mut Link) -> Pushed {
        // SAFETY: the same contract.
        unsafe { self.push_with(block, ORDERS) }
    }

    /// # Safety
    /// As `push`.
    #[inline]
    pub(crate) unsafe fn push_with(&self, block: *mut Link, orders: Orders) -> Pushed {
        let mut head = self.head.load(Ordering::Relaxed);
        loop {
            if head == CLOSED {
                // Pairs with the CAS in `close`: without it the subtraction in `settle` could be ordered before the
                // store of `left`, and be lost. It is CLOSED for ever; a load, since sanitizers do not know fences.
                self.head.load(orders.closed);
                return Pushed::Closed;
            }
            // SAFETY: the block is the caller's until the CAS below succeeds.
            unsafe { (*block).next.with_mut(|next| *next = head) };
            match self.head.compare_exchange_weak(head, block, orders.push, Ordering::Relaxed) {
                Ok(_) => return Pushed::Queued,
                Err(now) => head = now,
            }
        }
    }

    /// After `Closed`: counts the block as settled. True for the last one, whose caller must free the arena; for
    /// the others the arena may be gone when this returns.
    pub(crate) fn settle(&self) -> bool {
        self.settle_with(ORDERS)
    }

    #[inline]
    pub(crate) fn settle_with(&self, orders: Orders) -> bool {
        // All that the others did with the arena happens before it is freed.
        self.left.fetch_sub(1, orders.settle) == 1
    }

    /// Takes all blocks and gives each to `each`, the newest first. Owner only.
    #[inline]
    pub(crate) fn take(&self, each: impl FnMut(*mut Link)) {
        if !self.is_empty() {
            self.take_with(ORDERS, each);
        }
    }

    /// `take` without the look beforehand. The models start here: loom remembers only the last access to an atomic,
    /// and would not try a push between that look and the swap.
    pub(crate) fn take_with(&self, orders: Orders, mut each: impl FnMut(*mut Link)) {
        let mut block = self.head.swap(std::ptr::null_mut(), orders.take);
        debug_assert!(block != CLOSED, "only the owner takes, and the owner closes last");
        while !block.is_null() {
            // SAFETY: what is on the list was given up by its pusher; the Acquire swap shows us its link. Each
            // link is followed before the block is passed on.
            let next = unsafe { (*block).next.with(|next| *next) };
            each(block);
            block = next;
        }
    }

    /// Closes the list: takes what is on it, and leaves the rest of the `out` blocks to their droppers. True if none
    /// is left, and the caller must free the arena. Called once, by the owner, who takes no more.
    pub(crate) fn close(&self, out: usize, each: impl FnMut(*mut Link)) -> bool {
        self.close_with(ORDERS, out, each)
    }

    pub(crate) fn close_with(&self, orders: Orders, mut out: usize, mut each: impl FnMut(*mut Link)) -> bool {
        loop {
            self.take_with(orders, |block| {
                out -= 1;
                each(block);
            });
            if out == 0 {
                return true;
            }
            self.left.store(out, Ordering::Relaxed);
            let closed = self.head.compare_exchange(std::ptr::null_mut(), CLOSED, orders.close, Ordering::Relaxed);
            if closed.is_ok() {
                return false;
            }
        }
    }
}

#[cfg(all(loom, test))]
impl Link {
    pub(crate) fn new() -> Link {
        Link { next: UnsafeCell::new(std::ptr::null_mut()) }
    }
}

#[cfg(all(loom, test))]
impl RemoteList {
    /// A mutant of `push` that doesn't see what came between its load and its store.
    ///
    /// # Safety
    /// As `push`.
    pub(crate) unsafe fn push_by_store(&self, block: *mut Link) {
        let head = self.head.load(Ordering::Relaxed);
        // SAFETY: the block is the caller's until the store.
        unsafe { (*block).next.with_mut(|next| *next = head) };
        self.head.store(block, Ordering::Release);
    }
}
