//! What a spine's list is made of: batches, and merges that show their inputs. Used by `spine`.
#![forbid(unsafe_code)]

use super::super::merge::{Merge, MergeBatch};
use super::super::policy::MergePolicy;

pub(super) enum Entry<B: MergeBatch> {
    Single(Single<B>),
    Merging(Box<Merging<B>>),
}

pub(super) struct Single<B> {
    pub batch: B,
    /// The weight that had been admitted when it was made.
    pub born: u64,
    /// Its own, which is asked for at each insertion, and its class.
    pub weight: usize,
    pub class: usize,
}

pub(super) struct Merging<B: MergeBatch> {
    pub inputs: Vec<B>,
    pub merger: B::Merger,
    pub class: usize,
    // When its inputs were made, for when it is undone.
    pub born: Vec<u64>,
    pub weight: usize,
    /// Not due: an idle worker began it.
    pub early: bool,
}

impl<B: MergeBatch> Merging<B> {
    /// What is to be done of it, if it is due.
    pub fn debt(&self) -> usize {
        if self.early { 0 } else { self.merger.remaining() }
    }
}

impl<B: MergeBatch> Entry<B> {
    pub fn single(batch: B, born: u64, policy: &MergePolicy) -> Self {
        let weight = weight(&batch);
        Entry::Single(Single { batch, born, weight, class: policy.class(weight) })
    }
    pub fn batches(&self) -> impl Iterator<Item = &B> {
        match self {
            Entry::Single(single) => std::slice::from_ref(&single.batch).iter(),
            Entry::Merging(merging) => merging.inputs.iter(),
        }
    }
    pub fn weight(&self) -> usize {
        match self {
            Entry::Single(single) => single.weight,
            Entry::Merging(merging) => merging.weight,
        }
    }
    /// The class of its weight.
    pub fn class(&self) -> usize {
        match self {
            Entry::Single(single) => single.class,
            Entry::Merging(merging) => merging.class,
        }
    }
}

/// The size of a batch as far as merging goes; one more than its updates, as an empty batch is work too.
pub(super) fn weight<B: MergeBatch>(batch: &B) -> usize {
    batch.len() + 1
}

pub(super) fn single<B: MergeBatch>(entry: &Entry<B>) -> Option<(B, u64)> {
    match entry {
        Entry::Single(single) => Some((single.batch.clone(), single.born)),
        Entry::Merging(_) => None,
    }
}
pub(super) fn single_weight<B: MergeBatch>(entry: &Entry<B>) -> Option<usize> {
    match entry {
        Entry::Single(single) => Some(single.weight),
        Entry::Merging(_) => None,
    }
}

/// Takes `class` among the greatest, which ascend, in place of the least of them.
#[inline]
pub(super) fn raise(greatest: &mut [usize], class: usize) {
    if let [one] = greatest {
        *one = class.max(*one);
        return;
    }
    let above = greatest.partition_point(|other| *other < class);
    if above > 0 {
        greatest[..above].rotate_left(1);
        greatest[above - 1] = class;
    }
}
