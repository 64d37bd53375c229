//! The merge of two flat batches whose updates all fold to one time: by plan and weave, without a branch a key.
//!
//! It is the common case: batches of one time each, of which readers see the sum. A key that both have must have one val, and
//! a sum that fits; one that does not is merged by itself. Stretches of one side are left to the general form, which copies
//! them whole. Source of the kernels: `kpg_columnar`'s `weave`.
#![forbid(unsafe_code)]

use super::super::layers::OrdBatch;
use super::Merger;
use super::flat::push_both;
use crate::order::{Antichain, Semigroup, Timestamp, rep};
use crate::trace::Batch;
use kpg_columnar::{A, B, Column, Columnar, NEITHER, Step, taken, woven};

/// Steps planned at once: what they take and give stays in the first-level cache.
const STEPS: usize = 1024;
/// So many keys from one side in a row are copied whole.
const STRETCH: usize = 64;

/// The one time that all updates of both inputs fold to, if that is known without looking at each.
pub(super) fn common_time<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    inputs: [&OrdBatch<K, V, T, R>; 2],
    folds: [bool; 2],
    since: &Antichain<T>,
) -> Option<T> {
    let [first, second] = [0, 1].map(|side| {
        let input = inputs[side];
        if let Some(constant) = input.layers().times.constant() {
            return Some(if folds[side] { rep(&constant, since) } else { constant });
        }
        // All times that are not beyond `since` are joined with it.
        let (since, upper) = (since.as_single()?, input.upper().as_single()?);
        (folds[side] && T::TOTAL && upper.less_equal(since)).then_some(*since)
    });
    first.filter(|_| first == second)
}

/// What a plan comes to.
struct Planned<R: Semigroup> {
    /// So many of its steps can be woven.
    steps: usize,
    /// The diffs of keys that both have, as far as they do not vanish.
    sums: R::Column,
    /// The key after those steps is to be merged by itself.
    stopped: bool,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Merger<K, V, T, R> {
    /// Merges keys of two flat inputs, all at `time`, until the fuel is used up, an input is, or a stretch has begun.
    pub(super) fn work_woven(&mut self, time: T, fuel: &mut isize) {
        let mut plan = [0; STEPS];
        while *fuel > 0 && !(self.at_end(0) || self.at_end(1)) && !self.in_stretch() {
            let most = STEPS.min(*fuel as usize);
            let [i, j] = self.keys;
            let count = self.input(0).keys.plan(i, &self.input(1).keys, j, &mut plan[..most]);
            let planned = self.sum_up(&mut plan[..count]);
            let steps = &plan[..planned.steps];
            let [a, b] = [0, 1].map(|side| self.inputs[side].layers());
            let (from_a, from_b) = taken(steps);
            let out = woven(steps);
            self.output.keys.weave((&a.keys, i), (&b.keys, j), None, steps);
            self.output.vals.weave((&a.vals, i), (&b.vals, j), None, steps);
            self.output.diffs.weave((&a.diffs, i), (&b.diffs, j), Some(&planned.sums), steps);
            self.output.times.push_many(time, out);
            self.output.val_ends.push_lists(out, 1);
            self.output.key_ends.push_lists(out, 1);
            self.keys = [i + from_a, j + from_b];
            *fuel -= (from_a + from_b) as isize;
            if planned.stopped {
                let [i, j] = self.keys;
                push_both(&mut self.output, a, i, b, j, [time; 2]);
                self.keys = [i + 1, j + 1];
                *fuel -= 2;
            }
        }
    }

    /// Whether the next keys of one side are all before the other's next.
    fn in_stretch(&self) -> bool {
        let is_before = |side: usize| {
            let (keys, other) = (&self.input(side).keys, &self.input(1 - side).keys);
            let last = self.keys[side] + STRETCH;
            last < keys.len() && keys.get(last) < other.get(self.keys[1 - side])
        };
        is_before(0) || is_before(1)
    }

    /// Sums up what both inputs have, and takes out of the plan what vanishes.
    fn sum_up(&self, plan: &mut [Step]) -> Planned<R> {
        let [a, b] = [0, 1].map(|side| self.input(side));
        let mut sums = R::Column::default();
        let [mut i, mut j] = self.keys;
        for at in 0..plan.len() {
            let step = plan[at];
            if step == A | B {
                let mut sum = R::Sum::default();
                a.diffs.get(i).add_to(&mut sum);
                b.diffs.get(j).add_to(&mut sum);
                let apart = a.vals.get(i) != b.vals.get(j);
                match R::from_sum(sum) {
                    _ if apart => return Planned { steps: at, sums, stopped: true },
                    _ if R::sum_is_zero(&sum) => plan[at] = NEITHER,
                    Some(diff) => sums.push(diff),
                    None => return Planned { steps: at, sums, stopped: true },
                }
            }
            i += usize::from(step & A);
            j += usize::from(step >> 1 & 1);
        }
        Planned { steps: plan.len(), sums, stopped: false }
    }
}
