//! Generators: SplitMix64 by number, so that any part of a sequence can be had without what precedes it.
#![forbid(unsafe_code)]

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finalizer (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014).
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The `i`-th output, from 0, of SplitMix64 with this seed.
pub fn rnd(seed: u64, i: u64) -> u64 {
    mix(seed.wrapping_add(i.wrapping_add(1).wrapping_mul(GAMMA)))
}

/// `x` as a number below `n`, by its high bits.
pub fn below(x: u64, n: u64) -> u64 {
    ((u128::from(x) * u128::from(n)) >> 64) as u64
}

/// Keys of which `keys` are live at any time: the first so many are loaded, then each request adds the next and removes
/// the oldest.
#[derive(Copy, Clone, Debug)]
pub struct Keys {
    /// How many are live, and below what they are.
    pub keys: u64,
}

impl Keys {
    /// Key number `i`.
    pub fn key(self, i: u64) -> u64 {
        below(rnd(1, i), self.keys)
    }
    /// What request `c` adds, and what it removes.
    pub fn request(self, c: u64) -> (u64, u64) {
        (self.key(self.keys + c), self.key(c))
    }
    /// Update number `u` of the requests, as (key, diff): adding and removing take turns.
    pub fn update(self, u: u64) -> (u64, i64) {
        let (added, removed) = self.request(u / 2);
        if u.is_multiple_of(2) { (added, 1) } else { (removed, -1) }
    }
}

/// Edge number `i` of the random graph with this many nodes; duplicates and loops stay.
pub fn random_edge(nodes: u64, seed: u64, i: u64) -> (u32, u32) {
    (below(rnd(seed, 2 * i), nodes) as u32, below(rnd(seed, 2 * i + 1), nodes) as u32)
}

/// Edge number `i` of the R-MAT graph (Chakrabarti, Zhan, Faloutsos, SDM 2004) with `2^scale` nodes: probabilities
/// 0.57, 0.19, 0.19, 0.05, no permutation; duplicates and loops stay. There are `16 * 2^scale`.
pub fn rmat_edge(scale: u32, i: u64) -> (u32, u32) {
    let seed = rnd(11, i);
    let (mut source, mut target) = (0, 0);
    for level in 0..scale {
        let r = (rnd(seed, u64::from(level)) >> 11) as f64 / (1u64 << 53) as f64;
        let (a, b) = match r {
            r if r < 0.57 => (0, 0),
            r if r < 0.76 => (0, 1),
            r if r < 0.95 => (1, 0),
            _ => (1, 1),
        };
        (source, target) = (source << 1 | a, target << 1 | b);
    }
    (source, target)
}

/// A random tree, breadth first from node 0: each node above `height` is inner with probability 0.65 (the root always)
/// and then has two to six children.
pub fn tree(height: u32) -> Vec<(u32, u32)> {
    let (mut edges, mut level, mut nodes, mut draws) = (Vec::new(), vec![0u32], 1u32, 0u64);
    let mut draw = |n| {
        draws += 1;
        below(rnd(22, draws - 1), n)
    };
    for depth in 0..height {
        let mut next = Vec::new();
        for node in level {
            if depth == 0 || draw(100) < 65 {
                for _ in 0..2 + draw(5) {
                    edges.push((node, nodes));
                    next.push(nodes);
                    nodes += 1;
                }
            }
        }
        level = next;
    }
    edges
}

/// A grid of `(side + 1)²` nodes, with edges to the right and down.
pub fn grid(side: u32) -> Vec<(u32, u32)> {
    let at = |row: u32, column: u32| row * (side + 1) + column;
    let mut edges = Vec::new();
    for row in 0..=side {
        for column in 0..=side {
            if column < side {
                edges.push((at(row, column), at(row, column + 1)));
            }
            if row < side {
                edges.push((at(row, column), at(row + 1, column)));
            }
        }
    }
    edges
}

/// The random graph G(n, p), without loops.
pub fn gnp(nodes: u64, p: f64) -> Vec<(u32, u32)> {
    let bound = (p * (2f64.powi(64))) as u64;
    let pairs = (0..nodes).flat_map(|u| (0..nodes).map(move |v| (u, v)));
    let edge = |&(u, v): &(u64, u64)| u != v && rnd(31, u * nodes + v) < bound;
    pairs.filter(edge).map(|(u, v)| (u as u32, v as u32)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known sizes, from another program.
    #[test]
    fn sizes_are_as_published() {
        assert_eq!(rnd(0, 0), 0xE220_A839_7B1D_CDAF, "the first output of SplitMix64 of seed 0");
        assert_eq!(tree(11).len(), 73_105);
        assert_eq!(tree(9).len(), 10_764);
        assert_eq!(grid(150).len(), 45_300);
        let keys = Keys { keys: 1000 };
        assert_eq!(keys.request(0), (keys.key(1000), keys.key(0)));
        assert!((0..10_000).all(|i| keys.key(i) < 1000));
    }

    #[test]
    fn a_random_graph_has_the_published_number_of_edges() {
        assert_eq!(gnp(10_000, 0.001).len(), 100_483);
    }
}
