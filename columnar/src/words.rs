//! Merging sorted words in several places at once.
//!
//! A merge without branches waits for itself: where the next word comes from is known only once the one before has been compared.
//! So the merge is cut where its output is cut in equal parts (the merge path: Odeh and others, IPDPSW 2012), and the parts take
//! turns.
//!
//! ```text
//!   a  1 3 | 6 7 | 8 9     parts of the output:  1 2 3 | 5 6 7 | 8 8 9
//!   b  2   | 5   | 8
//! ```

/// Parts that take turns: enough that few cycles are lost, few enough that their places stay in registers.
const PARTS: usize = 3;
/// So few words are merged in one part.
const FEW: usize = 64;

/// Merges words, each side in order, until one side is used up, and what is equal from `a` first; returns how many of each were
/// taken.
///
/// # Panics
/// If what comes out has no room in `out`.
#[must_use]
pub fn weave_words(a: &[u64], b: &[u64], out: &mut [u64]) -> [usize; 2] {
    let (Some(last_a), Some(last_b)) = (a.last(), b.last()) else { return [0; 2] };
    let taken = if last_a <= last_b {
        [a.len(), b.partition_point(|word| word < last_a)]
    } else {
        [a.partition_point(|word| word <= last_b), b.len()]
    };
    let (a, b, out) = (&a[..taken[0]], &b[..taken[1]], &mut out[..taken[0] + taken[1]]);
    let part = if out.len() < FEW { out.len() } else { out.len() / PARTS };
    let (first, rest) = out.split_at_mut(part);
    let mut one = Part { a, b, at: [0; 2] };
    if !rest.is_empty() {
        let (second, third) = rest.split_at_mut(part);
        let mut two = Part { a, b, at: cut(a, b, part) };
        let mut three = Part { a, b, at: cut(a, b, 2 * part) };
        let (third, end) = third.split_at_mut(part);
        for ((x, y), z) in first.iter_mut().zip(second).zip(third) {
            (*x, *y, *z) = (one.next(), two.next(), three.next());
        }
        end.iter_mut().for_each(|slot| *slot = three.next());
    } else {
        first.iter_mut().for_each(|slot| *slot = one.next());
    }
    taken
}

/// A part of a merge that begins at places of both sides.
struct Part<'w> {
    a: &'w [u64],
    b: &'w [u64],
    at: [usize; 2],
}

impl Part<'_> {
    /// The next word. Who has used up what the part has of a side sees the next part's first word, or the end of the side, and
    /// both are behind all of the part, or the same as its last.
    #[inline(always)]
    fn next(&mut self) -> u64 {
        let [i, j] = self.at;
        let (x, y) = (self.a.get(i).copied().unwrap_or(u64::MAX), self.b.get(j).copied().unwrap_or(u64::MAX));
        let from_a = x <= y;
        self.at = [i + usize::from(from_a), j + usize::from(!from_a)];
        if from_a { x } else { y }
    }
}

/// Where the first `count` words of the merge end in both sides.
fn cut(a: &[u64], b: &[u64], count: usize) -> [usize; 2] {
    let (mut low, mut high) = (count.saturating_sub(b.len()), count.min(a.len()));
    while low < high {
        let middle = (low + high) / 2;
        if a[middle] <= b[count - 1 - middle] {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    [low, count - low]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    /// As one word at a time does it.
    fn check(a: &[u64], b: &[u64]) {
        let (mut i, mut j, mut expected) = (0, 0, Vec::new());
        while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
            expected.push(*x.min(y));
            (i, j) = (i + usize::from(x <= y), j + usize::from(x > y));
        }
        let mut out = vec![0; a.len() + b.len()];
        assert_eq!(weave_words(a, b, &mut out), [i, j]);
        assert_eq!(out[..i + j], expected);
    }

    #[test]
    fn as_one_word_at_a_time() {
        let shapes = [(0, 9), (1, 1), (1, 500), (3, 70), (100, 100), (300, 300), (512, 512), (512, 31), (500, 17)];
        for (seed, (first, second)) in shapes.into_iter().enumerate() {
            for below in [1, 2, 3, 40, 1000, u64::MAX] {
                for top in [0, u64::MAX - 2] {
                    let side = |seed: u64, count: u64, from: u64| -> Vec<u64> {
                        let of = |index| from.max(mix(seed << 32 | index) % below).saturating_add(top);
                        let mut words: Vec<u64> = (0..count).map(of).collect();
                        words.sort_unstable();
                        words
                    };
                    for from in [0, 500] {
                        let (a, b) = (side(seed as u64, first, 0), side(seed as u64 + 50, second, from));
                        check(&a, &b);
                        check(&b, &a);
                    }
                }
            }
        }
    }
}
