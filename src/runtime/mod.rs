//! runtime
pub mod fabric;
pub mod topology;
