//! The merge of two batches in which each key has one val and each val one update: the common case of key-only
//! batches and of tables. One comparison a key; stretches are left to the general form, which copies them whole.
#![forbid(unsafe_code)]

use super::super::Ref;
use super::super::compare::compare;
use super::super::layers::Layers;
use super::output::Output;
use super::pair::Pair;
use crate::order::{Semigroup, Timestamp, rep};
use kpg_columnar::{Column, Columnar};
use std::cmp::Ordering;

/// So many keys from one side in a row are a stretch: from there on copying whole is cheaper.
pub(super) const STRETCH: usize = 12;

/// Whether each key has one val and each val one update.
pub(super) fn is_flat<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(layers: &Layers<K, V, T, R>) -> bool {
    layers.key_ends.uniform() == Some(1) && layers.val_ends.uniform() == Some(1)
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    /// Merges keys of two flat inputs one by one, until the fuel is used up, an input is, or a stretch has begun.
    pub(super) fn work_flat(&mut self, fuel: &mut isize) {
        let Pair { inputs, keys, output, .. } = self;
        let Output { layers: output, since, .. } = output;
        let [a, b] = [&inputs[0].layers, &inputs[1].layers];
        let single = since.as_single();
        let fold = |side: usize, time: T| match (inputs[side].folds, single) {
            (false, _) => time,
            (true, Some(f)) => time.join(f),
            (true, None) => rep(&time, since),
        };
        let [mut i, mut j] = *keys;
        let (len_a, len_b) = (a.keys.len(), b.keys.len());
        let (mut in_a, mut in_b) = (0, 0);
        if i == len_a || j == len_b {
            return;
        }
        let (mut key_a, mut key_b) = (a.keys.get(i), b.keys.get(j));
        while *fuel > 0 && in_a < STRETCH && in_b < STRETCH {
            let order = compare::<K>(key_a, key_b);
            match order {
                Ordering::Less => {
                    push_one(output, key_a, a, i, fold(0, a.times.get(i)));
                    (in_a, in_b) = (in_a + 1, 0);
                    *fuel -= 1;
                }
                Ordering::Greater => {
                    push_one(output, key_b, b, j, fold(1, b.times.get(j)));
                    (in_a, in_b) = (0, in_b + 1);
                    *fuel -= 1;
                }
                Ordering::Equal => {
                    let times = [fold(0, a.times.get(i)), fold(1, b.times.get(j))];
                    push_both(output, a, i, b, j, times);
                    (in_a, in_b) = (0, 0);
                    *fuel -= 2;
                }
            }
            if order.is_le() {
                i += 1;
                if i == len_a {
                    j += usize::from(order.is_eq());
                    break;
                }
                key_a = a.keys.get(i);
            }
            if order.is_ge() {
                j += 1;
                if j == len_b {
                    break;
                }
                key_b = b.keys.get(j);
            }
        }
        *keys = [i, j];
    }
}

#[inline(always)]
pub(super) fn push_one<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    output: &mut Layers<K, V, T, R>,
    key: Ref<'_, K>,
    input: &Layers<K, V, T, R>,
    index: usize,
    time: T,
) {
    output.times.push(time);
    output.diffs.push(input.diffs.get(index));
    output.vals.push(input.vals.get(index));
    output.val_ends.push(output.times.len());
    output.keys.push(key);
    output.key_ends.push(output.vals.len());
}

/// A key of both inputs.
pub(super) fn push_both<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
    output: &mut Layers<K, V, T, R>,
    a: &Layers<K, V, T, R>,
    i: usize,
    b: &Layers<K, V, T, R>,
    j: usize,
    times: [T; 2],
) {
    let updates = [(times[0], a.diffs.get(i)), (times[1], b.diffs.get(j))];
    let vals = [a.vals.get(i), b.vals.get(j)];
    match vals[0].cmp(&vals[1]) {
        Ordering::Equal => {
            let mut sum = R::Sum::default();
            updates.iter().for_each(|update| update.1.add_to(&mut sum));
            let same = times[0] == times[1];
            match R::from_sum(sum) {
                _ if same && R::sum_is_zero(&sum) => {}
                Some(diff) if same => output.push_update(times[0], diff),
                _ => {
                    let first = usize::from(times[1] < times[0]);
                    [first, 1 - first]
                        .into_iter()
                        .for_each(|side| output.push_update(updates[side].0, updates[side].1));
                }
            }
            output.end_val(vals[0]);
        }
        order => {
            let first = usize::from(order.is_gt());
            for side in [first, 1 - first] {
                output.push_update(updates[side].0, updates[side].1);
                output.end_val(vals[side]);
            }
        }
    }
    output.end_key(a.keys.get(i));
}
