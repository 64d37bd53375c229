//! Rows as words: the fields of a row side by side in 64 bits, each as its distance from the least of its range (a frame of
//! reference: Goldstein and others, Compressing relations and indexes, ICDE 1998).
//!
//! ```text
//!   frame   least and greatest of each field        data  7..1000      time 42..42   diff -1..1
//!   word    0…0 | code | code | …                   10 bits            none          2 bits
//! ```
//! Words of one frame are ordered as their rows are, by the first field, then the next; and a row is had back from its word, so
//! that whoever sorts words need not fetch the rows afterwards, which costs more than to sort.
use crate::encoding::{Encoding, extend_with};
use crate::int::Int;
use crate::traits::Column;
use crate::weave::BLOCK;

/// So many fields at most: those of a row that has more would hardly fit.
const MOST: usize = 12;

/// Where a field of a row lies in a word.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field {
    pub(crate) least: u64,
    pub(crate) greatest: u64,
    /// Bits of the fields behind it.
    pub(crate) shift: u32,
}

impl Field {
    pub(crate) fn bits(&self) -> u32 {
        u64::BITS - (self.greatest - self.least).leading_zeros()
    }
    /// The code of a key, in its place.
    #[inline]
    pub(crate) fn code(&self, key: u64) -> u64 {
        (key - self.least) << self.shift
    }
    /// The distance from the least key that lies in a word. Not for a field of no bits.
    #[inline]
    pub(crate) fn delta(&self, word: u64) -> u64 {
        word >> self.shift & u64::MAX >> (u64::BITS - self.bits())
    }
}

/// The fields that columns have not yet taken; each takes as many as it has.
pub type Fields<'f> = std::slice::Iter<'f, Field>;

/// The ranges of the fields of some rows.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    fields: [Field; MOST],
    len: usize,
}

impl Frame {
    /// Appends a field whose keys are `least..=greatest`; false if there are too many.
    pub fn push(&mut self, least: u64, greatest: u64) -> bool {
        let Some(field) = self.fields.get_mut(self.len) else { return false };
        *field = Field { least, greatest: greatest.max(least), shift: 0 };
        self.len += 1;
        true
    }
    /// Fields so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }
    /// True iff there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// Bits of the fields from the `first` on.
    #[must_use]
    pub fn bits_from(&self, first: usize) -> u32 {
        self.fields[first..self.len].iter().map(Field::bits).sum()
    }
    /// Widens the ranges so that they hold those of `other`, whose fields are of the same columns.
    pub fn widen(&mut self, other: &Frame) {
        debug_assert!(self.is_empty() || self.len == other.len, "frames of the same columns");
        if self.is_empty() {
            self.clone_from(other);
        }
        for (field, other) in self.fields[..self.len].iter_mut().zip(&other.fields) {
            (field.least, field.greatest) = (field.least.min(other.least), field.greatest.max(other.greatest));
        }
    }
    /// The range of a field.
    #[must_use]
    pub fn range(&self, field: usize) -> (u64, u64) {
        let field = &self.fields[..self.len][field];
        (field.least, field.greatest)
    }
    /// Gives a field a range that holds the one it has.
    pub fn set_range(&mut self, field: usize, (least, greatest): (u64, u64)) {
        let field = &mut self.fields[..self.len][field];
        debug_assert!(least <= field.least && field.greatest <= greatest, "its values are within");
        (field.least, field.greatest) = (least, greatest);
    }
    /// Gives each field its place, the last one the lowest bits; false if they do not fit a word.
    pub fn place(&mut self) -> bool {
        let mut bits = 0;
        for field in self.fields[..self.len].iter_mut().rev() {
            // A field of no bits may lie anywhere that can be shifted to.
            field.shift = bits.min(u64::BITS - 1);
            bits += field.bits();
        }
        bits <= u64::BITS
    }
    /// All fields.
    pub fn fields(&self) -> Fields<'_> {
        self.fields_from(0)
    }
    /// The fields from the `first` on.
    pub fn fields_from(&self, first: usize) -> Fields<'_> {
        self.fields[first..self.len].iter()
    }
    /// Appends the fields of `column[lower..upper]`; false if its values are not made of so few integers.
    pub fn add<C: Column>(&mut self, column: &C, lower: usize, upper: usize) -> bool {
        column.frame(lower, upper, self)
    }
}

impl<T: Int> Encoding<T> {
    /// The least and the greatest key of `lower..upper`, which is not empty, or bounds of them that are known without looking.
    pub(crate) fn range(&self, lower: usize, upper: usize) -> (u64, u64) {
        assert!(lower < upper && upper <= self.len(), "range {lower}..{upper} of a column of {}", self.len());
        match self {
            Encoding::Plain(values) => {
                let values = &values[lower..upper];
                let first = (values[0], values[0]);
                let (least, greatest) =
                    values.iter().fold(first, |(least, greatest), value| (least.min(*value), greatest.max(*value)));
                (least.key(), greatest.key())
            }
            Encoding::Stride { base, step, .. } => (base + step * lower as u64, base + step * (upper as u64 - 1)),
            // Their bounds, as those of diffs, may have grown from merge to merge, and to look takes next to nothing.
            Encoding::Narrow8 { base, deltas, .. } => {
                let bounds = |bounds: (u8, u8), delta: &u8| (bounds.0.min(*delta), bounds.1.max(*delta));
                let (least, greatest) = deltas[lower..upper].iter().fold((u8::MAX, 0), bounds);
                (base + u64::from(least), base + u64::from(greatest))
            }
            Encoding::Narrow16 { base, span, .. } | Encoding::Narrow32 { base, span, .. } => (*base, base + span),
        }
    }

    /// See [`Column::encode`].
    pub(crate) fn encode(&self, lower: usize, field: &Field, words: &mut [u64]) {
        if field.bits() == 0 {
            return;
        }
        fn each<V: Copy>(words: &mut [u64], values: &[V], code: impl Fn(V) -> u64) {
            words.iter_mut().zip(values).for_each(|(word, value)| *word |= code(*value));
        }
        let (upper, field) = (lower + words.len(), *field);
        match self {
            Encoding::Plain(values) => each(words, &values[lower..upper], move |value| field.code(value.key())),
            Encoding::Stride { base, step, len } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                words.iter_mut().zip(lower as u64..).for_each(|(word, i)| *word |= field.code(base + step * i));
            }
            Encoding::Narrow8 { base, deltas, .. } => {
                let base = *base;
                each(words, &deltas[lower..upper], move |delta| field.code(base + u64::from(delta)));
            }
            Encoding::Narrow16 { base, deltas, .. } => {
                let base = *base;
                each(words, &deltas[lower..upper], move |delta| field.code(base + u64::from(delta)));
            }
            Encoding::Narrow32 { base, deltas, .. } => {
                let base = *base;
                each(words, &deltas[lower..upper], move |delta| field.code(base + u64::from(delta)));
            }
        }
    }

    /// See [`Column::decode`]. A new column becomes as narrow as the field.
    pub(crate) fn push_codes(&mut self, field: &Field, words: &[u64]) {
        let Field { least, greatest, .. } = *field;
        if least == greatest || words.is_empty() {
            return self.push_line(least, 0, words.len());
        }
        if matches!(self, Encoding::Plain(values) if values.capacity() == 0)
            && let Some(narrow) = Encoding::narrow(least, greatest, words.len())
        {
            *self = narrow;
        }
        // By value, so that what is written is known not to change them.
        let (shift, mask, count) = (field.shift, u64::MAX >> (u64::BITS - field.bits()), words.len());
        let code = move |index: usize| words[index] >> shift & mask;
        let key = move |index: usize| least + code(index);
        let within = |base: u64, span: u64| base <= least && greatest - base <= span;
        match self {
            // Within its bounds, so that codes need not be looked at.
            Encoding::Narrow8 { base, span, deltas } if within(*base, *span) => {
                let more = least - *base;
                extend_with(deltas, count, move |index| (code(index) + more) as u8);
            }
            Encoding::Narrow16 { base, span, deltas } if within(*base, *span) => {
                let more = least - *base;
                extend_with(deltas, count, move |index| (code(index) + more) as u16);
            }
            Encoding::Narrow32 { base, span, deltas } if within(*base, *span) => {
                let more = least - *base;
                extend_with(deltas, count, move |index| (code(index) + more) as u32);
            }
            Encoding::Plain(values) => extend_with(values, count, move |index| T::from_key(key(index))),
            _ => {
                let mut block = [T::from_key(0); BLOCK];
                for start in (0..count).step_by(BLOCK) {
                    let values = &mut block[..(count - start).min(BLOCK)];
                    values.iter_mut().zip(start..).for_each(|(slot, index)| *slot = T::from_key(key(index)));
                    self.push_all(values);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::traits::Columnar;

    /// Rows, as words of a frame and back, into an empty column and behind what is there.
    fn check<T: Columnar>(count: u64, bits: u32, row: impl Fn(u64) -> T) {
        let mut column = T::Column::default();
        (0..count).for_each(|i| column.push(row(i).borrow()));
        for _ in 0..2 {
            let mut frame = Frame::default();
            let lower = count as usize / 3;
            assert!(frame.add(&column, lower, count as usize) && frame.place());
            assert!(frame.bits_from(0) <= bits, "{} bits", frame.bits_from(0));
            let mut words = vec![0; count as usize - lower];
            column.encode(lower, &mut frame.fields(), &mut words);
            for (a, b) in words.iter().zip(lower..).zip(words[1..].iter().zip(lower + 1..)) {
                assert_eq!(a.0.cmp(b.0), column.get(a.1).cmp(&column.get(b.1)), "order");
            }
            let mut out = T::Column::default();
            for part in [&words[..10], &words[10..], &words[..300]] {
                let before = out.len();
                out.decode(&mut frame.fields(), part);
                assert!((before..out.len()).zip(part).all(|(index, word)| {
                    out.get(index) == column.get(lower + words.iter().position(|w| w == word).expect("a word"))
                }));
                out.check_invariants();
            }
            let mut other = T::Column::default();
            other.push(row(0).borrow());
            other.decode(&mut frame.fields(), &words);
            assert!((0..words.len()).all(|index| other.get(index + 1) == column.get(index + lower)));
            other.check_invariants();
            column.seal();
        }
    }

    #[test]
    fn rows_are_had_back_from_words() {
        check(2000, 64, mix);
        check(2000, 64, |i| i64::MIN + 7 * i as i64);
        check(2000, 20, |i| (mix(i) >> 44, ()));
        check(2000, 37, |i| (mix(i) as u32 >> 12, (mix(!i) as u16, 3 - (mix(i) % 2) as i8)));
        check(2000, 61, |i| (u128::from(mix(i)) >> 4 | 1 << 100, 'x'));
        check(2000, 0, |_| (-5i64, "".len()));
        check(2000, 27, |i| (i * 5, (mix(i) % 5000) as i32 - 2500));
        check(2000, 34, |i| (mix(i).is_multiple_of(2), mix(!i) as u32, i.is_multiple_of(3)));
    }

    /// What was made ready for many values stays so, whatever the first of them are like.
    #[test]
    fn room_for_a_merge_stays() {
        let mut all = crate::Ints::<u64>::default();
        (0..10_000).for_each(|i| all.push(mix(i) >> 20));
        let mut out = crate::Ints::<u64>::default();
        out.prepare_merge(&[&all, &all], false);
        let bytes = out.bytes();
        let mut frame = Frame::default();
        assert!(bytes >= 160_000 && frame.push(5, 9) && frame.place());
        out.decode(&mut frame.fields(), &[0, 1, 4]);
        assert!(out.bytes() == bytes && out.as_plain() == Some(&[5, 6, 9]));
    }

    #[test]
    fn what_does_not_fit_is_told() {
        let mut frame = Frame::default();
        assert!(frame.push(0, u64::MAX) && frame.place());
        assert!(frame.push(3, 3) && frame.place() && frame.bits_from(0) == 64);
        assert!(frame.push(3, 4) && !frame.place());
        while frame.len() < MOST {
            assert!(frame.push(0, 0));
        }
        assert!(!frame.push(0, 0));
        let mut strings = <(u64, String) as Columnar>::Column::default();
        strings.push((1, "a"));
        assert!(!Frame::default().add(&strings, 0, 1));
    }
}
