//! Merging sorted columns by runs: who comes next, and for how long.
//!
//! ```text
//!   a   1 2 3       7 8      A(0,3) B(0,2) Both(3,2) A(4,5) B(3,4)
//!   b         4 5   7    9   the caller copies each run whole
//! ```
//! Runs are found by galloping, so that the cost follows the number of changes between the sides. Both forms
//! stop when their budget is spent and go on from where they stopped. In columns with duplicates, equal values
//! are paired once and the rest follow in runs, in order all the same.
use crate::gallop::gallop;
use crate::traits::Column;
use std::cmp::Ordering;
use std::ops::Range;

/// A step of a two-way merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// The values `.0 .. .1` of the first column come next.
    A(usize, usize),
    /// The values `.0 .. .1` of the second column come next.
    B(usize, usize),
    /// Value `.0` of the first and `.1` of the second are equal and come next.
    Both(usize, usize),
}

/// Merges `a[a_range]` and `b[b_range]`, both sorted, calling `emit` with runs in order until about `budget`
/// values are covered. Returns where it stopped in each; both ranges are done when these are their ends.
///
/// A budget above 0 always makes progress; a run is cut where the budget ends.
///
/// # Panics
/// If a range does not lie in its column.
pub fn merge_runs<C: Column>(
    a: &C,
    b: &C,
    a_range: Range<usize>,
    b_range: Range<usize>,
    budget: usize,
    mut emit: impl FnMut(Run),
) -> (usize, usize) {
    let (mut i, mut j, mut left) = (a_range.start, b_range.start, budget);
    while left > 0 && i < a_range.end && j < b_range.end {
        let (head_a, head_b) = (a.get(i), b.get(j));
        match head_a.cmp(&head_b) {
            Ordering::Less => {
                let limit = a_range.end.min(i.saturating_add(left));
                let end = gallop(limit, i + 1, |index| a.get(index) < head_b);
                emit(Run::A(i, end));
                left -= end - i;
                i = end;
            }
            Ordering::Greater => {
                let limit = b_range.end.min(j.saturating_add(left));
                let end = gallop(limit, j + 1, |index| b.get(index) < head_a);
                emit(Run::B(j, end));
                left -= end - j;
                j = end;
            }
            Ordering::Equal => {
                emit(Run::Both(i, j));
                left = left.saturating_sub(2);
                i += 1;
                j += 1;
            }
        }
    }
    if j >= b_range.end && left > 0 && i < a_range.end {
        let end = a_range.end.min(i.saturating_add(left));
        emit(Run::A(i, end));
        i = end;
    } else if i >= a_range.end && left > 0 && j < b_range.end {
        let end = b_range.end.min(j.saturating_add(left));
        emit(Run::B(j, end));
        j = end;
    }
    (i, j)
}

/// A step of a k-way merge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KRun<'a> {
    /// The values `lower..upper` of one column come next.
    One {
        /// Which column.
        column: usize,
        /// The first value.
        lower: usize,
        /// The value after the last.
        upper: usize,
    },
    /// The value at the position given is equal in all of these columns (at least two), and comes next.
    Equal(&'a [(usize, usize)]),
}

/// The state of a k-way merge: a range of each column, the positions where it stands.
///
/// The columns with values left are kept in the order of their next values, so that a step costs the
/// comparisons of a binary search: O(log k).
#[derive(Clone, Debug)]
pub struct KWay {
    ranges: Vec<Range<usize>>,
    /// Columns with values left, by next value descending, then by index descending: the next is the last.
    order: Vec<usize>,
    /// Columns not yet placed in `order`.
    unplaced: Vec<usize>,
    equal: Vec<(usize, usize)>,
}

impl KWay {
    /// A merge of one sorted range of each column.
    #[must_use]
    pub fn new(ranges: Vec<Range<usize>>) -> Self {
        let unplaced = (0..ranges.len()).filter(|&c| !ranges[c].is_empty()).collect();
        KWay { ranges, order: Vec::new(), unplaced, equal: Vec::new() }
    }

    /// True iff all values have been emitted.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.order.is_empty() && self.unplaced.is_empty()
    }

    /// What is left of each column's range.
    #[must_use]
    pub fn ranges(&self) -> &[Range<usize>] {
        &self.ranges
    }

    /// Emits runs in order until about `budget` values are covered; returns how many were. The columns must be
    /// the same at each call, in the same order. A budget above 0 makes progress.
    ///
    /// # Panics
    /// If a range does not lie in its column.
    pub fn step<C: Column>(&mut self, columns: &[&C], budget: usize, mut emit: impl FnMut(KRun<'_>)) -> usize {
        assert_eq!(columns.len(), self.ranges.len(), "one range for each column");
        let mut spent = 0;
        while spent < budget {
            while let Some(column) = self.unplaced.pop() {
                self.place(columns, column);
            }
            let Some(first) = self.order.pop() else { break };
            let lower = self.ranges[first].start;
            let head = columns[first].get(lower);
            self.equal.clear();
            self.equal.push((first, lower));
            while let Some(&next) = self.order.last() {
                let position = self.ranges[next].start;
                if columns[next].get(position) != head {
                    break;
                }
                self.equal.push((next, position));
                self.order.pop();
            }
            if self.equal.len() > 1 {
                emit(KRun::Equal(&self.equal));
                spent += self.equal.len();
                for &(column, position) in &self.equal {
                    self.ranges[column].start = position + 1;
                }
            } else {
                let limit = self.ranges[first].end.min(lower.saturating_add(budget - spent));
                let upper = match self.order.last() {
                    Some(&next) => {
                        let bound = columns[next].get(self.ranges[next].start);
                        gallop(limit, lower + 1, |index| columns[first].get(index) < bound)
                    }
                    None => limit,
                };
                emit(KRun::One { column: first, lower, upper });
                spent += upper - lower;
                self.ranges[first].start = upper;
            }
            let ranges = &self.ranges;
            let left = self.equal.iter().map(|&(c, _)| c).filter(|&c| !ranges[c].is_empty());
            self.unplaced.extend(left);
        }
        spent
    }

    /// Inserts a column by its next value.
    fn place<C: Column>(&mut self, columns: &[&C], column: usize) {
        let head = columns[column].get(self.ranges[column].start);
        let at = self.order.partition_point(|&other| {
            let value = columns[other].get(self.ranges[other].start);
            (value, other) > (head, column)
        });
        self.order.insert(at, column);
    }
}
