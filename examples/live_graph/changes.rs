//! What happens to the graph: one seed, one story.
//!
//! ```text
//! load rounds          edges arrive in the order of the file
//! rounds of changes    a few random edges go, a few that went come back; now and then an argument changes
//!   at 1/4, at 3/4     all edges of the hub go ("what breaks if libc6 goes"), and come back some rounds later
//! ```
//!
//! [`Changes`] knows which edges are there, so it never removes one twice. Next stop: `queries`.

/// An edge: source, target.
pub type Edge = (u32, u32);

/// Random edges that go in a round; as many that went come back, once there are enough.
const EDGES_A_ROUND: usize = 10;

/// Edges stay away while fewer than this many are, and fewer than a quarter of those that are there.
const AWAY: usize = 500;

/// Numbers that look random: xorshift64*, never the same state twice in 2^64 - 1 steps.
pub struct Random(u64);

impl Random {
    /// Another seed, other numbers.
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D);
        ((u128::from(number) * bound as u128) >> 64) as usize
    }
}

/// Edges that come and go in one round.
#[derive(Debug, Default)]
pub struct Round {
    /// They come.
    pub added: Vec<Edge>,
    /// They go.
    pub removed: Vec<Edge>,
}

/// The graph as it is, and how it goes on.
pub struct Changes {
    /// Edges that are there.
    pub present: Vec<Edge>,
    away: Vec<Edge>,
    hub: u32,
    without_hub: Vec<Edge>,
    random: Random,
}

impl Changes {
    /// An empty graph. `hub` is the node whose edges all go at a time.
    pub fn new(hub: u32, seed: u64) -> Self {
        Changes { present: Vec::new(), away: Vec::new(), hub, without_hub: Vec::new(), random: Random::new(seed) }
    }

    /// A round in which these edges arrive.
    pub fn arrive(&mut self, edges: &[Edge]) -> Round {
        self.present.extend_from_slice(edges);
        Round { added: edges.to_vec(), removed: Vec::new() }
    }

    /// Whether round `round` of `rounds` begins or ends a time without the hub.
    pub fn is_turn(round: u64, rounds: u64) -> bool {
        Self::hub_goes(round, rounds) || Self::hub_returns(round, rounds)
    }

    fn hub_goes(round: u64, rounds: u64) -> bool {
        rounds >= 8 && (round == rounds / 4 || round == rounds / 4 * 3)
    }

    fn hub_returns(round: u64, rounds: u64) -> bool {
        // At least one round later, and before it goes again or all is over.
        let after = (rounds / 20).max(1);
        rounds >= 8 && (round == rounds / 4 + after || round == rounds / 4 * 3 + after)
    }

    /// Round `round` of `rounds` rounds of changes.
    pub fn next(&mut self, round: u64, rounds: u64) -> Round {
        let mut changes = Round::default();
        if Self::hub_goes(round, rounds) {
            let (gone, kept) = self.present.iter().partition(|&&edge| self.is_of_hub(edge));
            self.present = kept;
            self.without_hub = gone;
            changes.removed.extend_from_slice(&self.without_hub);
        }
        if Self::hub_returns(round, rounds) {
            self.present.extend_from_slice(&self.without_hub);
            changes.added.append(&mut self.without_hub);
        }
        let mut back = Vec::new();
        for _ in 0..self.away.len().saturating_sub(AWAY.min(self.present.len() / 4)).min(EDGES_A_ROUND) {
            let index = self.random.below(self.away.len());
            // While the hub is away, so are all of its edges.
            if self.without_hub.is_empty() || !self.is_of_hub(self.away[index]) {
                back.push(self.away.swap_remove(index));
            }
        }
        for _ in 0..EDGES_A_ROUND.min(self.present.len() / 2) {
            let index = self.random.below(self.present.len());
            let edge = self.present.swap_remove(index);
            // What returned in this very round may go with it: the two cancel, which the engine must bear as well.
            changes.removed.push(edge);
            self.away.push(edge);
        }
        self.present.extend_from_slice(&back);
        changes.added.extend(back);
        changes
    }

    fn is_of_hub(&self, (source, target): Edge) -> bool {
        source == self.hub || target == self.hub
    }

    /// A node that has an edge; `None` if there is no edge.
    pub fn any_node(&mut self) -> Option<u32> {
        if self.present.is_empty() {
            return None;
        }
        let index = self.random.below(self.present.len());
        Some(self.present[index].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_below_a_bound_come_all() {
        let mut random = Random::new(7);
        let seen: BTreeSet<_> = (0..1000).map(|_| random.below(10)).collect();
        assert_eq!(seen.len(), 10);
    }

    quickcheck! {
        fn what_is_there_is_what_was_added_less_what_was_removed(edges: Vec<(u8, u8)>, rounds: u8, seed: u64) -> bool {
            let edges: BTreeSet<Edge> = edges.iter().map(|&(s, t)| (u32::from(s % 8), u32::from(t % 8))).collect();
            let edges: Vec<Edge> = edges.into_iter().collect();
            let mut changes = Changes::new(3, seed);
            let mut there: BTreeSet<Edge> = changes.arrive(&edges).added.into_iter().collect();
            let rounds = u64::from(rounds);
            (0..rounds).all(|round| {
                let Round { added, removed } = changes.next(round, rounds);
                let fresh = added.iter().all(|edge| there.insert(*edge));
                let known = removed.iter().all(|edge| there.remove(edge));
                let mut present = changes.present.clone();
                present.sort_unstable();
                fresh && known && present == there.iter().copied().collect::<Vec<_>>()
            })
        }
    }
}
