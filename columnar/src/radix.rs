//! Sorting 64-bit words by some of their bits, stably: LSD radix (Knuth, vol. 3, 5.2.5).
//!
//! All histograms are made in one pass; a digit that is the same in all words costs no pass.
use kpg_arena::Buffer;

/// Digits of 8 bits have histograms that fit the first-level cache and suit short inputs; longer ones save
/// passes with 12 bits, whose 4096 counters (16 KiB) are then few beside the words.
const NARROW: u32 = 8;
const WIDE: u32 = 12;
/// From this length on wide digits pay.
const WIDE_FROM: usize = 4096;

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
/// scratch. O(passes × n).
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
    let (passes, width) = plan(words.len(), bits);
    let radix = 1usize << width;
    let digit = |word: u64, pass: u32| (word >> (low + pass * width)) as usize & (radix - 1);
    // The last digit may be wider than what is left: bits above the key do not count.
    let mask = if low + bits == u64::BITS { u64::MAX } else { (1 << (low + bits)) - 1 };

    counts.clear();
    for _ in 0..passes as usize * radix {
        counts.push(0);
    }
    for &word in words.iter() {
        for pass in 0..passes {
            counts[pass as usize * radix + digit(word & mask, pass)] += 1;
        }
    }
    if spare.len() < words.len() {
        spare.clear();
        spare.extend_from_slice(words);
    } else {
        spare.truncate(words.len());
    }
    for pass in 0..passes {
        let starts = &mut counts[pass as usize * radix..][..radix];
        if starts[digit(words[0] & mask, pass)] as usize == words.len() {
            continue;
        }
        let mut start = 0;
        for count in starts.iter_mut() {
            let next = start + *count;
            *count = start;
            start = next;
        }
        for &word in words.iter() {
            let slot = &mut starts[digit(word & mask, pass)];
            spare[*slot as usize] = word;
            *slot += 1;
        }
        std::mem::swap(words, spare);
    }
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
}
