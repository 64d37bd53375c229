//! The arrange operator's end of a trace: inserts batches, pays for merging, publishes.
//!
//! It holds the trace weakly: with no reader left it goes on minting batches and keeps no trace. What is published
//! is a reader as long as someone has the published arrangement. Before: `handle`. Next stop: `published`.
#![forbid(unsafe_code)]

use super::handle::{Minted, TraceBox, TraceHandle, WeakTrace};
use super::layers::start;
use super::merge::MergeBatch;
use super::policy::MergePolicy;
use super::published::{Published, Shard, Shared};
use super::published_list::BatchList;
use super::readers::Readers;
use super::spine::{Spine, TraceStats};
use crate::order::Antichain;
use crate::runtime::MergeState;
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::sync;

/// The writing end of a trace.
pub struct TraceWriter<B: MergeBatch> {
    shared: Weak<TraceBox<B>>,
    // The last batch's upper.
    upper: Antichain<B::Time>,
    publication: Option<Publication<B>>,
    // Whether what every reader has passed is dropped rather than folded.
    forgetful: bool,
    // As of the last call that changed something.
    state: MergeState,
}

/// A shard that this writer publishes.
struct Publication<B: MergeBatch> {
    published: sync::Weak<Shared<B>>,
    worker: usize,
    // The frontier at the arrangement's output port, as far as it was told.
    upper: Antichain<B::Time>,
    // What is shown; nothing, if the spine's list has changed since.
    list: Option<BatchList<B>>,
    // Keeps the trace; its since and cut are empty, for holds speak for those who read what is published.
    _trace: TraceHandle<B>,
}

impl<B: MergeBatch> TraceWriter<B> {
    /// A trace that starts at the least time, and its first reader, at that since and cut.
    pub fn new(policy: MergePolicy) -> (TraceWriter<B>, TraceHandle<B>) {
        let least = start::<B::Time>();
        let shared = Rc::new(TraceBox {
            spine: RefCell::new(Spine::new(policy, least.clone())),
            readers: RefCell::new(Readers::new()),
            committed: RefCell::new(least.clone()),
            minted: RefCell::new(Minted::new()),
        });
        let writer = TraceWriter {
            shared: Rc::downgrade(&shared),
            upper: least.clone(),
            publication: None,
            forgetful: false,
            state: MergeState::default(),
        };
        (writer, TraceHandle::register(shared, least.clone(), least))
    }
    /// The last batch's upper bound; the least time, if there is none.
    pub fn upper(&self) -> &Antichain<B::Time> {
        &self.upper
    }
    /// A way to more readers, for importers on this worker; nothing, if no reader is left.
    pub fn reader(&self) -> Option<WeakTrace<B>> {
        self.is_read().then(|| WeakTrace::new(self.shared.clone()))
    }
    /// Whether anyone reads, or may.
    pub fn is_read(&self) -> bool {
        self.shared.strong_count() > 0
    }

    /// Appends a batch and pays for merging; what is published shows the batch, with the upper as it was.
    ///
    /// # Panics
    /// If the batch's lower bound is not [`Self::upper`], or its bounds are equal.
    pub fn insert(&mut self, batch: B) {
        assert!(*batch.lower() == self.upper, "lower {:?} must be the upper {:?}", batch.lower(), self.upper);
        assert!(batch.upper() != batch.lower(), "a batch between equal bounds is nothing: {:?}", batch.upper());
        self.upper = batch.upper().clone();
        self.retract();
        if let Some(shared) = self.shared.upgrade() {
            let cut = shared.cut();
            shared.minted.borrow_mut().mint(batch.upper(), batch.bytes(), &shared.committed.borrow());
            shared.spine.borrow_mut().insert(batch, &cut, &mut || self.commit(&shared));
            self.forget(&shared);
            self.state = shared.spine.borrow().state(&cut);
            self.show(&shared, true, false);
        } else {
            // Nothing is left of the trace.
            self.state = MergeState { batches: 0, open_merges: 0, debt: 0, ..self.state };
        }
    }

    /// Seals to the empty frontier: the input has closed. Nothing, if that was done.
    pub fn seal_end(&mut self) {
        if !self.upper.is_empty() {
            self.insert(B::empty(self.upper.clone(), Antichain::new()));
        }
    }

    /// Merges on while there is fuel. True iff work remains that could run now.
    pub fn work(&mut self, fuel: &mut isize) -> bool {
        self.retract();
        let Some(shared) = self.shared.upgrade() else { return false };
        let (cut, mut changed) = (shared.cut(), false);
        let more = shared.spine.borrow_mut().work(fuel, &cut, &mut || self.commit(&shared), &mut changed);
        self.state = shared.spine.borrow().state(&cut);
        if changed {
            self.show(&shared, true, false);
        }
        more
    }

    /// Publishes this trace as the shard of `worker`, from now on and as long as anyone has `published`.
    ///
    /// Nothing, if no reader is left.
    pub fn publish(&mut self, published: &Published<B>, worker: usize) {
        if let Some(shared) = self.shared.upgrade() {
            let trace = TraceHandle::register(shared.clone(), Antichain::new(), Antichain::new());
            let published = sync::Arc::downgrade(published.shared());
            let upper = start::<B::Time>();
            self.publication = Some(Publication { published, worker, upper, list: None, _trace: trace });
            self.show(&shared, true, true);
        }
    }

    /// Whether anyone has what this writer publishes.
    pub fn is_published(&mut self) -> bool {
        self.retract();
        self.publication.is_some()
    }

    /// The frontier at the arrangement's output port has moved to `upper`: what is published has passed it.
    pub fn advance_upper(&mut self, upper: &Antichain<B::Time>) {
        self.retract();
        let Some(publication) = &mut self.publication else { return };
        assert!(publication.upper.before_equal(upper), "{upper:?} is before {:?}", publication.upper);
        if publication.upper != *upper {
            publication.upper = upper.clone();
            let shared = self.shared.upgrade().expect("a publication keeps its trace");
            let changed = self.forget(&shared);
            self.show(&shared, changed, true);
        }
    }

    /// What was inserted and merged so far, and how that is now: as of the last batch, or the last merging.
    pub fn state(&self) -> &MergeState {
        &self.state
    }

    /// The sizes; nothing, if no reader is left.
    pub fn stats(&self) -> Option<TraceStats> {
        let shared = self.shared.upgrade()?;
        let stats = shared.spine.borrow().stats(&shared.cut());
        Some(stats)
    }

    /// Whether the debt of merges that could run now is past the policy's bound. Cost: that of `Spine::debt`.
    pub fn is_overdue(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| {
            let spine = shared.spine.borrow();
            spine.debt(&shared.cut()) > spine.policy().debt_bound
        })
    }
    /// Whether a merge waits for memory: `work` tries it again now and then.
    pub fn is_denied(&self) -> bool {
        self.shared.upgrade().is_some_and(|shared| shared.spine.borrow().is_denied())
    }

    /// Fixes the frontier at which the next merge folds, so that no reader is admitted before it.
    fn commit(&self, shared: &TraceBox<B>) -> Antichain<B::Time> {
        let mut since = shared.readers.borrow().since();
        if let Some(publication) = &self.publication
            && let Some(published) = publication.published.upgrade()
        {
            since = published.commit(publication.worker, since);
        }
        if !since.is_empty() {
            let old = shared.committed.replace(since.clone());
            assert!(old.before_equal(&since), "a since went back from {old:?} to {since:?}");
        }
        since
    }

    /// From now on what every reader has passed is dropped, not folded: a stream rather than a collection. For totally
    /// ordered times, where what ends at or before a since is before it.
    pub fn keep_no_history(&mut self) {
        self.forgetful = true;
    }

    /// True iff the list of batches changed.
    fn forget(&self, shared: &TraceBox<B>) -> bool {
        if !self.forgetful {
            return false;
        }
        let since = self.commit(shared);
        let cut = shared.cut();
        shared.spine.borrow_mut().forget(&since, &cut)
    }

    /// Replaces what is published; by the same list again, unless the spine's has `changed`. `moved` iff the upper is new.
    /// Cost: O(log n) of n batches.
    fn show(&mut self, shared: &TraceBox<B>, changed: bool, moved: bool) {
        if let Some(publication) = &mut self.publication
            && let Some(published) = publication.published.upgrade()
        {
            if changed {
                publication.list = None;
            }
            let batches = publication.list.get_or_insert_with(|| shared.spine.borrow().list()).clone();
            let since = shared.committed.borrow().clone();
            published.replace(publication.worker, Shard { batches, since, upper: publication.upper.clone() }, moved);
        }
    }

    /// Ends a publication that no one has any more.
    fn retract(&mut self) {
        if self.publication.as_ref().is_some_and(|p| p.published.strong_count() == 0) {
            self.publication = None;
        }
    }
}

#[cfg(test)]
mod tests;
