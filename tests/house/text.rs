//! What the text of each file keeps to: `unsafe` in its rooms, no bare `unwrap`, nothing that only this or that
//! machine has, no file too long to be read in one go.
//!
//! Next stop: `papers`, what the documents say.

use super::none;
use super::sources::{self, Source, code, line, test_files, without_tests, words};
use std::collections::BTreeSet;

/// Lines that no Rust file may exceed. Most are a third of it.
const LONGEST: usize = 700;

/// Files with `unsafe` outside of the arena and `src/sync/`, each for a measured reason that its head gives.
const NAMED: [&str; 1] = ["columnar/src/strings.rs"];

fn is_room(path: &str) -> bool {
    path.starts_with("arena/") || path.starts_with("src/sync/") || NAMED.contains(&path)
}

/// Whether the file, or one that it is a module of, forbids `unsafe`.
fn is_forbidden(path: &str, forbidding: &BTreeSet<&str>) -> bool {
    let mut above = path.trim_end_matches(".rs");
    if forbidding.contains(path) {
        return true;
    }
    while let Some((directory, _)) = above.rsplit_once('/') {
        let candidates = ["mod", "lib", "main"].map(|name| format!("{directory}/{name}.rs"));
        if candidates.iter().chain([&format!("{directory}.rs")]).any(|file| forbidding.contains(file.as_str())) {
            return true;
        }
        above = directory;
    }
    false
}

fn unsafe_outside(all: &[Source]) -> Vec<String> {
    let rust: Vec<_> = all.iter().filter(|source| source.is_rust()).map(|s| (s.path.as_str(), code(&s.text))).collect();
    let with = |text: &str| rust.iter().filter(|(_, code)| code.contains(text)).map(|(path, _)| *path).collect();
    let forbidding: BTreeSet<&str> = with("#![forbid(unsafe_code)]");
    let denying: BTreeSet<&str> = with("#![deny(unsafe_code)]");
    let mut out = Vec::new();
    for (path, code) in rust.iter().filter(|(path, _)| !is_room(path)) {
        if let Some(at) = words(code, "unsafe").next() {
            out.push(format!("{path}:{}: unsafe outside of its rooms", line(code, at)));
        }
        // A crate with a named file can only deny, and allow it there.
        let denied = path.starts_with("columnar/src/") && denying.contains("columnar/src/lib.rs");
        let lifted = ["allow(unsafe_code)", "expect(unsafe_code"].iter().any(|lift| code.contains(lift));
        // What a fuzz target's macro makes is no business of ours, and the crate's root has the rooms inside it.
        let exempt = path.starts_with("fuzz/") || *path == "src/lib.rs";
        if lifted || !(exempt || denied || is_forbidden(path, &forbidding)) {
            out.push(format!("{path}: start it with #![forbid(unsafe_code)]"));
        }
    }
    out
}

/// Files in which the word stands in code, by path: what README's inventory must list.
pub fn with_unsafe(all: &[Source]) -> BTreeSet<String> {
    let has = |source: &&Source| words(&code(&source.text), "unsafe").next().is_some();
    all.iter().filter(|source| source.is_rust()).filter(has).map(|source| source.path.clone()).collect()
}

fn bare_unwraps(all: &[Source]) -> Vec<String> {
    let tests = test_files(all);
    let mut out = Vec::new();
    for source in all.iter().filter(|source| source.is_rust() && !tests.contains(&source.path)) {
        if ["tests", "benches", "fuzz"].iter().any(|room| source.path.split('/').any(|part| part == *room)) {
            continue;
        }
        let (code, _) = without_tests(&code(&source.text));
        for (at, _) in code.match_indices(".unwrap()") {
            out.push(format!("{}:{}: say why it cannot be: expect(\"…\")", source.path, line(&code, at)));
        }
    }
    out
}

/// Registries and this or that machine's directories, put together here so that this file has none.
fn names() -> Vec<String> {
    let registries = [["crates", ".io"], ["[regis", "tries"], ["[sou", "rce."], ["replace", "-with"]];
    let directories = [["/wo", "rk"], ["/ro", "ot"], ["/ho", "me"], ["/Us", "ers"]];
    registries.iter().chain(&directories).map(|parts| parts.concat()).collect()
}

fn names_of_machines(all: &[Source]) -> Vec<String> {
    let mut out = Vec::new();
    for source in all.iter().filter(|source| !source.path.ends_with("Cargo.lock")) {
        for name in names() {
            for (at, _) in source.text.match_indices(&name) {
                let before = source.text[..at].chars().next_back().unwrap_or(' ');
                let after = source.text[at + name.len()..].chars().next().unwrap_or(' ');
                // `src/work.rs` and `../home/` are no absolute paths.
                let inside = name.starts_with('/') && (before.is_alphanumeric() || "._-*~>)}/".contains(before));
                if !inside && !after.is_alphanumeric() && after != '_' {
                    out.push(format!("{}:{}: {name}", source.path, line(&source.text, at)));
                }
            }
        }
    }
    out
}

fn long_files(all: &[Source]) -> Vec<String> {
    let rust = all.iter().filter(|source| source.is_rust()).map(|s| (&s.path, s.text.lines().count()));
    rust.filter(|(_, lines)| *lines > LONGEST).map(|(path, lines)| format!("{path}: {lines} lines")).collect()
}

/// What a merge leaves where both sides changed the same lines.
fn half_merged(all: &[Source]) -> Vec<String> {
    let marks = ["<", ">"].map(|mark| mark.repeat(7) + " ");
    let lines = all.iter().flat_map(|source| source.text.lines().enumerate().map(move |line| (source, line)));
    let marked = lines.filter(|(_, (_, text))| marks.iter().any(|mark| text.starts_with(mark)));
    marked.map(|(source, (index, _))| format!("{}:{}: a conflict's mark", source.path, index + 1)).collect()
}

#[test]
fn no_file_is_half_merged() {
    none(half_merged(&sources::all()));
}

#[test]
fn canary_merged() {
    let (ours, theirs) = ("<".repeat(7) + " HEAD", ">".repeat(7) + " other");
    assert_eq!(count(half_merged, &[("a.md", &format!("a\n{ours}\nb\n{theirs}\n")), ("b.rs", "a << 3")]), 2);
}

#[test]
fn unsafe_stays_in_its_rooms() {
    none(unsafe_outside(&sources::all()));
}

#[test]
fn no_bare_unwrap_outside_of_tests() {
    none(bare_unwraps(&sources::all()));
}

#[test]
fn no_names_of_registries_and_machines() {
    none(names_of_machines(&sources::all()));
}

#[test]
fn no_file_is_too_long() {
    none(long_files(&sources::all()));
}

fn count(check: impl Fn(&[Source]) -> Vec<String>, files: &[(&str, &str)]) -> usize {
    let files: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
    check(&files).len()
}

#[test]
fn canary_unsafe() {
    let forbid = "//! Head.\n#![forbid(unsafe_code)]\n";
    assert_eq!(count(unsafe_outside, &[("src/a/mod.rs", forbid), ("src/a/b.rs", ""), ("src/a/b/c.rs", "")]), 0);
    assert_eq!(count(unsafe_outside, &[("tests/a.rs", forbid), ("tests/a/b.rs", "")]), 0);
    assert_eq!(count(unsafe_outside, &[("src/a/mod.rs", "// #![forbid(unsafe_code)]")]), 1);
    assert_eq!(count(unsafe_outside, &[("src/a/mod.rs", forbid), ("src/b/c.rs", "")]), 1);
    assert_eq!(count(unsafe_outside, &[("src/a.rs", "#![forbid(unsafe_code)] fn f() { unsafe { g() } }")]), 1);
    let columnar = ("columnar/src/lib.rs", "#![deny(unsafe_code)]");
    assert_eq!(count(unsafe_outside, &[columnar, ("columnar/src/a.rs", ""), (NAMED[0], "unsafe {}")]), 0);
    assert_eq!(count(unsafe_outside, &[columnar, ("columnar/src/a.rs", "#[allow(unsafe_code)]")]), 1);
    assert_eq!(count(unsafe_outside, &[("columnar/src/a.rs", "")]), 1);
    assert_eq!(with_unsafe(&[Source::new("a.rs", "// unsafe"), Source::new("b.rs", "unsafe {}")]).len(), 1);
}

#[test]
fn canary_unwrap() {
    let bare = "fn f() { a.unwrap(); }";
    assert_eq!(count(bare_unwraps, &[("src/a.rs", bare), ("examples/b.rs", bare), ("tests/c.rs", bare)]), 2);
    let tests = format!("fn f() {{ a.expect(\"b\") }}\n#[cfg(test)]\nmod tests {{ {bare} }}\n#[cfg(test)]\nmod c;");
    assert_eq!(count(bare_unwraps, &[("src/a.rs", &tests), ("src/a/c.rs", bare)]), 0);
    assert_eq!(count(bare_unwraps, &[("src/a.rs", &format!("{tests}\n{bare}"))]), 1);
}

#[test]
fn canary_names() {
    for name in names() {
        assert_eq!(count(names_of_machines, &[("README.md", &format!("see {name} there"))]), 1, "{name}");
        assert_eq!(count(names_of_machines, &[("a/Cargo.lock", &format!("see {name} there"))]), 0, "{name}");
    }
    let inside = format!("src{}er.rs, ..{}/", names()[4], names()[6]);
    assert_eq!(count(names_of_machines, &[("README.md", &inside)]), 0, "{inside}");
}

#[test]
fn canary_length() {
    assert_eq!(count(long_files, &[("a.rs", &"\n".repeat(LONGEST)), ("b.txt", &"\n".repeat(LONGEST + 1))]), 0);
    assert_eq!(count(long_files, &[("a.rs", &"\n".repeat(LONGEST + 1))]), 1);
}
