//! Partial orders and lattices, apart from timestamps: laws are tested on other lattices too.
#![forbid(unsafe_code)]

/// A reflexive, antisymmetric, transitive relation.
///
/// Where a type is also `Ord`, that total order extends this one: `a.less_equal(b)` implies `a <= b`.
pub trait PartialOrder: Eq {
    /// Whether `self` is at or before `other`.
    fn less_equal(&self, other: &Self) -> bool;

    /// Whether `self` is strictly before `other`.
    #[inline]
    fn less_than(&self, other: &Self) -> bool {
        self.less_equal(other) && self != other
    }

    /// Whether all that is beyond `time` and, in the total order, at or after `self`, is beyond `self`.
    ///
    /// For `self` beyond `time`. It lets a search of sorted elements end early; `false` is never wrong.
    #[inline]
    fn closes(&self, time: &Self) -> bool {
        let _ = time;
        false
    }
}

/// A partial order in which any two elements have a least upper and a greatest lower bound.
///
/// Not assumed to be distributive.
pub trait Lattice: PartialOrder {
    /// The least upper bound.
    fn join(&self, other: &Self) -> Self;
    /// The greatest lower bound.
    fn meet(&self, other: &Self) -> Self;
}

macro_rules! total {
    ($($t:ty),*) => { $(
        impl PartialOrder for $t {
            #[inline]
            fn less_equal(&self, other: &Self) -> bool { self <= other }
            #[inline]
            fn less_than(&self, other: &Self) -> bool { self < other }
            #[inline]
            fn closes(&self, _: &Self) -> bool { true }
        }
        impl Lattice for $t {
            #[inline]
            fn join(&self, other: &Self) -> Self { *self.max(other) }
            #[inline]
            fn meet(&self, other: &Self) -> Self { *self.min(other) }
        }
    )* }
}
total!(u8, u16, u32, u64, ());
