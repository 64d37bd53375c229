//! The readers' end of a trace on its worker: handles, each with its `since` and its cut.
//!
//! ```text
//! TraceWriter ┄┄weak┄┄▶ TraceBox { spine, readers } ◀── TraceHandle, TraceHandle, …   ◀┄┄weak┄┄ WeakTrace
//! ```
//! The box lives as long as a handle does. Handles are of one thread. Before: `spine`, `readers`. Next stop: `writer`.
#![forbid(unsafe_code)]

use super::Trace;
use super::merge::MergeBatch;
use super::readers::{Readers, Registration, Since};
use super::spine::{Spine, TraceStats};
use crate::order::{Antichain, Timestamp};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::{Rc, Weak};

/// What the writer and the handles of one trace share.
pub(super) struct TraceBox<B: MergeBatch> {
    pub spine: RefCell<Spine<B>>,
    // Apart from the spine, so that a bound since can be asked for while the spine merges.
    pub readers: RefCell<Readers<B::Time>>,
    // The greatest frontier at which times were folded.
    pub committed: RefCell<Antichain<B::Time>>,
    pub minted: RefCell<Minted<B::Time>>,
}

/// How many bytes have been minted up to which bound: what a reader that lags may keep from being folded.
pub(super) struct Minted<T> {
    // Uppers of batches, each with the bytes minted up to it; oldest first. When there are many, some are left out, so
    // that what is between two of them counts as not minted before the later one.
    marks: VecDeque<(Antichain<T>, u64)>,
}

/// So many marks at most, so that a reader that lags for long costs no more than a glance.
const MARKS: usize = 256;

impl<T: Timestamp> Minted<T> {
    pub fn new() -> Self {
        Minted { marks: VecDeque::new() }
    }
    pub fn mint(&mut self, upper: &Antichain<T>, bytes: usize, committed: &Antichain<T>) {
        // Below where times were folded no reader lags; the last mark there is where all count from.
        while self.marks.len() > 1 && self.marks[1].0.before_equal(committed) {
            self.marks.pop_front();
        }
        let total = self.marks.back().map_or(0, |mark| mark.1) + bytes as u64;
        self.marks.push_back((upper.clone(), total));
        if self.marks.len() > MARKS {
            let mut index = 0;
            self.marks.retain(|_| {
                index += 1;
                index % 2 == 1 || index > MARKS
            });
        }
    }
    fn through(&self, frontier: &Antichain<T>) -> u64 {
        self.marks.iter().rev().find(|mark| mark.0.before_equal(frontier)).map_or(0, |mark| mark.1)
    }
}

impl<B: MergeBatch> TraceBox<B> {
    pub fn cut(&self) -> Antichain<B::Time> {
        self.readers.borrow().cut()
    }
}

/// A reader of a trace on its worker.
pub struct TraceHandle<B: MergeBatch> {
    shared: Rc<TraceBox<B>>,
    index: usize,
}

impl<B: MergeBatch> TraceHandle<B> {
    pub(super) fn register(shared: Rc<TraceBox<B>>, since: Antichain<B::Time>, cut: Antichain<B::Time>) -> Self {
        let registration = Registration { since: Since::Fixed(since), cut, owner: None };
        let index = shared.readers.borrow_mut().register(registration);
        TraceHandle { shared, index }
    }
    /// A reference that does not read: it keeps neither the trace nor a since.
    pub fn downgrade(&self) -> WeakTrace<B> {
        WeakTrace { shared: Rc::downgrade(&self.shared) }
    }
    /// This reader's since, as it is now.
    pub fn since(&self) -> Antichain<B::Time> {
        self.shared.readers.borrow().get(self.index).since.get()
    }
    /// This reader's cut.
    pub fn cut(&self) -> Antichain<B::Time> {
        self.shared.readers.borrow().get(self.index).cut.clone()
    }
    /// The frontier at which times have been folded so far; a reader's since is beyond it.
    pub fn committed(&self) -> Antichain<B::Time> {
        self.shared.committed.borrow().clone()
    }
    /// The batches after the bound `lower`, oldest first, and the last one's upper; nothing, if `lower` is no bound.
    pub fn batches_after(&self, lower: &Antichain<B::Time>) -> Option<(Vec<B>, Antichain<B::Time>)> {
        let spine = self.shared.spine.borrow();
        Some((spine.batches_after(lower)?, spine.upper().clone()))
    }
    /// Puts what this reader, and those cloned from it, keep on the account of `owner`.
    pub fn set_owner(&mut self, owner: u32) {
        self.shared.readers.borrow_mut().set_owner(self.index, owner);
    }
    /// What the readers of `owner` keep from being folded, though others need it no more: the since that they hold, and
    /// the bytes minted from there up to `needed`, from where on it would be kept without them. Cost: linear in the
    /// readers.
    pub fn lag_of(&self, owner: u32, needed: &Antichain<B::Time>) -> (Antichain<B::Time>, usize) {
        let since = self.shared.readers.borrow().since_of(owner);
        let minted = self.shared.minted.borrow();
        let bytes = minted.through(needed).saturating_sub(minted.through(&since));
        (since, bytes as usize)
    }
    /// The sizes. Cost: linear in the number of batches.
    pub fn stats(&self) -> TraceStats {
        self.shared.spine.borrow().stats(&self.shared.cut())
    }
    /// Checks the spine's invariants. Cost: linear.
    ///
    /// # Panics
    /// If they do not hold.
    pub fn check_invariants(&self) {
        self.shared.spine.borrow().check_invariants();
    }
}

impl<B: MergeBatch> Clone for TraceHandle<B> {
    fn clone(&self) -> Self {
        let registration = self.shared.readers.borrow().get(self.index).clone();
        let index = self.shared.readers.borrow_mut().register(registration);
        TraceHandle { shared: self.shared.clone(), index }
    }
}

impl<B: MergeBatch> Drop for TraceHandle<B> {
    fn drop(&mut self) {
        self.shared.readers.borrow_mut().release(self.index);
    }
}

impl<B: MergeBatch> Trace for TraceHandle<B> {
    type Batch = B;
    type Key = B::Key;
    type Val = B::Val;
    type Time = B::Time;
    type Diff = B::Diff;

    fn set_since(&mut self, since: &Antichain<B::Time>) {
        self.shared.readers.borrow_mut().set_since(self.index, Since::Fixed(since.clone()));
    }
    fn bind_since(&mut self, frontier: Rc<dyn Fn() -> Antichain<B::Time>>) {
        self.shared.readers.borrow_mut().set_since(self.index, Since::Bound(frontier));
    }
    fn set_cut(&mut self, cut: &Antichain<B::Time>) {
        self.shared.readers.borrow_mut().set_cut(self.index, cut.clone());
    }
    fn batches_through(&self, upper: &Antichain<B::Time>) -> Option<Vec<B>> {
        self.shared.spine.borrow().batches_through(upper)
    }
    fn batches(&self) -> (Vec<B>, Antichain<B::Time>) {
        let spine = self.shared.spine.borrow();
        (spine.batches().cloned().collect(), spine.upper().clone())
    }
}

/// A trace known by name only: it can be read as long as someone else does.
pub struct WeakTrace<B: MergeBatch> {
    shared: Weak<TraceBox<B>>,
}

impl<B: MergeBatch> Clone for WeakTrace<B> {
    fn clone(&self) -> Self {
        WeakTrace { shared: self.shared.clone() }
    }
}

impl<B: MergeBatch> WeakTrace<B> {
    /// A new reader from where times have been folded so far, whose cut is the last bound; nothing, if the trace is gone.
    pub fn register_committed(&self) -> Option<TraceHandle<B>> {
        let since = self.shared.upgrade()?.committed.borrow().clone();
        self.register(&since)
    }
    pub(super) fn new(shared: Weak<TraceBox<B>>) -> Self {
        WeakTrace { shared }
    }
    /// A new reader from `since` on, whose cut is the last bound; nothing, if the trace is gone.
    ///
    /// # Panics
    /// If times have been folded further: whoever registers holds `since` by other means (a hold) until then.
    pub fn register(&self, since: &Antichain<B::Time>) -> Option<TraceHandle<B>> {
        let shared = self.shared.upgrade()?;
        let committed = shared.committed.borrow().clone();
        assert!(committed.before_equal(since), "{since:?} is not beyond {committed:?}, where times were folded");
        let cut = shared.spine.borrow().upper().clone();
        Some(TraceHandle::register(shared, since.clone(), cut))
    }
}
