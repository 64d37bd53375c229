//! The times at which one key of a reduce is looked at: seeds, and their joins with the times of the key's history.
//!
//! ```text
//! known: seeds and history ─┐            ┌▶ beyond the limit: pending
//!                           ├▶ ascending ┼▶ a seed, a join found, or at or after a time visited: a visit
//! found: joins ─────────────┘            └▶ else: only remembered, as history
//! ```
//! Invariants: each join of a visited time with history is found, when the later of the two comes up; what has come up is
//! folded to the meet of the times to come, so over a total order one time stands for all of it and a time costs O(1).
//! `meet` is at or before each time to come, that one included. (As differential dataflow's replay of histories.)
#![forbid(unsafe_code)]

use super::sort::Sorting;
use crate::dataflow::Fuel;
use crate::order::{Antichain, Timestamp};
use std::collections::BTreeSet;

/// The times to visit, ascending in `Ord`.
pub(crate) struct Visits<T> {
    /// Ascending and distinct once prepared; true for a seed.
    known: Vec<(T, bool)>,
    /// The meets of the suffixes of `known`.
    meets: Vec<T>,
    sorting: Sorting<(T, bool)>,
    sorted: bool,
    next: usize,
    found: BTreeSet<T>,
    /// At or before all of `found`; exact whenever as many were taken as are left.
    found_meet: Option<T>,
    taken: usize,
    /// What has come up, folded to `meet`: visited times, and times of the history (seeds included).
    visited: Vec<T>,
    history: Vec<T>,
    meet: Option<T>,
}

/// What comes next.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next<T> {
    /// This time, and a lower bound of it and all that are still to come.
    Visit(T, T),
    /// Nothing any more.
    Done,
    /// The fuel is spent.
    Yield,
}

impl<T: Timestamp> Visits<T> {
    pub(crate) fn new() -> Self {
        Visits {
            known: Vec::new(),
            meets: Vec::new(),
            sorting: Sorting::default(),
            sorted: false,
            next: 0,
            found: BTreeSet::new(),
            found_meet: None,
            taken: 0,
            visited: Vec::new(),
            history: Vec::new(),
            meet: None,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.known.clear();
        self.meets.clear();
        self.sorted = false;
        self.next = 0;
        self.found.clear();
        self.found_meet = None;
        self.taken = 0;
        self.visited.clear();
        self.history.clear();
        self.meet = None;
    }

    /// A time of the history, or a seed.
    pub(crate) fn push(&mut self, time: T, seed: bool) {
        if self.known.last() != Some(&(time, seed)) {
            self.known.push((time, seed));
        }
    }

    /// Once all is pushed: sorts it, in slices; true iff done.
    pub(crate) fn prepare(&mut self, fuel: &mut Fuel) -> bool {
        if !self.sorted {
            if !self.sorting.sort(&mut self.known, |a, b| a.cmp(b), fuel) {
                return false;
            }
            self.known.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 |= same && next.1;
                same
            });
            self.meets.reserve(self.known.len());
            self.sorted = true;
        }
        // Suffixes from the last on; turned round by `meet_from`.
        while self.meets.len() < self.known.len() {
            let time = self.known[self.known.len() - 1 - self.meets.len()].0;
            self.meets.push(self.meets.last().map_or(time, |meet| meet.meet(&time)));
            if !fuel.spend(1) {
                return false;
            }
        }
        true
    }

    fn meet_from(&self, index: usize) -> Option<T> {
        self.meets.get((self.known.len() - index).wrapping_sub(1)).copied()
    }

    /// The next time to visit; those beyond `limit` go to `pend`.
    pub(crate) fn next(&mut self, limit: &Antichain<T>, fuel: &mut Fuel, mut pend: impl FnMut(T)) -> Next<T> {
        loop {
            let known = self.known.get(self.next).copied();
            let found = self.found.first().copied();
            let time = match (known, found) {
                (Some((known, _)), Some(found)) => known.min(found),
                (Some((time, _)), None) | (None, Some(time)) => time,
                (None, None) => return Next::Done,
            };
            if fuel.is_spent() {
                return Next::Yield;
            }
            let meet = self.fold(time);
            fuel.spend(1 + self.visited.len() + self.history.len());
            let known = known.filter(|(known, _)| *known == time);
            self.next += usize::from(known.is_some());
            let mut visit = known.is_some_and(|(_, seed)| seed);
            if found == Some(time) {
                self.found.pop_first();
                self.taken += 1;
                visit = true;
            }
            visit |= self.visited.iter().any(|t| t.less_equal(&time));
            if known.is_some() {
                for index in 0..self.visited.len() {
                    self.find(self.visited[index].join(&time), &time);
                }
            }
            if visit && limit.less_equal(&time) {
                // It is looked at again once it is due, and finds its joins then.
                pend(time);
                visit = false;
            }
            if visit {
                for index in 0..self.history.len() {
                    self.find(self.history[index].join(&time), &time);
                }
                self.visited.push(time);
            }
            if known.is_some() {
                self.history.push(time);
            }
            if visit {
                return Next::Visit(time, meet);
            }
        }
    }

    fn find(&mut self, join: T, time: &T) {
        if join != *time {
            self.found.insert(join);
            self.found_meet = Some(self.found_meet.map_or(join, |meet| meet.meet(&join)));
        }
    }

    /// The meet of `time`, which comes next, and those to come; what came up is folded to it.
    fn fold(&mut self, time: T) -> T {
        if self.taken >= self.found.len() {
            self.found_meet = self.found.iter().copied().reduce(|a, b| a.meet(&b));
            self.taken = 0;
        }
        let meet = [self.meet_from(self.next), self.found_meet].into_iter().flatten().fold(time, |a, b| a.meet(&b));
        if self.meet != Some(meet) {
            for list in [&mut self.visited, &mut self.history] {
                list.iter_mut().for_each(|t| *t = t.join(&meet));
                if list.len() > 1 {
                    list.sort_unstable();
                    list.dedup();
                }
            }
            self.meet = Some(meet);
        }
        meet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Pair;

    /// Times that are only remembered, as those here below (0, N), which (1, 0) meets in the end: they are passed in
    /// slices, each of them and each join once.
    #[test]
    fn times_that_are_not_visited_are_passed_in_slices() {
        const N: u64 = 1000;
        const FUEL: usize = 100;
        let mut visits = Visits::<Pair<u64, u64>>::new();
        [Pair::new(0, N), Pair::new(1, 0)].into_iter().for_each(|seed| visits.push(seed, true));
        (0..N).for_each(|i| visits.push(Pair::new(0, i), false));
        while !visits.prepare(&mut Fuel(FUEL as isize)) {}
        let (mut visited, mut yields) = (Vec::new(), 0);
        loop {
            let before = visits.next;
            let next =
                visits.next(&Antichain::new(), &mut Fuel(FUEL as isize), |time| panic!("{time:?} is not beyond"));
            assert!(visits.next - before <= FUEL, "{} times in one slice", visits.next - before);
            match next {
                Next::Visit(time, _) => visited.push(time),
                Next::Done => break,
                Next::Yield => yields += 1,
            }
        }
        let joins = (0..=N).map(|i| Pair::new(1, i));
        assert_eq!(visited, [Pair::new(0, N)].into_iter().chain(joins).collect::<Vec<_>>());
        assert!(yields >= N as usize / FUEL, "it yielded {yields} times");
    }
}
