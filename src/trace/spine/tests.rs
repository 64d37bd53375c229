use super::super::{Batch, OrdBatch, Trace, TraceWriter, batch_from_sorted, start};
use super::*;
use crate::dataflow::Updates;
use crate::order::Antichain;
use kpg_columnar::Column;

type B = OrdBatch<u64, (), u64, i64>;

/// Distinct keys, so that nothing is summed away and sizes are what they seem, and on no line, so that they take memory.
fn batch(key: &mut u64, len: usize, time: u64) -> B {
    let mut updates = Updates::<(u64, ()), u64, i64>::default();
    for _ in 0..len {
        updates.push((*key * *key, ()), time, 1);
        *key += 1;
    }
    batch_from_sorted(updates, Antichain::from_elem(time), Antichain::from_elem(time + 1))
}

/// A small generator, for sizes.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// Inserts batches of sizes that `size` gives; the most batches seen, over what each class of the updates may have: with a
/// fan-out of f, f - 1 that wait and f in a merge.
fn grow(policy: MergePolicy, rounds: u64, mut size: impl FnMut(u64) -> usize) -> f64 {
    let mut spine = Spine::<B>::new(policy, start());
    let (cut, mut key, mut total, mut worst) = (Antichain::new(), 0, 0, 0f64);
    for time in 0..rounds {
        let batch = batch(&mut key, size(time), time);
        total += batch.len() + 1;
        spine.insert(batch, &cut, &mut || Antichain::from_elem(time));
        let fan_out = policy.fan_out as f64;
        let most = (2.0 * fan_out - 1.0) * ((total + 2) as f64).log(fan_out).max(1.0);
        worst = worst.max(spine.batches().count() as f64 / most);
    }
    spine.check_invariants();
    worst
}

#[test]
fn the_number_of_batches_is_logarithmic() {
    let policies = [MergePolicy::lazy(), MergePolicy::default(), MergePolicy::eager()];
    let policies =
        policies.iter().flat_map(|policy| [2, 3, 4, 8, 16].map(|fan_out| MergePolicy { fan_out, ..*policy }));
    for policy in policies {
        let mut state = 7;
        let worst = [
            grow(policy, 3_000, |_| 1),
            grow(policy, 1_000, |_| 0),
            grow(policy, 1_000, |time| if time % 7 == 0 { 300 } else { 1 }),
            grow(policy, 600, |time| time as usize),
            grow(policy, 600, |time| 600 - time as usize),
            grow(policy, 1_000, |time| 1 << (time % 10)),
            grow(policy, 1_000, |time| 512 >> (time % 10)),
            grow(policy, 1_000, |_| (1usize << (random(&mut state) % 11)) - 1),
        ];
        assert!(worst.iter().all(|w| *w <= 1.0), "{policy:?}: {worst:?}");
    }
}

/// So many batches of one size: each update is written once a level, and there are as many levels as the logarithm to base
/// of the fan-out.
#[test]
fn a_greater_fan_out_writes_each_update_less_often() {
    let (mut key, free) = (0, Antichain::new());
    for (fan_out, levels) in [(2, 12), (4, 6), (8, 4), (16, 3)] {
        let mut spine = Spine::<B>::new(MergePolicy { fan_out, ..MergePolicy::eager() }, start());
        for time in 0..4096 {
            // Its class, and that of what so many become, never falls short of the level.
            spine.insert(batch(&mut key, 256, time), &free, &mut || start());
        }
        // The last one waits for the next, or for an idle worker.
        spine.work(&mut (1 << 40), &free, &mut || start(), &mut false);
        let totals = spine.state(&free);
        assert_eq!((totals.batches_inserted, totals.inserted), (4096, 4096 * 256));
        assert_eq!(totals.written, levels * totals.inserted, "fan-out {fan_out}");
        assert_eq!(totals.merges, (1..=levels as u32).map(|level| 4096 / (fan_out as u64).pow(level)).sum::<u64>());
        assert_eq!((totals.batches, totals.debt, updates_in(&spine)), (1, 0, 4096 * 256));
    }
}

#[test]
fn the_greatest_classes_are_kept() {
    let mut greatest = [0; 3];
    for (class, then) in
        [(2, [0, 0, 2]), (5, [0, 2, 5]), (1, [1, 2, 5]), (1, [1, 2, 5]), (9, [2, 5, 9]), (3, [3, 5, 9])]
    {
        raise(&mut greatest, class);
        assert_eq!(greatest, then);
    }
}

/// An idle worker leaves no two neighbours of like size, owes nothing for what it began early, and writes no update more often than
/// up to the ratio for each order of it.
#[test]
fn what_rests_comes_down_to_few_batches() {
    let free = Antichain::new();
    let rest = |policy: MergePolicy| {
        let (mut spine, mut key) = (Spine::<B>::new(policy, start()), 0);
        for time in 0..2000 {
            spine.insert(batch(&mut key, 10, time), &free, &mut || start());
            if time % 3 == 0 || time == 1999 {
                while spine.work(&mut 50, &free, &mut || start(), &mut false) {
                    spine.check_invariants();
                    let is_due = |entry: &Entry<B>| matches!(entry, Entry::Merging(merging) if !merging.early);
                    assert_eq!(spine.debt(&free) > 0, spine.entries.iter().any(is_due));
                }
                assert_eq!(spine.debt(&free), 0);
            }
        }
        let sizes: Vec<usize> = spine.batches().map(Batch::len).collect();
        assert_eq!(sizes.iter().sum::<usize>(), 20_000);
        let totals = spine.state(&free);
        (sizes, totals.written as f64 / totals.inserted as f64)
    };
    let (sizes, written) = rest(MergePolicy { idle_ratio: 8, ..MergePolicy::lazy() });
    assert!(sizes.windows(2).all(|two| two[0] > 8 * two[1]), "{sizes:?}");
    assert!(sizes.len() <= 4 && written < 8.0 * 20_000f64.log(8.0), "{sizes:?}, {written} times");
    let (more, less) = rest(MergePolicy::lazy());
    assert!(more.len() > sizes.len() && less < written, "{more:?}, {less} times");
}

/// Empty batches beside one are merged by new bounds, which writes nothing.
#[test]
fn nothing_is_written_for_empty_batches() {
    let mut spine = Spine::<B>::new(MergePolicy::eager(), start());
    let free = Antichain::new();
    for time in 0..100 {
        spine.insert(batch(&mut 0, if time == 0 { 9 } else { 0 }, time), &free, &mut || start());
    }
    let totals = spine.state(&free);
    assert!(totals.merges > 50 && totals.written == 0 && totals.inserted == 9, "{totals:?}");
}

#[test]
fn what_cuts_pin_stays_and_is_then_merged() {
    let mut spine = Spine::<B>::new(MergePolicy::lazy(), start());
    let (mut key, pin) = (0, Antichain::from_elem(100));
    for time in 0..1_000 {
        spine.insert(batch(&mut key, 3, time), &pin, &mut || Antichain::from_elem(time));
    }
    let stats = spine.stats(&pin);
    assert_eq!(stats.queued, 900);
    assert!(stats.merge_debt < 400, "what is pinned is no debt: {stats:?}");
    assert!(spine.entry_count() < 20, "{}", spine.entry_count());
    assert_eq!(
        spine.batches_through(&Antichain::from_elem(500)).map(|b| b.iter().map(Batch::len).sum::<usize>()),
        Some(1_500)
    );
    let free = Antichain::new();
    assert!(spine.stats(&free).merge_debt >= 3_600);
    for time in 1_000..2_200 {
        spine.insert(batch(&mut key, 3, time), &free, &mut || Antichain::from_elem(time));
    }
    assert_eq!(spine.stats(&free).queued, 0, "each batch admits two");
    assert!(spine.entry_count() < 30, "{}", spine.entry_count());
    spine.check_invariants();
}

#[test]
fn idle_work_comes_to_rest() {
    let mut spine = Spine::<B>::new(MergePolicy::lazy(), start());
    let (mut key, free) = (0, Antichain::new());
    for time in 0..500 {
        spine.insert(batch(&mut key, 5, time), &start(), &mut || start());
    }
    let (mut calls, mut changed) = (0, false);
    while spine.work(&mut 50, &free, &mut || start(), &mut changed) {
        calls += 1;
        assert!(calls < 10_000);
    }
    assert!(changed && calls > 100, "in slices: {calls}");
    assert_eq!(spine.stats(&free).merge_debt, 0);
    assert!(spine.entry_count() < 12);
    spine.check_invariants();
}

#[test]
fn an_insert_does_not_merge_beyond_its_fuel() {
    let policy = MergePolicy::lazy();
    let mut spine = Spine::<B>::new(policy, start());
    let (mut key, free) = (0, Antichain::new());
    for time in 0..2 {
        spine.insert(batch(&mut key, 50_000, time), &Antichain::from_elem(0), &mut || start());
    }
    // Both are admitted at once, but not merged by what a small batch pays.
    for time in 2..40 {
        let before = spine.stats(&free).merge_debt;
        spine.insert(batch(&mut key, 10, time), &free, &mut || start());
        let after = spine.stats(&free).merge_debt;
        if time > 4 {
            assert!(before.saturating_sub(after) < 64 * 11 * policy.coefficient, "{before} {after}");
        }
    }
}

#[test]
fn a_trace_without_readers_is_dropped() {
    let (mut writer, handle) = TraceWriter::<B>::new(MergePolicy::default());
    let mut key = 0;
    writer.insert(batch(&mut key, 4, 0));
    let weak = handle.downgrade();
    let other = handle.clone();
    drop(handle);
    assert!(writer.is_read());
    drop(other);
    assert!(!writer.is_read());
    assert!(weak.register(&start()).is_none());
    writer.insert(batch(&mut key, 4, 1));
    writer.seal_end();
    assert!(writer.upper().is_empty());
    assert!(!writer.work(&mut 100));
    writer.seal_end();
}

#[test]
fn an_empty_trace_has_its_least_bound() {
    let (mut writer, handle) = TraceWriter::<B>::new(MergePolicy::default());
    assert_eq!(handle.batches_through(&start()).map(|b| b.len()), Some(0));
    assert!(handle.batches_through(&Antichain::from_elem(1)).is_none());
    assert_eq!(handle.batches().1, start());
    writer.seal_end();
    assert_eq!(handle.batches_through(&Antichain::new()).map(|b| b.len()), Some(1));
    assert_eq!(handle.batches_through(&start()).map(|b| b.len()), Some(0));
    assert!(handle.batches().1.is_empty());
}

#[test]
fn a_reader_that_reads_no_more_holds_nothing() {
    let (mut writer, mut handle) = TraceWriter::<B>::new(MergePolicy::eager());
    let mut other = handle.clone();
    handle.set_since(&Antichain::new());
    handle.set_cut(&Antichain::new());
    let mut key = 0;
    for time in 0..20 {
        writer.insert(batch(&mut key, 1, time));
        other.set_cut(&Antichain::from_elem(time + 1));
        other.set_since(&Antichain::from_elem(time));
    }
    writer.work(&mut 1_000);
    assert!(handle.batches().0.len() <= 5);
    assert!(other.committed().less_equal(&20) && !other.committed().less_equal(&10));
}

#[test]
#[should_panic(expected = "must be the upper")]
fn a_gap_is_refused() {
    let (mut writer, _handle) = TraceWriter::<B>::new(MergePolicy::default());
    writer.insert(batch(&mut 0, 1, 1));
}

#[test]
#[should_panic(expected = "equal bounds")]
fn equal_bounds_are_refused() {
    let (mut writer, _handle) = TraceWriter::<B>::new(MergePolicy::default());
    writer.insert(OrdBatch::empty(start(), start()));
}

#[test]
fn a_merge_without_memory_waits() {
    let (tag, mut spine) = (kpg_arena::Tag::new("spine"), Spine::<B>::new(MergePolicy::eager(), start()));
    let entered = tag.enter();
    let (mut key, free) = (0, Antichain::new());
    spine.insert(batch(&mut key, 40_000, 0), &free, &mut || start());
    let ballast = kpg_arena::Buffer::<u8>::with_capacity(16 << 20);
    // Room for the second batch, not for what both would become beside them.
    tag.set_cap(Some(tag.live_bytes() + (16 << 20)));
    let second = batch(&mut key, 40_000, 1);
    tag.set_cap(Some(tag.live_bytes() + (64 << 10)));
    assert!(!spine.insert(second, &free, &mut || start()), "nothing merged");
    let mut changed = false;
    assert!(!spine.work(&mut 1_000_000, &free, &mut || start(), &mut changed) && !changed, "nothing merged");
    spine.check_invariants();
    let stats = spine.stats(&free);
    assert_eq!((stats.batches, stats.updates, stats.denied_merges, stats.merge_debt), (2, 80_000, 1, 0), "{stats:?}");
    // Small ones come in and merge on; idle calls rest, and try seldom.
    for time in 2..12 {
        spine.insert(batch(&mut key, 10, time), &free, &mut || start());
    }
    for _ in 0..1_000 {
        assert!(!spine.work(&mut 1_000_000, &free, &mut || start(), &mut changed), "what waits keeps no worker awake");
    }
    spine.check_invariants();
    let stats = spine.stats(&free);
    assert!((2..=60).contains(&stats.denials), "{stats:?}");
    assert!(stats.batches <= 6 && stats.denied_merges > 0, "{stats:?}");
    // The query's other memory comes free: in the end it merges, with nothing lost.
    drop(ballast);
    let mut turns = 0;
    while spine.is_denied() {
        spine.work(&mut 1_000_000, &free, &mut || start(), &mut changed);
        turns += 1;
        assert!(turns < 3_000);
    }
    assert!(changed);
    let stats = spine.stats(&free);
    assert_eq!((stats.updates, stats.denied_merges, stats.merge_debt), (80_100, 0, 0), "{stats:?}");
    assert!(spine.batches().any(|b| b.len() >= 80_000), "{stats:?}");
    spine.check_invariants();
    drop(entered);
}

/// A key whose comparison panics where it is told to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Touchy(u64);

thread_local! {
    static TOUCHY: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

impl Ord for Touchy {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        assert!(!TOUCHY.get(), "touchy");
        self.0.cmp(&other.0)
    }
}
impl PartialOrd for Touchy {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl kpg_columnar::HeapSize for Touchy {}

#[test]
fn a_panic_in_a_merge_leaves_its_inputs() {
    type Opaque = kpg_columnar::Opaque<Touchy>;
    let mut spine = Spine::<OrdBatch<Opaque, (), u64, i64>>::new(MergePolicy::eager(), start());
    let free = Antichain::new();
    let touchy = |time: u64| {
        let mut updates = Updates::<(Opaque, ()), u64, i64>::default();
        (0..10).for_each(|key| updates.push((&kpg_columnar::Opaque(Touchy(2 * key + time)), ()), time, 1));
        batch_from_sorted(updates, Antichain::from_elem(time), Antichain::from_elem(time + 1))
    };
    spine.insert(touchy(0), &free, &mut || start());
    let second = touchy(1);
    spine.insert(second, &free, &mut || start());
    TOUCHY.set(true);
    let merge = || spine.work(&mut 1_000, &free, &mut || start(), &mut false);
    let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(merge));
    TOUCHY.set(false);
    assert!(unwound.is_err(), "it is the owner's to hear of");
    spine.check_invariants();
    let stats = spine.stats(&free);
    assert_eq!((stats.batches, stats.updates, stats.open_merges, stats.denials), (2, 20, 0, 0), "{stats:?}");
    spine.work(&mut 1_000, &free, &mut || start(), &mut false);
    assert_eq!(spine.stats(&free).batches, 1);
}

/// What came last is merged once something newer has come, or the worker is idle: then its times fold.
#[test]
fn the_latest_batch_waits_for_the_next() {
    let (mut key, free) = (0, Antichain::new());
    let mut spine = Spine::<B>::new(MergePolicy::eager(), start());
    for time in 0..3 {
        let since = Antichain::from_elem(time.max(1) - 1);
        spine.insert(batch(&mut key, [10, 10, 20][time as usize], time), &free, &mut || since.clone());
        assert_eq!(spine.stats(&free).batches, [1, 2, 2][time as usize]);
    }
    spine.work(&mut 1_000, &free, &mut || Antichain::from_elem(2), &mut false);
    assert_eq!(spine.stats(&free).batches, 1);
    assert!(spine.batches().all(|batch| (0..batch.len()).all(|index| batch.layers().times.get(index) == 2)));
}

/// A merge that ends may make the next one due, which is begun at the same insertion while there is fuel.
#[test]
fn merges_cascade_within_an_insertion() {
    let (mut key, free) = (0, Antichain::new());
    let mut spine = Spine::<B>::new(MergePolicy::eager(), start());
    let sizes = [40, 20, 10, 10, 1];
    for (time, size) in (0..).zip(sizes) {
        spine.insert(batch(&mut key, size, time), &free, &mut || Antichain::from_elem(time));
    }
    assert_eq!(spine.batches().map(|batch| batch.len()).collect::<Vec<_>>(), [80, 1]);
}

#[test]
fn the_debt_is_kept_and_not_counted_anew() {
    let mut spine = Spine::<B>::new(MergePolicy::lazy(), start());
    let (mut key, mut state) = (0, 3);
    for time in 0..400u64 {
        let cut = Antichain::from_elem(time.saturating_sub(random(&mut state) % 50));
        spine.insert(batch(&mut key, (random(&mut state) % 200) as usize, time), &cut, &mut || start());
        let queued = spine.queue.iter().filter(|b| b.upper().before_equal(&cut)).map(weight);
        assert_eq!(spine.debt(&cut), spine.open_debt + queued.sum::<usize>());
        // As the open merges have it.
        spine.check_invariants();
    }
}

fn scattered(time: u64, len: u64) -> B {
    let mut keys: Vec<u64> = (0..len).map(|n| kpg_columnar::mix(time << 32 | n)).collect();
    keys.sort_unstable();
    let mut updates = Updates::<(u64, ()), u64, i64>::default();
    keys.iter().for_each(|key| updates.push((*key, ()), time, 1 + (*key % 2) as i64));
    batch_from_sorted(updates, Antichain::from_elem(time), Antichain::from_elem(time + 1))
}

fn updates_in(spine: &Spine<B>) -> usize {
    spine.batches().map(Batch::len).sum()
}

/// Memory ends at each allocation of a merge in turn: at its start, in its midst, at its end.
#[test]
fn a_merge_may_be_denied_at_any_moment() {
    let arena = kpg_arena::Arena::new(kpg_arena::ArenaConfig::default());
    let _entered = arena.enter();
    let free = Antichain::new();
    for nth in 1.. {
        let mut spine = Spine::<B>::new(MergePolicy::lazy(), start());
        for time in 0..2 {
            spine.insert(scattered(time, 500), &start(), &mut || start());
        }
        arena.fail_after(nth);
        let mut changed = false;
        while spine.work(&mut 100, &free, &mut || start(), &mut changed) {}
        arena.fail_after(0);
        spine.check_invariants();
        assert_eq!(updates_in(&spine), 1_000);
        let stats = spine.stats(&free);
        assert_eq!(stats.batches, 1 + stats.denied_merges);
        if stats.denials == 0 {
            assert!(nth > 3, "a merge allocates: {nth}");
            break;
        }
    }
}

/// What a reader's cut pins is no debt, however much; once it lets go, it is.
#[test]
fn what_is_pinned_is_never_overdue() {
    let (mut writer, mut handle) = TraceWriter::<B>::new(MergePolicy { debt_bound: 50, ..MergePolicy::lazy() });
    let mut key = 0;
    for time in 0..1_000 {
        writer.insert(batch(&mut key, 3, time));
        assert!(!writer.is_overdue(), "pinned at {time}");
    }
    handle.set_cut(&Antichain::from_elem(900));
    assert!(writer.is_overdue());
    while writer.work(&mut 1_000) {}
    assert!(!writer.is_overdue());
    assert_eq!(handle.stats().queued, 100);
}
