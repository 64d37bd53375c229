//! The common case of a reduce's key: one new time, and a history that is not long and all at or before it.
//!
//! Then that time is the only one to visit, and what is there at it is the sum of all there is: one walk through the
//! vals, which batches hold in order; where there is but one val (distinct, threshold, count), a sum and no walk. Nothing
//! is sorted, copied or allocated. Whatever turns out to be otherwise is left to `slices`, which starts anew: at
//! most `LONG` updates have then been read in vain.
//!
//! Where there is but one val, and nothing of the key was pending, the output before is the function of the sum before, and
//! is not read back: all earlier times of the key, and so their joins, are at or before the new one, hence complete, and
//! what was to be done at them has been done.
#![forbid(unsafe_code)]

use super::history::Edits;
use super::key::{for_each_change, next_change, sort_by_val, sum_up};
use super::walk::{Walk, recycled};
use crate::dataflow::Fuel;
use crate::order::{Abelian, DiffOverflow, PartialOrder, Semigroup};
use crate::trace::{Cursor, Ref};
use kpg_columnar::Columnar;

/// Updates of a key that are read in one go: four quanta of reading alone, so that a hub is one walk.
const LONG: usize = 16 * 1024;

/// Empty lists, kept for their memory.
pub(crate) struct Spare<V: Columnar, R, V2: Columnar, R2> {
    vals: Vec<(Ref<'static, V>, R)>,
    had: Vec<(Ref<'static, V2>, R2)>,
    should: Vec<(V2, R2)>,
    was: Vec<(V2, R2)>,
    walk: Walk,
}

impl<V: Columnar, R, V2: Columnar, R2> Spare<V, R, V2, R2> {
    pub(crate) fn new() -> Self {
        Spare { vals: Vec::new(), had: Vec::new(), should: Vec::new(), was: Vec::new(), walk: Walk::default() }
    }
}

/// The lists while batches are read.
pub(crate) struct Direct<'s, 'a, 'b, V: Columnar, R, V2: Columnar, R2> {
    vals: Vec<(Ref<'a, V>, R)>,
    had: Vec<(Ref<'b, V2>, R2)>,
    spare: &'s mut Spare<V, R, V2, R2>,
}

impl<V: Columnar, R, V2: Columnar, R2> Drop for Direct<'_, '_, '_, V, R, V2, R2> {
    fn drop(&mut self) {
        self.spare.vals = recycled(std::mem::take(&mut self.vals));
        self.spare.had = recycled(std::mem::take(&mut self.had));
    }
}

/// The new times of a key.
pub(crate) enum Seeds<T> {
    One(T),
    /// More than one, or too many updates to look at.
    Many,
}

impl<'s, 'a, 'b, V: Columnar, R: Semigroup, V2: Columnar, R2: Abelian> Direct<'s, 'a, 'b, V, R, V2, R2> {
    pub(crate) fn new(spare: &'s mut Spare<V, R, V2, R2>) -> Self {
        let (vals, had) = (recycled(std::mem::take(&mut spare.vals)), recycled(std::mem::take(&mut spare.had)));
        Direct { vals, had, spare }
    }

    /// The new times of `key`: those of the cursors' batches, and those due.
    pub(crate) fn seeds<'n, C: Cursor<'n>>(
        &mut self,
        new: &mut [C],
        key: Ref<'_, C::Key>,
        due: impl Iterator<Item = C::Time>,
        fuel: &mut Fuel,
    ) -> Seeds<C::Time> {
        let (mut seed, mut count, mut many) = (None, 0, false);
        let mut see = |time| {
            many |= *seed.get_or_insert(time) != time;
            count += 1;
            !many && count < LONG
        };
        let mut one = due.into_iter().all(&mut see);
        if one {
            self.spare.walk.start(new, key, None);
            one = self.spare.walk.go(new, |_, group| {
                let mut go_on = true;
                group.for_each(|time, _| go_on = see(time));
                go_on
            });
        }
        fuel.spend(8 + count);
        match seed {
            Some(time) if one => Seeds::One(time),
            _ => Seeds::Many,
        }
    }

    /// Visits `key` at `time` alone, if that is all there is to do; true iff done.
    pub(crate) fn visit<C, D>(
        &mut self,
        old: &mut [C],
        stored: &mut [D],
        (key, time): (Ref<'_, C::Key>, C::Time),
        fuel: &mut Fuel,
        f: impl FnOnce(&[(Ref<'a, V>, R)], &mut Vec<(V2, R2)>),
        mut emit: impl FnMut(Ref<'_, V2>, C::Time, R2),
    ) -> bool
    where
        C: Cursor<'a, Val = V, Diff = R>,
        D: Cursor<'b, Key = C::Key, Val = V2, Time = C::Time, Diff = R2>,
    {
        let Spare { walk, should, .. } = &mut *self.spare;
        let done =
            sums(walk, old, key, &time, &mut self.vals, fuel) && sums(walk, stored, key, &time, &mut self.had, fuel);
        if !done {
            return false;
        }
        should.clear();
        if !self.vals.is_empty() {
            f(&self.vals, should);
            sort_by_val(should);
            fuel.spend(should.len());
        }
        let (mut new, mut had) = (&should[..], &self.had[..]);
        while let Some(change) = next_change(new, had, |a, b| a.borrow().cmp(&V2::reborrow(*b))) {
            if let Some(diff) = change.diff {
                let val = if change.new > 0 { new[0].0.borrow() } else { V2::reborrow(had[0].0) };
                emit(val, time, diff);
            }
            (new, had) = (&new[change.new..], &had[change.old..]);
        }
        true
    }

    /// As `visit`, for a key without vals of which nothing was pending: `before` is the input before the new updates,
    /// which the cursors of `new` are at.
    pub(crate) fn visit_sum<C: Cursor<'a, Val = V, Diff = R>>(
        &mut self,
        before: &mut [C],
        new: &mut [C],
        (key, time): (Ref<'_, C::Key>, C::Time),
        fuel: &mut Fuel,
        f: impl Fn(&[(Ref<'a, V>, R)], &mut Vec<(V2, R2)>),
        mut emit: impl FnMut(Ref<'_, V2>, C::Time, R2),
    ) -> bool {
        let (mut sum, mut only) = (R::Sum::default(), None);
        if !count(before, key, &time, &mut sum, &mut only, fuel) {
            return false;
        }
        let Spare { should, was, .. } = &mut *self.spare;
        let vals = &mut self.vals;
        let mut output = |only: &Option<Ref<'a, V>>, sum: &R::Sum, list: &mut Vec<(V2, R2)>| {
            list.clear();
            vals.clear();
            if let Some(val) = only.filter(|_| !R::sum_is_zero(sum)) {
                vals.push((val, R::from_sum(*sum).unwrap_or_else(|| DiffOverflow::raise())));
                f(vals, list);
                sort_by_val(list);
            }
        };
        output(&only, &sum, was);
        sum_up(was);
        for cursor in new {
            if cursor.key().is_some_and(|at| C::Key::reborrow(at) == C::Key::reborrow(key)) {
                cursor.rewind_vals();
                only = only.or(cursor.val());
                cursor.for_each_time(|_, diff| diff.add_to(&mut sum));
            }
        }
        output(&only, &sum, should);
        fuel.spend(should.len() + was.len());
        for_each_change(should, was, |val, diff| emit(val.borrow(), time, diff));
        true
    }
}

/// Sums up each val of `key` as of `time`; false if there are later updates, or too many.
fn sums<'a, C: Cursor<'a>>(
    walk: &mut Walk,
    cursors: &mut [C],
    key: Ref<'_, C::Key>,
    time: &C::Time,
    into: &mut Vec<(Ref<'a, C::Val>, C::Diff)>,
    fuel: &mut Fuel,
) -> bool {
    into.clear();
    if const { size_of::<C::Val>() == 0 } {
        let (mut sum, mut only) = (<C::Diff as Semigroup>::Sum::default(), None);
        let done = count(cursors, key, time, &mut sum, &mut only, fuel);
        if let Some(val) = only.filter(|_| done && !C::Diff::sum_is_zero(&sum)) {
            into.push((val, C::Diff::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise())));
        }
        return done;
    }
    let mut count = 0;
    walk.start(cursors, key, None);
    let done = walk.go(cursors, |val, group| {
        let mut sum = <C::Diff as Semigroup>::Sum::default();
        let mut later = false;
        group.for_each(|t, diff| {
            later |= !t.less_equal(time);
            diff.add_to(&mut sum);
            count += 1;
        });
        if later || count > LONG {
            return false;
        }
        if !C::Diff::sum_is_zero(&sum) {
            into.push((val, C::Diff::from_sum(sum).unwrap_or_else(|| DiffOverflow::raise())));
        }
        true
    });
    fuel.spend(count);
    done
}

/// As `sums`, where there is but one val: that of distinct, threshold and count. No list of cursors, no comparisons of vals.
fn count<'a, C: Cursor<'a>>(
    cursors: &mut [C],
    key: Ref<'_, C::Key>,
    time: &C::Time,
    sum: &mut <C::Diff as Semigroup>::Sum,
    only: &mut Option<Ref<'a, C::Val>>,
    fuel: &mut Fuel,
) -> bool {
    let (mut later, mut count) = (false, 0);
    for cursor in cursors {
        if !cursor.seek_key_exact(C::Key::reborrow(key)) {
            continue;
        }
        // A view may show the key and hide its val.
        *only = cursor.val().or(*only);
        cursor.for_each_time(|t, diff| {
            later |= !t.less_equal(time);
            diff.add_to(sum);
            count += 1;
        });
        if later || count > LONG {
            break;
        }
    }
    fuel.spend(count);
    !later && count <= LONG
}
