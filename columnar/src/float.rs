//! Floats with a total order: IEEE 754 `totalOrder`, as `total_cmp`.
//!
//! `-NaN < -inf < … < -0.0 < 0.0 < … < inf < NaN`; equal means the same bits. The key flips all bits of a
//! negative number and the sign bit of another.
use crate::int::Int;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

macro_rules! total {
    ($(#[$doc:meta])* $name:ident, $float:ty, $bits:ty, $signed:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $name(pub $float);

        impl PartialEq for $name {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                self.0.to_bits() == other.0.to_bits()
            }
        }
        impl Eq for $name {}
        impl PartialOrd for $name {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            #[inline]
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.total_cmp(&other.0)
            }
        }
        impl Hash for $name {
            fn hash<H: Hasher>(&self, state: &mut H) {
                self.0.to_bits().hash(state);
            }
        }
        impl From<$float> for $name {
            fn from(value: $float) -> Self {
                $name(value)
            }
        }
        impl From<$name> for $float {
            fn from(value: $name) -> Self {
                value.0
            }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
        impl Int for $name {
            const BITS: u32 = <$bits>::BITS;
            #[inline]
            fn key(self) -> u64 {
                let bits = self.0.to_bits();
                let flip = (bits as $signed >> (<$bits>::BITS - 1)) as $bits;
                (bits ^ (flip | 1 << (<$bits>::BITS - 1))) as u64
            }
            #[inline]
            fn from_key(key: u64) -> Self {
                let key = key as $bits;
                let flip = !((key as $signed >> (<$bits>::BITS - 1)) as $bits);
                $name(<$float>::from_bits(key ^ (flip | 1 << (<$bits>::BITS - 1))))
            }
        }
    };
}

total! {
    /// An `f64` in total order.
    F64, f64, u64, i64
}
total! {
    /// An `f32` in total order.
    F32, f32, u32, i32
}

#[cfg(test)]
mod tests {
    use super::*;

    quickcheck::quickcheck! {
        fn keys_order_as_total_cmp(a: u64, b: u64, c: u32, d: u32) -> bool {
            let (a, b) = (F64(f64::from_bits(a)), F64(f64::from_bits(b)));
            let (c, d) = (F32(f32::from_bits(c)), F32(f32::from_bits(d)));
            a.cmp(&b) == a.key().cmp(&b.key()) && F64::from_key(a.key()) == a
                && c.cmp(&d) == c.key().cmp(&d.key()) && F32::from_key(c.key()) == c
        }
    }

    #[test]
    fn zeros_and_nans() {
        assert!(F64(-0.0) < F64(0.0) && F64(f64::INFINITY) < F64(f64::NAN));
        assert!(F32(-f32::NAN) < F32(f32::NEG_INFINITY));
    }
}
