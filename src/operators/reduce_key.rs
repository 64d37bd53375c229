//! The per-key algorithm of reduce: at which times may the output change, and how.
//!
//! The output at a time is a function of the input accumulated there. New updates change the input at all times beyond
//! them; so the output may change at any join of at least one new time with times of the key's history, also where the
//! input has no update. Those times are visited in an order that extends the partial one:
//!
//! ```text
//! seeds (new times, due pending times)  ─┐
//! joins with the history's times        ─┴▶ t ─ beyond the limit ─▶ pending
//!                                             └ else: accumulate input and output at t, apply the user's function,
//!                                                     emit the difference at t, join t with the history's times
//! ```
//! Invariants: seeds count though their updates cancel stored ones; what is folded is folded to the meet of the times
//! still to be visited, so no accumulation at any of those changes. Cost over a total order: a sort, and for each time
//! the vals then present. (Differential dataflow, CIDR 2013, section 4.3; McSherry's notes on "interesting times".)
//!
//! It knows no frontiers but the limit, no capabilities, no traces: the driver in `reduce` does.
#![forbid(unsafe_code)]

use crate::order::{Abelian, Antichain, DiffOverflow, Semigroup, Timestamp};
use std::collections::BTreeSet;

/// A history of one key: (val, time, diff), and how much of it lies before the current time.
pub(crate) struct History<V, T, R> {
    /// Sorted by time.
    edits: Vec<(V, T, R)>,
    next: usize,
    /// Replayed edits, sorted by (val, time), times folded.
    past: Vec<(V, T, R)>,
}

impl<V: Copy + Ord, T: Timestamp, R: Semigroup> History<V, T, R> {
    pub(crate) fn new() -> Self {
        History { edits: Vec::new(), next: 0, past: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.edits.len()
    }

    pub(crate) fn push(&mut self, val: V, time: T, diff: R) {
        self.edits.push((val, time, diff));
    }

    fn start(&mut self) {
        self.edits.sort_by_key(|edit| edit.1);
        self.next = 0;
        self.past.clear();
    }

    /// Replays all edits up to `time` in the total order; folds what was replayed to `meet`.
    fn advance(&mut self, time: &T, meet: &T) {
        let from = self.next;
        while self.edits.get(self.next).is_some_and(|(_, t, _)| t <= time) {
            self.next += 1;
        }
        self.past.extend_from_slice(&self.edits[from..self.next]);
        self.fold(meet, from < self.next);
    }

    fn fold(&mut self, meet: &T, mut changed: bool) {
        for (_, t, _) in &mut self.past {
            let folded = t.join(meet);
            changed |= folded != *t;
            *t = folded;
        }
        if changed && self.past.len() > 1 {
            self.past.sort_by_key(|edit| (edit.0, edit.1));
            consolidate_vals(&mut self.past);
        }
    }

    /// The accumulation at `time`, which `advance` has reached: vals ascending, none that vanish.
    fn accumulate(&self, time: &T, into: &mut Vec<(V, R)>) {
        into.clear();
        let mut index = 0;
        while index < self.past.len() {
            let val = self.past[index].0;
            let mut sum = R::Sum::default();
            while index < self.past.len() && self.past[index].0 == val {
                if self.past[index].1.less_equal(time) {
                    self.past[index].2.add_to(&mut sum);
                }
                index += 1;
            }
            if !R::sum_is_zero(&sum) {
                into.push((val, R::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise())));
            }
        }
    }
}

/// Sums equal (val, time) of a sorted list; drops what vanishes; what does not fit stays apart.
fn consolidate_vals<V: Copy + Ord, T: Timestamp, R: Semigroup>(list: &mut Vec<(V, T, R)>) {
    let (mut kept, mut start) = (0, 0);
    while start < list.len() {
        let (val, time, _) = list[start];
        let mut sum = R::Sum::default();
        let mut end = start;
        while end < list.len() && list[end].0 == val && list[end].1 == time {
            list[end].2.add_to(&mut sum);
            end += 1;
        }
        if !R::sum_is_zero(&sum) {
            match R::from_sum(sum) {
                Some(diff) => {
                    list[kept] = (val, time, diff);
                    kept += 1;
                }
                None => {
                    list.copy_within(start..end, kept);
                    kept += end - start;
                }
            }
        }
        start = end;
    }
    list.truncate(kept);
}

/// One key's work.
pub(crate) struct KeyWork<V1, T, R1, W, R2> {
    /// All input of the key, the new updates included.
    pub(crate) input: History<V1, T, R1>,
    /// All output that is stored.
    pub(crate) stored: History<W, T, R2>,
    /// New times, and pending times that are due.
    pub(crate) seeds: Vec<T>,
}

/// What comes of it.
pub(crate) struct KeyResult<V2, T, R2> {
    /// New output: (val, time, diff).
    pub(crate) output: Vec<(V2, T, R2)>,
    /// Times beyond the limit at which the key must be looked at again.
    pub(crate) pending: Vec<T>,
}

impl<V1, T, R1, W, R2> KeyWork<V1, T, R1, W, R2>
where
    V1: Copy + Ord,
    T: Timestamp,
    R1: Semigroup,
    W: Copy + Ord,
    R2: Abelian,
{
    /// Visits every time not beyond `limit` at which the output may change. `f` gives, from the accumulated input
    /// (never empty), the output that there should be; `own` copies a stored val out.
    pub(crate) fn run<V2: Clone + Ord>(
        mut self,
        limit: &Antichain<T>,
        own: impl Fn(W) -> V2,
        mut f: impl FnMut(&[(V1, R1)], &mut Vec<(V2, R2)>),
    ) -> KeyResult<V2, T, R2> {
        let mut result = KeyResult { output: Vec::new(), pending: Vec::new() };
        self.input.start();
        self.stored.start();
        let mut visits = Visits::new(std::mem::take(&mut self.seeds), &self.input.edits, &self.stored.edits);
        // New output that was emitted before the current time, as the stored output is.
        let mut emitted: Vec<(V2, T, R2)> = Vec::new();
        let (mut accumulated, mut had) = (Vec::new(), Vec::new());
        let (mut should, mut change) = (Vec::new(), Vec::new());
        while let Some((time, meet)) = visits.next() {
            if limit.less_equal(&time) {
                result.pending.push(time);
                continue;
            }
            self.input.advance(&time, &meet);
            self.stored.advance(&time, &meet);
            self.input.accumulate(&time, &mut accumulated);
            self.stored.accumulate(&time, &mut had);
            should.clear();
            if !accumulated.is_empty() {
                f(&accumulated, &mut should);
            }
            change.clear();
            change.append(&mut should);
            for (val, diff) in had.drain(..) {
                change.push((own(val), negated(diff)));
            }
            for (val, t, diff) in &emitted {
                if t.less_equal(&time) {
                    change.push((val.clone(), negated(*diff)));
                }
            }
            sum_by_val(&mut change);
            for (val, diff) in change.drain(..) {
                emitted.push((val.clone(), time, diff));
                result.output.push((val, time, diff));
            }
            if emitted.len() > 1 {
                fold_emitted(&mut emitted, &meet);
            }
            visits.join_with_history(&time);
        }
        result
    }
}

fn negated<R: Abelian>(diff: R) -> R {
    diff.negate().unwrap_or_else(|| DiffOverflow::raise())
}

fn sum_by_val<V: Ord, R: Semigroup>(list: &mut Vec<(V, R)>) {
    if list.len() < 2 {
        list.retain(|(_, r)| !r.is_zero());
        return;
    }
    list.sort_by(|a, b| a.0.cmp(&b.0));
    let mut out: Vec<(V, R)> = Vec::with_capacity(list.len());
    let mut items = std::mem::take(list).into_iter().peekable();
    while let Some((val, diff)) = items.next() {
        let mut sum = R::Sum::default();
        diff.add_to(&mut sum);
        while let Some((_, other)) = items.next_if(|(v, _)| *v == val) {
            other.add_to(&mut sum);
        }
        if !R::sum_is_zero(&sum) {
            out.push((val, R::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise())));
        }
    }
    *list = out;
}

fn fold_emitted<V: Ord + Clone, T: Timestamp, R: Semigroup>(emitted: &mut Vec<(V, T, R)>, meet: &T) {
    let mut changed = false;
    for (_, t, _) in emitted.iter_mut() {
        let folded = t.join(meet);
        changed |= folded != *t;
        *t = folded;
    }
    if !changed {
        return;
    }
    emitted.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
    let mut out: Vec<(V, T, R)> = Vec::with_capacity(emitted.len());
    let mut items = std::mem::take(emitted).into_iter().peekable();
    while let Some((val, time, diff)) = items.next() {
        let mut sum = R::Sum::default();
        diff.add_to(&mut sum);
        let mut apart = vec![diff];
        while let Some((_, _, other)) = items.next_if(|(v, t, _)| *v == val && *t == time) {
            other.add_to(&mut sum);
            apart.push(other);
        }
        if R::sum_is_zero(&sum) {
            continue;
        }
        match R::from_sum(sum) {
            Some(diff) => out.push((val, time, diff)),
            None => out.extend(apart.into_iter().map(|r| (val.clone(), time, r))),
        }
    }
    *emitted = out;
}

/// The times to visit, ascending in `Ord`, each with a lower bound of all that are still to come (itself included).
struct Visits<T> {
    /// Known from the start, ascending, and the meets of their suffixes.
    known: Vec<T>,
    meets: Vec<T>,
    next: usize,
    /// Found on the way: joins of visited times with the history's.
    found: BTreeSet<T>,
    /// Distinct times of the history, where order is partial; over a total one they are all known.
    history: Vec<T>,
}

impl<T: Timestamp> Visits<T> {
    fn new<V1, R1, V2, R2>(mut seeds: Vec<T>, input: &[(V1, T, R1)], stored: &[(V2, T, R2)]) -> Self {
        seeds.sort_unstable();
        seeds.dedup();
        let all = || input.iter().map(|e| e.1).chain(stored.iter().map(|e| e.1));
        let mut history = Vec::new();
        let mut known = seeds;
        if T::TOTAL {
            // Every join of a seed with a later time is that time.
            if let Some(first) = known.first().copied() {
                known.extend(all().filter(|t| *t > first));
                known.sort_unstable();
                known.dedup();
            }
        } else {
            history.extend(all());
            history.extend_from_slice(&known);
            history.sort_unstable();
            history.dedup();
        }
        let mut meets = known.clone();
        for index in (1..meets.len()).rev() {
            meets[index - 1] = meets[index - 1].meet(&meets[index]);
        }
        Visits { known, meets, next: 0, found: BTreeSet::new(), history }
    }

    fn next(&mut self) -> Option<(T, T)> {
        let known = self.known.get(self.next).copied();
        let found = self.found.first().copied();
        let time = match (known, found) {
            (Some(known), Some(found)) => known.min(found),
            (Some(time), None) | (None, Some(time)) => time,
            (None, None) => return None,
        };
        let known_meet = self.meets.get(self.next).copied();
        let meet = self.found.iter().copied().chain(known_meet).reduce(|a, b| a.meet(&b)).unwrap_or(time);
        if known == Some(time) {
            self.next += 1;
        }
        if found == Some(time) {
            self.found.pop_first();
        }
        Some((time, meet))
    }

    /// A visited time meets the history's: each join is to be visited.
    fn join_with_history(&mut self, time: &T) {
        for other in &self.history {
            let join = time.join(other);
            if join != *time && self.known[self.next..].binary_search(&join).is_err() {
                self.found.insert(join);
            }
        }
    }
}
