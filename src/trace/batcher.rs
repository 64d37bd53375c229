//! Collects updates until their time has come, then gives them out sorted and summed up.
//!
//! ```text
//! push ─▶ stage ─▶ runs, each at least twice the next ─▶ seal(upper): what is not beyond it │ the rest stays
//! ```
//! Invariants: runs are sorted by (data, time) and summed up. The frontier is that of the summed-up rest, so that
//! updates which cancel hold nothing. Cost: n log n in all for what is pushed; a seal passes over what it keeps.
//! Next stop: `builder`.
#![forbid(unsafe_code)]

use super::consolidate::{merge_runs, sort_and_consolidate_with};
use crate::dataflow::Updates;
use crate::order::{Antichain, Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Sorter};

/// Updates are sorted once that many have come, or when they are asked for: sorting one by one would cost an
/// allocation each.
const STAGE: usize = 1024;

/// Unsealed updates.
pub struct Batcher<D: Columnar, T: Timestamp, R: Semigroup> {
    stage: Updates<D, T, R>,
    runs: Vec<Updates<D, T, R>>,
    sorter: Sorter,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Default for Batcher<D, T, R> {
    fn default() -> Self {
        Batcher { stage: Updates::default(), runs: Vec::new(), sorter: Sorter::default() }
    }
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Batcher<D, T, R> {
    /// An empty batcher.
    pub fn new() -> Self {
        Self::default()
    }
    /// Takes updates in any order.
    pub fn push(&mut self, updates: Updates<D, T, R>) {
        if self.stage.is_empty() && updates.len() >= STAGE {
            let run = sort_and_consolidate_with(&mut self.sorter, updates);
            return self.push_run(run);
        }
        if self.stage.is_empty() {
            self.stage = updates;
        } else {
            self.stage.extend_from(&updates, 0, updates.len());
        }
        if self.stage.len() >= STAGE {
            self.flush();
        }
    }
    /// Takes one update.
    pub fn push_one(&mut self, data: D::Ref<'_>, time: T, diff: R) {
        self.stage.push(data, time, diff);
        if self.stage.len() >= STAGE {
            self.flush();
        }
    }
    /// Updates held; those that cancel may count.
    pub fn len(&self) -> usize {
        self.stage.len() + self.runs.iter().map(Updates::len).sum::<usize>()
    }
    /// True iff nothing is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Arena bytes in use.
    pub fn bytes(&self) -> usize {
        self.stage.bytes() + self.runs.iter().map(Updates::bytes).sum::<usize>()
    }

    /// Takes out the updates at times not beyond `upper`, sorted and summed up; nothing, if there is none.
    pub fn seal(&mut self, upper: &Antichain<T>) -> Option<Updates<D, T, R>> {
        let run = self.merge_all()?;
        let early = |index: usize| !upper.less_equal(&run.times.get(index));
        if (0..run.len()).all(early) {
            return Some(run);
        }
        let (mut sealed, mut kept) = (Updates::default(), Updates::default());
        let mut start = 0;
        while start < run.len() {
            let first = early(start);
            let end = (start + 1..run.len()).find(|i| early(*i) != first).unwrap_or(run.len());
            if first { &mut sealed } else { &mut kept }.extend_from(&run, start, end);
            start = end;
        }
        if sealed.is_empty() {
            kept = run;
        }
        self.runs.push(kept);
        (!sealed.is_empty()).then_some(sealed)
    }

    /// The minimal times of what is held, summed up.
    pub fn frontier(&mut self) -> Antichain<T> {
        let mut frontier = Antichain::new();
        if let Some(run) = self.merge_all() {
            let mut last = None;
            for time in (0..run.len()).map(|i| run.times.get(i)) {
                if last != Some(time) {
                    frontier.insert(time);
                    last = Some(time);
                }
            }
            self.runs.push(run);
        }
        frontier
    }

    fn flush(&mut self) {
        if !self.stage.is_empty() {
            let stage = std::mem::take(&mut self.stage);
            let run = sort_and_consolidate_with(&mut self.sorter, stage);
            self.push_run(run);
        }
    }
    fn push_run(&mut self, mut run: Updates<D, T, R>) {
        while self.runs.last().is_some_and(|last| last.len() < 2 * run.len()) {
            let last = self.runs.pop().expect("looked at");
            run = merge_runs(&last, &run);
        }
        if !run.is_empty() {
            self.runs.push(run);
        }
    }
    /// All that is held as one run, taken out.
    fn merge_all(&mut self) -> Option<Updates<D, T, R>> {
        self.flush();
        let mut all = self.runs.pop()?;
        while let Some(run) = self.runs.pop() {
            all = merge_runs(&run, &all);
        }
        (!all.is_empty()).then_some(all)
    }
}
