//! What the benches of kpg's kernels are made of: how they are measured, and the limits they are held against.
//!
//! ```text
//! lab      measures a kernel and its limits side by side; the table
//! limits   what plain arrays do: a branchless merge, searches
//! ```
//! The kernels themselves stand in `benches/kernels/`, a file for each part of kpg.
#![forbid(unsafe_code)]

pub mod lab;
pub mod limits;

pub use lab::{Clock, Compared, Lab};
