//! Sorting by (data, time), through order-preserving prefixes.
//!
//! ```text
//!   word   0…0 | code of data | code of time | index      64 bits
//! ```
//! 1. Each column packs an order-preserving code of its values into the words, as narrow as the range allows
//!    ([`Column::pack`]); the index goes into the low bits. Codes that don't fit are cut.
//! 2. The words are sorted by their codes: LSD radix, or by comparing words if they are few. Words already in
//!    order are left.
//! 3. If some code was cut, values are compared within runs of equal codes; never otherwise.
//!
//! Sort at most [`SORT_CHUNK`] records at a time and merge: the words and their spare copy (16 bytes a record)
//! then stay in the second-level cache, where the scattered writes of radix passes are cheap.
use crate::radix::sort_words;
use crate::traits::{Column, Packed};
use crate::units::Units;
use kpg_arena::Buffer;
use std::cmp::Ordering;

/// Records to sort at once: 16,384 × 16 bytes of words are 256 KiB, the second-level cache of older machines.
pub const SORT_CHUNK: usize = 1 << 14;

/// Below this length comparing words beats counting digits.
const RADIX_FROM: usize = 64;

/// Sorts ranges of columns; keeps its scratch memory between calls.
#[derive(Debug, Default)]
pub struct Sorter {
    words: Buffer<u64>,
    spare: Buffer<u64>,
    counts: Buffer<u32>,
    order: Buffer<u32>,
}

impl Sorter {
    /// The indices `lower..upper` in the order of `(data[i], times[i])`, equal ones in order of index.
    ///
    /// # Panics
    /// If the range does not lie in both columns or reaches beyond 2^32.
    pub fn sort<D: Column, T: Column>(
        &mut self,
        data: &D,
        times: &T,
        lower: usize,
        upper: usize,
    ) -> &[u32] {
        let index_bits = self.sort_words(data, times, lower, upper).0;
        let mask = (1 << index_bits) - 1;
        self.order.clear();
        let words = &self.words;
        crate::encoding::extend_with(&mut self.order, words.len(), |i| {
            ((words[i] & mask) as usize + lower) as u32
        });
        &self.order
    }

    /// As [`sort`](Self::sort), handing over one group of indices for each distinct `(data, time)`, in order:
    /// what consolidation sums.
    ///
    /// # Panics
    /// As `sort`.
    pub fn sort_groups<D: Column, T: Column>(
        &mut self,
        data: &D,
        times: &T,
        lower: usize,
        upper: usize,
        mut group: impl FnMut(&[u32]),
    ) {
        let (index_bits, exact) = self.sort_words(data, times, lower, upper);
        let mask = (1u64 << index_bits) - 1;
        let mut previous = None;
        self.order.clear();
        for &word in self.words.iter() {
            let index = (word & mask) as usize + lower;
            if let Some((code, earlier)) = previous {
                let same = code == word >> index_bits
                    && (exact || compare(data, times, earlier, index) == Ordering::Equal);
                if !same {
                    group(&self.order);
                    self.order.clear();
                }
            }
            self.order.push(index as u32);
            previous = Some((word >> index_bits, index));
        }
        if !self.order.is_empty() {
            group(&self.order);
        }
    }

    /// Leaves the sorted words; returns the bits of an index and whether equal codes mean equal values.
    fn sort_words<D: Column, T: Column>(
        &mut self,
        data: &D,
        times: &T,
        lower: usize,
        upper: usize,
    ) -> (u32, bool) {
        assert!(
            lower <= upper && upper <= data.len() && upper <= times.len(),
            "range {lower}..{upper} of columns of {} and {}",
            data.len(),
            times.len()
        );
        assert!(upper <= 1 << 32, "indices are 32 bits wide");
        let len = upper - lower;
        let index_bits = u64::BITS - (len as u64).saturating_sub(1).leading_zeros();
        self.words.clear();
        crate::encoding::extend_with(&mut self.words, len, |_| 0);

        let room = u64::BITS - index_bits;
        let mut packed = data.pack(lower, upper, room, &mut self.words);
        let data_exact = packed.exact;
        if packed.exact {
            let time = times.pack(lower, upper, room - packed.bits, &mut self.words);
            packed = Packed {
                bits: packed.bits + time.bits,
                exact: time.exact,
            };
        }
        for (index, word) in self.words.iter_mut().enumerate() {
            *word = word.checked_shl(index_bits).unwrap_or(0) | index as u64;
        }
        if !self.words.is_sorted() {
            if len < RADIX_FROM {
                self.words.sort_unstable();
            } else {
                let Sorter {
                    words,
                    spare,
                    counts,
                    ..
                } = self;
                sort_words(words, spare, counts, index_bits, packed.bits);
            }
        }
        if !packed.exact {
            self.break_ties(index_bits, |a, b| {
                let (a, b) = (a + lower, b + lower);
                if data_exact {
                    times.get(a).cmp(&times.get(b))
                } else {
                    compare(data, times, a, b)
                }
            });
        }
        (index_bits, packed.exact)
    }

    /// Orders each run of words with equal codes by `compare` on their indices, then by index.
    fn break_ties(&mut self, index_bits: u32, compare: impl Fn(usize, usize) -> Ordering) {
        let mask = (1u64 << index_bits) - 1;
        let mut start = 0;
        while start < self.words.len() {
            let code = self.words[start] >> index_bits;
            let mut end = start + 1;
            while end < self.words.len() && self.words[end] >> index_bits == code {
                end += 1;
            }
            if end - start > 1 {
                self.words[start..end].sort_unstable_by(|&a, &b| {
                    compare((a & mask) as usize, (b & mask) as usize).then(a.cmp(&b))
                });
            }
            start = end;
        }
    }
}

fn compare<D: Column, T: Column>(data: &D, times: &T, a: usize, b: usize) -> Ordering {
    data.get(a)
        .cmp(&data.get(b))
        .then_with(|| times.get(a).cmp(&times.get(b)))
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
