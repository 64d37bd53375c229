//! Products of two histories: what a join does for one pair of vals.
//!
//! Two histories of n and m updates make n·m products, but over a total order only about n + m distinct times. Long
//! histories are replayed in order of time: what has been replayed is folded to the meet of the times to come, so over
//! a total order it is one update, and the work is linear. (Differential dataflow, CIDR 2013, section 4.3, the bilinear
//! case.)
#![forbid(unsafe_code)]

use crate::order::{DiffOverflow, Multiply, Semigroup, Timestamp};
use crate::trace::consolidate_times;

/// Fewer products than this are made directly.
const DIRECT: usize = 64;

/// Buffers of one join, reused from pair to pair.
pub(crate) struct Product<T, R1, R2, R> {
    pub(crate) first: Vec<(T, R1)>,
    pub(crate) second: Vec<(T, R2)>,
    pub(crate) output: Vec<(T, R)>,
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
    /// Puts the products of `first` and `second` into `output`: each pair of updates once, at the join of their times.
    /// Equal times are summed where that is cheap.
    pub(crate) fn multiply(&mut self) {
        self.output.clear();
        if self.first.len().saturating_mul(self.second.len()) <= DIRECT {
            for (t1, r1) in &self.first {
                for (t2, r2) in &self.second {
                    self.output.push((t1.join(t2), product(*r1, *r2)));
                }
            }
        } else {
            self.replay();
        }
        if self.output.len() > 1 {
            consolidate_times(&mut self.output);
        }
    }

    fn replay(&mut self) {
        consolidate_times(&mut self.first);
        consolidate_times(&mut self.second);
        suffix_meets(&self.first, &mut self.meets1);
        suffix_meets(&self.second, &mut self.meets2);
        self.past1.clear();
        self.past2.clear();
        let (mut i, mut j) = (0, 0);
        loop {
            let take_first = match (self.first.get(i), self.second.get(j)) {
                (Some((t1, _)), Some((t2, _))) => t1 <= t2,
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (None, None) => return,
            };
            // All products still to be made are at or after the meet of what is left to replay.
            let meet = match (self.meets1.get(i), self.meets2.get(j)) {
                (Some(m1), Some(m2)) => m1.meet(m2),
                (Some(m), None) | (None, Some(m)) => *m,
                (None, None) => return,
            };
            if take_first {
                fold(&mut self.past2, &meet);
                let (t1, r1) = self.first[i];
                for (t2, r2) in &self.past2 {
                    self.output.push((t1.join(t2), product(r1, *r2)));
                }
                self.past1.push((t1, r1));
                i += 1;
                if j == self.second.len() && self.past2.is_empty() {
                    return;
                }
            } else {
                fold(&mut self.past1, &meet);
                let (t2, r2) = self.second[j];
                for (t1, r1) in &self.past1 {
                    self.output.push((t1.join(&t2), product(*r1, r2)));
                }
                self.past2.push((t2, r2));
                j += 1;
            }
            if self.output.len() > 4096 && self.output.len() > 4 * (self.first.len() + self.second.len()) {
                consolidate_times(&mut self.output);
            }
        }
    }
}

fn product<R1: Multiply<R2>, R2>(r1: R1, r2: R2) -> R1::Output {
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
    use crate::order::Pair;
    use quickcheck::quickcheck;

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
        let mut product = Product { first: history(&a), second: history(&b), ..Default::default() };
        product.output.clear();
        product.replay();
        consolidate_times(&mut product.output);
        product.output == naive
    }

    quickcheck! {
        fn replay_gives_each_product_once_total(a: Vec<Edit>, b: Vec<Edit>) -> bool {
            check(a, b, |x, y| u64::from(x) * 8 + u64::from(y))
        }
        fn replay_gives_each_product_once_partial(a: Vec<Edit>, b: Vec<Edit>) -> bool {
            check(a, b, |x, y| Pair::new(u64::from(x), u64::from(y)))
        }
    }

    #[test]
    fn long_histories_over_a_total_order_are_linear() {
        let history: Vec<(u64, i64)> = (0..100_000).map(|t| (t, if t % 2 == 0 { 1 } else { -1 })).collect();
        let mut product = Product { first: history.clone(), second: history, ..Default::default() };
        product.multiply();
        // Both are 1 at even times and 0 at odd ones; so is their product.
        assert_eq!(product.output.len(), 100_000);
    }
}
