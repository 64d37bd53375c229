//! Building a dataflow: scopes, streams, nodes.
//!
//! A closure given to `install` runs once on each worker, each time with its own [`Scope`]; what it builds must not
//! depend on the worker. Streams are tied to the closure by the lifetime `'s`, so none can leave it.
#![forbid(unsafe_code)]

use super::core::{Core, Stamp};
use super::doze::ImportSource;
use super::edge::{Consumer, EachMessage, Outlet, Payload, PortQueue, Receive, Stage, StageQueue};
use super::install::{InstallFault, InstallShared, SharedHandle, TakeHold};
use super::node::{Connected, InputPort, Node, OutputPort};
use super::run::NodeSlot;
use crate::order::{Coords, MAX_COORDINATES, Product, Timestamp};
use crate::progress::{GraphBuilder, Location, ScopeId, Summary};
use crate::runtime::{Local, Query};
use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::hash_map::DefaultHasher;
use std::hash::Hash;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

/// More sources than this, and a stream that is read is given a location of its own in the tracker: ins + outs edges
/// instead of ins × outs.
const SOURCES_IN_PLACE: usize = 4;

/// A dataflow that is being built on one worker.
pub(crate) struct Build {
    pub(crate) core: Rc<Core>,
    pub(crate) install: Arc<InstallShared>,
    pub(crate) graph: RefCell<Option<GraphBuilder>>,
    pub(crate) nodes: RefCell<Vec<NodeSlot>>,
    pub(crate) stages: RefCell<Vec<(String, Box<dyn Stage>)>>,
    pub(crate) channels: RefCell<Vec<Receive>>,
    /// Output ports that are born with a capability.
    pub(crate) births: RefCell<Vec<Location>>,
    pub(crate) takes: RefCell<Vec<TakeHold>>,
    /// F, known when the closure has returned.
    pub(crate) first: Rc<OnceCell<Coords>>,
    pub(crate) digest: RefCell<DefaultHasher>,
    pub(crate) maxima: RefCell<Vec<Rc<[u64; MAX_COORDINATES]>>>,
    /// The scope around each scope.
    parents: RefCell<Vec<ScopeId>>,
    handles: Cell<usize>,
    offers: Cell<u32>,
    /// What it imports, by node.
    pub(crate) imports: RefCell<Vec<(u32, Box<dyn ImportSource>)>>,
    /// Whether a dataflow came of it, which then sees to what it leaves.
    pub(crate) finished: Cell<bool>,
}

impl Drop for Build {
    fn drop(&mut self) {
        if self.finished.get() {
            return;
        }
        // The closure panicked, or the graph was refused: others on this worker are to forget it.
        self.core.ended.set(true);
        self.imports.get_mut().drain(..).for_each(|(_, source)| source.forget());
        self.core.forget_offers();
    }
}

impl Build {
    pub(crate) fn new<T: Timestamp>(core: Rc<Core>, install: Arc<InstallShared>) -> Rc<Build> {
        let mut maxima = [0; MAX_COORDINATES];
        T::write_maxima(&mut maxima);
        let graph = GraphBuilder::new(install.query.name.clone(), T::COORDINATES, &maxima[..T::COORDINATES]);
        Rc::new(Build {
            core,
            install,
            graph: RefCell::new(Some(graph)),
            nodes: RefCell::default(),
            stages: RefCell::default(),
            channels: RefCell::default(),
            births: RefCell::default(),
            takes: RefCell::default(),
            first: Rc::new(OnceCell::new()),
            digest: RefCell::new(DefaultHasher::new()),
            maxima: RefCell::new(vec![Rc::new(maxima)]),
            parents: RefCell::new(vec![ScopeId(0)]),
            handles: Cell::new(0),
            offers: Cell::new(0),
            imports: RefCell::default(),
            finished: Cell::new(false),
        })
    }

    pub(crate) fn local(&self) -> &Rc<Local> {
        &self.core.local
    }

    pub(crate) fn note(&self, what: impl Hash) {
        what.hash(&mut *self.digest.borrow_mut());
    }

    /// The next handle that the closure makes: one object on all workers.
    pub(crate) fn handle<H: SharedHandle>(&self, make: impl Fn() -> H) -> Arc<H> {
        let index = self.handles.replace(self.handles.get() + 1);
        self.note(("handle", std::any::type_name::<H>()));
        self.install.handle(index, make)
    }

    /// A number for what this dataflow offers to others on its worker; the same on all workers.
    pub(crate) fn next_offer(&self) -> u64 {
        let index = self.offers.replace(self.offers.get() + 1);
        (u64::from(self.core.id) << 32) | u64::from(index)
    }

    /// Whether it offers anything to others.
    pub(crate) fn publishes(&self) -> bool {
        self.offers.get() > 0
    }

    pub(crate) fn with_graph<O>(&self, f: impl FnOnce(&mut GraphBuilder) -> O) -> O {
        f(self.graph.borrow_mut().as_mut().expect("a dataflow is built until its closure has returned"))
    }

    fn add_stage(&self, name: &str, make: impl FnOnce(u32) -> Box<dyn Stage>) {
        let index = self.stages.borrow().len() as u32;
        let stage = make(index);
        self.stages.borrow_mut().push((name.to_string(), stage));
        self.note(("stage", name));
    }
}

/// Where streams and nodes are made; a loop's scope has one more coordinate than the one around it.
pub struct Scope<'s, T: Timestamp> {
    pub(crate) build: Rc<Build>,
    pub(crate) id: ScopeId,
    marker: PhantomData<(fn(&'s ()) -> &'s (), T)>,
}

impl<T: Timestamp> Clone for Scope<'_, T> {
    fn clone(&self) -> Self {
        Scope { build: self.build.clone(), id: self.id, marker: PhantomData }
    }
}

impl<'s, T: Timestamp> Scope<'s, T> {
    pub(crate) fn root(build: &Rc<Build>) -> Self {
        Scope { build: build.clone(), id: ScopeId(0), marker: PhantomData }
    }

    /// This worker's number.
    pub fn index(&self) -> usize {
        self.build.local().index
    }

    /// Number of workers.
    pub fn peers(&self) -> usize {
        self.build.local().peers
    }

    /// A scope inside this one, whose times have a counter of rounds besides. Streams come in by `enter` and go out by
    /// `leave`; a cycle needs a `Variable` or a feedback, which count the rounds.
    pub fn nest(&self, name: &str) -> Scope<'s, Product<T, u32>> {
        self.nest_counted::<u32>(name)
    }

    /// As `nest`, with another type of counter. What passes its maximum is dropped.
    pub fn nest_counted<C: Timestamp>(&self, name: &str) -> Scope<'s, Product<T, C>> {
        assert_eq!(C::COORDINATES, 1, "a loop counts its rounds in one coordinate");
        let mut maxima = [0; MAX_COORDINATES];
        Product::<T, C>::write_maxima(&mut maxima);
        let id = self.build.with_graph(|graph| graph.add_scope(self.id, name, maxima[T::COORDINATES]));
        let mut all = self.build.maxima.borrow_mut();
        if all.len() <= id.0 as usize {
            all.resize(id.0 as usize + 1, Rc::new(maxima));
        }
        drop(all);
        self.build.parents.borrow_mut().push(self.id);
        debug_assert_eq!(self.build.parents.borrow().len(), id.0 as usize + 1);
        self.build.note(("scope", name, id.0));
        Scope { build: self.build.clone(), id, marker: PhantomData }
    }

    pub(crate) fn maxima(&self) -> Rc<[u64; MAX_COORDINATES]> {
        self.build.maxima.borrow()[self.id.0 as usize].clone()
    }

    /// Notes why the install cannot succeed; the closure goes on to its end.
    pub(crate) fn fail(&self, fault: InstallFault) {
        self.build.install.fail(fault);
    }

    pub(crate) fn node(&self, name: &str) -> NodeBuilder<'s, T> {
        NodeBuilder::new(self, name)
    }
}

impl<'s, T: Timestamp, C: Timestamp> Scope<'s, Product<T, C>> {
    /// The scope around this one.
    pub fn outer(&self) -> Scope<'s, T> {
        assert!(self.id.0 != 0, "the outermost scope of a dataflow is inside no other");
        let id = self.build.parents.borrow()[self.id.0 as usize];
        Scope { build: self.build.clone(), id, marker: PhantomData }
    }
}

/// Messages of one type in one scope.
pub struct Stream<'s, T: Timestamp, C> {
    pub(crate) scope: Scope<'s, T>,
    pub(crate) outlet: Rc<Outlet<C>>,
    /// The output ports it comes from, and what the stages on the way do to times.
    pub(crate) sources: Rc<Vec<(Location, Summary)>>,
}

impl<T: Timestamp, C> Clone for Stream<'_, T, C> {
    fn clone(&self) -> Self {
        Stream { scope: self.scope.clone(), outlet: self.outlet.clone(), sources: self.sources.clone() }
    }
}

impl<'s, T: Timestamp, C: Payload> Stream<'s, T, C> {
    /// A stage that turns each message into any number of messages at its stamp.
    pub(crate) fn stage<C2: Payload>(
        &self,
        name: &str,
        mut each: impl FnMut(&Stamp, C, &Outlet<C2>) + 'static,
    ) -> Stream<'s, T, C2> {
        self.stage_in_parts(name, move |stamp, payload, outlet| {
            each(stamp, payload, outlet);
            None
        })
    }

    /// As `stage`, where `each` may give back what it has not come to yet of a message: it gets that next, when others
    /// have had their turn.
    pub(crate) fn stage_in_parts<C2: Payload>(
        &self,
        name: &str,
        mut each: impl FnMut(&Stamp, C, &Outlet<C2>) -> Option<C> + 'static,
    ) -> Stream<'s, T, C2> {
        let outlet = Outlet::new();
        self.add_stage_in_parts(name, {
            let outlet = outlet.clone();
            move |stamp: &Stamp, payload| each(stamp, payload, &outlet)
        });
        Stream { scope: self.scope.clone(), outlet, sources: self.sources.clone() }
    }

    /// A stage between scopes: `summary` is what it does to times, `restamp` the same to a stamp.
    pub(crate) fn cross<T2: Timestamp, C2: Payload>(
        &self,
        name: &str,
        scope: &Scope<'s, T2>,
        summary: Summary,
        mut each: impl FnMut(C) -> C2 + 'static,
    ) -> Stream<'s, T2, C2> {
        let outlet = Outlet::new();
        let maxima = scope.maxima();
        self.add_stage(name, {
            let outlet = outlet.clone();
            move |stamp: &Stamp, payload| {
                let stamp: Stamp = stamp.elements().iter().filter_map(|t| summary.apply(t, &maxima)).collect();
                outlet.push(&stamp, each(payload));
            }
        });
        let sources = self.sources.iter().filter_map(|(at, path)| Some((*at, path.then(&summary)?))).collect();
        Stream { scope: scope.clone(), outlet, sources: Rc::new(minimal(sources)) }
    }

    /// A stage that ends here, or sends on by itself.
    pub(crate) fn add_stage(&self, name: &str, mut each: impl FnMut(&Stamp, C) + 'static) {
        self.add_stage_in_parts(name, move |stamp: &Stamp, payload| {
            each(stamp, payload);
            None
        });
    }

    fn add_stage_in_parts(&self, name: &str, each: impl FnMut(&Stamp, C) -> Option<C> + 'static) {
        let build = &self.scope.build;
        build.add_stage(name, |index| {
            let queue = StageQueue::new(&build.core, index);
            self.outlet.add(queue.clone());
            Box::new(EachMessage { queue, each })
        });
    }

    /// An outlet for a stage that sends on by itself, and its stream.
    pub(crate) fn same_sources<C2: Payload>(&self) -> (Rc<Outlet<C2>>, Stream<'s, T, C2>) {
        let outlet = Outlet::new();
        (outlet.clone(), Stream { scope: self.scope.clone(), outlet, sources: self.sources.clone() })
    }

    /// All messages of several streams.
    pub(crate) fn concat_all(name: &str, streams: &[&Stream<'s, T, C>]) -> Stream<'s, T, C> {
        let scope = streams[0].scope.clone();
        let build = scope.build.clone();
        let outlet = Outlet::new();
        build.add_stage(name, |index| {
            let queue = StageQueue::new(&build.core, index);
            for stream in streams {
                stream.outlet.add(queue.clone());
            }
            let outlet = outlet.clone();
            let each = move |stamp: &Stamp, payload| {
                outlet.push(stamp, payload);
                None
            };
            Box::new(EachMessage { queue, each })
        });
        let sources = minimal(streams.iter().flat_map(|s| s.sources.iter().copied()).collect());
        Stream { scope, outlet, sources: Rc::new(sources) }.gathered()
    }

    /// With a location of its own in place of many sources.
    fn gathered(self) -> Self {
        if self.sources.len() <= SOURCES_IN_PLACE {
            return self;
        }
        let scope = self.scope.clone();
        let location = scope.build.with_graph(|graph| {
            let location = graph.add_virtual(scope.id, "concat");
            for (source, summary) in self.sources.iter() {
                graph.connect(*source, location, *summary);
            }
            location
        });
        own(&scope.build, location, u32::MAX);
        Stream { sources: Rc::new(vec![(location, Summary::identity(T::COORDINATES))]), ..self }
    }
}

/// Of summaries from the same port, those that no other is at or before.
fn minimal(mut all: Vec<(Location, Summary)>) -> Vec<(Location, Summary)> {
    use crate::order::PartialOrder;
    all.sort();
    all.dedup();
    let mut out: Vec<(Location, Summary)> = Vec::with_capacity(all.len());
    for (at, summary) in all {
        if !out.iter().rev().take_while(|(o, _)| *o == at).any(|(_, s)| s.less_equal(&summary)) {
            out.push((at, summary));
        }
    }
    out
}

fn own(build: &Build, location: Location, node: u32) {
    let mut owners = build.core.owners.borrow_mut();
    if owners.len() <= location as usize {
        owners.resize(location as usize + 1, u32::MAX);
    }
    owners[location as usize] = node;
}

/// When a node is stepped, besides when a message arrives.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Interest {
    /// When a frontier moved and it holds a capability, or an input's frontier became empty.
    Held,
    /// Whenever a frontier moved.
    Always,
}

/// A node that is being built.
pub(crate) struct NodeBuilder<'s, T: Timestamp> {
    pub(crate) scope: Scope<'s, T>,
    pub(crate) index: u32,
    ports: Ports,
}

/// The ports of a node. Without types, so that it is compiled once and not for each operator.
struct Ports {
    name: String,
    index: u32,
    inputs: Vec<Location>,
    outputs: Vec<Location>,
    internal: Vec<(Location, Location, Summary)>,
    connected: Vec<(Location, Connected)>,
    watched: bool,
}

impl Ports {
    fn new(build: &Build, scope: ScopeId, name: &str) -> Self {
        let index = build.nodes.borrow().len() as u32;
        build.nodes.borrow_mut().push(NodeSlot::empty(name));
        build.note(("node", name, scope.0));
        let name = name.to_string();
        Ports { name, index, inputs: vec![], outputs: vec![], internal: vec![], connected: vec![], watched: false }
    }

    fn add_input(&mut self, build: &Build, scope: ScopeId) -> (Location, Connected) {
        let name = format!("{}, input {}", self.name, self.inputs.len());
        let location = build.with_graph(|graph| graph.add_input(scope, name));
        own(build, location, self.index);
        self.inputs.push(location);
        let connected: Connected = Rc::default();
        self.connected.push((location, connected.clone()));
        (location, connected)
    }

    fn add_output(&mut self, build: &Build, scope: ScopeId, summary: Summary) -> Location {
        let name = format!("{}, output {}", self.name, self.outputs.len());
        let location = build.with_graph(|graph| graph.add_output(scope, name));
        own(build, location, self.index);
        for input in &self.inputs {
            self.internal.push((*input, location, summary));
        }
        self.outputs.push(location);
        location
    }

    fn finish(self, build: &Build, interest: Interest, node: Box<dyn Node>) {
        build.with_graph(|graph| {
            for (from, to, summary) in &self.internal {
                graph.connect(*from, *to, *summary);
            }
        });
        let mut internal = self.internal;
        internal.sort_by_key(|(from, _, _)| *from);
        for (input, connected) in &self.connected {
            let first = internal.partition_point(|(from, _, _)| from < input);
            let to = internal[first..].iter().take_while(|(from, _, _)| from == input);
            let outputs: Rc<[(Location, Summary)]> = to.map(|(_, to, summary)| (*to, *summary)).collect();
            connected.set(outputs).unwrap_or_else(|_| unreachable!("a node is finished once"));
        }
        build.note((self.inputs.len(), self.outputs.len()));
        build.nodes.borrow_mut()[self.index as usize] = NodeSlot {
            name: self.name,
            logic: Some(node),
            inputs: self.inputs,
            outputs: self.outputs,
            always: interest == Interest::Always,
            watched: self.watched,
        };
    }
}

/// What comes from `sources` goes to `to`.
fn connect(build: &Build, sources: &[(Location, Summary)], to: Location) {
    build.with_graph(|graph| {
        for (source, summary) in sources {
            graph.connect(*source, to, *summary);
        }
    });
    for (source, summary) in sources {
        build.note((*source, *summary, to));
    }
}

impl<'s, T: Timestamp> NodeBuilder<'s, T> {
    fn new(scope: &Scope<'s, T>, name: &str) -> Self {
        let ports = Ports::new(&scope.build, scope.id, name);
        NodeBuilder { scope: scope.clone(), index: ports.index, ports }
    }

    pub(crate) fn core(&self) -> &Rc<Core> {
        &self.scope.build.core
    }
    pub(crate) fn query(&self) -> &Arc<Query> {
        &self.scope.build.install.query
    }
    pub(crate) fn name(&self) -> &str {
        &self.ports.name
    }

    fn port<C>(&mut self) -> (Rc<PortQueue<C>>, InputPort<T, C>) {
        let scope = &self.scope;
        let (location, connected) = self.ports.add_input(&scope.build, scope.id);
        let queue = PortQueue::new(&scope.build.core, self.index, location);
        (queue.clone(), InputPort { queue, connected, maxima: scope.maxima(), marker: PhantomData })
    }

    /// An input that takes a stream's messages on the worker that made them.
    pub(crate) fn input<C: Payload>(&mut self, stream: &Stream<'s, T, C>) -> InputPort<T, C> {
        let (queue, port) = self.port::<C>();
        stream.outlet.add(queue);
        connect(&self.scope.build, &stream.sources, port.queue.location);
        port
    }

    /// An input whose messages are split over the workers by `route`: it gives, for each worker but `None`s, what is
    /// that worker's.
    pub(crate) fn input_routed<C: Payload, M: Send + 'static>(
        &mut self,
        stream: &Stream<'s, T, C>,
        mut route: impl FnMut(C, &mut dyn FnMut(usize, M)) + 'static,
        receive: impl Fn(M) -> C + Clone + 'static,
    ) -> InputPort<T, C> {
        let build = self.scope.build.clone();
        if build.local().peers == 1 {
            return self.input(stream);
        }
        let (queue, port) = self.port::<C>();
        let channel = build.channels.borrow().len() as u32;
        build.note(("channel", channel, std::any::type_name::<M>()));
        let arriving = queue.clone();
        let unwrap = receive.clone();
        build.channels.borrow_mut().push(Box::new(move |payload: Box<dyn Any + Send>| {
            let message = payload.downcast::<(Stamp, M)>().expect("both ends of a channel are built by this function");
            let (stamp, message) = *message;
            arriving.arrive(stamp, unwrap(message));
        }));
        let core = build.core.clone();
        let sending = queue;
        let index = core.local.index;
        // Routing is a part of the node it routes to: what panics in it is named so.
        let name = format!("{}, exchange", self.ports.name);
        stream.add_stage(&name, move |stamp, payload| {
            route(payload, &mut |to, part| {
                if to == index {
                    sending.push(stamp, receive(part));
                } else {
                    core.count_stamp(sending.location, stamp, 1);
                    let payload = Box::new((stamp.clone(), part));
                    let envelope = crate::runtime::Envelope { dataflow: core.id, channel, payload };
                    core.local.outgoing.borrow_mut().push((to, envelope));
                }
            });
        });
        connect(&self.scope.build, &stream.sources, port.queue.location);
        port
    }

    /// An output, reached from every input by `summary`.
    pub(crate) fn output_by<C: Payload>(&mut self, summary: Summary) -> (OutputPort<T, C>, Stream<'s, T, C>) {
        let scope = self.scope.clone();
        let location = self.ports.add_output(&scope.build, scope.id, summary);
        let outlet = Outlet::new();
        let core = scope.build.core.clone();
        let port = OutputPort { location, outlet: outlet.clone(), core, marker: PhantomData };
        let sources = Rc::new(vec![(location, Summary::identity(T::COORDINATES))]);
        (port, Stream { scope, outlet, sources })
    }

    /// An output, reached from every input made before it.
    pub(crate) fn output<C: Payload>(&mut self) -> (OutputPort<T, C>, Stream<'s, T, C>) {
        self.output_by(Summary::identity(T::COORDINATES))
    }

    /// Connects the input made last with all outputs made before it: those of a feedback, which come first.
    pub(crate) fn connect_back(&mut self, summary: Summary) {
        let ports = &mut self.ports;
        let input = *ports.inputs.last().expect("called after an input was made");
        ports.internal.extend(ports.outputs.iter().map(|output| (input, *output, summary)));
    }

    /// An output that is reached from no input, but born with a capability at the first time.
    pub(crate) fn source<C: Payload>(&mut self) -> (OutputPort<T, C>, Stream<'s, T, C>) {
        let (port, stream) = self.output_by(Summary::identity(T::COORDINATES));
        self.ports.internal.retain(|(_, to, _)| *to != port.location);
        self.scope.build.births.borrow_mut().push(port.location);
        (port, stream)
    }

    /// Calls `Node::output_moved` when the frontier at an output port moved.
    pub(crate) fn watch_outputs(&mut self) {
        self.ports.watched = true;
    }

    pub(crate) fn finish(self, interest: Interest, node: impl Node + 'static) {
        self.ports.finish(&self.scope.build, interest, Box::new(node));
    }
}
