//! Operators of your own: ports, capabilities, frontiers, notifications.
//!
//! `unary` and `binary` for the common shapes, [`OperatorBuilder`] for any. The logic is stepped when a message arrives,
//! when a frontier moved while it holds a capability (or always, by [`Interest::Always`]), when an input's frontier became
//! empty, and when it returned true. It may hold trace handles of arrangements and navigate their cursors; it should
//! return after about [`QUANTUM`](crate::dataflow::QUANTUM) updates, with true if there is more to do.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::{Chunk, Collection};
use super::exchange::exchanged;
use crate::dataflow::{
    Capability, CapabilitySet, Closure, Fuel, InputPort, Interest, Node, NodeBuilder, OutputPort, Scope, Stamped,
    Token, Updates,
};
use crate::order::{Antichain, Coords, Semigroup, Timestamp};
use crate::runtime::Failure;
use crate::trace::{Delivery, Trace};
use kpg_columnar::Columnar;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The output of an operator that sends updates.
pub type UpdatesOutput<T, D, R> = OutputPort<T, Chunk<D, T, R>>;
/// The input of an operator that takes updates.
pub type UpdatesInput<T, D, R> = InputPort<T, Chunk<D, T, R>>;

/// Updates gathered for one message.
pub struct Session<'o, T: Timestamp, D: Columnar, R: Semigroup, S: Stamped> {
    output: &'o mut UpdatesOutput<T, D, R>,
    at: &'o S,
    held: Antichain<T>,
    updates: Updates<D, T, R>,
}

/// What gives the times that may be sent at.
pub trait Held<T: Timestamp>: Stamped {
    /// Updates must be beyond this frontier.
    fn held(&self) -> Antichain<T>;
}
impl<T: Timestamp> Held<T> for Capability<T> {
    fn held(&self) -> Antichain<T> {
        Antichain::from_elem(*self.time())
    }
}
impl<T: Timestamp> Held<T> for CapabilitySet<T> {
    fn held(&self) -> Antichain<T> {
        self.frontier()
    }
}
impl<T: Timestamp> Held<T> for Token<T> {
    fn held(&self) -> Antichain<T> {
        self.times()
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> UpdatesOutput<T, D, R> {
    /// Gathers updates to be sent in one message at the times of `at`.
    pub fn session<'o, S: Held<T>>(&'o mut self, at: &'o S) -> Session<'o, T, D, R, S> {
        Session { output: self, held: at.held(), at, updates: Updates::default() }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup, S: Stamped> Session<'_, T, D, R, S> {
    /// Adds an update. A time that the session does not hold ends the query with an error.
    pub fn give(&mut self, datum: D::Ref<'_>, time: T, diff: R) {
        if !self.held.less_equal(&time) {
            let text = format!("{time:?} is not held (held: {:?}): keep a capability at or before it", self.held);
            Failure::NotHeld(text).raise();
        }
        self.updates.push(datum, time, diff);
        if self.updates.len() >= 1024 {
            self.flush();
        }
    }
    fn flush(&mut self) {
        if !self.updates.is_empty() {
            self.output.send(self.at, Rc::new(std::mem::take(&mut self.updates)));
        }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup, S: Stamped> Drop for Session<'_, T, D, R, S> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.flush();
        }
    }
}

/// Times to be told of once they are complete; each once, in order.
#[derive(Debug)]
pub struct Notificator<T: Timestamp> {
    asked: BTreeMap<T, Capability<T>>,
}

impl<T: Timestamp> Default for Notificator<T> {
    fn default() -> Self {
        Notificator { asked: BTreeMap::new() }
    }
}

impl<T: Timestamp> Notificator<T> {
    /// Asks to be told when the capability's time is complete.
    pub fn notify_at(&mut self, capability: Capability<T>) {
        self.asked.entry(*capability.time()).or_insert(capability);
    }
    /// The first time asked for that is not beyond `frontier`, with its capability. Those asked for meanwhile are told
    /// in their order, never one before the last.
    pub fn next(&mut self, frontier: &Antichain<T>) -> Option<Capability<T>> {
        let time = *self.asked.keys().find(|time| !frontier.less_equal(time))?;
        self.asked.remove(&time)
    }
}

/// An operator being built: inputs first, then the outputs that they reach.
pub struct OperatorBuilder<'s, T: Timestamp> {
    builder: NodeBuilder<'s, T>,
    interest: Interest,
}

impl<'s, T: Timestamp> Scope<'s, T> {
    /// Starts an operator of your own.
    pub fn operator(&self, name: &str) -> OperatorBuilder<'s, T> {
        OperatorBuilder { builder: self.node(name), interest: Interest::Held }
    }
}

impl<'s, T: Timestamp> OperatorBuilder<'s, T> {
    /// When it is stepped, besides when messages come.
    pub fn interest(mut self, interest: Interest) -> Self {
        self.interest = interest;
        self
    }
    /// An input that takes the updates made on this worker.
    pub fn input<D: Columnar, R: Semigroup>(&mut self, updates: &Collection<'s, T, D, R>) -> UpdatesInput<T, D, R> {
        self.builder.input(&updates.stream)
    }
    /// An input to which each update comes on worker `route(datum) % peers`.
    pub fn input_exchanged<D: Columnar, R: Semigroup>(
        &mut self,
        updates: &Collection<'s, T, D, R>,
        route: impl Fn(D::Ref<'_>) -> u64 + 'static,
    ) -> UpdatesInput<T, D, R> {
        exchanged(&mut self.builder, &updates.stream, route)
    }
    /// An input that takes the batches of an arrangement; clone its `trace()` to read what came before.
    pub fn input_arranged<Tr: Trace<Time = T>>(
        &mut self,
        arranged: &Arranged<'s, Tr>,
    ) -> InputPort<T, Delivery<Tr::Batch>> {
        self.builder.input(&arranged.stream)
    }
    /// An output of updates, reached from every input made before it.
    pub fn output<D: Columnar, R: Semigroup>(&mut self) -> (UpdatesOutput<T, D, R>, Collection<'s, T, D, R>) {
        let (port, stream) = self.builder.output();
        (port, Collection::new(stream))
    }
    /// An output of updates that no input reaches: its capability at the first time goes to the logic's first step.
    pub fn source<D: Columnar, R: Semigroup>(&mut self) -> (UpdatesOutput<T, D, R>, Collection<'s, T, D, R>) {
        let (port, stream) = self.builder.source();
        (port, Collection::new(stream))
    }
    /// Completes an operator without sources.
    pub fn build(self, logic: impl FnMut(&mut Fuel) -> bool + 'static) {
        self.builder.finish(self.interest, Closure(logic));
    }
    /// Completes an operator with one source: `start` gets its capability at the dataflow's first time, and makes the
    /// logic.
    pub fn build_source<D: Columnar, R: Semigroup, L: FnMut(&mut Fuel) -> bool + 'static>(
        self,
        output: UpdatesOutput<T, D, R>,
        start: impl FnOnce(UpdatesOutput<T, D, R>, Capability<T>) -> L + 'static,
    ) {
        let start = move |first: &Coords| {
            let capability = output.born(first);
            start(output, capability)
        };
        self.builder.finish(self.interest, Late { start: Some(start), logic: None });
    }
}

struct Late<S, L> {
    start: Option<S>,
    logic: Option<L>,
}

impl<S: FnOnce(&Coords) -> L, L: FnMut(&mut Fuel) -> bool> Node for Late<S, L> {
    fn start(&mut self, first: &Coords) {
        self.logic = self.start.take().map(|start| start(first));
    }
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        self.logic.as_mut().is_some_and(|logic| logic(fuel))
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Semigroup> Collection<'s, T, D, R> {
    /// An operator with one input and one output: `logic` is given both at each step.
    pub fn unary<D2: Columnar, R2: Semigroup>(
        &self,
        name: &str,
        mut logic: impl FnMut(&mut UpdatesInput<T, D, R>, &mut UpdatesOutput<T, D2, R2>, &mut Fuel) -> bool + 'static,
    ) -> Collection<'s, T, D2, R2> {
        let mut builder = self.scope().operator(name);
        let mut input = builder.input(self);
        let (mut output, result) = builder.output();
        builder.build(move |fuel| logic(&mut input, &mut output, fuel));
        result
    }

    /// An operator with two inputs and one output: `logic` is given all at each step.
    pub fn binary<D2: Columnar, R2: Semigroup, D3: Columnar, R3: Semigroup>(
        &self,
        other: &Collection<'s, T, D2, R2>,
        name: &str,
        mut logic: impl FnMut(
            &mut UpdatesInput<T, D, R>,
            &mut UpdatesInput<T, D2, R2>,
            &mut UpdatesOutput<T, D3, R3>,
            &mut Fuel,
        ) -> bool
        + 'static,
    ) -> Collection<'s, T, D3, R3> {
        let mut builder = self.scope().operator(name);
        let (mut first, mut second) = (builder.input(self), builder.input(other));
        let (mut output, result) = builder.output();
        builder.build(move |fuel| logic(&mut first, &mut second, &mut output, fuel));
        result
    }
}
