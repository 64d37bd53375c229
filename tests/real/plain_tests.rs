//! The plain evaluators give the published answers, so an engine that agrees with one agrees with both.
//!
//! Each test takes a second or so at most. What is not here because its result is too large to enumerate: the same
//! generation of tree11 (2.1 thousand million pairs) is computed from the sizes of its generations.

use crate::answers::Answers;
use crate::data::{self, Edge};
use crate::plain::{Plain, component_sizes};
use std::collections::HashMap;

/// Messages that a sliding window holds.
const WINDOW: usize = 10_000;

#[test]
fn small_graph_by_hand() {
    // 1 ⇄ 2, 2 → 3, 2 → 4, 3 → 5, 4 → 6 and 9 → 8; the first edge twice.
    let plain = Plain::new(&[(1, 2), (1, 2), (2, 1), (2, 3), (2, 4), (3, 5), (4, 6), (9, 8)]);
    assert_eq!((plain.node_count(), plain.edge_count()), (8, 7));
    assert_eq!(plain.components(), [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (8, 8), (9, 8)]);
    assert_eq!(component_sizes(&plain.components()), (2, 6));
    assert_eq!(plain.distances(1), [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3)]);
    assert_eq!(plain.reach(&[3, 9]), [3, 5, 8, 9]);
    assert_eq!(plain.transitive_closure_size(), 6 + 6 + 1 + 1 + 1);
    // 1, 3, 4 are children of 2, so their children 2, 5, 6 are of one generation too.
    let half = [(1, 3), (1, 4), (2, 5), (2, 6), (3, 4), (5, 6)];
    let mut pairs: Vec<Edge> = half.iter().flat_map(|&(x, y)| [(x, y), (y, x)]).collect();
    pairs.sort_unstable();
    assert_eq!(plain.same_generation(), pairs);
    assert_eq!(plain.same_generation_size(), 12);
}

#[test]
fn wiki_vote() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::wiki_vote()) else { return };
    let name = "snap-wiki-Vote";
    let plain = Plain::new(&edges);
    assert_eq!([plain.node_count() as u64, plain.edge_count() as u64], answers.numbers(name, "nodes/edges")[..],);
    let (count, largest) = component_sizes(&plain.components());
    let expected = answers.numbers(name, "largest WCC / WCC count / largest SCC / SCC count");
    assert_eq!([largest, count], expected[..2]);

    let mut found = Vec::new();
    for root in [30, 3] {
        let distances = plain.distances(root);
        let reached: Vec<_> = distances.iter().map(|&(node, _)| node).collect();
        assert_eq!(reached, plain.reach(&[root]));
        let distances = distances.iter().map(|&(_, distance)| u64::from(distance));
        found.extend([reached.len() as u64, distances.clone().max().unwrap(), distances.sum()]);
    }
    assert_eq!(found, answers.numbers(name, "reach from 30 / from 3 ; max,sum of BFS distance"));
}

#[test]
fn wiki_vote_closure() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::wiki_vote()) else { return };
    assert_eq!(Plain::new(&edges).transitive_closure_size(), answers.number("snap-wiki-Vote", "tc"));
}

#[test]
fn college_messages() {
    let (Some(answers), Some(messages)) = (Answers::load(), data::college_messages()) else { return };
    let name = "snap-CollegeMsg-temporal";
    let edges: Vec<Edge> = messages.iter().map(|&(sender, receiver, _)| (sender, receiver)).collect();
    let plain = Plain::new(&edges);
    assert_eq!(
        [edges.len(), plain.edge_count(), plain.node_count()].map(|count| count as u64),
        answers.numbers(name, "messages/static edges/nodes")[..],
    );
    let (count, largest) = component_sizes(&plain.components());
    assert_eq!(
        [plain.transitive_closure_size(), count, largest, plain.reach(&[1]).len() as u64],
        answers.numbers(name, "tc of static edges; WCC count/largest; reach from 1")[..],
    );
    let windows = [
        (20_000, "sliding window = last 10000 messages, at message 20000: edges,nodes,WCCs,largest,reach(1)"),
        (30_000, "same at 30000"),
        (59_835, "same at 59835"),
    ];
    for (end, query) in windows {
        let plain = Plain::new(&edges[end - WINDOW..end]);
        let (count, largest) = component_sizes(&plain.components());
        let reached = plain.reach(&[1]).len() as u64;
        let found = [plain.edge_count() as u64, plain.node_count() as u64, count, largest, reached];
        assert_eq!(found, answers.numbers(name, query)[..], "{query}");
    }
}

#[test]
fn tree11() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::tree11()) else { return };
    let name = "bigdatalog-tree11";
    let plain = Plain::new(&edges);
    assert_eq!(plain.transitive_closure_size(), answers.number(name, "tc"));
    let depths = plain.nodes_per_depth();
    assert_eq!(depths, answers.numbers(name, "nodes per depth 0..12"));
    // A node has an ancestor at each smaller depth; any two nodes at one depth meet in some ancestor.
    let ancestors: u64 = depths.iter().zip(0..).map(|(nodes, depth)| nodes * depth).sum();
    assert_eq!(ancestors, answers.number(name, "tc"));
    let pairs: u64 = depths.iter().map(|nodes| nodes * (nodes - 1)).sum();
    assert_eq!(pairs, answers.number(name, "sg (x!=y in base rule)"));
}

#[test]
fn roads() {
    let (Some(answers), Some(ol), Some(cal)) = (Answers::load(), data::road_ol(), data::road_cal()) else { return };
    let (ol, cal) = (Plain::new(&ol), Plain::new(&cal));
    assert_eq!(ol.edge_count() as u64, answers.number("harp-OL.cedge", "distinct edges (7035 lines)"));
    for (plain, name) in [(ol, "harp-OL.cedge"), (cal, "harp-cal.cedge")] {
        let pairs = plain.same_generation();
        assert!(pairs.is_sorted_by(|a, b| a < b), "{name}: sorted and distinct");
        assert_eq!(
            [plain.transitive_closure_size(), pairs.len() as u64],
            answers.numbers(name, "tc / sg")[..],
            "{name}",
        );
    }
}

#[test]
fn gnutella09() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::gnutella09()) else { return };
    let name = "harp-p2p-Gnutella09";
    let plain = Plain::new(&edges);
    let (_, largest) = component_sizes(&plain.components());
    assert_eq!(largest, answers.number(name, "largest WCC/largest SCC/triangles"));
    assert_eq!(plain.transitive_closure_size(), answers.number(name, "tc"));
}

#[test]
fn gnutella09_same_generation() {
    let (Some(answers), Some(edges)) = (Answers::load(), data::gnutella09()) else { return };
    assert_eq!(Plain::new(&edges).same_generation_size(), answers.number("harp-p2p-Gnutella09", "sg (x!=y)"));
}

#[test]
fn debian12() {
    let (Some(answers), Some(named)) = (Answers::load(), data::debian12()) else { return };
    let mut ids = HashMap::new();
    let mut id = |name| {
        let next = ids.len() as u32;
        *ids.entry(name).or_insert(next)
    };
    let edges: Vec<Edge> = named.iter().map(|(package, target)| (id(package), id(target))).collect();
    let plain = Plain::new(&edges);
    let (count, largest) = component_sizes(&plain.components());
    assert_eq!(
        [plain.edge_count() as u64, plain.node_count() as u64, count, largest],
        answers.numbers("debian12-depends", "edges/names/WCC count/largest/largest SCC")[..4],
    );
    assert_eq!(plain.transitive_closure_size(), answers.number("debian12-depends", "tc"));
}
