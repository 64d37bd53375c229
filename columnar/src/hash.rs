//! The one fixed hash: keys of a type go to one shard everywhere, so it has no seed and never changes with
//! the encoding. It mixes well (each input bit reaches each output bit); it is not meant to resist an attacker.
use std::hash::Hasher;

/// A bijective 64-bit finalizer with full avalanche (splitmix64; Steele, Lea, Flood, OOPSLA 2014).
#[inline]
#[must_use]
pub const fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Folds the next part's hash into the state; the order of parts matters.
#[inline]
#[must_use]
pub const fn combine(state: u64, next: u64) -> u64 {
    mix(state.rotate_left(23) ^ next)
}

/// Folds one word into a running state: one multiplication of 64 to 128 bits, halves folded.
#[inline]
const fn absorb(state: u64, word: u64) -> u64 {
    const ODD: u64 = 0xA076_1D64_78BD_642F;
    let wide = (state ^ word) as u128 * ODD as u128;
    (wide as u64 ^ (wide >> 64) as u64).wrapping_add(word.rotate_left(32))
}

/// The hash of a byte string: eight bytes at a time.
#[inline]
#[must_use]
pub fn hash_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut state = mix(bytes.len() as u64);
    for word in words {
        state = absorb(state, u64::from_le_bytes(*word));
    }
    if !rest.is_empty() {
        let mut last = 0;
        for (shift, &byte) in rest.iter().enumerate() {
            last |= u64::from(byte) << (8 * shift);
        }
        state = absorb(state, last);
    }
    mix(state)
}

/// A [`Hasher`] without a seed, for opaque values.
#[derive(Clone, Debug, Default)]
pub struct FixedHasher(u64);

impl Hasher for FixedHasher {
    fn finish(&self) -> u64 {
        mix(self.0)
    }
    fn write(&mut self, bytes: &[u8]) {
        self.0 = combine(self.0, hash_bytes(bytes));
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = combine(self.0, value);
    }
    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each input bit flips each output bit about half the time.
    #[test]
    fn avalanche() {
        let hashes: [fn(u64) -> u64; 3] = [mix, |x| hash_bytes(&x.to_le_bytes()), |x| combine(x, 7)];
        for hash in hashes {
            for bit in 0..64 {
                let mut flips = [0u32; 64];
                for sample in 0..1024u64 {
                    let x = mix(sample);
                    let changed = hash(x) ^ hash(x ^ 1 << bit);
                    for (out, flip) in flips.iter_mut().enumerate() {
                        *flip += (changed >> out & 1) as u32;
                    }
                }
                for flip in flips {
                    assert!((384..=640).contains(&flip), "bit {bit}: {flip} of 1024");
                }
            }
        }
    }

    #[test]
    fn lengths_differ() {
        let zeros = [0u8; 64];
        let mut seen: Vec<u64> = (0..=64).map(|len| hash_bytes(&zeros[..len])).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 65);
    }
}
