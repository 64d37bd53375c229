//! Merging adjacent batches in slices, folding their times.
//!
//! ```text
//! first   a a b   d d f        per key: a stretch that one input alone has is copied whole,
//! second      b c     f g      a key of several is merged val by val, a val of several time by time
//! ```
//! Times become `rep(time, since)`: what no reader can tell apart becomes one. The order of times is that of their coordinates,
//! where meets and joins distribute; so that is the join of `time` and the floor, the meet of `since`, and no time changes in
//! a batch whose lower bound is beyond the floor (in a loop most are, whose rounds must stay apart for what may change
//! later). A stretch is copied as it lies where no time changes, and all but its times where each val has one update. Then
//! the output is sealed. One unit of fuel is about one update; a call goes beyond its fuel by no more than the updates of one
//! (key, val).
//!
//! In the order of reading: `output` (what any merge writes), `pair` with `words` and `woven` (two inputs, nearly all there are),
//! `many`.
//! Before: `spine`. Next stop: `layers`.
#![forbid(unsafe_code)]

mod many;
mod output;
mod pair;
mod words;
mod woven;

use self::many::Many;
use self::output::Input;
use self::pair::Pair;
use super::layers::{Layers, OrdBatch};
use super::{Batch, builder};
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::Columnar;
use std::sync::Arc;

/// A batch that a spine can hold: it can be merged with its neighbours.
pub trait MergeBatch: Batch {
    /// A merge under way.
    type Merger: Merge<Self>;
    /// Starts merging two or more adjacent batches, oldest first; times fold at `since`. Cost: O(1), save for memory.
    ///
    /// # Panics
    /// If there are none, or their bounds do not touch.
    fn begin_merge(inputs: &[Self], since: &Antichain<Self::Time>) -> Self::Merger;
    /// A batch without updates.
    fn empty(lower: Antichain<Self::Time>, upper: Antichain<Self::Time>) -> Self;
    /// Memory it keeps.
    fn bytes(&self) -> usize;
    /// Checks its invariants.
    ///
    /// # Panics
    /// If they do not hold.
    fn check_invariants(&self) {}
}

/// A batch that can be made of what an arrangement seals.
pub trait SealBatch: MergeBatch {
    /// The batch of `updates`, which are sorted by (key, val, time), consolidated, and within the bounds.
    fn seal(
        updates: Updates<(Self::Key, Self::Val), Self::Time, Self::Diff>,
        lower: Antichain<Self::Time>,
        upper: Antichain<Self::Time>,
    ) -> Self;
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> SealBatch for OrdBatch<K, V, T, R> {
    fn seal(updates: Updates<(K, V), T, R>, lower: Antichain<T>, upper: Antichain<T>) -> Self {
        super::builder::batch_from_sorted(updates, lower, upper)
    }
}

/// A merge under way. Dropped before it is done, it leaves no trace.
pub trait Merge<B>: 'static {
    /// Works until `fuel` is used up (it may go below zero, see the implementation) or the merge is done.
    fn work(&mut self, fuel: &mut isize);
    /// Whether it is done.
    fn is_done(&self) -> bool;
    /// Fuel that the rest needs, about.
    fn remaining(&self) -> usize;
    /// The merged batch.
    ///
    /// # Panics
    /// If it is not done.
    fn finish(self) -> B;
}

/// A merge of [`OrdBatch`]es.
pub struct Merger<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    lower: Antichain<T>,
    upper: Antichain<T>,
    work: Work<K, V, T, R>,
}

enum Work<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    /// An input that is the result as it stands, the others being empty.
    Whole(Arc<Layers<K, V, T, R>>),
    Pair(Box<Pair<K, V, T, R>>),
    Many(Box<Many<K, V, T, R>>),
}

/// What times are joined with for readers from `since` on, if there are any.
fn floor<T: Timestamp>(since: &Antichain<T>) -> Option<T> {
    since.elements().iter().copied().reduce(|a, b| a.meet(&b))
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> MergeBatch for OrdBatch<K, V, T, R> {
    type Merger = Merger<K, V, T, R>;

    fn begin_merge(inputs: &[Self], since: &Antichain<T>) -> Merger<K, V, T, R> {
        let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { panic!("a merge of nothing") };
        for two in inputs.windows(2) {
            assert!(two[0].upper() == two[1].lower(), "{:?} and {:?} are not adjacent", two[0], two[1]);
        }
        let full = || inputs.iter().filter(|batch| !batch.is_empty());
        let floor = floor(since);
        let input = |batch: &Self| Input::new(batch, floor);
        let mut firsts = full();
        let work = match [firsts.next(), firsts.next(), firsts.next()] {
            [None, ..] => Work::Whole(first.layers().clone()),
            [Some(one), None, _] => Work::Whole(one.layers().clone()),
            [Some(a), Some(b), None] => Work::Pair(Box::new(Pair::new([input(a), input(b)]))),
            _ => Work::Many(Box::new(Many::new(full().map(input).collect()))),
        };
        Merger { lower: first.lower().clone(), upper: last.upper().clone(), work }
    }
    fn empty(lower: Antichain<T>, upper: Antichain<T>) -> Self {
        builder::empty_batch(lower, upper)
    }
    fn bytes(&self) -> usize {
        self.layers().bytes()
    }
    fn check_invariants(&self) {
        OrdBatch::check_invariants(self);
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Merge<OrdBatch<K, V, T, R>> for Merger<K, V, T, R> {
    fn work(&mut self, fuel: &mut isize) {
        match &mut self.work {
            Work::Whole(_) => {}
            Work::Pair(pair) => pair.work(fuel),
            Work::Many(many) => many.work(fuel),
        }
    }
    fn is_done(&self) -> bool {
        match &self.work {
            Work::Whole(_) => true,
            Work::Pair(pair) => pair.output.is_sealed(),
            Work::Many(many) => many.output.is_sealed(),
        }
    }
    fn remaining(&self) -> usize {
        match &self.work {
            Work::Whole(_) => 0,
            Work::Pair(pair) => pair.remaining(),
            Work::Many(many) => many.remaining(),
        }
    }
    fn finish(self) -> OrdBatch<K, V, T, R> {
        assert!(self.is_done(), "a merge is finished once it is done");
        let layers = match self.work {
            Work::Whole(layers) => layers,
            Work::Pair(pair) => Arc::new(pair.output.layers),
            Work::Many(many) => Arc::new(many.output.layers),
        };
        OrdBatch::new(layers, self.lower, self.upper)
    }
}

#[cfg(test)]
mod tests;
