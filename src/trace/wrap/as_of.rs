//! `as_of`: a trace as of one time F, each time joined with it. Bounds stay the source's own, so that times may lie
//! beyond the upper, unsorted and not consolidated.
#![forbid(unsafe_code)]

use super::super::{Batch, Cursor, Ref, Trace};
use super::{pass_cursor, pass_registration};
use crate::order::{Antichain, Lattice, Semigroup};
use std::cell::OnceCell;
use std::ops::Range;
use std::rc::Rc;

/// A cursor whose times are joined with one time.
pub struct AsOfCursor<C, T> {
    inner: C,
    time: T,
}

impl<'a, C: Cursor<'a>> Cursor<'a> for AsOfCursor<C, C::Time> {
    type Key = C::Key;
    type Val = C::Val;
    type Time = C::Time;
    type Diff = C::Diff;

    pass_cursor!(key, val, step_key, seek_key, step_val, seek_val, rewind_vals);
    pass_cursor!(time_count, position, val_position, resume);
    #[inline]
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(C::Time, C::Diff)) {
        let time = self.time;
        self.inner.for_each_time_in(range, |t, r| f(t.join(&time), r));
    }
}

/// A batch whose times are joined with one time.
#[derive(Clone)]
pub struct AsOfBatch<B: Batch> {
    inner: B,
    time: B::Time,
}

impl<B: Batch> AsOfBatch<B> {
    /// A view of `inner` as of `time`.
    pub fn new(inner: B, time: B::Time) -> Self {
        AsOfBatch { inner, time }
    }
}

impl<B: Batch> Batch for AsOfBatch<B> {
    type Key = B::Key;
    type Val = B::Val;
    type Time = B::Time;
    type Diff = B::Diff;
    type Cursor<'a> = AsOfCursor<B::Cursor<'a>, B::Time>;

    fn cursor(&self) -> Self::Cursor<'_> {
        AsOfCursor { inner: self.inner.cursor(), time: self.time }
    }
    fn sum_keys(&self, keys: &[Ref<'_, B::Key>], most: usize, sums: &mut [<B::Diff as Semigroup>::Sum]) -> bool {
        self.inner.sum_keys(keys, most, sums)
    }
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn lower(&self) -> &Antichain<B::Time> {
        self.inner.lower()
    }
    fn upper(&self) -> &Antichain<B::Time> {
        self.inner.upper()
    }
}

/// A trace whose times are joined with one time, which may become known after the trace was made, but before it is read.
#[derive(Clone)]
pub struct AsOfTrace<Tr: Trace> {
    inner: Tr,
    time: Rc<OnceCell<Tr::Time>>,
}

impl<Tr: Trace> AsOfTrace<Tr> {
    /// A view of `inner` as of `time`.
    pub fn new(inner: Tr, time: Tr::Time) -> Self {
        AsOfTrace { inner, time: Rc::new(OnceCell::from(time)) }
    }
    /// A view of `inner` as of a time that is set before the first read.
    pub fn pending(inner: Tr, time: Rc<OnceCell<Tr::Time>>) -> Self {
        AsOfTrace { inner, time }
    }
    /// A view of a batch that the trace's arrangement delivers.
    pub fn wrap(&self, batch: Tr::Batch) -> AsOfBatch<Tr::Batch> {
        AsOfBatch::new(batch, *self.time.get().expect("the time is set before the first read"))
    }
    /// The trace viewed.
    pub fn inner(&self) -> &Tr {
        &self.inner
    }
}

impl<Tr: Trace> Trace for AsOfTrace<Tr> {
    type Batch = AsOfBatch<Tr::Batch>;
    type Key = Tr::Key;
    type Val = Tr::Val;
    type Time = Tr::Time;
    type Diff = Tr::Diff;

    pass_registration!();
    fn batches_through(&self, upper: &Antichain<Tr::Time>) -> Option<Vec<Self::Batch>> {
        Some(self.inner.batches_through(upper)?.into_iter().map(|b| self.wrap(b)).collect())
    }
    fn batches(&self) -> (Vec<Self::Batch>, Antichain<Tr::Time>) {
        let (batches, upper) = self.inner.batches();
        (batches.into_iter().map(|b| self.wrap(b)).collect(), upper)
    }
}
