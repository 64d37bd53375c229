//! Sorting 64-bit words by some of their bits, stably: LSD radix (Knuth, vol. 3, 5.2.5), of many within parts by the highest bits.
//!
//! All histograms are made in one pass; a digit that is the same in all words costs no pass.
use crate::encoding::extend_with;
use kpg_arena::Buffer;

/// Digits of 8 bits have histograms that fit the first-level cache and suit short inputs; longer ones save
/// passes with 12 bits, whose 4096 counters (16 KiB) are then few beside the words.
const NARROW: u32 = 8;
const WIDE: u32 = 12;
/// From this length on wide digits pay.
const WIDE_FROM: usize = 4096;
/// So few words are sorted by comparing.
const FEW: usize = 64;

/// How many passes, of digits how wide.
fn plan(len: usize, bits: u32) -> (u32, u32) {
    let passes = bits.div_ceil(if len >= WIDE_FROM { WIDE } else { NARROW });
    (passes, if passes == 0 { 0 } else { bits.div_ceil(passes) })
}

/// True iff radix passes are expected to beat comparing words.
///
/// Measured (`cargo bench -p kpg-columnar`): a pass costs about 1.6 ns for each word and each counter,
/// comparing about 1.1 ns for each word and bit of the length. So at 256 words two passes pay and three do
/// not, from about 2,000 words on nearly any number does, and below 100 none.
pub(crate) fn pays(len: usize, bits: u32) -> bool {
    let (passes, width) = plan(len, bits);
    let log = u64::from((len | 1).ilog2());
    3 * u64::from(passes) * (len as u64 + (1 << width)) < 2 * len as u64 * log
}

/// Sorts `words` by their bits `low .. low + bits`, keeping equal ones in order. `spare` and `counts` are
/// scratch. O(bits × n) at worst, and then most bits tell but few words apart.
///
/// Where there are many, they are dealt out by their highest bits first, into parts that stay in the cache together with their
/// spare copy.
pub(crate) fn sort_words(
    words: &mut Buffer<u64>,
    spare: &mut Buffer<u64>,
    counts: &mut Buffer<u32>,
    low: u32,
    bits: u32,
) {
    debug_assert!(low + bits <= u64::BITS && u32::try_from(words.len()).is_ok());
    if bits == 0 || words.len() < 2 {
        return;
    }
    if spare.len() < words.len() {
        spare.clear();
        spare.extend_from_slice(words);
    } else {
        spare.truncate(words.len());
    }
    if sort_between(words, spare, counts, low, bits) {
        std::mem::swap(words, spare);
    }
}

/// Above this length words are dealt out: two copies of so many are 1 MiB, which the second-level cache of most machines holds.
const PART: usize = 1 << 16;
/// At most so many bits are dealt by at once: more parts than there are places in a translation buffer are slow to write to.
const DEALT: u32 = 8;

/// Sorts `words` with the help of `spare`, as long; true if what is sorted lies there.
fn sort_between(words: &mut [u64], spare: &mut [u64], counts: &mut Buffer<u32>, low: u32, bits: u32) -> bool {
    // The highest bits tell nothing apart where words are of one range.
    let first = words[0];
    let differing = words.iter().fold(0, |all, word| all | (first ^ word)) >> low << (u64::BITS - bits);
    let Some(bits) = bits.checked_sub(differing.leading_zeros()).filter(|_| differing > 0) else { return false };
    if words.len() <= PART || bits <= DEALT {
        return passes(words, spare, counts, low, bits);
    }
    let dealt = (usize::BITS - (words.len() / PART).leading_zeros() + 2).min(DEALT);
    let (rest, parts) = (bits - dealt, 1usize << dealt);
    let digit = |word: u64| (word >> (low + rest)) as usize & (parts - 1);
    let mut starts = [0; 1 << DEALT];
    words.iter().for_each(|word| starts[digit(*word)] += 1);
    let mut start = 0;
    for count in &mut starts[..parts] {
        (start, *count) = (start + *count, start);
    }
    for word in words.iter() {
        let slot = &mut starts[digit(*word)];
        spare[*slot] = *word;
        *slot += 1;
    }
    let mut start = 0;
    for end in &starts[..parts] {
        let (part, room) = (&mut spare[start..*end], &mut words[start..*end]);
        start = *end;
        if part.len() > 1 && sort_between(part, room, counts, low, rest) {
            part.copy_from_slice(room);
        }
    }
    true
}

/// The same by passes over all words: over all digits from the lowest on; or, where that is fewer by more than one, over as many
/// of the highest as tell most words apart, whereupon what they do not is sorted by itself.
fn passes(words: &mut [u64], spare: &mut [u64], counts: &mut Buffer<u32>, low: u32, bits: u32) -> bool {
    let key = |word: u64| word >> low << (u64::BITS - bits);
    if words.len() < FEW {
        words.sort_by_key(|word| key(*word));
        return false;
    }
    let telling = words.len().ilog2() + 2;
    if bits <= telling || plan(words.len(), bits).0 <= plan(words.len(), telling).0 + 1 {
        return all_passes(words, spare, counts, low, bits);
    }
    let rest = bits - telling;
    let moved = all_passes(words, spare, counts, low + rest, telling);
    let (sorted, other) = if moved { (spare, words) } else { (words, spare) };
    let mut start = 0;
    for part in sorted.chunk_by_mut(|a, b| key(a ^ b) >> (u64::BITS - telling) == 0) {
        let room = &mut other[start..start + part.len()];
        start += part.len();
        if part.len() > 1 && sort_between(part, room, counts, low, rest) {
            part.copy_from_slice(room);
        }
    }
    moved
}

/// From the lowest digit on.
fn all_passes(words: &mut [u64], spare: &mut [u64], counts: &mut Buffer<u32>, low: u32, bits: u32) -> bool {
    let (passes, width) = plan(words.len(), bits);
    let radix = 1usize << width;
    let digit = |word: u64, pass: u32| (word >> (low + pass * width)) as usize & (radix - 1);
    // The last digit may be wider than what is left: bits above the key do not count.
    let mask = if low + bits == u64::BITS { u64::MAX } else { (1 << (low + bits)) - 1 };

    counts.clear();
    extend_with(counts, passes as usize * radix, |_| 0);
    for &word in words.iter() {
        for pass in 0..passes {
            counts[pass as usize * radix + digit(word & mask, pass)] += 1;
        }
    }
    let (mut from, mut to) = (words, spare);
    let mut moved = false;
    for pass in 0..passes {
        let starts = &mut counts[pass as usize * radix..][..radix];
        if starts[digit(from[0] & mask, pass)] as usize == from.len() {
            continue;
        }
        let mut start = 0;
        for count in starts.iter_mut() {
            let next = start + *count;
            *count = start;
            start = next;
        }
        for &word in from.iter() {
            let slot = &mut starts[digit(word & mask, pass)];
            to[*slot as usize] = word;
            *slot += 1;
        }
        (from, to) = (to, from);
        moved = !moved;
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(words: &[u64], low: u32, bits: u32) {
        let key = |word: &u64| {
            if bits == 0 { 0 } else { *word >> low << (64 - bits) >> (64 - bits) }
        };
        let mut expected = words.to_vec();
        expected.sort_by_key(key);
        let mut sorted = Buffer::new();
        sorted.extend_from_slice(words);
        sort_words(&mut sorted, &mut Buffer::new(), &mut Buffer::new(), low, bits);
        assert_eq!(&sorted[..], expected);
    }

    quickcheck::quickcheck! {
        fn as_a_stable_sort(words: Vec<u64>, low: u32, bits: u32) -> () {
            let low = low % 64;
            check(&words, low, bits % (65 - low));
        }
    }

    #[test]
    fn wide_digits() {
        let words: Vec<u64> = (0..5000u64).map(crate::hash::mix).collect();
        for (low, bits) in [(0, 64), (14, 50), (13, 22), (0, 11), (60, 4)] {
            check(&words, low, bits);
        }
    }

    /// So many that they are dealt out; evenly, or nearly all to one part, which is dealt out again.
    #[test]
    fn many_are_dealt_out() {
        for few in [1, 50] {
            let words: Vec<u64> = (0..2 * PART as u64)
                .map(|i| if i % few == 0 { crate::hash::mix(i) } else { crate::hash::mix(i) >> 20 })
                .collect();
            for (low, bits) in [(0, 64), (14, 50), (13, 22), (0, 9), (0, 8)] {
                check(&words, low, bits);
            }
        }
    }
}
