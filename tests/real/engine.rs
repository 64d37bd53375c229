//! The engine gives the published answers, on one, two and three workers.
//!
//! ```text
//! edges ─ input ─► arranged both ways ─► components, distances, reach, closure, same generation ─► subscriptions
//! ```
//! Three workers are more than some machines have cores, so workers are not pinned. Sizes of large results are counted
//! in the dataflow: only the count is handed out. Next stop: `plain`, which computes the same.

use crate::answers::Answers;
use crate::data::{self, Edge};
use crate::plain::{Plain, component_sizes};
use kpg::operators::ArrangedByKey;
use kpg::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(900);

/// Messages that a sliding window holds.
const WINDOW: usize = 10_000;

/// Messages that come in a round.
const ROUND: usize = 500;

type Edges<'s> = Collection<'s, u64, Edge>;
type ByNode<'s> = ArrangedByKey<'s, u64, u32, u32, i64>;

fn start(workers: usize) -> Engine {
    Engine::start(Config::default().workers(workers).pinned(false)).expect("this many threads are to be had")
}

fn both_ways<'s>(edges: &Edges<'s>) -> (ByNode<'s>, ByNode<'s>) {
    (edges.arrange_by_key(), edges.map(|(source, target)| (target, source)).arrange_by_key())
}

/// (node, smallest node of its component). Small labels come first: see the example live_graph.
fn components<'s>(edges: &Edges<'s>, forward: &ByNode<'s>, backward: &ByNode<'s>) -> Edges<'s> {
    let own = edges.flat_map(|(source, target)| [(source, source), (target, target)]);
    edges.scope().iterative(|inner| {
        let own = own.enter_at(inner, |(node, _)| 256 * (u32::BITS - node.leading_zeros()));
        let labels = Variable::new(inner);
        let arranged = labels.arrange_by_key();
        let from_sources = arranged.join_core(&forward.enter(inner), |_, label, target| Some((target, label)));
        let from_targets = arranged.join_core(&backward.enter(inner), |_, label, source| Some((source, label)));
        let smallest = from_sources
            .concat(&from_targets)
            .concat(&own)
            .arrange_by_key()
            .reduce(|_, labels, smallest| smallest.push((labels[0].0, 1)))
            .as_collection(|node, label| (node, label));
        labels.set(&smallest).leave()
    })
}

/// ((node, root), least number of edges from the root to it).
fn distances<'s>(roots: &Collection<'s, u64, u32>, forward: &ByNode<'s>) -> Collection<'s, u64, (Edge, u32)> {
    let at_root = roots.map(|root| ((root, root), 0));
    at_root.iterate(|inner, distances| {
        distances
            .map(|((node, root), distance)| (node, (root, distance)))
            .arrange_by_key()
            .join_core(&forward.enter(inner), |_, (root, distance), next| Some(((next, root), distance + 1)))
            .concat(&at_root.enter(inner))
            .arrange_by_key()
            .reduce(|_, distances, least| least.push((distances[0].0, 1)))
            .as_collection(|at, distance| (at, distance))
    })
}

/// All that paths of any length from `roots` get to.
fn reach<'s>(roots: &Collection<'s, u64, u32>, forward: &ByNode<'s>) -> Collection<'s, u64, u32> {
    roots.iterate(|inner, reached| {
        let next = reached.arrange_by_self().join_core(&forward.enter(inner), |_, (), target| Some(target));
        next.concat(&roots.enter(inner)).distinct()
    })
}

/// (x, y): a path of at least one edge leads from x to y.
fn closure<'s>(edges: &Edges<'s>, forward: &ByNode<'s>) -> Edges<'s> {
    edges.iterate(|inner, paths| {
        let by_end = paths.map(|(from, to)| (to, from)).arrange_by_key();
        let longer = by_end.join_core(&forward.enter(inner), |_, from, to| Some((from, to)));
        longer.concat(&edges.enter(inner)).distinct()
    })
}

/// (x, y): different children of one parent, or children of nodes of one generation.
fn same_generation<'s>(forward: &ByNode<'s>) -> Edges<'s> {
    let siblings = forward.join_core(forward, |_, x, y| (x != y).then_some((x, y))).distinct();
    siblings.iterate(|inner, pairs| {
        let forward = forward.enter(inner);
        let half = pairs.arrange_by_key().join_core(&forward, |_, b, x| Some((b, x)));
        let children = half.arrange_by_key().join_core(&forward, |_, x, y| Some((x, y)));
        children.concat(&siblings.enter(inner)).distinct()
    })
}

/// What changes add up to, each datum there once.
#[derive(Default)]
struct Set<D>(BTreeMap<D, i64>);

impl<D: Ord + Clone> Set<D> {
    fn follow(&mut self, changes: &mut Subscription<u64, D>, time: u64) -> Vec<D>
    where
        D: Columnar,
    {
        for (datum, _, diff) in changes.wait_past(&time, PATIENCE).expect("the query goes on") {
            let count = self.0.entry(datum.clone()).or_insert(0);
            *count += diff;
            if *count == 0 {
                self.0.remove(&datum);
            }
        }
        assert!(self.0.values().all(|count| *count == 1), "a datum of a set is there once");
        self.0.keys().cloned().collect()
    }
}

fn insert_all(input: &mut Input<u64, Edge>, edges: &[Edge]) {
    edges.iter().for_each(|edge| input.insert(*edge).expect("the query goes on"));
}

/// How many pairs a computation gives over a graph that is there from the start.
fn size(workers: usize, edges: &[Edge], of: for<'s> fn(&Edges<'s>, &ByNode<'s>) -> Edges<'s>) -> u64 {
    let engine = start(workers);
    let install = engine.install("size", |scope| {
        let (input, edges) = scope.input::<Edge>();
        let edges = edges.distinct();
        (input, of(&edges, &edges.arrange_by_key()).map(|_| ()).count().subscribe())
    });
    let (_query, (mut input, mut count)) = install.expect("the dataflow is fine");
    insert_all(&mut input, edges);
    drop(input);
    let count = Set::default().follow(&mut count, 0);
    assert_eq!(count.len(), 1);
    count[0].1 as u64
}

#[test]
fn wiki_vote() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::wiki_vote()) else { return };
    let name = "snap-wiki-Vote";
    let plain = Plain::new(&edges);
    for workers in 1..=3 {
        let engine = start(workers);
        let install = engine.install("wiki-Vote", |scope| {
            let (input, edges) = scope.input::<Edge>();
            let (forward, backward) = both_ways(&edges);
            let roots = scope.constant([30, 3]);
            let components = components(&edges, &forward, &backward).subscribe();
            (input, components, distances(&roots, &forward).subscribe())
        });
        let (_query, (mut input, mut labels, mut distances)) = install.expect("the dataflow is fine");
        insert_all(&mut input, &edges);
        input.advance_to(1).expect("the query goes on");
        let labels = Set::default().follow(&mut labels, 0);
        assert_eq!(labels, plain.components(), "{workers} workers");
        let (count, largest) = component_sizes(&labels);
        let known = answers.numbers(name, "largest WCC / WCC count / largest SCC / SCC count");
        assert_eq!([largest, count], known[..2], "{workers} workers");

        let all = Set::default().follow(&mut distances, 0);
        let mut found = Vec::new();
        for root in [30, 3] {
            let of_root = all.iter().filter(|((_, from), _)| *from == root);
            let of_root: Vec<Edge> = of_root.map(|&((node, _), distance)| (node, distance)).collect();
            assert_eq!(of_root, plain.distances(root), "from {root}, {workers} workers");
            let numbers = of_root.iter().map(|&(_, distance)| u64::from(distance));
            found.extend([of_root.len() as u64, numbers.clone().max().unwrap(), numbers.sum()]);
        }
        assert_eq!(found, answers.numbers(name, "reach from 30 / from 3 ; max,sum of BFS distance"));
    }
}

/// Messages come, and those of 10,000 messages ago go: half of all updates are removals.
#[test]
fn college_messages_in_a_sliding_window() {
    let (Some(answers), Some(messages)) = (Answers::load(), data::college_messages()) else { return };
    let messages: Vec<Edge> = messages.into_iter().map(|(sender, receiver, _)| (sender, receiver)).collect();
    let known = [
        (20_000, "sliding window = last 10000 messages, at message 20000: edges,nodes,WCCs,largest,reach(1)"),
        (30_000, "same at 30000"),
        (59_835, "same at 59835"),
    ];
    for workers in 1..=3 {
        let engine = start(workers);
        let install = engine.install("messages", |scope| {
            let (input, messages) = scope.input::<Edge>();
            let edges = messages.distinct();
            let (forward, backward) = both_ways(&edges);
            let components = components(&edges, &forward, &backward).subscribe();
            (input, edges.subscribe(), components, reach(&scope.constant([1]), &forward).subscribe())
        });
        let (_query, (mut input, mut edges, mut labels, mut reached)) = install.expect("the dataflow is fine");
        let (mut edge_set, mut label_set, mut reached_set) = (Set::default(), Set::default(), Set::default());
        let mut end = 0;
        for time in 0.. {
            let next = (end + ROUND).min(messages.len());
            insert_all(&mut input, &messages[end..next]);
            for gone in &messages[end.saturating_sub(WINDOW)..next.saturating_sub(WINDOW)] {
                input.remove(*gone).expect("the query goes on");
            }
            end = next;
            input.advance_to(time + 1).expect("the query goes on");
            let edges = edge_set.follow(&mut edges, time);
            let labels = label_set.follow(&mut labels, time);
            let reached = reached_set.follow(&mut reached, time);
            let query = known.iter().find(|(at, _)| *at == end);
            if query.is_some() || time % 8 == 0 {
                let plain = Plain::new(&messages[end.saturating_sub(WINDOW)..end]);
                assert_eq!(edges.len(), plain.edge_count(), "at message {end}, {workers} workers");
                assert_eq!(labels, plain.components(), "at message {end}, {workers} workers");
                if labels.binary_search_by_key(&1, |label| label.0).is_ok() {
                    assert_eq!(reached, plain.reach(&[1]), "at message {end}, {workers} workers");
                }
            }
            if let Some((_, query)) = query {
                let (count, largest) = component_sizes(&labels);
                let [edges, nodes, reached] = [edges.len(), labels.len(), reached.len()].map(|count| count as u64);
                assert_eq!(
                    [edges, nodes, count, largest, reached],
                    answers.numbers("snap-CollegeMsg-temporal", query)[..]
                );
            }
            if end == messages.len() {
                break;
            }
        }
    }
}

#[test]
fn tree11_closure() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::tree11()) else { return };
    for workers in 1..=3 {
        assert_eq!(size(workers, &edges, closure), answers.number("bigdatalog-tree11", "tc"), "{workers} workers");
    }
}

/// Chains: many rounds, 64 and 195, with little in each.
#[test]
fn roads() {
    let (Some(answers), Some(ol), Some(cal)) = (Answers::load(), data::road_ol(), data::road_cal()) else { return };
    for workers in 1..=3 {
        for (edges, name) in [(&ol, "harp-OL.cedge"), (&cal, "harp-cal.cedge")] {
            let found = [size(workers, edges, closure), size(workers, edges, |_, forward| same_generation(forward))];
            assert_eq!(found, answers.numbers(name, "tc / sg")[..], "{name}, {workers} workers");
        }
    }
}

/// 21 million pairs: about a minute of processor time for each number of workers.
#[test]
fn gnutella09_closure() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::gnutella09()) else { return };
    for workers in 1..=3 {
        let pairs = size(workers, &edges, closure);
        assert_eq!(pairs, answers.number("harp-p2p-Gnutella09", "tc"), "at {workers} workers");
    }
}
