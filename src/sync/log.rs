//! One writer, many readers: a log in segments, each entry read in place by every reader, then freed.
//!
//! ```text
//!          reader 1            reader 0                  writer
//!             │                   │                        │
//!             ▼        next       ▼         next           ▼
//!  [× × 1 1 1] ──────▶ [1 2 2 2 2] ──────▶ [2 2 2 _ _]        the digits: readers still to pass the entry
//!   holders 1           holders 2           holders 3         readers still to leave the segment, and the writer
//! ```
//!
//! Invariants. Slots below `filled` have been written, and hold their entry until their count is zero; whoever takes
//! it to zero drops the entry. Each reader, and the writer, leaves each segment once; the last frees it, or keeps it
//! in the one-place store `spare` for the writer. Nobody looks at a segment that it has left. A reader leaves one only
//! when it has a `next`, or for good.
//!
//! A reader that is dropped passes all that is there and leaves its position to the writer, who knows exactly which
//! entries counted that reader and passes them in its stead, at its next append or when it goes. Only then is there
//! a lock.
//!
//! Cost: an append is two stores; a read one load (fewer with a backlog) and one atomic decrement. Next stop: `parker`.

use super::mutex::Mutex;
use super::shim::{Arc, AtomicBool, AtomicPtr, AtomicUsize, Ordering, Padded, UnsafeCell, model_failed, ordering};
use std::mem::{MaybeUninit, take};
use std::ptr::null_mut;

/// Slots in a segment. One of the fabric's entries takes two lines, so that a segment is two pages.
const SLOTS: usize = if cfg!(loom) { 2 } else { 64 };

/// On lines of its own: a reader that passes an entry writes there, while the next is being written.
#[repr(align(64))]
struct Slot<T> {
    /// Readers that have not passed this entry.
    readers: AtomicUsize,
    value: UnsafeCell<MaybeUninit<T>>,
}

struct Segment<T> {
    /// Slots written so far, 0..=SLOTS.
    filled: AtomicUsize,
    /// The next segment; null until the writer has put something in it.
    next: AtomicPtr<Segment<T>>,
    /// Readers that have not left, and the writer until it has.
    holders: AtomicUsize,
    slots: [Slot<T>; SLOTS],
}

/// Where a reader stands: in a segment that it holds.
struct Position<T> {
    segment: *mut Segment<T>,
    read: usize,
}

/// What readers leave behind.
struct Gone<T> {
    writer: bool,
    readers: Vec<Position<T>>,
}

struct Shared<T> {
    /// A segment for the writer to use again, or null.
    spare: Padded<AtomicPtr<Segment<T>>>,
    /// Whether `gone.readers` has something.
    left: AtomicBool,
    gone: Mutex<Gone<T>>,
}

/// The end that appends.
pub struct Writer<T> {
    shared: Arc<Shared<T>>,
    tail: *mut Segment<T>,
    /// Slots written in `tail`.
    written: usize,
    /// Readers that the next entry counts.
    readers: usize,
}

/// An end that reads.
pub struct Reader<T> {
    shared: Arc<Shared<T>>,
    position: Position<T>,
    /// `filled` of its segment when last seen.
    available: usize,
}

// SAFETY: a position is used by one thread at a time; it leads to values that any thread may read (`T: Sync`) and
// drop (`T: Send`).
unsafe impl<T: Send + Sync> Send for Position<T> {}
// SAFETY: an end is used through `&mut`, by one thread at a time; else as above.
unsafe impl<T: Send + Sync> Send for Writer<T> {}
// SAFETY: its pointer is that of its position.
unsafe impl<T: Send + Sync> Send for Reader<T> {}

/// A new log with `readers` readers.
pub fn broadcast<T: Send + Sync>(readers: usize) -> (Writer<T>, Vec<Reader<T>>) {
    let first = Segment::allocate(readers + 1);
    let shared = Arc::new(Shared {
        spare: Padded(AtomicPtr::new(null_mut())),
        left: AtomicBool::new(false),
        gone: Mutex::new(Gone { writer: false, readers: Vec::new() }),
    });
    let reader = |_| Reader { shared: shared.clone(), position: Position { segment: first, read: 0 }, available: 0 };
    let all = (0..readers).map(reader).collect();
    (Writer { shared, tail: first, written: 0, readers }, all)
}

impl<T> Segment<T> {
    fn allocate(holders: usize) -> *mut Self {
        Box::into_raw(Box::new(Segment {
            filled: AtomicUsize::new(0),
            next: AtomicPtr::new(null_mut()),
            holders: AtomicUsize::new(holders),
            slots: std::array::from_fn(|_| Slot {
                readers: AtomicUsize::new(0),
                value: UnsafeCell::new(MaybeUninit::uninit()),
            }),
        }))
    }

    /// Writes an empty slot that nobody else looks at yet.
    fn write(&self, index: usize, value: T, readers: usize) {
        self.slots[index].readers.store(readers, Ordering::Relaxed);
        self.slots[index].value.with_mut(|slot| {
            // SAFETY: the slot is at or past `filled`, so only the writer looks at it, and it holds nothing.
            unsafe { (*slot).write(value) };
        });
    }

    /// Passes an entry in the name of one reader; drops the entry if that was the last.
    fn pass(&self, index: usize) {
        let slot = &self.slots[index];
        // Release: this reader's look comes before the drop; Acquire: the drop comes after all looks.
        if slot.readers.fetch_sub(1, ordering("log.pass", Ordering::AcqRel)) == 1 {
            slot.value.with_mut(|value| {
                // SAFETY: written, since it counted readers; all have passed it, and this thread was the last.
                unsafe { (*value).assume_init_drop() }
            });
        }
    }
}

impl<T> Shared<T> {
    /// Leaves a segment in the name of one holder, which does not look at it again; the last keeps or frees it.
    fn leave(&self, segment: *mut Segment<T>) {
        // SAFETY: the caller has not left yet, so the segment is there.
        let last = unsafe { (*segment).holders.fetch_sub(1, ordering("log.leave", Ordering::AcqRel)) == 1 };
        if last {
            free(self.spare.0.swap(segment, Ordering::AcqRel));
        }
    }

    /// Passes one entry unread. Returns whether there was one.
    fn skip(&self, position: &mut Position<T>) -> bool {
        // SAFETY: whoever has the position holds its segment.
        let mut segment = unsafe { &*position.segment };
        if position.read == SLOTS {
            let next = segment.next.load(Ordering::Acquire);
            if next.is_null() {
                return false;
            }
            self.leave(position.segment);
            *position = Position { segment: next, read: 0 };
            // SAFETY: the new segment counted this reader when it was made.
            segment = unsafe { &*next };
        }
        if position.read == segment.filled.load(Ordering::Acquire) {
            return false;
        }
        segment.pass(position.read);
        position.read += 1;
        true
    }

    /// The end of a reader that has been dropped: passes all that is there and leaves.
    fn retire(&self, mut position: Position<T>) {
        while self.skip(&mut position) {}
        self.leave(position.segment);
    }
}

impl<T: Send + Sync> Writer<T> {
    /// Appends an entry for all readers there are now; drops it if there are none.
    pub fn append(&mut self, value: T) {
        // Relaxed: what is not seen now is seen at another append; the lock orders the rest.
        if self.shared.left.load(Ordering::Relaxed) {
            self.adopt();
        }
        if self.readers == 0 {
            return;
        }
        // SAFETY: the writer holds `tail`.
        let tail = unsafe { &*self.tail };
        if self.written < SLOTS {
            tail.write(self.written, value, self.readers);
            self.written += 1;
            tail.filled.store(self.written, ordering("log.filled", Ordering::Release));
            return;
        }
        let fresh = self.fresh();
        // SAFETY: `fresh` counts the writer among its holders.
        let segment = unsafe { &*fresh };
        segment.write(0, value, self.readers);
        segment.filled.store(1, Ordering::Relaxed);
        tail.next.store(fresh, ordering("log.next", Ordering::Release));
        self.shared.leave(self.tail);
        self.tail = fresh;
        self.written = 1;
    }

    /// Readers that are left, as far as the writer knows.
    pub fn readers(&self) -> usize {
        self.readers
    }

    /// An empty segment, held by the writer and all readers.
    fn fresh(&self) -> *mut Segment<T> {
        let spare = self.shared.spare.0.swap(null_mut(), ordering("log.reuse", Ordering::Acquire));
        if spare.is_null() {
            return Segment::allocate(self.readers + 1);
        }
        // SAFETY: it came out of `spare`, where its last holder put it.
        let segment = unsafe { &*spare };
        segment.filled.store(0, Ordering::Relaxed);
        segment.next.store(null_mut(), Ordering::Relaxed);
        segment.holders.store(self.readers + 1, Ordering::Relaxed);
        spare
    }
}

impl<T> Writer<T> {
    /// Passes entries for the readers that have gone.
    #[cold]
    fn adopt(&mut self) {
        let mut gone = self.shared.gone.lock();
        self.shared.left.store(false, Ordering::Relaxed);
        let positions = take(&mut gone.readers);
        drop(gone);
        self.readers -= positions.len();
        positions.into_iter().for_each(|position| self.shared.retire(position));
    }
}

impl<T: Send + Sync> Reader<T> {
    /// Reads the next entry, if there is one, and passes it (also if `f` panics).
    pub fn next<O>(&mut self, f: impl FnOnce(&T) -> O) -> Option<O> {
        struct Pass<'a, T>(&'a Segment<T>, usize);
        impl<T> Drop for Pass<'_, T> {
            fn drop(&mut self) {
                if model_failed() {
                    return;
                }
                self.0.pass(self.1);
            }
        }
        if self.position.read == self.available && !self.refresh() {
            return None;
        }
        // SAFETY: the reader holds its segment until it leaves it, in `refresh` or in `drop`.
        let segment = unsafe { &*self.position.segment };
        let index = self.position.read;
        self.position.read += 1;
        let _pass = Pass(segment, index);
        Some(segment.slots[index].value.with(|value| {
            // SAFETY: below the `filled` that was loaded with Acquire, so written; and this reader, which the entry
            // counts, has not passed it, so it is not dropped.
            f(unsafe { (*value).assume_init_ref() })
        }))
    }

    /// Whether nothing is there to read now.
    pub fn is_empty(&self) -> bool {
        if self.position.read < self.available {
            return false;
        }
        // SAFETY: the reader holds its segment.
        let segment = unsafe { &*self.position.segment };
        if self.position.read < SLOTS {
            segment.filled.load(Ordering::Acquire) == self.position.read
        } else {
            segment.next.load(Ordering::Acquire).is_null()
        }
    }

    /// Looks again how far the writer is; goes on to the next segment. Returns whether there is something to read.
    #[inline(never)]
    fn refresh(&mut self) -> bool {
        // SAFETY: the reader holds its segment.
        let mut segment = unsafe { &*self.position.segment };
        if self.position.read == SLOTS {
            let next = segment.next.load(Ordering::Acquire);
            if next.is_null() {
                return false;
            }
            self.shared.leave(self.position.segment);
            self.position = Position { segment: next, read: 0 };
            // SAFETY: the new segment counted this reader when it was made.
            segment = unsafe { &*next };
        }
        self.available = segment.filled.load(Ordering::Acquire);
        self.available > self.position.read
    }
}

impl<T> Drop for Writer<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        let mut gone = self.shared.gone.lock();
        gone.writer = true;
        let positions = take(&mut gone.readers);
        drop(gone);
        positions.into_iter().for_each(|position| self.shared.retire(position));
        self.shared.leave(self.tail);
    }
}

impl<T> Drop for Reader<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        let mut position = Position { ..self.position };
        while self.shared.skip(&mut position) {}
        let mut gone = self.shared.gone.lock();
        if gone.writer {
            drop(gone);
            self.shared.retire(position);
        } else {
            gone.readers.push(position);
            self.shared.left.store(true, Ordering::Relaxed);
        }
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        if model_failed() {
            return;
        }
        // All ends have left all segments; only the spare one is still there.
        free(self.spare.0.load(Ordering::Relaxed));
    }
}

/// Frees a segment without entries, or nothing if it is null.
fn free<T>(segment: *mut Segment<T>) {
    if !segment.is_null() {
        // SAFETY: the segment came out of `Box::into_raw`, and its last holder has left it.
        drop(unsafe { Box::from_raw(segment) });
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn each_reader_reads_all_in_order() {
        let (mut writer, readers) = broadcast(3);
        let threads: Vec<_> = readers
            .into_iter()
            .enumerate()
            .map(|(index, mut reader)| {
                std::thread::spawn(move || {
                    let until = if index == 1 { 777 } else { 10_000 };
                    let mut expected = 0;
                    while expected < until {
                        match reader.next(|entry| *entry) {
                            Some(entry) => {
                                assert_eq!(entry, expected);
                                expected += 1;
                            }
                            None => std::thread::yield_now(),
                        }
                    }
                })
            })
            .collect();
        (0..10_000u64).for_each(|n| writer.append(n));
        threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
    }

    #[test]
    fn freed_when_all_have_passed() {
        let counted = Arc::new(());
        let held = || Arc::strong_count(&counted) - 1;
        let (mut writer, mut readers) = broadcast(2);
        (0..100).for_each(|_| writer.append(counted.clone()));
        (0..70).for_each(|_| readers[0].next(|_| ()).expect("there are 100"));
        (0..80).for_each(|_| readers[1].next(|_| ()).expect("there are 100"));
        assert_eq!(held(), 30);
        drop(readers.remove(0));
        assert_eq!(held(), 20);
        writer.append(counted.clone());
        assert_eq!((held(), writer.readers()), (21, 1));
        (0..21).for_each(|_| readers[0].next(|_| ()).expect("there are 101"));
        assert!(readers[0].is_empty());
        assert_eq!(held(), 0);
    }

    #[test]
    fn ends_in_any_order() {
        let counted = Arc::new(());
        for order in 0..6 {
            let (mut writer, mut readers) = broadcast(2);
            let (second, first) = (readers.pop(), readers.pop());
            (0..2 * SLOTS + order).for_each(|_| writer.append(counted.clone()));
            let mut ends: Vec<Box<dyn std::any::Any>> = vec![Box::new(writer), Box::new(first), Box::new(second)];
            drop(ends.remove(order % 3));
            drop(ends.remove(order % 2));
            drop(ends);
            assert_eq!(Arc::strong_count(&counted), 1);
        }
    }

    #[test]
    fn without_readers() {
        let counted = Arc::new(());
        let (mut writer, readers) = broadcast(0);
        assert!(readers.is_empty());
        writer.append(counted.clone());
        assert_eq!(Arc::strong_count(&counted), 1);
        let (mut writer, readers) = broadcast(1);
        drop(readers);
        (0..3 * SLOTS).for_each(|_| writer.append(counted.clone()));
        assert_eq!((Arc::strong_count(&counted), writer.readers()), (1, 0));
    }

    #[test]
    fn passes_what_panicked() {
        let counted = Arc::new(());
        let (mut writer, mut readers) = broadcast(1);
        writer.append(counted.clone());
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            readers[0].next(|_| std::panic::resume_unwind(Box::new("f")))
        }));
        assert!(unwound.is_err() && readers[0].is_empty());
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::shim::{bound, with_mutant};
    use super::*;
    use loom::thread;

    /// Reads up to `tries` entries, without waiting; returns how many it has read in all.
    fn read(reader: &mut Reader<Arc<usize>>, mut expected: usize, tries: usize) -> usize {
        for _ in 0..tries {
            let Some(entry) = reader.next(|entry| **entry) else { break };
            assert_eq!(entry, expected);
            expected += 1;
        }
        expected
    }

    /// Per reader: how often it tries to read beside the writer; and whether it is then dropped there, or reads the
    /// rest after. Entries are Arcs, so that loom sees one lost or dropped twice.
    fn pass(count: usize, plans: &'static [(usize, bool)], preemptions: Option<usize>) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = preemptions;
        builder.check(move || {
            let (mut writer, readers) = broadcast(plans.len());
            let threads: Vec<_> = readers
                .into_iter()
                .zip(plans)
                .map(|(mut reader, &(tries, goes))| {
                    thread::spawn(move || {
                        let read = read(&mut reader, 0, tries);
                        (!goes).then_some((reader, read))
                    })
                })
                .collect();
            (0..count).for_each(|n| writer.append(Arc::new(n)));
            drop(writer);
            for thread in threads {
                if let Some((mut reader, so_far)) = thread.join().expect("the thread ends well") {
                    assert_eq!(read(&mut reader, so_far, count + 1), count);
                    assert!(reader.is_empty());
                }
            }
        });
    }

    #[test]
    fn one_reader() {
        pass(3, &[(3, false)], None);
    }

    #[test]
    fn two_readers() {
        pass(3, &[(3, false), (3, false)], bound(2, Some(3)));
    }

    #[test]
    fn a_reader_goes() {
        pass(3, &[(1, true)], None);
    }

    #[test]
    fn one_of_two_goes() {
        pass(3, &[(2, false), (1, true)], bound(2, Some(3)));
    }

    /// Through three segments, so that one comes back.
    #[test]
    fn reuse() {
        pass(5, &[(5, false)], bound(3, Some(4)));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_filled() {
        with_mutant("log.filled", || pass(2, &[(2, false)], None));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_next() {
        with_mutant("log.next", || pass(3, &[(3, false)], None));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_pass() {
        with_mutant("log.pass", || pass(1, &[(1, false), (1, false)], Some(2)));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_leave() {
        with_mutant("log.leave", || pass(5, &[(5, false)], Some(3)));
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn mutant_reuse() {
        with_mutant("log.reuse", || pass(5, &[(5, false)], Some(3)));
    }
}
