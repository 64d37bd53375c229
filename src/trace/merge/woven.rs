//! The merge of two batches by plan and weave: no branch is mispredicted for a key, and no value is moved alone.
//!
//! ```text
//! keys      a    b    c   plan: A, A|B, B      by a kernel of the columns
//! vals      x y  x z  w   plan: A A, A|B A, B  as many steps as a key has vals; of a key that both have, val by val
//! updates   1 1  2 1  1   plan: A A, 3  A, B   as many as a val has; what both have is summed up aside (3), as is what folds
//! ```
//! Then each column is woven by its plan. A key of very many updates, and a stretch of one side, are left to the general form,
//! which copies them whole; so are keys when the fuel is short. Source of the kernels: `kpg_columnar`'s `weave`.
#![forbid(unsafe_code)]

use super::super::compare::compare;
use super::super::consolidate::consolidate_times;
use super::super::layers::{Layers, range};
use super::output::{Input, Output, folded};
use super::pair::Pair;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{A, B, Column, Columnar, DROP, Offsets, Step, THIRD, having, taken, woven};
use std::cell::RefCell;
use std::ops::Range;

/// Keys planned at once: what they take and give stays in the first-level cache.
const STEPS: usize = 1024;
/// So many vals, and about so many updates, are planned at once.
const MOST: usize = 2 * STEPS;
/// So many keys from one side in a row are copied whole.
const STRETCH: usize = 64;
/// Steps that are written at once, whether they are wanted or not.
const CHUNK: usize = 8;

/// The steps of one layer, or numbers; room for more than is written.
#[derive(Default)]
struct Row<S> {
    values: Vec<S>,
    len: usize,
}

impl<S: Copy + Default> Row<S> {
    /// Empties it, and makes room for so many.
    fn clear(&mut self, room: usize) {
        if self.values.is_empty() {
            self.values.resize(room + CHUNK, S::default());
        }
        self.len = 0;
    }
    #[inline]
    fn push(&mut self, value: S) {
        self.values[self.len] = value;
        self.len += 1;
    }
    #[inline]
    fn repeat(&mut self, value: S, count: usize) {
        let chunk: &mut [S; CHUNK] = (&mut self.values[self.len..self.len + CHUNK]).try_into().expect("as long");
        *chunk = [value; CHUNK];
        if count > CHUNK {
            self.values[self.len..self.len + count].fill(value);
        }
        self.len += count;
    }
    fn copy(&mut self, other: &Self) {
        self.values[..other.len].copy_from_slice(&other.values[..other.len]);
        self.len = other.len;
    }
    fn get(&self) -> &[S] {
        &self.values[..self.len]
    }
    fn get_mut(&mut self) -> &mut [S] {
        &mut self.values[..self.len]
    }
}

/// Plans, without what is summed up.
#[derive(Default)]
struct Rows {
    keys: Row<Step>,
    vals: Row<Step>,
    updates: Row<Step>,
    /// How many vals each key has that comes out, and how many updates each val; nothing, where all have one.
    vals_of: Row<u64>,
    updates_of: Row<u64>,
    /// Of each side, where the vals of the keys start, and the updates of the vals; the first is where the plan starts.
    key_starts: [Row<u64>; 2],
    val_starts: [Row<u64>; 2],
    /// Steps at which both sides have the val, and the updates of each.
    shared: Row<[usize; 3]>,
}

thread_local! {
    // Merges of a thread take turns, and most are short.
    static ROWS: RefCell<Rows> = RefCell::default();
}

/// The plans for some keys.
pub(super) struct Plans<T: Timestamp, R: Semigroup> {
    rows: Rows,
    /// What is summed up aside.
    times: Vec<T>,
    diffs: Vec<R>,
    /// Of one val, not yet summed up.
    gathered: Vec<(T, R)>,
    /// The times that the sides give, folded, those summed up aside, and what comes out of them.
    folding: Vec<T>,
}

impl<T: Timestamp, R: Semigroup> Default for Plans<T, R> {
    fn default() -> Self {
        Plans { rows: Rows::default(), times: Vec::new(), diffs: Vec::new(), gathered: Vec::new(), folding: Vec::new() }
    }
}

impl<T: Timestamp, R: Semigroup> Plans<T, R> {
    fn clear(&mut self) {
        let Rows { keys, vals, updates, vals_of, updates_of, .. } = &mut self.rows;
        keys.clear(STEPS);
        vals.clear(MOST);
        updates.clear(2 * MOST);
        vals_of.clear(STEPS);
        updates_of.clear(MOST);
        self.times.clear();
        self.diffs.clear();
    }
    /// Sums up what was gathered of a val, and plans what is left of it. False if nothing is.
    fn sum_up(&mut self) -> bool {
        consolidate_times(&mut self.gathered);
        let left = self.gathered.len();
        for (time, diff) in self.gathered.drain(..) {
            self.times.push(time);
            self.diffs.push(diff);
        }
        self.rows.updates.repeat(THIRD, left);
        if left > 0 {
            self.rows.updates_of.push(left as u64);
        }
        left > 0
    }
}

/// What planning reads.
struct Sides<'a, K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> {
    inputs: &'a [Input<K, V, T, R>; 2],
    common_time: Option<T>,
    /// Whether each key of a side has one val, and each val one update.
    single: [[bool; 2]; 2],
    /// The first keys not yet merged.
    keys: [usize; 2],
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Sides<'_, K, V, T, R> {
    fn layers(&self, side: usize) -> &Layers<K, V, T, R> {
        &self.inputs[side].layers
    }
    #[inline]
    fn time(&self, side: usize, update: usize) -> T {
        if let Some(time) = self.common_time {
            return time;
        }
        folded(self.layers(side).times.get(update), self.inputs[side].floor)
    }
    #[inline]
    fn update(&self, side: usize, update: usize) -> (T, R) {
        (self.time(side, update), self.layers(side).diffs.get(update))
    }

    /// Plans as many keys as have no more than about `most` updates; none, if the first has more.
    fn plan(&self, most: usize, plans: &mut Plans<T, R>) {
        let [a, b] = [0, 1].map(|side| self.layers(side));
        let [i, j] = self.keys;
        plans.clear();
        let Rows { keys, vals, .. } = &mut plans.rows;
        let steps = &mut keys.values[..STEPS.min(most)];
        keys.len = a.keys.plan(i..a.keys.len(), &b.keys, j..b.keys.len(), steps);
        let (from_a, from_b) = taken(keys.get());
        if from_a + from_b > most {
            // Keys that both sides have take two updates at least.
            keys.len = keys.len.min(most.div_ceil(2));
        }
        let [one_val, one_update] = [0, 1].map(|layer| self.single[0][layer] && self.single[1][layer]);
        let has_no_val = const { size_of::<V>() == 0 };
        if one_val && one_update && (has_no_val || !keys.get().contains(&(A | B))) {
            vals.copy(keys);
        } else {
            self.plan_vals(most, &mut plans.rows);
        }
        let starts = [a.key_ends.start(i), b.key_ends.start(j)];
        let vanish = if one_update && self.plan_single_updates(starts, plans) {
            having(plans.rows.vals.get(), DROP) > 0
        } else {
            self.plan_updates(starts, plans)
        };
        if vanish {
            drop_keys(&mut plans.rows);
        }
    }

    /// Expands the steps of keys to steps of vals.
    fn plan_vals(&self, most: usize, rows: &mut Rows) {
        let Rows { keys, vals, vals_of, key_starts, val_starts, .. } = rows;
        for (side, count) in <[usize; 2]>::from(taken(keys.get())).into_iter().enumerate() {
            let (layers, from) = (self.layers(side), self.keys[side]);
            let (starts, val_starts) = (&mut key_starts[side], &mut val_starts[side]);
            starts.clear(STEPS + 1);
            starts.len = count + 1;
            layers.key_ends.starts(from, starts.get_mut());
            let first = starts.values[0] as usize;
            let vals = (starts.values[count] as usize - first).min(2 * MOST);
            val_starts.clear(2 * MOST + 1);
            val_starts.len = vals + 1;
            layers.val_ends.starts(first, val_starts.get_mut());
        }
        let firsts = [0, 1].map(|side| key_starts[side].values[0] as usize);
        let ([mut i, mut j], mut updates) = ([0; 2], 0);
        for at in 0..keys.len {
            let step = keys.values[at];
            let next = [i + usize::from(step & A), j + usize::from(step >> 1 & 1)];
            // The vals of a side that does not have the key are none.
            let [a, b] = [(0, i), (1, j)].map(|(side, key)| {
                let starts = &key_starts[side].values;
                starts[key] as usize - firsts[side]..starts[next[side]] as usize - firsts[side]
            });
            let within = a.end < val_starts[0].len && b.end < val_starts[1].len;
            let count = |side: usize, vals: &Range<usize>| {
                (val_starts[side].values[vals.end] - val_starts[side].values[vals.start]) as usize
            };
            if within {
                updates += count(0, &a) + count(1, &b);
            }
            if !within || updates > most || vals.len + a.len() + b.len() > MOST {
                keys.len = at;
                break;
            }
            let before = vals.len;
            match step {
                A | B => vals.repeat(step, a.len() + b.len()),
                _ => self.plan_lists(firsts, a, b, vals),
            }
            vals_of.push((vals.len - before) as u64);
            [i, j] = next;
        }
    }

    /// The steps in which two lists of vals are merged, whose columns they lie in from `firsts` on.
    fn plan_lists(&self, firsts: [usize; 2], a: Range<usize>, b: Range<usize>, vals: &mut Row<Step>) {
        let [mut i, mut j] = [firsts[0] + a.start, firsts[1] + b.start];
        let [end_a, end_b] = [firsts[0] + a.end, firsts[1] + b.end];
        while i < end_a && j < end_b {
            let order = compare::<V>(self.layers(0).vals.get(i), self.layers(1).vals.get(j));
            vals.push(Step::from(order.is_le()) | Step::from(order.is_ge()) << 1);
            (i, j) = (i + usize::from(order.is_le()), j + usize::from(order.is_ge()));
        }
        vals.repeat(A, end_a - i);
        vals.repeat(B, end_b - j);
    }

    /// Steps of updates, where each val has one. False, and nothing is planned, if some val gets more.
    fn plan_single_updates(&self, [mut i, mut j]: [usize; 2], plans: &mut Plans<T, R>) -> bool {
        let Plans { rows: Rows { vals, updates, shared, .. }, times, diffs, .. } = plans;
        updates.copy(vals);
        if !vals.get().contains(&(A | B)) {
            return true;
        }
        // First where they are, without a branch that is often mispredicted.
        shared.clear(MOST);
        for (at, step) in vals.get().iter().enumerate() {
            shared.values[shared.len] = [at, i, j];
            shared.len += usize::from(*step == A | B);
            (i, j) = (i + usize::from(step & A), j + usize::from(step >> 1 & 1));
        }
        for [at, i, j] in shared.get() {
            let [a, b] = [self.update(0, *i), self.update(1, *j)];
            let mut sum = R::Sum::default();
            a.1.add_to(&mut sum);
            b.1.add_to(&mut sum);
            match R::from_sum(sum).filter(|_| a.0 == b.0) {
                Some(_) if R::sum_is_zero(&sum) => {
                    vals.values[*at] = A | B | DROP;
                    updates.values[*at] = A | B | DROP;
                }
                Some(diff) => {
                    times.push(a.0);
                    diffs.push(diff);
                    updates.values[*at] = A | B | THIRD;
                }
                None => {
                    vals.get_mut().iter_mut().for_each(|step| *step &= !DROP);
                    updates.len = 0;
                    times.clear();
                    diffs.clear();
                    return false;
                }
            }
        }
        true
    }

    /// Expands the steps of vals to steps of updates. True if some val vanishes.
    fn plan_updates(&self, [mut i, mut j]: [usize; 2], plans: &mut Plans<T, R>) -> bool {
        let folds = [0, 1].map(|side| self.common_time.is_some() || self.inputs[side].floor.is_some());
        let mut vanish = false;
        for at in 0..plans.rows.vals.len {
            let step = plans.rows.vals.values[at];
            let stays = match step {
                A | B => {
                    let side = usize::from(step == B);
                    let updates = range(&self.layers(side).val_ends, [i, j][side]);
                    if folds[side] && updates.len() > 1 {
                        plans.rows.updates.repeat(step | DROP, updates.len());
                        plans.gathered.extend(updates.map(|update| self.update(side, update)));
                        plans.sum_up()
                    } else {
                        plans.rows.updates.repeat(step, updates.len());
                        plans.rows.updates_of.push(updates.len() as u64);
                        true
                    }
                }
                _ => self.plan_both(i, j, plans),
            };
            if !stays {
                plans.rows.vals.values[at] |= DROP;
                vanish = true;
            }
            (i, j) = (i + usize::from(step & A), j + usize::from(step >> 1 & 1));
        }
        vanish
    }

    /// Plans the updates of a val that both sides have; whether it comes out.
    fn plan_both(&self, i: usize, j: usize, plans: &mut Plans<T, R>) -> bool {
        let [a, b] = [range(&self.layers(0).val_ends, i), range(&self.layers(1).val_ends, j)];
        if a.len() == 1 && b.len() == 1 {
            let [a, b] = [self.update(0, a.start), self.update(1, b.start)];
            if a.0 != b.0 {
                let [first, second] = if a.0 < b.0 { [A, B] } else { [B, A] };
                plans.rows.updates.push(first);
                plans.rows.updates.push(second);
                plans.rows.updates_of.push(2);
                return true;
            }
        }
        plans.rows.updates.repeat(A | DROP, a.len());
        plans.rows.updates.repeat(B | DROP, b.len());
        plans.gathered.extend(a.map(|update| self.update(0, update)));
        plans.gathered.extend(b.map(|update| self.update(1, update)));
        plans.sum_up()
    }
}

/// Drops the keys all of whose vals vanish.
fn drop_keys(rows: &mut Rows) {
    let Rows { keys, vals, vals_of, .. } = rows;
    if vals_of.len == 0 {
        // Each has one.
        keys.copy(vals);
        return;
    }
    let mut next = 0;
    let mut left = 0;
    for at in 0..keys.len {
        let count = vals_of.values[at] as usize;
        let out = vals.values[next..next + count].iter().filter(|step| **step & DROP == 0).count();
        next += count;
        if out == 0 {
            keys.values[at] |= DROP;
        } else {
            vals_of.values[left] = out as u64;
            left += 1;
        }
    }
    vals_of.len = left;
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    /// Merges keys until the fuel is used up, an input is, or a stretch, a key of very many updates or one that the fuel is too
    /// short for comes next.
    pub(super) fn work_woven(&mut self, fuel: &mut isize) {
        ROWS.with_borrow_mut(|rows| std::mem::swap(rows, &mut self.plans.rows));
        while *fuel > 0 && !(self.at_end(0) || self.at_end(1)) && !self.in_stretch() {
            let Pair { inputs, single, keys, plans, output, .. } = self;
            let most = MOST.min(*fuel as usize);
            let sides = Sides { inputs, common_time: output.common_time, single: *single, keys: *keys };
            sides.plan(most, plans);
            if plans.rows.keys.len == 0 {
                break;
            }
            output.weave(inputs, *keys, plans);
            let (from_a, from_b) = taken(plans.rows.keys.get());
            *keys = [keys[0] + from_a, keys[1] + from_b];
            let (from_a, from_b) = taken(plans.rows.updates.get());
            *fuel -= (from_a + from_b) as isize;
        }
        ROWS.with_borrow_mut(|rows| std::mem::swap(rows, &mut self.plans.rows));
    }

    /// Whether the next keys of one side are all before the other's next.
    pub(super) fn in_stretch(&self) -> bool {
        let is_before = |side: usize| {
            let (keys, other) = (&self.inputs[side].layers.keys, &self.inputs[1 - side].layers.keys);
            let last = self.keys[side] + STRETCH;
            last < keys.len() && keys.get(last) < other.get(self.keys[1 - side])
        };
        is_before(0) || is_before(1)
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Output<K, V, T, R> {
    /// Weaves what was planned of the keys from `[i, j]` on.
    fn weave(&mut self, inputs: &[Input<K, V, T, R>; 2], [i, j]: [usize; 2], plans: &mut Plans<T, R>) {
        let Plans { rows, times, diffs, folding, .. } = plans;
        let mut summed = R::Column::default();
        summed.push_values(diffs);
        let (out, [a, b]) = (&mut self.layers, [0, 1].map(|side| &*inputs[side].layers));
        out.keys.weave((&a.keys, i), (&b.keys, j), &K::Column::default(), rows.keys.get());
        let (i, j) = (a.key_ends.start(i), b.key_ends.start(j));
        out.vals.weave((&a.vals, i), (&b.vals, j), &V::Column::default(), rows.vals.get());
        let (i, j) = (a.val_ends.start(i), b.val_ends.start(j));
        let updates = rows.updates.get();
        out.diffs.weave((&a.diffs, i), (&b.diffs, j), &summed, updates);
        if let Some(time) = self.common_time {
            out.times.push_many(time, woven(updates));
        } else if inputs.iter().all(|input| input.floor.is_none()) {
            let mut summed = T::Column::default();
            summed.push_values(times);
            out.times.weave((&a.times, i), (&b.times, j), &summed, updates);
        } else {
            folding.clear();
            let mut starts = [0; 3];
            for (side, (from, count)) in [i, j].into_iter().zip(<[usize; 2]>::from(taken(updates))).enumerate() {
                let (column, floor) = (&inputs[side].layers.times, inputs[side].floor);
                folding.extend((from..from + count).map(|index| folded(column.get(index), floor)));
                starts[side + 1] = folding.len();
            }
            folding.extend_from_slice(times);
            let [mut at_a, mut at_b, mut at_sum] = starts;
            for step in updates {
                let one = if step & A == 0 { at_b } else { at_a };
                let at = if step & THIRD == 0 { one } else { at_sum };
                if step & DROP == 0 {
                    folding.push(folding[at]);
                }
                at_a += usize::from(step & A);
                at_b += usize::from(step >> 1 & 1);
                at_sum += usize::from(step >> 3 & 1);
            }
            out.times.push_values(&folding[starts[2] + times.len()..]);
        }
        let ends = |ends: &mut Offsets, lengths: &mut Row<u64>, lists: &[Step]| match lengths.len {
            0 => ends.push_lists(woven(lists), 1),
            _ => ends.push_lengths(lengths.get_mut()),
        };
        ends(&mut out.val_ends, &mut rows.updates_of, rows.vals.get());
        ends(&mut out.key_ends, &mut rows.vals_of, rows.keys.get());
    }
}
