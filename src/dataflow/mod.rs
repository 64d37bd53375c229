//! dataflow
