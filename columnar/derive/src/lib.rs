//! `#[derive(Columnar)]`: columns for structs and enums.
#![forbid(unsafe_code)]
