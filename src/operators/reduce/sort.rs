//! A merge sort that can stop anywhere: what a reduce sorts of one key may be large.
#![forbid(unsafe_code)]

use crate::dataflow::Fuel;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::vec::IntoIter;

/// Items sorted in one go.
const RUN: usize = 1024;

/// A sort under way: nothing, or the parts of one list.
pub(crate) struct Sorting<E> {
    rest: Option<IntoIter<E>>,
    runs: VecDeque<Vec<E>>,
    merging: Option<(IntoIter<E>, IntoIter<E>, Vec<E>)>,
}

impl<E> Default for Sorting<E> {
    fn default() -> Self {
        Sorting { rest: None, runs: VecDeque::new(), merging: None }
    }
}

impl<E> Sorting<E> {
    /// Sorts `list`; true iff it is sorted. Until then the items are held here, and the call is to be repeated.
    ///
    /// Cost: n log n; short lists in place. Equal items come in any order.
    pub(crate) fn sort(&mut self, list: &mut Vec<E>, order: impl Fn(&E, &E) -> Ordering, fuel: &mut Fuel) -> bool {
        if self.rest.is_none() {
            if list.len() <= RUN {
                if list.len() > 1 {
                    list.sort_unstable_by(&order);
                    fuel.spend(list.len());
                }
                return true;
            }
            self.rest = Some(std::mem::take(list).into_iter());
        }
        loop {
            if fuel.is_spent() {
                return false;
            }
            if let Some((a, b, out)) = &mut self.merging {
                if !merge(a, b, out, &order, fuel) {
                    return false;
                }
                self.runs.push_back(std::mem::take(out));
                self.merging = None;
            } else if let Some(rest) = self.rest.as_mut().filter(|rest| rest.len() > 0) {
                let mut run: Vec<E> = rest.by_ref().take(RUN).collect();
                run.sort_unstable_by(&order);
                fuel.spend(run.len());
                self.runs.push_back(run);
            } else {
                let first = self.runs.pop_front().expect("a list that is not empty has a run");
                match self.runs.pop_front() {
                    Some(second) => {
                        let out = Vec::with_capacity(first.len() + second.len());
                        self.merging = Some((first.into_iter(), second.into_iter(), out));
                    }
                    None => {
                        *list = first;
                        self.rest = None;
                        return true;
                    }
                }
            }
        }
    }
}

fn merge<E>(
    a: &mut IntoIter<E>,
    b: &mut IntoIter<E>,
    out: &mut Vec<E>,
    order: impl Fn(&E, &E) -> Ordering,
    fuel: &mut Fuel,
) -> bool {
    while !fuel.is_spent() {
        let from = match (a.as_slice().first(), b.as_slice().first()) {
            (Some(x), Some(y)) if order(x, y).is_le() => &mut *a,
            (_, Some(_)) => &mut *b,
            (Some(_), None) => &mut *a,
            (None, None) => return true,
        };
        out.extend(from.next());
        fuel.spend(1);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_in_slices() {
        for len in [0u64, 1, 2, 1024, 1025, 5000, 10_240] {
            let mut list: Vec<u64> = (0..len).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 50).collect();
            let mut expected = list.clone();
            expected.sort_unstable();
            let mut sorting = Sorting::default();
            let mut slices = 0;
            while !sorting.sort(&mut list, u64::cmp, &mut Fuel(100)) {
                slices += 1;
            }
            assert_eq!(list, expected);
            assert!(len <= 1024 || slices > len / 100, "{slices} slices for {len}");
        }
    }
}
