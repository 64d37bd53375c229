//! `negate`: each diff negated. A diff whose negative does not fit ends the query that reads it (`DiffOverflow`).
#![forbid(unsafe_code)]

use super::super::{Batch, Cursor, Ref, Trace};
use super::{pass_cursor, pass_registration};
use crate::order::{Abelian, Antichain, DiffOverflow};
use std::ops::Range;
use std::rc::Rc;

/// A cursor whose diffs are negated.
pub struct NegateCursor<C> {
    inner: C,
}

impl<'a, C: Cursor<'a, Diff: Abelian>> Cursor<'a> for NegateCursor<C> {
    type Key = C::Key;
    type Val = C::Val;
    type Time = C::Time;
    type Diff = C::Diff;

    pass_cursor!(key, val, step_key, seek_key, step_val, seek_val, rewind_vals);
    pass_cursor!(time_count, position, val_position, resume);
    #[inline]
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(C::Time, C::Diff)) {
        self.inner.for_each_time_in(range, |t, r| f(t, r.negate().unwrap_or_else(|| DiffOverflow::raise())));
    }
}

/// A batch whose diffs are negated.
#[derive(Clone)]
pub struct NegateBatch<B> {
    inner: B,
}

impl<B: Batch<Diff: Abelian>> NegateBatch<B> {
    /// A view of `inner`.
    pub fn new(inner: B) -> Self {
        NegateBatch { inner }
    }
}

impl<B: Batch<Diff: Abelian>> Batch for NegateBatch<B> {
    type Key = B::Key;
    type Val = B::Val;
    type Time = B::Time;
    type Diff = B::Diff;
    type Cursor<'a> = NegateCursor<B::Cursor<'a>>;

    fn cursor(&self) -> Self::Cursor<'_> {
        NegateCursor { inner: self.inner.cursor() }
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

/// A trace whose diffs are negated.
#[derive(Clone)]
pub struct NegateTrace<Tr> {
    inner: Tr,
}

impl<Tr: Trace<Diff: Abelian>> NegateTrace<Tr> {
    /// A view of `inner`.
    pub fn new(inner: Tr) -> Self {
        NegateTrace { inner }
    }
    /// A view of a batch that the trace's arrangement delivers.
    pub fn wrap(&self, batch: Tr::Batch) -> NegateBatch<Tr::Batch> {
        NegateBatch::new(batch)
    }
}

impl<Tr: Trace<Diff: Abelian>> Trace for NegateTrace<Tr> {
    type Batch = NegateBatch<Tr::Batch>;
    type Key = Tr::Key;
    type Val = Tr::Val;
    type Time = Tr::Time;
    type Diff = Tr::Diff;

    pass_registration!();
    fn batches_through(&self, upper: &Antichain<Tr::Time>) -> Option<Vec<Self::Batch>> {
        Some(self.inner.batches_through(upper)?.into_iter().map(NegateBatch::new).collect())
    }
    fn batches(&self) -> (Vec<Self::Batch>, Antichain<Tr::Time>) {
        let (batches, upper) = self.inner.batches();
        (batches.into_iter().map(NegateBatch::new).collect(), upper)
    }
}
