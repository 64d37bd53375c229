//! The merge of two batches whose updates fit a word each: keys without vals, each with one update, all at one time.
//!
//! That is what most updates of a set of keys, or of a reduce's input, come to lie as, once their times have folded. The words of
//! some hundred keys of each side are woven, summed up, and decoded, each column in one go. Where a sum does not fit, and for all
//! else, there is `woven`. Source of the words: `rows`.
#![forbid(unsafe_code)]

use super::super::rows::{FEW, Summing};
use super::pair::Pair;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, weave_words};
use std::cell::RefCell;

/// Keys of a side read at once: what is read and written stays in the first-level cache.
const MOST: usize = 512;

thread_local! {
    // Merges of a thread take turns.
    static BLOCKS: RefCell<[Vec<u64>; 3]> = RefCell::default();
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    /// Merges keys as words until little fuel is left, or few keys of an input; or a stretch comes next, or a sum that does not fit.
    pub(super) fn work_words(&mut self, fuel: &mut isize) {
        let Some(time) =
            self.output.common_time.filter(|_| const { size_of::<V>() == 0 } && self.single == [[true; 2]; 2])
        else {
            return;
        };
        BLOCKS.with_borrow_mut(|blocks| {
            // A side that gives little need not be read far.
            let mut most = [MOST; 2];
            while *fuel > FEW as isize && self.has_many(0) && self.has_many(1) && !self.in_stretch() {
                let Some(taken) = self.weave_words(blocks, most.map(|most| most.min(*fuel as usize / 2)), time) else {
                    break;
                };
                self.keys = [self.keys[0] + taken[0], self.keys[1] + taken[1]];
                *fuel -= (taken[0] + taken[1]) as isize;
                most = taken.map(|taken| (2 * taken + 16).min(MOST));
            }
        });
    }

    fn has_many(&self, side: usize) -> bool {
        self.keys[side] + FEW <= self.inputs[side].layers.keys.len()
    }

    /// Merges some keys, of each side `most` at most; how many of each were taken, none if there is no way.
    fn weave_words(&mut self, blocks: &mut [Vec<u64>; 3], most: [usize; 2], time: T) -> Option<[usize; 2]> {
        let [a, b] = [0, 1].map(|side| &*self.inputs[side].layers);
        let [i, j] = self.keys;
        let columns = [a, b].map(|layers| (&layers.keys, &layers.vals, &layers.diffs));
        let counts = [most[0].min(a.keys.len() - i), most[1].min(b.keys.len() - j)];
        let parts = [(columns[0], i..i + counts[0]), (columns[1], j..j + counts[1])];
        let mut summing = Summing::<K::Column, V::Column, R>::of_twos(parts)?;
        let [block_a, block_b, out] = blocks;
        for (side, block) in [&mut *block_a, &mut *block_b].into_iter().enumerate() {
            block.clear();
            block.resize(counts[side], 0);
            summing.encode(columns[side], self.keys[side], block);
        }
        out.resize(2 * MOST + 1, 0);
        let mut taken = weave_words(block_a, block_b, out);
        // One side is used up; what it gave last, the other may have next.
        let mut count = taken[0] + taken[1];
        for (side, block) in [&*block_a, &*block_b].into_iter().enumerate() {
            if let Some(word) =
                block.get(taken[side]).filter(|word| summing.code(**word) == summing.code(out[count - 1]))
            {
                out[count] = *word;
                count += 1;
                taken[side] += 1;
            }
        }
        let layers = &mut self.output.layers;
        let before = layers.keys.len();
        std::mem::swap(&mut summing.out.0, &mut layers.keys);
        std::mem::swap(&mut summing.out.1, &mut layers.vals);
        std::mem::swap(&mut summing.out.2, &mut layers.diffs);
        let summed = summing.push(&mut out[..count]);
        std::mem::swap(&mut summing.out.0, &mut layers.keys);
        std::mem::swap(&mut summing.out.1, &mut layers.vals);
        std::mem::swap(&mut summing.out.2, &mut layers.diffs);
        let more = layers.keys.len() - before;
        layers.times.push_many(time, more);
        layers.val_ends.push_lists(more, 1);
        layers.key_ends.push_lists(more, 1);
        if summed < count {
            // As far as it got.
            taken = first_of(block_a, block_b, summed);
        }
        (summed > 0).then_some(taken)
    }
}

/// How many of the first `count` words of a merge come from each side.
fn first_of(a: &[u64], b: &[u64], count: usize) -> [usize; 2] {
    let [mut i, mut j] = [0; 2];
    while i + j < count {
        let from_a = j == b.len() || a.get(i).is_some_and(|word| *word <= b[j]);
        (i, j) = (i + usize::from(from_a), j + usize::from(!from_a));
    }
    [i, j]
}
