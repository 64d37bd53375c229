//! Nodes: what is scheduled, and the ports it sees the dataflow through.
#![forbid(unsafe_code)]

use super::capability::{Capability, CapabilitySet, Token};
use super::core::{Core, Stamp};
use super::edge::{Outlet, Payload, PortQueue};
use crate::order::{Antichain, Coords, MAX_COORDINATES, Timestamp};
use crate::progress::{Location, Summary};
use crate::runtime::Failure;
use std::cell::OnceCell;
use std::marker::PhantomData;
use std::rc::Rc;

/// How much a step may still do before it should ask to be scheduled again: roughly updates touched.
///
/// A quantum of [`QUANTUM`] updates takes on the order of 50 µs.
#[derive(Debug)]
pub struct Fuel(pub isize);

/// Updates a node may touch in one step.
pub const QUANTUM: isize = 4096;

impl Fuel {
    /// Uses some; true iff there is some left.
    #[inline]
    pub fn spend(&mut self, amount: usize) -> bool {
        self.0 -= amount as isize;
        self.0 > 0
    }
    /// Whether it is used up.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.0 <= 0
    }
}

/// The logic of a node. It is stepped when a message arrives, when a frontier moved while it holds a capability (or
/// always, if it asked to hear), when an input's frontier became empty, or when its last step returned true.
pub(crate) trait Node {
    /// The first time is known: sources take the capability they were born with.
    fn start(&mut self, _first: &Coords) {}
    /// Does about `fuel` of work; true iff it wants another step though nothing changes.
    fn step(&mut self, fuel: &mut Fuel) -> bool;
    /// The frontier at a watched output port moved, and was propagated.
    fn output_moved(&mut self) {}
    /// Uses spare time; true iff more could be used.
    fn idle(&mut self) -> bool {
        false
    }
    /// Whether someone outside of the dataflow still reads what it keeps, though nothing can reach it any more. Asked
    /// when all its ports have closed, and again after each later step.
    fn is_read(&mut self) -> bool {
        false
    }
}

/// Nodes that are a closure.
pub(crate) struct Closure<F>(pub(crate) F);
impl<F: FnMut(&mut Fuel) -> bool> Node for Closure<F> {
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        (self.0)(fuel)
    }
}

/// What an input is connected to, known when its node is complete.
pub(crate) type Connected = Rc<OnceCell<Rc<[(Location, Summary)]>>>;

/// The messages that wait at a node's input, and the frontier of those that may still come.
pub struct InputPort<T: Timestamp, C> {
    pub(crate) queue: Rc<PortQueue<C>>,
    pub(crate) connected: Connected,
    pub(crate) maxima: Rc<[u64; MAX_COORDINATES]>,
    pub(crate) marker: PhantomData<T>,
}

impl<T: Timestamp, C: Payload> InputPort<T, C> {
    /// Takes the next message, with the right to send at its times within this step or to retain capabilities.
    #[allow(clippy::should_implement_trait, reason = "an iterator could not be polled again after it gave nothing")]
    pub fn next(&mut self) -> Option<(Token<T>, C)> {
        let (stamp, payload) = self.queue.pop()?;
        let connected = self.connected.get().expect("a node steps only once it is complete").clone();
        let core = self.queue.core.clone();
        Some((Token { stamp, core, connected, maxima: self.maxima.clone(), marker: PhantomData }, payload))
    }
    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
    /// The minimal times that may still arrive here, those of waiting messages included.
    pub fn frontier(&self) -> Antichain<T> {
        self.queue.core.frontier(self.queue.location)
    }
    /// The frontier, to be asked for later and from elsewhere on this worker.
    pub fn frontier_source(&self) -> Rc<dyn Fn() -> Antichain<T>> {
        let (core, location) = (self.queue.core.clone(), self.queue.location);
        Rc::new(move || core.frontier(location))
    }
}

/// What says at which times a message is sent.
pub trait Stamped {
    #[doc(hidden)]
    fn stamp_for(&self, output: Location) -> OutgoingStamp;
}

/// The stamp of a message to be sent.
#[doc(hidden)]
pub struct OutgoingStamp(pub(crate) Stamp);

fn wrong_port() -> ! {
    Failure::NotHeld("a capability was used at another output port than its own".to_string()).raise()
}

impl<T: Timestamp> Stamped for Capability<T> {
    fn stamp_for(&self, output: Location) -> OutgoingStamp {
        if self.location() != output {
            wrong_port();
        }
        OutgoingStamp(Stamp::from_elem(self.time().to_coords()))
    }
}

impl<T: Timestamp> Stamped for CapabilitySet<T> {
    fn stamp_for(&self, output: Location) -> OutgoingStamp {
        if self.elements().iter().any(|c| c.location() != output) {
            wrong_port();
        }
        OutgoingStamp(self.stamp())
    }
}

impl<T: Timestamp> Stamped for Token<T> {
    fn stamp_for(&self, output: Location) -> OutgoingStamp {
        OutgoingStamp(self.times_at(output).into_iter().collect())
    }
}

/// Where a node sends from.
pub struct OutputPort<T: Timestamp, C> {
    pub(crate) location: Location,
    pub(crate) outlet: Rc<Outlet<C>>,
    pub(crate) core: Rc<Core>,
    pub(crate) marker: PhantomData<T>,
}

impl<T: Timestamp, C: Payload> OutputPort<T, C> {
    /// Sends a message at the times of `at`: a capability of this port, a set of them, or the token of a message
    /// taken in this step.
    ///
    /// A capability of another port, or none at all, ends the query with a typed error.
    pub fn send(&mut self, at: &impl Stamped, payload: C) {
        let OutgoingStamp(stamp) = at.stamp_for(self.location);
        if stamp.is_empty() {
            // A loop counter passed its maximum: what would be sent has no time.
            return;
        }
        self.core.send_from(self.location, stamp, |stamp| self.outlet.push(stamp, payload));
    }
    /// Retains the right to send at the times of a message taken in this step.
    pub fn retain(&self, token: &Token<T>, set: &mut CapabilitySet<T>) {
        token.retain_at(self.location, set);
    }
    /// Whether nobody listens.
    pub fn is_unused(&self) -> bool {
        self.outlet.is_unused()
    }
    /// The minimal times that this worker or any other may still send at from this port.
    pub fn frontier(&self) -> Antichain<T> {
        self.core.frontier(self.location)
    }
    /// The frontier, to be asked for later and from elsewhere on this worker.
    pub fn frontier_source(&self) -> Rc<dyn Fn() -> Antichain<T>> {
        let (core, location) = (self.core.clone(), self.location);
        Rc::new(move || core.frontier(location))
    }
    /// The capability that every replica has counted for this port since its birth; once, from `Node::start`.
    pub(crate) fn born(&self, first: &Coords) -> Capability<T> {
        Capability::born(T::from_coords(first), self.location, &self.core)
    }
}
