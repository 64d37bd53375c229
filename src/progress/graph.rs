//! The graph that a tracker works on: locations in nested scopes, and edges with summaries.
//!
//! ```text
//! scope 0 (root)      input ─▶ ┌ scope 1 (loop) ──────────────┐ ─▶ output
//!                              │  in ─▶ out ─▶ feedback ─┐    │
//!                              │  ▲──────────────────────┘    │
//!                              └──────────────────────────────┘
//! ```
//! A location is a port (or a virtual one: a junction of many edges, without a node). An edge joins two locations:
//! the output of one node with the input of another, or an input with an output inside a node. Edges cross scopes
//! by their summaries, so a nested scope has no ports of its own. Building costs time in proportion to locations
//! and edges (and a sort of these). Next stop: `positions`, then `tracker`.

use super::{GraphError, Summary, positions};
use crate::order::{Coords, MAX_COORDINATES};
use std::collections::HashMap;
use std::fmt;

/// An input port, an output port, or a virtual location; dense from 0 in the order of the `add_` calls.
pub type Location = u32;

/// A scope of a graph; dense from the root in the order of the `add_scope` calls.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ScopeId(pub u32);

impl ScopeId {
    /// The outermost scope.
    pub const ROOT: ScopeId = ScopeId(0);
}

/// What a location is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A node's input port: pointstamps there are messages on their way.
    Input,
    /// A node's output port: pointstamps there are capabilities.
    Output,
    /// A location without a node: it never has pointstamps of its own.
    Virtual,
}

pub(super) struct Scope {
    pub name: String,
    pub parent: ScopeId,
    /// 0 for the root.
    pub depth: u8,
    /// Coordinates of the times in it.
    pub len: u8,
    pub maxima: [u64; MAX_COORDINATES],
    /// Positions of the units that contain it, from the root's on: `depth` of them count.
    pub path: [u32; MAX_COORDINATES + 1],
}

pub(super) struct Place {
    pub scope: ScopeId,
    /// Among the units (locations and nested scopes) of its scope, from 0.
    pub position: u32,
    pub kind: Kind,
}

/// One edge, seen from its source.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub target: Location,
    /// Index among the graph's distinct summaries.
    pub summary: u32,
}

/// A checked graph with positions. Shared by the replicas of one process, immutable.
pub struct Graph {
    name: String,
    pub(super) scopes: Vec<Scope>,
    pub(super) places: Vec<Place>,
    names: Vec<String>,
    // Edges by source: those of `location` are `edges[offsets[location]..offsets[location + 1]]`.
    offsets: Vec<u32>,
    edges: Vec<Edge>,
    // The identities come first: `identity_count` of them.
    summaries: Vec<Summary>,
    identity_count: u32,
}

impl Graph {
    /// The name given to the builder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many locations there are.
    pub fn location_count(&self) -> usize {
        self.places.len()
    }

    /// The name given to a location.
    pub fn location_name(&self, location: Location) -> &str {
        &self.names[location as usize]
    }

    /// What a location is.
    pub fn kind(&self, location: Location) -> Kind {
        self.places[location as usize].kind
    }

    /// A location's scope.
    pub fn scope(&self, location: Location) -> ScopeId {
        self.places[location as usize].scope
    }

    /// How many coordinates the times at a location have.
    pub fn coordinates(&self, location: Location) -> usize {
        self.scopes[self.scope(location).0 as usize].len as usize
    }

    /// A location's edges: the targets and what a time becomes on the way.
    pub fn edges(&self, location: Location) -> impl Iterator<Item = (Location, &Summary)> + '_ {
        self.edges_of(location).iter().map(|edge| (edge.target, &self.summaries[edge.summary as usize]))
    }

    #[inline]
    pub(super) fn edges_of(&self, location: Location) -> &[Edge] {
        let index = location as usize;
        &self.edges[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// What `time` becomes across `edge`, or nothing beyond a maximum.
    #[inline]
    pub(super) fn cross(&self, edge: Edge, time: &Coords) -> Option<Coords> {
        if edge.summary < self.identity_count {
            return Some(*time);
        }
        let scope = self.places[edge.target as usize].scope;
        self.summaries[edge.summary as usize].apply(time, &self.scopes[scope.0 as usize].maxima)
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("name", &self.name)
            .field("scopes", &self.scopes.len())
            .field("locations", &self.places.len())
            .field("edges", &self.edges.len())
            .finish()
    }
}

/// Collects scopes, locations and edges; [`build`](GraphBuilder::build) checks them.
pub struct GraphBuilder {
    name: String,
    scopes: Vec<Scope>,
    places: Vec<Place>,
    names: Vec<String>,
    edges: Vec<(Location, Location, Summary)>,
}

impl GraphBuilder {
    /// A graph whose outermost times have `root_coordinates` coordinates, each at most its one of `maxima`.
    ///
    /// # Panics
    /// If there are fewer maxima than coordinates, or more coordinates than [`MAX_COORDINATES`].
    pub fn new(name: impl Into<String>, root_coordinates: usize, maxima: &[u64]) -> Self {
        let mut all = [0; MAX_COORDINATES];
        all[..root_coordinates].copy_from_slice(&maxima[..root_coordinates]);
        let name = name.into();
        let root = Scope {
            name: name.clone(),
            parent: ScopeId::ROOT,
            depth: 0,
            len: root_coordinates as u8,
            maxima: all,
            path: [0; MAX_COORDINATES + 1],
        };
        GraphBuilder { name, scopes: vec![root], places: Vec::new(), names: Vec::new(), edges: Vec::new() }
    }

    /// A scope inside `parent`: one more coordinate, of at most `maximum`.
    pub fn add_scope(&mut self, parent: ScopeId, name: impl Into<String>, maximum: u64) -> ScopeId {
        let outer = &self.scopes[parent.0 as usize];
        let (mut maxima, len) = (outer.maxima, outer.len as usize);
        if let Some(last) = maxima.get_mut(len) {
            *last = maximum;
        }
        // One that is too deep is refused by `build`, by name; until then its counts only must not wrap.
        let (depth, len) = (outer.depth.saturating_add(1), outer.len.saturating_add(1));
        let path = [0; MAX_COORDINATES + 1];
        self.scopes.push(Scope { name: name.into(), parent, depth, len, maxima, path });
        ScopeId((self.scopes.len() - 1) as u32)
    }

    /// How many coordinates the times in `scope` have.
    pub fn coordinates(&self, scope: ScopeId) -> usize {
        self.scopes[scope.0 as usize].len as usize
    }

    /// A node's input port; `name` says node and port, for errors.
    pub fn add_input(&mut self, scope: ScopeId, name: impl Into<String>) -> Location {
        self.add(scope, name.into(), Kind::Input)
    }

    /// A node's output port; `name` says node and port, for errors.
    pub fn add_output(&mut self, scope: ScopeId, name: impl Into<String>) -> Location {
        self.add(scope, name.into(), Kind::Output)
    }

    /// A location without a node, where many edges meet.
    pub fn add_virtual(&mut self, scope: ScopeId, name: impl Into<String>) -> Location {
        self.add(scope, name.into(), Kind::Virtual)
    }

    fn add(&mut self, scope: ScopeId, name: String, kind: Kind) -> Location {
        assert!((scope.0 as usize) < self.scopes.len(), "scope {scope:?} is of another graph");
        self.places.push(Place { scope, position: 0, kind });
        self.names.push(name);
        Location::try_from(self.places.len() - 1).expect("memory ends before 2^32 locations")
    }

    /// An edge: a time at `from` may become `summary` of it at `to`.
    ///
    /// # Panics
    /// If a location is unknown.
    pub fn connect(&mut self, from: Location, to: Location, summary: Summary) {
        let count = self.places.len();
        assert!((from as usize) < count && (to as usize) < count, "an edge {from} -> {to} among {count} locations");
        self.edges.push((from, to, summary));
    }

    /// Checks the graph and gives each location its position.
    ///
    /// # Errors
    /// What cannot be tracked or could never finish, by name.
    pub fn build(mut self) -> Result<Graph, GraphError> {
        self.edges.sort_unstable();
        self.edges.dedup();
        positions::assign(&mut self.scopes, &mut self.places, &self.names, &self.edges)?;

        let mut summaries: Vec<Summary> = (0..=MAX_COORDINATES).map(Summary::identity).collect();
        let identity_count = summaries.len() as u32;
        let mut index_of: HashMap<Summary, u32> = summaries.iter().copied().zip(0..).collect();
        let mut offsets = vec![0; self.places.len() + 1];
        let mut edges = Vec::with_capacity(self.edges.len());
        for &(from, target, summary) in &self.edges {
            let summary = *index_of.entry(summary).or_insert_with(|| {
                summaries.push(summary);
                (summaries.len() - 1) as u32
            });
            edges.push(Edge { target, summary });
            offsets[from as usize + 1] += 1;
        }
        for index in 1..offsets.len() {
            offsets[index] += offsets[index - 1];
        }
        let GraphBuilder { name, scopes, places, names, .. } = self;
        Ok(Graph { name, scopes, places, names, offsets, edges, summaries, identity_count })
    }
}
