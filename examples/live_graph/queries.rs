//! The dataflows: one that keeps the graph indexed, and the queries that attach to it.
//!
//! ```text
//! edges ──┬─ by source ─ published ──► out-degrees, two-hop, needs        import: the same index, no copy
//!         └─ by target ─ published ──► two-hop users, needed by
//!                              both ──► components
//! ```
//!
//! Every result is pairs of numbers, so that one kind of subscription serves all. Next stop: `live`.

use crate::plain::Plain;
use kpg::prelude::*;

/// Neighbours by node, shared.
pub type Index = Published<u32, u32>;

/// The graph, indexed both ways.
pub struct Edges {
    /// Targets by source.
    pub by_source: Index,
    /// Sources by target.
    pub by_target: Index,
}

/// What a query hands to its client: the input of its arguments, if it has any, and its changes.
pub type Handles = (Option<Input<u64, u32>>, Subscription<u64, (u32, u32)>);

/// Installs the dataflow that maintains the graph.
///
/// # Errors
/// Those of `Engine::install`.
pub fn graph(engine: &Engine) -> Result<(Query, Input<u64, (u32, u32)>, Edges), kpg::Error> {
    let (query, (input, edges)) = engine.install("graph", |scope| {
        let (input, edges) = scope.input::<(u32, u32)>();
        let by_source = edges.arrange_named("by source").publish();
        let by_target = edges.map(|(source, target)| (target, source)).arrange_named("by target").publish();
        (input, Edges { by_source, by_target })
    })?;
    Ok((query, input, edges))
}

/// What can be asked of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// (node, how many targets it has).
    OutDegrees,
    /// (argument, node two edges on).
    TwoHop,
    /// (argument, node two edges back).
    TwoHopUsers,
    /// (argument, node that it needs, itself included).
    Needs,
    /// (argument, node that needs it, itself included).
    NeededBy,
    /// (node, smallest node of its component).
    Components,
}

impl Kind {
    /// Its name in tables and errors.
    pub fn name(self) -> &'static str {
        match self {
            Kind::OutDegrees => "out-degrees",
            Kind::TwoHop => "two-hop",
            Kind::TwoHopUsers => "two-hop users",
            Kind::Needs => "needs",
            Kind::NeededBy => "needed by",
            Kind::Components => "components",
        }
    }

    /// Installs it over the published graph.
    ///
    /// # Errors
    /// Those of `Engine::install`.
    pub fn install(self, engine: &Engine, edges: &Edges) -> Result<(Query, Handles), kpg::Error> {
        engine.install(self.name(), |scope| match self {
            Kind::OutDegrees => (None, out_degrees(scope, &edges.by_source)),
            Kind::TwoHop => two_hop(scope, &edges.by_source),
            Kind::TwoHopUsers => two_hop(scope, &edges.by_target),
            Kind::Needs => reach(scope, &edges.by_source),
            Kind::NeededBy => reach(scope, &edges.by_target),
            Kind::Components => (None, components(scope, edges)),
        })
    }

    /// The same in plain Rust, sorted.
    pub fn plain(self, plain: &Plain, arguments: &[u32]) -> Vec<(u32, u32)> {
        match self {
            Kind::OutDegrees => plain.out_degrees().into_iter().map(|(node, degree)| (node, degree as u32)).collect(),
            Kind::TwoHop => plain.two_hop(arguments),
            Kind::TwoHopUsers => plain.two_hop_users(arguments),
            Kind::Needs => plain.needs_of_each(arguments),
            Kind::NeededBy => plain.needed_by_each(arguments),
            Kind::Components => plain.components(),
        }
    }
}

fn out_degrees(scope: &Scope<'_, u64>, edges: &Index) -> Subscription<u64, (u32, u32)> {
    let degrees = edges.import(scope).reduce(|_, targets, degree| degree.push((targets.len() as u32, 1)));
    degrees.as_collection(|node, degree| (node, degree)).subscribe()
}

fn two_hop(scope: &Scope<'_, u64>, edges: &Index) -> Handles {
    let (input, arguments) = scope.input::<u32>();
    let edges = edges.import(scope);
    let once = arguments
        .map(|argument| (argument, argument))
        .arrange_by_key()
        .join_core(&edges, |_, argument, middle| Some((middle, argument)));
    let twice = once.arrange_by_key().join_core(&edges, |_, argument, node| Some((argument, node)));
    (Some(input), twice.distinct().subscribe())
}

fn reach(scope: &Scope<'_, u64>, edges: &Index) -> Handles {
    let (input, arguments) = scope.input::<u32>();
    let edges = edges.import(scope);
    let reached = arguments.map(|argument| (argument, argument)).iterate(|inner, reached| {
        let arguments = arguments.map(|argument| (argument, argument)).enter(inner);
        reached
            .arrange_by_key()
            .join_core(&edges.enter(inner), |_, argument, next| Some((next, argument)))
            .concat(&arguments)
            .distinct()
    });
    (Some(input), reached.map(|(node, argument)| (argument, node)).subscribe())
}

/// Each node has its own number as its label, or the smallest that a neighbour has.
///
/// Small numbers come into the loop first, those of a class of like size together: when the larger ones come, nearly
/// all nodes have a smaller label already, and theirs goes nowhere. If all came at once, a node with ten thousand
/// neighbours would first get ten thousand labels, and the loop would have to remember when each came and went.
fn components(scope: &Scope<'_, u64>, edges: &Edges) -> Subscription<u64, (u32, u32)> {
    let forward = edges.by_source.import(scope);
    let backward = edges.by_target.import(scope);
    let own = forward.flat_map_ref(|source, target| [(source, source), (target, target)]).consolidate();
    let labels = scope.iterative(|inner| {
        let (forward, backward) = (forward.enter(inner), backward.enter(inner));
        let own = own.enter_at(inner, |(node, _)| ROUNDS_A_CLASS * (u32::BITS - node.leading_zeros()));
        let labels = Variable::new(inner);
        let arranged = labels.arrange_by_key();
        let from_sources = arranged.join_core(&forward, |_, label, target| Some((target, label)));
        let from_targets = arranged.join_core(&backward, |_, label, source| Some((source, label)));
        let smallest = from_sources
            .concat(&from_targets)
            .concat(&own)
            .arrange_by_key()
            .reduce_named("smallest", |_, labels, smallest| smallest.push((labels[0].0, 1)))
            .as_collection(|node, label| (node, label));
        labels.set(&smallest).leave()
    });
    labels.subscribe()
}

/// Rounds that labels of one class have for themselves; more than most graphs need, and free where nothing happens.
const ROUNDS_A_CLASS: u32 = 256;
