//! The column of integers, chars and floats; every other column is built from it.
//!
//! While it is built, it lies as file `grow` says; once sealed, in the smallest of the encodings (file `encoding`).
use crate::choice::{choose, shrink_in};
use crate::encoding::{Encoding, EncodingKind, extend_with};
use crate::float::{F32, F64};
use crate::frame::{Fields, Frame};
use crate::hash::hash_bytes;
use crate::int::Int;
use crate::seal::Sealer;
use crate::slice::Slice;
use crate::traits::{Column, Columnar, Packed};
use crate::weave::{self, BLOCK, Step};
use kpg_arena::Buffer;
use std::cmp::Ordering;

/// A column of values that are 64-bit keys.
#[derive(Debug)]
pub struct Ints<T: Int> {
    encoding: Encoding<T>,
}

impl<T: Int> Default for Ints<T> {
    fn default() -> Self {
        Ints { encoding: Encoding::Plain(Buffer::new()) }
    }
}

impl<T: Int> Ints<T> {
    /// The values as a slice, if they are plain: the fast path of kernels.
    #[inline]
    #[must_use]
    pub fn as_plain(&self) -> Option<&[T]> {
        match &self.encoding {
            Encoding::Plain(values) => Some(values),
            _ => None,
        }
    }

    /// The one value that all are, if the column is sealed and holds no other.
    #[inline]
    #[must_use]
    pub fn as_constant(&self) -> Option<T> {
        match &self.encoding {
            Encoding::Stride { base, step: 0, .. } => Some(T::from_key(*base)),
            _ => None,
        }
    }

    /// The key of the first value and the step between keys, if the column is sealed as a stride.
    #[inline]
    #[must_use]
    pub fn as_stride(&self) -> Option<(u64, u64)> {
        match &self.encoding {
            Encoding::Stride { base, step, .. } => Some((*base, *step)),
            _ => None,
        }
    }

    /// Which encoding the column has now.
    #[must_use]
    pub fn kind(&self) -> EncodingKind {
        self.encoding.kind()
    }

    /// Appends the values `lower..upper` to `out`, decoded.
    ///
    /// # Panics
    /// If the range does not lie in the column.
    pub fn decode_into(&self, lower: usize, upper: usize, out: &mut Buffer<T>) {
        self.encoding.decode_into(lower, upper, out);
    }

    /// Number of values.
    #[inline]
    #[must_use]
    pub fn count(&self) -> usize {
        self.encoding.len()
    }

    /// The value at `index`.
    ///
    /// # Panics
    /// If `index` is not below the count.
    #[inline(always)]
    #[must_use]
    pub fn at(&self, index: usize) -> T {
        self.encoding.get(index)
    }

    /// Appends a value.
    #[inline(always)]
    pub fn append(&mut self, value: T) {
        self.encoding.push(value);
    }

    /// Appends `count` values from that of key `first` on, keys `step` apart.
    pub(crate) fn append_line(&mut self, first: u64, step: u64, count: usize) {
        self.encoding.push_line(first, step, count);
    }

    /// The buffer of a plain column; decodes a sealed one.
    #[inline]
    pub(crate) fn plain_mut(&mut self) -> &mut Buffer<T> {
        self.encoding.plain_mut(0)
    }
}

impl<T: Int + Columnar<Column = Self> + for<'a> Columnar<Ref<'a> = T>> Column for Ints<T> {
    type Owned = T;
    const PREFIX_EXACT: bool = true;
    const PREFIX_BITS: u32 = T::BITS;

    #[inline]
    fn len(&self) -> usize {
        self.encoding.len()
    }
    #[inline(always)]
    fn get(&self, index: usize) -> T {
        self.encoding.get(index)
    }
    #[inline]
    fn push(&mut self, value: T) {
        self.append(value);
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        if let Encoding::Stride { base, step, len } = other.encoding {
            assert!(lower <= upper && upper <= len, "range {lower}..{upper} of a column of {len}");
            // An empty range may start behind the last key there is.
            return if lower < upper {
                self.append_line(base + step * lower as u64, step, upper - lower)
            };
        }
        let (mut block, mut done) = ([T::from_key(0); BLOCK], lower);
        while done < upper && !matches!(self.encoding, Encoding::Plain(_)) {
            let values = other.encoding.block(done, &mut block[..(upper - done).min(BLOCK)]);
            done += values.len();
            self.encoding.push_all(values);
        }
        if done < upper {
            other.encoding.decode_into(done, upper, self.plain_mut());
        }
    }
    fn clear(&mut self) {
        match &mut self.encoding {
            Encoding::Plain(values) => values.clear(),
            _ => *self = Self::default(),
        }
    }
    fn reserve(&mut self, additional: usize) {
        self.plain_mut().reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        if self.encoding.len() == 0 {
            self.encoding = Encoding::Plain(Buffer::new());
        }
        sealer.part(|fuel, state| {
            // What was woven or decoded is as narrow as what it came from, and may have got narrower, or a line.
            let chosen = match &self.encoding {
                Encoding::Plain(values) if values.is_empty() => return true,
                Encoding::Stride { .. } => return true,
                Encoding::Plain(values) => choose(values, fuel, state),
                Encoding::Narrow8 { base, span, deltas } => {
                    let (base, span) = (*base, *span);
                    let again = move |deltas| Encoding::Narrow8 { base, span, deltas };
                    choose(deltas, fuel, state).map(|new| new.map(|new| new.above(base, again)))
                }
                Encoding::Narrow16 { base, span, deltas } => {
                    let (base, span) = (*base, *span);
                    let again = move |deltas| Encoding::Narrow16 { base, span, deltas };
                    choose(deltas, fuel, state).map(|new| new.map(|new| new.above(base, again)))
                }
                Encoding::Narrow32 { base, span, deltas } => {
                    let (base, span) = (*base, *span);
                    let again = move |deltas| Encoding::Narrow32 { base, span, deltas };
                    choose(deltas, fuel, state).map(|new| new.map(|new| new.above(base, again)))
                }
            };
            let Some(new) = chosen else { return false };
            if let Some(encoding) = new {
                self.encoding = encoding;
            }
            true
        })
    }
    fn bytes(&self) -> usize {
        self.encoding.bytes()
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        self.encoding.get(index).key()
    }
    fn prefixes(&self, lower: usize, out: &mut [u64]) {
        self.encoding.keys_to(lower, out);
    }
    fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
        self.encoding.pack(lower, upper, room, keys)
    }
    fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
        let (least, greatest) = self.encoding.range(lower, upper);
        frame.push(least, greatest)
    }
    fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
        self.encoding.encode(lower, fields.next().expect("a field of the frame"), words);
    }
    fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
        self.encoding.push_codes(fields.next().expect("a field of the frame"), words);
    }
    fn gather(&mut self, other: &Self, indices: &[u32]) {
        match &other.encoding {
            Encoding::Plain(values) => {
                extend_with(self.encoding.plain_mut(indices.len()), indices.len(), |i| values[indices[i] as usize]);
            }
            Encoding::Stride { base, step: 0, len } => {
                let greatest = indices.iter().max();
                assert!(greatest.is_none_or(|index| (*index as usize) < *len), "{greatest:?} of a column of {len}");
                self.append_line(*base, 0, indices.len());
            }
            encoding => {
                let mut block = [T::from_key(0); BLOCK];
                for indices in indices.chunks(BLOCK) {
                    let values = &mut block[..indices.len()];
                    values.iter_mut().zip(indices).for_each(|(slot, index)| *slot = encoding.get(*index as usize));
                    self.encoding.push_all(values);
                }
            }
        }
    }
    fn push_values(&mut self, values: &[T]) {
        self.encoding.push_all(values);
    }
    fn push_many(&mut self, value: T, count: usize) {
        self.append_line(value.key(), 0, count);
    }
    fn constant(&self) -> Option<T> {
        self.as_constant().or_else(|| (self.len() == 1).then(|| self.at(0)))
    }
    fn prepare_merge(&mut self, inputs: &[&Self], sums: bool) {
        let room = inputs.iter().map(|input| input.len()).sum();
        let bounds = inputs.iter().filter(|input| !input.is_empty()).map(|input| input.encoding.bounds());
        let all = bounds.reduce(|a, b| a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1))));
        let Some(Some((mut least, mut greatest))) = all else { return self.reserve(room) };
        if least == greatest {
            // A constant, as it seems, which needs no memory.
            return;
        }
        if sums {
            // Sums of two may lie as far out again.
            (least, greatest) = Encoding::<T>::surroundings(least, greatest);
        }
        match Encoding::narrow(least, greatest, room) {
            Some(encoding) => self.encoding = encoding,
            None => self.reserve(room),
        }
    }
    fn weave(&mut self, a: (&Self, usize), b: (&Self, usize), third: &Self, steps: &[Step]) {
        let constant = a.0.as_constant().filter(|value| b.0.as_constant() == Some(*value));
        if let Some(value) = constant.filter(|value| third.is_empty() || third.as_constant() == Some(*value)) {
            return self.append_line(value.key(), 0, weave::woven(steps));
        }
        if steps.len() <= weave::FEW {
            return weave::weave_few(self, a, b, third, steps);
        }
        let [a, b, third] = [a, b, (third, 0)].map(|(column, from)| weave::From(&column.encoding, from));
        let mut sources = [a, b, third];
        let (mut buffer, mut out) = ([T::from_key(0); 4 * BLOCK], [T::from_key(0); BLOCK]);
        for steps in steps.chunks(BLOCK) {
            let values = weave::weave(&mut sources, steps, &mut buffer, &mut out);
            self.encoding.push_all(values);
        }
    }
    fn ascends(&self, lower: usize, upper: usize) -> bool {
        self.encoding.ascends(lower, upper)
    }
    #[inline]
    fn seek(&self, lower: usize, upper: usize, target: T) -> usize {
        self.encoding.seek(lower, upper, target)
    }
    fn seek_windows(&self, starts: &mut [usize], width: usize, targets: &[T]) {
        self.encoding.seek_windows(starts, width, targets);
    }
    /// As many leading items as fit in 64 bits, zeros after the end.
    fn range_prefix(&self, lower: usize, upper: usize) -> u64 {
        let fitting = (u64::BITS / T::BITS) as usize;
        let mut prefix = 0;
        for index in lower..upper.min(lower + fitting) {
            let shift = u64::BITS - T::BITS * (index - lower + 1) as u32;
            prefix |= self.prefix(index) << shift;
        }
        prefix
    }
    fn seal_items_in(&mut self, sealer: &mut Sealer) -> bool {
        match T::as_bytes(&[]) {
            Some(_) => shrink_in(self.plain_mut(), sealer),
            None => self.seal_in(sealer),
        }
    }
    fn check_invariants(&self) {
        self.encoding.check_invariants();
    }
}

macro_rules! columnar {
    ($($int:ty),*) => { $(
        impl Columnar for $int {
            type Ref<'a> = $int;
            type Column = Ints<$int>;
            #[inline]
            fn borrow(&self) -> $int {
                *self
            }
            #[inline]
            fn to_owned(value: $int) -> $int {
                value
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: $int) -> $int {
                value
            }
            #[inline]
            fn hash(value: $int) -> u64 {
                value.hash_key()
            }
            fn hash_slice(values: Slice<'_, $int>) -> u64 {
                if let Some(bytes) = values.as_slice().and_then(<$int>::as_bytes) {
                    return hash_bytes(bytes);
                }
                crate::slice::hash_items(values)
            }
            fn compare_slices<'a>(left: Slice<'a, $int>, right: Slice<'a, $int>) -> Ordering {
                match (left.as_slice(), right.as_slice()) {
                    (Some(left), Some(right)) => left.cmp(right),
                    _ => left.into_iter().cmp(right),
                }
            }
        }
    )* };
}
columnar!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, char, F32, F64);

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed<T>(values: &[T]) -> (EncodingKind, usize)
    where
        T: Int + Columnar<Column = Ints<T>> + for<'a> Columnar<Ref<'a> = T>,
    {
        let mut column = Ints::<T>::default();
        column.push_values(values);
        let plain = column.bytes();
        column.seal();
        column.check_invariants();
        assert!(column.bytes() <= plain, "{} sealed, {plain} plain", column.bytes());
        assert!(values.iter().enumerate().all(|(index, value)| column.get(index) == *value));
        (column.kind(), column.bytes())
    }

    #[test]
    fn the_smallest_encoding_is_taken() {
        use EncodingKind::*;
        let spread = |by: u64| -> Vec<u64> { (0..1000).map(|i| crate::mix(i) % by + 77).collect() };
        let within = |(kind, bytes): (EncodingKind, usize), width: usize| {
            // At most 1/8 of waste in a size class.
            assert!((1000 * width..=1126 * width).contains(&bytes), "{kind:?} of {bytes} bytes");
            kind
        };
        assert_eq!(sealed::<u64>(&[]), (Plain, 0));
        assert_eq!(sealed(&[u64::MAX]), (Constant, 0));
        assert_eq!(sealed(&[-5i64; 100]), (Constant, 0));
        assert_eq!(sealed(&[1u64, u64::MAX]), (Stride, 0));
        assert_eq!(sealed(&(0..1000).map(|i| -500 + 3 * i).collect::<Vec<i32>>()), (Stride, 0));
        assert_eq!(sealed(&['a', 'c', 'e']), (Stride, 0));
        assert_eq!(within(sealed(&spread(256)), 1), Narrow8);
        assert_eq!(within(sealed(&spread(257)), 2), Narrow16);
        assert_eq!(within(sealed(&spread(1 << 32)), 4), Narrow32);
        assert_eq!(within(sealed(&spread(1 << 40)), 8), Plain);
        let bytes: Vec<u8> = spread(100).iter().map(|&value| value as u8).collect();
        assert_eq!(within(sealed(&bytes), 1), Plain);
        // A line that leaves the range of keys is no stride.
        assert_eq!(sealed(&[u64::MAX - 1, u64::MAX, 0]).0, Plain);
        assert_eq!(sealed(&[3u64, 2, 1]).0, Narrow8);
    }

    /// Columns that were narrow before they are sealed: those that are lines, or narrower than they could have been.
    #[test]
    fn what_is_narrow_already_is_sealed_smaller() {
        use EncodingKind::*;
        let narrow = |values: &[i64]| {
            let encoding = Encoding::narrow(0i64.key(), (1i64 << 31).key(), values.len());
            let mut column = Ints::<i64> { encoding: encoding.expect("narrower than plain") };
            column.push_values(values);
            assert_eq!(column.kind(), Narrow32);
            let mut sealer = Sealer::new();
            while !sealer.slice(&mut 7, |sealer| column.seal_in(sealer)) {}
            column.check_invariants();
            assert!(values.iter().enumerate().all(|(index, value)| column.get(index) == *value));
            column.kind()
        };
        let spread = |by: u64| -> Vec<i64> { (0..1000).map(|i| (crate::mix(i) % by + 77) as i64).collect() };
        assert_eq!(narrow(&[5; 1000]), Constant);
        assert_eq!(narrow(&(0..1000).map(|i| 3 * i).collect::<Vec<_>>()), Stride);
        assert_eq!(narrow(&spread(200)), Narrow8);
        assert_eq!(narrow(&spread(60_000)), Narrow16);
        assert_eq!(narrow(&spread(1 << 30)), Narrow32);
        assert_eq!(narrow(&[]), Plain);
    }

    #[test]
    fn a_push_after_seal_decodes() {
        let mut column = Ints::<u64>::default();
        column.push_values(&[5, 6, 7]);
        column.seal();
        assert_eq!((column.as_plain(), column.as_stride()), (None, Some((5, 1))));
        column.push(1);
        assert_eq!(column.as_plain(), Some(&[5, 6, 7, 1][..]));
    }

    /// The promise for batches: distinct keys, one time, diff +1, in about eight bytes.
    #[test]
    fn a_key_only_batch_is_small() {
        let mut column = <((u64, ()), u64, i64) as Columnar>::Column::default();
        for i in 0..10_000 {
            column.push(((crate::mix(i), ()), 42, 1));
        }
        column.seal();
        assert!(column.bytes() <= 9 * 10_000, "{}", column.bytes());
    }
}
