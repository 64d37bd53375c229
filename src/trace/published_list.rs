//! The batches of a shard as they were when it was published: a copy of a spine's list that cost O(log n).
//!
//! ```text
//! entries: O(log n) batches, copied     queue: what cuts pin, shared with the spine's but for O(log n) roots
//! ```
//! Before: `queue`, `spine`. Next stop: `published`, which replaces it whole, and `snapshot`, which reads it.
#![forbid(unsafe_code)]

use super::queue::Queue;
use std::sync::Arc;

/// A list of batches that does not change, oldest first; a clone is the same list and copies nothing.
pub struct BatchList<B> {
    parts: Arc<Parts<B>>,
}

struct Parts<B> {
    entries: Vec<B>,
    queue: Queue<B>,
}

impl<B> Clone for BatchList<B> {
    fn clone(&self) -> Self {
        BatchList { parts: self.parts.clone() }
    }
}

impl<B: Clone> BatchList<B> {
    /// First `entries`, then `queue`.
    pub(super) fn new(entries: Vec<B>, queue: Queue<B>) -> Self {
        BatchList { parts: Arc::new(Parts { entries, queue }) }
    }
    /// The list of nothing.
    pub fn empty() -> Self {
        BatchList::new(Vec::new(), Queue::new())
    }
    /// The batches, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &B> {
        self.parts.entries.iter().chain(self.parts.queue.iter())
    }
    /// Number of batches.
    pub fn len(&self) -> usize {
        self.parts.entries.len() + self.parts.queue.len()
    }
    /// Whether there is no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Whether both are one list, not just equal ones.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.parts, &other.parts)
    }
}
