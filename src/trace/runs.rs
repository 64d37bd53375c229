//! Merging two runs of updates, which are sorted alike and summed up: a plan of steps, then each column by it.
//!
//! What is sorted by comes in two columns: data, then times; or times, then data. Where the first has no value twice, which is
//! so for many data at one time, the plan is one of the columns' kernels; else updates are compared one by one. Source of the
//! kernels: `kpg_columnar`'s `weave`. Before: `consolidate`. Next stop: `batcher`, `later`.
#![forbid(unsafe_code)]

use super::consolidate::By;
use super::rows::{merge_many_rows, merge_rows};
use crate::dataflow::Updates;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{A, B, Column, Columnar, DROP, Sorter, Step, THIRD, taken};
use std::cmp::Ordering;

/// Updates planned at once.
const STEPS: usize = 1024;
/// So many updates from one side in a row are copied whole.
const STRETCH: usize = 64;

/// Merges two runs, each sorted by (data, time) and summed up.
pub(crate) fn merge_runs<D: Columnar, T: Timestamp, R: Semigroup>(
    a: &Updates<D, T, R>,
    b: &Updates<D, T, R>,
) -> Updates<D, T, R> {
    merge_by(By::Data, a, b)
}

/// Merges runs, each sorted alike and summed up. Cost: linear, where rows fit a word each; else times the logarithm of how
/// many there are.
pub(crate) fn merge_all<D: Columnar, T: Timestamp, R: Semigroup>(
    by: By,
    sorter: &mut Sorter,
    mut runs: Vec<Updates<D, T, R>>,
) -> Updates<D, T, R> {
    runs.retain(|run| !run.is_empty());
    if runs.len() > 2 {
        let done = match by {
            By::Data => {
                let runs: Vec<_> = runs.iter().map(|run| (&run.data, &run.times, &run.diffs)).collect();
                merge_many_rows::<_, _, R>(sorter, &runs).map(|(data, times, diffs)| Updates { data, times, diffs })
            }
            By::Time => {
                let runs: Vec<_> = runs.iter().map(|run| (&run.times, &run.data, &run.diffs)).collect();
                merge_many_rows::<_, _, R>(sorter, &runs).map(|(times, data, diffs)| Updates { data, times, diffs })
            }
        };
        if let Some(done) = done {
            return done;
        }
    }
    while runs.len() > 1 {
        // The two shortest first.
        runs.sort_by_key(|run| std::cmp::Reverse(run.len()));
        if let (Some(a), Some(b)) = (runs.pop(), runs.pop()) {
            runs.push(merge_by(by, &a, &b));
        }
    }
    runs.pop().unwrap_or_default()
}

/// Merges two runs, each sorted alike and summed up. Cost: linear; stretches of one run are copied whole.
pub(crate) fn merge_by<D: Columnar, T: Timestamp, R: Semigroup>(
    by: By,
    a: &Updates<D, T, R>,
    b: &Updates<D, T, R>,
) -> Updates<D, T, R> {
    match by {
        By::Data => {
            let columns = [a, b].map(|run| (&run.data, &run.times, &run.diffs));
            if let Some((data, times, diffs)) = merge_rows::<_, _, R>(columns) {
                return Updates { data, times, diffs };
            }
            let runs = [a, b].map(|run| Run { first: &run.data, second: &run.times, diffs: &run.diffs });
            let (data, times, diffs) = Merging::<_, _, R>::new(runs).merge();
            Updates { data, times, diffs }
        }
        By::Time => {
            let columns = [a, b].map(|run| (&run.times, &run.data, &run.diffs));
            if let Some((times, data, diffs)) = merge_rows::<_, _, R>(columns) {
                return Updates { data, times, diffs };
            }
            let runs = [a, b].map(|run| Run { first: &run.times, second: &run.data, diffs: &run.diffs });
            let (times, data, diffs) = Merging::<_, _, R>::new(runs).merge();
            Updates { data, times, diffs }
        }
    }
}

/// Updates sorted by two columns.
struct Run<'a, C: Column, D: Column, R: Semigroup> {
    first: &'a C,
    second: &'a D,
    diffs: &'a R::Column,
}

impl<C: Column, D: Column, R: Semigroup> Run<'_, C, D, R> {
    fn len(&self) -> usize {
        self.first.len()
    }
    fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        self.first.get(i).cmp(&other.first.get(j)).then_with(|| self.second.get(i).cmp(&other.second.get(j)))
    }
    /// How many updates from `index` on are equal; more than one only where a sum didn't fit.
    fn equal(&self, index: usize) -> usize {
        (index..self.len()).take_while(|at| self.compare(*at, self, index).is_eq()).count()
    }
}

struct Merging<'a, C: Column, D: Column, R: Semigroup> {
    runs: [Run<'a, C, D, R>; 2],
    /// The updates not yet merged.
    next: [usize; 2],
    /// Whether the first columns have no value twice.
    distinct: bool,
    out: (C, D, R::Column),
    /// The steps of the first column alone, and of the updates.
    planned: Vec<Step>,
    steps: Vec<Step>,
    /// What equal updates come to.
    sums: (C, D, R::Column),
}

impl<'a, C: Column, D: Column, R: Semigroup> Merging<'a, C, D, R> {
    fn new(runs: [Run<'a, C, D, R>; 2]) -> Self {
        let [a, b] = &runs;
        let mut out = <(C, D, R::Column)>::default();
        out.0.prepare_merge(&[a.first, b.first], false);
        out.1.prepare_merge(&[a.second, b.second], false);
        out.2.prepare_merge(&[a.diffs, b.diffs], true);
        let distinct = runs.iter().all(|run| run.first.ascends(0, run.len()));
        let (planned, steps) = (Vec::new(), Vec::new());
        Merging { runs, next: [0; 2], distinct, out, planned, steps, sums: Default::default() }
    }

    fn merge(mut self) -> (C, D, R::Column) {
        while (0..2).all(|side| self.next[side] < self.runs[side].len()) {
            if !(self.copy_stretch(0) || self.copy_stretch(1)) {
                self.weave();
            }
        }
        (0..2).for_each(|side| self.copy(side, self.runs[side].len()));
        self.out
    }

    /// Appends the updates of a side up to `end`.
    fn copy(&mut self, side: usize, end: usize) {
        let (run, start) = (&self.runs[side], self.next[side]);
        self.out.0.extend_from(run.first, start, end);
        self.out.1.extend_from(run.second, start, end);
        self.out.2.extend_from(run.diffs, start, end);
        self.next[side] = end;
    }

    /// Appends what a side has before the other's next value of the first column, if that is much.
    fn copy_stretch(&mut self, side: usize) -> bool {
        let (run, other) = (&self.runs[side], &self.runs[1 - side]);
        let (far, target) = (self.next[side] + STRETCH, other.first.get(self.next[1 - side]));
        if far >= run.len() || run.first.get(far) >= target {
            return false;
        }
        let end = run.first.seek(far, run.len(), target);
        self.copy(side, end);
        true
    }

    fn weave(&mut self) {
        self.steps.clear();
        self.sums = Default::default();
        if self.distinct {
            self.plan_distinct()
        } else {
            self.plan()
        }
        let ([a, b], [i, j]) = (&self.runs, self.next);
        self.out.0.weave((a.first, i), (b.first, j), &self.sums.0, &self.steps);
        self.out.1.weave((a.second, i), (b.second, j), &self.sums.1, &self.steps);
        self.out.2.weave((a.diffs, i), (b.diffs, j), &self.sums.2, &self.steps);
        let (from_a, from_b) = taken(&self.steps);
        self.next = [i + from_a, j + from_b];
    }

    fn plan_distinct(&mut self) {
        let ([a, b], [mut i, mut j]) = (&self.runs, self.next);
        self.planned.resize(STEPS, 0);
        let count = a.first.plan(i..a.len(), b.first, j..b.len(), &mut self.planned);
        if !self.planned[..count].contains(&(A | B)) {
            self.steps.extend_from_slice(&self.planned[..count]);
            return;
        }
        for at in 0..count {
            let step = self.planned[at];
            if step == A | B {
                self.plan_one(i, j)
            } else {
                self.steps.push(step)
            }
            (i, j) = (i + usize::from(step & A), j + usize::from(step >> 1 & 1));
        }
    }

    fn plan(&mut self) {
        let [mut i, mut j] = self.next;
        while self.steps.len() < STEPS && i < self.runs[0].len() && j < self.runs[1].len() {
            let order = self.runs[0].compare(i, &self.runs[1], j);
            let (mut from_a, mut from_b) = (usize::from(order.is_le()), usize::from(order.is_ge()));
            if order.is_eq() {
                (from_a, from_b) = (self.runs[0].equal(i), self.runs[1].equal(j));
                self.plan_equal(i..i + from_a, j..j + from_b);
            } else {
                self.steps.push(if order.is_lt() { A } else { B });
            }
            (i, j) = (i + from_a, j + from_b);
        }
    }

    /// Plans an update of each side, which agree in the first column.
    fn plan_one(&mut self, i: usize, j: usize) {
        let [a, b] = &self.runs;
        match a.second.get(i).cmp(&b.second.get(j)) {
            Ordering::Less => self.steps.extend([A, B]),
            Ordering::Greater => self.steps.extend([B, A]),
            Ordering::Equal => self.plan_equal(i..i + 1, j..j + 1),
        }
    }

    /// Plans updates that agree in both columns: their sum, or all of them, if it does not fit.
    fn plan_equal(&mut self, a: std::ops::Range<usize>, b: std::ops::Range<usize>) {
        let mut sum = R::Sum::default();
        a.clone().for_each(|index| self.runs[0].diffs.get(index).add_to(&mut sum));
        b.clone().for_each(|index| self.runs[1].diffs.get(index).add_to(&mut sum));
        let fitting = R::from_sum(sum);
        let kept = if fitting.is_some() { DROP } else { 0 };
        self.steps.extend(a.clone().map(|_| A | kept).chain(b.map(|_| B | kept)));
        if let Some(diff) = fitting.filter(|_| !R::sum_is_zero(&sum)) {
            self.steps.push(THIRD);
            self.sums.0.extend_from(self.runs[0].first, a.start, a.start + 1);
            self.sums.1.extend_from(self.runs[0].second, a.start, a.start + 1);
            self.sums.2.push(diff);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::consolidate::{is_consolidated, sort_by};
    use super::*;
    use kpg_columnar::{Sorter, mix};
    use std::collections::BTreeMap;

    type Runs = Updates<u64, u64, i64>;

    /// `count` updates from `seed`: data below `data` and above `from`, times below `times`.
    fn run(by: By, seed: u64, count: u64, from: u64, data: u64, times: u64) -> Runs {
        let mut updates = Runs::default();
        for index in 0..count {
            let value = mix(seed << 32 | index);
            updates.push(from + value % data, (value >> 20) % times, [1, -1, 2][(value >> 40) as usize % 3]);
        }
        sort_by(by, &mut Sorter::default(), updates)
    }

    fn sums<'u>(runs: impl IntoIterator<Item = &'u Runs>) -> BTreeMap<(u64, u64), i64> {
        let mut sums = BTreeMap::new();
        for run in runs {
            run.iter().for_each(|(data, time, diff)| *sums.entry((data, time)).or_default() += diff);
        }
        sums.retain(|_, sum| *sum != 0);
        sums
    }

    /// Longer than a plan; with values twice and without, with stretches and without, with sums that vanish.
    #[test]
    fn long_runs_are_merged_in_order() {
        let shapes =
            [(5000, 0, 1 << 40, 1), (5000, 0, 3000, 1), (5000, 0, 500, 4), (300, 1 << 30, 1 << 20, 2), (1, 7, 1, 1)];
        for by in [By::Data, By::Time] {
            for (seed, a) in shapes.iter().enumerate() {
                for (other, b) in shapes.iter().enumerate() {
                    let [a, b] = [(seed, a), (other + 10, b)]
                        .map(|(seed, shape)| run(by, seed as u64, shape.0, shape.1, shape.2, shape.3));
                    let merged = merge_by(by, &a, &b);
                    assert_eq!(sums([&merged]), sums([&a, &b]));
                    assert_eq!(merged.len(), sums([&a, &b]).len(), "summed up");
                    let compare = |i: usize| super::super::consolidate::compare_by(by, &merged, i - 1, &merged, i);
                    assert!((1..merged.len()).all(|i| compare(i).is_lt()), "in order");
                }
            }
        }
    }

    /// The same data in both, once in each, at times before, after, and the same.
    #[test]
    fn equal_data_are_ordered_by_time() {
        let run = |times: [u64; 3]| {
            let mut updates = Runs::default();
            (0..3000).for_each(|data| updates.push(data, times[data as usize % 3], 1));
            updates
        };
        let merged = merge_runs(&run([1, 5, 3]), &run([4, 2, 3]));
        assert!(is_consolidated(&merged) && merged.len() == 5000);
    }

    /// What does not fit stays apart, and is one again once it fits.
    #[test]
    fn sums_that_do_not_fit_are_all_kept() {
        let one = |diff: i64| {
            let mut updates = Runs::default();
            updates.push(5, 5, diff);
            updates
        };
        let two = merge_runs(&one(i64::MAX), &one(i64::MAX));
        assert_eq!(two.len(), 2);
        let three = merge_runs(&two, &one(i64::MAX));
        assert_eq!(three.len(), 3);
        let again = merge_runs(&three, &merge_runs(&one(-i64::MAX), &one(-i64::MAX)));
        assert!(is_consolidated(&again) && again.len() == 1 && again.diffs.get(0) == i64::MAX);
    }
}
