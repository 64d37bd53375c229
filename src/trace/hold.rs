//! Holds: what keeps the history of a published arrangement readable, taken from any thread.
//!
//! ```text
//! shard 0: [ committed since │ hold hold … ]      default: (before, latest)   one for all shards
//! shard 1: [ committed since │ hold hold … ]
//! ```
//! A worker commits its since under its shard's lock before it folds; whoever takes a hold does so under the same
//! lock, at or past what is committed. So no hold is ever taken on what is folded away. Lock order: a shard's cell,
//! then the default. Next stop: `published`.
#![forbid(unsafe_code)]

use super::layers::start;
use crate::order::{Antichain, Timestamp};
use crate::sync::Mutex;
use std::fmt;
use std::sync::Arc;

/// Why a published arrangement can't be read there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotError<T: Timestamp> {
    /// Times before `since` may have been folded.
    Compacted {
        /// From here on it can be read.
        since: Antichain<T>,
    },
    /// The time, or a part of the arrangement, is not complete.
    NotYet {
        /// What is not beyond this frontier is complete.
        complete: Antichain<T>,
    },
    /// The arrangement's dataflow was retired or poisoned.
    Unpublished,
}

impl<T: Timestamp> fmt::Display for SnapshotError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SnapshotError::Compacted { since } => write!(f, "history before {since:?} is compacted"),
            SnapshotError::NotYet { complete } => write!(f, "only what is not beyond {complete:?} is complete"),
            SnapshotError::Unpublished => f.write_str("the arrangement is no longer published"),
        }
    }
}
impl<T: Timestamp> std::error::Error for SnapshotError<T> {}

/// One shard's committed since and holds.
struct Cell<T> {
    committed: Antichain<T>,
    holds: Vec<Option<Antichain<T>>>,
    free: Vec<usize>,
}

impl<T: Timestamp> Cell<T> {
    fn insert(&mut self, since: Antichain<T>) -> usize {
        let index = self.free.pop().unwrap_or_else(|| {
            self.holds.push(None);
            self.holds.len() - 1
        });
        self.holds[index] = Some(since);
        index
    }
}

/// The hold that every published arrangement has, so that its latest complete time stays readable.
struct Default<T> {
    // What each shard has published.
    uppers: Vec<Antichain<T>>,
    // The complete frontier before the latest one: the since of this hold.
    before: Antichain<T>,
    // Their meet.
    latest: Antichain<T>,
}

/// All holds of one published arrangement.
pub(super) struct Holds<T> {
    cells: Vec<Mutex<Cell<T>>>,
    default: Mutex<Default<T>>,
}

impl<T: Timestamp> Holds<T> {
    pub fn new(peers: usize) -> Self {
        let cell = || Mutex::new(Cell { committed: start(), holds: Vec::new(), free: Vec::new() });
        let default = Default { uppers: vec![start(); peers], before: start(), latest: start() };
        Holds { cells: (0..peers).map(|_| cell()).collect(), default: Mutex::new(default) }
    }
    /// The since of the default hold and the complete frontier it knows.
    pub fn default(&self) -> (Antichain<T>, Antichain<T>) {
        let default = self.default.lock();
        (default.before.clone(), default.latest.clone())
    }
    /// Moves the default hold, after a shard's value was replaced by one with another upper.
    pub fn advance_default(&self, worker: usize, upper: Antichain<T>) {
        let mut default = self.default.lock();
        default.uppers[worker] = upper;
        let mut complete = Antichain::new();
        default.uppers.iter().for_each(|upper| complete.meet_with(upper));
        if default.latest.before(&complete) {
            default.before = std::mem::replace(&mut default.latest, complete);
        }
    }
    /// What is complete on all shards.
    pub fn complete(&self) -> Antichain<T> {
        self.default.lock().latest.clone()
    }
    /// Commits the since of shard `worker`: the meet of `since` and all holds.
    pub fn commit(&self, worker: usize, mut since: Antichain<T>) -> Antichain<T> {
        let mut cell = self.cells[worker].lock();
        cell.holds.iter().flatten().for_each(|hold| since.meet_with(hold));
        since.meet_with(&self.default.lock().before);
        assert!(cell.committed.before_equal(&since), "since went back from {:?} to {since:?}", cell.committed);
        cell.committed = since.clone();
        since
    }
    /// Takes a hold on each shard at its committed since.
    pub fn take(self: &Arc<Self>) -> Hold<T> {
        let take = |cell: &Mutex<Cell<T>>| {
            let mut cell = cell.lock();
            let since = cell.committed.clone();
            (cell.insert(since.clone()), since)
        };
        Hold { at: self.cells.iter().map(take).collect(), holds: self.clone() }
    }
}

/// Keeps what is at or past a since of a published arrangement readable, until dropped.
pub struct Hold<T: Timestamp> {
    holds: Arc<Holds<T>>,
    // For each shard, the index of its hold and its since.
    at: Vec<(usize, Antichain<T>)>,
}

/// What an install holds until all workers have built.
pub type ImportHold<T> = Hold<T>;

impl<T: Timestamp> Hold<T> {
    /// What is held of each shard.
    pub fn sinces(&self) -> impl Iterator<Item = &Antichain<T>> {
        self.at.iter().map(|at| &at.1)
    }
    /// The least time that can be read on every shard: the join of all elements of all sinces.
    pub fn join(&self) -> T {
        self.sinces().flat_map(|since| since.elements()).fold(T::minimum(), |join, t| join.join(t))
    }
    /// Holds from `since` on.
    ///
    /// # Errors
    /// `Compacted`, if that is not beyond what is held; the hold stays as it is.
    pub fn move_to(&mut self, since: &Antichain<T>) -> Result<(), SnapshotError<T>> {
        if let Some(held) = self.sinces().find(|held| !held.before_equal(since)) {
            return Err(SnapshotError::Compacted { since: held.clone() });
        }
        for (cell, at) in self.holds.cells.iter().zip(&mut self.at) {
            cell.lock().holds[at.0] = Some(since.clone());
            at.1 = since.clone();
        }
        Ok(())
    }
}

impl<T: Timestamp> Clone for Hold<T> {
    fn clone(&self) -> Self {
        let copy =
            |(cell, at): (&Mutex<Cell<T>>, &(usize, Antichain<T>))| (cell.lock().insert(at.1.clone()), at.1.clone());
        Hold { at: self.holds.cells.iter().zip(&self.at).map(copy).collect(), holds: self.holds.clone() }
    }
}

impl<T: Timestamp> Drop for Hold<T> {
    fn drop(&mut self) {
        for (cell, at) in self.holds.cells.iter().zip(&self.at) {
            let mut cell = cell.lock();
            cell.holds[at.0] = None;
            cell.free.push(at.0);
        }
    }
}
