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
        if self.less_equal(&element) {
            return false;
        }
        self.store = match std::mem::replace(&mut self.store, Store::None) {
            Store::None => Store::One([element]),
            Store::One([one]) if element.less_equal(&one) => Store::One([element]),
            Store::One([one]) => Store::Many(vec![one, element]),
            Store::Many(mut many) => {
                many.retain(|x| !element.less_equal(x));
                many.push(element);
                Store::Many(many)
            }
        };
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
    fn eq(&self, other: &Self) -> bool {
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
/// one arrives. An update costs a binary search; one that may change the frontier costs a pass over the times.
#[derive(Clone, Debug)]
pub struct MutableAntichain<T> {
    // Sorted by `Ord`, counts not zero.
    counts: Vec<(T, i64)>,
    frontier: Antichain<T>,
}

impl<T> Default for MutableAntichain<T> {
    fn default() -> Self {
        MutableAntichain { counts: Vec::new(), frontier: Antichain::new() }
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
        self.counts.is_empty()
    }
    /// The times and their counts, sorted by `Ord`.
    pub fn counts(&self) -> &[(T, i64)] {
        &self.counts
    }

    /// Adds `diff` to the count of `time`; tells `changed` of each element that leaves (-1) or enters (+1) the frontier.
    pub fn update(&mut self, time: T, diff: i64, mut changed: impl FnMut(&T, i64)) {
        if diff == 0 {
            return;
        }
        let (before, after) = match self.counts.binary_search_by(|(t, _)| t.cmp(&time)) {
            Ok(index) => {
                let before = self.counts[index].1;
                self.counts[index].1 += diff;
                let after = self.counts[index].1;
                if after == 0 {
                    self.counts.remove(index);
                }
                (before, after)
            }
            Err(index) => {
                self.counts.insert(index, (time.clone(), diff));
                (0, diff)
            }
        };
        match (before > 0, after > 0) {
            (false, true) if !self.frontier.less_equal(&time) => {}
            (true, false) if self.frontier.elements().contains(&time) => {}
            _ => return,
        }
        let mut frontier = Antichain::new();
        // Sorted by an order that extends the partial one, so nothing that is inserted is ever dropped again.
        for (t, count) in &self.counts {
            if *count > 0 {
                frontier.insert(t.clone());
            }
        }
        let old = std::mem::replace(&mut self.frontier, frontier);
        for t in old.elements() {
            if !self.frontier.elements().contains(t) {
                changed(t, -1);
            }
        }
        for t in self.frontier.elements() {
            if !old.elements().contains(t) {
                changed(t, 1);
            }
        }
    }
}
