//! Queries that come and go on a graph held both ways: look-ups, one hop, two hops, and paths of at most four edges, which
//! are two hops from each end. All in one dataflow; shared, the classes read the same two indexes, else each its own.
#![forbid(unsafe_code)]

use super::crew;
use super::graph::put_in;
use super::sums::{Sums, total};
use crate::setting::Setting;
use differential_dataflow::VecCollection;
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::{ValBuilder, ValSpine};
use std::time::Instant;
use timely::dataflow::operators::probe;
use timely::worker::Worker;
use workloads::generate::{below, random_edge, rnd};
use workloads::open_loop::histogram;
use workloads::{Report, Spec, Unit, machine};

type Pair = (u32, u32);
type Of<'s, D> = VecCollection<'s, u64, D, isize>;
type ByKey<'s, K, V> = Arranged<'s, TraceAgent<ValSpine<K, V, u64, isize>>>;

/// The classes' names.
const CLASSES: [&str; 4] = ["look-up", "one-hop", "two-hop", "4-path"];

fn one_hop<'s>(asked: Of<'s, u32>, forward: ByKey<'s, u32, u32>) -> Of<'s, Pair> {
    asked.arrange_by_self().join_core(forward, |node, (), target| Some((*node, *target)))
}

fn two_hops<'s>(asked: Of<'s, u32>, forward: ByKey<'s, u32, u32>) -> Of<'s, Pair> {
    let first = asked.arrange_by_self().join_core(forward.clone(), |node, (), target| Some((*target, *node)));
    first.arrange_by_key().join_core(forward, |_, node, target| Some((*node, *target)))
}

/// What lies at most two edges away, and how many, as ((node, asked), edges).
fn near<'s>(start: Of<'s, (u32, (Pair, u32))>, edges: ByKey<'s, u32, u32>) -> ByKey<'s, (u32, Pair), u32> {
    let hop = |from: Of<'s, (u32, (Pair, u32))>| {
        let hop = from.arrange_by_key();
        hop.join_core(edges.clone(), |_, (pair, hops), next| Some((*next, (*pair, hops + 1))))
    };
    let once = hop(start.clone());
    let all = start.concat(once.clone()).concat(hop(once)).map(|(node, (pair, hops))| ((node, pair), hops));
    all.reduce_abelian::<_, ValBuilder<_, _, _, _>, ValSpine<_, _, _, _>>("near", |_, hops, least| {
        least.push((*hops[0].0, 1));
    })
}

/// ((from, to), least number of edges), where that is at most four.
fn four_path<'s>(
    asked: Of<'s, Pair>,
    forward: ByKey<'s, u32, u32>,
    backward: ByKey<'s, u32, u32>,
) -> Of<'s, (Pair, u32)> {
    let from = near(asked.clone().map(|(from, to)| (from, ((from, to), 0))), forward);
    let to = near(asked.map(|(from, to)| (to, ((from, to), 0))), backward);
    let paths = from.join_core(to, |(_, pair), some, more| Some((*pair, some + more)));
    paths.reduce(|_, hops, least| least.push((*hops[0].0, 1)))
}

/// The graph, the nodes' states, and the queries of three classes and of the last.
struct Share {
    edges: InputSession<u64, Pair, isize>,
    states: InputSession<u64, Pair, isize>,
    nodes: [InputSession<u64, u32, isize>; 3],
    pairs: InputSession<u64, Pair, isize>,
    probes: [probe::Handle<u64>; 4],
}

impl Share {
    fn new(worker: &mut Worker, shared: bool, sums: &[Sums; 4]) -> Share {
        worker.dataflow(|scope| {
            let (edges, graph) = scope.new_collection::<Pair, isize>();
            let (states, state) = scope.new_collection::<Pair, isize>();
            let (look, looked) = scope.new_collection::<u32, isize>();
            let (one, ones) = scope.new_collection::<u32, isize>();
            let (two, twos) = scope.new_collection::<u32, isize>();
            let (pairs, paired) = scope.new_collection::<Pair, isize>();
            let forward = || graph.clone().arrange_by_key();
            let both = || (forward(), graph.clone().map(|(source, target)| (target, source)).arrange_by_key());
            let common = shared.then(both);
            let own_forward = || common.clone().map_or_else(forward, |(forward, _)| forward);
            let (ahead, back) = common.clone().unwrap_or_else(both);
            let number = |(a, b): &Pair| 3 * i64::from(*a) + i64::from(*b);
            let path = |((a, b), hops): &(Pair, u32)| 3 * i64::from(*a) + i64::from(*b) + i64::from(*hops);
            let probes = [
                sums[0].watch(one_hop(looked, state.arrange_by_key()), number).probe().0,
                sums[1].watch(one_hop(ones, own_forward()), number).probe().0,
                sums[2].watch(two_hops(twos, own_forward()), number).probe().0,
                sums[3].watch(four_path(paired, ahead, back), path).probe().0,
            ];
            Share { edges, states, nodes: [look, one, two], pairs, probes }
        })
    }
    /// Query `number` of a class comes or goes.
    fn ask(&mut self, class: usize, nodes: u64, number: u64, diff: isize) {
        let node = |class: u64| below(rnd(40 + class, number), nodes) as u32;
        match self.nodes.get_mut(class) {
            Some(input) => input.update(node(class as u64), diff),
            None => self.pairs.update((node(3), node(4)), diff),
        }
    }
    /// Moves all to `time`, and steps until what is before is done for one class.
    fn finish(&mut self, worker: &mut Worker, class: usize, time: u64) {
        for input in [&mut self.edges, &mut self.states, &mut self.pairs] {
            input.advance_to(time);
            input.flush();
        }
        for input in &mut self.nodes {
            input.advance_to(time);
            input.flush();
        }
        while self.probes[class].less_than(&time) {
            worker.step();
        }
    }
}

/// Closed loop.
pub fn interactive(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    let [nodes, edges, queries, rounds] = ["nodes", "edges", "queries", "rounds"].map(|name| spec.get::<u64>(name));
    let shared = spec.get::<u32>("shared") != 0;
    let outcomes = crew::run(spec, setting, move |worker, barrier| {
        let (index, peers) = (worker.index(), worker.peers());
        let sums: [Sums; 4] = Default::default();
        let mut share = Share::new(worker, shared, &sums);
        let own = |from: u64, to: u64| (from..to).skip(index).step_by(peers);
        barrier.wait();
        let start = Instant::now();
        put_in(worker, &mut share.edges, own(0, edges).map(|number| random_edge(nodes, 13, number)), 1);
        put_in(worker, &mut share.states, own(0, nodes).map(|node| (node as u32, node as u32)), 1);
        (0..CLASSES.len()).for_each(|class| share.finish(worker, class, 1));
        let (loaded, resident) = (start.elapsed(), machine::resident());
        let mut latencies = CLASSES.map(|_| histogram());
        let mut time = 1;
        for round in 0..rounds {
            for (class, latencies) in latencies.iter_mut().enumerate() {
                let start = Instant::now();
                for number in own(round * queries, (round + 1) * queries) {
                    share.ask(class, nodes, number, 1);
                    if let Some(before) = number.checked_sub(queries) {
                        share.ask(class, nodes, before, -1);
                    }
                }
                time += 1;
                share.finish(worker, class, time);
                latencies.saturating_record(start.elapsed().as_nanos() as u64);
            }
        }
        (0..CLASSES.len()).for_each(|class| share.finish(worker, class, time));
        (loaded, resident, latencies, machine::resident(), sums.map(|sums| sums.get()))
    });
    let (loaded, loaded_resident, latencies, resident, _) = &outcomes[0];
    report.metric("loaded", loaded.as_nanos() as f64, Unit::Nanoseconds);
    for (class, latencies) in CLASSES.iter().zip(latencies) {
        report.metric(format!("{class} mean"), latencies.mean(), Unit::Nanoseconds);
        report.latencies(class, latencies);
    }
    report.metric("loaded resident", *loaded_resident as f64, Unit::Bytes);
    report.metric("resident", *resident as f64, Unit::Bytes);
    report.metric("peak resident", machine::peak_resident() as f64, Unit::Bytes);
    let class = |class: usize| total(outcomes.iter().map(|(.., sums)| sums[class]));
    report.answer = [0, 1, 2, 3].map(|number| format!("{} {}", class(number).0, class(number).1)).join(", ");
    Ok(())
}
