//! Sorting and summing up: what makes many updates one.
//!
//! Sums run in `R::Sum`. A sum of zero vanishes; one that its diff cannot hold leaves the updates apart, so that
//! nothing stored is ever wrapped. Next stop: `runs`.
#![forbid(unsafe_code)]

use super::compare::compare;
use super::rows::sum_rows;
use super::runs::merge_all;
use crate::dataflow::Updates;
use crate::order::{Semigroup, Timestamp};
use kpg_arena::Buffer;
use kpg_columnar::{Column, Columnar, Group, Sorter};
use std::cmp::Ordering;

/// Updates sorted at a time: what is larger costs more by the update, and many runs are merged at little cost.
const CHUNK: usize = 1 << 20;

/// Sorts `updates` by time and sums up those of equal times. Cost: n log n, none if there is at most one.
pub fn consolidate_times<T: Ord + Copy, R: Semigroup>(updates: &mut Vec<(T, R)>) {
    if updates.len() < 2 {
        if updates.first().is_some_and(|u| u.1.is_zero()) {
            updates.clear();
        }
        return;
    }
    if !updates.is_sorted_by(|a, b| a.0 <= b.0) {
        updates.sort_unstable_by_key(|u| u.0);
    }
    let (mut read, mut write) = (0, 0);
    while read < updates.len() {
        let time = updates[read].0;
        let mut sum = R::Sum::default();
        let mut end = read;
        while end < updates.len() && updates[end].0 == time {
            updates[end].1.add_to(&mut sum);
            end += 1;
        }
        if !R::sum_is_zero(&sum) {
            match R::from_sum(sum) {
                Some(diff) => {
                    updates[write] = (time, diff);
                    write += 1;
                }
                None => {
                    updates.copy_within(read..end, write);
                    write += end - read;
                }
            }
        }
        read = end;
    }
    updates.truncate(write);
}

/// What a run is sorted by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// (data, time).
    Data,
    /// (time, data).
    Time,
}

/// Compares update `i` of `a` with update `j` of `b`.
#[inline]
pub(crate) fn compare_by<D: Columnar, T: Timestamp, R: Semigroup>(
    by: By,
    a: &Updates<D, T, R>,
    i: usize,
    b: &Updates<D, T, R>,
    j: usize,
) -> Ordering {
    match by {
        By::Data => compare_at(a, i, b, j),
        By::Time => a.times.get(i).cmp(&b.times.get(j)).then_with(|| compare::<D>(a.data.get(i), b.data.get(j))),
    }
}

/// Compares update `i` of `a` with update `j` of `b` by (data, time).
#[inline]
pub(crate) fn compare_at<D: Columnar, T: Timestamp, R: Semigroup>(
    a: &Updates<D, T, R>,
    i: usize,
    b: &Updates<D, T, R>,
    j: usize,
) -> Ordering {
    compare::<D>(a.data.get(i), b.data.get(j)).then_with(|| a.times.get(i).cmp(&b.times.get(j)))
}

/// The updates sorted by (data, time) and summed up. Cost: that of sorting 64-bit prefixes; comparisons for ties only.
pub fn sort_and_consolidate<D: Columnar, T: Timestamp, R: Semigroup>(updates: Updates<D, T, R>) -> Updates<D, T, R> {
    sort_and_consolidate_with(&mut Sorter::default(), updates)
}

/// As [`sort_and_consolidate`], with scratch memory of the caller's.
pub fn sort_and_consolidate_with<D: Columnar, T: Timestamp, R: Semigroup>(
    sorter: &mut Sorter,
    updates: Updates<D, T, R>,
) -> Updates<D, T, R> {
    sort_by(By::Data, sorter, updates)
}

/// The updates sorted and summed up.
pub(crate) fn sort_by<D: Columnar, T: Timestamp, R: Semigroup>(
    by: By,
    sorter: &mut Sorter,
    updates: Updates<D, T, R>,
) -> Updates<D, T, R> {
    let len = updates.len();
    let strict = |i: usize| compare_by(by, &updates, i - 1, &updates, i).is_lt() && !updates.diffs.get(i).is_zero();
    if len == 0 || (!updates.diffs.get(0).is_zero() && (1..len).all(strict)) {
        return updates;
    }
    if len <= CHUNK {
        return sort_range(by, sorter, &updates, 0, len);
    }
    let runs: Vec<_> =
        (0..len).step_by(CHUNK).map(|low| sort_range(by, sorter, &updates, low, len.min(low + CHUNK))).collect();
    drop(updates);
    merge_all(by, sorter, runs)
}

/// Updates `low..high` sorted and summed up.
fn sort_range<D: Columnar, T: Timestamp, R: Semigroup>(
    by: By,
    sorter: &mut Sorter,
    updates: &Updates<D, T, R>,
    low: usize,
    high: usize,
) -> Updates<D, T, R> {
    let done = match by {
        By::Data => sum_rows::<_, _, R>(sorter, (&updates.data, &updates.times, &updates.diffs), low, high)
            .map(|(data, times, diffs)| Updates { data, times, diffs }),
        By::Time => sum_rows::<_, _, R>(sorter, (&updates.times, &updates.data, &updates.diffs), low, high)
            .map(|(times, data, diffs)| Updates { data, times, diffs }),
    };
    if let Some(out) = done {
        return out;
    }
    let mut out = Updates::<D, T, R>::default();
    let mut picked: Buffer<u32> = Buffer::with_capacity(high - low);
    let zeros = (low..high).any(|index| updates.diffs.get(index).is_zero());
    let group = |group: Group<'_>| match group {
        Group::Singles(all) if !zeros => {
            picked.extend_from_slice(all);
            out.diffs.gather(&updates.diffs, all);
        }
        Group::Singles(all) => {
            for index in all.iter().filter(|index| !updates.diffs.get(**index as usize).is_zero()) {
                picked.push(*index);
                out.diffs.push(updates.diffs.get(*index as usize));
            }
        }
        Group::Equal(all) => {
            let mut sum = R::Sum::default();
            all.iter().for_each(|index| updates.diffs.get(*index as usize).add_to(&mut sum));
            if R::sum_is_zero(&sum) {
                return;
            }
            match R::from_sum(sum) {
                Some(diff) => {
                    picked.push(all[0]);
                    out.diffs.push(diff);
                }
                None => {
                    picked.extend_from_slice(all);
                    out.diffs.gather(&updates.diffs, all);
                }
            }
        }
    };
    match by {
        By::Data => sorter.sort_groups(&updates.data, &updates.times, low, high, group),
        By::Time => sorter.sort_groups(&updates.times, &updates.data, low, high, group),
    }
    out.data.gather(&updates.data, &picked);
    out.times.gather(&updates.times, &picked);
    out
}

/// True iff sorted by (data, time) and summed up, save where a sum does not fit.
pub(crate) fn is_consolidated<D: Columnar, T: Timestamp, R: Semigroup>(updates: &Updates<D, T, R>) -> bool {
    let mut start = 0;
    while start < updates.len() {
        let mut sum = R::Sum::default();
        let mut end = start;
        while end < updates.len() && compare_at(updates, start, updates, end).is_eq() {
            updates.diffs.get(end).add_to(&mut sum);
            end += 1;
        }
        let apart = end - start > 1;
        if R::sum_is_zero(&sum) || R::from_sum(sum).is_some() == apart {
            return false;
        }
        if end < updates.len() && compare_at(updates, start, updates, end).is_gt() {
            return false;
        }
        start = end;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::runs::merge_runs;
    use super::*;
    use std::collections::BTreeMap;

    type Update = (u8, u8, i64);

    fn columns(updates: &[Update]) -> Updates<u64, u64, i64> {
        let mut out = Updates::default();
        updates.iter().for_each(|(d, t, r)| out.push(u64::from(d % 8), u64::from(t % 4), *r));
        out
    }

    fn model(updates: &[Update]) -> BTreeMap<(u64, u64), i128> {
        let mut out = BTreeMap::new();
        updates
            .iter()
            .for_each(|(d, t, r)| *out.entry((u64::from(d % 8), u64::from(t % 4))).or_insert(0) += *r as i128);
        out.retain(|_, r| *r != 0);
        out
    }

    fn sums(updates: &Updates<u64, u64, i64>) -> BTreeMap<(u64, u64), i128> {
        let mut out = BTreeMap::new();
        updates.iter().for_each(|(d, t, r)| *out.entry((d, t)).or_insert(0) += i128::from(r));
        out
    }

    quickcheck::quickcheck! {
        fn sorted_is_the_model(updates: Vec<Update>) -> bool {
            let out = sort_and_consolidate(columns(&updates));
            is_consolidated(&out) && sums(&out) == model(&updates)
        }
        fn merged_is_the_model(a: Vec<Update>, b: Vec<Update>) -> bool {
            let out = merge_runs(&sort_and_consolidate(columns(&a)), &sort_and_consolidate(columns(&b)));
            is_consolidated(&out) && sums(&out) == model(&[a, b].concat())
        }
        fn times_sum_up(updates: Vec<(u8, i64)>) -> bool {
            let mut out = updates.clone();
            consolidate_times(&mut out);
            (0..=u8::MAX).all(|t| {
                let sum = |u: &[(u8, i64)]| u.iter().filter(|u| u.0 == t).map(|u| i128::from(u.1)).sum::<i128>();
                let count = out.iter().filter(|u| u.0 == t).count();
                sum(&updates) == sum(&out) && (i64::try_from(sum(&out)).is_err() || count <= 1)
            }) && out.is_sorted_by(|a, b| a.0 <= b.0)
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_stays_apart() {
        let out = sort_and_consolidate(columns(&[(1, 1, i64::MAX), (1, 1, i64::MAX), (2, 0, 1)]));
        assert_eq!(out.len(), 3);
        let less = sort_and_consolidate(columns(&[(1, 1, -i64::MAX)]));
        assert_eq!(merge_runs(&out, &less).len(), 2);
    }
}
