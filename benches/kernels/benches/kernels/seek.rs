//! Keys in batches: from wherever one stands, from the start, in groups; from memory and from the cache.
#![forbid(unsafe_code)]

use crate::data::{BatchOf, batch, short};
use kpg::columnar::{Column, Ints, gallop};
use kpg::trace::{Batch, Cursor};
use kpg_bench::{Clock, Lab, limits};
use std::cell::LazyCell;
use std::collections::BTreeMap;
use workloads::generate::{below, rnd};

/// Ascending keys, seven apart on average.
fn keys(count: u64) -> Vec<u64> {
    let mut key = 0;
    let next = |i| {
        key += 1 + below(rnd(7, i), 13);
        key
    };
    (0..count).map(next).collect()
}

/// Keys, and what they are sought in.
struct Stored {
    keys: Vec<u64>,
    // What a batch is without its sample.
    column: Ints<u64>,
    batch: BatchOf<(u64, ())>,
}

impl Stored {
    fn new(count: u64) -> Self {
        let keys = keys(count);
        let mut column = Ints::default();
        column.push_values(&keys);
        column.seal();
        let batch = batch::<(u64, ())>(&keys, 0);
        Stored { keys, column, batch }
    }
    fn range(&self) -> u64 {
        self.keys[self.keys.len() - 1]
    }
}

type Lazy = LazyCell<Stored, Box<dyn FnOnce() -> Stored>>;

pub fn benches(lab: &mut Lab) {
    for (full, small) in [(5_000, 300), (100_000, 5_000), (10_000_000, 10_000)] {
        let count = lab.size(full, small);
        let stored: Lazy = LazyCell::new(Box::new(move || Stored::new(count)));
        if full != 100_000 {
            [1, 16, 300].into_iter().for_each(|distance| moving(lab, &stored, count, distance));
        }
        anywhere(lab, &stored, count);
        group(lab, &stored, count);
    }
    let count = lab.size(100_000, 5_000);
    galloping(lab, count);
}

/// A cursor that moves on, from seek to seek.
fn moving(lab: &mut Lab, stored: &Lazy, count: u64, distance: u64) {
    let seeks = lab.size(100_000, 500);
    let size = format!("{} keys, {distance} on", short(count));
    let probes = LazyCell::new(|| {
        let (mut key, range) = (0, stored.range());
        let next = |i| {
            key += below(rnd(8, i), 14 * distance);
            // Back to the start past the end.
            key %= range;
            key
        };
        (0..seeks).map(next).collect::<Vec<u64>>()
    });
    let sum = |sum: &u64| *sum;
    lab.compare(Clock::Thread, "seek on", size, seeks, |c| {
        c.run(
            "kpg",
            || (&stored.batch, &*probes),
            |(batch, probes)| {
                let (mut cursor, mut sum, mut last) = (batch.cursor(), 0, 0);
                for probe in probes {
                    if *probe < last {
                        cursor = batch.cursor();
                    }
                    last = *probe;
                    cursor.seek_key(*probe);
                    sum = add(sum, cursor.key().expect("below the last"));
                }
                sum
            },
            sum,
        );
        c.run(
            "galloping, no sample",
            || (&stored.column, &*probes),
            |(column, probes)| on(probes, |at, probe| column.seek(at, column.count(), probe), |at| column.at(at)),
            sum,
        );
        c.run(
            "partition_point of the rest",
            || (&stored.keys, &*probes),
            |(keys, probes)| on(probes, |at, probe| at + keys[at..].partition_point(|key| *key < probe), |at| keys[at]),
            sum,
        );
    });
}

/// Seeks forward, back to the start where a probe is less than the one before.
fn on(probes: &[u64], seek: impl Fn(usize, u64) -> usize, key: impl Fn(usize) -> u64) -> u64 {
    let (mut at, mut sum, mut last) = (0, 0, 0);
    for probe in probes {
        at = seek(if *probe < last { 0 } else { at }, *probe);
        last = *probe;
        sum = add(sum, key(at));
    }
    sum
}

/// Adds up what is found: as cheap as can be, and the order counts.
fn add(sum: u64, key: u64) -> u64 {
    sum.rotate_left(1) ^ key
}

/// Seeks from the start, by a new cursor each.
fn anywhere(lab: &mut Lab, stored: &Lazy, count: u64) {
    let seeks = lab.size(100_000, 512);
    let tree = LazyCell::new(|| stored.keys.iter().map(|key| (*key, ())).collect::<BTreeMap<u64, ()>>());
    // Others each time, so that what is in the cache is not what comes next.
    let fresh = || {
        let mut turn = 0;
        move || {
            turn += 1;
            (0..seeks).map(|i| below(rnd(9 + turn, i), stored.range())).collect::<Vec<u64>>()
        }
    };
    fn each(probes: Vec<u64>, find: impl Fn(u64) -> u64) -> u64 {
        probes.into_iter().fold(0, |sum, probe| add(sum, find(probe)))
    }
    let sum = |sum: &u64| *sum;
    lab.compare(Clock::Thread, "seek", format!("{} keys, anywhere", short(count)), seeks, |c| {
        c.run("kpg", fresh(), |probes| each(probes, |probe| sought(&stored.batch, probe)), sum);
        let no_sample = |probe| stored.column.at(stored.column.seek(0, stored.column.count(), probe));
        c.run("galloping, no sample", fresh(), |probes| each(probes, no_sample), sum);
        let binary = |probe| stored.keys[stored.keys.partition_point(|key| *key < probe)];
        c.run("partition_point", fresh(), |probes| each(probes, binary), sum);
        let interpolated = |probe| stored.keys[limits::interpolate(&stored.keys, probe)];
        c.run("interpolation", fresh(), |probes| each(probes, interpolated), sum);
        let in_tree = |probe| *tree.range(probe..).next().expect("below the last").0;
        c.run("BTreeMap", fresh(), |probes| each(probes, in_tree), sum);
    });
}

fn sought(batch: &BatchOf<(u64, ())>, probe: u64) -> u64 {
    let mut cursor = batch.cursor();
    cursor.seek_key(probe);
    cursor.key().expect("below the last")
}

/// Sorted probes, by one cursor, as a join or a reduce has them.
fn group(lab: &mut Lab, stored: &Lazy, count: u64) {
    let seeks = lab.size(10_000, 512) / limits::ABREAST as u64 * limits::ABREAST as u64;
    let fresh = || {
        let mut turn = 0;
        move || {
            turn += 1;
            let mut probes: Vec<u64> = (0..seeks).map(|i| below(rnd(99 + turn, i), stored.range())).collect();
            probes.sort_unstable();
            probes
        }
    };
    let sum = |sum: &u64| *sum;
    let size = format!("{} keys, {} probes", short(count), short(seeks));
    lab.compare(Clock::Thread, "seek a sorted group", size, seeks, |c| {
        c.run(
            "kpg",
            fresh(),
            |probes| {
                let mut cursor = stored.batch.cursor();
                probes.into_iter().fold(0, |sum, probe| {
                    cursor.seek_key(probe);
                    add(sum, cursor.key().expect("below the last"))
                })
            },
            sum,
        );
        c.run(
            "binary searches, 16 abreast",
            fresh(),
            |probes| {
                let mut sum = 0;
                limits::search_abreast(&stored.keys, &probes, |index| sum = add(sum, stored.keys[index]));
                sum
            },
            sum,
        );
        c.run(
            "partition_point of the rest",
            fresh(),
            |probes| {
                let mut at = 0;
                probes.into_iter().fold(0, |sum, probe| {
                    at += stored.keys[at..].partition_point(|key| *key < probe);
                    add(sum, stored.keys[at])
                })
            },
            sum,
        );
    });
}

/// The search itself, in an array that the cache holds.
fn galloping(lab: &mut Lab, count: u64) {
    let seeks = lab.size(10_000, 500);
    let keys = LazyCell::new(|| keys(count));
    for distance in [1, 8, 64, 1_000, 50_000].map(|distance| distance.min(count / 4)) {
        // From where, and the key.
        let probes = LazyCell::new(|| {
            let probe = |i| {
                let from = below(rnd(10, i), count - 2 * distance) as usize;
                (from, keys[from + below(rnd(11, i), 2 * distance) as usize])
            };
            (0..seeks).map(probe).collect::<Vec<(usize, u64)>>()
        });
        let sum = |sum: &u64| *sum;
        lab.compare(Clock::Thread, "gallop", format!("{} keys, {distance} on", short(count)), seeks, |c| {
            c.run(
                "kpg",
                || (&*keys, &*probes),
                |(keys, probes)| {
                    let find = |from: usize, key| gallop(keys.len(), from, |index| keys[index] < key);
                    probes.iter().fold(0, |sum, (from, key)| add(sum, find(*from, *key) as u64))
                },
                sum,
            );
            c.run(
                "partition_point of the rest",
                || (&*keys, &*probes),
                |(keys, probes)| {
                    let find = |from: usize, key| from + keys[from..].partition_point(|other| *other < key);
                    probes.iter().fold(0, |sum, (from, key)| add(sum, find(*from, *key) as u64))
                },
                sum,
            );
        });
    }
}
