//! The merge laboratory: what does a merge policy do to latency, throughput, writes, reads and memory?
//!
//! ```text
//! options    what is swept: a list for each knob     ─▶ points
//! run        one point on an engine of its own       ─▶ an outcome: numbers, latencies, a series over time
//! results    the outcomes so far, as JSON; a sweep that was cut short goes on from there
//! summary    policies compared over all that is not policy
//! page, plot one HTML file
//! ```
#![forbid(unsafe_code)]

pub mod options;
pub mod page;
pub mod plot;
pub mod results;
pub mod run;
pub mod summary;

pub use options::{Options, Point};
pub use results::{Outcome, Results};
