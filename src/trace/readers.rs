//! Who reads a trace on this worker: a slab of registrations, and the meets over them.
#![forbid(unsafe_code)]

use crate::order::{Antichain, Timestamp};
use std::cell::RefCell;
use std::rc::Rc;

/// The frontier from which on a reader reads: told, or read when needed.
#[derive(Clone)]
pub(super) enum Since<T> {
    Fixed(Antichain<T>),
    Bound(Rc<dyn Fn() -> Antichain<T>>),
}

impl<T: Clone> Since<T> {
    pub fn get(&self) -> Antichain<T> {
        match self {
            Since::Fixed(since) => since.clone(),
            Since::Bound(frontier) => frontier(),
        }
    }
}

#[derive(Clone)]
pub(super) struct Registration<T> {
    pub since: Since<T>,
    pub cut: Antichain<T>,
    // On whose account it is what this reader keeps from being folded.
    pub owner: Option<u32>,
}

/// Registrations by index. The meet of the cuts is kept until one changes.
pub(super) struct Readers<T> {
    slab: Vec<Option<Registration<T>>>,
    free: Vec<usize>,
    cut: RefCell<Option<Antichain<T>>>,
}

impl<T: Timestamp> Readers<T> {
    pub fn new() -> Self {
        Readers { slab: Vec::new(), free: Vec::new(), cut: RefCell::new(None) }
    }
    pub fn register(&mut self, registration: Registration<T>) -> usize {
        self.cut.take();
        let index = self.free.pop().unwrap_or_else(|| {
            self.slab.push(None);
            self.slab.len() - 1
        });
        self.slab[index] = Some(registration);
        index
    }
    pub fn release(&mut self, index: usize) {
        self.cut.take();
        self.slab[index] = None;
        self.free.push(index);
    }
    pub fn get(&self, index: usize) -> &Registration<T> {
        self.slab[index].as_ref().expect("a handle has a registration")
    }
    pub fn set_since(&mut self, index: usize, since: Since<T>) {
        self.slab[index].as_mut().expect("a handle has a registration").since = since;
    }
    pub fn set_owner(&mut self, index: usize, owner: u32) {
        self.slab[index].as_mut().expect("a handle has a registration").owner = Some(owner);
    }
    pub fn set_cut(&mut self, index: usize, cut: Antichain<T>) {
        self.cut.take();
        self.slab[index].as_mut().expect("a handle has a registration").cut = cut;
    }
    /// The meet of all sinces; empty, if no one reads. Cost: linear in the readers.
    pub fn since(&self) -> Antichain<T> {
        let mut meet = Antichain::new();
        self.slab.iter().flatten().for_each(|r| meet.meet_with(&r.since.get()));
        meet
    }
    /// The meet of the sinces of one owner; empty, if none of its readers reads. Cost: linear in the readers.
    pub fn since_of(&self, owner: u32) -> Antichain<T> {
        let mut meet = Antichain::new();
        self.slab.iter().flatten().filter(|r| r.owner == Some(owner)).for_each(|r| meet.meet_with(&r.since.get()));
        meet
    }
    /// The meet of all cuts. Cost: linear in the readers after one has changed, else none.
    pub fn cut(&self) -> Antichain<T> {
        let compute = || {
            let mut meet = Antichain::new();
            self.slab.iter().flatten().for_each(|r| meet.meet_with(&r.cut));
            meet
        };
        self.cut.borrow_mut().get_or_insert_with(compute).clone()
    }
}
