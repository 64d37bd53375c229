//! What the parts of one dataflow share on one worker: the change batch of the step that runs, the nodes to step,
//! the stages to run, the tracker.
//!
//! Invariant: whatever a step consumes, produces, takes, downgrades or drops is written to one change batch, which is
//! applied whole after the step, or discarded whole if user code failed in it.
#![forbid(unsafe_code)]

use crate::order::{Antichain, Coords, Timestamp};
use crate::progress::{ChangeBatch, Location, Tracker};
use crate::runtime::{DataflowId, Local};
use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

/// The antichain of timestamps that a message bears. Never empty.
pub type Stamp = Antichain<Coords>;

/// Numbers, each at most once, popped in ascending order.
pub(crate) struct ActiveSet {
    /// The least, or `NONE`: along a chain there is but one at a time.
    least: Cell<u32>,
    /// The others.
    heap: RefCell<BinaryHeap<Reverse<u32>>>,
    present: RefCell<Vec<bool>>,
}

/// No number: there are fewer nodes and stages.
const NONE: u32 = u32::MAX;

impl Default for ActiveSet {
    fn default() -> Self {
        ActiveSet { least: Cell::new(NONE), heap: RefCell::default(), present: RefCell::default() }
    }
}

impl ActiveSet {
    pub(crate) fn insert(&self, number: u32) {
        let mut present = self.present.borrow_mut();
        let index = number as usize;
        if present.len() <= index {
            present.resize(index + 1, false);
        }
        if !std::mem::replace(&mut present[index], true) {
            let least = self.least.get();
            self.least.set(number.min(least));
            if least != NONE {
                self.heap.borrow_mut().push(Reverse(number.max(least)));
            }
        }
    }
    #[inline]
    pub(crate) fn pop(&self) -> Option<u32> {
        let number = self.least.get();
        if number == NONE {
            return None;
        }
        let next = self.heap.borrow_mut().pop();
        self.least.set(next.map_or(NONE, |Reverse(next)| next));
        self.present.borrow_mut()[number as usize] = false;
        Some(number)
    }
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.least.get() == NONE
    }
    pub(crate) fn for_each(&self, mut f: impl FnMut(u32)) {
        let least = self.least.get();
        if least != NONE {
            f(least);
            self.heap.borrow().iter().for_each(|Reverse(number)| f(*number));
        }
    }
}

/// Where user code runs now, to name it if it fails.
#[derive(Copy, Clone, PartialEq)]
pub(crate) enum Running {
    Nothing,
    Node(u32),
    Stage(u32),
}

/// The send from which messages at stages derive. What is still at a stage when a quantum is over is the producer's: its
/// output port then holds the original stamp, until the last of what derives from it is through.
pub(crate) struct Origin {
    core: Rc<Core>,
    location: Location,
    stamp: Stamp,
    held: Cell<bool>,
}

impl Origin {
    /// The stamp with which the message was sent.
    #[inline]
    pub(crate) fn stamp(&self) -> &Stamp {
        &self.stamp
    }
    /// Holds the original stamp at the producer's port from now on.
    pub(crate) fn hold(&self) {
        if !self.held.replace(true) {
            self.stamp.elements().iter().for_each(|time| self.core.count_held(self.location, *time, 1));
        }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        if self.held.get() {
            self.stamp.elements().iter().for_each(|time| self.core.count_held(self.location, *time, -1));
        }
    }
}

pub(crate) struct Core {
    pub(crate) id: DataflowId,
    pub(crate) local: Rc<Local>,
    pub(crate) changes: RefCell<ChangeBatch>,
    pub(crate) nodes: ActiveSet,
    pub(crate) stages: ActiveSet,
    pub(crate) running: Cell<Running>,
    /// Of the message that is being sent, or passed on by a stage.
    pub(crate) origin: RefCell<Option<Rc<Origin>>>,
    /// What stages may still do in this quantum, in updates.
    pub(crate) stage_fuel: Cell<isize>,
    /// Capabilities held, by node: one that holds none needs to hear of no frontier.
    pub(crate) held: RefCell<Vec<i64>>,
    pub(crate) tracker: RefCell<Option<Tracker>>,
    /// Which node a location belongs to.
    pub(crate) owners: RefCell<Vec<u32>>,
    /// Nodes that could merge on with spare time.
    pub(crate) mergers: ActiveSet,
    scheduled: Cell<bool>,
    pub(crate) ended: Cell<bool>,
}

impl Core {
    pub(crate) fn new(id: DataflowId, local: Rc<Local>) -> Rc<Core> {
        Rc::new(Core {
            id,
            local,
            changes: RefCell::default(),
            nodes: ActiveSet::default(),
            stages: ActiveSet::default(),
            running: Cell::new(Running::Nothing),
            origin: RefCell::default(),
            stage_fuel: Cell::new(0),
            held: RefCell::default(),
            tracker: RefCell::default(),
            owners: RefCell::default(),
            mergers: ActiveSet::default(),
            scheduled: Cell::new(false),
            ended: Cell::new(false),
        })
    }

    /// Withdraws what this dataflow offered to others on its worker.
    pub(crate) fn forget_offers(&self) {
        self.local.offers.borrow_mut().retain(|offer, _| (offer >> 32) as u32 != self.id);
    }

    /// Sends by `push`, as a message of an output port at `stamp`.
    pub(crate) fn send_from(self: &Rc<Self>, location: Location, stamp: Stamp, push: impl FnOnce(&Stamp)) {
        let origin = Rc::new(Origin { core: self.clone(), location, stamp, held: Cell::new(false) });
        *self.origin.borrow_mut() = Some(origin.clone());
        push(&origin.stamp);
        self.origin.borrow_mut().take();
    }

    /// Uses some of what stages may do in this quantum.
    pub(crate) fn spend_on_stages(&self, updates: usize) {
        self.stage_fuel.set(self.stage_fuel.get() - updates as isize);
    }

    /// Puts this dataflow on its worker's list, once.
    pub(crate) fn schedule(&self) {
        if !self.scheduled.replace(true) && !self.ended.get() {
            self.local.schedule(self.id);
        }
    }

    /// Told when the worker takes the dataflow off its list.
    pub(crate) fn unscheduled(&self) {
        self.scheduled.set(false);
    }

    pub(crate) fn activate(&self, node: u32) {
        self.nodes.insert(node);
        self.schedule();
    }

    pub(crate) fn count(&self, location: Location, time: Coords, diff: i64) {
        if self.ended.get() {
            return;
        }
        self.changes.borrow_mut().update(location, time, diff);
        self.schedule();
    }

    pub(crate) fn count_stamp(&self, location: Location, stamp: &Stamp, diff: i64) {
        for time in stamp.elements() {
            self.count(location, *time, diff);
        }
    }

    pub(crate) fn count_held(&self, location: Location, time: Coords, diff: i64) {
        self.count(location, time, diff);
        let node = self.owners.borrow()[location as usize] as usize;
        let mut held = self.held.borrow_mut();
        if held.len() <= node {
            held.resize(node + 1, 0);
        }
        held[node] += diff;
    }

    /// The frontier at a location: at an input port what may still arrive, at an output port what may still be sent.
    pub(crate) fn frontier<T: Timestamp>(&self, location: Location) -> Antichain<T> {
        match self.tracker.borrow().as_ref() {
            Some(tracker) => typed(tracker.frontier(location)),
            // Of what has ended nothing comes; what is being built holds everything.
            None if self.ended.get() => Antichain::new(),
            None => Antichain::from_elem(T::minimum()),
        }
    }
}

/// A frontier with its type.
pub(crate) fn typed<T: Timestamp>(frontier: &Antichain<Coords>) -> Antichain<T> {
    match frontier.elements() {
        [] => Antichain::new(),
        [one] => Antichain::from_elem(T::from_coords(one)),
        many => many.iter().map(T::from_coords).collect(),
    }
}
