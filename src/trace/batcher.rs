//! Collects updates until their time has come, then gives them out sorted and summed up.
//!
//! ```text
//! push ─▶ stage ─▶ runs, few of each order of magnitude ─▶ seal(upper) ─▶ what is not beyond it
//!                                                          │   ▲
//!                                                          ▼   │
//!                                                         later, by time
//! ```
//! Invariants: runs are sorted by (data, time) and summed up. The frontier is that of the summed-up rest, so that
//! updates which cancel hold nothing. Cost: n log n in all for what is pushed; what a seal leaves is sorted by time, so
//! that later seals need not pass over it (see `later`). Next stop: `builder`.
#![forbid(unsafe_code)]

use super::consolidate::{By, sort_and_consolidate_with};
use super::later::Later;
use super::runs::{merge_all, merge_runs};
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Sorter};

/// Updates are sorted once so many have come, or when they are asked for: as many as the second-level cache holds words of, twice.
const MOST: usize = 1 << 20;
/// Between seals scratch memory is kept for so many: there are many batchers, and the arena has it at hand.
const KEPT: usize = 1 << 10;
/// Where sorting leaves few, for most are summed up, they are sorted sooner: what waits takes memory that its sums do not.
const LEAST: usize = 1024;
/// Before that is known.
const FIRST: usize = 8192;
/// So many runs of one order of magnitude, and smaller ones between, are merged at once: each update is moved about as many times
/// as there are orders.
const FAN: usize = 16;

/// Unsealed updates.
pub struct Batcher<D: Columnar, T: Timestamp, R: Semigroup> {
    stage: Updates<D, T, R>,
    // So many are sorted at once, `LEAST` to `MOST`.
    limit: usize,
    runs: Vec<Updates<D, T, R>>,
    later: Later<D, T, R>,
    sorter: Sorter,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Default for Batcher<D, T, R> {
    fn default() -> Self {
        Batcher {
            stage: Updates::default(),
            limit: FIRST,
            runs: Vec::new(),
            later: Later::default(),
            sorter: Sorter::default(),
        }
    }
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Batcher<D, T, R> {
    /// An empty batcher.
    pub fn new() -> Self {
        Self::default()
    }
    /// Takes updates in any order.
    pub fn push(&mut self, updates: Updates<D, T, R>) {
        if self.stage.is_empty() {
            self.stage = updates;
        } else {
            self.stage.extend_from(&updates, 0, updates.len());
        }
        if self.stage.len() >= self.limit {
            self.flush();
        }
    }
    /// Takes one update.
    pub fn push_one(&mut self, data: D::Ref<'_>, time: T, diff: R) {
        self.stage.push(data, time, diff);
        if self.stage.len() >= self.limit {
            self.flush();
        }
    }
    /// Updates held; those that cancel may count.
    pub fn len(&self) -> usize {
        self.stage.len() + self.runs.iter().map(Updates::len).sum::<usize>() + self.later.len()
    }
    /// True iff nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Arena bytes in use.
    pub fn bytes(&self) -> usize {
        self.stage.bytes() + self.runs.iter().map(Updates::bytes).sum::<usize>() + self.later.bytes()
    }

    /// Takes out the updates at times not beyond `upper`, sorted and summed up; nothing, if there is none.
    pub fn seal(&mut self, upper: &Antichain<T>) -> Option<Updates<D, T, R>> {
        let run = self.merge_all();
        self.sorter.shrink(KEPT);
        let early = |index: usize| !upper.less_equal(&run.times.get(index));
        // What was left before, then what is left now: it need not be looked at twice.
        let due = self.later.take(upper);
        let mut sealed;
        let all_early = match run.times.constant() {
            Some(time) => !upper.less_equal(&time),
            None => (0..run.len()).all(early),
        };
        if all_early {
            sealed = run;
        } else {
            sealed = Updates::default();
            let mut kept = Updates::default();
            let mut start = 0;
            while start < run.len() {
                let first = early(start);
                let end = (start + 1..run.len()).find(|i| early(*i) != first).unwrap_or(run.len());
                if first { &mut sealed } else { &mut kept }.extend_from(&run, start, end);
                start = end;
            }
            self.later.push(&mut self.sorter, kept);
        }
        if !due.is_empty() {
            let due = sort_and_consolidate_with(&mut self.sorter, due);
            sealed = merge_runs(&sealed, &due);
        }
        (!sealed.is_empty()).then_some(sealed)
    }

    /// The minimal times of what is held, summed up.
    pub fn frontier(&mut self) -> Antichain<T> {
        let run = self.merge_all();
        if !self.later.is_empty() {
            self.later.push(&mut self.sorter, run);
            return self.later.frontier();
        }
        let mut frontier = Antichain::new();
        let mut last = None;
        for time in (0..run.len()).map(|i| run.times.get(i)) {
            if last != Some(time) {
                frontier.insert(time);
                last = Some(time);
            }
        }
        self.push_run(run);
        frontier
    }

    fn flush(&mut self) {
        if !self.stage.is_empty() {
            let stage = std::mem::take(&mut self.stage);
            let staged = stage.len();
            let run = sort_and_consolidate_with(&mut self.sorter, stage);
            if run.len() < staged / 4 {
                self.limit = LEAST.max(self.limit / 4);
            } else if staged >= self.limit {
                self.limit = MOST.min(4 * self.limit);
            }
            self.push_run(run);
        }
    }
    fn push_run(&mut self, mut run: Updates<D, T, R>) {
        let class = |run: &Updates<D, T, R>| (run.len() | 1).ilog2() / FAN.ilog2();
        while !run.is_empty() {
            let shorter = self.runs.iter().rev().take_while(|before| class(before) <= class(&run)).count();
            if shorter + 1 < FAN {
                break;
            }
            let mut runs = self.runs.split_off(self.runs.len() - shorter);
            runs.push(run);
            run = merge_all(By::Data, &mut self.sorter, runs);
        }
        if !run.is_empty() {
            self.runs.push(run);
        }
    }
    /// The runs as one, taken out.
    fn merge_all(&mut self) -> Updates<D, T, R> {
        self.flush();
        merge_all(By::Data, &mut self.sorter, std::mem::take(&mut self.runs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Pair;
    use std::collections::BTreeMap;

    #[derive(Clone, Debug)]
    enum Op {
        Push(Vec<(u8, u8, u8, i8)>),
        Seal(u8, u8),
        Frontier,
    }

    impl quickcheck::Arbitrary for Op {
        fn arbitrary(g: &mut quickcheck::Gen) -> Self {
            match u8::arbitrary(g) % 6 {
                0..=2 => Op::Push(Vec::arbitrary(g)),
                3 | 4 => Op::Seal(u8::arbitrary(g), u8::arbitrary(g)),
                _ => Op::Frontier,
            }
        }
    }

    /// Many that are summed up to few do not wait for long; others do.
    #[test]
    fn what_sums_up_is_sorted_sooner() {
        for (distinct, most) in [(1, 2 * FIRST), (1 << 40, 2 * MOST)] {
            let mut batcher = Batcher::<u64, u64, i64>::new();
            let mut staged = 0;
            for index in 0..4 * MOST as u64 {
                batcher.push_one(kpg_columnar::mix(index) % distinct, 0, 1);
                staged = staged.max(batcher.stage.len());
            }
            assert!(staged < most && (distinct == 1 || staged > MOST / 2), "{staged} of {distinct}");
            assert_eq!(batcher.limit, if distinct == 1 { LEAST } else { MOST });
        }
    }

    /// Against a map, with times made of two small numbers.
    fn check<T: Timestamp>(ops: &[Op], time: impl Fn(u64, u64) -> T) {
        let mut batcher = Batcher::<u64, T, i64>::new();
        let mut model = BTreeMap::<(u64, T), i64>::new();
        let mut upper = [0u64; 2];
        for op in ops {
            match op {
                Op::Push(updates) => {
                    let mut columns = Updates::default();
                    for (data, a, b, diff) in updates {
                        let time = time(upper[0] + u64::from(a % 8), upper[1] + u64::from(b % 8));
                        let (data, diff) = (u64::from(data % 4), i64::from(diff % 2));
                        columns.push(data, time, diff);
                        *model.entry((data, time)).or_default() += diff;
                    }
                    model.retain(|_, sum| *sum != 0);
                    batcher.push(columns);
                }
                Op::Seal(a, b) => {
                    upper = [upper[0] + u64::from(a % 4), upper[1] + u64::from(b % 4)];
                    let frontier = Antichain::from_elem(time(upper[0], upper[1]));
                    let sealed = batcher.seal(&frontier);
                    assert!(sealed.as_ref().is_none_or(|s| !s.is_empty()));
                    let sealed = sealed.unwrap_or_default();
                    let expected: Vec<_> = model
                        .iter()
                        .filter(|((_, t), _)| !frontier.less_equal(t))
                        .map(|((d, t), r)| (*d, *t, *r))
                        .collect();
                    assert_eq!(sealed.iter().collect::<Vec<_>>(), expected);
                    model.retain(|(_, t), _| frontier.less_equal(t));
                }
                Op::Frontier => {}
            }
            if !matches!(op, Op::Push(_)) {
                assert_eq!(batcher.frontier(), model.keys().map(|(_, t)| *t).collect());
            }
        }
    }

    quickcheck::quickcheck! {
        fn is_the_model_in_total_order(ops: Vec<Op>) -> bool {
            check(&ops, |a, _| a);
            true
        }
        fn is_the_model_in_partial_order(ops: Vec<Op>) -> bool {
            check(&ops, Pair::new);
            true
        }
    }

    /// Of many runs one vanishes, before it is merged with the others, or among what is sorted at once.
    #[test]
    fn runs_that_vanish_are_left_out() {
        let mut batcher = Batcher::<u64, u64, i64>::new();
        for run in 0..FAN as u64 {
            for index in 0..batcher.limit as u64 {
                let diff = if index % 2 == 0 { 1 } else { -1 };
                batcher.push_one(5, 0, if run < FAN as u64 - 1 { 1 } else { diff });
            }
        }
        let sum = batcher.seal(&Antichain::from_elem(1)).expect("not all vanish");
        assert_eq!((sum.len(), sum.data.get(0)), (1, 5));

        let mut updates = Updates::<u64, u64, i64>::default();
        let (many, chunk) = (3u64 << 20, 1 << 20);
        for index in 0..many {
            let vanishes = (chunk..2 * chunk).contains(&index);
            updates.push(if vanishes { 7 } else { kpg_columnar::mix(index) }, 0, if index % 2 == 0 { 1 } else { -1 });
        }
        assert_eq!(sort_and_consolidate_with(&mut Sorter::default(), updates).len() as u64, many - chunk);
    }

    #[test]
    fn what_cancels_holds_nothing() {
        let mut batcher = Batcher::<u64, u64, i64>::new();
        for diff in [1, -1] {
            let mut updates = Updates::default();
            updates.push(7, 5, diff);
            batcher.push(updates);
            assert!(batcher.seal(&Antichain::from_elem(1)).is_none());
        }
        assert!(batcher.frontier().is_empty());
        assert!(batcher.is_empty());
    }

    #[test]
    fn a_long_future_is_not_looked_through_at_each_seal() {
        let times = 100_000;
        let mut batcher = Batcher::<u64, u64, i64>::new();
        (0..times).for_each(|time| batcher.push_one(time % 10, time, 1));
        for time in 0..times {
            let sealed = batcher.seal(&Antichain::from_elem(time + 1)).expect("one update");
            assert_eq!(sealed.iter().collect::<Vec<_>>(), [(time % 10, time, 1)]);
            let next = batcher.frontier();
            assert_eq!(next.as_single().copied(), (time + 1 < times).then_some(time + 1));
        }
    }
}
