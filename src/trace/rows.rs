//! Updates as rows of one word each: sorted, merged and summed up as words, and decoded once.
//!
//! ```text
//!   data  time  diff      words of a frame       in order           summed up      decoded
//!   7     1     +1        0100 0 10              0011 1 01          0011 1 01      3  2  -1
//!   3     2     -1   ─▶   0011 1 01       ─▶     0100 0 10    ─▶    0100 0 11  ─▶  7  1  +2
//!   7     1     +1        0100 0 10              0100 0 10
//! ```
//! That is what most updates fit into: numbers of some 20 to 40 bits, or pairs of such, at few times, with small diffs. What is
//! equal but for its diff lies together. For all else there are `consolidate` and `runs`. Source of the words: `kpg_columnar`'s
//! `frame`. Next stop: `consolidate`.
#![forbid(unsafe_code)]

use crate::order::Semigroup;
use kpg_columnar::{Column, Frame, Rows, Sorter, gallop, weave_words};
use std::cell::RefCell;
use std::ops::Range;

/// Rows looked at together for equal ones: where there are any, each costs several times as much.
const BLOCK: usize = 64;
/// Rows merged at once: what is read and written stays in the first-level cache.
const MERGED: usize = 512;
/// So few updates are sorted or merged as they are: what words need beside them costs more.
pub(super) const FEW: usize = 64;
/// So many updates from one side in a row are copied whole.
const STRETCH: usize = 64;

/// Three columns, of which the first two are sorted by.
pub(super) type Columns<'c, C, D, R> = (&'c C, &'c D, &'c <R as kpg_columnar::Columnar>::Column);
/// The same of one's own.
pub(super) type Owned<C, D, R> = (C, D, <R as kpg_columnar::Columnar>::Column);

/// Sums up sorted words.
struct Summing<C: Column, D: Column, R: Semigroup> {
    frame: Frame,
    /// Bits of the diff.
    bits: u32,
    /// Fields of the first column, and of the first two.
    fields: [usize; 2],
    /// Whether a single row may have a diff of zero.
    zeros: bool,
    /// What comes out is appended here.
    out: Owned<C, D, R>,
    /// Of rows that are looked at one by one: their diffs, and what these come to.
    read: R::Column,
    sums: Vec<R>,
}

impl<C: Column, D: Column, R: Semigroup> Summing<C, D, R> {
    fn new(frame: Frame, fields: [usize; 2], zeros: bool) -> Self {
        let bits = frame.bits_from(fields[1]);
        let (read, sums) = (R::Column::default(), Vec::new());
        Summing { frame, bits, fields, zeros, out: Default::default(), read, sums }
    }

    /// What two words have in common iff they are equal but for the diff.
    #[inline]
    fn code(&self, word: u64) -> u64 {
        word.checked_shr(self.bits).unwrap_or(0)
    }

    /// Takes words in order; equal ones do not come in several calls. What is left of the words afterwards is of no use.
    fn push(&mut self, words: &mut [u64]) {
        let (mut read, mut write) = (0, 0);
        while read < words.len() {
            let mut end = words.len().min(read + BLOCK);
            if self.zeros || has_pair(&words[read..end], words.get(end).copied(), self.bits) {
                while end < words.len() && self.code(words[end - 1]) == self.code(words[end]) {
                    end += 1;
                }
                self.sum_up(words, read..end, &mut write);
            } else {
                self.out.2.decode(&mut self.frame.fields_from(self.fields[1]), &words[read..end]);
                if write < read {
                    words.copy_within(read..end, write);
                }
                write += end - read;
            }
            read = end;
        }
        self.out.0.decode(&mut self.frame.fields(), &words[..write]);
        self.out.1.decode(&mut self.frame.fields_from(self.fields[0]), &words[..write]);
    }

    /// Appends the sums of `part`, and moves the words that stay to `*write`.
    fn sum_up(&mut self, words: &mut [u64], part: Range<usize>, write: &mut usize) {
        self.read.clear();
        self.read.decode(&mut self.frame.fields_from(self.fields[1]), &words[part.clone()]);
        let Range { start, end } = part;
        // More than is needed, so that any of them may be written.
        self.sums.resize((end - start).max(self.sums.len()), self.read.get(0));
        let mut stay = 0;
        let (mut sum, mut group) = (R::Sum::default(), start);
        let mut code = self.code(words[start]);
        // Without a branch on whether two rows are equal: each is written, and the next one over it unless it is to stay.
        for at in start..end {
            let word = words[at];
            let next = words[..end].get(at + 1).map_or(!code, |next| self.code(*next));
            let ends = next != code;
            code = next;
            let diff = self.read.get(at - start);
            diff.add_to(&mut sum);
            let fitting = R::from_sum(sum);
            if ends && fitting.is_none() {
                // The group's words may be overwritten, but are all the same but for the diff.
                for index in group..at + 1 {
                    (words[*write], self.sums[stay]) = (word, self.read.get(index - start));
                    (*write, stay) = (*write + 1, stay + 1);
                }
                (sum, group) = (R::Sum::default(), at + 1);
                continue;
            }
            (words[*write], self.sums[stay]) = (word, fitting.unwrap_or(diff));
            let stays = usize::from(ends && !R::sum_is_zero(&sum));
            (*write, stay) = (*write + stays, stay + stays);
            if ends {
                (sum, group) = (R::Sum::default(), at + 1);
            }
        }
        self.out.2.push_values(&self.sums[..stay]);
    }
}

/// Whether two words in a row are the same but for their lowest `bits`; without a way out, so that it is compiled to vectors.
pub(super) fn has_pair(words: &[u64], next: Option<u64>, bits: u32) -> bool {
    let code = |word: u64| word.checked_shr(bits).unwrap_or(0);
    let Some(last) = words.last() else { return false };
    let within = words.iter().zip(&words[1..]).fold(false, |pair, (a, b)| pair | (code(*a) == code(*b)));
    within || next.is_some_and(|next| code(*last) == code(next))
}

/// Rows as words.
fn encode<C: Column, D: Column, R: Semigroup>(
    frame: &Frame,
    (first, second, diffs): Columns<'_, C, D, R>,
    from: usize,
    words: &mut [u64],
) {
    let mut fields = frame.fields();
    first.encode(from, &mut fields, words);
    second.encode(from, &mut fields, words);
    diffs.encode(from, &mut fields, words);
}

/// A frame for the rows of all parts, of which none is empty, and how many fields the first column has, and the first two; none if
/// rows do not fit a word.
fn frame_of<C: Column, D: Column, R: Semigroup>(
    parts: &[(Columns<'_, C, D, R>, Range<usize>)],
) -> Option<(Frame, [usize; 2])> {
    let (mut frame, mut fields) = (Frame::default(), [0; 2]);
    for ((first, second, diffs), Range { start, end }) in parts {
        let mut one = Frame::default();
        let mut fits = one.add(*first, *start, *end);
        fields[0] = one.len();
        fits = fits && one.add(*second, *start, *end);
        fields[1] = one.len();
        if !(fits && one.add(*diffs, *start, *end)) {
            return None;
        }
        frame.widen(&one);
    }
    frame.place().then_some((frame, fields))
}

/// Sorts `columns[low..high]` by the first two and sums up the third; none if rows do not fit a word each, or are few.
pub(super) fn sum_rows<C: Column, D: Column, R: Semigroup>(
    sorter: &mut Sorter,
    columns: Columns<'_, C, D, R>,
    low: usize,
    high: usize,
) -> Option<Owned<C, D, R>> {
    if high - low < FEW {
        return None;
    }
    let Rows { words, frame, fields } = sorter.sort_rows(columns, low, high)?;
    let zeros = match columns.2.constant() {
        Some(diff) => diff.is_zero(),
        None => (low..high).any(|index| columns.2.get(index).is_zero()),
    };
    let mut summing = Summing::<C, D, R>::new(frame, fields, zeros);
    summing.push(words);
    Some(summing.out)
}

/// A side of a merge: what of it is next, as words.
struct Side<'c, C: Column, D: Column, R: Semigroup> {
    columns: Columns<'c, C, D, R>,
    /// Updates that were read, and those that are words now.
    next: usize,
    block: Vec<u64>,
    at: usize,
}

impl<'c, C: Column, D: Column, R: Semigroup> Side<'c, C, D, R> {
    fn new(columns: Columns<'c, C, D, R>, mut block: Vec<u64>) -> Self {
        block.clear();
        Side { columns, next: 0, block, at: 0 }
    }
    fn rest(&self) -> &[u64] {
        &self.block[self.at..]
    }
    /// Reads words, if there are none; false if there is nothing more.
    fn refill(&mut self, frame: &Frame) -> bool {
        let count = (self.columns.0.len() - self.next).min(MERGED);
        if self.rest().is_empty() && count > 0 {
            self.block.clear();
            self.block.resize(count, 0);
            self.at = 0;
            encode::<C, D, R>(frame, self.columns, self.next, &mut self.block);
            self.next += count;
            if !self.block.is_sorted() {
                // Rows whose sum does not fit lie in any order of diffs.
                self.block.sort_unstable();
            }
        }
        !self.rest().is_empty()
    }
    /// Copies updates whole, if there are no words of them: those after `last` and before `target`, if they are many. What was
    /// held back because of `last` goes before.
    fn copy_stretch(&mut self, held: &mut Vec<u64>, target: Option<u64>, summing: &mut Summing<C, D, R>) {
        let (start, len) = (self.next, self.columns.0.len());
        let (Some(target), Some(last)) = (target, held.last()) else { return };
        if !self.rest().is_empty() || start + STRETCH >= len {
            return;
        }
        let columns = self.columns;
        let code = |summing: &Summing<C, D, R>, index: usize| {
            let mut word = [0];
            encode::<C, D, R>(&summing.frame, columns, index, &mut word);
            summing.code(word[0])
        };
        if code(summing, start + STRETCH) < target && code(summing, start) > summing.code(*last) {
            let end = gallop(len, start + STRETCH, |index| code(summing, index) < target);
            summing.push(held);
            held.clear();
            self.copy(end, summing);
        }
    }
    /// Copies updates up to `end`.
    fn copy(&mut self, end: usize, summing: &mut Summing<C, D, R>) {
        summing.out.0.extend_from(self.columns.0, self.next, end);
        summing.out.1.extend_from(self.columns.1, self.next, end);
        summing.out.2.extend_from(self.columns.2, self.next, end);
        self.next = end;
    }
}

thread_local! {
    // Merges take turns, and many are short.
    static BLOCKS: RefCell<[Vec<u64>; 3]> = RefCell::default();
}

/// Merges two runs, each sorted by the first two columns and summed up; none if their rows do not fit a word each, or are few.
/// Cost: linear; long stretches of one run are copied whole.
pub(super) fn merge_rows<C: Column, D: Column, R: Semigroup>(
    runs: [Columns<'_, C, D, R>; 2],
) -> Option<Owned<C, D, R>> {
    if runs.iter().any(|run| run.0.len() < FEW) {
        return None;
    }
    let (frame, fields) = frame_of::<C, D, R>(&runs.map(|run| (run, 0..run.0.len())))?;
    let mut summing = Summing::<C, D, R>::new(frame, fields, false);
    summing.out.0.prepare_merge(&runs.map(|run| run.0), false);
    summing.out.1.prepare_merge(&runs.map(|run| run.1), false);
    summing.out.2.prepare_merge(&runs.map(|run| run.2), true);
    let [block_a, block_b, mut held] = BLOCKS.take();
    let mut a = Side::<C, D, R>::new(runs[0], block_a);
    let mut b = Side::<C, D, R>::new(runs[1], block_b);
    // Words in order, of which the last may have equal ones behind it.
    held.clear();
    while a.refill(&summing.frame) & b.refill(&summing.frame) {
        let before = held.len();
        held.resize(before + a.rest().len() + b.rest().len(), 0);
        let taken = weave_words(a.rest(), b.rest(), &mut held[before..]);
        held.truncate(before + taken[0] + taken[1]);
        (a.at, b.at) = (a.at + taken[0], b.at + taken[1]);
        let last = summing.code(held[held.len() - 1]);
        let whole = held.iter().rposition(|word| summing.code(*word) != last).map_or(0, |other| other + 1);
        summing.push(&mut held[..whole]);
        held.drain(..whole);
        let [next_a, next_b] = [&a, &b].map(|side| side.rest().first().map(|word| summing.code(*word)));
        a.copy_stretch(&mut held, next_b, &mut summing);
        b.copy_stretch(&mut held, next_a, &mut summing);
    }
    let (mut side, used_up) = if a.rest().is_empty() { (b, a) } else { (a, b) };
    while side.refill(&summing.frame)
        && let Some(word) = side.rest().first()
        && held.last().is_some_and(|last| summing.code(*last) == summing.code(*word))
    {
        held.push(*word);
        side.at += 1;
    }
    summing.push(&mut held);
    side.next -= side.rest().len();
    side.copy(side.columns.0.len(), &mut summing);
    BLOCKS.set([side.block, used_up.block, held]);
    Some(summing.out)
}

/// Rows of many runs that are sorted together: two copies of so many words stay in the second-level cache.
const TOGETHER: usize = 1 << 15;

/// Merges many runs as [`merge_rows`] does two. Cost: linear, however many there are: range by range of what is sorted by, the
/// words of all runs are sorted anew, which costs less than to merge them two by two.
pub(super) fn merge_many_rows<C: Column, D: Column, R: Semigroup>(
    sorter: &mut Sorter,
    runs: &[Columns<'_, C, D, R>],
) -> Option<Owned<C, D, R>> {
    if runs.iter().map(|run| run.0.len()).sum::<usize>() < FEW * runs.len() {
        return None;
    }
    let (frame, fields) = frame_of::<C, D, R>(&runs.iter().map(|run| (*run, 0..run.0.len())).collect::<Vec<_>>())?;
    let mut summing = Summing::<C, D, R>::new(frame.clone(), fields, false);
    summing.out.0.prepare_merge(&runs.iter().map(|run| run.0).collect::<Vec<_>>(), false);
    summing.out.1.prepare_merge(&runs.iter().map(|run| run.1).collect::<Vec<_>>(), false);
    summing.out.2.prepare_merge(&runs.iter().map(|run| run.2).collect::<Vec<_>>(), true);
    let code_at = |run: usize, index: usize| {
        let mut word = [0];
        encode::<C, D, R>(&frame, runs[run], index, &mut word);
        word[0].checked_shr(frame.bits_from(fields[1])).unwrap_or(0)
    };
    // Ranges end where samples say: each stands for as many rows of its run as a sixteenth of a range.
    let mut samples = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        samples.extend((0..run.0.len()).step_by(TOGETHER / 16).skip(1).map(|at| code_at(index, at)));
    }
    samples.sort_unstable();
    let mut next = vec![0; runs.len()];
    for bound in samples.into_iter().skip(15).step_by(16).map(Some).chain([None]) {
        let ends: Vec<_> = (0..runs.len())
            .map(|run| {
                let len = runs[run].0.len();
                bound.map_or(len, |bound| gallop(len, next[run], |index| code_at(run, index) < bound))
            })
            .collect();
        let count = ends.iter().zip(&next).map(|(end, start)| end - start).sum();
        let words = sorter.sort_filled(&frame, fields[1], count, |mut words| {
            for (run, (start, end)) in runs.iter().zip(next.iter().zip(&ends)) {
                let (own, rest) = words.split_at_mut(end - start);
                encode::<C, D, R>(&frame, *run, *start, own);
                words = rest;
            }
        });
        summing.push(words);
        next = ends;
    }
    Some(summing.out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::Updates;
    use crate::trace::consolidate::{is_consolidated, sort_and_consolidate};
    use kpg_columnar::mix;
    use std::collections::BTreeMap;

    type Rows = Updates<(u64, u32), u64, i64>;

    fn model<'r>(rows: impl IntoIterator<Item = &'r Rows>) -> BTreeMap<((u64, u32), u64), i128> {
        let mut sums = BTreeMap::new();
        for rows in rows {
            rows.iter().for_each(|(data, time, diff)| *sums.entry((data, time)).or_default() += i128::from(diff));
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }

    /// `count` rows of few or many different data, sorted.
    fn rows(seed: u64, count: u64, data: u64, times: u64, from: u64) -> Rows {
        let mut rows = Rows::default();
        for index in 0..count {
            let value = mix(seed << 32 | index);
            let diff = [1, -1, 1, 3, 0][(value >> 50) as usize % 5];
            rows.push((from + value % data, (value >> 20) as u32 % 3), (value >> 30) % times, diff);
        }
        let before = model([&rows]);
        let sorted = sort_and_consolidate(rows);
        assert!(is_consolidated(&sorted) && before == model([&sorted]));
        sorted
    }

    fn merged(a: &Rows, b: &Rows) -> Rows {
        let columns = [a, b].map(|run| (&run.data, &run.times, &run.diffs));
        let (data, times, diffs) = merge_rows::<_, _, i64>(columns).expect("they fit");
        Updates { data, times, diffs }
    }

    /// Much the same and little, within each other, side by side, and with long stretches of one.
    #[test]
    fn runs_are_merged_as_the_model() {
        let shapes = [
            (5000, 1 << 30, 1, 0),
            (5000, 3000, 2, 0),
            (3000, 100, 50, 0),
            (1000, 1 << 20, 3, 1 << 31),
            (200, 1 << 31, 1, 0),
        ];
        for (seed, a) in shapes.iter().enumerate() {
            for (other, b) in shapes.iter().enumerate() {
                let [a, b] = [(seed, a), (other + 10, b)]
                    .map(|(seed, shape)| rows(seed as u64, shape.0, shape.1, shape.2, shape.3));
                let out = merged(&a, &b);
                assert!(is_consolidated(&out));
                assert_eq!(model([&out]), model([&a, &b]));
            }
        }
    }

    /// More than a range holds, of all sizes; all of one value.
    #[test]
    fn many_runs_are_merged_as_the_model() {
        let count = TOGETHER as u64;
        let of_shape = |data: u64, times: u64| -> Vec<Rows> {
            (0..8).map(|seed| rows(seed, [count, 1000, 1, 3 * count][seed as usize % 4], data, times, 0)).collect()
        };
        for runs in [of_shape(1 << 30, 1), of_shape(20_000, 3), of_shape(1, 1 << 20)] {
            let columns: Vec<_> = runs.iter().map(|run| (&run.data, &run.times, &run.diffs)).collect();
            let done = merge_many_rows::<_, _, i64>(&mut Sorter::default(), &columns).expect("they fit");
            let out = Updates { data: done.0, times: done.1, diffs: done.2 };
            assert!(is_consolidated(&out));
            assert_eq!(model([&out]), model(&runs));
        }
    }

    /// Beside rows that are summed up, vanish, or stay as they are; in any order of their diffs.
    #[test]
    fn what_does_not_fit_stays_apart_beside_others() {
        const MAX: i32 = i32::MAX;
        type Small = Updates<u64, (), i32>;
        let small = |rows: &[(u64, i32)]| {
            let mut out = Small::default();
            rows.iter().for_each(|(data, diff)| out.push(*data, (), *diff));
            (1000..1100).for_each(|data| out.push(data, (), 1));
            out
        };
        let sorted = |rows: &[(u64, i32)]| sort_and_consolidate(small(rows));
        let read = |out: &Small| -> Vec<(u64, i32)> {
            out.iter().map(|row| (row.0, row.2)).take_while(|row| row.0 < 1000).collect()
        };
        assert_eq!(read(&sorted(&[(1, 1), (1, 1), (2, MAX), (2, MAX)])), [(1, 2), (2, MAX), (2, MAX)]);
        assert_eq!(read(&sorted(&[(1, 1), (1, -1), (2, MAX), (2, 9), (3, 4)])), [(2, MAX), (2, 9), (3, 4)]);
        assert_eq!(
            read(&sorted(&[(1, MAX), (1, 1), (2, 5), (2, -5), (3, MAX), (3, 2)])),
            [(1, MAX), (1, 1), (3, MAX), (3, 2)]
        );

        let merge = |a: &Small, b: &Small| {
            let columns = [a, b].map(|run| (&run.data, &run.times, &run.diffs));
            let (data, times, diffs) = merge_rows::<_, _, i32>(columns).expect("they fit");
            Small { data, times, diffs }
        };
        let line: Vec<_> = (0..=32)
            .map(|data| (data, 1))
            .chain([(33, MAX), (33, MAX - 2)])
            .chain((34..=102).map(|data| (data, 1)))
            .collect();
        // As they may come: of the same code, but not in the order of words.
        let run = |rows: &[(u64, i32)], more: u64| {
            let mut out = Small::default();
            rows.iter().for_each(|(data, diff)| out.push(*data, (), *diff));
            (1000..1000 + more).for_each(|data| out.push(data, (), 1));
            out
        };
        let (a, b) = (run(&line, 0), run(&[(33, MAX - 1)], 63));
        for out in [merge(&a, &b), merge(&b, &a)] {
            let mut of_33: Vec<_> = out.iter().filter(|row| row.0 == 33).map(|row| row.2).collect();
            of_33.sort_unstable();
            assert_eq!(of_33, [MAX - 2, MAX - 1, MAX]);
            assert_eq!(out.len(), 102 + 3 + 63);
        }
    }

    /// Rows kept apart that lie where a block ends, before a stretch that could be copied whole.
    #[test]
    fn a_stretch_does_not_begin_within_equal_rows() {
        type Small = Updates<u64, (), i32>;
        let mut a = Small::default();
        (0..MERGED as u64 - 1).for_each(|data| a.push(data, (), 1));
        let last = MERGED as u64 - 1;
        [i32::MAX, 1].into_iter().for_each(|diff| a.push(last, (), diff));
        (0..200).for_each(|more| a.push(last + 1 + more, (), 1));
        let mut b = Small::default();
        b.push(last, (), -3);
        (0..100).for_each(|more| b.push(10_000 + more, (), 1));
        for runs in [[&a, &b], [&b, &a]] {
            let (data, times, diffs) =
                merge_rows::<_, _, i32>(runs.map(|run| (&run.data, &run.times, &run.diffs))).expect("they fit");
            let out = Small { data, times, diffs };
            assert!(is_consolidated(&out) && out.len() == a.len() - 1 + 100);
            assert_eq!(out.diffs.get(MERGED - 1), i32::MAX - 2);
        }
    }

    /// At the end of a side, and where a side's block ends.
    #[test]
    fn equal_rows_meet_wherever_they_lie() {
        let line = |from: u64, to: u64, diff: i64| {
            let mut rows = Rows::default();
            (from..to).for_each(|data| rows.push((data, 0), 0, diff));
            rows
        };
        for (from, to) in [(0, 2000), (511, 513), (100, 1024), (900, 1025), (0, 65), (1500, 1600)] {
            let (all, some) = (line(0, 2000, 1), line(from, to.max(from + FEW as u64), -1));
            let expected = model([&all, &some]);
            for out in [merged(&all, &some), merged(&some, &all)] {
                assert!(is_consolidated(&out) && model([&out]) == expected, "{from}..{to}");
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_left_to_others() {
        let mut rows = Rows::default();
        (0..100).for_each(|index| rows.push((mix(index), index as u32), 0, 1));
        let columns = (&rows.data, &rows.times, &rows.diffs);
        assert!(sum_rows::<_, _, i64>(&mut Sorter::default(), columns, 0, 100).is_none());
        assert!(merge_rows::<_, _, i64>([columns, columns]).is_none());
    }

    /// A sum that does not fit leaves rows apart, which are one again once it fits.
    #[test]
    fn sums_that_do_not_fit_stay_apart() {
        let many = |diff: i32, count: u64| {
            let mut rows = Updates::<u64, (), i32>::default();
            (0..count).for_each(|data| rows.push(data, (), diff));
            rows
        };
        let merge = |a: &Updates<u64, (), i32>, b: &Updates<u64, (), i32>| {
            let columns = [a, b].map(|run| (&run.data, &run.times, &run.diffs));
            let (data, times, diffs) = merge_rows::<_, _, i32>(columns).expect("they fit");
            Updates::<u64, (), i32> { data, times, diffs }
        };
        let (most, least) = (many(i32::MAX, 600), many(-i32::MAX, 600));
        let two = merge(&most, &most);
        assert_eq!(two.len(), 1200);
        assert!((0..1200).all(|index| two.diffs.get(index) == i32::MAX && two.data.get(index) == index as u64 / 2));
        let one = merge(&two, &least);
        assert!(one.len() == 600 && (0..600).all(|index| one.diffs.get(index) == i32::MAX));
    }
}
