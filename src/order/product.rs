//! Two ways to put two times together, both ordered by coordinates: [`Product`] for loops, [`Pair`] for users.
#![forbid(unsafe_code)]

use super::{Lattice, PartialOrder, Timestamp};

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

        kpg_columnar::plain_struct_column! {
            /// The column of the time of the same name: one column a part.
            pub struct $column for $name<A, B> { $a: A, $b: B }
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
