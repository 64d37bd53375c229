//! Queries that come and go on a graph held both ways.
//!
//! ```text
//! look-up   node       → its state (its own number)
//! one-hop   node       → each of its targets
//! two-hop   node       → each of their targets
//! 4-path    (from, to) → the least number of edges from one to the other, if at most four: two hops from each end
//! ```
//! In each round, for each class in turn, so many queries come, numbered on, and those of the round before go; a latency is
//! from then to the complete change of the class's results. All in one dataflow; shared, the four classes read the same
//! two indexes, else each class its own.
//!
//! The answer: for each class, how many results there are at last, and the sum of (3 × first + second number), to
//! which a path's length is added.
#![forbid(unsafe_code)]

use crate::host::{Host, Turn};
use crate::watch::{self, Sums};
use kpg::operators::ArrangedByKey;
use kpg::prelude::*;
use std::time::Instant;
use workloads::generate::{below, random_edge, rnd};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit, machine};

type Nodes<'s> = Collection<'s, u64, u32>;
type Pairs<'s> = Collection<'s, u64, (u32, u32)>;
/// (node, ((from, to), edges to it from one of these)).
type At<'s> = Collection<'s, u64, (u32, ((u32, u32), u32))>;
type ByNode<'s> = ArrangedByKey<'s, u64, u32, u32, i64>;

/// The classes' names.
pub const CLASSES: [&str; 4] = ["look-up", "one-hop", "two-hop", "4-path"];

fn one_hop<'s>(asked: &Nodes<'s>, forward: &ByNode<'s>) -> Pairs<'s> {
    asked.arrange_by_self().join_core(forward, |node, (), target| Some((node, target)))
}

fn two_hops<'s>(asked: &Nodes<'s>, forward: &ByNode<'s>) -> Pairs<'s> {
    let first = one_hop(asked, forward).map(|(node, target)| (target, node)).arrange_by_key();
    first.join_core(forward, |_, node, target| Some((node, target)))
}

/// ((from, to), least number of edges), where that is at most four.
fn four_path<'s>(
    asked: &Pairs<'s>,
    forward: &ByNode<'s>,
    backward: &ByNode<'s>,
) -> Collection<'s, u64, ((u32, u32), u32)> {
    let near = |start: At<'s>, edges: &ByNode<'s>| {
        let hop = |from: &At<'s>| {
            from.arrange_by_key().join_core(edges, |_, (pair, hops), next| Some((next, (pair, hops + 1))))
        };
        let once = hop(&start);
        let all = Collection::concat_all([&start, &once, &hop(&once)]);
        let by_place = all.map(|(node, (pair, hops))| ((node, pair), hops)).arrange_by_key();
        by_place.reduce(|_, hops, least| least.push((hops[0].0, 1i64)))
    };
    let from = near(asked.map(|(from, to)| (from, ((from, to), 0))), forward);
    let to = near(asked.map(|(from, to)| (to, ((from, to), 0))), backward);
    from.join_core(&to, |(_, pair), some, more| Some((pair, some + more)))
        .arrange_by_key()
        .reduce(|_, hops, least| least.push((hops[0].0, 1)))
        .as_collection(|pair, hops| (pair, hops))
}

/// One thread's part: the graph, the nodes' states, and the queries of three classes and of the last.
struct Share {
    edges: Input<u64, (u32, u32)>,
    states: Input<u64, (u32, u32)>,
    nodes: [Input<u64, u32>; 3],
    pairs: Input<u64, (u32, u32)>,
}

impl Share {
    fn advance(&mut self, to: u64) {
        let moved = "time goes on";
        self.edges.advance_to(to).expect(moved);
        self.states.advance_to(to).expect(moved);
        self.nodes.iter_mut().for_each(|input| input.advance_to(to).expect(moved));
        self.pairs.advance_to(to).expect(moved);
    }
    /// Query `number` of a class comes or goes.
    fn ask(&mut self, class: usize, nodes: u64, number: u64, diff: i64) {
        let node = |class: u64| below(rnd(40 + class, number), nodes) as u32;
        match self.nodes.get_mut(class) {
            Some(input) => input.update(node(class as u64), diff),
            None => self.pairs.update((node(3), node(4)), diff),
        }
        .expect("the query goes on");
    }
}

/// Closed loop.
pub fn interactive(spec: &Spec, report: &mut Report) {
    let host = Host::start(spec.workers());
    let shared = spec.get::<u32>("shared") != 0;
    let sums: [Sums; 4] = Default::default();
    let install = host.engine.install("interactive", |scope| {
        let (edges, graph) = scope.input::<(u32, u32)>();
        let (states, state) = scope.input::<(u32, u32)>();
        let index = || (graph.arrange_by_key(), graph.map(|(source, target)| (target, source)).arrange_by_key());
        let common = shared.then(index);
        let both = || common.clone().unwrap_or_else(index);
        let forward = || common.as_ref().map_or_else(|| graph.arrange_by_key(), |(forward, _)| forward.clone());
        let ((look, looked), (one, ones), (two, twos), (pair, pairs)) =
            (scope.input::<u32>(), scope.input::<u32>(), scope.input::<u32>(), scope.input::<(u32, u32)>());
        let number = |(a, b): (u32, u32)| 3 * i64::from(a) + i64::from(b);
        let (to, from) = both();
        let paths = four_path(&pairs, &to, &from);
        let probes = [
            watch::sums(&one_hop(&looked, &state.arrange_by_key()), &sums[0], number),
            watch::sums(&one_hop(&ones, &forward()), &sums[1], number),
            watch::sums(&two_hops(&twos, &forward()), &sums[2], number),
            watch::sums(&paths, &sums[3], |((a, b), hops)| 3 * i64::from(a) + i64::from(b) + i64::from(hops)),
        ];
        (Share { edges, states, nodes: [look, one, two], pairs: pair }, probes)
    });
    let (_, (share, probes)) = install.expect("a dataflow that can be built");
    let [nodes, edges, queries, rounds] = ["nodes", "edges", "queries", "rounds"].map(|name| spec.get::<u64>(name));
    let Share { edges: graph, states, nodes: [look, one, two], pairs } = share;
    let mut sessions = host.sessions(graph).into_iter().zip(host.sessions(states)).zip(host.sessions(pairs));
    let mut asks = host.sessions(look).into_iter().zip(host.sessions(one)).zip(host.sessions(two));
    let shares = std::iter::from_fn(|| {
        let ((edges, states), pairs) = sessions.next()?;
        let ((look, one), two) = asks.next()?;
        Some(Share { edges, states, nodes: [look, one, two], pairs })
    });
    let mut all = host.together(shares.collect(), move |turn, mut share| {
        let own = |numbers: std::ops::Range<u64>| numbers.skip(turn.index).step_by(turn.peers);
        let pass = |turn: &Turn, share: &mut Share, class: usize, to: u64| {
            share.advance(to);
            turn.until(|| probes[class].is_past(&(to - 1)));
        };
        let start = Instant::now();
        for number in own(0..edges) {
            share.edges.insert(random_edge(nodes, 13, number)).expect("the query goes on");
        }
        for node in own(0..nodes).map(|node| node as u32) {
            share.states.insert((node, node)).expect("the query goes on");
        }
        (0..CLASSES.len()).for_each(|class| pass(turn, &mut share, class, 1));
        let (loaded, resident) = (start.elapsed(), machine::resident());
        let mut latencies = CLASSES.map(|_| histogram());
        let mut time = 1;
        for round in 0..rounds {
            for (class, latencies) in latencies.iter_mut().enumerate() {
                let start = Instant::now();
                for number in own(round * queries..(round + 1) * queries) {
                    share.ask(class, nodes, number, 1);
                    if let Some(before) = number.checked_sub(queries) {
                        share.ask(class, nodes, before, -1);
                    }
                }
                time += 1;
                pass(turn, &mut share, class, time);
                latencies.saturating_record(start.elapsed().as_nanos() as u64);
            }
        }
        (0..CLASSES.len()).for_each(|class| turn.until(|| probes[class].is_past(&(time - 1))));
        (share, loaded, resident, latencies)
    });
    let (_share, loaded, resident, latencies) = all.swap_remove(0);
    report.metric("loaded", loaded.as_nanos() as f64, Unit::Nanoseconds);
    for (class, latencies) in CLASSES.iter().zip(&latencies) {
        report.metric(format!("{class} mean"), latencies.mean(), Unit::Nanoseconds);
        report.latencies(class, latencies);
    }
    report.metric("loaded resident", resident as f64, Unit::Bytes);
    report.metric("resident", machine::resident() as f64, Unit::Bytes);
    report.metric("peak resident", machine::peak_resident() as f64, Unit::Bytes);
    report.answer = sums.map(|sums| format!("{} {}", sums.get().0, sums.get().1)).join(", ");
    host.stop();
}
