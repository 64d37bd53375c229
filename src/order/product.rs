//! Two ways to put two times together, both ordered by coordinates: [`Product`] for loops, [`Pair`] for users.
#![forbid(unsafe_code)]

use super::{Lattice, PartialOrder, Timestamp};
use kpg_columnar::{Column, Columnar};

macro_rules! two {
    ($(#[$doc:meta])* $name:ident, $column:ident, $a:ident, $b:ident) => {
        $(#[$doc])*
        #[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
        pub struct $name<A, B> {
            /// The first coordinates.
            pub $a: A,
            /// The last coordinates.
            pub $b: B,
        }

        impl<A, B> $name<A, B> {
            /// Both parts.
            pub fn new($a: A, $b: B) -> Self {
                $name { $a, $b }
            }
        }

        impl<A: PartialOrder, B: PartialOrder> PartialOrder for $name<A, B> {
            #[inline]
            fn less_equal(&self, other: &Self) -> bool {
                self.$a.less_equal(&other.$a) && self.$b.less_equal(&other.$b)
            }
        }

        impl<A: Lattice, B: Lattice> Lattice for $name<A, B> {
            #[inline]
            fn join(&self, other: &Self) -> Self {
                $name { $a: self.$a.join(&other.$a), $b: self.$b.join(&other.$b) }
            }
            #[inline]
            fn meet(&self, other: &Self) -> Self {
                $name { $a: self.$a.meet(&other.$a), $b: self.$b.meet(&other.$b) }
            }
        }

        impl<A: Timestamp, B: Timestamp> Timestamp for $name<A, B> {
            const COORDINATES: usize = A::COORDINATES + B::COORDINATES;
            const TOTAL: bool = (A::TOTAL && B::COORDINATES == 0) || (B::TOTAL && A::COORDINATES == 0);
            #[inline]
            fn write(&self, out: &mut [u64]) {
                self.$a.write(out);
                self.$b.write(&mut out[A::COORDINATES..]);
            }
            #[inline]
            fn read(coords: &[u64]) -> Self {
                $name { $a: A::read(coords), $b: B::read(&coords[A::COORDINATES..]) }
            }
            fn write_maxima(out: &mut [u64]) {
                A::write_maxima(out);
                B::write_maxima(&mut out[A::COORDINATES..]);
            }
        }

        /// The column of the time of the same name: one column a part.
        #[derive(Default, Debug)]
        pub struct $column<A, B> {
            $a: A,
            $b: B,
        }

        impl<A: Timestamp, B: Timestamp> Columnar for $name<A, B> {
            type Ref<'a> = Self;
            type Column = $column<A::Column, B::Column>;
            #[inline]
            fn borrow(&self) -> Self {
                *self
            }
            #[inline]
            fn to_owned(value: Self) -> Self {
                value
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: Self) -> Self {
                value
            }
            fn hash(value: Self) -> u64 {
                <(u64, u64) as Columnar>::hash((<A as Columnar>::hash(value.$a), <B as Columnar>::hash(value.$b)))
            }
        }

        impl<A: Column, B: Column> Column for $column<A, B>
        where
            A::Owned: Timestamp,
            B::Owned: Timestamp,
        {
            type Owned = $name<A::Owned, B::Owned>;
            const PREFIX_EXACT: bool = false;
            #[inline]
            fn len(&self) -> usize {
                self.$a.len()
            }
            #[inline]
            fn get(&self, index: usize) -> Self::Owned {
                $name { $a: self.$a.get(index), $b: self.$b.get(index) }
            }
            #[inline]
            fn push(&mut self, value: Self::Owned) {
                self.$a.push(value.$a);
                self.$b.push(value.$b);
            }
            fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
                self.$a.extend_from(&other.$a, lower, upper);
                self.$b.extend_from(&other.$b, lower, upper);
            }
            fn clear(&mut self) {
                self.$a.clear();
                self.$b.clear();
            }
            fn reserve(&mut self, additional: usize) {
                self.$a.reserve(additional);
                self.$b.reserve(additional);
            }
            fn seal(&mut self) {
                self.$a.seal();
                self.$b.seal();
            }
            fn bytes(&self) -> usize {
                self.$a.bytes() + self.$b.bytes()
            }
            fn prefix(&self, index: usize) -> u64 {
                self.$a.prefix(index)
            }
        }
    };
}

two!(
    /// A time inside a loop: the time outside and the counter of rounds.
    Product, ProductColumn, outer, inner
);
two!(
    /// Two independent times of one user, such as event time and system time.
    Pair, PairColumn, first, second
);
