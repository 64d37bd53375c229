//! What is compared: workloads, the peer's settings that are tried, and what kpg is to reach.
#![forbid(unsafe_code)]

use crate::suite::Goal::{AtMost, AtMostOf, Better, Times};

/// How large the workloads are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// Minutes in all.
    Quick,
    /// What the goals are about.
    Full,
}

/// What a number of kpg's is to be.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Goal {
    /// So many times better than the peer's best.
    Times(f64),
    /// Better than the peer's best.
    Better,
    /// At most this, in the number's unit.
    AtMost(f64),
    /// At most so many times kpg's number of this name.
    AtMostOf(f64, &'static str),
}

/// A workload on both sides.
#[derive(Copy, Clone, Debug)]
pub struct Row {
    /// The workload, and parameters that both sizes have.
    pub spec: &'static str,
    /// Parameters of the quick size; none if it is not part of it.
    pub quick: Option<&'static str>,
    /// Parameters of the full size; none if it is not part of it.
    pub full: Option<&'static str>,
    /// The peer is run with each of these; for each number its best counts. If there are none, kpg runs alone.
    pub settings: &'static [&'static str],
    /// The numbers that are shown, and what is hoped of them.
    pub goals: &'static [(&'static str, &'static [Goal])],
}

impl Row {
    /// Whether it is run.
    pub fn is_part_of(&self, size: Size, only: Option<&str>) -> bool {
        let name = self.spec.split(' ').next();
        self.parameters(size).is_some() && (only.is_none() || only == name)
    }
    /// The words of the command.
    pub fn words(&self, size: Size) -> Vec<String> {
        let words = self.spec.split(' ').chain(self.parameters(size).unwrap_or_default().split(' '));
        words.filter(|word| !word.is_empty()).map(String::from).collect()
    }
    fn parameters(&self, size: Size) -> Option<&'static str> {
        match size {
            Size::Quick => self.quick,
            Size::Full => self.full,
        }
    }
}

const US: f64 = 1e3;
const MS: f64 = 1e6;
const GIB: f64 = 1073741824.0;

const IDLE: &[&str] = &["", "idle=1000"];
const MERGED: &[&str] = &["", "idle=1000000"];
/// Memory that is free goes back to the system at once: else it counts for long.
const PURGED: &[&str] = &["MIMALLOC_PURGE_DELAY=0", "idle=1000000 MIMALLOC_PURGE_DELAY=0"];
const CLOSURE: &[&str] = &["", "time=one", "time=one-total"];

const fn row(
    spec: &'static str,
    quick: Option<&'static str>,
    full: Option<&'static str>,
    settings: &'static [&'static str],
    goals: &'static [(&'static str, &'static [Goal])],
) -> Row {
    Row { spec, quick, full, settings, goals }
}

/// All that is compared, in the order in which it is run.
///
/// The goals are those of the full size: at the quick one, with arrangements that lie in the cache, they only show the way.
#[rustfmt::skip]
pub const SUITE: &[Row] = &[
    row("throughput operator=form", Some("keys=1000000 rounds=500"), Some("rounds=2000"), &[""], &[("updates", &[Times(6.0)])]),
    row("throughput operator=arrange", Some("keys=1000000 rounds=200"), Some("rounds=1500"), IDLE,
        &[("updates", &[Times(5.0)]), ("round max", &[])]),
    row("throughput operator=count", Some("keys=1000000 rounds=100"), Some("rounds=300"), IDLE, &[("updates", &[Times(8.0)])]),
    row("throughput operator=count-total", Some("keys=1000000 rounds=100"), Some("rounds=500"), IDLE, &[("updates", &[Times(4.0)])]),
    row("throughput workers=2 operator=form", None, Some("rounds=2000"), &[""], &[("updates", &[])]),
    row("throughput workers=2 operator=arrange", Some("keys=1000000 rounds=200"), Some("rounds=1500"), IDLE, &[("updates", &[])]),
    row("throughput workers=2 operator=count", None, Some("rounds=300"), IDLE, &[("updates", &[])]),
    row("throughput workers=2 operator=count-total", None, Some("rounds=500"), IDLE, &[("updates", &[])]),
    row("latency operator=arrange rate=1000000", Some("keys=1000000 warm=1 seconds=4"), Some(""), IDLE,
        &[("p50", &[Better, AtMost(15.0 * US)]), ("p99", &[Better, AtMost(0.2 * MS)]), ("max", &[AtMost(2.0 * MS)])]),
    row("latency operator=count-total rate=500000", Some("keys=1000000 warm=1 seconds=4"), Some(""), IDLE,
        &[("p50", &[]), ("p99", &[AtMost(0.5 * MS)])]),
    row("latency workers=2 operator=arrange rate=1000000", Some("keys=1000000 warm=1 seconds=4"), Some(""), IDLE,
        &[("p50", &[]), ("p99", &[AtMost(0.3 * MS)])]),
    row("join queries=1", Some("keys=1000000"), Some(""), MERGED, &[("p50", &[Times(2.0)])]),
    row("join queries=1000", Some("keys=1000000"), Some(""), MERGED, &[("p50", &[Times(4.0)])]),
    row("join queries=100000", Some("keys=1000000 repeat=10"), Some("repeat=50"), MERGED, &[("p50", &[Times(4.0)])]),
    row("attached queries=100", Some("rounds=100"), Some(""), &[""], &[("attached", &[]), ("updates", &[]), ("round p99", &[])]),
    row("graph", Some("scale=16"), Some("scale=20"), &[""],
        &[("index", &[Times(5.0)]), ("reach", &[Times(5.0), AtMostOf(3.0, "plain arrays"), AtMostOf(1.0, "plain hash map, fx")]),
          ("sssp", &[Times(5.0)]), ("wcc", &[Times(5.0)])]),
    row("incremental query=bfs change=1", Some("nodes=100000 edges=1000000"), Some("rounds=1000"), IDLE,
        &[("initial", &[]), ("p50", &[Times(3.0)]), ("p99", &[Times(3.0)])]),
    row("incremental query=bfs change=1000", Some("nodes=100000 edges=1000000 rounds=20"), Some("rounds=100"), IDLE,
        &[("p50", &[Times(4.0)]), ("max", &[Times(10.0)])]),
    row("incremental query=wcc change=1", Some("nodes=100000 edges=1000000"), Some("rounds=1000"), IDLE,
        &[("initial", &[]), ("p50", &[]), ("p99", &[])]),
    row("memory kind=keys", Some("updates=2000000"), Some(""), PURGED,
        &[("loaded resident", &[AtMost(10.0)]), ("settled resident", &[AtMost(8.5)]), ("peak resident", &[AtMostOf(1.5, "settled resident")])]),
    row("memory kind=edges", Some("updates=2000000"), Some(""), PURGED,
        &[("loaded resident", &[AtMost(7.0)]), ("settled resident", &[AtMost(5.0)]), ("peak resident", &[AtMostOf(1.5, "settled resident")])]),
    row("barrier", Some("rounds=200000"), Some(""), &["", "barrier=inputs"], &[("rounds", &[Times(3.0)])]),
    row("barrier workers=2", Some("rounds=200000"), Some(""), &["", "barrier=inputs", "progress=eager"], &[("rounds", &[Times(2.0)])]),
    row("single operator=arrange", Some("rounds=50000"), Some(""), &[""], &[("p50", &[Times(3.0)]), ("p99", &[])]),
    row("single operator=count", Some("rounds=50000"), Some(""), &[""], &[("p50", &[Times(3.0)]), ("p99", &[])]),
    row("single workers=2 operator=arrange", Some("rounds=50000"), Some(""), &["", "progress=eager"], &[("p50", &[Times(3.0)]), ("p99", &[])]),
    row("chain", Some("rounds=20000"), Some(""), &[""], &[("p50", &[Times(20.0)])]),
    row("idle dataflows=1000 length=10", Some("rounds=50"), Some(""), &[""], &[("p50", &[AtMost(MS)]), ("resident", &[])]),
    row("idle dataflows=1000 length=1000", None, Some("rounds=20"), &[""], &[("p50", &[AtMost(MS)]), ("resident", &[AtMost(0.3 * GIB)])]),
    row("closure", Some("graph=tree-9"), Some("graph=bigdatalog-tree11.csv.zst"), CLOSURE,
        &[("took", &[Times(6.0)]), ("peak a tuple", &[AtMost(15.0)])]),
    row("closure", Some("graph=grid-40"), Some("graph=harp-p2p-Gnutella09.txt.zst"), CLOSURE,
        &[("took", &[Times(6.0)]), ("peak a tuple", &[AtMost(15.0)])]),
    row("closure graph=snap-wiki-Vote.txt.zst", None, Some(""), CLOSURE,
        &[("took", &[Times(6.0)]), ("peak a tuple", &[AtMost(15.0)])]),
    row("closure graph=bigdatalog-grid150.csv.zst", None, Some(""), &[], &[("took", &[]), ("peak a tuple", &[AtMost(15.0)])]),
    row("closure graph=bigdatalog-gnp10K.csv.zst", None, Some(""), &[], &[("took", &[]), ("peak a tuple", &[AtMost(15.0)])]),
    row("pointers", Some("facts=made rounds=200"), Some("facts=cspa10k"), IDLE,
        &[("initial", &[]), ("remove p50", &[Times(3.0)]), ("remove p99", &[Times(3.0)])]),
    row("interactive queries=1", Some("nodes=100000 edges=640000"), Some(""), IDLE,
        &[("look-up mean", &[]), ("one-hop mean", &[]), ("two-hop mean", &[]), ("4-path mean", &[]), ("loaded resident", &[])]),
    row("interactive queries=100", Some("nodes=100000 edges=640000 rounds=20"), Some("rounds=50"), IDLE,
        &[("look-up mean", &[]), ("one-hop mean", &[]), ("two-hop mean", &[]), ("4-path mean", &[])]),
    row("interactive queries=100 shared=0", None, Some("rounds=50"), IDLE,
        &[("two-hop mean", &[]), ("4-path mean", &[]), ("loaded resident", &[])]),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;
    use workloads::Spec;

    #[test]
    fn every_row_can_be_asked_for() {
        for row in SUITE {
            for size in [Size::Quick, Size::Full].into_iter().filter(|size| row.is_part_of(*size, None)) {
                Spec::parse(row.words(size)).expect("a workload with parameters that it has");
            }
            for setting in row.settings {
                let (_, others) = Setting::parse(setting.split_whitespace().map(String::from)).expect("a setting");
                assert!(others.iter().all(|word| word.starts_with(crate::contest::ALLOCATOR)), "{others:?}");
            }
            assert!(row.quick.is_some() || row.full.is_some(), "{}", row.spec);
        }
    }
}
