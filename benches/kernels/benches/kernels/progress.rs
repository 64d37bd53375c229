//! Frontiers from counts: one capability moves on, and all that follows from it does.
#![forbid(unsafe_code)]

use crate::data::fold;
use kpg::order::Coords;
use kpg::progress::{GraphBuilder, Location, ScopeId, Summary, Tracker};
use kpg_bench::limits::Minima;
use kpg_bench::{Clock, Lab};
use std::sync::Arc;

/// A graph of nodes with one input and one output each; node 0 has an output only.
struct Made {
    graph: GraphBuilder,
    // Sources of each location, for the limit.
    sources: Vec<Vec<usize>>,
    scope: ScopeId,
    coordinates: usize,
}

impl Made {
    fn new() -> (Self, Location) {
        let mut graph = GraphBuilder::new("bench", 1, &[u64::MAX]);
        let source = graph.add_output(ScopeId::ROOT, "source");
        (Made { graph, sources: vec![vec![]], scope: ScopeId::ROOT, coordinates: 1 }, source)
    }
    /// A node after these outputs; its output.
    fn node(&mut self, after: &[Location], summary: Summary) -> Location {
        let input = self.graph.add_input(self.scope, "input");
        let output = self.graph.add_output(self.scope, "output");
        after.iter().for_each(|from| self.graph.connect(*from, input, summary));
        self.graph.connect(input, output, Summary::identity(self.coordinates));
        self.sources.push(after.iter().map(|from| *from as usize).collect());
        self.sources.push(vec![input as usize]);
        output
    }
}

pub fn benches(lab: &mut Lab) {
    let nodes = lab.size(100, 10);
    let (mut made, source) = Made::new();
    let last = (0..nodes).fold(source, |from, _| made.node(&[from], Summary::identity(1)));
    compare(lab, format!("chain of {nodes}"), made, source, last);

    let (mut made, source) = Made::new();
    let middle: Vec<_> = (0..nodes).map(|_| made.node(&[source], Summary::identity(1))).collect();
    let last = made.node(&middle, Summary::identity(1));
    compare(lab, format!("fan of {nodes}"), made, source, last);

    let nodes = lab.size(10, 3);
    let (mut made, source) = Made::new();
    made.scope = made.graph.add_scope(ScopeId::ROOT, "loop", 1 << 20);
    made.coordinates = 2;
    let first = made.node(&[source], Summary::enter(1));
    let head = first - 1;
    let last = (1..nodes).fold(first, |from, _| made.node(&[from], Summary::identity(2)));
    made.graph.connect(last, head, Summary::step(2, 1));
    (made.scope, made.coordinates) = (ScopeId::ROOT, 1);
    let out = made.node(&[last], Summary::leave(2));
    compare(lab, format!("loop of {nodes}"), made, source, out);
}

/// A capability at `source` moves from time to time; the time at `last` is looked at.
fn compare(lab: &mut Lab, what: String, made: Made, source: Location, last: Location) {
    let rounds = lab.size(1_000, 20);
    let places = made.sources.len() as u64 - 1;
    let graph = Arc::new(made.graph.build().expect("each loop steps"));
    let mut minima = Minima::new(&made.sources);
    lab.compare(Clock::Thread, "progress", format!("{what}, {places} frontiers"), rounds * places, |c| {
        c.run(
            "kpg",
            || {
                let mut tracker = Tracker::new(graph.clone());
                tracker.update(source, Coords::new(&[0]), 1);
                tracker.propagate(|_| {});
                tracker
            },
            |mut tracker| {
                let (mut sum, mut changes) = (0, 0);
                for time in 1..=rounds {
                    tracker.update(source, Coords::new(&[time]), 1);
                    tracker.update(source, Coords::new(&[time - 1]), -1);
                    tracker.propagate(|_| changes += 1);
                    let frontier = tracker.frontier(last).as_single().expect("one capability");
                    sum = fold(sum, frontier.as_slice()[0]);
                }
                assert_eq!(changes, rounds * (places + 1), "each frontier moves each time");
                (tracker, sum)
            },
            |(_, sum)| *sum,
        );
        c.run(
            "minima in order, without counts",
            || (),
            |()| (1..=rounds).fold(0, |sum, time| fold(sum, minima.advance(std::hint::black_box(time)))),
            |sum| *sum,
        );
    });
}
