//! Plain code on arrays and hash maps, without an engine: what results must be, and how little time they may take.
#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::hash::BuildHasher;

/// A graph by source: the targets of node v are at `ends[v]..ends[v + 1]`.
pub struct Csr {
    ends: Vec<u32>,
    targets: Vec<u32>,
}

impl Csr {
    /// Of nodes below `nodes`.
    pub fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Csr {
        let mut ends = vec![0u32; nodes + 2];
        edges.clone().for_each(|(source, _)| ends[source as usize + 2] += 1);
        (2..ends.len()).for_each(|index| ends[index] += ends[index - 1]);
        let mut targets = vec![0; ends[nodes + 1] as usize];
        for (source, target) in edges {
            let at = &mut ends[source as usize + 1];
            targets[*at as usize] = target;
            *at += 1;
        }
        Csr { ends, targets }
    }
    fn targets(&self, node: u32) -> &[u32] {
        &self.targets[self.ends[node as usize] as usize..self.ends[node as usize + 1] as usize]
    }
    /// The distance of each node from the root; `u32::MAX` where there is no path.
    pub fn distances(&self, root: u32) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.ends.len() - 2];
        distances[root as usize] = 0;
        let (mut front, mut distance) = (vec![root], 0);
        while !front.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for node in front {
                for &target in self.targets(node) {
                    if distances[target as usize] == u32::MAX {
                        distances[target as usize] = distance;
                        next.push(target);
                    }
                }
            }
            front = next;
        }
        distances
    }
    /// The same in a hash map, for nodes that are no small numbers.
    pub fn distances_hashed<S: BuildHasher + Default>(&self, root: u32) -> HashMap<u32, u32, S> {
        let mut distances = HashMap::default();
        distances.insert(root, 0);
        let (mut front, mut distance) = (vec![root], 0);
        while !front.is_empty() {
            distance += 1;
            let mut next = Vec::new();
            for node in front {
                for &target in self.targets(node) {
                    distances.entry(target).or_insert_with(|| {
                        next.push(target);
                        distance
                    });
                }
            }
            front = next;
        }
        distances
    }
}

/// How many nodes there is a path to, and the sum of their distances.
pub fn reached(distances: impl Iterator<Item = u32>) -> (i64, i64) {
    distances.filter(|distance| *distance != u32::MAX).fold((0, 0), |sums, d| (sums.0 + 1, sums.1 + i64::from(d)))
}

/// Each node's smallest connected one; itself where there is no edge.
pub fn components(nodes: usize, edges: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut parents: Vec<u32> = (0..nodes as u32).collect();
    fn find(parents: &mut [u32], mut node: u32) -> u32 {
        while parents[node as usize] != node {
            let above = parents[parents[node as usize] as usize];
            parents[node as usize] = above;
            node = above;
        }
        node
    }
    for (a, b) in edges {
        let (a, b) = (find(&mut parents, a), find(&mut parents, b));
        parents[a.max(b) as usize] = a.min(b);
    }
    (0..nodes as u32).map(|node| find(&mut parents, node)).collect()
}
