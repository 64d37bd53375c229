//! Published shards: the default hold, holds of one's own, what readers on other threads see (invariants 25, 28).
#![forbid(unsafe_code)]

use kpg::dataflow::Updates;
use kpg::order::{Antichain, DiffOverflow};
use kpg::trace::{
    Batch, MergePolicy, OrdBatch, Published, SnapshotError, Trace, TraceHandle, TraceWriter, batch_from_sorted,
    shard_of, sort_and_consolidate,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

type B = OrdBatch<u64, u64, u64, i64>;

fn at(time: u64) -> Antichain<u64> {
    Antichain::from_elem(time)
}

/// One writer a shard; each has a batch of the keys below 10 that are its own, val the time, every step.
struct Shards {
    writers: Vec<TraceWriter<B>>,
    published: Published<B>,
    steps: Vec<u64>,
}

impl Shards {
    fn new(peers: usize) -> Self {
        let published = Published::new(peers);
        let writer = |worker| {
            let (mut writer, _handle) = TraceWriter::new(MergePolicy::eager());
            writer.publish(&published, worker);
            writer
        };
        Shards { writers: (0..peers).map(writer).collect(), steps: vec![0; peers], published: published.clone() }
    }
    /// Each key's val becomes the time.
    fn insert(&mut self, worker: usize) {
        let time = self.steps[worker];
        let mut updates = Updates::default();
        for key in (0..10).filter(|key| shard_of::<u64>(*key, self.writers.len()) == worker) {
            updates.push((key, time), time, 1);
            if time > 0 {
                updates.push((key, time - 1), time, -1);
            }
        }
        let batch = batch_from_sorted(sort_and_consolidate(updates), at(time), at(time + 1));
        self.writers[worker].insert(batch);
    }
    fn advance(&mut self, worker: usize) {
        self.steps[worker] += 1;
        self.writers[worker].advance_upper(&at(self.steps[worker]));
    }
    fn step(&mut self, worker: usize) {
        self.insert(worker);
        self.advance(worker);
    }
}

fn contents(time: u64) -> Vec<(u64, u64, i64)> {
    (0..10).map(|key| (key, time, 1)).collect()
}

fn read(snapshot: &kpg::trace::Snapshot<B>) -> Vec<(u64, u64, i64)> {
    let mut all: Vec<_> = snapshot.iter().collect();
    all.sort_unstable();
    all
}

#[test]
fn the_latest_complete_time_stays_readable() {
    // Two workers whose replicas lag each other arbitrarily, merging eagerly, with no hold of anyone's own.
    fn lag(schedule: Vec<u8>) {
        let mut shards = Shards::new(2);
        for step in schedule {
            let worker = usize::from(step % 2);
            if step % 4 < 2 {
                shards.step(worker)
            } else {
                (0..step / 4 % 8).for_each(|_| shards.step(worker))
            }
            shards.writers[worker].work(&mut 1_000);
            let complete = *shards.steps.iter().min().expect("two");
            assert_eq!(shards.published.complete(), at(complete));
            match shards.published.snapshot() {
                Ok(snapshot) => {
                    assert_eq!(*snapshot.time(), complete - 1);
                    assert_eq!(read(&snapshot), contents(complete - 1));
                }
                Err(error) => assert_eq!((complete, error), (0, SnapshotError::NotYet { complete: at(0) })),
            }
            let history = shards.published.default_since();
            assert!(!history.less_equal(&complete) || complete == 0 || history.before(&at(complete)));
        }
    }
    quickcheck::quickcheck(lag as fn(Vec<u8>));
}

#[test]
fn a_batch_is_shown_before_the_upper_passes_it() {
    let mut shards = Shards::new(1);
    shards.step(0);
    shards.insert(0);
    let shard = shards.published.shard(0);
    assert_eq!((shard.batches.is_empty(), &shard.upper), (false, &at(1)));
    assert_eq!(shards.published.snapshot_at(&1).err(), Some(SnapshotError::NotYet { complete: at(1) }));
    shards.advance(0);
    assert_eq!(read(&shards.published.snapshot_at(&1).expect("complete")), contents(1));
}

#[test]
fn holds_keep_history_and_nothing_else_does() {
    let mut shards = Shards::new(2);
    (0..5).for_each(|_| (0..2).for_each(|w| shards.step(w)));
    let hold = shards.published.hold(&at(4)).expect("the latest complete time is held by default");
    for _ in 0..50 {
        (0..2).for_each(|w| shards.step(w));
    }
    let kept = shards.published.snapshot_at(&4).expect("held");
    assert_eq!(read(&kept), contents(4));
    for key in 0..10 {
        assert_eq!(kept.get(&key).collect::<Vec<_>>(), [(4, 1)]);
        assert_eq!(kept.try_get(&key), Ok(vec![(4, 1)]));
    }
    assert!(kept.get(&10).next().is_none());
    drop(hold);
    for _ in 0..50 {
        (0..2).for_each(|w| shards.step(w));
    }
    assert_eq!(read(&kept), contents(4), "a snapshot holds its time");
    drop(kept);
    for _ in 0..500 {
        (0..2).for_each(|w| shards.step(w));
    }
    assert!(matches!(shards.published.snapshot_at(&4), Err(SnapshotError::Compacted { .. })));
    assert!(matches!(shards.published.hold(&at(4)), Err(SnapshotError::Compacted { .. })));
    assert!(shards.published.shard(0).batches.iter().map(Batch::len).sum::<usize>() < 60, "history is folded away");
}

#[test]
fn an_import_reads_from_one_time_on() {
    let mut shards = Shards::new(2);
    (0..9).for_each(|_| shards.step(0));
    (0..5).for_each(|_| shards.step(1));
    let (time, mut hold) = shards.published.take_import_hold();
    hold.move_to(&at(time)).expect("beyond every committed since");
    let weak = |shards: &Shards, worker: usize| shards.writers[worker].reader();
    let views: Vec<TraceHandle<B>> = (0..2)
        .map(|worker| weak(&shards, worker).expect("published").register(&at(time)).expect("published"))
        .collect();
    drop(hold);
    for _ in 0..30 {
        (0..2).for_each(|w| shards.step(w));
    }
    for view in &views {
        let history = view.batches_through(&view.cut()).expect("the first cut");
        let (live, upper) = view.batches_after(&view.cut()).expect("the first cut");
        assert!(upper.less_equal(&39) && live.len() == 30 && !history.is_empty());
        assert!(view.committed().less_equal(&time));
    }
}

#[test]
fn a_published_trace_ends_with_its_last_owner() {
    let mut shards = Shards::new(1);
    shards.step(0);
    assert!(shards.writers[0].is_read());
    let Shards { mut writers, published, .. } = shards;
    drop(published);
    writers[0].work(&mut 1);
    assert!(!writers[0].is_read());
}

#[test]
fn a_closed_arrangement_stays_readable_and_an_ended_one_does_not() {
    let mut shards = Shards::new(2);
    (0..3).for_each(|_| (0..2).for_each(|w| shards.step(w)));
    for writer in &mut shards.writers {
        writer.seal_end();
        writer.advance_upper(&Antichain::new());
    }
    assert!(shards.published.complete().is_empty());
    let snapshot = shards.published.snapshot().expect("closed");
    assert_eq!(read(&snapshot), contents(2));
    shards.published.end();
    assert_eq!(shards.published.snapshot().err(), Some(SnapshotError::Unpublished));
    assert_eq!(shards.published.hold(&at(9)).err(), Some(SnapshotError::Unpublished));
    assert_eq!(read(&snapshot), contents(2));
}

#[test]
fn a_sum_that_does_not_fit_is_an_error() {
    let published = Published::<B>::new(1);
    let (mut writer, _handle) = TraceWriter::new(MergePolicy::default());
    writer.publish(&published, 0);
    for time in 0..2 {
        let mut updates = Updates::default();
        updates.push((1, 1), time, i64::MAX);
        writer.insert(batch_from_sorted(updates, at(time), at(time + 1)));
    }
    writer.advance_upper(&at(2));
    let snapshot = published.snapshot().expect("complete");
    assert_eq!(snapshot.try_get(&1), Err(DiffOverflow));
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| snapshot.get(&1).count()));
    assert!(unwound.expect_err("raised").is::<DiffOverflow>());
}

#[test]
fn readers_on_other_threads_see_whole_values() {
    let (published, done) = (Published::<B>::new(2), Arc::new(AtomicUsize::new(0)));
    let calls = Arc::new(AtomicUsize::new(0));
    let count = calls.clone();
    published.on_change(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
        true
    }));
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let (published, done) = (published.clone(), done.clone());
            scope.spawn(move || {
                let (mut writer, _handle) = TraceWriter::new(MergePolicy::lazy());
                writer.publish(&published, worker);
                drop(_handle);
                let mut shards = Shards { writers: vec![], published: published.clone(), steps: vec![0; 2] };
                let (unread, _) = TraceWriter::new(MergePolicy::lazy());
                let (mut own, mut other) = (Some(writer), Some(unread));
                shards.writers =
                    (0..2).map(|w| if w == worker { &mut own } else { &mut other }.take().expect("one each")).collect();
                (0..2_000).for_each(|_| shards.step(worker));
                done.fetch_add(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while done.load(Ordering::Acquire) < 2 {
                    if let Ok(snapshot) = published.snapshot() {
                        assert!(*snapshot.time() >= last, "time does not go back");
                        last = *snapshot.time();
                        assert_eq!(read(&snapshot), contents(last));
                    }
                }
            });
        }
        published.wait_complete(&1_999, Some(Instant::now() + Duration::from_secs(60))).expect("both get there");
    });
    assert!(calls.load(Ordering::Relaxed) >= 4_000, "each upper of each worker is told");
    let late = published.wait_complete(&2_000, Some(Instant::now() + Duration::from_millis(5)));
    assert_eq!(late, Err(SnapshotError::NotYet { complete: at(2_000) }));
}
