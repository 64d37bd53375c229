//! Sorting by (data, time), through order-preserving prefixes.
//!
//! ```text
//!   word   0…0 | code of data | code of time | index      64 bits, the usual case
//!   word   0…0 | rank of data | code of time | index      where the code of data was cut
//! ```
//! 1. Each column packs an order-preserving code of its values into the words, as narrow as the range allows
//!    ([`Column::pack`]); the index goes into the low bits. The words are sorted, and that is all if no code
//!    was cut.
//! 2. Else words are sorted by what fits of the code of data. Where few are tied, or the code is not exact
//!    even uncut (strings), ties are broken by comparing: codes, data, times.
//! 3. Where many are tied and the code is exact, ties are broken by the whole code; each distinct value then
//!    has a rank, which takes no more bits than an index, and step 1 is done with ranks.
//!
//! Where whole rows fit a word each, data and time and what else they have ([`Sorter::sort_rows`]), there is no index, and the rows
//! are decoded from the sorted words instead of fetched by it.
//!
//! Values are compared only in ties of codes that were cut or are inexact. Words are sorted by LSD radix or by
//! comparing words, whichever is expected to be faster, and are left if they are in order.
//!
//! Sort at most [`SORT_CHUNK`] records at a time and merge: the words and their spare copy (16 bytes a record)
//! then stay in the second-level cache, where the scattered writes of radix passes are cheap.
use crate::encoding::extend_with;
use crate::frame::Frame;
use crate::radix::{pays, sort_words};
use crate::traits::Column;
use crate::units::Units;
use kpg_arena::Buffer;
use std::cmp::Ordering;

/// Records to sort at once: 16,384 × 16 bytes of words are 256 KiB, the second-level cache of older machines.
pub const SORT_CHUNK: usize = 1 << 14;

/// Below this length ties are broken by comparing, however many.
const RANK_FROM: usize = 512;

/// Sorts ranges of columns; keeps its scratch memory between calls.
#[derive(Debug, Default)]
pub struct Sorter {
    words: Buffer<u64>,
    spare: Buffer<u64>,
    /// Codes in order of index, where words have no room for them.
    codes: Buffer<u64>,
    counts: Buffer<u32>,
    order: Buffer<u32>,
}

/// Indices of [`Sorter::sort_groups`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group<'a> {
    /// Each (data, time) is there but once.
    Singles(&'a [u32]),
    /// All have the same (data, time); in order, at least two.
    Equal(&'a [u32]),
}

/// What [`Sorter::sort_rows`] makes: rows in order.
#[derive(Debug)]
pub struct Rows<'s> {
    /// The rows, ordered by the first two columns.
    pub words: &'s mut [u64],
    /// What they are decoded by.
    pub frame: Frame,
    /// Fields of the first column, and of the first two.
    pub fields: [usize; 2],
}

/// The range being sorted.
#[derive(Clone, Copy)]
struct Part {
    lower: usize,
    len: usize,
    /// Bits of an index relative to `lower`.
    index_bits: u32,
}

impl Part {
    fn new(lower: usize, upper: usize) -> Self {
        let len = upper - lower;
        let index_bits = u64::BITS - (len as u64).saturating_sub(1).leading_zeros();
        Part { lower, len, index_bits }
    }

    /// The index in the low bits of a word, relative to `lower`.
    #[inline]
    fn index(self, word: u64) -> usize {
        (word & ((1 << self.index_bits) - 1)) as usize
    }

    #[inline]
    fn join(self, code: u64, index: usize) -> u64 {
        code << self.index_bits | index as u64
    }

    /// Bits of a word above the index.
    fn room(self) -> u32 {
        u64::BITS - self.index_bits
    }

    #[inline]
    fn same_code(self, a: &u64, b: &u64) -> bool {
        a >> self.index_bits == b >> self.index_bits
    }
}

/// What words with equal codes have in common.
#[derive(Clone, Copy)]
struct Equal {
    /// They have equal data.
    data: bool,
    /// They have equal times.
    times: bool,
}

impl Sorter {
    /// Gives back scratch memory, if it is for more than so many records.
    pub fn shrink(&mut self, records: usize) {
        if self.words.capacity().max(self.spare.capacity()) > records {
            *self = Sorter::default();
        }
    }

    /// The indices `lower..upper` in the order of `(data[i], times[i])`, equal ones in order of index.
    ///
    /// # Panics
    /// If the range does not lie in both columns or reaches beyond 2^32.
    pub fn sort<D: Column, T: Column>(&mut self, data: &D, times: &T, lower: usize, upper: usize) -> &[u32] {
        let (part, _) = self.sort_part(data, times, lower, upper);
        let words = &self.words;
        self.order.clear();
        extend_with(&mut self.order, words.len(), |i| (part.index(words[i]) + lower) as u32);
        &self.order
    }

    /// As [`sort`](Self::sort), handing over the indices in order in groups: what consolidation sums.
    ///
    /// # Panics
    /// As `sort`.
    pub fn sort_groups<D: Column, T: Column>(
        &mut self,
        data: &D,
        times: &T,
        lower: usize,
        upper: usize,
        mut group: impl FnMut(Group<'_>),
    ) {
        let (part, equal) = self.sort_part(data, times, lower, upper);
        let Sorter { words, order, .. } = self;
        order.clear();
        extend_with(order, words.len(), |i| (part.index(words[i]) + lower) as u32);
        let (words, order) = (&words[..], &order[..]);
        let same = |at: usize| {
            let (earlier, index) = (order[at - 1] as usize, order[at] as usize);
            part.same_code(&words[at - 1], &words[at])
                && (equal.data || data.get(earlier) == data.get(index))
                && (equal.times || times.get(earlier) == times.get(index))
        };
        let mut start = 0;
        while start < order.len() {
            let pair = (start + 1..order.len()).find(|&at| same(at));
            let singles = pair.map_or(order.len(), |at| at - 1);
            if start < singles {
                group(Group::Singles(&order[start..singles]));
            }
            start = singles;
            if let Some(second) = pair {
                start = (second + 1..order.len()).find(|&at| !same(at)).unwrap_or(order.len());
                group(Group::Equal(&order[singles..start]));
            }
        }
    }

    /// The rows `lower..upper` of three columns as words in the order of `(data[i], times[i])`; none, and nothing is done but that
    /// the ranges were looked at, if rows do not fit into words.
    ///
    /// # Panics
    /// If the range does not lie in the columns.
    pub fn sort_rows<D: Column, T: Column, R: Column>(
        &mut self,
        (data, times, diffs): (&D, &T, &R),
        lower: usize,
        upper: usize,
    ) -> Option<Rows<'_>> {
        let mut frame = Frame::default();
        let fits = lower < upper && frame.add(data, lower, upper);
        let of_data = frame.len();
        let fits = fits && frame.add(times, lower, upper);
        let of_both = frame.len();
        if !(fits && frame.add(diffs, lower, upper) && frame.place()) {
            return None;
        }
        let words = self.sort_filled(&frame, of_both, upper - lower, |words| {
            let mut fields = frame.fields();
            data.encode(lower, &mut fields, words);
            times.encode(lower, &mut fields, words);
            diffs.encode(lower, &mut fields, words);
        });
        Some(Rows { words, frame: frame.clone(), fields: [of_data, of_both] })
    }

    /// The `len` words that `fill` makes of zeros, in the order of the first `compared` fields of `frame`.
    pub fn sort_filled(
        &mut self,
        frame: &Frame,
        compared: usize,
        len: usize,
        fill: impl FnOnce(&mut [u64]),
    ) -> &mut [u64] {
        zeros(&mut self.words, len);
        fill(&mut self.words);
        let low = frame.bits_from(compared);
        let bits = frame.bits_from(0) - low;
        // What is equal but for its other fields may lie in any order, which need not be that of the words.
        if bits > 0 && !self.words.is_sorted() {
            if pays(len, bits) {
                let Sorter { words, spare, counts, .. } = self;
                sort_words(words, spare, counts, low, bits);
            } else {
                self.words.sort_unstable();
            }
        }
        &mut self.words
    }

    /// Leaves the sorted words, and says what equal codes mean.
    fn sort_part<D: Column, T: Column>(&mut self, data: &D, times: &T, lower: usize, upper: usize) -> (Part, Equal) {
        assert!(
            lower <= upper && upper <= data.len() && upper <= times.len(),
            "range {lower}..{upper} of columns of {} and {}",
            data.len(),
            times.len()
        );
        assert!(upper as u64 <= 1 << 32, "indices are 32 bits wide");
        let part = Part::new(lower, upper);
        zeros(&mut self.words, part.len);
        if part.len < 2 {
            return (part, Equal { data: true, times: true });
        }
        let code = data.pack(lower, upper, u64::BITS, &mut self.words);
        if code.exact && code.bits <= part.room() {
            return (part, self.sort_whole(times, part, code.bits));
        }

        std::mem::swap(&mut self.words, &mut self.codes);
        let kept = code.bits.min(part.room());
        let cut = code.bits - kept;
        let codes = &self.codes;
        self.words.clear();
        extend_with(&mut self.words, part.len, |i| part.join(codes[i] >> cut, i));
        self.sort_by_code(part, kept);
        let tied: usize = self.ties(part).map(<[u64]>::len).sum();
        if code.exact && tied > part.len / 4 && part.len >= RANK_FROM {
            let bits = self.rank(part);
            return (part, self.sort_whole(times, part, bits));
        }
        if tied > 0 {
            self.break_ties(part, &|codes, a, b| {
                let (i, j) = (a + lower, b + lower);
                let by_code = codes[a].cmp(&codes[b]);
                let by_data = match by_code {
                    Ordering::Equal if !code.exact => data.get(i).cmp(&data.get(j)),
                    order => order,
                };
                by_data.then_with(|| times.get(i).cmp(&times.get(j)))
            });
        }
        (part, Equal { data: false, times: false })
    }

    /// From words that are exact codes of data, of `bits` bits in order of index: packs the times, sorts.
    fn sort_whole<T: Column>(&mut self, times: &T, part: Part, bits: u32) -> Equal {
        let (lower, upper) = (part.lower, part.lower + part.len);
        let time = times.pack(lower, upper, part.room() - bits, &mut self.words);
        for (index, word) in self.words.iter_mut().enumerate() {
            *word = part.join(*word, index);
        }
        self.sort_by_code(part, bits + time.bits);
        if !time.exact {
            self.break_ties(part, &|_, a, b| times.get(a + lower).cmp(&times.get(b + lower)));
        }
        Equal { data: true, times: time.exact }
    }

    /// From words sorted by the high bits of exact codes: leaves in `words` the rank of each code, in order of
    /// index; returns the bits of a rank.
    fn rank(&mut self, part: Part) -> u32 {
        let Sorter { words, codes, .. } = self;
        for run in words.chunk_by_mut(|a, b| part.same_code(a, b)) {
            let code = codes[part.index(run[0])];
            if run.iter().any(|&word| codes[part.index(word)] != code) {
                run.sort_unstable_by_key(|&word| codes[part.index(word)]);
            }
        }
        let (mut rank, mut before) = (0, None);
        for &word in words.iter() {
            let code = &mut codes[part.index(word)];
            rank += u64::from(before.is_some_and(|before| before != *code));
            before = Some(*code);
            *code = rank;
        }
        std::mem::swap(words, codes);
        u64::BITS - rank.leading_zeros()
    }

    /// Sorts words by their code of `bits` bits, and equal ones by index.
    fn sort_by_code(&mut self, part: Part, bits: u32) {
        if self.words.is_sorted() {
            return;
        }
        if pays(part.len, bits) {
            let Sorter { words, spare, counts, .. } = self;
            sort_words(words, spare, counts, part.index_bits, bits);
        } else {
            self.words.sort_unstable();
        }
    }

    /// Orders each run of words with equal codes by `compare`, which is given the codes and two relative
    /// indices; then by index.
    // By reference, so that sorting is compiled once, and not for each type of column.
    fn break_ties(&mut self, part: Part, compare: &dyn Fn(&[u64], usize, usize) -> Ordering) {
        let codes = &self.codes;
        for run in self.words.chunk_by_mut(|a, b| part.same_code(a, b)) {
            if run.len() > 1 {
                run.sort_unstable_by(|&a, &b| compare(codes, part.index(a), part.index(b)).then(a.cmp(&b)));
            }
        }
    }

    /// The runs of at least two sorted words with equal codes.
    fn ties(&self, part: Part) -> impl Iterator<Item = &[u64]> {
        self.words.chunk_by(move |a, b| part.same_code(a, b)).filter(|run| run.len() > 1)
    }
}

fn zeros(words: &mut Buffer<u64>, len: usize) {
    words.clear();
    extend_with(words, len, |_| 0);
}

/// The indices of a whole column in the order of its values, equal ones in order of index.
///
/// # Panics
/// If the column has more than 2^32 values.
#[must_use]
pub fn sort_permutation<C: Column>(column: &C) -> Buffer<u32> {
    let mut sorter = Sorter::default();
    sorter.sort(column, &Units::of(column.len()), 0, column.len());
    sorter.order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::traits::Columnar;

    /// Sorts a chunk of rows made by `row`, for which the checks of small columns are too short.
    fn check<D: Columnar, T: Columnar>(len: u64, row: impl Fn(u64) -> (D, T)) {
        let rows: Vec<(D, T)> = (0..len).map(row).collect();
        let (mut data, mut times) = (D::Column::default(), T::Column::default());
        for (value, time) in &rows {
            data.push(value.borrow());
            times.push(time.borrow());
        }
        let mut expected: Vec<u32> = (0..len as u32).collect();
        expected.sort_by_key(|&index| &rows[index as usize]);
        let mut sorter = Sorter::default();
        for _ in 0..2 {
            assert_eq!(sorter.sort(&data, &times, 0, rows.len()), expected);
            let mut groups = expected.chunk_by(|&a, &b| rows[a as usize] == rows[b as usize]);
            sorter.sort_groups(&data, &times, 0, rows.len(), |group| match group {
                Group::Singles(all) => all.iter().for_each(|one| assert_eq!(Some(&[*one][..]), groups.next())),
                Group::Equal(group) => assert_eq!(Some(group), groups.next().filter(|group| group.len() > 1)),
            });
            assert_eq!(groups.next(), None);
            data.seal();
            times.seal();
        }
    }

    #[test]
    fn whole_chunks() {
        for len in [1000, SORT_CHUNK as u64] {
            check(len, |i| (mix(i), mix(!i) % 4));
            check(len, |i| (mix(i % 300), mix(!i)));
            check(len, |i| (mix(i % 300), (mix(!i) % 3, mix(i) % 2)));
            check(len, |i| (mix(i) >> 44, mix(!i) % 4));
            check(len, |i| (if i % 97 == 0 { mix(i) } else { mix(i) >> 40 }, ()));
            check(len, |i| (format!("key {}", mix(i) % 500), mix(!i) % 4));
            check(len, |i| ((mix(i) as u8, format!("{}", mix(!i) % 9)), mix(i) as i64));
            check(len, |i| (i, -(i as i64)));
            check(len, |i| (7u32, u128::from(mix(i)) << 40));
        }
    }
}
