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
//!                                                     emit the difference at t
//! ```
//! Invariants: seeds count though their updates cancel stored ones; what is folded is folded to the meet of the times
//! still to be visited, so no accumulation at any of those changes. All of it stops where the fuel ends and goes on from
//! there, but for the user's function, which is charged for what it is given and what it makes, the edits of one val, and
//! the joins of one time with the history. Cost: a sort of what is not at or before all seeds; for each time visited the
//! vals then present. (Differential dataflow, CIDR 2013, section
//! 4.3; McSherry's notes on "interesting times".)
//!
//! It knows no frontiers but the limit, no capabilities, no traces: the driver in `reduce` does. Next stops:
//! `times` (which times), `history` (what is there at each).
#![forbid(unsafe_code)]

use super::history::{Edits, History};
use super::times::{Next, Visits};
use crate::dataflow::Fuel;
use crate::order::{Abelian, Antichain, DiffOverflow, Semigroup, Timestamp};
use std::cmp::Ordering;

#[derive(Copy, Clone)]
enum Stage<T> {
    /// Seeds and histories come in.
    Load,
    Prepare,
    Next,
    /// On the way to a time, given the meet of it and those to come.
    Reach(T, T),
    /// There: how much of the output that should be, and of that which is, has been compared.
    Compare(T, T, usize, usize),
}

/// One key's work; its buffers serve the next key. First the seeds, then both histories, then `run`.
pub(crate) struct KeyWork<V1, T, R1, V2, R2> {
    /// All input of the key, the new updates included.
    input: History<V1, T, R1>,
    /// All output that is stored, and what is emitted.
    stored: History<V2, T, R2>,
    visits: Visits<T>,
    /// The meet of the seeds: histories are seen from there on.
    meet: Option<T>,
    should: Vec<(V2, R2)>,
    stage: Stage<T>,
}

impl<V1, T, R1, V2, R2> KeyWork<V1, T, R1, V2, R2>
where
    V1: Clone + Ord,
    T: Timestamp,
    R1: Semigroup,
    V2: Clone + Ord,
    R2: Abelian,
{
    pub(crate) fn new() -> Self {
        KeyWork {
            input: History::new(),
            stored: History::new(),
            visits: Visits::new(),
            meet: None,
            should: Vec::new(),
            stage: Stage::Load,
        }
    }

    /// Forgets the key.
    pub(crate) fn clear(&mut self) {
        self.input.clear();
        self.stored.clear();
        self.visits.clear();
        self.meet = None;
        self.should.clear();
        self.stage = Stage::Load;
    }

    /// A new time, or a pending time that is due.
    pub(crate) fn seed(&mut self, time: T) {
        self.meet = Some(self.meet.map_or(time, |meet| meet.meet(&time)));
        self.visits.push(time, true);
    }

    /// All input of the next val, which is named if any is left; how many edits there are.
    pub(crate) fn load_input(&mut self, val: impl FnOnce() -> V1, edits: &mut impl Edits<T, R1>) -> usize {
        let meet = self.meet.expect("seeds come first");
        let visits = &mut self.visits;
        self.input.load(val, &meet, edits, |time| visits.push(time, false))
    }

    /// All stored output of the next val.
    pub(crate) fn load_stored(&mut self, val: impl FnOnce() -> V2, edits: &mut impl Edits<T, R2>) -> usize {
        let meet = self.meet.expect("seeds come first");
        let visits = &mut self.visits;
        self.stored.load(val, &meet, edits, |time| visits.push(time, false))
    }

    /// Visits every time not beyond `limit` at which the output may change; the rest goes to `pend`. `f` gives, from
    /// the accumulated input (never empty), the output that there should be; `emit` is given the changes. True iff
    /// done; else the fuel is spent, and the call is to be repeated.
    pub(crate) fn run(
        &mut self,
        limit: &Antichain<T>,
        fuel: &mut Fuel,
        mut f: impl FnMut(&[(V1, R1)], &mut Vec<(V2, R2)>),
        mut emit: impl FnMut(&V2, T, R2),
        mut pend: impl FnMut(T),
    ) -> bool {
        loop {
            match self.stage {
                Stage::Load => self.stage = Stage::Prepare,
                Stage::Prepare => {
                    let done = self.visits.prepare(fuel) && self.input.prepare(fuel) && self.stored.prepare(fuel);
                    if !done {
                        return false;
                    }
                    self.stage = Stage::Next;
                }
                Stage::Next => match self.visits.next(limit, fuel, &mut pend) {
                    Next::Visit(time, meet) => self.stage = Stage::Reach(time, meet),
                    Next::Done => return true,
                    Next::Yield => return false,
                },
                Stage::Reach(time, meet) => {
                    if !self.input.reach(&time, &meet, fuel) || !self.stored.reach(&time, &meet, fuel) {
                        return false;
                    }
                    if !self.input.sums.is_empty() {
                        f(&self.input.sums, &mut self.should);
                        sort_by_val(&mut self.should);
                        fuel.spend(self.input.sums.len() + self.should.len());
                    }
                    self.stage = Stage::Compare(time, meet, 0, 0);
                }
                Stage::Compare(time, meet, should, had) => {
                    let (should, had) = self.compare(&time, should, had, fuel, &mut emit);
                    if should < self.should.len() || had < self.stored.sums.len() {
                        self.stage = Stage::Compare(time, meet, should, had);
                        return false;
                    }
                    self.should.clear();
                    self.input.leave();
                    self.stored.leave();
                    self.stage = Stage::Next;
                }
            }
        }
    }

    /// Emits what differs from the `should`-th val of what should be and the `had`-th of what is on; how far it came.
    fn compare(
        &mut self,
        time: &T,
        mut should: usize,
        mut had: usize,
        fuel: &mut Fuel,
        mut emit: impl FnMut(&V2, T, R2),
    ) -> (usize, usize) {
        while !fuel.is_spent() {
            let (new, old) = (&self.should[should..], &self.stored.sums[had..]);
            let Some(change) = next_change(new, old, |a, b| a.cmp(b)) else { break };
            should += change.new;
            had += change.old;
            fuel.spend(change.new + change.old);
            if let Some(diff) = change.diff {
                let val = if change.new > 0 { new[0].0.clone() } else { old[0].0.clone() };
                emit(&val, *time, diff);
                self.stored.add(val, *time, diff);
            }
        }
        (should, had)
    }
}

/// Sorts what a user's function made, unless it is sorted.
pub(crate) fn sort_by_val<V: Ord, R>(list: &mut [(V, R)]) {
    if !list.is_sorted_by(|a, b| a.0 <= b.0) {
        list.sort_by(|a, b| a.0.cmp(&b.0));
    }
}

/// Makes vals that are there more than once, side by side, one: what a user's function made, once it is what there is.
pub(crate) fn sum_up<V: Ord, R: Abelian>(list: &mut Vec<(V, R)>) {
    if list.windows(2).all(|two| two[0].0 != two[1].0) {
        return;
    }
    list.dedup_by(|later, kept| {
        let same = later.0 == kept.0;
        if same {
            let mut sum = R::Sum::default();
            kept.1.add_to(&mut sum);
            later.1.add_to(&mut sum);
            kept.1 = R::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise());
        }
        same
    });
}

/// Gives the changes from one list of vals to another: `new` may have a val more than once, `old` has not; both are sorted.
pub(crate) fn for_each_change<V: Ord, R: Abelian>(new: &[(V, R)], old: &[(V, R)], mut emit: impl FnMut(&V, R)) {
    let (mut new, mut old) = (new, old);
    while let Some(change) = next_change(new, old, V::cmp) {
        if let Some(diff) = change.diff {
            emit(if change.new > 0 { &new[0].0 } else { &old[0].0 }, diff);
        }
        (new, old) = (&new[change.new..], &old[change.old..]);
    }
}

/// How the output of one val changes.
pub(crate) struct Change<R> {
    /// How many entries of what should be are of that val, and of what is.
    pub(crate) new: usize,
    pub(crate) old: usize,
    /// By how much, if it does.
    pub(crate) diff: Option<R>,
}

/// The change of the least val of `new` (what there should be: sorted, vals may repeat) and `old` (what there is:
/// sorted, distinct).
pub(crate) fn next_change<V: Ord, W, R: Abelian>(
    new: &[(V, R)],
    old: &[(W, R)],
    order: impl Fn(&V, &W) -> Ordering,
) -> Option<Change<R>> {
    let first = match (new.first(), old.first()) {
        (Some((val, _)), Some((had, _))) => order(val, had),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => return None,
    };
    let mut sum = R::Sum::default();
    let mut count = 0;
    if first.is_le() {
        while count < new.len() && new[count].0 == new[0].0 {
            new[count].1.add_to(&mut sum);
            count += 1;
        }
    }
    if first.is_ge() {
        old[0].1.negate().unwrap_or_else(|| DiffOverflow::raise()).add_to(&mut sum);
    }
    let changes = !R::sum_is_zero(&sum);
    let diff = changes.then(|| R::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise()));
    Some(Change { new: count, old: usize::from(first.is_ge()), diff })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Pair;
    use std::collections::BTreeMap;

    type Time = Pair<u64, u64>;
    type Update<T> = (u8, T, i64);

    impl<T: Copy> Edits<T, i64> for Vec<(T, i64)> {
        fn for_each(&mut self, mut f: impl FnMut(T, i64)) {
            self.iter().for_each(|(time, diff)| f(*time, *diff));
        }
    }

    fn at<T: Timestamp>(list: &[Update<T>], time: &T) -> Vec<(u8, i64)> {
        let mut sums = BTreeMap::new();
        list.iter().filter(|u| u.1.less_equal(time)).for_each(|u| *sums.entry(u.0).or_insert(0) += u.2);
        sums.into_iter().filter(|(_, sum)| *sum != 0).collect()
    }

    /// The greatest val, how many there are, and each twice: out of order.
    fn user(vals: &[(u8, i64)], out: &mut Vec<(u8, i64)>) {
        out.extend(vals.last().map(|(val, _)| (100 + val, 1)));
        out.push((200 + vals.len() as u8, vals[0].1));
        out.extend(vals.iter().map(|(val, diff)| (*val, *diff)));
        out.extend(vals.iter().map(|(val, diff)| (*val, *diff)));
    }

    fn by_val<T: Timestamp>(list: &[Update<T>]) -> BTreeMap<u8, Vec<(T, i64)>> {
        let mut out = BTreeMap::<_, Vec<_>>::new();
        list.iter().for_each(|u| out.entry(u.0).or_default().push((u.1, u.2)));
        out
    }

    struct Life<T> {
        work: KeyWork<u8, T, i64, u8, i64>,
        input: Vec<Update<T>>,
        stored: Vec<Update<T>>,
        pending: Vec<T>,
    }

    impl<T: Timestamp> Life<T> {
        fn new() -> Self {
            Life { work: KeyWork::new(), input: vec![], stored: vec![], pending: vec![] }
        }

        /// Takes new updates, does what is due, `fuel` at a time. Returns how many calls and slices that took.
        fn round(&mut self, new: Vec<Update<T>>, limit: &Antichain<T>, fuel: isize) -> (usize, usize) {
            self.work.clear();
            new.iter().for_each(|u| self.work.seed(u.1));
            let pending = std::mem::take(&mut self.pending);
            for time in pending {
                if limit.less_equal(&time) { self.pending.push(time) } else { self.work.seed(time) }
            }
            self.input.extend(new);
            if self.work.meet.is_none() {
                return (0, 0);
            }
            for (val, mut edits) in by_val(&self.input) {
                self.work.load_input(|| val, &mut edits);
            }
            for (val, mut edits) in by_val(&self.stored) {
                self.work.load_stored(|| val, &mut edits);
            }
            let (mut calls, mut slices) = (0, 1);
            let mut f = |vals: &[_], out: &mut Vec<_>| {
                calls += 1;
                user(vals, out);
            };
            let (stored, pending) = (&mut self.stored, &mut self.pending);
            let mut emit = |val: &u8, time, diff| stored.push((*val, time, diff));
            while !self.work.run(limit, &mut Fuel(fuel), &mut f, &mut emit, |time| pending.push(time)) {
                slices += 1;
            }
            (calls, slices)
        }

        fn check(&self, times: impl Iterator<Item = T>, limit: &Antichain<T>) {
            for time in times.filter(|time| !limit.less_equal(time)) {
                let vals = at(&self.input, &time);
                let mut should = Vec::new();
                if !vals.is_empty() {
                    user(&vals, &mut should);
                }
                let should: Vec<_> = should.into_iter().map(|(val, diff)| (val, time, diff)).collect();
                assert_eq!(at(&self.stored, &time), at(&should, &time), "at {time:?}");
            }
        }
    }

    struct Random(u64);

    impl Random {
        fn below(&mut self, bound: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 32) % bound
        }
    }

    fn lives<T: Timestamp>(time: impl Fn(&mut Random) -> T, all: impl Fn() -> Vec<T>, seeds: u64) {
        for seed in 1..seeds {
            let random = &mut Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut life = Life::new();
            let mut limit = Antichain::from_elem(T::minimum());
            for round in 0..6 {
                let next: Antichain<T> = (0..1 + random.below(2)).map(|_| time(random)).collect();
                let next = if round == 5 { Antichain::new() } else { limit.join(&next) };
                let new =
                    (0..random.below(6)).map(|_| (random.below(4) as u8, time(random), random.below(5) as i64 - 2));
                let new = new.filter(|u| limit.less_equal(&u.1) && !next.less_equal(&u.1) && u.2 != 0).collect();
                let fuel = [1, 3, 50, 100_000][random.below(4) as usize];
                life.round(new, &next, fuel);
                life.check(all().into_iter(), &next);
                limit = next;
            }
            assert!(life.pending.is_empty(), "nothing is beyond the empty frontier");
        }
    }

    #[test]
    fn as_the_naive_over_partial_times() {
        let all = || (0..36).map(|i| Pair::new(i / 6, i % 6)).collect::<Vec<Time>>();
        lives(|random| Pair::new(random.below(6), random.below(6)), all, 4000);
    }

    #[test]
    fn as_the_naive_over_total_times() {
        lives(|random| random.below(12), || (0..12).collect(), 2000);
    }

    /// Over a total order, or one that is total from the first seed on, many times cost a constant amount each.
    #[test]
    fn many_times_are_linear() {
        const TIMES: u64 = 100_000;
        for first in [0, 1] {
            let mut life = Life::<Time>::new();
            let old: Vec<_> = (0..TIMES).map(|i| ((i % 3) as u8, Pair::new(0, i), 1)).collect();
            life.input = old;
            let (calls, slices) = life.round(vec![(7, Pair::new(first, 0), 1)], &Antichain::new(), 4096);
            assert_eq!(calls, TIMES as usize);
            assert!(slices > 200 && slices < 2500, "{slices} slices");
        }
    }

    /// What does not fit is an error only at a time at which it does not.
    #[test]
    fn a_sum_that_does_not_fit_in_between() {
        let mut life = Life::<Time>::new();
        life.input = vec![(1, Pair::new(0, 0), i64::MAX), (1, Pair::new(0, 0), 9), (1, Pair::new(0, 1), -9)];
        life.input.push((1, Pair::new(1, 0), -9));
        // Their meet, (0,0), is not visited.
        let new = vec![(1, Pair::new(0, 1), -i64::MAX + 5), (1, Pair::new(1, 0), -i64::MAX + 5)];
        life.round(new, &Antichain::from_elem(Pair::new(1, 1)), 100);
        assert_eq!(at(&life.stored, &Pair::new(0, 1)).first(), Some(&(1, 10)));
    }

    #[test]
    fn vals_that_repeat_are_one() {
        let mut list = vec![(1, 2i64), (1, -2), (2, 1), (3, 1), (3, 1), (3, 5)];
        sum_up(&mut list);
        assert_eq!(list, [(1, 0), (2, 1), (3, 7)]);
    }
}
