//! 128-bit integers: a column of high halves and one of low halves.
//!
//! Most have a constant high half, which then costs nothing.
use crate::frame::{Fields, Frame};
use crate::hash::{combine, mix};
use crate::ints::Ints;
use crate::seal::Sealer;
use crate::traits::{Column, Columnar, Packed};
use crate::weave::Step;
use std::fmt::Debug;

/// A 128-bit integer as two halves; the high one keeps the order, the low one breaks ties.
pub trait WideInt: Copy + Ord + Debug + Send + Sync + 'static {
    /// The halves, high first; pairs order as the values do.
    fn halves(self) -> (u64, u64);
    /// The value of two halves.
    fn from_halves(high: u64, low: u64) -> Self;
}

impl WideInt for u128 {
    #[inline]
    fn halves(self) -> (u64, u64) {
        ((self >> 64) as u64, self as u64)
    }
    #[inline]
    fn from_halves(high: u64, low: u64) -> Self {
        u128::from(high) << 64 | u128::from(low)
    }
}

impl WideInt for i128 {
    #[inline]
    fn halves(self) -> (u64, u64) {
        (self as u128 ^ 1 << 127).halves()
    }
    #[inline]
    fn from_halves(high: u64, low: u64) -> Self {
        (u128::from_halves(high, low) ^ 1 << 127) as i128
    }
}

/// A column of 128-bit integers.
#[derive(Debug)]
pub struct Wide<T> {
    high: Ints<u64>,
    low: Ints<u64>,
    values: std::marker::PhantomData<fn() -> T>,
}

impl<T> Default for Wide<T> {
    fn default() -> Self {
        Wide { high: Ints::default(), low: Ints::default(), values: std::marker::PhantomData }
    }
}

impl<T: WideInt + Columnar<Column = Self> + for<'a> Columnar<Ref<'a> = T>> Column for Wide<T> {
    type Owned = T;
    const PREFIX_EXACT: bool = false;

    #[inline]
    fn len(&self) -> usize {
        self.high.len()
    }
    #[inline]
    fn get(&self, index: usize) -> T {
        T::from_halves(self.high.get(index), self.low.get(index))
    }
    #[inline]
    fn push(&mut self, value: T) {
        let (high, low) = value.halves();
        self.high.push(high);
        self.low.push(low);
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        self.high.extend_from(&other.high, lower, upper);
        self.low.extend_from(&other.low, lower, upper);
    }
    fn clear(&mut self) {
        self.high.clear();
        self.low.clear();
    }
    fn reserve(&mut self, additional: usize) {
        self.high.reserve(additional);
        self.low.reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.high.seal_in(sealer) && self.low.seal_in(sealer)
    }
    fn bytes(&self) -> usize {
        self.high.bytes() + self.low.bytes()
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        self.high.get(index)
    }
    fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
        let high = self.high.pack(lower, upper, room, keys);
        if !high.exact {
            return high;
        }
        let low = self.low.pack(lower, upper, room - high.bits, keys);
        Packed { bits: high.bits + low.bits, exact: low.exact }
    }
    fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
        self.high.frame(lower, upper, frame) && self.low.frame(lower, upper, frame)
    }
    fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
        self.high.encode(lower, fields, words);
        self.low.encode(lower, fields, words);
    }
    fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
        self.high.decode(fields, words);
        self.low.decode(fields, words);
    }
    fn gather(&mut self, other: &Self, indices: &[u32]) {
        self.high.gather(&other.high, indices);
        self.low.gather(&other.low, indices);
    }
    fn push_many(&mut self, value: T, count: usize) {
        let (high, low) = value.halves();
        self.high.push_many(high, count);
        self.low.push_many(low, count);
    }
    fn constant(&self) -> Option<T> {
        Some(T::from_halves(self.high.constant()?, self.low.constant()?))
    }
    fn prepare_merge(&mut self, inputs: &[&Self], sums: bool) {
        self.high.prepare_merge(&inputs.iter().map(|input| &input.high).collect::<Vec<_>>(), sums);
        self.low.prepare_merge(&inputs.iter().map(|input| &input.low).collect::<Vec<_>>(), sums);
    }
    fn weave(&mut self, a: (&Self, usize), b: (&Self, usize), third: &Self, steps: &[Step]) {
        self.high.weave((&a.0.high, a.1), (&b.0.high, b.1), &third.high, steps);
        self.low.weave((&a.0.low, a.1), (&b.0.low, b.1), &third.low, steps);
    }
    fn check_invariants(&self) {
        assert_eq!(self.high.len(), self.low.len());
        self.high.check_invariants();
        self.low.check_invariants();
    }
}

macro_rules! columnar {
    ($($wide:ty),*) => { $(
        impl Columnar for $wide {
            type Ref<'a> = $wide;
            type Column = Wide<$wide>;
            #[inline]
            fn borrow(&self) -> $wide {
                *self
            }
            #[inline]
            fn to_owned(value: $wide) -> $wide {
                value
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: $wide) -> $wide {
                value
            }
            #[inline]
            fn hash(value: $wide) -> u64 {
                let (high, low) = value.halves();
                combine(mix(high), low)
            }
        }
    )* };
}
columnar!(u128, i128);
