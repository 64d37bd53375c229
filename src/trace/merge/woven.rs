//! The merge of two flat batches whose updates all fold to one time: by plan and weave, without a branch a key.
//!
//! It is the common case: batches of one time each, of which readers see the sum. A key that both have must have one val, and
//! a sum that fits; one that does not is merged by itself. Stretches of one side are left to the general form, which copies
//! them whole. Source of the kernels: `kpg_columnar`'s `weave`.
#![forbid(unsafe_code)]

use super::flat::push_both;
use super::pair::Pair;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{A, B, Column, Columnar, NEITHER, Step, taken, woven};

/// Steps planned at once: what they take and give stays in the first-level cache.
const STEPS: usize = 1024;
/// So many keys from one side in a row are copied whole.
const STRETCH: usize = 64;

/// What a plan comes to.
struct Planned<R: Semigroup> {
    /// So many of its steps can be woven.
    steps: usize,
    /// The diffs of keys that both have, as far as they do not vanish.
    sums: R::Column,
    /// The key after those steps is to be merged by itself.
    stopped: bool,
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    /// Merges keys of two flat inputs, all at `time`, until the fuel is used up, an input is, or a stretch has begun.
    pub(super) fn work_woven(&mut self, time: T, fuel: &mut isize) {
        let mut plan = [0; STEPS];
        while *fuel > 0 && !(self.at_end(0) || self.at_end(1)) && !self.in_stretch() {
            let most = STEPS.min(*fuel as usize);
            let [i, j] = self.keys;
            let [a, b] = [0, 1].map(|side| &*self.inputs[side].layers);
            let count = a.keys.plan(i, &b.keys, j, &mut plan[..most]);
            let planned = self.sum_up(&mut plan[..count]);
            let steps = &plan[..planned.steps];
            let (from_a, from_b) = taken(steps);
            let out = woven(steps);
            self.output.layers.keys.weave((&a.keys, i), (&b.keys, j), None, steps);
            self.output.layers.vals.weave((&a.vals, i), (&b.vals, j), None, steps);
            self.output.layers.diffs.weave((&a.diffs, i), (&b.diffs, j), Some(&planned.sums), steps);
            self.output.layers.times.push_many(time, out);
            self.output.layers.val_ends.push_lists(out, 1);
            self.output.layers.key_ends.push_lists(out, 1);
            self.keys = [i + from_a, j + from_b];
            *fuel -= (from_a + from_b) as isize;
            if planned.stopped {
                let [i, j] = self.keys;
                push_both(&mut self.output.layers, a, i, b, j, [time; 2]);
                self.keys = [i + 1, j + 1];
                *fuel -= 2;
            }
        }
    }

    /// Whether the next keys of one side are all before the other's next.
    fn in_stretch(&self) -> bool {
        let is_before = |side: usize| {
            let (keys, other) = (&self.inputs[side].layers.keys, &self.inputs[1 - side].layers.keys);
            let last = self.keys[side] + STRETCH;
            last < keys.len() && keys.get(last) < other.get(self.keys[1 - side])
        };
        is_before(0) || is_before(1)
    }

    /// Sums up what both inputs have, and takes out of the plan what vanishes.
    fn sum_up(&self, plan: &mut [Step]) -> Planned<R> {
        let [a, b] = [0, 1].map(|side| &*self.inputs[side].layers);
        let mut sums = R::Column::default();
        let [mut i, mut j] = self.keys;
        for (at, planned) in plan.iter_mut().enumerate() {
            let step = *planned;
            if step == A | B {
                let mut sum = R::Sum::default();
                a.diffs.get(i).add_to(&mut sum);
                b.diffs.get(j).add_to(&mut sum);
                let apart = a.vals.get(i) != b.vals.get(j);
                match R::from_sum(sum) {
                    _ if apart => return Planned { steps: at, sums, stopped: true },
                    _ if R::sum_is_zero(&sum) => *planned = NEITHER,
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
