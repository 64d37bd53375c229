//! Sorting, reading and seeking, beside what the standard library does.
//!
//! `cargo bench -p kpg-columnar` prints nanoseconds per record, the best of several runs, and a hash of each
//! result; without `--bench` (as under `cargo test`) it runs once on a small size.
//!
//! On a Xeon with 2 MiB of second-level cache and two noisy cores (spread about 15 %), chunks of 16,384:
//! 10 to 17 ns where rows take 25 to 41, and 32 where rows take 41 for 1,000 hashes. Lost: skewed keys, of
//! which a few are so great that most codes are cut alike (50 against 25), and what is sorted already (4
//! against 1.3).
#![forbid(unsafe_code)]

use kpg_columnar::{Column, Columnar, Ints, SORT_CHUNK, Sorter, Units, combine, mix};
use std::hint::black_box;
use std::time::Instant;

fn main() {
    let full = std::env::args().any(|argument| argument == "--bench");
    let (count, runs) = if full { (1 << 20, 7) } else { (1 << 10, 1) };
    let bench = Bench { count, runs };
    bench.sorts();
    bench.strings();
    bench.reads();
}

/// The value of record `i`.
type Value = fn(u64) -> u64;

struct Bench {
    count: usize,
    runs: usize,
}

impl Bench {
    fn time(&self, name: &str, mut run: impl FnMut() -> u64) {
        let (mut best, mut hash) = (f64::INFINITY, 0);
        for _ in 0..self.runs {
            let start = Instant::now();
            hash = black_box(run());
            best = best.min(start.elapsed().as_nanos() as f64 / self.count as f64);
        }
        println!("{name:<48} {best:>8.2} ns/record   {hash:016x}");
    }

    /// (u64, u64) by value and time in chunks, with keys of several spreads.
    fn sorts(&self) {
        let spreads: [(&str, Value); 7] = [
            ("u64 any", |i| mix(i)),
            ("u64 below 2^32", |i| mix(i) >> 32),
            ("u64 below 2^20", |i| mix(i) >> 44),
            ("u64 below 1000", |i| mix(i) % 1000),
            ("u64 sorted", |i| i * 3),
            ("u64 of 1000 hashes", |i| mix(mix(i) % 1000)),
            ("u64 skewed", |i| if i % 97 == 0 { mix(i) } else { mix(i) >> 40 }),
        ];
        let mut sorter = Sorter::default();
        for (name, value) in spreads {
            let rows: Vec<(u64, u64)> = (0..self.count as u64).map(|i| (value(i), mix(!i) % 16)).collect();
            let (mut keys, mut times) = (Ints::<u64>::default(), Ints::<u64>::default());
            for &(key, time) in &rows {
                keys.push(key);
                times.push(time);
            }
            for chunk in [256, SORT_CHUNK] {
                self.time(&format!("sort {name}, chunks of {chunk}"), || {
                    let mut hash = 0;
                    for lower in (0..self.count).step_by(chunk) {
                        let upper = (lower + chunk).min(self.count);
                        let order = sorter.sort(&keys, &times, lower, upper);
                        hash = combine(hash, u64::from(order[order.len() / 2]));
                    }
                    hash
                });
                let mut indexed: Vec<(u64, u64, u32)> = Vec::new();
                self.time(&format!("  std sort_unstable of rows, chunks of {chunk}"), || {
                    let mut hash = 0;
                    for (number, rows) in rows.chunks(chunk).enumerate() {
                        indexed.clear();
                        let first = (number * chunk) as u32;
                        let row = |(i, r): (usize, &(u64, u64))| (r.0, r.1, first + i as u32);
                        indexed.extend(rows.iter().enumerate().map(row));
                        indexed.sort_unstable();
                        hash = combine(hash, u64::from(indexed[rows.len() / 2].2));
                    }
                    hash
                });
            }
        }
    }

    /// What checking UTF-8 at each read would cost.
    fn strings(&self) {
        let mut column = <String as Columnar>::Column::default();
        for i in 0..self.count as u64 {
            column.push(&format!("{:016x}", mix(i)));
        }
        column.seal();
        self.time("strings: longest of all", || (0..self.count).map(|i| column.get(i).len() as u64).max().unwrap_or(0));
        self.time("  the same, checking UTF-8", || {
            let checked = |i: usize| std::str::from_utf8(column.get(i).as_bytes());
            (0..self.count).map(|i| checked(i).map_or(0, str::len) as u64).max().unwrap_or(0)
        });
        self.time("strings: hash", || (0..self.count).fold(0, |h, i| h ^ <String as Columnar>::hash(column.get(i))));
        let mut sorter = Sorter::default();
        let times = Units::of(self.count);
        self.time("strings: sort in chunks", || {
            let mut hash = 0;
            for lower in (0..self.count).step_by(SORT_CHUNK) {
                let upper = (lower + SORT_CHUNK).min(self.count);
                hash = combine(hash, u64::from(sorter.sort(&column, &times, lower, upper)[0]));
            }
            hash
        });
    }

    /// Random and sequential reads of each encoding.
    fn reads(&self) {
        let encodings: [(&str, Value); 4] =
            [("plain", mix), ("narrow32", |i| mix(i) >> 32), ("narrow16", |i| mix(i) >> 48), ("stride", |i| 5 * i)];
        for (name, value) in encodings {
            let mut column = <u64 as Columnar>::Column::default();
            (0..self.count as u64).for_each(|i| column.push(value(i)));
            column.seal();
            self.time(&format!("sum of {name} ({} bytes)", column.bytes()), || {
                (0..self.count).fold(0u64, |sum, i| sum.wrapping_add(column.get(i)))
            });
        }
    }
}
