//! `enter`: a trace as a loop inside its scope sees it, each time with round 0.
#![forbid(unsafe_code)]

use super::super::{Batch, Cursor, Ref, Trace};
use super::pass_cursor;
use crate::order::{Antichain, Product, Semigroup, Timestamp};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A frontier with round 0 appended.
fn enter<T: Timestamp>(outer: &Antichain<T>) -> Antichain<Product<T, u32>> {
    outer.elements().iter().map(|t| Product::new(*t, 0)).collect()
}
/// A frontier without its rounds: at or before it once entered again.
fn leave<T: Timestamp>(inner: &Antichain<Product<T, u32>>) -> Antichain<T> {
    inner.elements().iter().map(|t| t.outer).collect()
}

/// A cursor whose times have round 0 appended.
pub struct EnterCursor<C> {
    inner: C,
}

impl<'a, C: Cursor<'a>> Cursor<'a> for EnterCursor<C> {
    type Key = C::Key;
    type Val = C::Val;
    type Time = Product<C::Time, u32>;
    type Diff = C::Diff;

    pass_cursor!(key, val, step_key, seek_key, step_val, seek_val, rewind_vals);
    pass_cursor!(time_count, position, val_position, resume);
    #[inline]
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(Self::Time, Self::Diff)) {
        self.inner.for_each_time_in(range, |t, r| f(Product::new(t, 0), r));
    }
}

type Bounds<T> = [Antichain<Product<T, u32>>; 2];

/// A batch whose times and bounds have round 0 appended.
pub struct EnterBatch<B: Batch> {
    inner: B,
    bounds: Arc<Bounds<B::Time>>,
}

impl<B: Batch> EnterBatch<B> {
    /// A view of `inner`.
    pub fn new(inner: B) -> Self {
        let bounds = Arc::new([enter(inner.lower()), enter(inner.upper())]);
        EnterBatch { inner, bounds }
    }
}

impl<B: Batch> Clone for EnterBatch<B> {
    fn clone(&self) -> Self {
        EnterBatch { inner: self.inner.clone(), bounds: self.bounds.clone() }
    }
}

impl<B: Batch> Batch for EnterBatch<B> {
    type Key = B::Key;
    type Val = B::Val;
    type Time = Product<B::Time, u32>;
    type Diff = B::Diff;
    type Cursor<'a> = EnterCursor<B::Cursor<'a>>;

    fn cursor(&self) -> Self::Cursor<'_> {
        EnterCursor { inner: self.inner.cursor() }
    }
    fn sum_keys(&self, keys: &[Ref<'_, B::Key>], most: usize, sums: &mut [<B::Diff as Semigroup>::Sum]) -> bool {
        self.inner.sum_keys(keys, most, sums)
    }
    fn only_time(&self) -> Option<Self::Time> {
        self.inner.only_time().map(|time| Product::new(time, 0))
    }
    fn len(&self) -> usize {
        self.inner.len()
    }
    fn lower(&self) -> &Antichain<Self::Time> {
        &self.bounds[0]
    }
    fn upper(&self) -> &Antichain<Self::Time> {
        &self.bounds[1]
    }
}

/// A trace whose times have round 0 appended. A `since` or cut is passed on without its rounds.
#[derive(Clone)]
pub struct EnterTrace<Tr: Trace> {
    inner: Tr,
}

impl<Tr: Trace> EnterTrace<Tr> {
    /// A view of `inner`.
    pub fn new(inner: Tr) -> Self {
        EnterTrace { inner }
    }
    /// The trace viewed.
    pub fn inner(&self) -> &Tr {
        &self.inner
    }
    /// A view of a batch that the trace's arrangement delivers.
    pub fn wrap(&self, batch: Tr::Batch) -> EnterBatch<Tr::Batch> {
        EnterBatch::new(batch)
    }
}

impl<Tr: Trace> Trace for EnterTrace<Tr> {
    type Batch = EnterBatch<Tr::Batch>;
    type Key = Tr::Key;
    type Val = Tr::Val;
    type Time = Product<Tr::Time, u32>;
    type Diff = Tr::Diff;

    fn set_since(&mut self, since: &Antichain<Self::Time>) {
        self.inner.set_since(&leave(since));
    }
    fn bind_since(&mut self, frontier: Rc<dyn Fn() -> Antichain<Self::Time>>) {
        self.inner.bind_since(Rc::new(move || leave(&frontier())));
    }
    fn set_cut(&mut self, cut: &Antichain<Self::Time>) {
        self.inner.set_cut(&leave(cut));
    }
    fn batches_through(&self, upper: &Antichain<Self::Time>) -> Option<Vec<Self::Batch>> {
        // A bound of the view is an entered one.
        if upper.elements().iter().any(|t| t.inner != 0) {
            return None;
        }
        Some(self.inner.batches_through(&leave(upper))?.into_iter().map(EnterBatch::new).collect())
    }
    fn batches(&self) -> (Vec<Self::Batch>, Antichain<Self::Time>) {
        let (batches, upper) = self.inner.batches();
        (batches.into_iter().map(EnterBatch::new).collect(), enter(&upper))
    }
}
