//! A hash of a result: the same for the same multiset of (datum, diff), in whatever order and pieces it comes.
#![forbid(unsafe_code)]

use crate::generate::mix;

/// Sums up, for each datum, its hash times its diff: updates that cancel leave nothing.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer(u64);

impl Answer {
    /// Adds `diff` times a datum, given as a few numbers.
    pub fn add(&mut self, datum: &[u64], diff: i64) {
        let hash = datum.iter().fold(0xA5A5_A5A5_5A5A_5A5A, |hash, &part| mix(hash ^ part).wrapping_add(part));
        self.0 = self.0.wrapping_add(mix(hash).wrapping_mul(diff as u64));
    }
    /// Adds what another worker has.
    pub fn merge(&mut self, other: Answer) {
        self.0 = self.0.wrapping_add(other.0);
    }
    /// As a report has it.
    pub fn hex(self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_count_and_opposites_cancel() {
        let data: Vec<([u64; 2], i64)> = (0..100).map(|i| ([i, i * i % 7], 1 + i as i64 % 3)).collect();
        let hash = |data: &mut dyn Iterator<Item = &([u64; 2], i64)>| {
            let mut answer = Answer::default();
            data.for_each(|(datum, diff)| answer.add(datum, *diff));
            answer
        };
        let (forward, mut both) = (hash(&mut data.iter()), hash(&mut data.iter().rev()));
        assert_eq!(forward, both);
        both.add(&[3, 9], 1);
        assert_ne!(forward, both);
        both.add(&[3, 9], -1);
        assert_eq!(forward, both);
        assert_ne!(hash(&mut [([1, 2], 1)].iter()), hash(&mut [([2, 1], 1)].iter()));
    }
}
