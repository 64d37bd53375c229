//! The contract: a type, its reference, its column.
//!
//! ```text
//!   T: Columnar ── Column ──▶ C: Column       C::Owned = T
//!     │   ▲                     │
//!  borrow to_owned              get(index), push(ref)
//!     ▼   │                     ▼
//!   T::Ref<'a>  ◀───────────────┘             Copy, ordered and hashed as T is
//! ```
//!
//! Invariants of every column: `get` returns what was pushed, whatever the encoding; `seal` changes no value;
//! `prefix` is below `2^PREFIX_BITS` and never decreases when the value grows. `get` is O(1).
use crate::frame::{Fields, Frame};
use crate::gallop::gallop;
use crate::hash::combine;
use crate::seal::Sealer;
use crate::slice::Slice;
use crate::weave::{self, Step};
use std::cmp::Ordering;
use std::fmt::Debug;
use std::ops::Range;

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

    /// The hash of a list of values. Types with a contiguous form override it.
    fn hash_slice(values: Slice<'_, Self>) -> u64 {
        let mut state = values.len() as u64;
        for value in values {
            state = combine(state, Self::hash(value));
        }
        state
    }

    /// The lexicographic order of two lists of values. Types with a contiguous form override it.
    fn compare_slices<'a>(left: Slice<'a, Self>, right: Slice<'a, Self>) -> Ordering {
        let common = left.len().min(right.len());
        for index in 0..common {
            match left.get(index).cmp(&right.get(index)) {
                Ordering::Equal => {}
                unequal => return unequal,
            }
        }
        left.len().cmp(&right.len())
    }
}

/// A `Copy` type that is its own reference: integers, `bool`, `char`, floats, `()`, and tuples of them.
///
/// Timestamps and diffs are plain. Implemented for every type that qualifies.
pub trait Plain: Copy + for<'a> Columnar<Ref<'a> = Self> {}
impl<T: Copy + for<'a> Columnar<Ref<'a> = T>> Plain for T {}

/// What [`Column::pack`] appended to each key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Bits appended; the same for each key of the range.
    pub bits: u32,
    /// True iff within the packed range equal bits mean equal values.
    pub exact: bool,
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
    /// The value at `index`. O(1).
    ///
    /// # Panics
    /// If `index` is not below `len`.
    fn get(&self, index: usize) -> <Self::Owned as Columnar>::Ref<'_>;
    /// Appends a value.
    fn push(&mut self, value: <Self::Owned as Columnar>::Ref<'_>);
    /// Appends `other[lower..upper]`.
    ///
    /// # Panics
    /// If the range does not lie in `other`.
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize);
    /// Empties the column; it can be pushed to again, also after `seal`.
    fn clear(&mut self);
    /// Makes room for `additional` more values.
    fn reserve(&mut self, additional: usize);
    /// Takes the smallest encoding. Reads are as before; a push afterwards first decodes. Cost: linear.
    fn seal(&mut self) {
        self.seal_in(&mut Sealer::whole());
    }
    /// The same in slices: seals on for as long as the slice has fuel, see [`Sealer::slice`]; true once the column is
    /// sealed. Reads are as before throughout.
    ///
    /// Where memory is refused it unwinds, as a push does, and the column can still be read.
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool;
    /// Bytes of arena blocks held (an opaque column counts its own memory instead).
    fn bytes(&self) -> usize;
    /// An order-preserving prefix below `2^PREFIX_BITS`: `a <= b` implies `prefix(a) <= prefix(b)`.
    fn prefix(&self, index: usize) -> u64;
    /// True iff equal prefixes mean equal values.
    const PREFIX_EXACT: bool;
    /// How many low bits a prefix may use, so that a tuple can append the next field's.
    const PREFIX_BITS: u32 = 64;

    /// Puts the prefixes of the values from `lower` on into `out`, as many as it holds.
    ///
    /// # Panics
    /// If there are fewer.
    fn prefixes(&self, lower: usize, out: &mut [u64]) {
        out.iter_mut().zip(lower..).for_each(|(slot, index)| *slot = self.prefix(index));
    }

    /// Shifts each key left and puts in the freed low bits an order-preserving code of the value at
    /// `lower + i`, relative to this range and at most `room` bits wide.
    ///
    /// Unlike [`prefix`](Self::prefix), codes of different calls cannot be compared; in exchange they are as
    /// narrow as the range allows, so that several fields often fit one key. Two passes over the range.
    ///
    /// `keys.len()` is `upper - lower`, and the top `room` bits of each key are zero.
    fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
        debug_assert_eq!(keys.len(), upper - lower);
        let (mut least, mut greatest) = (u64::MAX, 0);
        for index in lower..upper {
            let prefix = self.prefix(index);
            least = least.min(prefix);
            greatest = greatest.max(prefix);
        }
        let mut packed = append_bits(keys, least, greatest, room, |i| self.prefix(lower + i));
        packed.exact &= Self::PREFIX_EXACT;
        packed
    }

    /// Appends to `frame` the ranges of the fields of `lower..upper`, which is not empty, or wider ones; false, and `frame` is of no
    /// use, if the values are not made of integers, or of too many.
    ///
    /// # Panics
    /// If the range does not lie in the column.
    fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
        let _ = (lower, upper, frame);
        false
    }

    /// Puts the codes of the values from `lower` on, one for each word, into their place in the words, whose bits there are
    /// zero. Takes the fields that [`frame`](Self::frame) appended, or wider ones.
    ///
    /// # Panics
    /// If there are fewer values than words, where a value has any field; always, where `frame` is always false.
    fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
        let _ = (lower, fields, words);
        unreachable!("the column has no frame");
    }

    /// Appends the values whose codes lie in the words, as [`encode`](Self::encode) put them there.
    ///
    /// # Panics
    /// Always, where `frame` is always false.
    fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
        let _ = (fields, words);
        unreachable!("the column has no frame");
    }

    /// Appends `other[index]` for each index.
    fn gather(&mut self, other: &Self, indices: &[u32]) {
        for &index in indices {
            self.push(other.get(index as usize));
        }
    }

    /// Appends owned values.
    fn push_values(&mut self, values: &[Self::Owned]) {
        for value in values {
            self.push(value.borrow());
        }
    }

    /// Appends a value `count` times.
    fn push_many(&mut self, value: <Self::Owned as Columnar>::Ref<'_>, count: usize) {
        let value = <Self::Owned as Columnar>::reborrow(value);
        (0..count).for_each(|_| self.push(value));
    }

    /// The one value that all are, if that is known without looking at each; none if there is no value.
    fn constant(&self) -> Option<<Self::Owned as Columnar>::Ref<'_>> {
        (self.len() == 1).then(|| self.get(0))
    }

    /// Makes an empty column ready to take all values of `inputs`: room, and an encoding as narrow as theirs.
    /// `sums`: of some values of different inputs only the sum comes.
    fn prepare_merge(&mut self, inputs: &[&Self], sums: bool) {
        let _ = sums;
        self.reserve(inputs.iter().map(|input| input.len()).sum());
    }

    /// The steps in which the values `i` here and those of `j` in `other`, both sorted and without duplicates, are merged:
    /// fills `steps` until they are full or one side is at its end; returns how many there are.
    fn plan(&self, i: Range<usize>, other: &Self, j: Range<usize>, steps: &mut [Step]) -> usize {
        weave::plan(self, i, other, j, steps)
    }

    /// Appends what comes out of `steps` from here on in `a` and `b`, and from the start of `third`: see [`Step`].
    ///
    /// # Panics
    /// If the steps take more than there is.
    fn weave(&mut self, a: (&Self, usize), b: (&Self, usize), third: &Self, steps: &[Step]) {
        weave::weave_few(self, a, b, third, steps);
    }

    /// Whether each value of `lower..upper` is above the one before it.
    ///
    /// # Panics
    /// If the range does not lie in the column.
    fn ascends(&self, lower: usize, upper: usize) -> bool {
        (lower + 1..upper).all(|index| self.get(index - 1) < self.get(index))
    }

    /// The first index in `lower..upper` whose value is not below `target`, else `upper`; the range must be
    /// sorted. Gallops: O(log distance).
    fn seek(&self, lower: usize, upper: usize, target: <Self::Owned as Columnar>::Ref<'_>) -> usize {
        let target = <Self::Owned as Columnar>::reborrow(target);
        gallop(upper, lower, |index| self.get(index) < target)
    }

    /// Moves each of `starts` to the first index of the `width` from there on whose value is not below its target, or behind
    /// them; the column must be sorted. `width` is a power of two. Where columns can, they search for many at once, so that
    /// the searches do not wait for memory one after the other.
    ///
    /// # Panics
    /// If a window does not lie in the column.
    fn seek_windows(&self, starts: &mut [usize], width: usize, targets: &[<Self::Owned as Columnar>::Ref<'_>]) {
        for (start, target) in starts.iter_mut().zip(targets) {
            *start = self.seek(*start, *start + width, *target);
        }
    }

    /// An order-preserving 64-bit prefix of the list `self[lower..upper]`.
    fn range_prefix(&self, lower: usize, upper: usize) -> u64 {
        if lower < upper { self.prefix(lower) } else { 0 }
    }

    /// Seals a column that holds the items of lists. Bytes stay contiguous, so that a list of bytes can be
    /// read as a slice; all else seals as usual.
    fn seal_items_in(&mut self, sealer: &mut Sealer) -> bool {
        self.seal_in(sealer)
    }

    /// Checks what must hold between the parts of the column.
    ///
    /// # Panics
    /// If an invariant is broken.
    fn check_invariants(&self) {}
}

/// Appends `code(i) - least` to each key, cut to its top bits if they exceed `room`. For codes in
/// `least..=greatest`.
#[doc(hidden)]
#[inline]
pub fn append_bits(keys: &mut [u64], least: u64, greatest: u64, room: u32, code: impl Fn(usize) -> u64) -> Packed {
    if least >= greatest {
        return Packed { bits: 0, exact: true };
    }
    let need = u64::BITS - (greatest - least).leading_zeros();
    let bits = need.min(room);
    let cut = need - bits;
    if bits == u64::BITS {
        for (i, key) in keys.iter_mut().enumerate() {
            *key = code(i) - least;
        }
    } else if bits > 0 {
        for (i, key) in keys.iter_mut().enumerate() {
            *key = *key << bits | (code(i) - least) >> cut;
        }
    }
    Packed { bits, exact: cut == 0 }
}

/// Brings a prefix of `have` bits to `want` bits by dropping low bits, or leaves it if it is narrower.
#[doc(hidden)]
#[inline]
pub const fn fit(prefix: u64, have: u32, want: u32) -> u64 {
    if have <= want {
        prefix
    } else if want == 0 {
        0
    } else {
        prefix >> (have - want)
    }
}
