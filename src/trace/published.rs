//! An arrangement that any thread can read: for each worker one value, replaced whole.
//!
//! ```text
//! worker 0 ── replace ──▶ [ batches, since, upper ] ◀── load ── snapshots, importers, subscriptions
//! worker 1 ── replace ──▶ [ batches, since, upper ]
//! ```
//! Only a shard's worker replaces it: when it inserts a batch (with the old upper), when a merge ends, when the
//! frontier at the arrangement's output port has moved. Batches, since and upper are never seen apart. What is complete on
//! all shards is kept with the holds, under one lock, which is taken when an upper moves. A
//! replacement copies O(log n) of the list, and nothing of it when just the upper has moved. Before: `writer`,
//! `published_list`, `hold`. Next stop: `snapshot`.
#![forbid(unsafe_code)]

use super::Batch;
use super::hold::{Hold, Holds, ImportHold, SnapshotError};
use super::layers::start;
use super::published_list::BatchList;
use super::snapshot::Snapshot;
use crate::order::{Antichain, Timestamp};
use crate::sync::{ArcCell, Counter, Monitor, Mutex, Padded};
use kpg_columnar::Columnar;
use std::sync::Arc;
use std::time::Instant;

/// The shard that a key belongs to.
#[inline]
pub fn shard_of<K: Columnar>(key: K::Ref<'_>, peers: usize) -> usize {
    (K::hash(key) % peers as u64) as usize
}

/// What one worker has published.
pub struct Shard<B: Batch> {
    /// The batches, oldest first; the last ones may lie beyond `upper`.
    pub batches: BatchList<B>,
    /// Where it was committed to fold when this was published.
    pub since: Antichain<B::Time>,
    /// What is not beyond this frontier is complete.
    pub upper: Antichain<B::Time>,
}

pub(super) struct Shared<B: Batch> {
    shards: Vec<Padded<ArcCell<Shard<B>>>>,
    holds: Arc<Holds<B::Time>>,
    // Whether it has ended. Who waits for it, or for what is complete, enlists before the look at that.
    ended: Monitor<bool>,
    hooks: Mutex<Vec<Hook>>,
    // How many there are, changed under their lock, so that whoever changes something need not take that.
    hooked: Counter,
}

/// Called at each change, until it says that nobody needs it any more.
type Hook = Arc<dyn Fn() -> bool + Send + Sync>;

impl<B: Batch> Shared<B> {
    pub fn commit(&self, worker: usize, since: Antichain<B::Time>) -> Antichain<B::Time> {
        self.holds.commit(worker, since)
    }
    /// Replaces a shard's value; `moved` iff its upper is another than before. Where it is not, nothing is written that other
    /// workers write.
    pub fn replace(&self, worker: usize, shard: Shard<B>, moved: bool) {
        let upper = moved.then(|| shard.upper.clone());
        self.shards[worker].0.store(Arc::new(shard));
        if let Some(upper) = upper {
            self.holds.advance_default(worker, upper);
            self.notify();
        }
    }
    /// Tells those who wait, and the hooks, of what was changed under the lock of the holds, or of the monitor.
    fn notify(&self) {
        if self.ended.is_awaited() {
            drop(self.ended.lock());
            self.ended.notify_all();
        }
        if self.hooked.get() == 0 {
            return;
        }
        let hooks = self.hooks.lock().clone();
        let done: Vec<_> = hooks.iter().filter(|call| !call()).map(Arc::as_ptr).collect();
        if !done.is_empty() {
            let mut hooks = self.hooks.lock();
            hooks.retain(|call| !done.iter().any(|other| std::ptr::addr_eq(*other, Arc::as_ptr(call))));
            self.hooked.set(hooks.len() as u64);
        }
    }
}

/// A published arrangement. A clone is the same; it is `Send` and `Sync` where its batches are. The workers publish
/// as long as anyone has it.
pub struct Published<B: Batch> {
    shared: Arc<Shared<B>>,
}

impl<B: Batch> Clone for Published<B> {
    fn clone(&self) -> Self {
        Published { shared: self.shared.clone() }
    }
}

/// A published arrangement that someone else may still have.
pub struct WeakPublished<B: Batch> {
    shared: std::sync::Weak<Shared<B>>,
}

impl<B: Batch> WeakPublished<B> {
    /// What is not beyond this frontier is complete on all shards; nothing, if it is not published any more.
    pub fn complete(&self) -> Option<Antichain<B::Time>> {
        Some(self.shared.upgrade()?.holds.complete())
    }
}

impl<B: Batch> Published<B> {
    /// A reference that does not keep it published.
    pub fn downgrade(&self) -> WeakPublished<B> {
        WeakPublished { shared: Arc::downgrade(&self.shared) }
    }
    /// An arrangement of which none of `peers` workers has published anything.
    pub fn new(peers: usize) -> Self {
        let shard = || Shard { batches: BatchList::empty(), since: start(), upper: start() };
        let shared = Shared {
            shards: (0..peers).map(|_| Padded(ArcCell::new(Arc::new(shard())))).collect(),
            holds: Arc::new(Holds::new(peers)),
            ended: Monitor::default(),
            hooks: Mutex::default(),
            hooked: Counter::default(),
        };
        Published { shared: Arc::new(shared) }
    }
    pub(super) fn shared(&self) -> &Arc<Shared<B>> {
        &self.shared
    }
    /// Number of shards.
    pub fn peers(&self) -> usize {
        self.shared.shards.len()
    }
    /// What `worker` has published.
    pub fn shard(&self, worker: usize) -> Arc<Shard<B>> {
        self.shared.shards[worker].0.load()
    }
    /// What is not beyond this frontier is complete on all shards: the meet of their uppers.
    pub fn complete(&self) -> Antichain<B::Time> {
        self.shared.holds.complete()
    }
    /// From here on any reader may read without a hold of its own: the complete frontier before the latest.
    pub fn default_since(&self) -> Antichain<B::Time> {
        self.shared.holds.default().0
    }

    /// Keeps what is at or past `since` readable.
    ///
    /// # Errors
    /// `Compacted`, if some shard has folded times further; `Unpublished`.
    pub fn hold(&self, since: &Antichain<B::Time>) -> Result<Hold<B::Time>, SnapshotError<B::Time>> {
        self.check_published()?;
        let mut hold = self.shared.holds.take();
        hold.move_to(since)?;
        Ok(hold)
    }
    /// Holds each shard at its committed since, for an install; and the least time that can be read on all of them.
    pub fn take_import_hold(&self) -> (B::Time, ImportHold<B::Time>) {
        let hold = self.shared.holds.take();
        (hold.join(), hold)
    }

    /// The collection as of `time`, from any thread, without asking a worker.
    ///
    /// # Errors
    /// `Compacted`, `NotYet`, `Unpublished`.
    pub fn snapshot_at(&self, time: &B::Time) -> Result<Snapshot<B>, SnapshotError<B::Time>> {
        self.read(|_| Some(*time))
    }
    /// The collection as of the latest complete time. Where times are partially ordered: as of a time of the
    /// complete frontier before the latest one, which is complete.
    ///
    /// # Errors
    /// `NotYet`, if no time is complete; `Unpublished`.
    pub fn snapshot(&self) -> Result<Snapshot<B>, SnapshotError<B::Time>> {
        let (before, _) = self.shared.holds.default();
        self.read(|complete| latest(&before, complete))
    }

    fn read(
        &self,
        pick: impl FnOnce(&Antichain<B::Time>) -> Option<B::Time>,
    ) -> Result<Snapshot<B>, SnapshotError<B::Time>> {
        self.check_published()?;
        let mut hold = self.shared.holds.take();
        let shards: Vec<_> = self.shared.shards.iter().map(|shard| shard.0.load()).collect();
        let mut complete = Antichain::new();
        shards.iter().for_each(|shard| complete.meet_with(&shard.upper));
        let Some(time) = pick(&complete) else { return Err(SnapshotError::NotYet { complete }) };
        if complete.less_equal(&time) {
            return Err(SnapshotError::NotYet { complete });
        }
        hold.move_to(&Antichain::from_elem(time))?;
        let shards = shards.into_iter().map(|shard| shard.batches.clone()).collect();
        Ok(Snapshot::new(time, shards, hold))
    }

    /// Waits until `time` is complete.
    ///
    /// # Errors
    /// `NotYet`, if the deadline came first; `Unpublished`.
    pub fn wait_complete(&self, time: &B::Time, deadline: Option<Instant>) -> Result<(), SnapshotError<B::Time>> {
        let _enlisted = self.shared.ended.enlist();
        let mut ended = self.shared.ended.lock();
        let mut late = false;
        loop {
            let complete = self.complete();
            if *ended {
                return Err(SnapshotError::Unpublished);
            }
            if !complete.less_equal(time) {
                return Ok(());
            }
            if late {
                return Err(SnapshotError::NotYet { complete });
            }
            (ended, late) = self.shared.ended.wait(ended, deadline);
        }
    }
    /// Calls `call` after each change of what is complete, on the worker that made it, until it gives false. A change before
    /// this is not told: look at what is complete after it.
    pub fn on_change(&self, call: Box<dyn Fn() -> bool + Send + Sync>) {
        let mut hooks = self.shared.hooks.lock();
        hooks.push(call.into());
        self.shared.hooked.set(hooks.len() as u64);
    }
    /// The dataflow was retired or poisoned: from now on no one reads who does not read yet. Wakes who waits.
    pub fn end(&self) {
        *self.shared.ended.lock() = true;
        self.shared.notify();
    }
    /// Whether the dataflow was retired or poisoned.
    pub fn is_ended(&self) -> bool {
        *self.shared.ended.lock()
    }
    fn check_published(&self) -> Result<(), SnapshotError<B::Time>> {
        if self.is_ended() { Err(SnapshotError::Unpublished) } else { Ok(()) }
    }
}

/// A latest complete time at or past `before`, the default hold; nothing, if no time is complete.
fn latest<T: Timestamp>(before: &Antichain<T>, complete: &Antichain<T>) -> Option<T> {
    let mut coords = T::minimum().to_coords();
    if complete.is_empty() {
        T::write_maxima(coords.as_mut_slice());
        return Some(T::from_coords(&coords));
    }
    if T::TOTAL {
        // One coordinate counts at most; all others have one value.
        coords = complete.as_single().expect("an antichain of a total order").to_coords();
        let counter = coords.as_mut_slice().iter_mut().find(|c| **c > 0)?;
        *counter -= 1;
        return Some(T::from_coords(&coords));
    }
    before.elements().iter().find(|t| !complete.less_equal(t)).copied()
}
