//! A queue of which a copy costs O(log n) and shares all else: what a spine's cuts pin, as publishing copies it.
//!
//! ```text
//! front                                                      back
//!   ·      / \         /\  /\                / \       ·             perfect binary trees, a leaf an item
//!  rank 0  rank 1     rank 3 (the peak)     rank 1   rank 0
//! └─ ranks rise: each pop ─────┘└───── ranks fall: a binary ─┘
//!    splits the first tree               counter of pushes
//! ```
//! Invariants: ranks rise strictly, then fall strictly, so there are at most 2·(1 + log2 n) trees. A copy copies the list
//! of trees; what is below a root is shared and never written.
//!
//! Cost, n items: push O(log n), O(1) amortized; pop and a look at an index O(log n); dropping goes no deeper than the
//! trees are high. Before: `traits`. Next stop: `published_list`, and `spine`, whose queue this is.
#![forbid(unsafe_code)]

use std::ops::RangeFrom;
use std::sync::Arc;

/// A perfect binary tree of 2^rank items.
#[cfg_attr(not(test), derive(Clone))]
enum Tree<T> {
    Leaf(T),
    Pair(Arc<(Tree<T>, Tree<T>)>),
}

#[derive(Clone)]
struct Root<T> {
    rank: u32,
    tree: Tree<T>,
}

/// A persistent queue; oldest first. An item's clone should be cheap: some are cloned when the queue is.
#[derive(Clone)]
pub(super) struct Queue<T> {
    roots: Vec<Root<T>>,
    len: usize,
}

impl<T: Clone> Queue<T> {
    pub fn new() -> Self {
        Queue { roots: Vec::new(), len: 0 }
    }
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn push_back(&mut self, item: T) {
        #[cfg(test)]
        tests::note_copy();
        self.len += 1;
        let mut last = Root { rank: 0, tree: Tree::Leaf(item) };
        // The carry of a binary counter.
        while let Some(older) = self.roots.pop_if(|older| older.rank == last.rank) {
            last = Root { rank: last.rank + 1, tree: Tree::Pair(Arc::new((older.tree, last.tree))) };
        }
        self.roots.push(last);
    }
    pub fn pop_front(&mut self) -> Option<T> {
        let Root { mut rank, mut tree } = self.roots.first().cloned()?;
        self.len -= 1;
        // The second halves on the way down to the first leaf: of ranks that fall, and so rise when read backwards.
        let mut halves = Vec::with_capacity(rank as usize);
        let item = loop {
            match tree {
                Tree::Leaf(item) => break item,
                Tree::Pair(pair) => {
                    rank -= 1;
                    halves.push(Root { rank, tree: pair.1.clone() });
                    tree = pair.0.clone();
                }
            }
        };
        self.roots.splice(..1, halves.into_iter().rev());
        Some(item)
    }
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }
    pub fn get(&self, index: usize) -> Option<&T> {
        self.range(index..).next()
    }
    pub fn iter(&self) -> Iter<'_, T> {
        self.range(0..)
    }
    /// The items from an index on; none, if it is past the end. Cost: O(log n), and O(1) amortized for each item.
    pub fn range(&self, from: RangeFrom<usize>) -> Iter<'_, T> {
        let mut skip = from.start;
        let mut roots = self.roots.iter();
        let mut iter = Iter { below: Vec::new(), roots: [].iter() };
        while let Some(Root { rank, tree }) = roots.next() {
            if skip < 1 << rank {
                iter.roots = roots;
                iter.enter(tree, *rank, skip);
                break;
            }
            skip -= 1 << rank;
        }
        iter
    }
    /// The first index of which `is_before` does not hold, where it holds of the items before that one and of none after.
    /// Cost: O(log n) calls, each with a look at an index.
    pub fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.get(middle).expect("below the length")) { low = middle + 1 } else { high = middle }
        }
        low
    }
}

/// Items of a queue, oldest first.
pub(super) struct Iter<'a, T> {
    // Subtrees yet to be shown, the next one last.
    below: Vec<&'a Tree<T>>,
    roots: std::slice::Iter<'a, Root<T>>,
}

impl<'a, T> Iter<'a, T> {
    /// Goes down to the item `skip` of a tree, and notes what comes after it.
    fn enter(&mut self, mut tree: &'a Tree<T>, mut rank: u32, skip: usize) {
        while let (true, Tree::Pair(pair)) = (rank > 0, tree) {
            rank -= 1;
            if skip >> rank & 1 == 0 {
                self.below.push(&pair.1);
                tree = &pair.0;
            } else {
                tree = &pair.1;
            }
        }
        self.below.push(tree);
    }
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        let mut tree = match self.below.pop() {
            Some(tree) => tree,
            None => &self.roots.next()?.tree,
        };
        loop {
            match tree {
                Tree::Leaf(item) => return Some(item),
                Tree::Pair(pair) => {
                    self.below.push(&pair.1);
                    tree = &pair.0;
                }
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
