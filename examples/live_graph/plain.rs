//! The same questions, answered in plain Rust from all edges at once.
//!
//! What the queries report is compared with this, and its times show what "compute it again" costs. Every answer is a
//! sorted list without repetitions, so it can be compared with `==` to what a query's changes add up to.
//!
//! ```text
//! edges ──sort──► forward:  offsets[node] .. offsets[node + 1] in targets
//!           └───► backward: the same over turned edges
//! ```
//!
//! Building costs a sort of the edges; each question is linear in what it visits. Next stop: `report`.

/// Neighbours by node: those of `node` are `targets[offsets[node]..offsets[node + 1]]`.
struct Adjacency {
    offsets: Vec<usize>,
    targets: Vec<u32>,
}

impl Adjacency {
    /// From (source, target) pairs, sorted.
    fn new(node_count: usize, edges: &[(u32, u32)]) -> Self {
        debug_assert!(edges.is_sorted());
        let mut offsets = vec![0; node_count + 1];
        for &(source, _) in edges {
            offsets[source as usize + 1] += 1;
        }
        for node in 0..node_count {
            offsets[node + 1] += offsets[node];
        }
        Adjacency { offsets, targets: edges.iter().map(|&(_, target)| target).collect() }
    }

    fn of(&self, node: u32) -> &[u32] {
        &self.targets[self.offsets[node as usize]..self.offsets[node as usize + 1]]
    }

    /// All that paths from `roots` get to, the roots included. `seen` is all false, and is so again afterwards.
    fn reach(&self, roots: &[u32], seen: &mut [bool]) -> Vec<u32> {
        let mut found = Vec::new();
        for &root in roots {
            visit(root, seen, &mut found);
        }
        let mut next = 0;
        while next < found.len() {
            for &target in self.of(found[next]) {
                visit(target, seen, &mut found);
            }
            next += 1;
        }
        for &node in &found {
            seen[node as usize] = false;
        }
        found.sort_unstable();
        found
    }
}

fn visit(node: u32, seen: &mut [bool], found: &mut Vec<u32>) {
    if !std::mem::replace(&mut seen[node as usize], true) {
        found.push(node);
    }
}

/// A graph as it is at one time, ready to be asked.
pub struct Plain {
    forward: Adjacency,
    backward: Adjacency,
}

impl Plain {
    /// From edges between nodes below `node_count`, in any order; each is there once.
    ///
    /// # Panics
    /// If an edge names a node that is not below `node_count`.
    pub fn new(node_count: usize, edges: &[(u32, u32)]) -> Self {
        let mut sorted = edges.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let forward = Adjacency::new(node_count, &sorted);
        for edge in &mut sorted {
            *edge = (edge.1, edge.0);
        }
        sorted.sort_unstable();
        Plain { forward, backward: Adjacency::new(node_count, &sorted) }
    }

    fn node_count(&self) -> usize {
        self.forward.offsets.len() - 1
    }

    /// (node, how many targets it has), for nodes that have any.
    pub fn out_degrees(&self) -> Vec<(u32, i64)> {
        let degrees = (0..self.node_count() as u32).map(|node| (node, self.forward.of(node).len() as i64));
        degrees.filter(|&(_, degree)| degree > 0).collect()
    }

    /// (query, node): paths of exactly two edges lead from the query to the node.
    pub fn two_hop(&self, queries: &[u32]) -> Vec<(u32, u32)> {
        two_hop(&self.forward, queries)
    }

    /// (query, node): paths of exactly two edges lead from the node to the query.
    pub fn two_hop_users(&self, queries: &[u32]) -> Vec<(u32, u32)> {
        two_hop(&self.backward, queries)
    }

    /// Everything the roots need: paths of any length lead there, of none to the roots themselves.
    pub fn needs(&self, roots: &[u32]) -> Vec<u32> {
        self.forward.reach(roots, &mut vec![false; self.node_count()])
    }

    /// Everything that needs one of the roots, the roots included.
    pub fn needed_by(&self, roots: &[u32]) -> Vec<u32> {
        self.backward.reach(roots, &mut vec![false; self.node_count()])
    }

    /// (root, node): [`needs`](Self::needs) of each root by itself.
    pub fn needs_of_each(&self, roots: &[u32]) -> Vec<(u32, u32)> {
        reach_of_each(&self.forward, roots)
    }

    /// (root, node): [`needed_by`](Self::needed_by) of each root by itself.
    pub fn needed_by_each(&self, roots: &[u32]) -> Vec<(u32, u32)> {
        reach_of_each(&self.backward, roots)
    }

    /// (node, smallest node that edges, taken in either direction, connect it to), for nodes that have an edge.
    pub fn components(&self) -> Vec<(u32, u32)> {
        let mut label = vec![u32::MAX; self.node_count()];
        let mut stack = Vec::new();
        for root in 0..self.node_count() as u32 {
            if label[root as usize] != u32::MAX {
                continue; // a smaller node has been here
            }
            label[root as usize] = root;
            stack.push(root);
            while let Some(node) = stack.pop() {
                for &next in self.forward.of(node).iter().chain(self.backward.of(node)) {
                    if label[next as usize] == u32::MAX {
                        label[next as usize] = root;
                        stack.push(next);
                    }
                }
            }
        }
        let has_edge = |node| !self.forward.of(node).is_empty() || !self.backward.of(node).is_empty();
        (0..self.node_count() as u32).filter(|&node| has_edge(node)).map(|node| (node, label[node as usize])).collect()
    }
}

fn two_hop(adjacency: &Adjacency, queries: &[u32]) -> Vec<(u32, u32)> {
    let mut pairs = Vec::new();
    for query in distinct(queries) {
        let from = pairs.len();
        for &middle in adjacency.of(query) {
            pairs.extend(adjacency.of(middle).iter().map(|&node| (query, node)));
        }
        pairs[from..].sort_unstable();
        pairs.dedup(); // what came before `from` is distinct and of other queries
    }
    pairs
}

fn reach_of_each(adjacency: &Adjacency, roots: &[u32]) -> Vec<(u32, u32)> {
    let mut seen = vec![false; adjacency.offsets.len() - 1];
    let mut pairs = Vec::new();
    for root in distinct(roots) {
        pairs.extend(adjacency.reach(&[root], &mut seen).into_iter().map(|node| (root, node)));
    }
    pairs
}

fn distinct(nodes: &[u32]) -> Vec<u32> {
    let mut nodes = nodes.to_vec();
    nodes.sort_unstable();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Form, built_in, load};
    use quickcheck::quickcheck;
    use std::collections::{BTreeMap, BTreeSet};

    /// 0 → 1 → 2 → 0, 2 → 3, 5 → 4, and 6 without an edge.
    fn small() -> Plain {
        Plain::new(7, &[(0, 1), (1, 2), (2, 0), (2, 3), (5, 4), (5, 4)])
    }

    #[test]
    fn small_answers() {
        let plain = small();
        assert_eq!(plain.out_degrees(), [(0, 1), (1, 1), (2, 2), (5, 1)]);
        assert_eq!(plain.two_hop(&[1, 0, 1, 6]), [(0, 2), (1, 0), (1, 3)]);
        assert_eq!(plain.two_hop_users(&[3, 2, 5]), [(2, 0), (3, 1)]);
        assert_eq!(plain.needs(&[3, 5]), [3, 4, 5]);
        assert_eq!(plain.needed_by(&[3]), [0, 1, 2, 3]);
        assert_eq!(plain.needs_of_each(&[5, 3, 5]), [(3, 3), (5, 4), (5, 5)]);
        assert_eq!(plain.needed_by_each(&[4]), [(4, 4), (4, 5)]);
        assert_eq!(plain.components(), [(0, 0), (1, 0), (2, 0), (3, 0), (4, 4), (5, 4)]);
    }

    #[test]
    fn no_nodes_no_answers() {
        let plain = Plain::new(0, &[]);
        assert!(plain.out_degrees().is_empty() && plain.components().is_empty() && plain.needs(&[]).is_empty());
    }

    #[test]
    fn debian_has_the_components_known_from_elsewhere() {
        let graph = load(&built_in(), Form::Adjacency).unwrap();
        let mut sizes = BTreeMap::new();
        for (_, label) in Plain::new(graph.names.len(), &graph.edges).components() {
            *sizes.entry(label).or_insert(0) += 1;
        }
        assert_eq!((sizes.len(), sizes.into_values().max()), (201, Some(63_566)));
    }

    /// The definitions, applied until nothing is new.
    fn closure(edges: &BTreeSet<(u32, u32)>) -> BTreeSet<(u32, u32)> {
        let nodes = edges.iter().flat_map(|&(source, target)| [source, target]);
        let mut pairs: BTreeSet<_> = nodes.map(|node| (node, node)).collect();
        loop {
            let longer = pairs.iter().flat_map(|&(root, middle)| {
                edges.range((middle, 0)..=(middle, u32::MAX)).map(move |&(_, target)| (root, target))
            });
            let longer: BTreeSet<_> = longer.filter(|pair| !pairs.contains(pair)).collect();
            if longer.is_empty() {
                return pairs;
            }
            pairs.extend(longer);
        }
    }

    quickcheck! {
        fn answers_are_those_of_the_definitions(list: Vec<(u8, u8)>) -> bool {
            let edges: BTreeSet<_> = list.iter().map(|&(s, t)| (u32::from(s % 16), u32::from(t % 16))).collect();
            let plain = Plain::new(16, &edges.iter().rev().copied().collect::<Vec<_>>());
            let pairs = closure(&edges);
            let turned = |set: &BTreeSet<(u32, u32)>| set.iter().map(|&(a, b)| (b, a)).collect::<BTreeSet<_>>();
            let either = closure(&edges.union(&turned(&edges)).copied().collect());
            let nodes: Vec<u32> = pairs.iter().filter(|(a, b)| a == b).map(|&(a, _)| a).collect();
            let smallest = |node| either.iter().filter(|pair| pair.0 == node).map(|pair| pair.1).min().unwrap();
            let two_hop: BTreeSet<_> = edges.iter()
                .flat_map(|&(a, b)| edges.iter().filter(move |pair| pair.0 == b).map(move |pair| (a, pair.1)))
                .collect();
            plain.needs_of_each(&nodes) == pairs.iter().copied().collect::<Vec<_>>()
                && plain.needed_by_each(&nodes) == turned(&pairs).into_iter().collect::<Vec<_>>()
                && plain.two_hop(&nodes) == two_hop.into_iter().collect::<Vec<_>>()
                && plain.needs(&nodes) == nodes
                && plain.components() == nodes.iter().map(|&node| (node, smallest(node))).collect::<Vec<_>>()
        }
    }
}
