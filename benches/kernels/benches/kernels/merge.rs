//! Batches made one: two alike, many, one of a thousandth of the other.
#![forbid(unsafe_code)]

use crate::data::{BatchOf, Data, Numbers, batch, hash_batch, hash_counts, short};
use kpg::order::Antichain;
use kpg::trace::{Merge, MergeBatch, MergePolicy, OrdBatch, Spine, start};
use kpg_bench::{Clock, Lab, limits};
use std::cell::{LazyCell, RefCell};

pub fn benches(lab: &mut Lab) {
    for (full, small) in [(20_000, 500), (1_000_000, 2_000)] {
        let count = lab.size(full, small);
        two_way::<(u64, ())>(lab, "u64 of 24 bits", Numbers::Keys, count);
        two_way::<(u64, ())>(lab, "u64 of 64 bits", Numbers::Wide, count);
        two_way::<((u32, u32), ())>(lab, "(u32, u32) by itself", Numbers::Edges(1 << 20), count);
        // Ten vals a key.
        two_way::<(u32, u32)>(lab, "u32 to u32", Numbers::Edges(count / 10), count);
    }
    let count = lab.size(62_500, 200);
    pile::<(u64, ())>(lab, "u64 of 24 bits", Numbers::Keys, 16, count);
    pile::<(u32, u32)>(lab, "u32 to u32", Numbers::Edges(count), 16, count);
    let count = lab.size(1_000_000, 10_000);
    skewed::<(u64, ())>(lab, "u64 of 24 bits", Numbers::Keys, count);
    skewed::<(u64, ())>(lab, "u64 of 64 bits", Numbers::Wide, count);
    skewed::<(u32, u32)>(lab, "u32 to u32", Numbers::Edges(count / 10), count);
}

/// Merges two batches, `fuel` at a time, at a since that is beyond both.
fn merged<D: Data>(batches: &[BatchOf<D>], fuel: isize) -> BatchOf<D> {
    let mut merge = OrdBatch::begin_merge(&batches[..2], &Antichain::from_elem(batches.len() as u64));
    while !merge.is_done() {
        merge.work(&mut { fuel });
    }
    merge.finish()
}

fn batches<D: Data>(parts: &[Vec<u64>]) -> Vec<BatchOf<D>> {
    (0..).zip(parts).map(|(time, part)| batch::<D>(part, time)).collect()
}

fn counted(sorted: &[u64]) -> u64 {
    hash_counts(sorted.iter().map(|number| (*number, 1)))
}

fn two_way<D: Data>(lab: &mut Lab, what: &str, numbers: Numbers, count: u64) {
    let parts = LazyCell::new(|| numbers.apart(2, count));
    let inputs = LazyCell::new(|| batches::<D>(&parts));
    let out = RefCell::new(vec![0; 2 * count as usize]);
    let size = format!("{what}, 2 × {}", short(count));
    for (kernel, fuel) in [("merge", isize::MAX), ("merge in slices of 1,000", 1_000)] {
        lab.compare(Clock::Thread, kernel, &size, 2 * count, |c| {
            c.run("kpg", || &*inputs, |inputs| merged::<D>(inputs, fuel), hash_batch::<D>);
            c.run(
                "branchless merge",
                || (&parts[0], &parts[1]),
                |(a, b)| limits::merge(a, b, &mut out.borrow_mut()),
                |()| counted(&out.borrow()),
            );
        });
    }
}

/// A pile of equal batches, as a spine merges them.
fn pile<D: Data>(lab: &mut Lab, what: &str, numbers: Numbers, piled: usize, count: u64) {
    let parts = LazyCell::new(|| numbers.apart(piled, count));
    let inputs = LazyCell::new(|| batches::<D>(&parts));
    let total = piled as u64 * count;
    let spare = RefCell::new(vec![0; total as usize]);
    lab.compare(Clock::Thread, "merge a pile", format!("{what}, {piled} × {}", short(count)), total, |c| {
        c.run(
            "kpg",
            || inputs.clone(),
            |inputs| {
                let mut spine = Spine::new(MergePolicy::default(), start());
                let all = Antichain::from_elem(piled as u64);
                let mut since = || all.clone();
                for input in inputs {
                    spine.insert(input, &all, &mut since);
                }
                while spine.work(&mut { 1 << 24 }, &all, &mut since, &mut false) {}
                spine
            },
            |spine| {
                let batches: Vec<_> = spine.batches().collect();
                assert_eq!(batches.len(), 1, "equal batches become one");
                hash_batch::<D>(batches[0])
            },
        );
        c.run(
            "branchless merges",
            || (parts.concat(), (1..=piled).map(|part| part * count as usize).collect()),
            |(mut runs, ends)| {
                let swapped = limits::merge_all(&mut runs, &mut spare.borrow_mut(), ends);
                (runs, swapped)
            },
            |(runs, swapped)| if *swapped { counted(&spare.borrow()) } else { counted(runs) },
        );
    });
}

fn skewed<D: Data>(lab: &mut Lab, what: &str, numbers: Numbers, count: u64) {
    let parts = LazyCell::new(|| {
        let all = numbers.apart(1, count + count / 1000).remove(0);
        let is_few = |index: usize| index % 1001 == 500;
        let (few, many): (Vec<_>, Vec<_>) = (0..).zip(all).partition(|(index, _)| is_few(*index));
        [many, few].map(|part| part.into_iter().map(|(_, number)| number).collect::<Vec<u64>>())
    });
    let inputs = LazyCell::new(|| batches::<D>(&*parts));
    let total = count + count / 1000;
    lab.compare(Clock::Thread, "merge 1000 to 1", format!("{what}, {}", short(count)), total, |c| {
        c.run("kpg", || &*inputs, |inputs| merged::<D>(inputs, isize::MAX), hash_batch::<D>);
        let from = LazyCell::new(|| vec![1u8; inputs.iter().map(OrdBatch::bytes).sum()]);
        let to = RefCell::new(Vec::<u8>::new());
        c.run_blind(
            "copying its bytes",
            || {
                to.borrow_mut().resize(from.len(), 0);
                &*from
            },
            |from| to.borrow_mut().copy_from_slice(from),
        );
    });
}
