//! What a spine's list is made of: batches, and merges that show their inputs. Used by `spine`.
#![forbid(unsafe_code)]

use super::super::merge::MergeBatch;

pub(super) enum Entry<B: MergeBatch> {
    /// With the weight that had been admitted when it was made.
    Single(B, u64),
    Merging(Box<Merging<B>>),
}

pub(super) struct Merging<B: MergeBatch> {
    pub inputs: Vec<B>,
    pub merger: B::Merger,
    pub class: usize,
    // When its inputs were made, for when it is undone.
    pub born: Vec<u64>,
}

impl<B: MergeBatch> Entry<B> {
    pub fn batches(&self) -> impl Iterator<Item = &B> {
        match self {
            Entry::Single(batch, _) => std::slice::from_ref(batch).iter(),
            Entry::Merging(merging) => merging.inputs.iter(),
        }
    }
    pub fn weight(&self) -> usize {
        self.batches().map(weight).sum()
    }
}

/// The size of a batch as far as merging goes; one more than its updates, as an empty batch is work too.
pub(super) fn weight<B: MergeBatch>(batch: &B) -> usize {
    batch.len() + 1
}

pub(super) fn single<B: MergeBatch>(entry: &Entry<B>) -> Option<(B, u64)> {
    match entry {
        Entry::Single(batch, born) => Some((batch.clone(), *born)),
        Entry::Merging(_) => None,
    }
}
pub(super) fn single_weight<B: MergeBatch>(entry: &Entry<B>) -> Option<usize> {
    match entry {
        Entry::Single(batch, _) => Some(weight(batch)),
        Entry::Merging(_) => None,
    }
}

/// Takes `class` among the greatest, which ascend, in place of the least of them.
pub(super) fn raise(greatest: &mut [usize], class: usize) {
    let above = greatest.partition_point(|other| *other < class);
    if above > 0 {
        greatest[..above].rotate_left(1);
        greatest[above - 1] = class;
    }
}
