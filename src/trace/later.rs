//! Updates whose time has not come for some time: sorted by time first, so that a seal need not pass over them all.
//!
//! ```text
//! run   | 3 a | 3 b | 7 a | 7 c | 9 b |        taken up to here: a position, where times are totally ordered
//! ```
//! Invariants: runs are sorted by (time, data) and summed up, each at least twice the next when it was added. Cost: a
//! seal takes what it gives out; where times are partially ordered it also looks at each run that has such a time.
//! Used by `batcher`.
#![forbid(unsafe_code)]

use super::compare::compare;
use super::consolidate::{By, sort_by};
use super::runs::merge_by;
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Sorter};

struct Run<D: Columnar, T: Timestamp, R: Semigroup> {
    updates: Updates<D, T, R>,
    // What lies before was taken.
    start: usize,
    // The minimal times of the rest.
    least: Antichain<T>,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Run<D, T, R> {
    fn new(updates: Updates<D, T, R>) -> Self {
        let mut run = Run { updates, start: 0, least: Antichain::new() };
        run.find_least();
        run
    }
    fn find_least(&mut self) {
        self.least.clear();
        let mut index = self.start;
        while index < self.updates.len() {
            let time = self.updates.times.get(index);
            self.least.insert(time);
            if T::TOTAL {
                return;
            }
            let end = self.updates.len();
            index = kpg_columnar::gallop(end, index, |i| self.updates.times.get(i) == time);
        }
    }
    fn len(&self) -> usize {
        self.updates.len() - self.start
    }
    /// The rest, without what was taken.
    fn rest(mut self) -> Updates<D, T, R> {
        self.compact();
        self.updates
    }
    fn compact(&mut self) {
        if self.start > 0 {
            let mut rest = Updates::default();
            rest.extend_from(&self.updates, self.start, self.updates.len());
            (self.updates, self.start) = (rest, 0);
        }
    }
    /// Moves what is not beyond `upper` to `out`.
    fn take(&mut self, upper: &Antichain<T>, out: &mut Updates<D, T, R>) {
        if upper.before_equal(&self.least) {
            return;
        }
        let early = |index: usize| !upper.less_equal(&self.updates.times.get(index));
        let len = self.updates.len();
        if T::TOTAL {
            let end = kpg_columnar::gallop(len, self.start, early);
            out.extend_from(&self.updates, self.start, end);
            self.start = end;
            if self.start > len / 2 {
                self.compact();
            }
        } else {
            let mut kept = Updates::default();
            let mut index = self.start;
            while index < len {
                let first = early(index);
                let end = (index + 1..len).find(|i| early(*i) != first).unwrap_or(len);
                if first { &mut *out } else { &mut kept }.extend_from(&self.updates, index, end);
                index = end;
            }
            (self.updates, self.start) = (kept, 0);
        }
        self.find_least();
    }
}

/// Updates by time.
pub(super) struct Later<D: Columnar, T: Timestamp, R: Semigroup> {
    runs: Vec<Run<D, T, R>>,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Default for Later<D, T, R> {
    fn default() -> Self {
        Later { runs: Vec::new() }
    }
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Later<D, T, R> {
    pub fn len(&self) -> usize {
        self.runs.iter().map(Run::len).sum()
    }
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }
    pub fn bytes(&self) -> usize {
        self.runs.iter().map(|run| run.updates.bytes()).sum()
    }
    /// Takes updates in any order.
    pub fn push(&mut self, sorter: &mut Sorter, updates: Updates<D, T, R>) {
        let mut updates = sort_by(By::Time, sorter, updates);
        while self.runs.last().is_some_and(|last| last.len() < 2 * updates.len()) {
            let last = self.runs.pop().expect("looked at");
            updates = merge_by(By::Time, &last.rest(), &updates);
        }
        if !updates.is_empty() {
            self.runs.push(Run::new(updates));
        }
    }
    /// Takes out what is not beyond `upper`, in no order.
    pub fn take(&mut self, upper: &Antichain<T>) -> Updates<D, T, R> {
        let mut out = Updates::default();
        self.runs.iter_mut().for_each(|run| run.take(upper, &mut out));
        self.runs.retain(|run| run.len() > 0);
        out
    }
    /// The minimal times of what is held, summed up.
    pub fn frontier(&mut self) -> Antichain<T> {
        if T::TOTAL { self.first() } else { self.merge() }
    }

    fn merge(&mut self) -> Antichain<T> {
        while self.runs.len() > 1 {
            let [b, a] = [self.runs.pop(), self.runs.pop()].map(|run| run.expect("two at least").rest());
            let merged = merge_by(By::Time, &a, &b);
            if !merged.is_empty() {
                self.runs.push(Run::new(merged));
            }
        }
        self.runs.first().map(|run| run.least.clone()).unwrap_or_default()
    }

    /// The first time of a total order at which not all is summed away. What is goes.
    fn first(&mut self) -> Antichain<T> {
        loop {
            self.runs.retain(|run| run.len() > 0);
            let head = |run: &Run<D, T, R>| (run.updates.times.get(run.start), run.start);
            let Some(time) = self.runs.iter().map(|run| head(run).0).min() else { return Antichain::new() };
            // The runs at that time, and how far each is looked through.
            let mut at: Vec<(usize, usize)> = (0..self.runs.len())
                .filter(|index| head(&self.runs[*index]).0 == time)
                .map(|index| (index, self.runs[index].start))
                .collect();
            if self.remains(time, &mut at) {
                return Antichain::from_elem(time);
            }
            for (index, end) in at {
                self.runs[index].start = end;
                self.runs[index].find_least();
            }
        }
    }

    /// Whether some data has a sum at `time`, in the order of data; moves the positions past what has none.
    fn remains(&self, time: T, at: &mut [(usize, usize)]) -> bool {
        loop {
            let open = |&(index, position): &(usize, usize)| {
                let updates = &self.runs[index].updates;
                position < updates.len() && updates.times.get(position) == time
            };
            let data = |&(index, position): &(usize, usize)| self.runs[index].updates.data.get(position);
            let least = at.iter().filter(|at| open(at)).min_by(|a, b| compare::<D>(data(a), data(b)));
            let Some(least) = least.map(data) else { return false };
            let mut sum = R::Sum::default();
            for at in at.iter_mut() {
                while open(at) && compare::<D>(data(at), least).is_eq() {
                    self.runs[at.0].updates.diffs.get(at.1).add_to(&mut sum);
                    at.1 += 1;
                }
            }
            if !R::sum_is_zero(&sum) {
                return true;
            }
        }
    }
}
