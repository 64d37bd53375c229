//! Merging sorted columns without a branch on what comes next: first the plan, then each column by it.
//!
//! ```text
//!   a  1 3 7 8       steps    A B A A|B A       A: the next of a; B: of b; A|B: both, which are equal
//!   b  2 7           woven    1 2 3 7   8       the same steps then weave whatever else the rows have
//! ```
//! A merge of random keys mispredicts every other comparison, which costs more than all else; so the plan turns
//! comparisons into numbers (Sanders, Winkel: Super scalar sample sort, ESA 2004, do so for sorting), and weaving turns
//! those into addresses. Values are decoded in blocks that stay in the first-level cache, whatever the encoding.
use crate::encoding::Encoding;
use crate::int::Int;

/// A step of a merge: which sides it takes the next value of, and whether they come out.
pub type Step = u8;
/// The next value of the first column.
pub const A: Step = 1;
/// The next value of the second column.
pub const B: Step = 2;
/// Takes from both, and nothing comes out.
pub const NEITHER: Step = 7;

/// Values to decode at once: three blocks of eight bytes a value are 6 KiB.
pub(crate) const BLOCK: usize = 256;

/// How many values come out of these steps.
#[must_use]
pub fn woven(steps: &[Step]) -> usize {
    steps.iter().map(|step| usize::from(*step != NEITHER)).sum()
}

/// How many values of the first and of the second column these steps take.
#[must_use]
pub fn taken(steps: &[Step]) -> (usize, usize) {
    let (a, b) = steps.iter().fold((0, 0), |(a, b), step| (a + usize::from(step & A), b + usize::from(step >> 1 & 1)));
    (a, b)
}

/// Plans the merge of what follows `i` in `a` and `j` in `b`: see [`Column::plan`](crate::Column::plan).
pub(crate) fn plan<T: Int>(a: &Encoding<T>, i: usize, b: &Encoding<T>, j: usize, steps: &mut [Step]) -> usize {
    let (mut i, mut j, mut done) = (i, j, 0);
    let mut blocks = [[T::from_key(0); BLOCK]; 2];
    while done < steps.len() {
        let [block_a, block_b] = &mut blocks;
        let (next_a, next_b) = (a.block(i, block_a), b.block(j, block_b));
        if next_a.is_empty() || next_b.is_empty() {
            break;
        }
        let (mut at_a, mut at_b) = (0, 0);
        for step in &mut steps[done..] {
            let (Some(x), Some(y)) = (next_a.get(at_a), next_b.get(at_b)) else { break };
            let (from_a, from_b) = (x <= y, y <= x);
            *step = Step::from(from_a) | Step::from(from_b) << 1;
            at_a += usize::from(from_a);
            at_b += usize::from(from_b);
            done += 1;
        }
        (i, j) = (i + at_a, j + at_b);
    }
    done
}

/// A column, and where in it the values are that are next taken.
pub(crate) struct From<'a, T: Int>(pub(crate) &'a Encoding<T>, pub(crate) usize);

/// Weaves one block of at most [`BLOCK`] steps into `out`; returns what came out. See [`Column::weave`](crate::Column::weave).
///
/// `buffer` is scratch: a block for each source, and a fourth, so that a place is held within by a mask.
pub(crate) fn weave<'o, T: Int>(
    sources: &mut [From<'_, T>; 3],
    third: bool,
    steps: &[Step],
    buffer: &mut [T; 4 * BLOCK],
    out: &'o mut [T; BLOCK],
) -> &'o [T] {
    let (from_a, from_b) = taken(steps);
    let from_both = if third { steps.iter().map(|step| usize::from(*step == A | B)).sum() } else { 0 };
    for (index, (source, count)) in sources.iter_mut().zip([from_a, from_b, from_both]).enumerate() {
        source.0.decode_to(source.1, &mut buffer[index * BLOCK..][..count]);
        source.1 += count;
    }
    let (mut at_a, mut at_b, mut at_both, mut count) = (0, BLOCK, 2 * BLOCK, 0);
    for step in steps {
        let both = third & (*step == A | B);
        let one = if step & A == 0 { at_b } else { at_a };
        let at = if both { at_both } else { one };
        out[count & (BLOCK - 1)] = buffer[at & (4 * BLOCK - 1)];
        count += usize::from(*step != NEITHER);
        at_a += usize::from(step & A);
        at_b += usize::from(step >> 1 & 1);
        at_both += usize::from(both);
    }
    &out[..count]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;
    use crate::ints::Ints;
    use crate::traits::Column;

    /// Long columns of sorted values, in each pair of encodings, in several calls; and sums that leave the bounds.
    #[test]
    fn long_columns_in_all_encodings() {
        let spread = |seed: u64, below: u64, count: u64| -> Vec<u64> {
            let mut values: Vec<u64> = (0..count).map(|i| mix(i + seed) % below + 1000).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let sides = [
            (0..3000).collect(),
            spread(1, 200, 4000),
            spread(2, 60_000, 3000),
            spread(3, 1 << 31, 2000),
            spread(4, u64::MAX - 2000, 2000),
        ];
        for (a, b) in sides.iter().flat_map(|a| sides.iter().map(move |b| (a, b))) {
            let mut expected = [a.clone(), b.clone()].concat();
            expected.sort_unstable();
            expected.dedup();
            let column = |values: &[u64]| {
                let mut column = Ints::<u64>::default();
                column.push_values(values);
                column.seal();
                column
            };
            let (a, b, mut out) = (column(a), column(b), Ints::<u64>::default());
            out.prepare_merge(&[&a, &b], false);
            let (mut i, mut j) = (0, 0);
            while i < a.len() && j < b.len() {
                let mut steps = [0; 1000];
                let count = a.plan(i, &b, j, &mut steps);
                out.weave((&a, i), (&b, j), None, &steps[..count]);
                let (from_a, from_b) = taken(&steps[..count]);
                (i, j) = (i + from_a, j + from_b);
            }
            out.extend_from(&a, i, a.len());
            out.extend_from(&b, j, b.len());
            out.check_invariants();
            assert!((0..out.len()).all(|index| out.get(index) == expected[index]) && out.len() == expected.len());
        }
    }

    #[test]
    fn sums_that_leave_the_bounds_widen_them() {
        let mut diffs = Ints::<i64>::default();
        diffs.push_many(1, 3000);
        let mut out = Ints::<i64>::default();
        out.prepare_merge(&[&diffs, &diffs], true);
        let (mut i, mut expected) = (0, Vec::new());
        for sum in [1, 2, 100, -100, 1000, 1 << 20, 1 << 40] {
            let (mut sums, mut steps) = (Ints::<i64>::default(), [A; 300]);
            sums.push(sum);
            steps[7] = A | B;
            steps[8] = NEITHER;
            out.weave((&diffs, i), (&diffs, i), Some(&sums), &steps);
            expected.extend([&[1; 7][..], &[sum], &[1; 291]].concat());
            i += 300;
            out.check_invariants();
            assert_eq!((0..out.len()).map(|index| out.get(index)).collect::<Vec<_>>(), expected);
            let bytes = if sum.abs() < 50 {
                1
            } else if sum < 10_000 {
                2
            } else if sum < 1 << 31 {
                4
            } else {
                8
            };
            assert!(sum == 1 || out.bytes() >= bytes * out.len());
            assert!(out.bytes() <= bytes * out.len() * 2 + 1024, "{sum}: {} bytes of {}", out.bytes(), out.len());
        }
    }
}
