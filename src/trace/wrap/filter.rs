//! `filter`: only those (key, val) that a predicate admits. A key of which no val is admitted is not shown; to pass it
//! costs a look at each of its vals.
#![forbid(unsafe_code)]

use super::super::{Batch, Cursor, Ref, Trace};
use super::{pass_cursor, pass_registration};
use crate::order::Antichain;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// A cursor that shows what a predicate admits.
pub struct FilterCursor<'a, C, P> {
    inner: C,
    admits: &'a P,
}

impl<'a, C: Cursor<'a>, P: Fn(Ref<'_, C::Key>, Ref<'_, C::Val>) -> bool> FilterCursor<'a, C, P> {
    /// To the first admitted val from here on; whether there is one.
    fn find_val(&mut self) -> bool {
        let Some(key) = self.inner.key() else { return true };
        while let Some(val) = self.inner.val() {
            if (self.admits)(key, val) {
                return true;
            }
            self.inner.step_val();
        }
        false
    }
    /// To the first key from here on that has an admitted val, and that val.
    fn find_key(&mut self) {
        while !self.find_val() {
            self.inner.step_key();
        }
    }
}

impl<'a, C: Cursor<'a>, P: Fn(Ref<'_, C::Key>, Ref<'_, C::Val>) -> bool> Cursor<'a> for FilterCursor<'a, C, P> {
    type Key = C::Key;
    type Val = C::Val;
    type Time = C::Time;
    type Diff = C::Diff;

    pass_cursor!(key, val, time_count, position, val_position);
    fn step_key(&mut self) {
        self.inner.step_key();
        self.find_key();
    }
    fn seek_key(&mut self, key: Ref<'_, C::Key>) {
        self.inner.seek_key(key);
        self.find_key();
    }
    fn step_val(&mut self) {
        self.inner.step_val();
        self.find_val();
    }
    fn seek_val(&mut self, val: Ref<'_, C::Val>) {
        self.inner.seek_val(val);
        self.find_val();
    }
    fn rewind_vals(&mut self) {
        self.inner.rewind_vals();
        self.find_val();
    }
    #[inline]
    fn for_each_time_in(&mut self, range: Range<usize>, f: impl FnMut(C::Time, C::Diff)) {
        self.inner.for_each_time_in(range, f);
    }
    fn resume(&mut self, position: usize, val_position: usize) {
        self.inner.resume(position, val_position);
        // Past its first val a key is shown though no admitted val may follow: one came before, or nobody stood here.
        if val_position == 0 { self.find_key() } else { _ = self.find_val() }
    }
}

/// A batch that shows what a predicate admits.
pub struct FilterBatch<B, P> {
    inner: B,
    admits: Arc<P>,
}

impl<B: Batch, P: Fn(Ref<'_, B::Key>, Ref<'_, B::Val>) -> bool + 'static> FilterBatch<B, P> {
    /// A view of `inner`.
    pub fn new(inner: B, admits: Arc<P>) -> Self {
        FilterBatch { inner, admits }
    }
}

impl<B: Clone, P> Clone for FilterBatch<B, P> {
    fn clone(&self) -> Self {
        FilterBatch { inner: self.inner.clone(), admits: self.admits.clone() }
    }
}

impl<B: Batch, P: Fn(Ref<'_, B::Key>, Ref<'_, B::Val>) -> bool + 'static> Batch for FilterBatch<B, P> {
    type Key = B::Key;
    type Val = B::Val;
    type Time = B::Time;
    type Diff = B::Diff;
    type Cursor<'a> = FilterCursor<'a, B::Cursor<'a>, P>;

    fn cursor(&self) -> Self::Cursor<'_> {
        let mut cursor = FilterCursor { inner: self.inner.cursor(), admits: &*self.admits };
        cursor.find_key();
        cursor
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

/// A trace that shows what a predicate admits.
pub struct FilterTrace<Tr, P> {
    inner: Tr,
    admits: Arc<P>,
}

impl<Tr: Trace, P: Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> bool + 'static> FilterTrace<Tr, P> {
    /// A view of `inner`.
    pub fn new(inner: Tr, admits: Arc<P>) -> Self {
        FilterTrace { inner, admits }
    }
    /// A view of a batch that the trace's arrangement delivers.
    pub fn wrap(&self, batch: Tr::Batch) -> FilterBatch<Tr::Batch, P> {
        FilterBatch::new(batch, self.admits.clone())
    }
}

impl<Tr: Clone, P> Clone for FilterTrace<Tr, P> {
    fn clone(&self) -> Self {
        FilterTrace { inner: self.inner.clone(), admits: self.admits.clone() }
    }
}

impl<Tr: Trace, P: Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> bool + 'static> Trace for FilterTrace<Tr, P> {
    type Batch = FilterBatch<Tr::Batch, P>;
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
