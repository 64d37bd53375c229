//! Joins of collections that are not arranged: each side is arranged, by its key, and joined.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::Collection;
use crate::order::{Abelian, Multiply, Semigroup, Timestamp};
use crate::trace::Trace;
use kpg_columnar::Columnar;

impl<'s, T: Timestamp, K: Columnar, V: Columnar, R: Semigroup> Collection<'s, T, (K, V), R> {
    /// For each key, all pairs of a val here and a val there. Where a side is used again, arrange it once and use
    /// `join_core`.
    pub fn join<W: Columnar, R2: Semigroup>(
        &self,
        other: &Collection<'s, T, (K, W), R2>,
    ) -> Collection<'s, T, (K, (V, W)), <R as Multiply<R2>>::Output>
    where
        R: Multiply<R2>,
    {
        self.join_arranged(&other.arrange_by_key())
    }

    /// As `join`, with a side that is arranged already.
    pub fn join_arranged<Tr: Trace<Key = K, Time = T>>(
        &self,
        other: &Arranged<'s, Tr>,
    ) -> Collection<'s, T, (K, (V, Tr::Val)), <R as Multiply<Tr::Diff>>::Output>
    where
        R: Multiply<Tr::Diff>,
    {
        self.arrange_by_key().join_core(other, |key, val, other| {
            Some((K::to_owned(key), (V::to_owned(val), <Tr::Val as Columnar>::to_owned(other))))
        })
    }

    /// Those whose key is in `keys`, with the diffs multiplied: `keys` should be distinct.
    pub fn semijoin<R2: Semigroup>(
        &self,
        keys: &Collection<'s, T, K, R2>,
    ) -> Collection<'s, T, (K, V), <R as Multiply<R2>>::Output>
    where
        R: Multiply<R2>,
    {
        let keys = keys.arrange_by_self();
        self.arrange_by_key().join_core(&keys, |key, val, ()| Some((K::to_owned(key), V::to_owned(val))))
    }

    /// Those whose key is not in `keys`, which should be distinct.
    pub fn antijoin<R2: Semigroup>(&self, keys: &Collection<'s, T, K, R2>) -> Self
    where
        R: Abelian + Multiply<R2, Output = R>,
    {
        self.concat(&self.semijoin(keys).negate())
    }
}
