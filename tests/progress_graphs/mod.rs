//! Random nested graphs for the tests of progress, and a brute-force reading of them. Included by tests and by the fuzz
//! target `tracker`, which share `check`: the tracker against that reading.
//!
//! Units are laid out in a random tree of scopes. What leads forward in that layout is a plain edge, composed of
//! leaves and enters; what leads back goes through a feedback of a scope around both, or across an edge that steps.
#![allow(dead_code)]
#![forbid(unsafe_code)]

use kpg::order::{Coords, MAX_COORDINATES, PartialOrder};
use kpg::progress::{Graph, GraphBuilder, Kind, Location, ScopeId, Summary};
use std::collections::{BTreeMap, BTreeSet};

pub mod check;
#[path = "../oracle/rng.rs"]
mod rng;

pub use rng::Rng;

pub struct Node {
    pub inputs: Vec<Location>,
    pub outputs: Vec<Location>,
    scope: ScopeId,
    // Numbers of the units around it, outermost first, its own last.
    layout: Vec<usize>,
}

pub struct World {
    pub graph: Graph,
    /// Nodes, sources first, feedbacks last. Junctions are no nodes.
    pub nodes: Vec<Node>,
    pub root: usize,
    pub maxima: Vec<Vec<u64>>,
}

struct Builder<'r> {
    rng: &'r mut Rng,
    graph: GraphBuilder,
    root: usize,
    parents: Vec<ScopeId>,
    nodes: Vec<Node>,
    maximum: u64,
    maxima: Vec<Vec<u64>>,
}

/// A random graph: `root` outermost coordinates, each coordinate at most `maximum`.
pub fn random(rng: &mut Rng, root: usize, maximum: u64) -> World {
    let maxima = vec![maximum; root];
    let graph = GraphBuilder::new("random", root, &maxima);
    let parents = vec![ScopeId::ROOT];
    let mut b = Builder { rng, graph, root, parents, nodes: Vec::new(), maximum, maxima: vec![maxima] };
    let source = b.graph.add_output(ScopeId::ROOT, "source, port 0");
    b.nodes.push(Node { inputs: vec![], outputs: vec![source], scope: ScopeId::ROOT, layout: vec![0] });
    b.fill(ScopeId::ROOT, &[], 1);
    b.connect();
    let (nodes, maxima) = (b.nodes, b.maxima);
    let graph = b.graph.build().expect("laid out so that it can be tracked");
    let nodes = nodes.into_iter().filter(|n| n.inputs != n.outputs).collect();
    World { graph, nodes, root, maxima }
}

impl Builder<'_> {
    fn fill(&mut self, scope: ScopeId, outer: &[usize], first: usize) {
        for unit in first..first + 2 + self.rng.below(3) {
            let layout = [outer, &[unit]].concat();
            if self.rng.chance(35) && outer.len() < 3 && self.graph.coordinates(scope) < MAX_COORDINATES {
                let nested = self.graph.add_scope(scope, format!("scope {layout:?}"), self.maximum);
                self.parents.push(scope);
                let mut maxima = self.maxima[scope.0 as usize].clone();
                maxima.push(self.maximum);
                self.maxima.push(maxima);
                self.fill(nested, &layout, 0);
            } else {
                self.node(scope, layout);
            }
        }
    }

    fn node(&mut self, scope: ScopeId, layout: Vec<usize>) {
        if self.rng.chance(15) {
            let junction = self.graph.add_virtual(scope, format!("junction {layout:?}"));
            self.nodes.push(Node { inputs: vec![junction], outputs: vec![junction], scope, layout });
            return;
        }
        let len = self.graph.coordinates(scope);
        let inputs: Vec<_> = (0..1 + self.rng.below(2))
            .map(|port| self.graph.add_input(scope, format!("node {layout:?}, input {port}")))
            .collect();
        let outputs: Vec<_> = (0..self.rng.below(3))
            .map(|port| self.graph.add_output(scope, format!("node {layout:?}, output {port}")))
            .collect();
        for &input in &inputs {
            for &output in &outputs {
                if self.rng.chance(80) {
                    let steps = len > 0 && self.rng.chance(10);
                    let inside = if steps { Summary::step(len, 1) } else { Summary::identity(len) };
                    self.graph.connect(input, output, inside);
                }
            }
        }
        self.nodes.push(Node { inputs, outputs, scope, layout });
    }

    /// The scopes from `scope` to the root.
    fn around(&self, scope: ScopeId) -> Vec<ScopeId> {
        let mut out = vec![scope];
        while *out.last().unwrap() != ScopeId::ROOT {
            out.push(self.parents[out.last().unwrap().0 as usize]);
        }
        out
    }

    /// Leaves to `via`, perhaps steps there, enters to `to`.
    fn way(&self, from: ScopeId, via: ScopeId, to: ScopeId, by: u64) -> Summary {
        let [from, via, to] = [from, via, to].map(|scope| self.graph.coordinates(scope));
        let mut way = Summary::identity(from);
        for len in (via + 1..=from).rev() {
            way = way.then(&Summary::leave(len)).unwrap();
        }
        if by > 0 {
            way = way.then(&Summary::step(via, by)).unwrap();
        }
        (via..to).fold(way, |way, len| way.then(&Summary::enter(len)).unwrap())
    }

    fn connect(&mut self) {
        let count = self.nodes.len();
        for target in 1..count {
            for _ in 0..self.nodes[target].inputs.len() + self.rng.below(2) {
                let input = self.nodes[target].inputs[self.rng.below(self.nodes[target].inputs.len())];
                let source = self.rng.below(count);
                if self.nodes[source].outputs.is_empty() {
                    continue;
                }
                let output = self.nodes[source].outputs[self.rng.below(self.nodes[source].outputs.len())];
                self.edge(source, output, target, input);
            }
        }
    }

    fn edge(&mut self, source: usize, output: Location, target: usize, input: Location) {
        let (from, to) = (self.nodes[source].scope, self.nodes[target].scope);
        let outer = self.around(to);
        let common: Vec<_> = self.around(from).into_iter().filter(|scope| outer.contains(scope)).collect();
        if self.nodes[source].layout < self.nodes[target].layout && self.rng.chance(90) {
            let way = self.way(from, common[0], to, 0);
            self.graph.connect(output, input, way);
            return;
        }
        let via = common[self.rng.below(common.len())];
        let len = self.graph.coordinates(via);
        if len == 0 {
            return;
        }
        let by = 1 + self.rng.below(2) as u64;
        if self.rng.chance(30) {
            let way = self.way(from, via, to, by);
            self.graph.connect(output, input, way);
            return;
        }
        let value = self.graph.add_input(via, format!("feedback of {source} to {target}, input"));
        let again = self.graph.add_output(via, format!("feedback of {source} to {target}, output"));
        self.graph.connect(value, again, Summary::step(len, by));
        let (there, back) = (self.way(from, via, via, 0), self.way(via, via, to, 0));
        self.graph.connect(output, value, there);
        self.graph.connect(again, input, back);
        self.nodes.push(Node { inputs: vec![value], outputs: vec![again], scope: via, layout: vec![] });
    }
}

impl World {
    pub fn maxima(&self, location: Location) -> [u64; MAX_COORDINATES] {
        let mut out = [0; MAX_COORDINATES];
        let maxima = &self.maxima[self.graph.scope(location).0 as usize];
        out[..maxima.len()].copy_from_slice(maxima);
        out
    }

    pub fn locations(&self) -> std::ops::Range<Location> {
        0..self.graph.location_count() as Location
    }

    /// A random time with coordinates of at most `most`.
    pub fn time(&self, rng: &mut Rng, location: Location, most: u64) -> Coords {
        let mut time = Coords::zero(self.graph.coordinates(location));
        time.as_mut_slice().iter_mut().for_each(|x| *x = rng.below(most as usize + 1) as u64);
        time
    }

    /// Where a message sent at `time` from `output` arrives: all inputs reached without a node between.
    pub fn arrivals(&self, output: Location, time: Coords) -> Vec<(Location, Coords)> {
        let mut out = Vec::new();
        for (target, summary) in self.graph.edges(output) {
            let Some(time) = summary.apply(&time, &self.maxima(target)) else { continue };
            match self.graph.kind(target) {
                Kind::Virtual => out.extend(self.arrivals(target, time)),
                _ => out.push((target, time)),
            }
        }
        out
    }

    /// All (location, time) that `from` could result in, edge by edge, with no thought of which matter.
    pub fn could_result_in(&self, from: (Location, Coords)) -> BTreeSet<(Location, Coords)> {
        let mut seen = BTreeSet::from([from]);
        let mut todo = vec![from];
        while let Some((location, time)) = todo.pop() {
            for (target, summary) in self.graph.edges(location) {
                if let Some(time) = summary.apply(&time, &self.maxima(target))
                    && seen.insert((target, time))
                {
                    todo.push((target, time));
                }
            }
        }
        seen
    }

    /// For each location, the antichain of the summaries of all paths from `from`.
    pub fn paths(&self, from: Location) -> BTreeMap<Location, Vec<Summary>> {
        let start = Summary::identity(self.graph.coordinates(from));
        let mut out = BTreeMap::from([(from, vec![start])]);
        let mut todo = vec![(from, start)];
        while let Some((location, path)) = todo.pop() {
            for (target, summary) in self.graph.edges(location) {
                let path = path.then(summary).expect("small steps");
                let known = out.entry(target).or_default();
                if !known.iter().any(|p| p.less_equal(&path)) {
                    known.retain(|p| !path.less_equal(p));
                    known.push(path);
                    todo.push((target, path));
                }
            }
        }
        out
    }
}

/// The minimal ones, sorted.
pub fn minimal(times: &BTreeSet<Coords>) -> Vec<Coords> {
    times.iter().filter(|t| !times.iter().any(|u| u.less_than(t))).copied().collect()
}
