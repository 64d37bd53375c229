//! Antichains: sets of mutually incomparable times, as frontiers; plain and counted.
#![forbid(unsafe_code)]

use super::{Lattice, PartialOrder};
use std::fmt;

/// Mutually incomparable elements: as a frontier, "times beyond some element of mine may still come".
///
/// The empty antichain is the frontier of what has ended. One element, the common case, is kept in place.
/// Inserting and comparing cost a pass over the elements.
#[derive(Clone)]
pub struct Antichain<T> {
    store: Store<T>,
}

#[derive(Clone)]
enum Store<T> {
    None,
    One([T; 1]),
    Many(Vec<T>),
}

impl<T> Default for Antichain<T> {
    fn default() -> Self {
        Antichain { store: Store::None }
    }
}

impl<T> Antichain<T> {
    /// The empty antichain.
    pub fn new() -> Self {
        Self::default()
    }
    /// The antichain of one element.
    pub fn from_elem(element: T) -> Self {
        Antichain { store: Store::One([element]) }
    }
    /// The elements, in no order.
    #[inline]
    pub fn elements(&self) -> &[T] {
        match &self.store {
            Store::None => &[],
            Store::One(one) => one,
            Store::Many(many) => many,
        }
    }
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements().len()
    }
    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        matches!(self.store, Store::None) || self.elements().is_empty()
    }
    /// Removes all elements.
    pub fn clear(&mut self) {
        self.store = Store::None;
    }
    /// The only element, if there is just one.
    pub fn as_single(&self) -> Option<&T> {
        match self.elements() {
            [one] => Some(one),
            _ => None,
        }
    }
}

impl<T: PartialOrder> Antichain<T> {
    /// Inserts `element` unless an element is at or before it; drops those beyond it. True iff inserted.
    pub fn insert(&mut self, element: T) -> bool {
        let inserted = !self.less_equal(&element);
        if inserted {
            self.push_minimal(element, |_| {});
        }
        inserted
    }
    /// Inserts `element`, which is beyond none here; tells `dropped` of each that is beyond it.
    #[inline]
    fn push_minimal(&mut self, element: T, mut dropped: impl FnMut(&T)) {
        match &mut self.store {
            Store::None => self.store = Store::One([element]),
            Store::One([one]) if element.less_equal(one) => dropped(&std::mem::replace(one, element)),
            Store::One(_) => {
                if let Store::One([one]) = std::mem::replace(&mut self.store, Store::None) {
                    self.store = Store::Many(vec![one, element]);
                }
            }
            Store::Many(many) => {
                many.retain(|x| {
                    let beyond = element.less_equal(x);
                    if beyond {
                        dropped(x);
                    }
                    !beyond
                });
                many.push(element);
            }
        }
    }
    /// Removes `element`. True iff it was there.
    #[inline]
    fn remove(&mut self, element: &T) -> bool {
        match &mut self.store {
            Store::One([one]) if one == element => self.store = Store::None,
            Store::Many(many) => {
                let Some(index) = many.iter().position(|x| x == element) else { return false };
                many.swap_remove(index);
            }
            _ => return false,
        }
        true
    }
    /// Whether `time` is beyond (at or after) some element.
    #[inline]
    pub fn less_equal(&self, time: &T) -> bool {
        self.elements().iter().any(|x| x.less_equal(time))
    }
    /// Whether `time` is strictly after some element.
    #[inline]
    pub fn less_than(&self, time: &T) -> bool {
        self.elements().iter().any(|x| x.less_than(time))
    }
    /// As frontiers: every element of `other` is beyond some element of `self`.
    ///
    /// The empty frontier is the greatest.
    #[inline]
    pub fn before_equal(&self, other: &Antichain<T>) -> bool {
        other.elements().iter().all(|t| self.less_equal(t))
    }
    /// As frontiers: at or before `other`, and not the same.
    pub fn before(&self, other: &Antichain<T>) -> bool {
        self.before_equal(other) && !other.before_equal(self)
    }
}

impl<T: PartialOrder + Clone> Antichain<T> {
    /// The meet of two frontiers: the minimal elements of both.
    pub fn meet_with(&mut self, other: &Antichain<T>) {
        for t in other.elements() {
            self.insert(t.clone());
        }
    }
}

impl<T: Lattice> Antichain<T> {
    /// The join of two frontiers: the times beyond both.
    pub fn join(&self, other: &Antichain<T>) -> Antichain<T> {
        let mut out = Antichain::new();
        for a in self.elements() {
            for b in other.elements() {
                out.insert(a.join(b));
            }
        }
        out
    }
}

impl<T: PartialOrder> PartialEq for Antichain<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        if let (Store::One([a]), Store::One([b])) = (&self.store, &other.store) {
            return a == b;
        }
        self.len() == other.len() && self.elements().iter().all(|x| other.elements().contains(x))
    }
}
impl<T: PartialOrder> Eq for Antichain<T> {}

impl<T: PartialOrder> FromIterator<T> for Antichain<T> {
    fn from_iter<I: IntoIterator<Item = T>>(iter: I) -> Self {
        let mut out = Antichain::new();
        for t in iter {
            out.insert(t);
        }
        out
    }
}

impl<T: PartialOrder, const N: usize> From<[T; N]> for Antichain<T> {
    fn from(elements: [T; N]) -> Self {
        elements.into_iter().collect()
    }
}

impl<T: fmt::Debug> fmt::Debug for Antichain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.elements()).finish()
    }
}

/// A multiset of times with signed counts, and the frontier of those whose count is positive.
///
/// A negative count (a consumption heard of before its production) holds no frontier, and cancels when the positive
/// one arrives. An update costs a binary search, and a move of the later times where it adds or removes one that is
/// not the first or last; a time that enters the frontier, a pass over its elements; one that leaves it, a search of
/// later times, which ends early where it can ([`PartialOrder::closes`]: at once in a total order).
#[derive(Clone, Debug)]
pub struct MutableAntichain<T> {
    // Sorted by `Ord` and, from `head` on, counts not zero. Those before `head` were removed at the front, so that a
    // queue of many times is taken off in linear time; they are fewer than half, or few.
    counts: Vec<(T, i64)>,
    head: usize,
    frontier: Antichain<T>,
}

/// So many removed times may stay at the front, whatever the rest.
const HEAD_AT_MOST: usize = 16;

impl<T> Default for MutableAntichain<T> {
    fn default() -> Self {
        MutableAntichain { counts: Vec::new(), head: 0, frontier: Antichain::new() }
    }
}

impl<T: PartialOrder + Ord + Clone> MutableAntichain<T> {
    /// No times.
    pub fn new() -> Self {
        Self::default()
    }
    /// The minimal times of positive count.
    #[inline]
    pub fn frontier(&self) -> &Antichain<T> {
        &self.frontier
    }
    /// Whether no time has a count.
    pub fn is_empty(&self) -> bool {
        self.counts().is_empty()
    }
    /// The times and their counts, sorted by `Ord`.
    pub fn counts(&self) -> &[(T, i64)] {
        &self.counts[self.head..]
    }

    /// Adds `diff` to the count of `time`; tells `changed` of each element that leaves (-1) or enters (+1) the frontier.
    #[inline]
    pub fn update(&mut self, time: T, diff: i64, mut changed: impl FnMut(&T, i64)) {
        if diff == 0 {
            return;
        }
        let (index, before, after) = self.add(&time, diff);
        match (before > 0, after > 0) {
            (false, true) if !self.frontier.less_equal(&time) => {
                self.frontier.push_minimal(time.clone(), |beyond| changed(beyond, -1));
                changed(&time, 1);
            }
            (true, false) if self.frontier.remove(&time) => {
                changed(&time, -1);
                // Only what is beyond `time`, hence after it, may come to be minimal; and what is minimal comes before
                // all it would drop.
                for (t, _) in self.counts[index..].iter().filter(|(t, count)| *count > 0 && time.less_equal(t)) {
                    if !self.frontier.less_equal(t) {
                        self.frontier.push_minimal(t.clone(), |_| unreachable!("sorted by an order that extends"));
                        changed(t, 1);
                    }
                    if t.closes(&time) {
                        break;
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds to a count. Returns its index (or that of the next if it is gone), and the count before and after.
    #[inline]
    fn add(&mut self, time: &T, diff: i64) -> (usize, i64, i64) {
        let live = &self.counts[self.head..];
        // Most often there is one time, or it is the first or last.
        let found = match live {
            [] => Err(0),
            [.., (last, _)] if last < time => Err(live.len()),
            [.., (last, _)] if last == time => Ok(live.len() - 1),
            _ => live.binary_search_by(|(t, _)| t.cmp(time)),
        };
        match found {
            Ok(offset) => {
                let mut index = self.head + offset;
                let before = self.counts[index].1;
                let after = before + diff;
                self.counts[index].1 = after;
                if after == 0 && offset > 0 {
                    self.counts.remove(index);
                } else if after == 0 {
                    self.head += 1;
                    index += 1;
                    if self.head == self.counts.len() {
                        self.counts.clear();
                        (self.head, index) = (0, 0);
                    } else if self.head > HEAD_AT_MOST.max(self.counts.len() / 2) {
                        self.counts.drain(..self.head);
                        (self.head, index) = (0, 0);
                    }
                }
                (index, before, after)
            }
            Err(0) if self.head > 0 => {
                self.head -= 1;
                self.counts[self.head] = (time.clone(), diff);
                (self.head, 0, diff)
            }
            Err(offset) => {
                self.counts.insert(self.head + offset, (time.clone(), diff));
                (self.head + offset, 0, diff)
            }
        }
    }
}
