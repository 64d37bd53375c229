//! The layers of a trace as traits: cursor, batch, trace. Operators know only these.
//!
//! ```text
//! Trace  ── batches_through(upper) ──▶ Vec<Batch> ── cursor() ──▶ Cursor   keys ▷ vals ▷ (time, diff)
//! ```
//! Each can be replaced without touching the others: a wrapper of one layer (enter, filter, negate, a view as of a
//! time) wraps the layers below it and copies nothing.
#![forbid(unsafe_code)]

use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::Columnar;
use std::ops::Range;

/// How a value of `C` is read from storage that lives for `'a`.
pub type Ref<'a, C> = <C as Columnar>::Ref<'a>;

/// A position in a batch: at a key, and at one of its vals.
///
/// Keys ascend, and for each key its vals ascend; both are distinct within a batch. What a cursor shows lives as
/// long as the batch, not as the cursor.
pub trait Cursor<'a> {
    /// The keys' type.
    type Key: Columnar;
    /// The vals' type.
    type Val: Columnar;
    /// The times' type.
    type Time: Timestamp;
    /// The diffs' type.
    type Diff: Semigroup;

    /// The current key, or nothing past the last.
    fn key(&self) -> Option<Ref<'a, Self::Key>>;
    /// The current val of the current key, or nothing past its last.
    fn val(&self) -> Option<Ref<'a, Self::Val>>;
    /// To the next key, and its first val.
    fn step_key(&mut self);
    /// Gallops forward to the first key at or after `key`, and to its first val, also if it is there already and has
    /// passed some. Never moves back to an earlier key.
    fn seek_key(&mut self, key: Ref<'_, Self::Key>);
    /// As `seek_key`; true iff `key` is there. Where it is not, which val it is at is open until it moves to another key.
    #[inline]
    fn seek_key_exact(&mut self, key: Ref<'_, Self::Key>) -> bool {
        self.seek_key(Self::Key::reborrow(key));
        self.key().is_some_and(|at| Self::Key::reborrow(at) == Self::Key::reborrow(key))
    }
    /// To the next val of this key.
    fn step_val(&mut self);
    /// Gallops forward to the first val of this key at or after `val`. Never moves back.
    fn seek_val(&mut self, val: Ref<'_, Self::Val>);
    /// Back to the first val of this key.
    fn rewind_vals(&mut self);
    /// Each update of the current (key, val), in no order of times that a reader may rely on: a view may show times
    /// that are unsorted and not consolidated.
    #[inline]
    fn for_each_time(&mut self, f: impl FnMut(Self::Time, Self::Diff)) {
        self.for_each_time_in(0..usize::MAX, f);
    }
    /// How many updates `for_each_time` shows. Cost: as little as finding them.
    fn time_count(&self) -> usize;
    /// Those of the updates that `for_each_time` shows whose numbers, in its order, are in `range`. Does not look at the
    /// others: who stops within a (key, val) comes back at no cost.
    fn for_each_time_in(&mut self, range: Range<usize>, f: impl FnMut(Self::Time, Self::Diff));
    /// How many keys (of the stored batch, filtered ones too) lie before the current one: for `set_position`.
    fn position(&self) -> usize;
    /// How many vals of the current key (stored ones, filtered ones too) lie before the current one: for `resume`.
    fn val_position(&self) -> usize;
    /// To the key at a position that `position` gave, or the first that is shown after it. May move back.
    fn set_position(&mut self, position: usize) {
        self.resume(position, 0);
    }
    /// Where a cursor of this batch stood when it gave `position` and `val_position`, also if that was past the last val.
    /// May move back. Cost: none to speak of in a stored batch, however many vals lie before.
    fn resume(&mut self, position: usize, val_position: usize);
}

/// An immutable, sorted, indexed set of updates; a clone shares it.
pub trait Batch: Clone + 'static {
    /// The keys' type.
    type Key: Columnar;
    /// The vals' type.
    type Val: Columnar;
    /// The times' type.
    type Time: Timestamp;
    /// The diffs' type.
    type Diff: Semigroup;
    /// A position in it.
    type Cursor<'a>: Cursor<'a, Key = Self::Key, Val = Self::Val, Time = Self::Time, Diff = Self::Diff>
    where
        Self: 'a;

    /// A cursor at the first key.
    fn cursor(&self) -> Self::Cursor<'_>;
    /// Adds to each of `sums` the diffs of its key, whatever their vals and times; `keys` ascend. False, if a (key, val) has
    /// more than `most` updates: then `sums` are worth nothing, and a cursor is to go through that key in slices.
    ///
    /// Cost: a seek a key. A batch that can looks for many keys at once.
    fn sum_keys(&self, keys: &[Ref<'_, Self::Key>], most: usize, sums: &mut [<Self::Diff as Semigroup>::Sum]) -> bool {
        let mut cursor = self.cursor();
        for (key, sum) in keys.iter().zip(sums) {
            cursor.seek_key(*key);
            if cursor.key().is_none_or(|found| Self::Key::reborrow(found) != Self::Key::reborrow(*key)) {
                continue;
            }
            while cursor.val().is_some() {
                if cursor.time_count() > most {
                    return false;
                }
                cursor.for_each_time(|_, diff| diff.add_to(sum));
                cursor.step_val();
            }
        }
        true
    }
    /// The one time that all updates have, if that is known without looking at each.
    fn only_time(&self) -> Option<Self::Time> {
        None
    }
    /// Number of stored updates (an upper bound, where a view hides some).
    fn len(&self) -> usize;
    /// True iff there is no update.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Every time is beyond this frontier.
    fn lower(&self) -> &Antichain<Self::Time>;
    /// No time is beyond this frontier (in a stored batch; a view may hold later ones).
    fn upper(&self) -> &Antichain<Self::Time>;
}

/// A reader's registration with the batches of one arrangement on this worker. A clone registers anew, with the same
/// `since` and cut; dropping one releases them.
pub trait Trace: Clone + 'static {
    /// The batches' type.
    type Batch: Batch<Key = Self::Key, Val = Self::Val, Time = Self::Time, Diff = Self::Diff>;
    /// The keys' type.
    type Key: Columnar;
    /// The vals' type.
    type Val: Columnar;
    /// The times' type.
    type Time: Timestamp;
    /// The diffs' type.
    type Diff: Semigroup;

    /// This reader accumulates only at times beyond `since` from now on. Empty: it reads no more.
    fn set_since(&mut self, since: &Antichain<Self::Time>);
    /// Binds this reader's `since` to a frontier that is read when it is needed, so that nobody has to push it.
    /// It must not go back.
    fn bind_since(&mut self, frontier: std::rc::Rc<dyn Fn() -> Antichain<Self::Time>>);
    /// This reader splits the batch list only at frontiers beyond `cut` from now on. Empty: it takes whole lists only.
    fn set_cut(&mut self, cut: &Antichain<Self::Time>);
    /// The batches up to `upper`, which must be a bound that this reader's cut keeps; oldest first. Nothing, if no
    /// batch ends there.
    fn batches_through(&self, upper: &Antichain<Self::Time>) -> Option<Vec<Self::Batch>>;
    /// All batches, and the last one's upper bound (the minimum, if there is none).
    fn batches(&self) -> (Vec<Self::Batch>, Antichain<Self::Time>);
}

/// What an arrangement sends when it mints a batch: usually one batch; an import's history in one go.
#[derive(Clone, Debug)]
pub struct Delivery<B> {
    /// Adjacent batches, oldest first.
    pub batches: std::sync::Arc<[B]>,
}
