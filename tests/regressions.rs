//! What fuzzing once found, and inputs that are hard: each file of `fuzz/regressions/` through the check that its target
//! runs. Those of `dataflow` are replayed by `oracle`, those of `columnar` by that package, which have the checks compiled.
#![forbid(unsafe_code)]

mod progress_graphs;
#[path = "regressions/saved.rs"]
mod saved;

use progress_graphs::check as tracker;
use saved::replay;

#[test]
fn arena() {
    replay("arena", |bytes| kpg_arena::check::check_bytes(bytes, false));
}

#[test]
fn batch() {
    replay("batch", |bytes| kpg::trace::check::batch::check_bytes(bytes, false));
}

#[test]
fn spine() {
    replay("spine", |bytes| kpg::trace::check::check_bytes(bytes, false));
}

#[test]
fn tracker() {
    replay("tracker", |bytes| tracker::check_bytes(bytes, false));
}

/// A directory of a name that nobody replays would be forgotten.
#[test]
fn each_directory_is_replayed() {
    let entries = std::fs::read_dir(saved::directory()).expect("it is there");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("it can be read").file_name()).collect();
    names.sort();
    assert_eq!(names, ["arena", "batch", "columnar", "dataflow", "spine", "tracker"]);
}
