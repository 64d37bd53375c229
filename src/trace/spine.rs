//! The batches of one arrangement on one worker, merged in slices as a merge sort would.
//!
//! ```text
//! oldest                                                     newest
//! [ 900 ] [ 210 + 180 merging ] [ 40 ] [ 7 + 9 merging ] [ 3 ] │ 1 1 1 1
//!   entries: O(log n)                                          │ queue: what cuts pin, as minted
//! ```
//! 1. A batch waits in the queue until its upper is at or before every cut; then it is admitted to the entries.
//! 2. With a fan-out of f, an entry is due when f - 1 newer ones are at least of its class (the logarithm of its size, to
//!    base f). It and the next f - 1 are merged at once; of all that are due the smallest first, one merge a class at a time.
//!    Entries are due too, however few, when f times their weight was admitted since the oldest was made: what came later
//!    was summed up, so no newer entry grows to its class, and what it holds may have become foldable.
//!    While batches come, the latest entry waits for the next one: no since has passed it yet. An idle worker merges it too.
//! 3. Each admitted batch pays fuel in proportion to its size to each class that has a merge. A class saves it until it pays for
//!    a slice, or for all that is left, smallest remaining first: many short slices would cost more. A class spends no more
//!    than it got, so a step is never long beyond its own batch and a slice a class; what it overspends (one val) it owes.
//! 4. A merge folds at the since that was asked for when it started.
//! 5. A merge that gets no memory, or whose comparison panics, is undone: its output goes, its inputs stand as they stood.
//!    Where memory was wanting it is tried again later (`denied`); until then it is no debt.
//!
//! Invariants: bounds are contiguous; entries in the queue are untouched; a merge in progress shows its inputs.
//! Why merging is amortized: an update is in a merge of a class only if it came up from a lower one or met an equal,
//! so about once a class. After: `handle`.
#![forbid(unsafe_code)]

mod denied;
mod entry;

use self::denied::{Denied, granted};
use self::entry::{Entry, Merging, raise, single, single_weight, weight};
use super::merge::{Merge, MergeBatch};
use super::policy::MergePolicy;
use super::published_list::BatchList;
use super::queue::Queue;
use crate::order::Antichain;
use crate::runtime::MergeState;
use std::collections::VecDeque;
use std::ops::Range;

/// The sizes of a trace, for those who watch.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceStats {
    /// Batches in the list; all inputs of a merge count.
    pub batches: usize,
    /// Of these, the ones that wait for a cut or for admission.
    pub queued: usize,
    /// Updates stored.
    pub updates: usize,
    /// Bytes stored, without the outputs of merges in progress.
    pub bytes: usize,
    /// Merges in progress.
    pub open_merges: usize,
    /// Fuel that merges need which could run now; those that wait for memory do not count.
    pub merge_debt: usize,
    /// Merges that wait for memory.
    pub denied_merges: usize,
    /// How often a merge got no memory so far.
    pub denials: u64,
}

/// So much fuel is worth a slice of a merge: what begins and ends one is then a small part of it.
const SLICE: isize = 1024;

/// A contiguous list of batches that keeps itself short.
pub struct Spine<B: MergeBatch> {
    policy: MergePolicy,
    entries: Vec<Entry<B>>,
    // Persistent, so that publishing shares it.
    queue: Queue<B>,
    // For each batch in the queue, the weight that had been queued up to it, itself included.
    queued_through: VecDeque<u64>,
    // Weight queued so far.
    queued: u64,
    // Weight admitted so far.
    admitted: u64,
    // Fuel that open merges need.
    open_debt: usize,
    // What only grows of the state.
    totals: MergeState,
    denied: Denied,
    // What had been queued when a merge that was not due got no memory last.
    refused: u64,
    // Fuel a class has left, or owes if negative.
    budgets: Vec<isize>,
    lower: Antichain<B::Time>,
    upper: Antichain<B::Time>,
}

impl<B: MergeBatch> Spine<B> {
    /// An empty spine that starts at `lower`.
    pub fn new(policy: MergePolicy, lower: Antichain<B::Time>) -> Self {
        Spine {
            policy,
            entries: Vec::new(),
            queue: Queue::new(),
            queued_through: VecDeque::new(),
            queued: 0,
            admitted: 0,
            open_debt: 0,
            totals: MergeState::default(),
            denied: Denied::default(),
            refused: 0,
            budgets: Vec::new(),
            upper: lower.clone(),
            lower,
        }
    }
    /// The last batch's upper bound, or where the spine starts.
    pub fn upper(&self) -> &Antichain<B::Time> {
        &self.upper
    }
    /// All batches, oldest first.
    pub fn batches(&self) -> impl Iterator<Item = &B> {
        self.entries.iter().flat_map(Entry::batches).chain(self.queue.iter())
    }
    /// The list of batches as it is now, for other threads. Cost: O(log n) of n batches.
    pub fn list(&self) -> BatchList<B> {
        BatchList::new(self.entries.iter().flat_map(Entry::batches).cloned().collect(), self.queue.clone())
    }
    /// The batches up to `upper`, oldest first; nothing, if none ends there. Cost: linear in the entries and the result.
    pub fn batches_through(&self, upper: &Antichain<B::Time>) -> Option<Vec<B>> {
        let mut out = Vec::new();
        if *upper == self.lower {
            return Some(out);
        }
        for batch in self.entries.iter().flat_map(Entry::batches) {
            out.push(batch.clone());
            if batch.upper() == upper {
                return Some(out);
            }
        }
        // Bounds form a chain.
        let index = self.queue.partition_point(|b| !upper.before_equal(b.upper()));
        if self.queue.get(index)?.upper() != upper {
            return None;
        }
        out.extend(self.queue.iter().take(index + 1).cloned());
        Some(out)
    }
    /// The batches after `lower`, oldest first; nothing, if it is no bound here. Cost: a search of the queue, and linear in
    /// the entries and the result.
    pub fn batches_after(&self, lower: &Antichain<B::Time>) -> Option<Vec<B>> {
        if *lower == self.upper {
            return Some(Vec::new());
        }
        // The bound is usually a late one: look at the queue first. Bounds form a chain.
        let index = self.queue.partition_point(|b| !lower.before_equal(b.lower()));
        if self.queue.get(index).is_some_and(|b| b.lower() == lower) {
            return Some(self.queue.range(index..).cloned().collect());
        }
        let entries = self.entries.iter().flat_map(Entry::batches).skip_while(|b| b.lower() != lower);
        let mut out: Vec<B> = entries.cloned().collect();
        if out.is_empty() {
            return None;
        }
        out.extend(self.queue.iter().cloned());
        Some(out)
    }

    /// Appends a batch, and pays for merging: admits what `cut` admits and works on open merges. True iff the list of
    /// batches changed beyond the appended one.
    ///
    /// # Panics
    /// If the batch's lower bound is not the list's upper, or its bounds are equal.
    pub fn insert(
        &mut self,
        batch: B,
        cut: &Antichain<B::Time>,
        since: &mut dyn FnMut() -> Antichain<B::Time>,
    ) -> bool {
        assert!(*batch.lower() == self.upper, "lower {:?} must be the upper {:?}", batch.lower(), self.upper);
        assert!(batch.upper() != batch.lower(), "a batch between equal bounds is nothing: {:?}", batch.upper());
        assert!(batch.lower().before_equal(batch.upper()), "{:?} to {:?}", batch.lower(), batch.upper());
        self.upper = batch.upper().clone();
        // Two for one, so that a queue that may be admitted shrinks.
        let mut credit = 2 * weight(&batch) as isize + 1;
        self.totals.batches_inserted += 1;
        self.totals.inserted += batch.len() as u64;
        self.queued += weight(&batch) as u64;
        self.queued_through.push_back(self.queued);
        self.queue.push_back(batch);
        self.denied.turn();
        let mut changed = false;
        while credit > 0 && self.admissible(cut) {
            credit -= self.queue.front().map_or(0, weight) as isize;
            changed |= self.admit(since);
        }
        changed
    }

    /// Merges on, for an idle worker; admits what `cut` admits. True iff work remains that could run now; `changed`
    /// is set if the list of batches changed.
    pub fn work(
        &mut self,
        fuel: &mut isize,
        cut: &Antichain<B::Time>,
        since: &mut dyn FnMut() -> Antichain<B::Time>,
        changed: &mut bool,
    ) -> bool {
        self.denied.turn();
        // Who is here to catch up begins nothing that is not due.
        let settled = self.debt(cut) == 0;
        loop {
            self.open_merges(since, 0);
            let Some(index) = self.smallest(|_, _| true) else {
                if !self.admissible(cut) {
                    let Some((run, class)) = self.alike() else { return false };
                    if *fuel <= 0 || !settled {
                        return true;
                    }
                    self.open_merge(run, class, true, since);
                    continue;
                }
                if *fuel <= 0 {
                    return true;
                }
                *fuel -= 1;
                self.take_in();
                continue;
            };
            if *fuel <= 0 {
                return true;
            }
            *changed |= self.advance(index, fuel);
        }
    }

    /// Drops the batches that end at or before both frontiers, so that the list starts later: for a stream, which has no
    /// history. True iff there were any.
    pub fn forget(&mut self, since: &Antichain<B::Time>, cut: &Antichain<B::Time>) -> bool {
        let over = |upper: &Antichain<B::Time>| upper.before_equal(since) && upper.before_equal(cut);
        let mut forgotten = None;
        while let Some(last) = self.entries.first().and_then(|entry| entry.batches().last()) {
            if !over(last.upper()) {
                break;
            }
            forgotten = Some(last.upper().clone());
            if let Entry::Merging(merging) = self.entries.remove(0) {
                self.open_debt -= merging.debt();
            }
        }
        while self.entries.is_empty() && self.queue.front().is_some_and(|batch| over(batch.upper())) {
            forgotten = self.queue.pop_front().map(|batch| batch.upper().clone());
            self.queued_through.pop_front();
        }
        match forgotten {
            Some(lower) => {
                self.lower = lower;
                true
            }
            None => false,
        }
    }

    /// The sizes. `cut` tells which batches may merge now. Cost: linear in the number of batches.
    pub fn stats(&self, cut: &Antichain<B::Time>) -> TraceStats {
        let mut stats = TraceStats { queued: self.queue.len(), ..Default::default() };
        for batch in self.batches() {
            stats.batches += 1;
            stats.updates += batch.len();
            stats.bytes += batch.bytes();
        }
        stats.open_merges = self.open_merge_count();
        stats.merge_debt = self.debt(cut);
        stats.denied_merges = self.denied.waiting();
        stats.denials = self.denied.count();
        stats
    }

    /// Fuel that merges need which could run now: those open, and the admission of what `cut` admits. Cost: a search in
    /// the queue, O(1) if nothing waits in it.
    pub fn debt(&self, cut: &Antichain<B::Time>) -> usize {
        // Bounds form a chain.
        let admitted = self.queue.partition_point(|batch| batch.upper().before_equal(cut));
        let queued = match (admitted.checked_sub(1), self.queue.front()) {
            (Some(last), Some(first)) => self.queued_through[last] - (self.queued_through[0] - weight(first) as u64),
            _ => 0,
        };
        self.open_debt + queued as usize
    }
    /// What was inserted and merged so far, and how it is now. `cut` tells which batches may merge. Cost: that of `debt`, and
    /// linear in the entries.
    pub fn state(&self, cut: &Antichain<B::Time>) -> MergeState {
        let batches = (self.entry_count() + self.queue.len()) as u64;
        let (open_merges, debt) = (self.open_merge_count() as u64, self.debt(cut) as u64);
        MergeState { batches, open_merges, debt, ..self.totals }
    }
    fn open_merge_count(&self) -> usize {
        self.entries.iter().filter(|entry| matches!(entry, Entry::Merging(_))).count()
    }
    /// Whether some merge waits for memory.
    pub fn is_denied(&self) -> bool {
        self.denied.waiting() > 0
    }

    fn admissible(&self, cut: &Antichain<B::Time>) -> bool {
        self.queue.front().is_some_and(|b| b.upper().before_equal(cut))
    }

    /// Moves the oldest batch of the queue to the entries; it pays each class.
    fn admit(&mut self, since: &mut dyn FnMut() -> Antichain<B::Time>) -> bool {
        let weight = self.take_in();
        let fuel = self.policy.fuel(weight);
        let mut most = [0; usize::BITS as usize + 1];
        for entry in &self.entries {
            if let Entry::Merging(merging) = entry {
                most[merging.class] = SLICE;
            }
        }
        for (budget, most) in self.budgets.iter_mut().zip(most) {
            // Fuel is saved for a slice and no more, and not without a merge: it pays for those that are open when a batch comes.
            *budget = (*budget).min(most).saturating_add(fuel);
        }
        let mut changed = false;
        // Whether another merge may be due than before.
        let mut others = true;
        loop {
            if others {
                // No reader's since has passed what came last: its times cannot fold yet, and to merge them unfolded costs
                // more, now and in the next merge.
                self.open_merges(since, 1);
            }
            self.budgets.resize(self.budgets.len().max(usize::BITS as usize + 1), fuel);
            // Not all of one size, so that they do not come together.
            let slice = |class: usize| SLICE - (class % 8 * 64) as isize;
            let pays =
                |class: usize, remaining: usize| self.budgets[class] >= slice(class).min(remaining as isize).max(1);
            let Some(index) = self.smallest(pays) else { return changed };
            let Entry::Merging(merging) = &self.entries[index] else { unreachable!("a merge in progress") };
            let class = merging.class;
            let (mut left, entries) = (self.budgets[class], self.entries.len());
            let finished = self.advance(index, &mut left);
            others = finished || self.entries.len() != entries;
            changed |= finished;
            self.budgets[class] = left;
        }
    }

    /// Moves the oldest batch of the queue to the entries; its weight.
    fn take_in(&mut self) -> usize {
        let batch = self.queue.pop_front().expect("admissible");
        self.queued_through.pop_front();
        let weight = weight(&batch);
        self.admitted += weight as u64;
        self.entries.push(Entry::single(batch, self.admitted, &self.policy));
        weight
    }

    /// The open merge of least remaining work among those that are `wanted`, by class and remaining work.
    fn smallest(&self, wanted: impl Fn(usize, usize) -> bool) -> Option<usize> {
        let open = self.entries.iter().enumerate().filter_map(|(index, entry)| {
            let Entry::Merging(merging) = entry else { return None };
            let remaining = merging.merger.remaining();
            wanted(merging.class, remaining).then_some((remaining, index))
        });
        open.min().map(|(_, index)| index)
    }

    /// Works on the merge at `index`; true iff that finished it.
    fn advance(&mut self, index: usize, fuel: &mut isize) -> bool {
        let Entry::Merging(merging) = &mut self.entries[index] else { unreachable!("a merge in progress") };
        self.open_debt -= merging.debt();
        if let Err(refusal) = granted(|| merging.merger.work(fuel)) {
            let early = merging.early;
            let class = self.undo(index);
            refusal.raise_others();
            self.deny(class, early);
            return false;
        }
        self.open_debt += merging.debt();
        if !merging.merger.is_done() {
            return false;
        }
        self.open_debt -= merging.debt();
        let Entry::Merging(merging) = self.entries.remove(index) else { unreachable!("as before") };
        let Merging { inputs, merger, class, born, early, .. } = *merging;
        match granted(|| merger.finish()) {
            Ok(merged) => {
                self.denied.forgive(class);
                self.totals.merges += 1;
                // One that takes over a batch beside empty ones writes nothing.
                if inputs.iter().filter(|batch| batch.len() > 0).count() > 1 {
                    self.totals.written += merged.len() as u64;
                }
                self.entries.insert(index, Entry::single(merged, self.admitted, &self.policy));
                true
            }
            Err(refusal) => {
                self.stand(inputs, born, index);
                refusal.raise_others();
                self.deny(class, early);
                false
            }
        }
    }

    /// Drops the output of the merge at `index`, whose debt has been taken off; its inputs stand again. Its class.
    fn undo(&mut self, index: usize) -> usize {
        let Entry::Merging(merging) = self.entries.remove(index) else { unreachable!("a merge in progress") };
        let Merging { inputs, merger, class, born, .. } = *merging;
        drop(merger);
        self.stand(inputs, born, index);
        class
    }
    fn stand(&mut self, inputs: Vec<B>, born: Vec<u64>, index: usize) {
        let singles = inputs.into_iter().zip(born).map(|(batch, born)| Entry::single(batch, born, &self.policy));
        self.entries.splice(index..index, singles);
    }

    /// Starts merges of entries that are due, but for the `fresh` last ones: the smallest first, one a class.
    fn open_merges(&mut self, since: &mut dyn FnMut() -> Antichain<B::Time>, fresh: usize) {
        while let Some((due, class)) = self.due(fresh) {
            self.open_merge(due, class, false, since);
        }
    }

    /// Starts the merge of some single entries.
    fn open_merge(
        &mut self,
        run: Range<usize>,
        class: usize,
        early: bool,
        since: &mut dyn FnMut() -> Antichain<B::Time>,
    ) {
        let (inputs, born): (Vec<B>, Vec<u64>) = self.entries[run.clone()].iter().filter_map(single).unzip();
        let weight = self.entries[run.clone()].iter().map(Entry::weight).sum();
        let since = since();
        match granted(|| B::begin_merge(&inputs, &since)) {
            Ok(merger) => {
                let merging = Merging { inputs, merger, class, born, weight, early };
                self.open_debt += merging.debt();
                self.entries.splice(run, [Entry::Merging(Box::new(merging))]);
            }
            Err(refusal) => {
                refusal.raise_others();
                self.deny(class, early);
            }
        }
    }
    /// A merge got no memory: one that is due is tried again later, any other not before something has come.
    fn deny(&mut self, class: usize, early: bool) {
        if early {
            self.refused = self.queued;
        } else {
            self.denied.deny(class);
        }
    }

    /// The smallest two single neighbours of like size, and their class: for when nothing is due.
    fn alike(&self) -> Option<(Range<usize>, usize)> {
        if self.refused == self.queued {
            return None;
        }
        let pairs = self.entries.windows(2).enumerate().filter_map(|(index, two)| {
            let (a, b) = (single_weight(&two[0])?, single_weight(&two[1])?);
            let class = self.policy.class(a + b);
            let alike = a.min(b).saturating_mul(self.policy.idle_ratio) >= a.max(b);
            (alike && !self.denied.waits(class)).then_some((a + b, index, class))
        });
        let (_, index, class) = pairs.min()?;
        Some((index..index + 2, class))
    }

    /// The smallest run of single entries that is due and whose class has no merge, and that class.
    fn due(&self, fresh: usize) -> Option<(Range<usize>, usize)> {
        let mut busy = [false; usize::BITS as usize + 1];
        for entry in &self.entries {
            if let Entry::Merging(merging) = entry {
                busy[merging.class] = true;
            }
        }
        let fan_out = self.policy.effective_fan_out();
        let mut best: Option<(usize, Range<usize>)> = None;
        // The greatest classes of newer entries, one more each, the least first.
        let mut newer = [0; MergePolicy::MOST - 1];
        let newer = &mut newer[..fan_out - 1];
        let entries = &self.entries[..self.entries.len().saturating_sub(fresh)];
        for index in (0..entries.len().saturating_sub(1)).rev() {
            raise(newer, entries[index + 1].class() + 1);
            let run = entries[index..].iter().take(fan_out).map_while(single_weight);
            let (count, total) = run.fold((0, 0), |(count, total), weight| (count + 1, total + weight));
            let (2.., Entry::Single(first)) = (count, &entries[index]) else { continue };
            let stale = self.admitted - first.born >= (fan_out * total) as u64;
            let due = count == fan_out && first.class < newer[0];
            if !due && !stale {
                continue;
            }
            let class = self.policy.class(total);
            if !busy[class] && !self.denied.waits(class) && best.as_ref().is_none_or(|(least, _)| total <= *least) {
                best = Some((total, index..index + count));
            }
        }
        best.map(|(total, run)| (run, self.policy.class(total)))
    }

    /// Checks that bounds are contiguous and each batch is sound. Cost: linear.
    ///
    /// # Panics
    /// If they are not.
    pub fn check_invariants(&self) {
        let mut lower = &self.lower;
        for batch in self.batches() {
            assert_eq!(batch.lower(), lower, "bounds touch");
            assert_ne!(batch.lower(), batch.upper());
            lower = batch.upper();
            batch.check_invariants();
        }
        assert_eq!(lower, &self.upper);
        assert_eq!(self.queue.len(), self.queued_through.len());
        let remaining = self.entries.iter().map(|entry| match entry {
            Entry::Merging(merging) => merging.debt(),
            Entry::Single(..) => 0,
        });
        assert_eq!(remaining.sum::<usize>(), self.open_debt, "the debt is what open merges need");
    }
    /// Batches in the entries, those being merged included.
    pub fn entry_count(&self) -> usize {
        self.entries.iter().map(|e| e.batches().count()).sum()
    }
    /// How eagerly it merges.
    pub fn policy(&self) -> &MergePolicy {
        &self.policy
    }
}

#[cfg(test)]
mod tests;
