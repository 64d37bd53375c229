//! What the library depends on, read from `cargo tree`: each of our packages has just the dependencies it names here.
//!
//! What those pull in themselves is theirs. Dependencies of tests, and of builds under `cfg(loom)`, are not looked at.
//! Next stop: `text`.

use super::{none, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Our packages, and what each may depend on besides each other.
const ALLOWED: [(&str, &[&str]); 4] = [
    ("kpg", &["core_affinity"]),
    ("kpg-arena", &["libc", "memmap2"]),
    ("kpg-columnar", &[]),
    ("kpg-columnar-derive", &["proc-macro2", "quote", "syn"]),
];

/// The output of `cargo tree --prefix depth` as direct dependencies by package.
fn direct(tree: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut path: Vec<String> = Vec::new();
    let mut out = BTreeMap::<_, BTreeSet<_>>::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let digits = line.find(|c: char| !c.is_ascii_digit()).unwrap_or(line.len());
        let depth: usize = line[..digits].parse().expect("a line starts with its depth");
        let name = line[digits..].split(' ').next().unwrap_or_default().to_string();
        path.truncate(depth);
        if let Some(parent) = path.last() {
            out.entry(parent.clone()).or_default().insert(name.clone());
        }
        path.push(name);
    }
    out
}

fn complaints(tree: &str) -> Vec<String> {
    let direct = direct(tree);
    let ours: BTreeSet<_> = ALLOWED.iter().map(|(name, _)| name.to_string()).collect();
    let mut out = Vec::new();
    for (name, allowed) in ALLOWED {
        let allowed: BTreeSet<_> = allowed.iter().map(|name| name.to_string()).collect();
        let has: BTreeSet<_> =
            direct.get(name).into_iter().flatten().filter(|has| !ours.contains(*has)).cloned().collect();
        if has != allowed {
            out.push(format!("{name} depends on {has:?}, and is to depend on {allowed:?}"));
        }
    }
    out
}

fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(sources::root());
    cargo
}

#[test]
fn the_library_depends_on_three_packages() {
    let arguments = ["tree", "--locked", "--offline", "--workspace", "--edges", "normal", "--prefix", "depth"];
    let output = cargo().args(arguments).output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    none(complaints(&String::from_utf8(output.stdout).expect("names of packages are text")));
}

/// Built as `cargo test` builds it, so that it is there already.
#[test]
fn the_readmes_program_runs() {
    let mut build = cargo();
    build.args(["build", "--quiet", "--locked", "--offline", "--example", "attach"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    let output = build.output().expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let this = std::env::current_exe().expect("a test knows where it lies");
    let profile = this.parent().and_then(|deps| deps.parent()).expect("a test lies in its profile's deps");
    let output = Command::new(profile.join("examples/attach")).output().expect("it was just built");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn canary() {
    let good = "0kpg v1 (here)\n1core_affinity v1\n2libc v1\n2num_cpus v1\n1kpg-arena v1 (here)\n2libc v1\n2memmap2 v1\n\
        1kpg-columnar v1\n2kpg-arena v1 (*)\n2kpg-columnar-derive v1 (proc-macro) (here)\n3proc-macro2 v1\n3quote v1\n\
        3syn v1\n4unicode-ident v1\n\n0kpg-columnar v1 (*)\n";
    none(complaints(good));
    let more = [("2memmap2 v1", "2memmap2 v1\n2rand v1"), ("1core_affinity v1\n", ""), ("1core", "1serde v1\n1core")];
    for (from, to) in more {
        assert_eq!(complaints(&good.replace(from, to)).len(), 1, "{to:?} for {from:?}");
    }
}
