//! The merge of two batches whose updates fit a word each: key, val, time and diff side by side, in order.
//!
//! ```text
//! keys   a     b       words   a x 1 +1           a x 1 +1           a x 1 +1   keys  a   b
//! vals   x y   x       of one  a y 1 +1   ─▶ with  a y 1 +1    ─▶    b x 1 +1   vals  x   x
//! times  1 1   1       side    b x 1 +1   other's  a y 1 -1  summed  b x 2 +1   times 1   1 2
//! diffs +1+1  +1                                  b x 1 +1    up               diffs +1  +1+1
//!                                                 b x 2 +1
//! ```
//! That is what most updates come to: numbers of some 20 to 30 bits, at few times, with small diffs. The words of some hundred
//! updates of each side, of whole keys, are woven and summed up, and each column is decoded in one go, so that no branch asks where
//! a value comes from or goes. Times are folded before. Rows that do not fit, keys of very many updates, and what lies in stretches
//! of one side are left to `woven` and the general form. Source of the words: `kpg_columnar`'s `frame`.
#![forbid(unsafe_code)]

use super::super::layers::Layers;
use super::super::rows::{FEW, has_pair};
use super::output::folded;
use super::pair::Pair;
use crate::order::{Semigroup, Timestamp};
use kpg_columnar::{Column, Columnar, Frame, Offsets, weave_words};
use std::cell::RefCell;
use std::ops::Range;

/// Updates of a side read at once: what is read and written stays in the first-level cache.
const MOST: usize = 512;
/// Words looked at together for equal ones: where there are any, each costs several times as much.
const BLOCK: usize = 64;

/// Words, kept for their memory.
#[derive(Default)]
struct Blocks {
    sides: [Vec<u64>; 2],
    /// Both sides in order.
    woven: Vec<u64>,
    /// One word for each val, and for each key; and where lists start, or how long they are.
    vals: Vec<u64>,
    keys: Vec<u64>,
    ends: Vec<u64>,
}

thread_local! {
    // Merges of a thread take turns.
    static BLOCKS: RefCell<Blocks> = RefCell::default();
}

/// Some keys of a side, their vals, and the updates of these.
struct Part {
    keys: Range<usize>,
    vals: Range<usize>,
    updates: Range<usize>,
}

/// How updates lie in words: the fields of the key, of the val, of the time unless all have one, and of the diff.
struct Layout {
    frame: Frame,
    /// The first fields of the val, of the time, and of the diff, which has one.
    vals: usize,
    times: usize,
    diffs: usize,
    /// So many updates of one key, val and time there may be.
    equal: usize,
    /// The code of a diff of zero; above all others, where no diff is zero or less.
    zero: u64,
    /// The diff of all updates, where they have one: unless any are equal, what comes out has one too.
    constant: Option<Frame>,
}

impl Layout {
    /// Sums up what is equal in sorted words, within them; how many are left.
    fn sum_up(&self, words: &mut [u64]) -> usize {
        let (bits, zero) = (self.frame.bits_from(self.diffs), self.zero);
        let mask = u64::MAX.checked_shr(u64::BITS - bits).unwrap_or(0);
        let (mut write, mut before, count) = (0, 0, words.len());
        for start in (0..count).step_by(BLOCK) {
            let end = count.min(start + BLOCK);
            // Of the last word the next block tells, if there is one.
            let (own, next) = (&words[start..end], words.get(end).copied());
            if before == 0 && !has_pair(own, next, bits) {
                words.copy_within(start..end, write);
                write += end - start;
                continue;
            }
            for at in start..end {
                let (word, next) = (words[at], words.get(at + 1).copied());
                // Codes are distances from the least, so that one of zero is too many.
                let sum = word.wrapping_add(before);
                let ends = next.is_none_or(|next| head(word ^ next, bits) != 0);
                words[write] = sum;
                write += usize::from(ends & (sum & mask != zero));
                before = if ends { 0 } else { (sum & mask).wrapping_sub(zero) };
            }
        }
        write
    }

    /// Appends the first `count` updates of what is woven, whole keys, to `out`. `all`: none was summed up.
    fn write<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup>(
        &self,
        blocks: &mut Blocks,
        count: usize,
        all: bool,
        common_time: Option<T>,
        out: &mut Layers<K, V, T, R>,
    ) {
        let Layout { frame, vals, times, diffs, .. } = self;
        let Blocks { woven, vals: firsts, keys, ends, .. } = blocks;
        let words = &mut woven[..count];
        let of_vals = match common_time {
            Some(time) => {
                out.times.push_many(time, count);
                out.val_ends.push_lists(count, 1);
                &*words
            }
            None => {
                out.times.decode(&mut frame.fields_from(*times), words);
                let (firsts, lengths) = contract(words, frame.bits_from(*times), firsts, ends);
                push_ends(&mut out.val_ends, lengths, count);
                firsts
            }
        };
        out.vals.decode(&mut frame.fields_from(*vals), of_vals);
        if const { size_of::<V>() == 0 } {
            out.keys.decode(&mut frame.fields(), of_vals);
            out.key_ends.push_lists(of_vals.len(), 1);
        } else {
            let (firsts, lengths) = contract(of_vals, frame.bits_from(*vals), keys, ends);
            out.keys.decode(&mut frame.fields(), firsts);
            push_ends(&mut out.key_ends, lengths, of_vals.len());
        }
        match self.constant.as_ref().filter(|_| all) {
            Some(same) => out.diffs.decode(&mut same.fields(), words),
            None if self.equal == 2 => out.diffs.decode(&mut frame.fields_from(*diffs), words),
            None => out.diffs.decode(&mut self.narrow(words).fields(), words),
        }
    }

    /// The range of the diffs that lie in words, from which the distance of its least is taken: that of all sums that there
    /// might be is often much wider.
    fn narrow(&self, words: &mut [u64]) -> Frame {
        let mask = u64::MAX.checked_shr(u64::BITS - self.frame.bits_from(self.diffs)).unwrap_or(0);
        let codes = words.iter().map(|word| word & mask);
        let (least, greatest) = codes.fold((mask, 0), |(least, greatest), code| (least.min(code), greatest.max(code)));
        words.iter_mut().for_each(|word| *word -= least);
        let (mut frame, (from, _)) = (Frame::default(), self.frame.range(self.diffs));
        frame.push(from + least.min(greatest), from + greatest);
        frame
    }
}

/// A word without its lowest `bits`.
#[inline]
fn head(word: u64, bits: u32) -> u64 {
    word.checked_shr(bits).unwrap_or(0)
}

/// How many of some words in order differ from the one before but for their lowest `bits`; the first does.
fn heads(words: &[u64], bits: u32) -> usize {
    let Some((_, rest)) = words.split_first() else { return 0 };
    if bits >= u64::BITS {
        return 1;
    }
    1 + words.iter().zip(rest).map(|(a, b)| usize::from((a ^ b) >> bits != 0)).sum::<usize>()
}

/// Makes of a word for each of `lists` one for each of its items, none of which is without.
fn expand(ends: &Offsets, lists: Range<usize>, words: &mut Vec<u64>, blocks: (&mut Vec<u64>, &mut Vec<u64>)) {
    let (items, starts) = blocks;
    starts.resize(lists.len() + 1, 0);
    ends.starts(lists.start, starts);
    let first = starts[0];
    items.clear();
    items.resize((starts[lists.len()] - first) as usize, 0);
    // By how much a word differs from the one before is put where its list starts, and the sum so far is the word.
    let mut before = 0;
    for (word, start) in words.iter().zip(&*starts) {
        items[(start - first) as usize] = word.wrapping_sub(before);
        before = *word;
    }
    let mut sum = 0u64;
    for item in &mut *items {
        sum = sum.wrapping_add(*item);
        *item = sum;
    }
    std::mem::swap(words, items);
}

/// Makes of words in order the first of each list, and how long each is; a list's words are equal but for the lowest `bits`.
fn contract<'f, 'l>(
    words: &[u64],
    bits: u32,
    firsts: &'f mut Vec<u64>,
    lengths: &'l mut Vec<u64>,
) -> (&'f [u64], &'l mut [u64]) {
    firsts.resize(firsts.len().max(words.len()), 0);
    lengths.resize(lengths.len().max(words.len()), 0);
    let (mut lists, mut before) = (0, 0);
    for (at, word) in words.iter().enumerate() {
        // Each is written, and the next one over it unless it is a first.
        (firsts[lists], lengths[lists]) = (*word, at as u64);
        lists += usize::from((at == 0) | (head(word ^ before, bits) != 0));
        before = *word;
    }
    let (firsts, lengths) = (&firsts[..lists], &mut lengths[..lists]);
    for list in 1..lists {
        lengths[list - 1] = lengths[list] - lengths[list - 1];
    }
    if let Some(last) = lengths.last_mut() {
        *last = words.len() as u64 - *last;
    }
    (firsts, lengths)
}

/// Ends lists of these lengths, of so many items in all.
fn push_ends(ends: &mut Offsets, lengths: &mut [u64], items: usize) {
    if lengths.len() == items {
        ends.push_lists(items, 1);
    } else {
        ends.push_lengths(lengths);
    }
}

impl<K: Columnar, V: Columnar, T: Timestamp, R: Semigroup> Pair<K, V, T, R> {
    /// Merges keys as words until little fuel is left, or few updates of an input; or a stretch comes next, or what is no word.
    pub(super) fn work_words(&mut self, fuel: &mut isize) {
        BLOCKS.with_borrow_mut(|blocks| {
            // A side that gives little need not be read far.
            let mut most = [MOST; 2];
            while *fuel > FEW as isize && self.has_many(0) && self.has_many(1) && !self.in_stretch() {
                let Some(taken) = self.weave_words(blocks, most, *fuel as usize / 2) else { break };
                *fuel -= (taken[0] + taken[1]) as isize;
                most = taken.map(|taken| (2 * taken + 16).min(MOST));
            }
        });
    }

    /// Whether there are more than a few updates, in keys that have not very many.
    fn has_many(&self, side: usize) -> bool {
        let (layers, low) = (&self.inputs[side].layers, self.keys[side]);
        low < layers.keys.len() && layers.updates(layers.vals(low..layers.keys.len())).len() >= FEW
    }

    /// As many of the next keys as have `most` updates, or one; none, if that has more than `limit`.
    fn part(&self, side: usize, most: usize, limit: usize) -> Option<Part> {
        let (input, low) = (&self.inputs[side], self.keys[side]);
        let (layers, most) = (&input.layers, most.min(limit));
        let high = input.fitting_keys(low, layers.keys.len().min(low + most), most);
        let vals = layers.vals(low..high);
        let updates = layers.updates(vals.clone());
        (updates.len() <= limit).then_some(Part { keys: low..high, vals, updates })
    }

    /// The times of a part as they fold, if any may change.
    fn fold(&self, side: usize, part: &Part) -> Option<T::Column> {
        let Self { inputs, output, .. } = self;
        let floor = inputs[side].floor.filter(|_| output.common_time.is_none())?;
        let (times, mut out) = (&inputs[side].layers.times, T::Column::default());
        let values: Vec<T> = part.updates.clone().map(|at| folded(times.get(at), Some(floor))).collect();
        out.push_values(&values);
        Some(out)
    }

    /// How the updates of both parts lie in words; none if they do not fit, or their sums may not.
    fn layout(&self, parts: &[Part; 2], times: [(&T::Column, usize); 2]) -> Option<Layout> {
        let zero = R::ZERO_KEY?;
        let (mut frame, mut at) = (Frame::default(), [0; 3]);
        for side in 0..2 {
            let (layers, part, (times, from)) = (&self.inputs[side].layers, &parts[side], times[side]);
            let mut one = Frame::default();
            let mut fits = one.add(&layers.keys, part.keys.start, part.keys.end);
            at[0] = one.len();
            fits = fits && one.add(&layers.vals, part.vals.start, part.vals.end);
            at[1] = one.len();
            fits = fits && (self.output.common_time.is_some() || one.add(times, from, from + part.updates.len()));
            at[2] = one.len();
            if !(fits && one.add(&layers.diffs, part.updates.start, part.updates.end)) || one.len() != at[2] + 1 {
                return None;
            }
            frame.widen(&one);
        }
        let [vals, times, diffs] = at;
        let (least, greatest) = frame.range(diffs);
        // What so many of these come to, about zero, which is in the middle of all keys.
        let sum = |key: u64, many: usize| {
            let sum = i128::from(zero) + many as i128 * (i128::from(key) - i128::from(zero));
            u64::try_from(sum).ok().filter(|sum| sum / 2 < zero)
        };
        // Equal updates of one val are kept apart where their sum does not fit. There are none if that of all updates does.
        let all = (0..2).map(|side| if self.single[side][1] { 1 } else { parts[side].updates.len() }).sum();
        sum(least, all).and(sum(greatest, all))?;
        let equal = self.most_equal(parts);
        let (sum_least, sum_greatest) = (sum(least, equal)?.min(least), sum(greatest, equal)?.max(greatest));
        frame.set_range(diffs, (sum_least, sum_greatest));
        let mut same = Frame::default();
        let constant = (least == greatest && same.push(least, least)).then_some(same);
        let zero = zero.wrapping_sub(sum_least);
        frame.place().then_some(Layout { frame, vals, times, diffs, equal, zero, constant })
    }

    /// So many updates of one key, val and time there may be.
    fn most_equal(&self, parts: &[Part; 2]) -> usize {
        let of = |side: usize| {
            let folds = self.output.common_time.is_some() || self.inputs[side].floor.is_some();
            if folds && !self.single[side][1] { parts[side].updates.len() } else { 1 }
        };
        of(0) + of(1)
    }

    /// Merges some keys, of about so many updates of each side; how many of each were taken, none if there is no way.
    fn weave_words(&mut self, blocks: &mut Blocks, most: [usize; 2], limit: usize) -> Option<[usize; 2]> {
        let limit = limit.min(MOST);
        let parts = [self.part(0, most[0], limit)?, self.part(1, most[1], limit)?];
        let folded = [0, 1].map(|side| self.fold(side, &parts[side]));
        let times = [0, 1].map(|side| match &folded[side] {
            Some(times) => (times, 0),
            None => (&self.inputs[side].layers.times, parts[side].updates.start),
        });
        let layout = self.layout(&parts, times)?;
        let Blocks { sides, woven, vals, ends, .. } = blocks;
        for (side, words) in sides.iter_mut().enumerate() {
            let (layers, part, [one_val, one_update]) = (&self.inputs[side].layers, &parts[side], self.single[side]);
            let mut fields = layout.frame.fields();
            words.clear();
            words.resize(part.keys.len(), 0);
            layers.keys.encode(part.keys.start, &mut fields, words);
            if !one_val {
                expand(&layers.key_ends, part.keys.clone(), words, (vals, ends));
            }
            layers.vals.encode(part.vals.start, &mut fields, words);
            if !one_update {
                expand(&layers.val_ends, part.vals.clone(), words, (vals, ends));
            }
            if self.output.common_time.is_none() {
                times[side].0.encode(times[side].1, &mut fields, words);
            }
            layers.diffs.encode(part.updates.start, &mut fields, words);
            if !words.is_sorted() {
                // Times that are not comparable may change their order as they fold.
                words.sort_unstable();
            }
        }
        let [a, b] = &*sides;
        woven.resize(a.len() + b.len(), 0);
        let mut taken = weave_words(a, b, woven);
        // One side is used up; of its last key, the other side may have more.
        let mut count = taken[0] + taken[1];
        let bits = layout.frame.bits_from(layout.vals);
        let key = head(woven[count - 1], bits);
        for side in 0..2 {
            let more = sides[side][taken[side]..].iter().take_while(|word| head(**word, bits) == key).count();
            woven[count..count + more].copy_from_slice(&sides[side][taken[side]..][..more]);
            (taken[side], count) = (taken[side] + more, count + more);
            self.keys[side] += heads(&sides[side][..taken[side]], bits);
        }
        let left = layout.sum_up(&mut woven[..count]);
        layout.write(blocks, left, left == count, self.output.common_time, &mut self.output.layers);
        Some(taken)
    }
}
