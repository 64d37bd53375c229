//! Change batches: what one step of a node changes in the counts of pointstamps, applied whole or not at all.
//!
//! Consumed before produced, or half of a step without the other, would let a frontier pass a time that still
//! lives; so a step's updates stay together. Cost: amortized a sort of what is pushed. Next stop: `tracker`.

use super::Location;
use crate::order::Coords;

/// Below this many updates sorting is not worth a thought: they fit in a few cache lines.
const COMPACT_AT_LEAST: usize = 32;

/// Updates to counts of pointstamps: (location, time, diff), which add up.
///
/// It compacts itself when it has doubled since it last did, so it holds at most about twice what is distinct.
#[derive(Clone, Default, Debug)]
pub struct ChangeBatch {
    updates: Vec<(Location, Coords, i64)>,
    // The first `clean` are sorted, distinct and not zero.
    clean: usize,
}

impl ChangeBatch {
    /// No updates.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `diff` to the count of (`location`, `time`).
    #[inline]
    pub fn update(&mut self, location: Location, time: Coords, diff: i64) {
        if diff != 0 {
            self.updates.push((location, time, diff));
            if self.updates.len() >= COMPACT_AT_LEAST.max(2 * self.clean) {
                self.compact();
            }
        }
    }

    /// Sorts by location and time, adds up, drops what is zero.
    #[inline]
    pub fn compact(&mut self) {
        if self.clean != self.updates.len() {
            self.compact_rest();
        }
    }

    fn compact_rest(&mut self) {
        // Two, as a capability that moves on makes, are in order mostly.
        match self.updates.as_slice() {
            [_] => {
                self.clean = 1;
                return;
            }
            [a, b] if (a.0, &a.1) < (b.0, &b.1) => {
                self.clean = 2;
                return;
            }
            _ => self.updates.sort_unstable_by_key(|&(location, time, _)| (location, time)),
        }
        let mut kept = 0;
        let mut index = 0;
        while index < self.updates.len() {
            let (location, time, mut sum) = self.updates[index];
            index += 1;
            while index < self.updates.len() && (self.updates[index].0, self.updates[index].1) == (location, time) {
                sum += self.updates[index].2;
                index += 1;
            }
            if sum != 0 {
                self.updates[kept] = (location, time, sum);
                kept += 1;
            }
        }
        self.updates.truncate(kept);
        self.clean = kept;
    }

    /// Whether all counts add up to zero. Compacts.
    pub fn is_empty(&mut self) -> bool {
        self.compact();
        self.updates.is_empty()
    }

    /// Whether there is no update, not even some that cancel. Does not compact.
    pub(super) fn is_untouched(&self) -> bool {
        self.updates.is_empty()
    }

    /// The updates, compacted and sorted by (location, time).
    pub fn updates(&mut self) -> &[(Location, Coords, i64)] {
        self.compact();
        &self.updates
    }

    /// Calls `f` with each update, compacted and sorted; none stay, the memory does. For a few of them less work than a drain.
    #[inline]
    pub fn take_each(&mut self, mut f: impl FnMut(Location, Coords, i64)) {
        self.compact();
        self.updates.iter().for_each(|&(location, time, diff)| f(location, time, diff));
        self.updates.clear();
        self.clean = 0;
    }

    /// The updates, compacted and sorted; none stay, the memory does.
    pub fn drain(&mut self) -> impl Iterator<Item = (Location, Coords, i64)> + '_ {
        self.compact();
        self.clean = 0;
        self.updates.drain(..)
    }

    /// The batch itself, compacted; an empty one stays.
    pub fn take(&mut self) -> ChangeBatch {
        self.compact();
        std::mem::take(self)
    }

    /// Adds the updates of `other`, which is empty then.
    pub fn merge(&mut self, other: &mut ChangeBatch) {
        if self.updates.is_empty() {
            std::mem::swap(self, other);
            return;
        }
        other.clean = 0;
        for (location, time, diff) in other.updates.drain(..) {
            self.update(location, time, diff);
        }
    }
}

impl Extend<(Location, Coords, i64)> for ChangeBatch {
    fn extend<I: IntoIterator<Item = (Location, Coords, i64)>>(&mut self, updates: I) {
        for (location, time, diff) in updates {
            self.update(location, time, diff);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::collections::BTreeMap;

    quickcheck! {
        fn sums_as_a_map_does(updates: Vec<(u8, u8, i8)>, split: usize) -> bool {
            let (mut a, mut b) = (ChangeBatch::new(), ChangeBatch::new());
            let mut model = BTreeMap::new();
            for (index, &(location, time, diff)) in updates.iter().enumerate() {
                let (location, time, diff) = (Location::from(location % 3), Coords::new(&[u64::from(time % 3)]), i64::from(diff));
                let batch = if index < split % (updates.len() + 1) { &mut a } else { &mut b };
                batch.update(location, time, diff);
                *model.entry((location, time)).or_insert(0) += diff;
                assert!(batch.updates.len() <= COMPACT_AT_LEAST.max(2 * 9));
            }
            model.retain(|_, diff| *diff != 0);
            a.merge(&mut b);
            assert!(b.is_empty());
            let taken = a.take().drain().map(|(l, t, d)| ((l, t), d)).collect::<Vec<_>>();
            a.is_empty() && taken == model.into_iter().collect::<Vec<_>>()
        }
    }
}
