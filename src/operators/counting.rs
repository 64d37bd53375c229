//! Threshold, distinct, count: functions of how often a datum is there.
#![forbid(unsafe_code)]

use super::arrange::ArrangedByKey;
use super::arranged::Arranged;
use super::collection::Collection;
use crate::order::{Abelian, Semigroup, Timestamp};
use crate::trace::{Ref, Trace};
use kpg_columnar::Columnar;

impl<'s, Tr: Trace<Val = ()>> Arranged<'s, Tr> {
    /// Each key as often as `f` says for how often it is there. Arranged: the result can be shared.
    pub fn threshold_arranged<R2: Abelian>(
        &self,
        name: &str,
        f: impl Fn(Ref<'_, Tr::Key>, Tr::Diff) -> R2 + 'static,
    ) -> ArrangedByKey<'s, Tr::Time, Tr::Key, (), R2> {
        self.reduce_named(name, move |key, vals, output| output.push(((), f(key, vals[0].1))))
    }

    /// Each key with its count, once. Arranged: the result can be shared.
    pub fn count_arranged(&self) -> ArrangedByKey<'s, Tr::Time, Tr::Key, Tr::Diff, i64> {
        self.reduce_named("count", |_, vals, output| output.push((vals[0].1, 1)))
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Semigroup> Collection<'s, T, D, R> {
    /// Each datum as often as `f` says for how often it is there; `f` is not asked for what is not there.
    ///
    /// Where times are totally ordered, the output is derived from the counts alone; else it is kept, to be compared with.
    pub fn threshold<R2: Abelian>(&self, f: impl Fn(D::Ref<'_>, R) -> R2 + 'static) -> Collection<'s, T, D, R2> {
        self.threshold_named("threshold", f)
    }

    fn threshold_named<R2: Abelian>(
        &self,
        name: &str,
        f: impl Fn(D::Ref<'_>, R) -> R2 + 'static,
    ) -> Collection<'s, T, D, R2> {
        let arranged = self.arrange_by_self();
        if const { T::TOTAL } {
            return arranged.map_counts(name, move |datum, count| {
                let diff = f(datum, count);
                (!diff.is_zero()).then(|| (<D as Columnar>::to_owned(datum), diff))
            });
        }
        arranged.threshold_arranged(name, f).as_collection(|datum, ()| <D as Columnar>::to_owned(datum)).consolidated()
    }

    /// Each datum that is there, with its count.
    pub fn count(&self) -> Collection<'s, T, (D, R), i64> {
        let arranged = self.arrange_by_self();
        if const { T::TOTAL } {
            return arranged.map_counts("count", |datum, count| Some(((<D as Columnar>::to_owned(datum), count), 1)));
        }
        let counts = arranged.count_arranged();
        counts.as_collection(|datum, count| (<D as Columnar>::to_owned(datum), count)).consolidated()
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Abelian + Ord + From<i8>> Collection<'s, T, D, R> {
    /// Each datum that is there more than zero times, once.
    pub fn distinct(&self) -> Self {
        self.threshold_named("distinct", |_, count: R| if count > R::zero() { R::from(1) } else { R::zero() })
    }
}
