//! The worked example of Naiad (SOSP 2013, section 2): one loop, count by count.
//!
//! ```text
//! Input ─▶ [Ingress] ─▶ [A] ─▶ [Egress] ─▶ Output
//!                        ▲  │
//!                        │  ▼
//!                      [Feedback]
//! ```
//! In both forms: Ingress, Egress and Feedback as nodes, and as edges with summaries.
#![forbid(unsafe_code)]

use kpg::order::{Antichain, Coords};
use kpg::progress::{GraphBuilder, GraphError, Location, ScopeId, Summary, Tracker};
use std::sync::Arc;

fn time<const N: usize>(coordinates: [u64; N]) -> Coords {
    Coords::new(&coordinates)
}

fn frontier<const N: usize, const M: usize>(times: [[u64; N]; M]) -> Antichain<Coords> {
    times.into_iter().map(time).collect()
}

/// Applies one step's changes as one batch, and checks what counts stand then, anywhere.
fn step(tracker: &mut Tracker, changes: &[(Location, Coords, i64)], counts: &[(Location, Coords, i64)]) {
    changes.iter().for_each(|&(location, time, diff)| tracker.update(location, time, diff));
    tracker.propagate(|_| {});
    tracker.check_invariants();
    let mut standing = Vec::new();
    for location in 0..tracker.graph().location_count() as Location {
        standing.extend(tracker.counts(location).iter().map(|&(time, count)| (location, time, count)));
    }
    let mut counts = counts.to_vec();
    counts.sort_unstable();
    assert_eq!(standing, counts);
}

#[test]
fn system_vertices_as_nodes() {
    let mut graph = GraphBuilder::new("naiad", 1, &[u64::MAX]);
    let root = ScopeId::ROOT;
    let inner = graph.add_scope(root, "loop", u64::MAX);
    let input = graph.add_output(root, "Input, output 0");
    let ingress = (graph.add_input(root, "Ingress, input 0"), graph.add_output(inner, "Ingress, output 0"));
    let a = (graph.add_input(inner, "A, input 0"), graph.add_output(inner, "A, output 0"));
    let feedback = (graph.add_input(inner, "Feedback, input 0"), graph.add_output(inner, "Feedback, output 0"));
    let egress = (graph.add_input(inner, "Egress, input 0"), graph.add_output(root, "Egress, output 0"));
    let output = graph.add_input(root, "Output, input 0");
    graph.connect(ingress.0, ingress.1, Summary::enter(1));
    graph.connect(a.0, a.1, Summary::identity(2));
    graph.connect(feedback.0, feedback.1, Summary::step(2, 1));
    graph.connect(egress.0, egress.1, Summary::leave(2));
    graph.connect(input, ingress.0, Summary::identity(1));
    graph.connect(ingress.1, a.0, Summary::identity(2));
    graph.connect(a.1, feedback.0, Summary::identity(2));
    graph.connect(feedback.1, a.0, Summary::identity(2));
    graph.connect(a.1, egress.0, Summary::identity(2));
    graph.connect(egress.1, output, Summary::identity(1));
    let mut tracker = Tracker::new(Arc::new(graph.build().expect("the loop has a feedback")));
    let tracker = &mut tracker;

    // Input sends 3 messages at epoch 1 and moves to epoch 2; Ingress passes them on.
    step(tracker, &[(input, time([1]), 1)], &[(input, time([1]), 1)]);
    let sent = [(ingress.0, time([1]), 3), (input, time([1]), -1), (input, time([2]), 1)];
    step(tracker, &sent, &[(ingress.0, time([1]), 3), (input, time([2]), 1)]);
    let passed = [(ingress.0, time([1]), -3), (a.0, time([1, 0]), 3)];
    step(tracker, &passed, &[(a.0, time([1, 0]), 3), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // A takes the messages and a capability.
    let taken = [(a.0, time([1, 0]), -3), (a.1, time([1, 0]), 1)];
    step(tracker, &taken, &[(a.1, time([1, 0]), 1), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 1], [2, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // A sends 2 to Egress and 1 to Feedback, and drops its capability.
    let sent = [(egress.0, time([1, 0]), 2), (feedback.0, time([1, 0]), 1), (a.1, time([1, 0]), -1)];
    let standing = [(egress.0, time([1, 0]), 2), (feedback.0, time([1, 0]), 1), (input, time([2]), 1)];
    step(tracker, &sent, &standing);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 1], [2, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // Feedback passes its message on, one iteration later.
    let passed = [(feedback.0, time([1, 0]), -1), (a.0, time([1, 1]), 1)];
    step(tracker, &passed, &[(egress.0, time([1, 0]), 2), (a.0, time([1, 1]), 1), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 1], [2, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // A takes (1,1) and sends one message to Egress.
    let sent = [(a.0, time([1, 1]), -1), (egress.0, time([1, 1]), 1)];
    let standing = [(egress.0, time([1, 0]), 2), (egress.0, time([1, 1]), 1), (input, time([2]), 1)];
    step(tracker, &sent, &standing);
    assert_eq!(*tracker.frontier(a.0), frontier([[2, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // Egress passes its messages out; Output takes them.
    let passed = [(egress.0, time([1, 0]), -2), (egress.0, time([1, 1]), -1), (output, time([1]), 3)];
    step(tracker, &passed, &[(output, time([1]), 3), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(output), frontier([[1]]), "not before Output has taken them");
    step(tracker, &[(output, time([1]), -3)], &[(input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[2, 0]]));
    assert_eq!(*tracker.frontier(egress.0), frontier([[2, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[2]]));

    step(tracker, &[(input, time([2]), -1)], &[]);
    assert!(tracker.is_empty() && tracker.frontier(output).is_empty() && tracker.frontier(a.0).is_empty());
}

#[test]
fn system_vertices_as_edges() {
    let mut graph = GraphBuilder::new("naiad", 1, &[u64::MAX]);
    let inner = graph.add_scope(ScopeId::ROOT, "loop", u64::MAX);
    let input = graph.add_output(ScopeId::ROOT, "Input, output 0");
    let a = (graph.add_input(inner, "A, input 0"), graph.add_output(inner, "A, output 0"));
    let output = graph.add_input(ScopeId::ROOT, "Output, input 0");
    graph.connect(a.0, a.1, Summary::identity(2));
    graph.connect(input, a.0, Summary::enter(1));
    graph.connect(a.1, a.0, Summary::step(2, 1));
    graph.connect(a.1, output, Summary::leave(2));
    let mut tracker = Tracker::new(Arc::new(graph.build().expect("the loop has a feedback")));
    let tracker = &mut tracker;

    step(tracker, &[(input, time([1]), 1)], &[(input, time([1]), 1)]);
    let sent = [(a.0, time([1, 0]), 3), (input, time([1]), -1), (input, time([2]), 1)];
    step(tracker, &sent, &[(a.0, time([1, 0]), 3), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    let taken = [(a.0, time([1, 0]), -3), (a.1, time([1, 0]), 1)];
    step(tracker, &taken, &[(a.1, time([1, 0]), 1), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 1], [2, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    // Sending to Feedback and Feedback's passing on are one: steps 3 and 4.
    let sent = [(output, time([1]), 2), (a.0, time([1, 1]), 1), (a.1, time([1, 0]), -1)];
    step(tracker, &sent, &[(output, time([1]), 2), (a.0, time([1, 1]), 1), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[1, 1], [2, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    let sent = [(a.0, time([1, 1]), -1), (output, time([1]), 1)];
    step(tracker, &sent, &[(output, time([1]), 3), (input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[2, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[1]]));

    step(tracker, &[(output, time([1]), -3)], &[(input, time([2]), 1)]);
    assert_eq!(*tracker.frontier(a.0), frontier([[2, 0]]));
    assert_eq!(*tracker.frontier(output), frontier([[2]]));
}

#[test]
fn a_feedback_that_does_not_advance_is_refused() {
    let mut graph = GraphBuilder::new("naiad", 1, &[u64::MAX]);
    let inner = graph.add_scope(ScopeId::ROOT, "loop", u64::MAX);
    let a = (graph.add_input(inner, "A, input 0"), graph.add_output(inner, "A, output 0"));
    let feedback = (graph.add_input(inner, "Feedback, input 0"), graph.add_output(inner, "Feedback, output 0"));
    graph.connect(a.0, a.1, Summary::identity(2));
    graph.connect(feedback.0, feedback.1, Summary::step(2, 0));
    graph.connect(a.1, feedback.0, Summary::identity(2));
    graph.connect(feedback.1, a.0, Summary::identity(2));
    let error = graph.build().expect_err("nothing grows");
    let GraphError::NotAdvancing { cycle } = &error else { panic!("{error}") };
    assert_eq!(cycle.len(), 4);
    assert!(error.to_string().contains("Feedback, input 0 -> Feedback, output 0"), "{error}");
}
