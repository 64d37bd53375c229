//! The worklist: changes to times at locations, handed out in the order of their keys (see `positions`).
//!
//! A binary heap of its own, for keys are compared through the graph. Changes to one (location, time) are added up
//! when they are taken out. Entries are one cache line each. Next stop: `tracker`.

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

#[derive(Default)]
pub(super) struct Worklist {
    heap: Vec<Entry>,
}

impl Worklist {
    #[inline]
    pub fn push(&mut self, graph: &Graph, entry: Entry) {
        let mut index = self.heap.len();
        self.heap.push(entry);
        while index > 0 {
            let parent = (index - 1) / 2;
            if compare(graph, &entry, &self.heap[parent]) != Ordering::Less {
                break;
            }
            self.heap[index] = self.heap[parent];
            index = parent;
        }
        self.heap[index] = entry;
    }

    /// The entry of the least key, with all others of that key added to it.
    #[inline]
    pub fn pop(&mut self, graph: &Graph) -> Option<Entry> {
        let mut entry = self.pop_one(graph)?;
        while let Some(next) = self.heap.first()
            && next.location == entry.location
            && next.time == entry.time
        {
            entry.diff += next.diff;
            self.pop_one(graph);
        }
        Some(entry)
    }

    #[inline]
    fn pop_one(&mut self, graph: &Graph) -> Option<Entry> {
        let last = self.heap.pop()?;
        let Some(&top) = self.heap.first() else { return Some(last) };
        let mut index = 0;
        loop {
            let mut child = 2 * index + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && compare(graph, &self.heap[child + 1], &self.heap[child]).is_lt() {
                child += 1;
            }
            if compare(graph, &self.heap[child], &last) != Ordering::Less {
                break;
            }
            self.heap[index] = self.heap[child];
            index = child;
        }
        self.heap[index] = last;
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
