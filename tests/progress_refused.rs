//! What is refused when a graph is built, by name; what is not; maxima; and that building is near-linear.
#![forbid(unsafe_code)]

mod progress_graphs;

use kpg::order::{Antichain, Coords};
use kpg::progress::{GraphBuilder, GraphError, Location, ScopeId, Summary, Tracker};
use std::sync::Arc;

const ROOT: ScopeId = ScopeId::ROOT;

fn builder() -> (GraphBuilder, ScopeId) {
    let mut graph = GraphBuilder::new("test", 1, &[u64::MAX]);
    let inner = graph.add_scope(ROOT, "loop", u64::MAX);
    (graph, inner)
}

fn reset() -> Summary {
    Summary::leave(2).then(&Summary::enter(1)).expect("small")
}

#[test]
fn a_cycle_without_feedback() {
    let (mut graph, _) = builder();
    let (a, b) = (graph.add_input(ROOT, "map, input 0"), graph.add_output(ROOT, "map, output 0"));
    let c = graph.add_output(ROOT, "elsewhere, output 0");
    graph.connect(c, a, Summary::identity(1));
    graph.connect(a, b, Summary::identity(1));
    graph.connect(b, a, Summary::identity(1));
    let error = graph.build().expect_err("never ends");
    let GraphError::NotAdvancing { mut cycle } = error else { panic!("{error}") };
    cycle.sort_unstable();
    assert_eq!(cycle, ["map, input 0", "map, output 0"]);
}

#[test]
fn a_location_that_feeds_itself() {
    let (mut graph, inner) = builder();
    let a = graph.add_input(inner, "a, input 0");
    graph.connect(a, a, Summary::identity(2));
    assert_eq!(graph.build().expect_err("never ends"), GraphError::NotAdvancing { cycle: vec!["a, input 0".into()] });
    let (mut graph, inner) = builder();
    let a = graph.add_input(inner, "a, input 0");
    graph.connect(a, a, Summary::step(2, 1));
    assert!(graph.build().is_ok());
}

/// CASES 34: out of the loop and into the same loop again, by an edge or by way of a node outside.
#[test]
fn leaves_and_enters_again() {
    let expected =
        |from: &str, to: &str| GraphError::Reenters { scope: "loop".into(), from: from.into(), to: to.into() };
    let (mut graph, inner) = builder();
    let (a, b) = (graph.add_output(inner, "a, output 0"), graph.add_input(inner, "b, input 0"));
    graph.connect(a, b, reset());
    assert_eq!(graph.build().expect_err("refused"), expected("a, output 0", "b, input 0"));

    let (mut graph, inner) = builder();
    let (a, b) = (graph.add_output(inner, "a, output 0"), graph.add_input(inner, "b, input 0"));
    let (c, d) = (graph.add_input(ROOT, "c, input 0"), graph.add_output(ROOT, "c, output 0"));
    graph.connect(a, c, Summary::leave(2));
    graph.connect(c, d, Summary::identity(1));
    graph.connect(d, b, Summary::enter(1));
    let error = graph.build().expect_err("refused");
    assert_eq!(error, expected("a, output 0", "b, input 0"));
    assert!(error.to_string().contains("loop"));
}

#[test]
fn leaves_and_enters_again_by_an_outer_feedback() {
    let (mut graph, inner) = builder();
    let (a, b) = (graph.add_input(inner, "a, input 0"), graph.add_output(inner, "a, output 0"));
    let (c, d) = (graph.add_input(ROOT, "feedback, input 0"), graph.add_output(ROOT, "feedback, output 0"));
    graph.connect(a, b, Summary::identity(2));
    graph.connect(b, a, Summary::step(2, 1));
    graph.connect(b, c, Summary::leave(2));
    graph.connect(c, d, Summary::step(1, 1));
    graph.connect(d, a, Summary::enter(1));
    let mut tracker = Tracker::new(Arc::new(graph.build().expect("time grows outside")));
    tracker.update(b, Coords::new(&[1, 5]), 1);
    tracker.propagate(|_| {});
    tracker.check_invariants();
    assert_eq!(*tracker.frontier(a), Antichain::from([Coords::new(&[1, 6]), Coords::new(&[2, 0])]));
    tracker.update(b, Coords::new(&[1, 5]), -1);
    tracker.propagate(|_| {});
    assert!(tracker.is_empty() && tracker.frontier(a).is_empty());
}

/// One scope may be fed by another that it feeds only as long as no unit must come before itself.
#[test]
fn two_loops_that_feed_each_other() {
    let (mut graph, one) = builder();
    let two = graph.add_scope(ROOT, "second loop", u64::MAX);
    let (a, b) = (graph.add_output(one, "a, output 0"), graph.add_input(one, "b, input 0"));
    let (c, d) = (graph.add_input(two, "c, input 0"), graph.add_output(two, "d, output 0"));
    let across = reset();
    graph.connect(a, c, across);
    graph.connect(d, b, across);
    assert!(matches!(graph.build().expect_err("refused"), GraphError::Reenters { .. }));
}

#[test]
fn summaries_that_do_not_fit() {
    for summary in [Summary::identity(1), Summary::identity(2), Summary::enter(1)] {
        let (mut graph, inner) = builder();
        let sibling = graph.add_scope(ROOT, "sibling", u64::MAX);
        let (a, b) = (graph.add_output(inner, "a, output 0"), graph.add_input(sibling, "b, input 0"));
        graph.connect(a, b, summary);
        let error = graph.build().expect_err("keeps a coordinate of a foreign scope, or has the wrong count");
        assert_eq!(error, GraphError::Shape { from: "a, output 0".into(), to: "b, input 0".into() });
    }
}

#[test]
fn nested_too_deep() {
    let mut graph = GraphBuilder::new("deep", 0, &[]);
    let mut scope = ROOT;
    for level in 0..6 {
        scope = graph.add_scope(scope, format!("level {level}"), u64::MAX);
    }
    assert_eq!(graph.coordinates(scope), 6);
    scope = graph.add_scope(scope, "level 6", u64::MAX);
    graph.add_input(scope, "a, input 0");
    assert_eq!(graph.build().expect_err("seven coordinates"), GraphError::TooDeep { scope: "level 6".into() });
}

/// Six scopes inside `()`: the deepest that keys get.
#[test]
fn six_levels() {
    let mut graph = GraphBuilder::new("deep", 0, &[]);
    let source = graph.add_output(ROOT, "source, output 0");
    let sink = graph.add_input(ROOT, "sink, input 0");
    let (mut scope, mut enter, mut leave) = (ROOT, Summary::identity(0), Summary::identity(0));
    for level in 0..6 {
        scope = graph.add_scope(scope, format!("level {level}"), 3);
        enter = enter.then(&Summary::enter(level)).expect("small");
        leave = Summary::leave(level + 1).then(&leave).expect("small");
    }
    let a = graph.add_input(scope, "a, input 0");
    graph.connect(source, a, enter);
    graph.connect(a, a, Summary::step(6, 1));
    graph.connect(a, sink, leave);
    let mut tracker = Tracker::new(Arc::new(graph.build().expect("not too deep")));
    tracker.update(source, Coords::zero(0), 1);
    tracker.propagate(|_| {});
    tracker.check_invariants();
    assert_eq!(tracker.frontier(a).elements(), [Coords::zero(6)]);
    assert_eq!(tracker.frontier(sink).elements(), [Coords::zero(0)]);
}

/// INVARIANTS 27: at its type's maximum a counter yields nothing, and no frontier moves back.
#[test]
fn a_counter_at_its_maximum() {
    for maximum in [u64::from(u8::MAX), u64::from(u32::MAX), u64::MAX] {
        let mut graph = GraphBuilder::new("counter", 1, &[u64::MAX]);
        let inner = graph.add_scope(ROOT, "loop", maximum);
        let (a, b) = (graph.add_input(inner, "a, input 0"), graph.add_output(inner, "a, output 0"));
        graph.connect(a, b, Summary::identity(2));
        graph.connect(b, a, Summary::step(2, 1));
        let mut tracker = Tracker::new(Arc::new(graph.build().expect("grows")));
        let mut before: Option<Antichain<Coords>> = None;
        for round in maximum - 2..=maximum {
            tracker.update(a, Coords::new(&[7, round]), 1);
            if round > maximum - 2 {
                tracker.update(b, Coords::new(&[7, round - 1]), -1);
            }
            tracker.propagate(|_| {});
            tracker.update(a, Coords::new(&[7, round]), -1);
            tracker.update(b, Coords::new(&[7, round]), 1);
            tracker.propagate(|_| {});
            tracker.check_invariants();
            if let Some(before) = before.replace(tracker.frontier(a).clone()) {
                assert!(before.before(tracker.frontier(a)), "{before:?} {:?}", tracker.frontier(a));
            }
        }
        assert!(tracker.frontier(a).is_empty(), "nothing goes round at the maximum");
        assert_eq!(tracker.frontier(b).elements(), [Coords::new(&[7, maximum])]);
    }
}

/// CASES 27: 100,000 locations in a row, and a node with 10,000 ports behind one junction; built and tracked.
#[test]
fn large_graphs() {
    let mut graph = GraphBuilder::new("large", 1, &[u64::MAX]);
    let source = graph.add_output(ROOT, "source, output 0");
    let mut last = source;
    for index in 0..50_000 {
        let (a, b) = (graph.add_input(ROOT, format!("{index}, in")), graph.add_output(ROOT, format!("{index}, out")));
        graph.connect(last, a, Summary::identity(1));
        graph.connect(a, b, Summary::identity(1));
        last = b;
    }
    let inside = graph.add_virtual(ROOT, "wide, inside");
    let mut ports = Vec::new();
    for port in 0..10_000 {
        let input = graph.add_input(ROOT, format!("wide, input {port}"));
        let output = graph.add_output(ROOT, format!("wide, output {port}"));
        graph.connect(last, input, Summary::identity(1));
        graph.connect(input, inside, Summary::identity(1));
        graph.connect(inside, output, Summary::identity(1));
        ports.push(output);
    }
    let mut tracker = Tracker::new(Arc::new(graph.build().expect("no cycle")));
    for time in 0..3 {
        tracker.update(source, Coords::new(&[time]), 1);
        if time > 0 {
            tracker.update(source, Coords::new(&[time - 1]), -1);
        }
        let mut changed = 0;
        tracker.propagate(|_| changed += 1);
        assert_eq!(changed, tracker.graph().location_count());
        assert!(ports.iter().all(|&port| tracker.frontier(port).elements() == [Coords::new(&[time])]));
    }
    let mut heard = Vec::new();
    tracker.update(ports[77], Coords::new(&[1]), 1);
    tracker.propagate(|location| heard.push(location));
    assert_eq!(heard, [ports[77]], "a call costs what changes");
    tracker.check_invariants();
}

/// What a location costs when time passes along a chain of ports. `cargo test --release -- --ignored --nocapture`
#[test]
#[ignore = "measures"]
fn cost_of_a_location() {
    for (length, rounds) in [(10, 100_000u64), (1_000, 1_000), (100_000, 10)] {
        let mut graph = GraphBuilder::new("chain", 1, &[u64::MAX]);
        let chain: Vec<Location> = (0..length).map(|index| graph.add_output(ROOT, format!("{index}"))).collect();
        chain.windows(2).for_each(|pair| graph.connect(pair[0], pair[1], Summary::identity(1)));
        let mut tracker = Tracker::new(Arc::new(graph.build().expect("no cycle")));
        tracker.update(chain[0], Coords::new(&[0]), 1);
        tracker.propagate(|_| {});
        let start = std::time::Instant::now();
        let mut changed = 0;
        for time in 0..rounds {
            tracker.update(chain[0], Coords::new(&[time]), -1);
            tracker.update(chain[0], Coords::new(&[time + 1]), 1);
            tracker.propagate(|_| changed += 1);
        }
        let nanos = start.elapsed().as_nanos() as f64 / changed as f64;
        println!("chain of {length}: {nanos:.1} ns a location ({changed} told)");
    }
}
