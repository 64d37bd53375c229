//! Values that are order-preserving keys of at most 64 bits: integers, `char`, total-order floats.
//!
//! The key of an unsigned integer is itself, that of a signed one has its sign bit flipped. Everything the
//! integer column does (stride, narrow, prefix, seek) it does on keys, so it is written once.
use std::fmt::Debug;

/// A value that is an order-preserving key below `2^BITS`.
///
/// Laws: `a < b` iff `a.key() < b.key()`; `from_key(a.key()) == a`; `key() < 2^BITS`.
pub trait Int: Copy + Ord + Debug + Send + Sync + 'static {
    /// Bits of the key: 8, 16, 32 or 64.
    const BITS: u32;
    /// The key.
    fn key(self) -> u64;
    /// The value of a key. Only keys of values are given.
    fn from_key(key: u64) -> Self;
    /// The hash of the value.
    #[inline]
    fn hash_key(self) -> u64 {
        crate::hash::mix(self.key())
    }
    /// The values as bytes, where a value is a byte and its own key.
    #[inline]
    fn as_bytes(_values: &[Self]) -> Option<&[u8]> {
        None
    }
}

macro_rules! unsigned {
    ($($int:ty),*) => { $(
        impl Int for $int {
            const BITS: u32 = <$int>::BITS;
            #[inline]
            fn key(self) -> u64 {
                self as u64
            }
            #[inline]
            fn from_key(key: u64) -> Self {
                key as $int
            }
        }
    )* };
}
unsigned!(u16, u32, u64, usize);

impl Int for u8 {
    const BITS: u32 = 8;
    #[inline]
    fn key(self) -> u64 {
        u64::from(self)
    }
    #[inline]
    fn from_key(key: u64) -> Self {
        key as u8
    }
    #[inline]
    fn as_bytes(values: &[u8]) -> Option<&[u8]> {
        Some(values)
    }
}

macro_rules! signed {
    ($($int:ty as $bits:ty),*) => { $(
        impl Int for $int {
            const BITS: u32 = <$int>::BITS;
            #[inline]
            fn key(self) -> u64 {
                (self as $bits ^ (1 << (<$int>::BITS - 1))) as u64
            }
            #[inline]
            fn from_key(key: u64) -> Self {
                (key as $bits ^ (1 << (<$int>::BITS - 1))) as $int
            }
        }
    )* };
}
signed!(i8 as u8, i16 as u16, i32 as u32, i64 as u64, isize as usize);

impl Int for char {
    const BITS: u32 = 32;
    #[inline]
    fn key(self) -> u64 {
        u64::from(u32::from(self))
    }
    #[inline]
    fn from_key(key: u64) -> Self {
        char::from_u32(key as u32).expect("only keys of chars are decoded")
    }
}
