//! The history of one key of a reduce, replayed in the order of time.
//!
//! ```text
//! later (by time) ── replay ──▶ fresh ── sort by val ─┐
//! past (by val, times folded) ────────────────────────┼─ merge ─▶ sums at the time; past, or the next base
//! base (by val, no times) ────────────────────────────┘
//! ```
//! Invariants: `base` is at or before each time to come; what is in `past` is folded to the meet of those, so no sum at
//! any of them changes. Once all of it is at or before that meet, the sums are the base: over a total order, always.
//! Cost of a time: the vals then present and what was replayed. Each part stops where the fuel ends, but for the edits
//! of one val, which go together.
#![forbid(unsafe_code)]

use super::sort::Sorting;
use crate::dataflow::Fuel;
use crate::order::{DiffOverflow, Semigroup, Timestamp};
use crate::trace::consolidate_times;
use std::collections::VecDeque;

/// The updates of one val, in no order.
pub(crate) trait Edits<T, R> {
    /// Tells `f` of each.
    fn for_each(&mut self, f: impl FnMut(T, R));
}

/// Where the way to a time is.
#[derive(Copy, Clone)]
enum Stage {
    Load,
    Replay,
    Merge,
    There,
}

/// One key's input or output.
pub(crate) struct History<V, T, R> {
    base: Vec<(V, R)>,
    later: VecDeque<(V, T, R)>,
    fresh: Vec<(V, T, R)>,
    past: VecDeque<(V, T, R)>,
    /// Sums at the time reached: vals ascending, none that vanish.
    pub(crate) sums: Vec<(V, R)>,
    stage: Stage,
    /// While merging: edits that will be past, how much of the base is done, and of `fresh` (turned round).
    merged: Vec<(V, T, R)>,
    base_done: usize,
    /// All of `past` is at or before each time to come.
    folded: bool,
    sorting: Sorting<(V, T, R)>,
    edits: Vec<(T, R)>,
}

impl<V: Clone + Ord, T: Timestamp, R: Semigroup> History<V, T, R> {
    pub(crate) fn new() -> Self {
        History {
            base: Vec::new(),
            later: VecDeque::new(),
            fresh: Vec::new(),
            past: VecDeque::new(),
            sums: Vec::new(),
            stage: Stage::Load,
            merged: Vec::new(),
            base_done: 0,
            folded: true,
            sorting: Sorting::default(),
            edits: Vec::new(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.base.clear();
        self.later.clear();
        self.fresh.clear();
        self.past.clear();
        self.sums.clear();
        self.stage = Stage::Load;
        self.edits.clear();
    }

    /// Loads the edits of a val beyond all loaded before it, seen from `meet` on; tells `times` of those not at or
    /// before it. Returns how many there are.
    pub(crate) fn load(
        &mut self,
        val: impl FnOnce() -> V,
        meet: &T,
        edits: &mut impl Edits<T, R>,
        mut times: impl FnMut(T),
    ) -> usize {
        let mut sum = R::Sum::default();
        let mut count = 0;
        edits.for_each(|time, diff| {
            count += 1;
            if time.less_equal(meet) {
                diff.add_to(&mut sum);
            } else {
                self.edits.push((time.join(meet), diff));
            }
        });
        let base = match R::from_sum(sum) {
            Some(diff) => (!R::sum_is_zero(&sum)).then_some(diff),
            // It may fit at the times that are visited: apart, as any edits.
            None => {
                edits.for_each(|time, diff| {
                    if time.less_equal(meet) {
                        self.edits.push((*meet, diff));
                    }
                });
                None
            }
        };
        consolidate_times(&mut self.edits);
        if base.is_none() && self.edits.is_empty() {
            return count;
        }
        let val = val();
        for (time, diff) in self.edits.drain(..) {
            times(time);
            self.fresh.push((val.clone(), time, diff));
        }
        self.base.extend(base.map(|diff| (val, diff)));
        count
    }

    /// Once all is loaded: sorts it by time, in slices; true iff done.
    pub(crate) fn prepare(&mut self, fuel: &mut Fuel) -> bool {
        if !matches!(self.stage, Stage::Load) {
            return true;
        }
        let done = self.sorting.sort(&mut self.fresh, |a, b| (a.1, &a.0).cmp(&(b.1, &b.0)), fuel);
        if done {
            self.stage = Stage::Replay;
            let empty = std::mem::replace(&mut self.later, VecDeque::from(std::mem::take(&mut self.fresh)));
            self.fresh = Vec::from(empty);
        }
        done
    }

    /// A change at the time reached, seen from the next one on.
    pub(crate) fn add(&mut self, val: V, time: T, diff: R) {
        self.fresh.push((val, time, diff));
    }

    /// Goes on to `time`; `meet` is at or before it and all times to come. True iff there, with `sums` as of it.
    pub(crate) fn reach(&mut self, time: &T, meet: &T, fuel: &mut Fuel) -> bool {
        if let Stage::Replay = self.stage {
            while self.later.front().is_some_and(|(_, t, _)| t <= time) {
                self.fresh.extend(self.later.pop_front());
                if !fuel.spend(1) {
                    return false;
                }
            }
            // From the last val to the first, to be taken from the end.
            if !self.sorting.sort(&mut self.fresh, |a, b| b.0.cmp(&a.0), fuel) {
                return false;
            }
            self.sums.clear();
            self.merged.clear();
            self.base_done = 0;
            self.folded = true;
            self.stage = Stage::Merge;
        }
        if let Stage::Merge = self.stage {
            if !self.merge(time, meet, fuel) {
                return false;
            }
            let rest = std::mem::replace(&mut self.past, VecDeque::from(std::mem::take(&mut self.merged)));
            self.merged = Vec::from(rest);
            self.stage = Stage::There;
        }
        true
    }

    /// Leaves the time that was reached.
    pub(crate) fn leave(&mut self) {
        if self.folded {
            std::mem::swap(&mut self.base, &mut self.sums);
            self.past.clear();
        }
        self.stage = Stage::Replay;
    }

    fn merge(&mut self, time: &T, meet: &T, fuel: &mut Fuel) -> bool {
        loop {
            let heads = [
                self.base.get(self.base_done).map(|e| &e.0),
                self.past.front().map(|e| &e.0),
                self.fresh.last().map(|e| &e.0),
            ];
            let Some(val) = heads.into_iter().flatten().min().cloned() else { return true };
            if fuel.is_spent() {
                return false;
            }
            let mut sum = R::Sum::default();
            if let Some((_, diff)) = self.base.get(self.base_done).filter(|e| e.0 == val) {
                diff.add_to(&mut sum);
                self.base_done += 1;
            }
            while let Some((_, t, diff)) = self.past.pop_front_if(|e| e.0 == val) {
                self.edits.push((t.join(meet), diff));
            }
            while let Some((_, t, diff)) = self.fresh.pop_if(|e| e.0 == val) {
                self.edits.push((t.join(meet), diff));
            }
            fuel.spend(1 + self.edits.len());
            consolidate_times(&mut self.edits);
            for (t, diff) in self.edits.drain(..) {
                if t.less_equal(time) {
                    diff.add_to(&mut sum);
                }
                self.folded &= t == *meet;
                self.merged.push((val.clone(), t, diff));
            }
            if !R::sum_is_zero(&sum) {
                self.sums.push((val, R::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Edit(u64, i64);
    impl Edits<u64, i64> for Edit {
        fn for_each(&mut self, mut f: impl FnMut(u64, i64)) {
            f(self.0, self.1);
        }
    }

    /// A time with many vals is reached in slices, each val once, whether it was there before, or comes, or goes.
    #[test]
    fn a_time_of_many_vals_is_reached_in_slices() {
        const VALS: u64 = 20_000;
        const FUEL: usize = 100;
        let mut history = History::new();
        for val in 0..VALS {
            history.load(|| val, &0, &mut Edit([0, 5, 9][val as usize % 3], 1), |_| {});
        }
        while !history.prepare(&mut Fuel(FUEL as isize)) {}
        for (time, there) in [(5, 2), (9, 3)] {
            let (mut slices, mut waiting) = (0, history.later.len());
            loop {
                let summed = if matches!(history.stage, Stage::Merge) { history.sums.len() } else { 0 };
                let done = history.reach(&time, &time, &mut Fuel(FUEL as isize));
                slices += 1;
                if !matches!(history.stage, Stage::Replay) {
                    assert!(history.sums.len() - summed <= FUEL, "{} vals in one slice", history.sums.len() - summed);
                }
                assert!(waiting - history.later.len() <= FUEL, "{} edits in one slice", waiting - history.later.len());
                waiting = history.later.len();
                if done {
                    break;
                }
            }
            let vals: Vec<_> = (0..VALS).filter(|val| val % 3 < there).map(|val| (val, 1)).collect();
            assert_eq!(history.sums, vals, "at {time}");
            // The edits are taken, sorted by val, and merged with what was there.
            let (least, most) = (vals.len() / FUEL, 20 * vals.len() / FUEL);
            assert!((least..most).contains(&slices), "{slices} slices at {time}");
            history.leave();
        }
    }
}
