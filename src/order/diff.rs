//! What diffs can do: add up, vanish, be negated, be multiplied.
//!
//! Sums run in a wider type (`Sum`, 128 bits for `i64`) and must fit when stored, so that a stored or delivered
//! value is never wrapped: a merge that cannot store a sum leaves its updates apart, a reader gets [`DiffOverflow`].
#![forbid(unsafe_code)]

use kpg_columnar::Columnar;
use std::fmt;

/// A sum or product that its type cannot hold.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct DiffOverflow;

impl fmt::Display for DiffOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a diff grew beyond its type: use a wider diff, or consolidate what multiplies it")
    }
}
impl std::error::Error for DiffOverflow {}

impl DiffOverflow {
    /// Unwinds to the node that runs, which ends its query with this error; no panic hook is run.
    #[cold]
    pub fn raise() -> ! {
        std::panic::resume_unwind(Box::new(DiffOverflow))
    }
}

/// A diff: values that can be added.
pub trait Semigroup: for<'a> Columnar<Ref<'a> = Self> + Copy {
    /// The type that sums run in; its default is the empty sum.
    type Sum: Copy + Default + Send + fmt::Debug + 'static;
    /// Where diffs are integers in a column of integers, and their sum is that of the numbers: the key
    /// ([`Int::key`](crate::columnar::Int::key)) of zero, which is half of how many keys there are. Then sums of two are made of keys.
    const ZERO_KEY: Option<u64> = None;
    /// Adds this diff to a sum. At least 2^63 diffs can be added before a sum is checked.
    fn add_to(self, sum: &mut Self::Sum);
    /// The sum as a diff, or nothing if it does not fit.
    fn from_sum(sum: Self::Sum) -> Option<Self>;
    /// Whether updates with this sum vanish.
    fn sum_is_zero(sum: &Self::Sum) -> bool;

    /// Whether updates with this diff vanish.
    #[inline]
    fn is_zero(self) -> bool {
        let mut sum = Self::Sum::default();
        self.add_to(&mut sum);
        Self::sum_is_zero(&sum)
    }
}

/// A semigroup with a neutral element.
pub trait Monoid: Semigroup {
    /// The neutral element.
    fn zero() -> Self;
}

/// A monoid with inverses.
pub trait Abelian: Monoid {
    /// The inverse, or nothing if it does not fit.
    fn negate(self) -> Option<Self>;
}

/// Multiplication, as a join does: distributes over addition.
pub trait Multiply<R> {
    /// The product's type.
    type Output: Semigroup;
    /// The product, or nothing if it does not fit.
    fn multiply(self, other: R) -> Option<Self::Output>;
}

macro_rules! signed {
    ($($t:ty),*) => { $(
        impl Semigroup for $t {
            type Sum = i128;
            const ZERO_KEY: Option<u64> = Some(1 << (<$t>::BITS - 1));
            #[inline]
            fn add_to(self, sum: &mut i128) { *sum += i128::from(self); }
            #[inline]
            fn from_sum(sum: i128) -> Option<Self> { Self::try_from(sum).ok() }
            #[inline]
            fn sum_is_zero(sum: &i128) -> bool { *sum == 0 }
            #[inline]
            fn is_zero(self) -> bool { self == 0 }
        }
        impl Monoid for $t {
            fn zero() -> Self { 0 }
        }
        impl Abelian for $t {
            #[inline]
            fn negate(self) -> Option<Self> { self.checked_neg() }
        }
        impl Multiply<$t> for $t {
            type Output = $t;
            #[inline]
            fn multiply(self, other: $t) -> Option<$t> { self.checked_mul(other) }
        }
    )* }
}
signed!(i32, i64);

macro_rules! tuple {
    ($($name:ident $index:tt),*) => {
        impl<$($name: Semigroup),*> Semigroup for ($($name,)*) {
            type Sum = ($($name::Sum,)*);
            #[inline]
            fn add_to(self, sum: &mut Self::Sum) { $( self.$index.add_to(&mut sum.$index); )* }
            #[inline]
            fn from_sum(sum: Self::Sum) -> Option<Self> { Some(($($name::from_sum(sum.$index)?,)*)) }
            #[inline]
            fn sum_is_zero(sum: &Self::Sum) -> bool { $( $name::sum_is_zero(&sum.$index) )&&* }
        }
        impl<$($name: Monoid),*> Monoid for ($($name,)*) {
            fn zero() -> Self { ($($name::zero(),)*) }
        }
        impl<$($name: Abelian),*> Abelian for ($($name,)*) {
            fn negate(self) -> Option<Self> { Some(($(self.$index.negate()?,)*)) }
        }
        impl<$($name: Semigroup + Multiply<i64>),*> Multiply<i64> for ($($name,)*) {
            type Output = ($($name::Output,)*);
            fn multiply(self, other: i64) -> Option<Self::Output> { Some(($(self.$index.multiply(other)?,)*)) }
        }
    };
}
tuple!(A 0, B 1);
