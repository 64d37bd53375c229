//! Progress: which timestamps may still come, and where. It never sees data, nor a timestamp's type.
//!
//! ```text
//! GraphBuilder ──build──▶ Graph          locations, scopes, summaries of edges, positions; what cannot end is refused
//! a node's step ────────▶ ChangeBatch    counts of pointstamps, applied whole
//!                           │
//!                           ▼
//!                        Tracker         signed counts in, a frontier at each location out
//! ```
//!
//! Reading order: [`Summary`] (what an edge does to a time), [`GraphBuilder`] and [`Graph`] (and why the order of work
//! always moves on: `positions`), [`ChangeBatch`], [`Tracker`]. Next stop: `runtime`.
#![forbid(unsafe_code)]

mod change;
mod error;
mod graph;
mod positions;
mod summary;
mod tracker;
mod worklist;

pub use change::ChangeBatch;
pub use error::GraphError;
pub use graph::{Graph, GraphBuilder, Kind, Location, ScopeId};
pub use summary::Summary;
pub use tracker::Tracker;
