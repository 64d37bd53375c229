//! Building a batch from updates that come sorted. Before: `batcher`. Next stop: `layers`.
#![forbid(unsafe_code)]

use super::Ref;
use super::compare::compare;
use super::consolidate::is_consolidated;
use super::layers::{Layers, OrdBatch};
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Offsets};
use std::sync::Arc;

/// Builds an [`OrdBatch`] from updates in the order of (key, val, time), already summed up.
///
/// Either `push` whole updates, or, cheaper, `update` for each time of a val, then `val`, then `key`; a val without
/// updates and a key without vals leave no trace.
pub struct Builder<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    layers: Layers<K, V, T, R>,
    // Of the last `push`, not yet ended.
    open: Option<(K, V)>,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Default for Builder<K, V, T, R> {
    fn default() -> Self {
        Builder { layers: Layers::default(), open: None }
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Builder<K, V, T, R> {
    /// An empty builder.
    pub fn new() -> Self {
        Self::default()
    }
    /// Number of updates so far.
    pub fn len(&self) -> usize {
        self.layers.len()
    }
    /// True iff there is no update.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
    /// Appends an update.
    pub fn push(&mut self, key: Ref<'_, K>, val: Ref<'_, V>, time: T, diff: R) {
        let same_key = self.open.as_ref().is_some_and(|(k, _)| compare::<K>(k.borrow(), key).is_eq());
        let same_val = same_key && self.open.as_ref().is_some_and(|(_, v)| compare::<V>(v.borrow(), val).is_eq());
        if !same_val {
            if let Some((k, v)) = self.open.take() {
                debug_assert!(compare::<K>(k.borrow(), key).then(compare::<V>(v.borrow(), val)).is_lt(), "sorted");
                self.layers.end_val(v.borrow());
                if !same_key {
                    self.layers.end_key(k.borrow());
                }
            }
            self.open = Some((K::to_owned(key), V::to_owned(val)));
        }
        self.layers.push_update(time, diff);
    }
    /// Appends an update of the val that `val` is next told.
    #[inline]
    pub fn update(&mut self, time: T, diff: R) {
        self.layers.push_update(time, diff);
    }
    /// Ends a val of the key that `key` is next told.
    #[inline]
    pub fn val(&mut self, val: Ref<'_, V>) {
        self.layers.end_val(val);
    }
    /// Ends a key.
    #[inline]
    pub fn key(&mut self, key: Ref<'_, K>) {
        self.layers.end_key(key);
    }
    /// The batch between `lower` and `upper`.
    pub fn finish(mut self, lower: Antichain<T>, upper: Antichain<T>) -> OrdBatch<K, V, T, R> {
        if let Some((key, val)) = self.open.take() {
            self.layers.end_val(val.borrow());
            self.layers.end_key(key.borrow());
        }
        self.layers.seal();
        OrdBatch::new(Arc::new(self.layers), lower, upper)
    }
}

/// The batch of `updates`, which must be sorted by (key, val, time) and summed up, as a batcher's seal gives them.
/// Times and diffs are taken over as they lie.
pub fn batch_from_sorted<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    updates: Updates<(K, V), T, R>,
    lower: Antichain<T>,
    upper: Antichain<T>,
) -> OrdBatch<K, V, T, R> {
    debug_assert!(is_consolidated(&updates), "updates must be sorted and summed up");
    let Updates { data, times, diffs } = updates;
    let (keys, vals) = (data.0, data.1);
    let mut layers = Layers::<K, V, T, R>::default();
    let len = times.len();
    if keys.ascends(0, len) {
        // The common case of few updates over many keys.
        let ends = || Offsets::of_lists(len, 1);
        (layers.keys, layers.key_ends, layers.vals, layers.val_ends) = (keys, ends(), vals, ends());
        (layers.times, layers.diffs) = (times, diffs);
        layers.seal();
        return OrdBatch::new(Arc::new(layers), lower, upper);
    }
    // Ends of (key, val) among updates, and of keys among (key, val).
    let (mut pairs, mut singles) = (0, 0);
    for index in 1..=times.len() {
        let end = index == times.len();
        let key_ends = end || keys.get(index - 1) != keys.get(index);
        if key_ends || vals.get(index - 1) != vals.get(index) {
            layers.val_ends.push(index);
            pairs += 1;
        }
        if key_ends {
            layers.key_ends.push(pairs);
            singles += 1;
        }
    }
    // Where each has one, the columns are taken over as they lie too.
    let updates = |pair: usize| layers.val_ends.start(pair);
    if singles == times.len() {
        layers.keys = keys;
    } else {
        layers.keys.reserve(singles);
        (0..singles).for_each(|key| layers.keys.push(keys.get(updates(layers.key_ends.start(key)))));
    }
    if pairs == times.len() {
        layers.vals = vals;
    } else {
        layers.vals.reserve(pairs);
        (0..pairs).for_each(|pair| layers.vals.push(vals.get(updates(pair))));
    }
    layers.times = times;
    layers.diffs = diffs;
    layers.seal();
    OrdBatch::new(Arc::new(layers), lower, upper)
}

/// A batch without updates.
pub fn empty_batch<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    lower: Antichain<T>,
    upper: Antichain<T>,
) -> OrdBatch<K, V, T, R> {
    OrdBatch::new(Arc::new(Layers::default()), lower, upper)
}
