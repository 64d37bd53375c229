//! dataflow
mod updates;
pub use updates::Updates;
