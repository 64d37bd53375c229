//! Products of two histories: what a join does for one pair of vals.
//!
//! Two histories of n and m updates make n·m products, but over a total order only about n + m distinct times. Long
//! histories are replayed in order of time: what has been replayed is folded to the meet of the times to come, so over
//! a total order it is one update, and the work is linear. (Differential dataflow, CIDR 2013, section 4.3, the bilinear
//! case.)
//!
//! Made in parts, so that the join can yield between them: what is gathered stays linear in the histories, and is shown
//! when summing no longer shortens it. Only the start, a pass over both histories that sorts them, is one piece.
#![forbid(unsafe_code)]

use crate::order::{DiffOverflow, Multiply, Semigroup, Timestamp};
use crate::trace::consolidate_times;
use std::ops::Range;

/// Fewer products than this are made directly.
const DIRECT: usize = 64;

/// Products that are gathered before they are summed and shown, at least; or four for each update of the histories.
const GATHER: usize = 4096;

/// The products of two histories, made in parts. Its buffers are reused from pair to pair.
///
/// Fill `first` and `second`, `start`; then `advance`, and when `ready` shows some, take them, until it `is_done`.
pub(crate) struct Product<T, R1, R2, R> {
    pub(crate) first: Vec<(T, R1)>,
    pub(crate) second: Vec<(T, R2)>,
    output: Vec<(T, R)>,
    // How many of `output` have been taken; all are shown once `shown`.
    taken: usize,
    shown: bool,
    // The next of each to replay, and how much of the other side's past the next one has met.
    next1: usize,
    next2: usize,
    met: usize,
    meets1: Vec<T>,
    meets2: Vec<T>,
    past1: Vec<(T, R1)>,
    past2: Vec<(T, R2)>,
}

impl<T, R1, R2, R> Default for Product<T, R1, R2, R> {
    fn default() -> Self {
        Product {
            first: vec![],
            second: vec![],
            output: vec![],
            taken: 0,
            shown: false,
            next1: 0,
            next2: 0,
            met: 0,
            meets1: vec![],
            meets2: vec![],
            past1: vec![],
            past2: vec![],
        }
    }
}

impl<T: Timestamp, R1, R2, R> Product<T, R1, R2, R>
where
    R1: Semigroup + Multiply<R2, Output = R>,
    R2: Semigroup,
    R: Semigroup,
{
    /// Each pair of an update of `first` and one of `second` once, at the join of their times; equal times are summed
    /// where that is cheap. Returns what it cost, in updates.
    pub(crate) fn start(&mut self) -> usize {
        let cost = self.first.len() + self.second.len();
        self.clear();
        if self.first.len().saturating_mul(self.second.len()) <= DIRECT {
            for (t1, r1) in &self.first {
                for (t2, r2) in &self.second {
                    self.output.push((t1.join(t2), product(*r1, *r2)));
                }
            }
            if self.output.len() > 1 {
                consolidate_times(&mut self.output);
            }
            (self.next1, self.next2, self.shown) = (self.first.len(), self.second.len(), true);
        } else {
            self.start_replay();
        }
        cost
    }

    /// Shows one product that was made elsewhere, and is done.
    pub(crate) fn start_with(&mut self, time: T, diff: R) {
        self.first.clear();
        self.second.clear();
        self.clear();
        self.output.push((time, diff));
        self.shown = true;
    }

    fn clear(&mut self) {
        self.output.clear();
        self.past1.clear();
        self.past2.clear();
        (self.taken, self.shown, self.next1, self.next2, self.met) = (0, false, 0, 0, 0);
    }

    /// Products to be taken, at most `most`.
    pub(crate) fn ready(&self, most: usize) -> &[(T, R)] {
        let end = if self.shown { self.output.len().min(self.taken + most) } else { self.taken };
        &self.output[self.taken..end]
    }
    /// The next `count` were taken.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.output.len() {
            self.output.clear();
            (self.taken, self.shown) = (0, false);
        }
    }
    /// Whether all products have been made and taken.
    pub(crate) fn is_done(&self) -> bool {
        self.is_replayed() && self.output.is_empty()
    }
    fn is_replayed(&self) -> bool {
        self.next1 == self.first.len() && self.next2 == self.second.len()
    }

    fn start_replay(&mut self) {
        consolidate_times(&mut self.first);
        consolidate_times(&mut self.second);
        suffix_meets(&self.first, &mut self.meets1);
        suffix_meets(&self.second, &mut self.meets2);
    }

    /// Replays on, for about `budget` products, unless some are ready. Returns what it cost, in updates.
    pub(crate) fn advance(&mut self, budget: usize) -> usize {
        let mut cost = 0;
        while !self.shown && !self.is_replayed() && cost < budget {
            cost += self.replay_one(budget - cost);
            let gather = GATHER.max(4 * (self.first.len() + self.second.len()));
            if self.output.len() >= gather {
                consolidate_times(&mut self.output);
                // Where summing halves them, there is room for more to be summed with.
                self.shown = self.output.len() > gather / 2;
            }
        }
        if self.is_replayed() && !self.shown {
            consolidate_times(&mut self.output);
            self.shown = !self.output.is_empty();
        }
        cost
    }

    /// Lets the next update meet the other side's past, at most `budget` of it, and past that becomes part of its own.
    fn replay_one(&mut self, budget: usize) -> usize {
        let (i, j) = (self.next1, self.next2);
        let take_first = match (self.first.get(i), self.second.get(j)) {
            (Some((t1, _)), Some((t2, _))) => t1 <= t2,
            (one, _) => one.is_some(),
        };
        // All products still to be made are at or after the meet of what is left to replay.
        let meet = match (self.meets1.get(i), self.meets2.get(j)) {
            (Some(m1), Some(m2)) => m1.meet(m2),
            (Some(m), None) | (None, Some(m)) => *m,
            (None, None) => unreachable!("asked for while something is left"),
        };
        let part = self.met..self.met.saturating_add(budget);
        let (end, all) = if take_first {
            let (t1, r1) = self.first[i];
            meet_past(&mut self.past2, part, &meet, |(t2, r2)| self.output.push((t1.join(t2), product(r1, *r2))))
        } else {
            let (t2, r2) = self.second[j];
            meet_past(&mut self.past1, part, &meet, |(t1, r1)| self.output.push((t1.join(&t2), product(*r1, r2))))
        };
        let cost = 1 + end - std::mem::replace(&mut self.met, end);
        if all {
            self.met = 0;
            if take_first {
                self.past1.push(self.first[i]);
                self.next1 += 1;
            } else {
                self.past2.push(self.second[j]);
                self.next2 += 1;
            }
        }
        cost
    }
}

/// An update meets the part of a past that is left to it: how far it came, and whether that is all.
fn meet_past<T: Timestamp, R: Semigroup>(
    past: &mut Vec<(T, R)>,
    part: Range<usize>,
    meet: &T,
    pair: impl FnMut(&(T, R)),
) -> (usize, bool) {
    if part.start == 0 {
        fold(past, meet);
    }
    let end = part.end.min(past.len());
    past[part.start..end].iter().for_each(pair);
    (end, end == past.len())
}

/// The product of two diffs; one that does not fit ends the query.
#[inline]
pub(crate) fn product<R1: Multiply<R2>, R2>(r1: R1, r2: R2) -> R1::Output {
    r1.multiply(r2).unwrap_or_else(|| DiffOverflow::raise())
}

fn suffix_meets<T: Timestamp, R>(history: &[(T, R)], meets: &mut Vec<T>) {
    meets.clear();
    meets.extend(history.iter().map(|(t, _)| *t));
    for index in (1..meets.len()).rev() {
        meets[index - 1] = meets[index - 1].meet(&meets[index]);
    }
}

fn fold<T: Timestamp, R: Semigroup>(past: &mut Vec<(T, R)>, meet: &T) {
    let mut changed = false;
    for (t, _) in past.iter_mut() {
        let folded = t.join(meet);
        changed |= folded != *t;
        *t = folded;
    }
    if changed && past.len() > 1 {
        consolidate_times(past);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::{Lattice, Pair, PartialOrder};
    use quickcheck::quickcheck;
    use std::cell::Cell;

    type Edit = (u8, u8, i8);

    fn check<T: Timestamp>(a: Vec<Edit>, b: Vec<Edit>, time: impl Fn(u8, u8) -> T) -> bool {
        let history =
            |edits: &[Edit]| edits.iter().map(|(x, y, r)| (time(x % 8, y % 8), i64::from(*r))).collect::<Vec<_>>();
        let mut naive = Vec::new();
        for (t1, r1) in history(&a) {
            for (t2, r2) in history(&b) {
                naive.push((t1.join(&t2), r1 * r2));
            }
        }
        consolidate_times(&mut naive);
        // Replayed, however short, a few products at a time; or as is best.
        (0..5).all(|budget| {
            let mut product = Product { first: history(&a), second: history(&b), ..Default::default() };
            if budget == 0 {
                product.start();
            } else {
                product.start_replay();
            }
            let mut all = drain(&mut product, budget.max(1));
            consolidate_times(&mut all);
            all == naive
        })
    }

    fn drain<T: Timestamp>(product: &mut Product<T, i64, i64, i64>, budget: usize) -> Vec<(T, i64)> {
        let mut all = Vec::new();
        while !product.is_done() {
            product.advance(budget);
            let ready = product.ready(3);
            assert!(ready.len() <= 3);
            all.extend_from_slice(ready);
            product.take(ready.len());
        }
        all
    }

    quickcheck! {
        fn replay_gives_each_product_once_total(a: Vec<Edit>, b: Vec<Edit>) -> bool {
            check(a, b, |x, y| u64::from(x) * 8 + u64::from(y))
        }
        fn replay_gives_each_product_once_partial(a: Vec<Edit>, b: Vec<Edit>) -> bool {
            check(a, b, |x, y| Pair::new(u64::from(x), u64::from(y)))
        }
    }

    thread_local! {
        static MULTIPLIED: Cell<usize> = const { Cell::new(0) };
        static JOINED: Cell<usize> = const { Cell::new(0) };
    }

    /// A diff that counts the products it is in.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
    struct Counted {
        diff: i64,
    }
    kpg_columnar::plain_struct_column! {
        struct CountedColumn for Counted { diff: i64 }
    }
    impl Semigroup for Counted {
        type Sum = i128;
        fn add_to(self, sum: &mut i128) {
            self.diff.add_to(sum);
        }
        fn from_sum(sum: i128) -> Option<Self> {
            i64::from_sum(sum).map(|diff| Counted { diff })
        }
        fn sum_is_zero(sum: &i128) -> bool {
            *sum == 0
        }
    }
    impl Multiply<Counted> for Counted {
        type Output = i64;
        fn multiply(self, other: Counted) -> Option<i64> {
            MULTIPLIED.set(MULTIPLIED.get() + 1);
            self.diff.multiply(other.diff)
        }
    }

    /// A time that counts the joins it is in.
    #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
    struct Tick {
        a: u64,
        b: u64,
    }
    kpg_columnar::plain_struct_column! {
        struct TickColumn for Tick { a: u64, b: u64 }
    }
    impl PartialOrder for Tick {
        fn less_equal(&self, other: &Self) -> bool {
            self.a <= other.a && self.b <= other.b
        }
    }
    impl Lattice for Tick {
        fn join(&self, other: &Self) -> Self {
            JOINED.set(JOINED.get() + 1);
            Tick { a: self.a.max(other.a), b: self.b.max(other.b) }
        }
        fn meet(&self, other: &Self) -> Self {
            Tick { a: self.a.min(other.a), b: self.b.min(other.b) }
        }
    }
    impl Timestamp for Tick {
        const COORDINATES: usize = 2;
        const TOTAL: bool = false;
        fn write(&self, out: &mut [u64]) {
            out[..2].copy_from_slice(&[self.a, self.b]);
        }
        fn read(coords: &[u64]) -> Self {
            Tick { a: coords[0], b: coords[1] }
        }
        fn write_maxima(out: &mut [u64]) {
            out[..2].fill(u64::MAX);
        }
    }

    /// What a replay in parts of `budget` gives, and what it did: parts, cost, products, joins of times.
    fn replay(first: &[Tick], second: &[Tick], budget: usize) -> (Vec<(Tick, i64)>, [usize; 4]) {
        let history = |times: &[Tick]| times.iter().map(|time| (*time, Counted { diff: 1 })).collect();
        let mut product = Product { first: history(first), second: history(second), ..Product::default() };
        product.start();
        MULTIPLIED.set(0);
        JOINED.set(0);
        let (mut all, mut parts, mut total) = (Vec::new(), 0, 0);
        while !product.is_done() {
            let before = MULTIPLIED.get();
            let cost = product.advance(budget);
            let made = MULTIPLIED.get() - before;
            assert!(cost <= budget.saturating_add(1), "a part of {budget} cost {cost}");
            assert!(made <= cost, "a part that cost {cost} made {made} products");
            let ready = product.ready(usize::MAX);
            all.extend_from_slice(ready);
            product.take(ready.len());
            (parts, total) = (parts + 1, total + cost);
        }
        let did = [parts, total, MULTIPLIED.get(), JOINED.get()];
        consolidate_times(&mut all);
        (all, did)
    }

    /// In parts of whatever size the same is done as in one go, and nothing twice: no product, and no pass over the past.
    /// One update may meet a past of thousands, where times are incomparable.
    #[test]
    fn a_resumed_replay_neither_repeats_nor_skips() {
        let chain: Vec<_> = (0..800).map(|i| Tick { a: 0, b: i }).collect();
        let antichain: Vec<_> = (0..100).map(|i| Tick { a: i, b: 100 - i }).collect();
        let one = [Tick { a: 100, b: 0 }];
        for (first, second) in [(&chain, &chain), (&antichain, &chain), (&chain, &antichain), (&antichain, &antichain)]
            .map(|(first, second)| (&first[..], &second[..]))
            .into_iter()
            .chain([(&antichain[..], &one[..]), (&one[..], &chain[..])])
        {
            let (whole, [_, cost, products, joins]) = replay(first, second, usize::MAX);
            for budget in [1, 7, 100, 1000] {
                let (got, [parts, parts_cost, parts_products, parts_joins]) = replay(first, second, budget);
                assert!(got == whole, "in parts of {budget} it gives something else");
                assert!(parts >= cost / (budget + 1), "{parts} parts of {budget} for {cost}");
                assert!(parts_cost <= cost + parts, "{parts} parts of {budget} cost {parts_cost}, one {cost}");
                assert_eq!(parts_products, products, "products, in parts of {budget}");
                assert_eq!(parts_joins, joins, "joins of times, in parts of {budget}");
            }
        }
    }

    #[test]
    fn long_histories_over_a_total_order_are_linear() {
        let history: Vec<(u64, i64)> = (0..100_000).map(|t| (t, if t % 2 == 0 { 1 } else { -1 })).collect();
        let mut product = Product { first: history.clone(), second: history, ..Default::default() };
        product.start();
        let (mut cost, mut made) = (0, 0);
        while !product.is_done() {
            let step = product.advance(1000);
            assert!(step <= 1001, "a part costs what it may");
            cost += step;
            made += product.ready(usize::MAX).len();
            product.take(product.ready(usize::MAX).len());
        }
        // Both are 1 at even times and 0 at odd ones; so is their product.
        assert_eq!(made, 100_000);
        assert!(cost <= 600_000, "{cost}");
    }
}
