//! How far things are, and what changes.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use kpg::trace::{Batch, Cursor};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use workloads::Answer;

/// Sums up what changes from some time on, on all workers.
#[derive(Clone, Default)]
pub struct Tally(Arc<Inner>);

struct Inner {
    from: AtomicU64,
    answer: Mutex<Answer>,
}

impl Default for Inner {
    fn default() -> Self {
        Inner { from: AtomicU64::new(u64::MAX), answer: Mutex::default() }
    }
}

impl Tally {
    /// What changes at `time` or later counts. To be told before anything of that time is put in.
    pub fn count_from(&self, time: u64) {
        self.0.from.store(time, Ordering::Release);
    }
    /// What there was so far.
    pub fn answer(&self) -> Answer {
        *self.0.answer.lock().expect("nobody panics with it")
    }
    fn from(&self) -> Option<u64> {
        let from = self.0.from.load(Ordering::Acquire);
        (from < u64::MAX).then_some(from)
    }
    fn add(&self, answer: Answer) {
        self.0.answer.lock().expect("nobody panics with it").merge(answer);
    }
}

/// How far an arrangement is; `look` is given each batch as it is minted.
pub fn each_batch<Tr: Trace<Time = u64> + 'static>(
    arranged: &Arranged<'_, Tr>,
    look: impl Fn(&Tr::Batch) + 'static,
) -> Probe<u64> {
    let mut builder = arranged.scope().operator("watch");
    let mut batches = builder.input_arranged(arranged);
    let (_, nothing) = builder.output::<(), i64>();
    builder.build(move |_| {
        while let Some((_, delivery)) = batches.next() {
            delivery.batches.iter().for_each(&look);
        }
        false
    });
    nothing.probe()
}

/// How far an arrangement of counts is; what changes is tallied as (key, count).
pub fn tally_counts<Tr>(arranged: &Arranged<'_, Tr>, tally: &Tally) -> Probe<u64>
where
    Tr: Trace<Key = u64, Val = i64, Time = u64, Diff = i64> + 'static,
{
    let tally = tally.clone();
    each_batch(arranged, move |batch| {
        let Some(from) = tally.from() else { return };
        let (mut answer, mut cursor) = (Answer::default(), batch.cursor());
        while let Some(key) = cursor.key() {
            while let Some(count) = cursor.val() {
                cursor.for_each_time(|time, diff| {
                    if time >= from {
                        answer.add(&[key, count as u64], diff);
                    }
                });
                cursor.step_val();
            }
            cursor.step_key();
        }
        tally.add(answer);
    })
}

/// How far a collection is; `look` is given each update.
pub fn each_update<D: Columnar>(
    collection: &Collection<'_, u64, D>,
    look: impl Fn(D::Ref<'_>, u64, i64) + 'static,
) -> Probe<u64> {
    let nothing = collection.unary::<(), i64>("watch", move |input, _, _| {
        while let Some((_, chunk)) = input.next() {
            chunk.iter().for_each(|(datum, time, diff)| look(datum, time, diff));
        }
        false
    });
    nothing.probe()
}

/// How far a collection is; what changes is tallied, each datum as the numbers that `parts` makes of it. Before the time
/// that is counted from it looks at no update.
pub fn tally<D: Columnar, const N: usize>(
    collection: &Collection<'_, u64, D>,
    tally: &Tally,
    parts: impl Fn(D::Ref<'_>) -> [u64; N] + 'static,
) -> Probe<u64> {
    let tally = tally.clone();
    let nothing = collection.unary::<(), i64>("tally", move |input, _, _| {
        while let Some((_, chunk)) = input.next() {
            let Some(from) = tally.from() else { continue };
            let mut answer = Answer::default();
            for (datum, time, diff) in chunk.iter() {
                if time >= from {
                    answer.add(&parts(datum), diff);
                }
            }
            tally.add(answer);
        }
        false
    });
    nothing.probe()
}

/// How many data there are, and the sum of the numbers that they stand for, on all workers.
#[derive(Clone, Default)]
pub struct Sums(Arc<(AtomicI64, AtomicI64)>);

impl Sums {
    /// As of what has come so far.
    pub fn get(&self) -> (i64, i64) {
        (self.0.0.load(Ordering::Acquire), self.0.1.load(Ordering::Acquire))
    }
}

/// Follows a collection's sums: how far it is.
pub fn sums<D: Columnar>(
    collection: &Collection<'_, u64, D>,
    sums: &Sums,
    number: impl Fn(D::Ref<'_>) -> i64 + 'static,
) -> Probe<u64> {
    sum_up(collection, sums, number).probe()
}

/// Follows a collection's sums. What it gives is empty, and as far as that.
pub fn sum_up<'s, D: Columnar>(
    collection: &Collection<'s, u64, D>,
    sums: &Sums,
    number: impl Fn(D::Ref<'_>) -> i64 + 'static,
) -> Collection<'s, u64, ()> {
    let all = sums.clone();
    collection.unary("sums", move |input, _, _| {
        while let Some((_, chunk)) = input.next() {
            let add = |sums: (i64, i64), (datum, _, diff): (D::Ref<'_>, u64, i64)| {
                (sums.0 + diff, sums.1 + diff * number(datum))
            };
            let (count, sum) = chunk.iter().fold((0, 0), add);
            all.0.0.fetch_add(count, Ordering::AcqRel);
            all.0.1.fetch_add(sum, Ordering::AcqRel);
        }
        false
    })
}
