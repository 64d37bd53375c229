//! One published value behind one atomic word: readers and writers never wait for each other.
//!
//! ```text
//!   word = [ readers: 16 bits | node: 48 bits ] ──▶ node { value: Arc<T>, balance }
//!
//!   load    1. add one reader to the word: it says which node, and the node now stays
//!           2. clone the node's Arc
//!           3. take the reader back out of the word; if another node is there by now, out of the node's balance
//!   store   1. swap in a new node with no readers; the word says n readers have not taken themselves out of the old
//!           2. add n to the old node's balance
//!   whoever brings the balance to zero after step 2 of the store (writer or last reader) frees the node
//! ```
//!
//! Proof sketch. Before the store, balance is 0 minus readers that left late and early: it is never positive, so no
//! reader sees itself take it from 1 to 0. After step 2 it is the number of readers that are still to leave. The one
//! modification that makes it 0 from then on is unique: the writer's, if all had left, else the last reader's. A node
//! is published once and not freed while a reader counts on it; so a reader that finds its node in the word finds its
//! own publication (no ABA), and at least itself among the readers.
//!
//! Orderings: step 1 of `load` acquires what step 1 of `store` released. Taking oneself out is a Release, from the word
//! or from the balance; the swap and the last change of the balance acquire it, so the free comes after each look.
//!
//! Cost: a load is three atomic read-modify-writes, two of them on the word; a store allocates one node. Next stop: a
//! published shard in `client`.

use super::shim::{Arc, AtomicI64, AtomicU64, Ordering, UnsafeCell, model_failed, ordering, spin_loop};
use std::fmt;
use std::marker::PhantomData;

/// Bits of an address in the word: what x86-64 and AArch64 give to a process.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;
/// One reader, in the upper 16 bits.
const READER: u64 = 1 << ADDRESS_BITS;
/// Readers at once from which on a load waits: half of what the bits can count, since as many threads may pass this
/// check together.
const READERS_MAX: u64 = 1 << 15;

struct Node<T> {
    value: UnsafeCell<Arc<T>>,
    /// Readers counted by the store that replaced this node, less those that left after it was replaced.
    balance: AtomicI64,
}

/// One `Arc<T>` that any thread reads and any thread replaces.
pub struct ArcCell<T> {
    word: AtomicU64,
    owns: PhantomData<Arc<T>>,
}

// SAFETY: the cell gives away and drops clones of an `Arc<T>` on any thread, as a shared `Arc<T>` does.
unsafe impl<T: Send + Sync> Send for ArcCell<T> {}
// SAFETY: as above; all else goes through the atomics.
unsafe impl<T: Send + Sync> Sync for ArcCell<T> {}

impl<T> Node<T> {
    /// A new node as a word without readers.
    fn publish(value: Arc<T>) -> u64 {
        let node = Box::new(Node { value: UnsafeCell::new(value), balance: AtomicI64::new(0) });
        let address = Box::into_raw(node).expose_provenance() as u64;
        assert_eq!(address & !ADDRESS, 0, "an address of more than {ADDRESS_BITS} bits: {address:#x}");
        address
    }

    fn of(word: u64) -> *mut Node<T> {
        std::ptr::with_exposed_provenance_mut((word & ADDRESS) as usize)
    }

    /// # Safety
    /// The caller is the one that brought the balance to zero, or the owner of the cell.
    unsafe fn free(node: *mut Node<T>) {
        // SAFETY: made by `Box::into_raw` in `publish`; the caller is the last to look at it.
        let node = unsafe { Box::from_raw(node) };
        // Under loom this is where a look that is not ordered before the free is found out.
        node.value.with_mut(|_| ());
    }
}

impl<T> ArcCell<T> {
    /// A cell with its first value.
    pub fn new(value: Arc<T>) -> Self {
        ArcCell { word: AtomicU64::new(Node::publish(value)), owns: PhantomData }
    }

    /// The value now. Lock-free.
    pub fn load(&self) -> Arc<T> {
        while self.word.load(Ordering::Relaxed) / READER >= READERS_MAX {
            spin_loop();
        }
        let word = self.word.fetch_add(READER, ordering("cell.load", Ordering::Acquire));
        let node = Node::<T>::of(word);
        // SAFETY: this thread is counted as a reader of the node, which is freed only after it has left.
        let value = unsafe { (*node).value.with(|value| (*value).clone()) };
        self.leave(word & ADDRESS);
        value
    }

    /// Replaces the value. Lock-free. The cell's own reference to the value before is dropped here, or by a `load` that
    /// was under way, on its thread.
    pub fn store(&self, value: Arc<T>) {
        let old = self.word.swap(Node::publish(value), ordering("cell.store", Ordering::AcqRel));
        let readers = (old / READER) as i64;
        let node = Node::<T>::of(old);
        // SAFETY: it is freed only once the balance is zero after this addition.
        let before = unsafe { (*node).balance.fetch_add(readers, Ordering::AcqRel) };
        if before + readers == 0 {
            // SAFETY: all readers that the word counted have left; no other can come, since it is in no word.
            unsafe { Node::free(node) };
        }
    }

    /// Ends a reader's count on the node at `address`.
    fn leave(&self, address: u64) {
        let mut word = self.word.load(Ordering::Relaxed);
        while word & ADDRESS == address {
            debug_assert!(word >= READER, "this reader is counted");
            let order = ordering("cell.leave", Ordering::Release);
            match self.word.compare_exchange_weak(word, word - READER, order, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
        let node = Node::<T>::of(address);
        // SAFETY: this reader has not left, so the balance has not been zero after the store.
        let before = unsafe { (*node).balance.fetch_sub(1, ordering("cell.balance", Ordering::AcqRel)) };
        if before == 1 {
            // SAFETY: positive only after the store has added its readers; this was the last of them.
            unsafe { Node::free(node) };
        }
    }
}

impl<T> Drop for ArcCell<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        // SAFETY: nobody else has the cell: no reader counts on the node.
        unsafe { Node::<T>::free(Node::of(self.word.load(Ordering::Relaxed))) };
    }
}

impl<T: fmt::Debug> fmt::Debug for ArcCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArcCell").field(&*self.load()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn readers_see_values_in_order_and_whole() {
        let marker = std::sync::Arc::new(());
        let cell = ArcCell::new(Arc::new((0u64, 0u64, marker.clone())));
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut last = 0;
                    while last < 5_000 {
                        let value = cell.load();
                        assert!(value.0 >= last && value.1 == value.0 * 3);
                        last = value.0;
                    }
                });
            }
            (1..=5_000).for_each(|n| cell.store(Arc::new((n, n * 3, marker.clone()))));
        });
        assert_eq!(std::sync::Arc::strong_count(&marker), 2);
        let kept = cell.load();
        drop(cell);
        assert_eq!(kept.0, 5_000);
        drop(kept);
        assert_eq!(std::sync::Arc::strong_count(&marker), 1);
    }

    #[test]
    fn the_same_value_twice() {
        let value = Arc::new(1);
        let cell = ArcCell::new(value.clone());
        cell.store(value.clone());
        cell.store(cell.load());
        assert_eq!(Arc::strong_count(&value), 2);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::shim::{bound, with_mutant};
    use super::*;
    use loom::thread;

    /// One thread stores 1.., the others load and see them in order. Values are loom's Arcs: a leak is seen.
    fn published(stores: usize, readers: usize, preemptions: Option<usize>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || {
            let cell = Arc::new(ArcCell::new(Arc::new(0)));
            let threads: Vec<_> = (0..readers)
                .map(|_| {
                    let cell = cell.clone();
                    thread::spawn(move || {
                        let first = *cell.load();
                        assert!(*cell.load() >= first);
                    })
                })
                .collect();
            (1..=stores).for_each(|n| cell.store(Arc::new(n)));
            threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
            assert_eq!(*cell.load(), stores);
        });
    }

    #[test]
    fn one_reader() {
        published(2, 1, None);
    }

    #[test]
    fn two_readers() {
        published(1, 2, bound(3, Some(4)));
    }

    #[test]
    fn two_writers() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound(3, None);
        builder.check(|| {
            let cell = Arc::new(ArcCell::new(Arc::new(0)));
            let theirs = cell.clone();
            let thread = thread::spawn(move || theirs.store(Arc::new(1)));
            cell.store(Arc::new(2));
            assert!(*cell.load() > 0);
            thread.join().expect("the thread ends well");
        });
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_load() {
        with_mutant("cell.load", || published(1, 1, None));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_store() {
        with_mutant("cell.store", || published(1, 1, None));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_leave() {
        with_mutant("cell.leave", || published(1, 1, None));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_balance() {
        with_mutant("cell.balance", || published(1, 1, None));
    }
}
