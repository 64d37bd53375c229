//! Fresh updates: sorted, summed up, sealed.
#![forbid(unsafe_code)]

use crate::data::{BatchOf, Data, Numbers, hash_batch, hash_counts, short};
use kpg::columnar::{Columnar, Sorter};
use kpg::dataflow::Updates;
use kpg::order::Antichain;
use kpg::trace::{Batcher, SealBatch, sort_and_consolidate_with};
use kpg_bench::{Clock, Lab};
use std::cell::LazyCell;
use voracious_radix_sort::RadixSort;

/// Updates a message, as an input sends them.
const MESSAGE: usize = 1024;

type Round<D> = Updates<(<D as Data>::Key, <D as Data>::Val), u64, i64>;

fn updates<D: Data>(numbers: &[u64], times: u64) -> Round<D> {
    let mut out = Round::<D>::default();
    for (index, number) in (0..).zip(numbers) {
        let data = D::of(*number);
        out.push(data.borrow(), index % times, 1);
    }
    out
}

pub fn benches(lab: &mut Lab) {
    for (full, small) in [(10_000, 1_500), (100_000, 3_000), (1_000_000, 5_000)] {
        let count = lab.size(full, small);
        round::<(u64, ())>(lab, "u64 of 24 bits", Numbers::Keys, count, 1);
        round::<(u64, ())>(lab, "u64 of 64 bits", Numbers::Wide, count, 1);
        round::<(u32, u32)>(lab, "(u32, u32) of 20 bits", Numbers::Edges(1 << 20), count, 1);
    }
    let count = lab.size(100_000, 3_000);
    round::<(u64, ())>(lab, "u64 of 24 bits, 100 times", Numbers::Keys, count, 100);
}

/// A round of updates as an arrangement takes it, and as the sorting alone.
fn round<D: Data>(lab: &mut Lab, what: &str, numbers: Numbers, count: u64, times: u64) {
    let size = format!("{what}, {}", short(count));
    let numbers = LazyCell::new(|| numbers.many(1, count));
    let counted = |sorted: &Vec<u64>| hash_counts(sorted.iter().map(|number| (*number, 1)));
    let mut batcher = Batcher::<(D::Key, D::Val), u64, i64>::new();
    lab.compare(Clock::Thread, "arrange a round", &size, count, |c| {
        c.run(
            "kpg",
            || numbers.chunks(MESSAGE).map(|chunk| updates::<D>(chunk, times)).collect::<Vec<_>>(),
            |messages| {
                messages.into_iter().for_each(|message| batcher.push(message));
                let upper = Antichain::from_elem(times);
                let sealed = batcher.seal(&upper).expect("there are updates");
                BatchOf::<D>::seal(sealed, Antichain::from_elem(0), upper)
            },
            hash_batch::<D>,
        );
        c.run(
            "voracious, keys alone",
            || numbers.clone(),
            |mut numbers| {
                numbers.voracious_sort();
                numbers
            },
            counted,
        );
        c.run(
            "std, keys alone",
            || numbers.clone(),
            |mut numbers| {
                numbers.sort_unstable();
                numbers
            },
            counted,
        );
        c.run(
            "std, records, summed up",
            || (0..).zip(numbers.iter()).map(|(index, n)| (*n, index % times, 1)).collect::<Vec<(u64, u64, i64)>>(),
            |mut records| {
                records.sort_unstable();
                records.dedup_by(|next, kept| {
                    let same = (next.0, next.1) == (kept.0, kept.1);
                    kept.2 += if same { next.2 } else { 0 };
                    same
                });
                records
            },
            |records| hash_counts(records.iter().map(|record| (record.0, record.2))),
        );
    });
    let mut sorter = Sorter::default();
    lab.compare(Clock::Thread, "sort and sum up", &size, count, |c| {
        c.run(
            "kpg",
            || updates::<D>(&numbers, times),
            |updates| sort_and_consolidate_with(&mut sorter, updates),
            |sorted| hash_counts(sorted.iter().map(|(data, _, diff)| (number_of::<D>(data), diff))),
        );
        c.run(
            "voracious, keys alone",
            || numbers.clone(),
            |mut numbers| {
                numbers.voracious_sort();
                numbers
            },
            counted,
        );
    });
}

fn number_of<D: Data>(data: <(D::Key, D::Val) as Columnar>::Ref<'_>) -> u64 {
    D::number(data.0, data.1)
}
