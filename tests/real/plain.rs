//! Plain evaluators: each question answered from all edges at once, by its definition.
//!
//! Nodes are compressed to 0, 1, 2, … in the order of their numbers, so that sets are bit sets and the smallest label is
//! the smallest number; answers bear the numbers that the edges have. Closures of n nodes take n²/8 bytes and a visit
//! of each (source, edge) pair that is reached. Next stop: the tests in `plain_tests`.

use crate::data::Edge;
use std::collections::BTreeMap;

/// A graph, ready to be asked.
pub struct Plain {
    /// The edges' own numbers, ascending; the position is the compressed node.
    numbers: Vec<u32>,
    forward: Vec<Vec<u32>>,
    backward: Vec<Vec<u32>>,
    edge_count: usize,
}

/// A set of nodes that remembers the order in which they came.
struct Visited {
    seen: Vec<bool>,
    order: Vec<u32>,
}

impl Visited {
    fn new(node_count: usize) -> Self {
        Visited { seen: vec![false; node_count], order: Vec::new() }
    }

    /// Whether the node is new.
    fn insert(&mut self, node: u32) -> bool {
        let new = !std::mem::replace(&mut self.seen[node as usize], true);
        if new {
            self.order.push(node);
        }
        new
    }

    /// Empties the set, at the cost of what is in it.
    fn clear(&mut self) {
        for node in self.order.drain(..) {
            self.seen[node as usize] = false;
        }
    }

    /// Adds all that is reached from what is in the set.
    fn close(&mut self, targets: &[Vec<u32>]) {
        let mut next = 0;
        while next < self.order.len() {
            for &target in &targets[self.order[next] as usize] {
                self.insert(target);
            }
            next += 1;
        }
    }
}

impl Plain {
    /// From edges in any order; repetitions count once.
    pub fn new(edges: &[Edge]) -> Self {
        let mut edges = edges.to_vec();
        edges.sort_unstable();
        edges.dedup();
        let mut numbers: Vec<u32> = edges.iter().flat_map(|&(source, target)| [source, target]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let mut plain = Plain {
            forward: vec![Vec::new(); numbers.len()],
            backward: vec![Vec::new(); numbers.len()],
            edge_count: edges.len(),
            numbers,
        };
        for (source, target) in edges {
            let (source, target) = (plain.node(source), plain.node(target));
            plain.forward[source as usize].push(target);
            plain.backward[target as usize].push(source);
        }
        plain
    }

    /// The compressed node of a number.
    fn node(&self, number: u32) -> u32 {
        self.numbers.binary_search(&number).expect("only nodes that have an edge are asked about") as u32
    }

    /// Nodes that have an edge.
    pub fn node_count(&self) -> usize {
        self.numbers.len()
    }

    /// Distinct edges.
    pub fn edge_count(&self) -> usize {
        self.edge_count
    }

    /// (node, smallest node of its component), edges taken in both directions; sorted by node.
    pub fn components(&self) -> Vec<(u32, u32)> {
        let mut visited = Visited::new(self.node_count());
        let mut labels = Vec::with_capacity(self.node_count());
        for root in 0..self.node_count() as u32 {
            if !visited.insert(root) {
                continue;
            }
            let mut next = visited.order.len() - 1;
            while next < visited.order.len() {
                let node = visited.order[next] as usize;
                for &neighbour in self.forward[node].iter().chain(&self.backward[node]) {
                    visited.insert(neighbour);
                }
                labels.push((self.numbers[node], self.numbers[root as usize]));
                next += 1;
            }
        }
        labels.sort_unstable();
        labels
    }

    /// (node, least number of edges from the root to it), sorted by node; the root is at 0.
    pub fn distances(&self, root: u32) -> Vec<(u32, u32)> {
        let root = self.node(root);
        let mut distance = vec![u32::MAX; self.node_count()];
        distance[root as usize] = 0;
        let mut queue = vec![root];
        let mut next = 0;
        while next < queue.len() {
            let node = queue[next] as usize;
            for &target in &self.forward[node] {
                if distance[target as usize] == u32::MAX {
                    distance[target as usize] = distance[node] + 1;
                    queue.push(target);
                }
            }
            next += 1;
        }
        let reached = distance.iter().zip(&self.numbers).filter(|&(&distance, _)| distance != u32::MAX);
        reached.map(|(&distance, &number)| (number, distance)).collect()
    }

    /// All that paths of any length from `roots` get to, the roots included; sorted.
    pub fn reach(&self, roots: &[u32]) -> Vec<u32> {
        let mut visited = Visited::new(self.node_count());
        for &root in roots {
            visited.insert(self.node(root));
        }
        visited.close(&self.forward);
        let mut reached: Vec<_> = visited.order.iter().map(|&node| self.numbers[node as usize]).collect();
        reached.sort_unstable();
        reached
    }

    /// How many pairs (x, y) have a path of at least one edge from x to y.
    pub fn transitive_closure_size(&self) -> u64 {
        let mut visited = Visited::new(self.node_count());
        let mut size = 0;
        for targets in &self.forward {
            for &target in targets {
                visited.insert(target);
            }
            visited.close(&self.forward);
            size += visited.order.len() as u64;
            visited.clear();
        }
        size
    }

    /// Calls `found` once with each pair (x, y) of the same generation, in no particular order:
    /// `sg(x, y) :- edge(p, x), edge(p, y), x != y` and `sg(x, y) :- edge(a, x), sg(a, b), edge(b, y)`.
    fn each_same_generation(&self, mut found: impl FnMut(u32, u32)) {
        let node_count = self.node_count();
        let mut seen = vec![0_u64; (node_count * node_count).div_ceil(64)];
        let mut waiting = Vec::new(); // pairs that are found, whose consequences are not
        let mut visit = |x: u32, y: u32, waiting: &mut Vec<(u32, u32)>| {
            let bit = x as usize * node_count + y as usize;
            if seen[bit / 64] & 1 << (bit % 64) == 0 {
                seen[bit / 64] |= 1 << (bit % 64);
                found(x, y);
                waiting.push((x, y));
            }
        };
        for children in &self.forward {
            for &x in children {
                for &y in children.iter().filter(|&&y| y != x) {
                    visit(x, y, &mut waiting);
                }
            }
        }
        while let Some((a, b)) = waiting.pop() {
            for &x in &self.forward[a as usize] {
                for &y in &self.forward[b as usize] {
                    visit(x, y, &mut waiting);
                }
            }
        }
    }

    /// The pairs (x, y) of the same generation, sorted.
    pub fn same_generation(&self) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        self.each_same_generation(|x, y| pairs.push((self.numbers[x as usize], self.numbers[y as usize])));
        pairs.sort_unstable();
        pairs
    }

    /// How many pairs are of the same generation.
    pub fn same_generation_size(&self) -> u64 {
        let mut size = 0;
        self.each_same_generation(|_, _| size += 1);
        size
    }

    /// How many nodes are at depth 0, 1, 2, … of a tree.
    ///
    /// # Panics
    /// If this is no tree: one root, one parent for each other node, all reached from the root.
    pub fn nodes_per_depth(&self) -> Vec<u64> {
        let roots: Vec<_> = (0..self.node_count()).filter(|&node| self.backward[node].is_empty()).collect();
        let [root] = roots[..] else { panic!("{} roots", roots.len()) };
        assert!(self.backward.iter().all(|parents| parents.len() <= 1), "a node with two parents");
        let mut depths = vec![0; 1];
        let distances = self.distances(self.numbers[root]);
        assert_eq!(distances.len(), self.node_count(), "nodes reached from the root, and all nodes");
        for (_, depth) in distances {
            let depth = depth as usize;
            depths.resize(depths.len().max(depth + 1), 0);
            depths[depth] += 1;
        }
        depths
    }
}

/// How many components there are, and how many nodes the largest has.
pub fn component_sizes(components: &[(u32, u32)]) -> (u64, u64) {
    let mut sizes = BTreeMap::new();
    for &(_, label) in components {
        *sizes.entry(label).or_insert(0) += 1;
    }
    (sizes.len() as u64, sizes.into_values().max().unwrap_or(0))
}
