//! Modules import lower floors only; below the engine, bytes know nothing of columns, and columns nothing of time.
//!
//! Looked at is code: `crate::floor`, `super::floor`, and the names of the workspace's packages. Tests count as code.
//! Next stop: `packages`.

use super::none;
use super::sources::{self, Source, code, heads, line, words};

/// The floors of `src/`, from the ground up: name, height, the workspace's packages that it may name.
const FLOORS: [(&str, usize, &[&str]); 8] = [
    ("order", 0, &["kpg_columnar"]),
    ("sync", 0, &[]),
    ("progress", 1, &[]),
    ("runtime", 2, &["kpg_arena"]),
    ("dataflow", 3, &["kpg_arena", "kpg_columnar"]),
    ("trace", 4, &["kpg_arena", "kpg_columnar"]),
    ("operators", 5, &["kpg_arena", "kpg_columnar"]),
    ("client", 6, &["kpg_arena", "kpg_columnar"]),
];

/// What columns do not know.
const OF_TIME: [&str; 6] = ["Timestamp", "Antichain", "Lattice", "frontier", "Frontier", "since"];

fn floor(name: &str) -> Option<&'static (&'static str, usize, &'static [&'static str])> {
    FLOORS.iter().find(|floor| floor.0 == name)
}

fn complaints(all: &[Source]) -> Vec<String> {
    let mut out = Vec::new();
    for source in all.iter().filter(|source| source.is_rust()) {
        let code = code(&source.text);
        let mut complain = |at, what: String| out.push(format!("{}:{}: {what}", source.path, line(&code, at)));
        if let Some(inside) = source.path.strip_prefix("src/") {
            let name = inside.split('/').next().unwrap_or_default();
            match (floor(name), inside) {
                (Some(floor), _) => imports(floor, &code, &mut complain),
                (None, "lib.rs") => {}
                (None, _) => complain(0, format!("{name} is no floor: put it in one, or in the table of this test")),
            }
        } else if source.path.starts_with("arena/") {
            forbidden(&code, &["kpg::", "kpg_columnar"], "the arena knows nothing above it", &mut complain);
        } else if source.path.starts_with("columnar/") {
            // What the derive writes is for users of the engine.
            if !source.path.starts_with("columnar/derive/") {
                forbidden(&code, &["kpg::"], "columnar knows nothing above it", &mut complain);
            }
            forbidden(&code, &OF_TIME, "columnar knows nothing of time", &mut complain);
        }
    }
    out
}

fn imports(floor: &(&str, usize, &[&str]), code: &str, complain: &mut impl FnMut(usize, String)) {
    let (name, height, packages) = floor;
    for path in ["crate::", "super::"] {
        for at in words(code, path.trim_end_matches(':')) {
            let Some(rest) = code[at..].strip_prefix(path) else { continue };
            for head in heads(rest) {
                if let Some((other, above, _)) = self::floor(head)
                    && other != name
                    && above >= height
                {
                    complain(at, format!("{name} imports {other}, which is not below it"));
                }
                // The packages' other names.
                if let Some(package) = ["arena", "columnar"].into_iter().find(|package| head == *package) {
                    complain(at, format!("inside the engine {package} is called kpg_{package}"));
                }
            }
        }
    }
    for package in ["kpg_arena", "kpg_columnar"].iter().filter(|package| !packages.contains(package)) {
        forbidden(code, &[package], &format!("{name} does without it"), complain);
    }
}

/// A name that ends in `::` is looked for as the start of a path.
fn forbidden(code: &str, names: &[&str], why: &str, complain: &mut impl FnMut(usize, String)) {
    for name in names {
        let found = words(code, name.trim_end_matches(':')).filter(|at| code[*at..].starts_with(name));
        found.for_each(|at| complain(at, format!("{name}: {why}")));
    }
}

#[test]
fn modules_import_lower_floors_only() {
    let all = sources::all();
    for (name, _, _) in FLOORS {
        assert!(all.iter().any(|source| source.path == format!("src/{name}/mod.rs")), "there is no floor {name}");
    }
    none(complaints(&all));
}

#[test]
fn canary() {
    let bad = [
        ("src/progress/tracker.rs", "use crate::runtime::Worker;"),
        ("src/order/mod.rs", "use crate::sync::Mutex;"),
        ("src/trace/spine.rs", "fn f() { crate::operators::g() }"),
        ("src/trace/wrap/mod.rs", "use super::super::client::Error;"),
        ("src/dataflow/run.rs", "use crate::{order::Coords, client::{Error, Query}};"),
        ("src/progress/graph.rs", "use kpg_columnar::Column;"),
        ("src/client/input.rs", "use crate::columnar::Column;"),
        ("src/cellar.rs", ""),
        ("arena/src/store.rs", "use kpg_columnar::Column;"),
        ("columnar/src/sort.rs", "use kpg::order::Coords;"),
        ("arena/src/tag.rs", "fn f(_: kpg::runtime::Query) {}"),
        ("columnar/src/merge.rs", "fn merge(since: u64) {}"),
    ];
    for (path, text) in bad {
        assert_eq!(complaints(&[Source::new(path, text)]).len(), 1, "{path}: {text}");
    }
    let good = [
        ("src/trace/spine.rs", "use crate::order::Antichain; use crate::trace::merge; // crate::client"),
        ("src/client/engine.rs", "use crate::{order::Timestamp, trace::MergePolicy}; use kpg_arena::Arena;"),
        ("columnar/src/sort.rs", "//! kpg\nuse kpg_arena::Buffer;"),
    ];
    good.into_iter().for_each(|(path, text)| none(complaints(&[Source::new(path, text)])));
}
