//! The documents keep step with the code: files and functions that they name are there, README's inventory of `unsafe`
//! is complete, its program is the example, its test command is what the machine runs.
//!
//! A name is what stands between backquotes: `dir/file.rs`, `dir/`, or `dir/file.rs::item`; what lies under `src/` may
//! be named without that.

use super::none;
use super::sources::{self, Source, code, line, words};
use super::text::with_unsafe;
use std::collections::BTreeSet;

const PAPERS: [&str; 5] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "VERIFICATION.md", "src/sync/README.md"];

fn find<'a>(all: &'a [Source], path: &str) -> Option<&'a Source> {
    all.iter().find(|source| source.path == path)
}

/// What stands between backquotes, outside of code blocks.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let (mut out, mut block) = (Vec::new(), false);
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            block = !block;
        } else if !block {
            out.extend(line.split('`').skip(1).step_by(2).map(|name| (number + 1, name)));
        }
    }
    out
}

/// Whether a quoted word is the name of a file or a directory here.
fn is_path(name: &str) -> bool {
    let plain = name.chars().all(|c| c.is_alphanumeric() || "_-./".contains(c));
    let file = [".rs", ".md", ".toml", ".txt", ".py", ".sh", "/"].iter().any(|end| name.ends_with(end))
        || name.contains(".ci/");
    plain && file && name.len() > 1 && !name.starts_with("..") && !name.starts_with("target")
}

fn is_defined(source: &Source, item: &str) -> bool {
    let code = code(&source.text);
    words(&code, item).any(|at| {
        let before = code[..at].split_whitespace().next_back().unwrap_or_default();
        ["fn", "struct", "enum", "trait", "type", "const", "mod", "macro_rules!"].contains(&before)
    })
}

fn missing(all: &[Source]) -> Vec<String> {
    let mut out = Vec::new();
    for paper in PAPERS.iter().filter_map(|path| find(all, path)) {
        let beside = paper.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (number, name) in quoted(&paper.text) {
            let (path, item) = name.split_once("::").map_or((name, None), |(path, item)| (path, Some(item)));
            if !is_path(path) {
                continue;
            }
            let candidates = [path.to_string(), format!("src/{path}"), format!("{beside}/{path}")];
            let is_there = |c: &&String| match c.ends_with('/') {
                true => all.iter().any(|source| source.path.starts_with(*c)),
                false => find(all, c).is_some(),
            };
            match (candidates.iter().find(is_there), item) {
                (None, _) => out.push(format!("{}:{number}: there is no {path}", paper.path)),
                (Some(path), Some(item)) if !find(all, path).is_some_and(|source| is_defined(source, item)) => {
                    out.push(format!("{}:{number}: {path} has no {item}", paper.path));
                }
                _ => {}
            }
        }
    }
    out
}

/// The files that README's table of `unsafe` lists.
fn inventory(readme: &str) -> BTreeSet<String> {
    let section = readme.split("\n## ").find(|section| section.starts_with("`unsafe`")).unwrap_or_default();
    let first = |row: &str| row.split('`').nth(1).unwrap_or_default().to_string();
    section.lines().filter(|row| row.starts_with("| `")).map(first).collect()
}

fn inventory_complaints(all: &[Source]) -> Vec<String> {
    let listed = inventory(&find(all, "README.md").expect("there is a README").text);
    let has = with_unsafe(all);
    let missing = has.difference(&listed).map(|path| format!("README lists every unsafe file but {path}"));
    let stale = listed.difference(&has).map(|path| format!("README lists {path}, which has no unsafe"));
    missing.chain(stale).collect()
}

/// README's Rust programs.
fn programs(readme: &str) -> Vec<&str> {
    readme.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// Lines of README's code blocks that are a test command.
fn test_commands(readme: &str) -> Vec<&str> {
    readme.lines().filter(|line| line.starts_with("cargo test ")).collect()
}

#[test]
fn what_the_papers_name_is_there() {
    let all = sources::all();
    assert!(PAPERS.iter().all(|path| find(&all, path).is_some()), "a paper is missing");
    none(missing(&all));
}

#[test]
fn the_inventory_of_unsafe_is_complete() {
    none(inventory_complaints(&sources::all()));
}

#[test]
fn the_readmes_program_is_the_example() {
    let all = sources::all();
    let (readme, example) = (find(&all, "README.md"), find(&all, "examples/attach.rs"));
    let (readme, example) = (readme.expect("there is a README"), example.expect("there is the example"));
    assert!(programs(&readme.text) == [example.text.as_str()], "README and examples/attach.rs differ: copy it anew");
}

#[test]
fn the_readme_has_one_test_command() {
    let all = sources::all();
    let readme = find(&all, "README.md").expect("there is a README");
    assert_eq!(test_commands(&readme.text).len(), 1, ".ci/run runs the one that README gives");
}

#[test]
fn canary_names() {
    let paper = |text: &str| {
        let code = "fn here() { there() } // fn gone()\nstruct Thing;";
        missing(&[Source::new("README.md", text), Source::new("src/a/b.rs", code)])
    };
    let good = "`src/a/b.rs` `a/b.rs` `a/` `a/b.rs::here` `a/b.rs::Thing` `b::c` `x y.rs`\n```\n`no.rs`\n```\n";
    none(paper(good));
    for bad in ["`a/c.rs`", "`b/`", "`a/b.rs::there`", "`a/b.rs::gone`", "`c.md`"] {
        assert_eq!(paper(bad).len(), 1, "{bad}");
    }
    assert_eq!(line("a\nb", 2), 2);
}

#[test]
fn canary_inventory() {
    let table = "# kpg\n\n## `unsafe`\n\n| file | why |\n|---|---|\n| `a.rs` | speed |\n\n## more\n\n| `b.rs` | no |\n";
    let files = |a: &str, b: &str| [Source::new("README.md", table), Source::new("a.rs", a), Source::new("b.rs", b)];
    none(inventory_complaints(&files("unsafe {}", "")));
    assert_eq!(inventory_complaints(&files("", "")).len(), 1);
    assert_eq!(inventory_complaints(&files("unsafe {}", "unsafe {}")).len(), 1);
}

#[test]
fn canary_program() {
    assert_eq!(programs("a\n```rust\nb\n```\nc\n```\nd\n```\n"), ["b\n"]);
    assert_eq!(test_commands("`cargo test`\ncargo test --all\n"), ["cargo test --all"]);
}
