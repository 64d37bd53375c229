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
use crate::traits::Column;
use std::ops::Range;

/// A step of a merge, made of bits: which sides it takes the next value of ([`A`], [`B`], [`THIRD`]), and whether one comes
/// out: that of the third side if it takes one, else of the first, else of the second; with [`DROP`] none.
pub type Step = u8;
/// Takes the next value of the first column.
pub const A: Step = 1;
/// Takes the next value of the second column.
pub const B: Step = 2;
/// Nothing comes out.
pub const DROP: Step = 4;
/// Takes the next value of the third column: what the values of both come to.
pub const THIRD: Step = 8;

/// Values to decode at once: three blocks of eight bytes a value are 6 KiB.
pub(crate) const BLOCK: usize = 256;

/// How many values come out of these steps.
#[must_use]
pub fn woven(steps: &[Step]) -> usize {
    steps.len() - having(steps, DROP)
}

/// How many values of the first and of the second column these steps take.
#[must_use]
pub fn taken(steps: &[Step]) -> (usize, usize) {
    (having(steps, A), having(steps, B))
}

/// How many steps have this bit.
#[must_use]
pub fn having(steps: &[Step], bit: Step) -> usize {
    // Summed up in bytes, which is compiled to vectors.
    let in_bytes = |steps: &[Step]| steps.iter().fold(0, |sum, step| sum + u8::from(step & bit != 0));
    steps.chunks(u8::MAX as usize).map(|steps| usize::from(in_bytes(steps))).sum()
}

/// So few steps are not worth a block.
pub(crate) const FEW: usize = 32;

/// Plans the merge of `i` of `a` and `j` of `b` by their prefixes: see [`Column::plan`].
pub(crate) fn plan<C: Column>(a: &C, i: Range<usize>, b: &C, j: Range<usize>, steps: &mut [Step]) -> usize {
    if steps.len().min(i.len() + j.len()) <= FEW {
        return plan_few(a, i, b, j, steps);
    }
    let mut blocks = [[0; BLOCK]; 2];
    let [block_a, block_b] = &mut blocks;
    // Where in the columns the blocks end, and what of them is still to be taken.
    let (mut end_a, mut end_b) = (i.start, j.start);
    let (mut next_a, mut next_b): (&[u64], &[u64]) = (&[], &[]);
    let mut done = 0;
    while done < steps.len() {
        if next_a.is_empty() {
            next_a = refill(a, &mut end_a, i.end, block_a);
        }
        if next_b.is_empty() {
            next_b = refill(b, &mut end_b, j.end, block_b);
        }
        if next_a.is_empty() || next_b.is_empty() {
            break;
        }
        let (mut at_a, mut at_b) = (0, 0);
        for step in &mut steps[done..] {
            let (Some(x), Some(y)) = (next_a.get(at_a), next_b.get(at_b)) else { break };
            let (mut from_a, mut from_b) = (x <= y, y <= x);
            if !C::PREFIX_EXACT && x == y {
                let order = a.get(end_a - next_a.len() + at_a).cmp(&b.get(end_b - next_b.len() + at_b));
                (from_a, from_b) = (order.is_le(), order.is_ge());
            }
            *step = Step::from(from_a) | Step::from(from_b) << 1;
            at_a += usize::from(from_a);
            at_b += usize::from(from_b);
            done += 1;
        }
        (next_a, next_b) = (&next_a[at_a..], &next_b[at_b..]);
    }
    done
}

fn plan_few<C: Column>(a: &C, mut i: Range<usize>, b: &C, mut j: Range<usize>, steps: &mut [Step]) -> usize {
    let mut done = 0;
    while done < steps.len() && !i.is_empty() && !j.is_empty() {
        let order = a.get(i.start).cmp(&b.get(j.start));
        steps[done] = Step::from(order.is_le()) | Step::from(order.is_ge()) << 1;
        i.start += usize::from(order.is_le());
        j.start += usize::from(order.is_ge());
        done += 1;
    }
    done
}

/// The prefixes from `*from` on, as many as fill the block, up to `end`.
fn refill<'b, C: Column>(column: &C, from: &mut usize, end: usize, block: &'b mut [u64; BLOCK]) -> &'b [u64] {
    let block = &mut block[..BLOCK.min(end - *from)];
    column.prefixes(*from, block);
    *from += block.len();
    block
}

/// Weaves value by value: see [`Column::weave`].
pub(crate) fn weave_few<C: Column>(out: &mut C, a: (&C, usize), b: (&C, usize), third: &C, steps: &[Step]) {
    let (mut i, mut j, mut k) = (a.1, b.1, 0);
    for step in steps {
        match *step {
            dropped if dropped & DROP != 0 => {}
            summed if summed & THIRD != 0 => out.push(third.get(k)),
            from_a if from_a & A != 0 => out.push(a.0.get(i)),
            _ => out.push(b.0.get(j)),
        }
        i += usize::from(step & A);
        j += usize::from(step >> 1 & 1);
        k += usize::from(step >> 3 & 1);
    }
}

/// A column, and where in it the values are that are next taken.
pub(crate) struct From<'a, T: Int>(pub(crate) &'a Encoding<T>, pub(crate) usize);

/// Weaves one block of at most [`BLOCK`] steps into `out`; returns what came out. See [`Column::weave`].
///
/// `buffer` is scratch: a block for each source, and a fourth, so that a place is held within by a mask.
pub(crate) fn weave<'o, T: Int>(
    sources: &mut [From<'_, T>; 3],
    steps: &[Step],
    buffer: &mut [T; 4 * BLOCK],
    out: &'o mut [T; BLOCK],
) -> &'o [T] {
    let counts = [A, B, THIRD].map(|bit| having(steps, bit));
    for (index, (source, count)) in sources.iter_mut().zip(counts).enumerate() {
        source.0.decode_to(source.1, &mut buffer[index * BLOCK..][..count]);
        source.1 += count;
    }
    let (mut at_a, mut at_b, mut at_third, mut count) = (0, BLOCK, 2 * BLOCK, 0);
    for step in steps {
        let one = if step & A == 0 { at_b } else { at_a };
        let at = if step & THIRD == 0 { one } else { at_third };
        out[count & (BLOCK - 1)] = buffer[at & (4 * BLOCK - 1)];
        count += usize::from(step & DROP == 0);
        at_a += usize::from(step & A);
        at_b += usize::from(step >> 1 & 1);
        at_third += usize::from(step >> 3 & 1);
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
                let count = a.plan(i..a.len(), &b, j..b.len(), &mut steps);
                out.weave((&a, i), (&b, j), &Ints::default(), &steps[..count]);
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
            steps[7] = A | B | THIRD;
            steps[8] = A | B | DROP;
            out.weave((&diffs, i), (&diffs, i), &sums, &steps);
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
