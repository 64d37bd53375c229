//! One sender, one receiver: an unbounded queue in segments, without a lock.
//!
//! ```text
//!  receiver                                        sender
//!  head, read                                      tail, written
//!     │                                               │
//!     ▼          next              next               ▼
//!  [· · 2 3 4] ───────▶ [5 6 7 8 9] ───────▶ [10 11 _ _ _]        spare: [ ]
//!   filled = 5           filled = 5           filled = 2
//! ```
//!
//! Invariants. Slots below `filled` are written; those that the receiver has read are moved out. The sender alone
//! writes `filled` and `next`; it links a segment only once something is in it, and never touches the one before
//! again. The receiver alone leaves a segment; it puts it in the one-place store `spare`, where the sender finds it
//! again. So a queue in steady use allocates nothing.
//!
//! Cost: a send is one plain store and one `Release` store; a receive is one load, and an `Acquire` load only when
//! what it last saw has been used up. Next stop: `log`, the same list for many readers.

use super::shim::{Arc, AtomicBool, AtomicPtr, AtomicUsize, Ordering, Padded, UnsafeCell, model_failed, ordering};
use std::mem::MaybeUninit;
use std::ptr::null_mut;

/// Slots in a segment. A message of the fabric is about 64 bytes, so that a segment is half a page.
const SLOTS: usize = if cfg!(loom) { 2 } else { 32 };

struct Segment<T> {
    /// Slots written so far, 0..=SLOTS; grows only, while the segment is in the list.
    filled: AtomicUsize,
    /// The next segment; null until the sender has put something in it.
    next: AtomicPtr<Segment<T>>,
    slots: [UnsafeCell<MaybeUninit<T>>; SLOTS],
}

impl<T> Segment<T> {
    fn allocate() -> *mut Self {
        Box::into_raw(Box::new(Segment {
            filled: AtomicUsize::new(0),
            next: AtomicPtr::new(null_mut()),
            slots: std::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())),
        }))
    }
}

/// Where the receiver stands.
struct Position<T> {
    segment: *mut Segment<T>,
    read: usize,
}

struct Shared<T> {
    /// A segment for the sender to use again, or null.
    spare: Padded<AtomicPtr<Segment<T>>>,
    sender_gone: AtomicBool,
    receiver_gone: AtomicBool,
    /// Where the receiver was when it was dropped; nobody looks before both ends are gone.
    last: UnsafeCell<Position<T>>,
}

// SAFETY: the pointers are owned by the list, values move through it from thread to thread (`T: Send`), and `last` is
// written by the receiver's drop and read by the drop of `Shared`, which come one after the other.
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above; through `&Shared` the ends reach the atomics and, once, `last`.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The end that sends.
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
    tail: *mut Segment<T>,
    /// Slots written in `tail`: equal to its `filled`.
    written: usize,
}

/// The end that receives.
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    head: *mut Segment<T>,
    /// Slots read in `head`, 0..=available.
    read: usize,
    /// `head.filled` when last seen.
    available: usize,
}

// SAFETY: an end is used through `&mut`, by one thread at a time; `tail` is written by the sender only.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above; `head` is left by the receiver only.
unsafe impl<T: Send> Send for Receiver<T> {}

/// A new queue.
pub fn channel<T: Send>() -> (Sender<T>, Receiver<T>) {
    let first = Segment::allocate();
    let shared = Arc::new(Shared {
        spare: Padded(AtomicPtr::new(null_mut())),
        sender_gone: AtomicBool::new(false),
        receiver_gone: AtomicBool::new(false),
        last: UnsafeCell::new(Position { segment: first, read: 0 }),
    });
    let sender = Sender { shared: shared.clone(), tail: first, written: 0 };
    (sender, Receiver { shared, head: first, read: 0, available: 0 })
}

impl<T: Send> Sender<T> {
    /// Appends a value; drops it if the receiver is gone.
    #[inline]
    pub fn send(&mut self, value: T) {
        if self.shared.receiver_gone.load(Ordering::Relaxed) {
            return;
        }
        if self.written == SLOTS {
            return self.extend(value);
        }
        // SAFETY: `tail` is in the list, since the receiver leaves a segment only when it has a `next`. Slot
        // `written` is not below `filled`, so the receiver does not look at it.
        let segment = unsafe { &*self.tail };
        segment.slots[self.written].with_mut(|slot| {
            // SAFETY: as above; the slot holds nothing, so nothing is overwritten.
            unsafe { (*slot).write(value) };
        });
        self.written += 1;
        segment.filled.store(self.written, ordering("spsc.filled", Ordering::Release));
    }

    /// Whether the receiver is gone.
    pub fn is_closed(&self) -> bool {
        self.shared.receiver_gone.load(Ordering::Relaxed)
    }

    /// Sends the first value of a new segment.
    #[cold]
    fn extend(&mut self, value: T) {
        let spare = self.shared.spare.0.swap(null_mut(), ordering("spsc.reuse", Ordering::Acquire));
        let fresh = if spare.is_null() { Segment::allocate() } else { spare };
        // SAFETY: fresh from the allocator, or taken out of `spare`, where the receiver put it after its last look.
        let segment = unsafe { &*fresh };
        segment.next.store(null_mut(), Ordering::Relaxed);
        segment.slots[0].with_mut(|slot| {
            // SAFETY: nobody else has the segment, and each of its slots is empty.
            unsafe { (*slot).write(value) };
        });
        segment.filled.store(1, Ordering::Relaxed);
        // SAFETY: `tail` is in the list until it has a `next`; from this store on the sender leaves it alone.
        unsafe { (*self.tail).next.store(fresh, ordering("spsc.next", Ordering::Release)) };
        self.tail = fresh;
        self.written = 1;
    }
}

impl<T: Send> Receiver<T> {
    /// The oldest value, if there is one.
    #[inline]
    pub fn receive(&mut self) -> Option<T> {
        if self.read == self.available && !self.refresh() {
            return None;
        }
        // SAFETY: `head` is in the list, and slot `read` is below the `filled` that was loaded with Acquire.
        let segment = unsafe { &*self.head };
        let value = segment.slots[self.read].with_mut(|slot| {
            // SAFETY: as above; `read` grows, so each value is moved out once.
            unsafe { (*slot).assume_init_read() }
        });
        self.read += 1;
        Some(value)
    }

    /// Whether nothing is there to receive now.
    #[inline]
    pub fn is_empty(&self) -> bool {
        if self.read < self.available {
            return false;
        }
        // SAFETY: `head` is in the list.
        let segment = unsafe { &*self.head };
        if self.read < SLOTS {
            segment.filled.load(Ordering::Acquire) == self.read
        } else {
            segment.next.load(Ordering::Acquire).is_null()
        }
    }

    /// Whether the sender is gone. What it has sent may still be there: the end is `is_closed`, then a `receive` that
    /// finds nothing, in this order.
    pub fn is_closed(&self) -> bool {
        self.shared.sender_gone.load(Ordering::Acquire)
    }

    /// Looks again how far the sender is; goes on to the next segment. Returns whether there is something to read.
    #[inline(never)]
    fn refresh(&mut self) -> bool {
        if self.read == SLOTS {
            // SAFETY: `head` is in the list.
            let next = unsafe { (*self.head).next.load(Ordering::Acquire) };
            if next.is_null() {
                return false;
            }
            let spare = self.shared.spare.0.swap(self.head, ordering("spsc.spare", Ordering::AcqRel));
            free(spare);
            (self.head, self.read) = (next, 0);
        }
        // SAFETY: `head` is in the list.
        self.available = unsafe { (*self.head).filled.load(Ordering::Acquire) };
        self.available > self.read
    }
}

/// Frees a segment without values, or nothing if it is null.
fn free<T>(segment: *mut Segment<T>) {
    if !segment.is_null() {
        // SAFETY: the segment came out of `Box::into_raw`, and out of the list or the store by its only owner.
        drop(unsafe { Box::from_raw(segment) });
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        self.shared.sender_gone.store(true, Ordering::Release);
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        self.shared.receiver_gone.store(true, Ordering::Relaxed);
        let position = Position { segment: self.head, read: self.read };
        self.shared.last.with_mut(|last| {
            // SAFETY: only here and in the drop of `Shared`, which the count of the `Arc` orders after this.
            unsafe { *last = position };
        });
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        let (mut segment, mut read) = self.last.with(|last| {
            // SAFETY: both ends are gone.
            unsafe { ((*last).segment, (*last).read) }
        });
        while !segment.is_null() {
            // SAFETY: the segment is in the list, and both ends are gone.
            let current = unsafe { &*segment };
            for slot in &current.slots[read..current.filled.load(Ordering::Relaxed)] {
                slot.with_mut(|slot| {
                    // SAFETY: below `filled`, and at or past `read`: written and not moved out.
                    unsafe { (*slot).assume_init_drop() }
                });
            }
            let next = current.next.load(Ordering::Relaxed);
            free(segment);
            (segment, read) = (next, 0);
        }
        free(self.spare.0.load(Ordering::Relaxed));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn order_and_end() {
        let (mut sender, mut receiver) = channel();
        assert!(receiver.is_empty());
        let thread = std::thread::spawn(move || (0..20_000u64).for_each(|n| sender.send(Box::new(n))));
        let mut expected = 0;
        loop {
            let closed = receiver.is_closed();
            match receiver.receive() {
                Some(value) => {
                    assert_eq!(*value, expected);
                    expected += 1;
                }
                None if closed => break,
                None => std::thread::yield_now(),
            }
        }
        assert_eq!(expected, 20_000);
        assert!(receiver.is_empty() && receiver.is_closed());
        thread.join().expect("the thread ends well");
    }

    #[test]
    fn what_is_left_is_dropped() {
        for (sent, received) in [(0, 0), (1, 0), (SLOTS, SLOTS), (SLOTS + 1, SLOTS), (100, 70), (5 * SLOTS, SLOTS - 1)]
        {
            let counted = std::sync::Arc::new(());
            let (mut sender, mut receiver) = channel();
            (0..sent).for_each(|_| sender.send(counted.clone()));
            (0..received).for_each(|_| drop(receiver.receive().expect("it was sent")));
            assert_eq!(std::sync::Arc::strong_count(&counted), 1 + sent - received);
            if sent % 2 == 0 {
                drop(sender);
                drop(receiver);
            } else {
                drop(receiver);
                sender.send(counted.clone());
                assert!(sender.is_closed());
                drop(sender);
            }
            assert_eq!(std::sync::Arc::strong_count(&counted), 1);
        }
    }

    #[test]
    fn segments_come_back() {
        let (mut sender, mut receiver) = channel();
        let mut seen = std::collections::BTreeSet::new();
        for n in 0..10 * SLOTS {
            sender.send(n);
            seen.insert(sender.tail as usize);
            assert_eq!(receiver.receive(), Some(n));
        }
        assert!(seen.len() <= 3, "{} segments for a queue of one", seen.len());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::shim::with_mutant;
    use super::*;
    use loom::thread;

    /// `count` values, each an Arc, so that loom sees a value lost or dropped twice.
    fn pass(count: usize, taken: usize) {
        loom::model(move || {
            let (mut sender, mut receiver) = channel();
            let thread = thread::spawn(move || (0..count).for_each(|n| sender.send(Arc::new(n))));
            let mut expected = 0;
            while expected < taken {
                match receiver.receive() {
                    Some(value) => {
                        assert_eq!(*value, expected);
                        expected += 1;
                    }
                    None => thread::yield_now(),
                }
            }
            drop(receiver);
            thread.join().expect("the thread ends well");
        });
    }

    /// The receiver looks only when there may be something; the end is seen.
    fn close() {
        loom::model(|| {
            let (mut sender, mut receiver) = channel();
            let thread = thread::spawn(move || sender.send(Arc::new(1)));
            let closed = receiver.is_closed();
            let got = receiver.receive().is_some();
            assert!(got || !closed);
            thread.join().expect("the thread ends well");
            assert!(receiver.is_closed() && receiver.is_empty() == got);
        });
    }

    #[test]
    fn all_pass() {
        pass(3, 3);
    }

    #[test]
    fn some_stay() {
        pass(3, 1);
    }

    /// Through three segments, so that one comes back.
    #[test]
    fn reuse() {
        pass(5, 5);
    }

    #[test]
    fn end() {
        close();
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_filled() {
        with_mutant("spsc.filled", || pass(2, 2));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_next() {
        with_mutant("spsc.next", || pass(3, 3));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_spare() {
        with_mutant("spsc.spare", || pass(5, 5));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_reuse() {
        with_mutant("spsc.reuse", || pass(5, 5));
    }
}
