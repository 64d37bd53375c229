//! The worklist: changes to times at locations, handed out in the order of their keys (see `positions`).
//!
//! ```text
//! near  [ ··· 9 7 4 ] ◀─ next         a few, sorted, distinct, the least last, where most come and go
//! far   heap of the rest              each greater than all of near
//! ```
//! Keys are compared through the graph, so the heap is one of our own. Changes to one (location, time) are added up,
//! in `far` when they are taken out. Cost: logarithmic, and constant along a chain. Entries are one cache line each.
//! Next stop: `tracker`.

use super::Location;
use super::graph::Graph;
use crate::order::Coords;
use std::cmp::Ordering;

#[derive(Copy, Clone)]
pub(super) struct Entry {
    pub time: Coords,
    pub location: Location,
    pub diff: i32,
}

/// So many are kept sorted: to move them costs less than the heap would.
const NEAR_AT_MOST: usize = 16;

#[derive(Default)]
pub(super) struct Worklist {
    near: Vec<Entry>,
    far: Vec<Entry>,
}

impl Worklist {
    #[inline]
    pub fn push(&mut self, graph: &Graph, entry: Entry) {
        if self.near.is_empty() && self.far.is_empty() {
            return self.near.push(entry);
        }
        let is_full = self.near.len() == NEAR_AT_MOST;
        if is_full && compare(graph, &entry, &self.near[0]).is_gt() {
            return self.push_far(graph, entry);
        }
        // From the least on: what is new is mostly what comes next.
        for index in (0..self.near.len()).rev() {
            match compare(graph, &entry, &self.near[index]) {
                Ordering::Less => return self.insert(graph, index + 1, entry),
                Ordering::Equal => return self.near[index].diff += entry.diff,
                Ordering::Greater => {}
            }
        }
        if self.far.first().is_none_or(|far| compare(graph, &entry, far).is_lt()) {
            self.near.insert(0, entry);
        } else {
            self.push_far(graph, entry);
        }
    }

    #[inline]
    fn insert(&mut self, graph: &Graph, index: usize, entry: Entry) {
        self.near.insert(index, entry);
        if self.near.len() > NEAR_AT_MOST {
            let greatest = self.near.remove(0);
            self.push_far(graph, greatest);
        }
    }

    /// The entry of the least key, with all others of that key added to it.
    #[inline]
    pub fn pop(&mut self, graph: &Graph) -> Option<Entry> {
        if let Some(entry) = self.near.pop() {
            return Some(entry);
        }
        let mut entry = self.pop_far(graph)?;
        while let Some(next) = self.far.first()
            && next.location == entry.location
            && next.time == entry.time
        {
            entry.diff += next.diff;
            self.pop_far(graph);
        }
        Some(entry)
    }

    fn push_far(&mut self, graph: &Graph, entry: Entry) {
        let mut index = self.far.len();
        self.far.push(entry);
        while index > 0 {
            let parent = (index - 1) / 2;
            if compare(graph, &entry, &self.far[parent]) != Ordering::Less {
                break;
            }
            self.far[index] = self.far[parent];
            index = parent;
        }
        self.far[index] = entry;
    }

    fn pop_far(&mut self, graph: &Graph) -> Option<Entry> {
        let last = self.far.pop()?;
        let Some(&top) = self.far.first() else { return Some(last) };
        let mut index = 0;
        loop {
            let mut child = 2 * index + 1;
            if child >= self.far.len() {
                break;
            }
            if child + 1 < self.far.len() && compare(graph, &self.far[child + 1], &self.far[child]).is_lt() {
                child += 1;
            }
            if compare(graph, &self.far[child], &last) != Ordering::Less {
                break;
            }
            self.far[index] = self.far[child];
            index = child;
        }
        self.far[index] = last;
        Some(top)
    }
}

/// Compares keys.
#[inline]
pub(super) fn compare(graph: &Graph, a: &Entry, b: &Entry) -> Ordering {
    let (p, q) = (&graph.places[a.location as usize], &graph.places[b.location as usize]);
    if p.scope == q.scope {
        // Their outer positions are the same, so the coordinates come to stand side by side.
        return a.time.cmp(&b.time).then_with(|| p.position.cmp(&q.position));
    }
    compare_across(graph, a, b)
}

#[inline(never)]
fn compare_across(graph: &Graph, a: &Entry, b: &Entry) -> Ordering {
    let (p, q) = (&graph.places[a.location as usize], &graph.places[b.location as usize]);
    let (s, t) = (&graph.scopes[p.scope.0 as usize], &graph.scopes[q.scope.0 as usize]);
    let root = graph.scopes[0].len as usize;
    let order = a.time.as_slice()[..root].cmp(&b.time.as_slice()[..root]);
    if order.is_ne() {
        return order;
    }
    // Two units of one scope have one position only if they are the same: a nested scope around both.
    for level in 0.. {
        let position = |own: u32, depth: u8, path: &[u32]| if level == depth as usize { own } else { path[level] };
        let (x, y) = (position(p.position, s.depth, &s.path), position(q.position, t.depth, &t.path));
        if x != y {
            return x.cmp(&y);
        }
        if level == s.depth as usize {
            break;
        }
        let order = a.time.as_slice()[root + level].cmp(&b.time.as_slice()[root + level]);
        if order.is_ne() {
            return order;
        }
    }
    unreachable!("locations {} and {} of different scopes have one position", a.location, b.location)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::{GraphBuilder, ScopeId};
    use quickcheck::quickcheck;

    quickcheck! {
        /// Pushes and pops at random, against a search of all entries.
        fn as_a_plain_list(ops: Vec<(u8, u8, i8)>) -> bool {
            let mut graph = GraphBuilder::new("test", 1, &[u64::MAX]);
            let inner = graph.add_scope(ScopeId::ROOT, "inner", u64::MAX);
            for index in 0..5u8 {
                graph.add_input(if index % 2 == 0 { ScopeId::ROOT } else { inner }, format!("{index}"));
            }
            let graph = graph.build().expect("no edges");
            let (mut list, mut worklist) = (Vec::<Entry>::new(), Worklist::default());
            let pop = |list: &mut Vec<Entry>, worklist: &mut Worklist| {
                let least = list.iter().copied().min_by(|a, b| compare(&graph, a, b));
                let key = |entry: &Entry| (entry.location, entry.time);
                let expected = least.map(|least| {
                    let sum: i32 = list.iter().filter(|x| key(x) == key(&least)).map(|x| x.diff).sum();
                    list.retain(|x| key(x) != key(&least));
                    (key(&least), sum)
                });
                assert_eq!(worklist.pop(&graph).map(|entry| (key(&entry), entry.diff)), expected);
                expected.is_some()
            };
            for (location, time, diff) in ops {
                if location % 4 == 0 {
                    pop(&mut list, &mut worklist);
                    continue;
                }
                let location = Location::from(location % 5);
                let time = [u64::from(time % 16), u64::from(time / 16)];
                let time = Coords::new(&time[..graph.coordinates(location)]);
                let entry = Entry { time, location, diff: i32::from(diff) };
                list.push(entry);
                worklist.push(&graph, entry);
            }
            while pop(&mut list, &mut worklist) {}
            worklist.near.is_empty() && worklist.far.is_empty()
        }
    }
}
