//! A published arrangement as of one time: reads of any thread, during any merge.
#![forbid(unsafe_code)]

use super::hold::Hold;
use super::list::CursorList;
use super::published::shard_of;
use super::published_list::BatchList;
use super::{Batch, Cursor};
use crate::order::{DiffOverflow, PartialOrder, Semigroup};
use kpg_columnar::Columnar;

/// A val and how many there are of it.
type Counted<B> = (<B as Batch>::Val, <B as Batch>::Diff);
type Accumulated<B> = Result<Counted<B>, DiffOverflow>;

/// A published arrangement as of one time. It keeps its batches, and holds its time until dropped.
pub struct Snapshot<B: Batch> {
    time: B::Time,
    shards: Vec<BatchList<B>>,
    _hold: Hold<B::Time>,
}

impl<B: Batch> Snapshot<B> {
    pub(super) fn new(time: B::Time, shards: Vec<BatchList<B>>, hold: Hold<B::Time>) -> Self {
        Snapshot { time, shards, _hold: hold }
    }
    /// Its time.
    pub fn time(&self) -> &B::Time {
        &self.time
    }
    /// The vals of `key` and how many there are of each, in the order of vals. Cost: a search in each batch.
    ///
    /// # Panics
    /// While iterating: unwinds with [`DiffOverflow`] where an accumulation does not fit its diff; `try_get` says so.
    pub fn get<'a>(&'a self, key: &B::Key) -> impl Iterator<Item = Counted<B>> + use<'a, B> {
        self.reads(key).map(|read| read.unwrap_or_else(|DiffOverflow| DiffOverflow::raise()))
    }
    /// As `get`.
    ///
    /// # Errors
    /// Where an accumulation does not fit its diff.
    pub fn try_get(&self, key: &B::Key) -> Result<Vec<Counted<B>>, DiffOverflow> {
        self.reads(key).collect()
    }
    /// Everything, shard by shard, each in the order of (key, val).
    ///
    /// # Panics
    /// While iterating: unwinds with [`DiffOverflow`] where an accumulation does not fit its diff.
    pub fn iter(&self) -> impl Iterator<Item = (B::Key, B::Val, B::Diff)> {
        self.shards.iter().flat_map(move |shard| {
            let mut cursor = cursor(shard);
            std::iter::from_fn(move || {
                while let Some(key) = cursor.key() {
                    if let Some(read) = next_val::<B>(&mut cursor, &self.time) {
                        let (val, diff) = read.unwrap_or_else(|DiffOverflow| DiffOverflow::raise());
                        return Some((<B::Key as Columnar>::to_owned(key), val, diff));
                    }
                    cursor.step_key();
                }
                None
            })
        })
    }

    fn reads<'a>(&'a self, key: &B::Key) -> impl Iterator<Item = Accumulated<B>> + use<'a, B> {
        let mut cursor = cursor(&self.shards[shard_of::<B::Key>(key.borrow(), self.shards.len())]);
        cursor.seek_key(key.borrow());
        let found = cursor.key().is_some_and(|k| super::compare::compare::<B::Key>(k, key.borrow()).is_eq());
        std::iter::from_fn(move || {
            if !found {
                return None;
            }
            next_val::<B>(&mut cursor, &self.time)
        })
    }
}

fn cursor<B: Batch>(batches: &BatchList<B>) -> CursorList<'_, B::Cursor<'_>> {
    CursorList::new(batches.iter().filter(|b| !b.is_empty()).map(Batch::cursor).collect())
}

/// The next val of the current key that has a sum at `time`, and that; the cursor goes past it.
fn next_val<'a, B: Batch>(cursor: &mut CursorList<'a, B::Cursor<'a>>, time: &B::Time) -> Option<Accumulated<B>> {
    while let Some(val) = cursor.val() {
        let mut sum = <B::Diff as Semigroup>::Sum::default();
        cursor.for_each_time(|t, diff| {
            if t.less_equal(time) {
                diff.add_to(&mut sum);
            }
        });
        cursor.step_val();
        if !B::Diff::sum_is_zero(&sum) {
            let diff = B::Diff::from_sum(sum).ok_or(DiffOverflow);
            return Some(diff.map(|diff| (<B::Val as Columnar>::to_owned(val), diff)));
        }
    }
    None
}
