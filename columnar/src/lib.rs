//! How values lie.
#![forbid(unsafe_code)]
use kpg_arena::Buffer;
use std::fmt::Debug;

/// A type whose values are stored in columns and read through a `Copy` reference.
///
/// The order of `Ref` must be that of the owned type.
pub trait Columnar: Clone + Ord + Debug + Send + Sync + 'static {
    /// How a stored value is read: plain values by value, others by reference.
    type Ref<'a>: Copy + Ord + Debug;
    /// The column that stores values of this type.
    type Column: Column<Owned = Self>;
    /// Views an owned value as a stored one.
    fn borrow(&self) -> Self::Ref<'_>;
    /// Copies a stored value out.
    fn to_owned(value: Self::Ref<'_>) -> Self;
    /// Shortens a reference's lifetime.
    fn reborrow<'b, 'a: 'b>(value: Self::Ref<'a>) -> Self::Ref<'b>;
    /// The fixed hash that assigns a value to a shard; the same for an owned value and its reference.
    fn hash(value: Self::Ref<'_>) -> u64;
}

/// Storage for many values of one type.
pub trait Column: Default + Send + Sync + 'static {
    /// The type whose values this column stores.
    type Owned: Columnar<Column = Self>;
    /// Number of values.
    fn len(&self) -> usize;
    /// True iff there is no value.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// The value at `index`.
    fn get(&self, index: usize) -> <Self::Owned as Columnar>::Ref<'_>;
    /// Appends a value.
    fn push(&mut self, value: <Self::Owned as Columnar>::Ref<'_>);
    /// Appends `other[lower..upper]`.
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize);
    /// Empties the column; it can be pushed to again, also after `seal`.
    fn clear(&mut self);
    /// Makes room for `additional` more values.
    fn reserve(&mut self, additional: usize);
    /// Takes the smallest encoding. Reads are as before; a push afterwards first decodes.
    fn seal(&mut self);
    /// Arena bytes in use.
    fn bytes(&self) -> usize;
    /// An order-preserving prefix: `a < b` implies `prefix(a) <= prefix(b)`; and whether equal prefixes mean equal values.
    fn prefix(&self, index: usize) -> u64;
    /// True iff equal prefixes mean equal values.
    const PREFIX_EXACT: bool;
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

macro_rules! plain {
    ($($t:ty, $p:expr);*) => { $(
        impl Columnar for $t {
            type Ref<'a> = $t;
            type Column = Plain<$t>;
            #[inline] fn borrow(&self) -> $t { *self }
            #[inline] fn to_owned(value: $t) -> $t { value }
            #[inline] fn reborrow<'b, 'a: 'b>(value: $t) -> $t { value }
            #[inline] fn hash(value: $t) -> u64 { mix(value as u64) }
        }
        impl Column for Plain<$t> {
            type Owned = $t;
            const PREFIX_EXACT: bool = true;
            #[inline] fn len(&self) -> usize { self.0.len() }
            #[inline] fn get(&self, index: usize) -> $t { self.0[index] }
            #[inline] fn push(&mut self, value: $t) { self.0.push(value) }
            fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) { self.0.extend_from_slice(&other.0[lower..upper]) }
            fn clear(&mut self) { self.0.clear() }
            fn reserve(&mut self, additional: usize) { self.0.reserve(additional) }
            fn seal(&mut self) {}
            fn bytes(&self) -> usize { self.0.capacity() * std::mem::size_of::<$t>() }
            fn prefix(&self, index: usize) -> u64 { let f: fn($t) -> u64 = $p; f(self.0[index]) }
        }
    )* }
}
/// A column of plain values.
#[derive(Debug)]
pub struct Plain<T: Copy + 'static>(Buffer<T>);
impl<T: Copy + 'static> Default for Plain<T> {
    fn default() -> Self {
        Plain(Buffer::new())
    }
}
plain!(u8, |x| x as u64; u16, |x| x as u64; u32, |x| x as u64; u64, |x| x; usize, |x| x as u64; i32, |x| (x as i64 as u64) ^ (1 << 63); i64, |x| (x as u64) ^ (1 << 63));

/// A column of units: a count.
#[derive(Default, Debug)]
pub struct Units(usize);
impl Columnar for () {
    type Ref<'a> = ();
    type Column = Units;
    fn borrow(&self) {}
    fn to_owned(_: ()) {}
    fn reborrow<'b, 'a: 'b>(_: ()) {}
    fn hash(_: ()) -> u64 {
        0
    }
}
impl Column for Units {
    type Owned = ();
    const PREFIX_EXACT: bool = true;
    fn len(&self) -> usize {
        self.0
    }
    fn get(&self, index: usize) {
        debug_assert!(index < self.0)
    }
    fn push(&mut self, _: ()) {
        self.0 += 1
    }
    fn extend_from(&mut self, _: &Self, lower: usize, upper: usize) {
        self.0 += upper - lower
    }
    fn clear(&mut self) {
        self.0 = 0
    }
    fn reserve(&mut self, _: usize) {}
    fn seal(&mut self) {}
    fn bytes(&self) -> usize {
        0
    }
    fn prefix(&self, _: usize) -> u64 {
        0
    }
}

/// A column of pairs: a pair of columns.
#[derive(Default, Debug)]
pub struct Tuple2<A, B>(pub A, pub B);
impl<A: Columnar, B: Columnar> Columnar for (A, B) {
    type Ref<'a> = (A::Ref<'a>, B::Ref<'a>);
    type Column = Tuple2<A::Column, B::Column>;
    fn borrow(&self) -> Self::Ref<'_> {
        (self.0.borrow(), self.1.borrow())
    }
    fn to_owned(v: Self::Ref<'_>) -> Self {
        (A::to_owned(v.0), B::to_owned(v.1))
    }
    fn reborrow<'b, 'a: 'b>(v: Self::Ref<'a>) -> Self::Ref<'b> {
        (A::reborrow(v.0), B::reborrow(v.1))
    }
    fn hash(v: Self::Ref<'_>) -> u64 {
        mix(A::hash(v.0) ^ mix(B::hash(v.1)))
    }
}
impl<A: Column, B: Column> Column for Tuple2<A, B> {
    type Owned = (A::Owned, B::Owned);
    const PREFIX_EXACT: bool = false;
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, i: usize) -> <Self::Owned as Columnar>::Ref<'_> {
        (self.0.get(i), self.1.get(i))
    }
    fn push(&mut self, v: <Self::Owned as Columnar>::Ref<'_>) {
        self.0.push(v.0);
        self.1.push(v.1)
    }
    fn extend_from(&mut self, o: &Self, l: usize, u: usize) {
        self.0.extend_from(&o.0, l, u);
        self.1.extend_from(&o.1, l, u)
    }
    fn clear(&mut self) {
        self.0.clear();
        self.1.clear()
    }
    fn reserve(&mut self, n: usize) {
        self.0.reserve(n);
        self.1.reserve(n)
    }
    fn seal(&mut self) {
        self.0.seal();
        self.1.seal()
    }
    fn bytes(&self) -> usize {
        self.0.bytes() + self.1.bytes()
    }
    fn prefix(&self, i: usize) -> u64 {
        self.0.prefix(i)
    }
}
