//! The case of keys without vals over totally ordered times: count, threshold, distinct.
//!
//! What is there of a key is then one sum, and batches come in the order of their times. So the sum before new updates is that
//! of all that was acknowledged before; the output before is the function of that sum, which need not be read back; and each new
//! time changes it once. Keys are looked up in groups, so that one need not wait for another's memory. Keys of very many
//! updates, and times that are not complete yet (a view may show such), are left to the general case, as is the rest of the
//! round then.
#![forbid(unsafe_code)]

use super::key::{for_each_change, sort_by_val, sum_up};
use super::walk::recycled;
use crate::dataflow::Fuel;
use crate::order::{Abelian, Antichain, DiffOverflow, Semigroup, Timestamp};
use crate::trace::{Batch, Cursor, Ref, consolidate_times};
use kpg_columnar::Columnar;
use std::ops::Range;

/// Keys that are looked up together: enough to keep memory busy, few enough to stay within a quantum.
const GROUP: usize = 256;
/// Updates of a key in one batch that are read in one go.
const LONG: usize = 1024;

/// How far a round has come.
pub(crate) enum Progress {
    Done,
    /// The fuel is spent.
    Spent,
    /// The next key is one for the general case.
    Other,
}

/// Lists, kept for their memory.
pub(crate) struct Counts<K: Columnar, T, R: Semigroup, V2, R2> {
    keys: Vec<Ref<'static, K>>,
    sums: Vec<R::Sum>,
    // The new times of the keys, and where those of each end.
    times: Vec<(T, R)>,
    ends: Vec<usize>,
    one: Vec<(T, R)>,
    had: Vec<(V2, R2)>,
    should: Vec<(V2, R2)>,
}

impl<K: Columnar, T, R: Semigroup, V2, R2> Counts<K, T, R, V2, R2> {
    pub(crate) fn new() -> Self {
        Counts {
            keys: Vec::new(),
            sums: Vec::new(),
            times: Vec::new(),
            ends: Vec::new(),
            one: Vec::new(),
            had: Vec::new(),
            should: Vec::new(),
        }
    }
}

impl<K: Columnar, T: Timestamp, R: Semigroup, V2: Columnar, R2: Abelian> Counts<K, T, R, V2, R2> {
    /// Goes on through the keys of `fresh`, from `positions` on, which it moves. `before`: all input before `fresh`. `f` makes
    /// the output of a key and what is there of it; `emit` is given the changes.
    pub(crate) fn work<B: Batch<Key = K, Time = T, Diff = R>>(
        &mut self,
        (fresh, positions): (&[B], &mut [usize]),
        before: &[B],
        limit: &Antichain<T>,
        fuel: &mut Fuel,
        f: &impl for<'v> Fn(Ref<'v, K>, &[(Ref<'v, B::Val>, R)], &mut Vec<(V2, R2)>),
        mut emit: impl FnMut(Ref<'_, K>, &V2, T, R2),
    ) -> Progress {
        let mut cursors: Vec<_> = fresh.iter().map(Batch::cursor).collect();
        let mut keys = recycled(std::mem::take(&mut self.keys));
        let progress = loop {
            if fuel.is_spent() {
                break Progress::Spent;
            }
            for (cursor, position) in cursors.iter_mut().zip(positions.iter()) {
                cursor.set_position(*position);
            }
            keys.clear();
            let most = GROUP.min(1 + fuel.0.max(0) as usize / (4 + before.len()));
            let (other, val) = self.gather(&mut cursors, most, limit, &mut keys);
            self.sums.clear();
            self.sums.resize(keys.len(), R::Sum::default());
            if !before.iter().all(|batch| batch.sum_keys(&keys, LONG, &mut self.sums)) {
                break Progress::Other;
            }
            fuel.spend(keys.len() * (3 + before.len()) + 2 * self.times.len());
            let mut start = 0;
            for (index, key) in keys.iter().enumerate() {
                let end = self.ends[index];
                let val = val.expect("a key with updates has a val");
                self.replay::<B::Val>((*key, val), self.sums[index], start..end, f, &mut emit);
                start = end;
            }
            for (cursor, position) in cursors.iter().zip(positions.iter_mut()) {
                *position = cursor.position();
            }
            if other {
                break Progress::Other;
            }
            if keys.len() < most {
                break Progress::Done;
            }
        };
        self.keys = recycled(keys);
        progress
    }

    /// The next keys, `most` at most, and their times, sorted and summed up; the cursors move past them. Whether the key after
    /// them is one for the general case, and the val that all keys have.
    fn gather<'a, C: Cursor<'a, Key = K, Time = T, Diff = R>>(
        &mut self,
        cursors: &mut [C],
        most: usize,
        limit: &Antichain<T>,
        keys: &mut Vec<Ref<'a, K>>,
    ) -> (bool, Option<Ref<'a, C::Val>>) {
        self.times.clear();
        self.ends.clear();
        let mut val = None;
        while keys.len() < most {
            let Some(key) = cursors.iter().filter_map(|cursor| cursor.key()).min() else { break };
            self.one.clear();
            for cursor in cursors.iter_mut().filter(|cursor| cursor.key() == Some(key)) {
                if cursor.time_count() > LONG {
                    return (true, val);
                }
                val = val.or(cursor.val());
                cursor.for_each_time(|time, diff| self.one.push((time, diff)));
            }
            if self.one.iter().any(|(time, _)| limit.less_equal(time)) {
                return (true, val);
            }
            consolidate_times(&mut self.one);
            if !self.one.is_empty() {
                self.times.append(&mut self.one);
                self.ends.push(self.times.len());
                keys.push(key);
            }
            cursors.iter_mut().filter(|cursor| cursor.key() == Some(key)).for_each(Cursor::step_key);
        }
        (false, val)
    }

    /// Gives the changes of the output as the sum of a key goes on from `sum` through some of the times.
    fn replay<V: Columnar>(
        &mut self,
        (key, val): (Ref<'_, K>, Ref<'_, V>),
        mut sum: R::Sum,
        times: Range<usize>,
        f: &impl for<'v> Fn(Ref<'v, K>, &[(Ref<'v, V>, R)], &mut Vec<(V2, R2)>),
        emit: &mut impl FnMut(Ref<'_, K>, &V2, T, R2),
    ) {
        let output = |sum: &R::Sum, list: &mut Vec<(V2, R2)>| {
            list.clear();
            if !R::sum_is_zero(sum) {
                let count = R::from_sum(*sum).unwrap_or_else(|| DiffOverflow::raise());
                f(K::reborrow(key), &[(V::reborrow(val), count)], list);
                sort_by_val(list);
            }
        };
        output(&sum, &mut self.had);
        for index in times {
            let (time, diff) = self.times[index];
            diff.add_to(&mut sum);
            output(&sum, &mut self.should);
            sum_up(&mut self.had);
            for_each_change(&self.should, &self.had, |val, diff| emit(K::reborrow(key), val, time, diff));
            std::mem::swap(&mut self.had, &mut self.should);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Builder, OrdBatch};

    type Stored = OrdBatch<u64, (), u64, i64>;
    type Change = (u64, i64, u64, i64);

    /// Of each key: its updates, by time.
    fn batch(keys: impl IntoIterator<Item = (u64, Vec<(u64, i64)>)>) -> Stored {
        let mut builder = Builder::new();
        for (key, updates) in keys {
            updates.into_iter().for_each(|(time, diff)| builder.update(time, diff));
            builder.val(());
            builder.key(key);
        }
        builder.finish(Antichain::from_elem(0), Antichain::new())
    }

    /// How far one call comes from `position` on, with so much fuel, and what it emits for a count.
    fn work(
        before: &[Stored],
        fresh: &Stored,
        position: &mut usize,
        limit: u64,
        fuel: isize,
    ) -> (Progress, Vec<Change>) {
        let mut changes = Vec::new();
        let progress = Counts::new().work(
            (std::slice::from_ref(fresh), std::slice::from_mut(position)),
            before,
            &Antichain::from_elem(limit),
            &mut Fuel(fuel),
            &|_, vals, output| output.push((vals[0].1, 1i64)),
            |key, count: &i64, time, diff| changes.push((key, *count, time, diff)),
        );
        (progress, changes)
    }

    #[test]
    fn the_output_follows_the_sum_from_time_to_time() {
        let before = [batch([(1, vec![(0, 2)]), (2, vec![(0, 1)])]), batch([(1, vec![(3, 1)])])];
        let fresh = batch([(1, vec![(5, -1), (7, -2)]), (2, vec![(5, 0)]), (3, vec![(6, 4)])]);
        let (progress, changes) = work(&before, &fresh, &mut 0, 10, 1_000);
        assert!(matches!(progress, Progress::Done));
        assert_eq!(changes, [(1, 2, 5, 1), (1, 3, 5, -1), (1, 2, 7, -1), (3, 4, 6, 1)]);
    }

    #[test]
    fn a_key_beyond_the_limit_is_left_to_others() {
        let fresh = batch([(1, vec![(5, 1)]), (2, vec![(5, 1), (10, 1)]), (3, vec![(5, 1)])]);
        let mut position = 0;
        let (progress, changes) = work(&[], &fresh, &mut position, 10, 1_000);
        assert!(matches!(progress, Progress::Other));
        assert_eq!((position, changes), (1, vec![(1, 1, 5, 1)]), "those before it are done, and it is the next");
    }

    #[test]
    fn many_keys_are_done_once_each_whatever_the_fuel() {
        let keys = 3 * GROUP as u64;
        let before = [batch((0..keys).step_by(2).map(|key| (key, vec![(0, 1)])))];
        let fresh = batch((0..keys).map(|key| (key, vec![(5, 1)])));
        let expected: Vec<Change> = (0..keys)
            .flat_map(|key| if key % 2 == 0 { vec![(key, 1, 5, -1), (key, 2, 5, 1)] } else { vec![(key, 1, 5, 1)] })
            .collect();
        for fuel in [1, 100, 1 << 20] {
            let (mut position, mut all, mut calls) = (0, Vec::new(), 0);
            loop {
                let (progress, changes) = work(&before, &fresh, &mut position, 10, fuel);
                all.extend(changes);
                calls += 1;
                match progress {
                    Progress::Done => break,
                    Progress::Spent => {}
                    Progress::Other => panic!("there is none"),
                }
            }
            assert_eq!(all, expected);
            assert!(fuel > 100 || calls > 20, "{calls} calls with {fuel} each");
        }
    }
}
