//! How long a slice of a merge is: `cargo bench -p kpg-bench --bench slices [-- MILLIONS]`.
//!
//! Two batches of so many million `(u64, u64)` (five, if nothing is said) at one time each, every key of one, merged at a
//! since before both. The processor time of each call of `Merge::work`, while it merges and while it seals.
#![forbid(unsafe_code)]

use kpg::dataflow::Updates;
use kpg::order::Antichain;
use kpg::trace::{Batch, Cursor, Merge, MergeBatch, OrdBatch, batch_from_sorted};
use kpg_bench::lab::{Clock, is_test};
use std::time::Duration;
use workloads::generate::mix;

type Stored = OrdBatch<u64, u64, u64, i64>;

fn batch(count: u64, time: u64, bits: u32) -> Stored {
    let mut keys: Vec<u64> = (0..count).map(|i| mix(2 * i + time) >> (u64::BITS - bits)).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut updates = Updates::<(u64, u64), u64, i64>::default();
    keys.into_iter().for_each(|key| updates.push((key, key % 1000), time, 1));
    batch_from_sorted(updates, Antichain::from_elem(time), Antichain::from_elem(time + 1))
}

/// Median, 99th of a hundred, greatest, in microseconds.
fn quantiles(times: &mut [Duration]) -> [f64; 3] {
    times.sort_unstable();
    let at = |index: usize| times.get(index).map_or(0.0, |time| time.as_nanos() as f64 / 1e3);
    [at(times.len() / 2), at(times.len() * 99 / 100), at(times.len().saturating_sub(1))]
}

/// A hash of all that is in the batch.
fn hash(batch: &Stored) -> u64 {
    let (mut hash, mut cursor) = (0u64, batch.cursor());
    while let (Some(key), Some(val)) = (cursor.key(), cursor.val()) {
        cursor.for_each_time(|time, diff| hash = mix(hash ^ key ^ val << 1 ^ time << 2 ^ (diff as u64) << 3));
        cursor.step_key();
    }
    hash
}

fn main() {
    let is_test = is_test(std::env::args());
    let millions: u64 = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(5);
    let count = if is_test { 20_000 } else { millions * 1_000_000 };
    workloads::machine::pin(0);
    println!("2 × {count} updates; microseconds");
    println!("| keys    |   fuel | merging: calls, median, p99, max | sealing: calls, median, p99, max | finish |");
    println!("|---------|-------:|----------------------------------|----------------------------------|-------:|");
    for bits in [64, 30] {
        let inputs = [0, 1].map(|time| batch(count, time, bits));
        let mut results = Vec::new();
        for fuel in [1_000, 10_000] {
            let mut merge = OrdBatch::begin_merge(&inputs, &Antichain::from_elem(0));
            let (mut merging, mut sealing) = (Vec::new(), Vec::new());
            // What is left once all is merged is for sealing: a quarter of the updates.
            let seals = inputs.iter().map(Stored::len).sum::<usize>() / 4 + 1;
            while !merge.is_done() {
                let was_sealing = merge.remaining() <= seals;
                let (time, ()) = Clock::Thread.time(|| merge.work(&mut { fuel }));
                if was_sealing { &mut sealing } else { &mut merging }.push(time);
            }
            let (finish, out) = Clock::Thread.time(|| merge.finish());
            results.push(hash(&out));
            let [first, second] = [&mut merging, &mut sealing].map(|times| {
                let [median, p99, max] = quantiles(times);
                format!("{:>8}, {median:>6.0}, {p99:>6.0}, {max:>6.0}", times.len())
            });
            let finish = finish.as_nanos() as f64 / 1e3;
            println!("| {bits} bits | {fuel:>6} | {first} | {second} | {finish:>6.0} |");
        }
        assert_eq!(results[0], results[1], "slices change no result");
        println!("hash of the result: {:016x}", results[0]);
    }
}
