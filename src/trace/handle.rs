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
use crate::order::Antichain;
use std::cell::RefCell;
use std::rc::{Rc, Weak};

/// What the writer and the handles of one trace share.
pub(super) struct TraceBox<B: MergeBatch> {
    pub spine: RefCell<Spine<B>>,
    // Apart from the spine, so that a bound since can be asked for while the spine merges.
    pub readers: RefCell<Readers<B::Time>>,
    // The greatest frontier at which times were folded.
    pub committed: RefCell<Antichain<B::Time>>,
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
        let registration = Registration { since: Since::Fixed(since), cut };
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
