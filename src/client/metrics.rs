//! What an engine's memory is used for, as a client sees it.
#![forbid(unsafe_code)]

use crate::runtime::{Lag, MergeState, Query};

pub(super) fn bytes_of(query: &Query) -> QueryBytes {
    QueryBytes { private: query.private.live_bytes(), shared: query.shared.live_bytes() }
}

/// The bytes of a query, on all workers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct QueryBytes {
    /// What it holds for itself.
    pub private: usize,
    /// The arrangements that it publishes.
    pub shared: usize,
}

pub(super) fn arrangements_of(query: &Query) -> Vec<ArrangementMetrics> {
    let arrangements = query.arrangements().into_iter();
    arrangements.map(|(name, merging)| ArrangementMetrics { name, merging }).collect()
}

/// One arrangement in the engine's metrics: of each operator that keeps one, published or not.
#[derive(Clone, Debug)]
pub struct ArrangementMetrics {
    /// Its operator's name.
    pub name: String,
    /// What it took in and merged so far, and how it is now, on all workers together: as of the last batch, or the last
    /// merging, on each.
    pub merging: MergeState,
}

/// One query in the engine's metrics.
#[derive(Clone, Debug)]
pub struct QueryMetrics {
    /// Its name.
    pub name: String,
    /// Its memory.
    pub bytes: QueryBytes,
    /// How often a node of it was stepped so far, on all workers together.
    pub node_steps: u64,
    /// What it keeps of others' arrangements because it lags.
    pub lags: Vec<Lag>,
    /// The arrangements that it keeps, in the order in which they were made.
    pub arrangements: Vec<ArrangementMetrics>,
    /// Whether it has ended, though it was not retired yet.
    pub ended: bool,
}

/// What an engine's memory is used for.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// The installed queries.
    pub queries: Vec<QueryMetrics>,
    /// Each worker's arena: reserved, live and peak bytes.
    pub arenas: Vec<kpg_arena::Stats>,
}

/// How an engine was when it was shut down.
#[derive(Clone, Debug)]
pub struct Report {
    /// Whether the workers had come to rest: nothing that was put in before was left undone.
    pub drained: bool,
    /// What their memory was used for.
    pub metrics: Metrics,
}
