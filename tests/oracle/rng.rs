//! A small generator of numbers: the same seed, the same numbers, on every machine. Or from bytes, as a fuzzer has them:
//! then each choice is a byte while there are any, so that a changed byte is a changed choice, and the rest follows from
//! the seed that the first four bytes are. Every byte string is good for as many choices as are asked for.
#![allow(dead_code)]

/// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
#[derive(Clone)]
pub struct Rng {
    state: u64,
    /// Choices made already, the next one last.
    bytes: Vec<u8>,
}

impl Rng {
    /// From a seed.
    pub fn new(seed: u64) -> Self {
        Rng { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D, bytes: Vec::new() }
    }
    /// From bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let (seed, rest) = bytes.split_at(bytes.len().min(4));
        let seed = seed.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        Rng { bytes: rest.iter().rev().copied().collect(), ..Rng::new(seed) }
    }
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
    /// Below `bound`, which is not zero.
    pub fn below(&mut self, bound: usize) -> usize {
        let number = match self.bytes.pop() {
            Some(byte) => u64::from(byte),
            None => self.next(),
        };
        (number % bound as u64) as usize
    }
    /// From `low` to `high`, both included.
    pub fn range(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
    /// True in `percent` of a hundred cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    /// One of them.
    pub fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
