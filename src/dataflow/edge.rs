//! Edges: how a message gets from an output port through stages to input ports, here and on other workers.
//!
//! ```text
//! Output ─▶ Outlet ─▶ StageQueue … Outlet ─▶ PortQueue              (same worker)
//!                └──▶ StageQueue of an exchange ─▶ PortQueue here, Envelope to the others
//! ```
//! Stages run inside the producer's step, by a loop over their numbers: a stage's number is above those of the stages
//! that feed it, so each runs once per batch of messages, and no chain is ever a recursion. Nothing is counted at a
//! stage; a message is counted where it is queued at an input port, or sent to one. What is at a stage when the quantum
//! is over is the producer's: see [`Origin`].
#![forbid(unsafe_code)]

use super::core::{Core, Origin, Stamp};
use crate::progress::Location;
use std::any::Any;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

/// What messages carry: cheap to clone, so that several consumers share it.
pub trait Payload: Clone + 'static {}
impl<C: Clone + 'static> Payload for C {}

/// Takes messages of an edge.
pub(crate) trait Consumer<C> {
    fn push(&self, stamp: &Stamp, payload: C);
}

/// The fan-out of one stream on one worker.
pub(crate) struct Outlet<C> {
    consumers: RefCell<Vec<Rc<dyn Consumer<C>>>>,
}

impl<C: Payload> Outlet<C> {
    pub(crate) fn new() -> Rc<Self> {
        Rc::new(Outlet { consumers: RefCell::default() })
    }
    pub(crate) fn add(&self, consumer: Rc<dyn Consumer<C>>) {
        self.consumers.borrow_mut().push(consumer);
    }
    pub(crate) fn push(&self, stamp: &Stamp, payload: C) {
        let consumers = self.consumers.borrow();
        if let Some((last, others)) = consumers.split_last() {
            for consumer in others {
                consumer.push(stamp, payload.clone());
            }
            last.push(stamp, payload);
        }
    }
    pub(crate) fn is_unused(&self) -> bool {
        self.consumers.borrow().is_empty()
    }
}

/// A message before a stage.
struct Passing<C> {
    origin: Rc<Origin>,
    /// Its stamp, if that is not its origin's: behind a stage that changes scopes.
    stamp: Option<Box<Stamp>>,
    payload: C,
}

/// Messages before a stage.
pub(crate) struct StageQueue<C> {
    core: Rc<Core>,
    stage: u32,
    queue: RefCell<VecDeque<Passing<C>>>,
}

impl<C> StageQueue<C> {
    pub(crate) fn new(core: &Rc<Core>, stage: u32) -> Rc<Self> {
        Rc::new(StageQueue { core: core.clone(), stage, queue: RefCell::default() })
    }
    fn pop(&self) -> Option<Passing<C>> {
        self.queue.borrow_mut().pop_front()
    }
}

impl<C: Payload> Consumer<C> for StageQueue<C> {
    fn push(&self, stamp: &Stamp, payload: C) {
        let origin = self.core.origin.borrow().clone().expect("whatever is sent comes from an output port");
        let own = (!std::ptr::eq(stamp, origin.stamp())).then(|| Box::new(stamp.clone()));
        self.queue.borrow_mut().push_back(Passing { origin, stamp: own, payload });
        self.core.stages.insert(self.stage);
    }
}

/// Messages at an input port; each is counted there, from before it arrives until it is taken.
pub(crate) struct PortQueue<C> {
    pub(crate) core: Rc<Core>,
    pub(crate) node: u32,
    pub(crate) location: Location,
    queue: RefCell<VecDeque<(Stamp, C)>>,
}

impl<C> PortQueue<C> {
    pub(crate) fn new(core: &Rc<Core>, node: u32, location: Location) -> Rc<Self> {
        Rc::new(PortQueue { core: core.clone(), node, location, queue: RefCell::default() })
    }
    /// Takes a message: it is consumed.
    pub(crate) fn pop(&self) -> Option<(Stamp, C)> {
        let (stamp, payload) = self.queue.borrow_mut().pop_front()?;
        self.core.count_stamp(self.location, &stamp, -1);
        Some((stamp, payload))
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.borrow().is_empty()
    }
    /// Queues a message that its sender has counted.
    pub(crate) fn arrive(&self, stamp: Stamp, payload: C) {
        self.queue.borrow_mut().push_back((stamp, payload));
        self.core.activate(self.node);
    }
}

impl<C: Payload> Consumer<C> for PortQueue<C> {
    fn push(&self, stamp: &Stamp, payload: C) {
        self.core.count_stamp(self.location, stamp, 1);
        self.arrive(stamp.clone(), payload);
    }
}

/// Something that runs inside a producer's step.
pub(crate) trait Stage {
    /// Passes on what is queued while there is fuel, at least a part of one message; true iff none is left.
    fn run(&mut self) -> bool;
    /// Has the producers of what is queued hold their stamps.
    fn hold_origins(&self);
}

/// A stage that does one thing to each message; what `each` gives back of a message is queued again before all others.
pub(crate) struct EachMessage<C, F> {
    pub(crate) queue: Rc<StageQueue<C>>,
    pub(crate) each: F,
}

impl<C: Payload, F: FnMut(&Stamp, C) -> Option<C>> Stage for EachMessage<C, F> {
    fn run(&mut self) -> bool {
        let core = self.queue.core.clone();
        while let Some(Passing { origin, stamp, payload }) = self.queue.pop() {
            *core.origin.borrow_mut() = Some(origin.clone());
            let rest = (self.each)(stamp.as_deref().unwrap_or(origin.stamp()), payload);
            core.origin.borrow_mut().take();
            if let Some(payload) = rest {
                self.queue.queue.borrow_mut().push_front(Passing { origin, stamp, payload });
            }
            core.spend_on_stages(1);
            if core.stage_fuel.get() <= 0 {
                return self.queue.queue.borrow().is_empty();
            }
        }
        true
    }
    fn hold_origins(&self) {
        self.queue.queue.borrow().iter().for_each(|passing| passing.origin.hold());
    }
}

/// The receiving end of an exchange channel: knows the type that travelled.
pub(crate) type Receive = Box<dyn Fn(Box<dyn Any + Send>)>;
