//! Each workload, at its smallest, has one answer: on the peer with any setting, on kpg, and in plain Rust.
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use workloads::generate::{Keys, grid};
use workloads::{Answer, Spec};

/// Workers that never sleep want the machine for themselves.
static ALONE: Mutex<()> = Mutex::new(());

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(String::from).collect()
}

/// What both sides answer; with two workers too.
fn answer(workload: &str, settings: &[&str]) -> String {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut first = None;
    for workers in 1..=2 {
        // A workload's name comes first, then its small size, then what differs from that.
        let (name, more) = workload.split_once(' ').unwrap_or((workload, ""));
        let asked = format!("{name} smoke {more} workers={workers}");
        let ours = figures::measure(&Spec::parse(words(&asked)).unwrap());
        for setting in settings {
            let peer = peers::measure(words(&format!("{asked} {setting}"))).unwrap();
            assert_eq!(peer.answer, ours.answer, "{asked} {setting}");
            let missing = ours.metrics.iter().filter(|metric| peer.get(&metric.name).is_none());
            let missing: Vec<_> = missing.map(|metric| metric.name.as_str()).collect();
            // What only an engine with arenas has, and code without an engine.
            let own = |name: &&str| name.contains("live") || name.contains("reserved") || name.contains("plain");
            assert!(missing.iter().all(own), "{asked}: numbers that only kpg has: {missing:?}");
        }
        first.get_or_insert(ours.answer);
    }
    first.unwrap()
}

/// Keys with their counts after so many updates.
fn counts(keys: Keys, updates: u64) -> BTreeMap<u64, i64> {
    let mut counts = BTreeMap::new();
    let loaded = (0..keys.keys).map(|number| (keys.key(number), 1));
    for (key, diff) in loaded.chain((0..updates).map(|number| keys.update(number))) {
        *counts.entry(key).or_insert(0) += diff;
    }
    counts.retain(|_, count| *count != 0);
    counts
}

#[test]
fn throughput() {
    let keys = Keys { keys: 20_000 };
    let after = counts(keys, 20 * 1000);
    let mut content = Answer::default();
    after.iter().for_each(|(key, count)| content.add(&[*key, *count as u64], 1));
    assert_eq!(answer("throughput operator=arrange", &["", "idle=1000"]), content.hex());

    let (later, mut changes) = (counts(keys, 20 * 1000 + 1000), Answer::default());
    after.iter().for_each(|(key, count)| changes.add(&[*key, *count as u64], -1));
    later.iter().for_each(|(key, count)| changes.add(&[*key, *count as u64], 1));
    assert_eq!(answer("throughput operator=count", &[""]), changes.hex());
    assert_eq!(answer("throughput operator=count-total", &[""]), changes.hex());
    answer("throughput operator=form", &[""]);
}

#[test]
fn latency() {
    let mut content = Answer::default();
    counts(Keys { keys: 20_000 }, 2000).iter().for_each(|(key, count)| content.add(&[*key, *count as u64], 1));
    assert_eq!(answer("latency operator=arrange", &["", "idle=1000"]), content.hex());
    answer("latency operator=count-total", &["", "idle=1000"]);
}

#[test]
fn rounds() {
    answer("barrier", &["", "barrier=inputs", "progress=eager"]);
    assert_eq!(answer("chain", &[""]), "1000");
    assert_eq!(answer("chain records=0", &[""]), "0");
    assert_eq!(answer("idle", &[""]), "10");
    for operator in ["map", "arrange", "count", "count-total"] {
        assert_eq!(answer(&format!("single operator={operator}"), &["", "progress=eager"]), "1000");
    }
}

#[test]
fn stored() {
    assert_eq!(answer("join", &["", "idle=1000000"]), "500");
    answer("attached", &["", "idle=1000"]);
    answer("memory kind=keys", &["", "idle=1000000"]);
    answer("memory kind=edges", &["", "idle=1000000"]);
}

#[test]
fn graphs() {
    answer("graph", &[""]);
    answer("incremental query=bfs", &[""]);
    answer("incremental query=wcc change=10", &[""]);
}

#[test]
fn queries_that_come_and_go() {
    for shared in 0..=1 {
        answer(&format!("interactive shared={shared}"), &[""]);
    }
}

#[test]
fn rules() {
    let edges = grid(10);
    let mut paths = BTreeSet::from_iter(edges.iter().copied());
    let mut front = paths.clone();
    while !front.is_empty() {
        let longer = front
            .iter()
            .flat_map(|(from, to)| edges.iter().filter(move |edge| edge.0 == *to).map(|edge| (*from, edge.1)));
        front = longer.filter(|path| !paths.contains(path)).collect();
        paths.extend(&front);
    }
    let sum: u64 = paths.iter().map(|(from, to)| 3 * u64::from(*from) + u64::from(*to)).sum();
    let expected = format!("{} {sum}", paths.len());
    assert_eq!(answer("closure", &["", "time=one", "time=one-total"]), expected);
    answer("pointers", &[""]);
}
