//! The free slices of a chunk: 256 bits, one for each slice, set where free.
//!
//! Cost: a search walks the runs of free slices, first fit; four words, no memory of its own.
//! Next stop: `chunk.rs`, whose header holds one.
#![forbid(unsafe_code)]

use crate::layout::SLICES;

const WORDS: usize = SLICES / 64;

/// A set of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Runs([u64; WORDS]);

impl Runs {
    /// All slices but the first `header`.
    pub(crate) fn all_but(header: usize) -> Runs {
        let mut runs = Runs([0; WORDS]);
        runs.give(header, SLICES - header);
        runs
    }

    /// The first slice of the first free run of `count` or more.
    pub(crate) fn find(&self, count: usize) -> Option<usize> {
        self.iter().find(|&(_, length)| length >= count).map(|(start, _)| start)
    }

    /// The length of the longest free run.
    pub(crate) fn longest(&self) -> usize {
        self.iter().map(|(_, length)| length).max().unwrap_or(0)
    }

    /// Whether `slice` is free.
    pub(crate) fn has(&self, slice: usize) -> bool {
        self.0[slice / 64] >> (slice % 64) & 1 == 1
    }

    /// Marks a run as used.
    pub(crate) fn take(&mut self, start: usize, count: usize) {
        for (word, mask) in masks(start, count) {
            debug_assert_eq!(self.0[word] & mask, mask, "slices {start}+{count} taken twice");
            self.0[word] &= !mask;
        }
    }

    /// Marks a run as free.
    pub(crate) fn give(&mut self, start: usize, count: usize) {
        for (word, mask) in masks(start, count) {
            debug_assert_eq!(self.0[word] & mask, 0, "slices {start}+{count} freed twice");
            self.0[word] |= mask;
        }
    }

    /// The free runs in order, as `(start, length)`.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let mut from = 0;
        std::iter::from_fn(move || {
            let start = self.next(from, 0)?;
            let end = self.next(start, u64::MAX).unwrap_or(SLICES);
            from = end;
            Some((start, end - start))
        })
    }

    /// The first slice at or after `from` that is free (`flip` 0) or used (`flip` all ones).
    fn next(&self, from: usize, flip: u64) -> Option<usize> {
        let mut word = from / 64;
        let mut bits = (self.0.get(word)? ^ flip) & (u64::MAX << (from % 64));
        while bits == 0 {
            word += 1;
            bits = self.0.get(word)? ^ flip;
        }
        Some(word * 64 + bits.trailing_zeros() as usize)
    }
}

/// The words that `start..start + count` touches, each with the bits in it.
fn masks(start: usize, count: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = start + count;
    (start / 64..end.div_ceil(64)).map(move |word| {
        let low = start.max(word * 64) - word * 64;
        let high = end.min(word * 64 + 64) - word * 64;
        (word, (u64::MAX << low) & (u64::MAX >> (64 - high)))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    quickcheck! {
        fn agrees_with_a_list_of_bools(asks: Vec<(bool, u8)>) -> bool {
            let mut runs = Runs::all_but(2);
            let mut plain = [true; SLICES];
            plain[..2].fill(false);
            let mut held: Vec<(usize, usize)> = Vec::new();
            for (take, size) in asks {
                let size = usize::from(size) % 70 + 1;
                if take || held.is_empty() {
                    let expected = (0..=SLICES - size).find(|&at| plain[at..at + size].iter().all(|&free| free));
                    if runs.find(size) != expected { return false; }
                    if let Some(at) = expected {
                        runs.take(at, size);
                        plain[at..at + size].fill(false);
                        held.push((at, size));
                    }
                } else {
                    let (at, size) = held.swap_remove(size % held.len());
                    runs.give(at, size);
                    plain[at..at + size].fill(true);
                }
                let longest = plain.split(|&free| !free).map(<[bool]>::len).max().unwrap_or(0);
                if runs.longest() != longest { return false; }
                if (0..SLICES).any(|slice| runs.has(slice) != plain[slice]) { return false; }
            }
            true
        }
    }
}
