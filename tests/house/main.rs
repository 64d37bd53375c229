//! The house rules: what holds of the sources themselves, so that a reader can rely on it.
//!
//! ```text
//! sources   the tree's text files, and Rust code without comments and strings
//!    ├─▶ floors     modules import lower floors only
//!    ├─▶ packages   what the library depends on
//!    ├─▶ text       unsafe in its rooms, no bare unwrap, no names of this or that machine, short files
//!    └─▶ papers     what README, ARCHITECTURE and CONTRIBUTING name is there; the README's program is the example
//! ```
//! A check is a function from files to complaints. Each has a canary beside it: made-up files that it must complain of.
#![forbid(unsafe_code)]

mod floors;
mod packages;
mod papers;
mod sources;
mod text;

/// Fails with all complaints, one a line.
fn none(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n  {}\n", complaints.join("\n  "));
}
