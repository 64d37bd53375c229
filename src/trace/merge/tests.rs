use super::super::check::accumulate;
use super::super::{Cursor, CursorList, batch_from_sorted, sort_and_consolidate, start};
use super::*;
use crate::dataflow::Updates;
use crate::order::{Pair, rep};
use kpg_columnar::Column;

type Time = Pair<u64, u64>;
type Update = (u8, u8, u8, u8, i8);
type Frontier = Vec<(u8, u8)>;

fn time(a: u8, b: u8) -> Time {
    Pair::new(u64::from(a % 6), u64::from(b % 6))
}

fn times() -> impl Iterator<Item = Time> {
    (0..12).flat_map(|a| (0..12).map(move |b| Pair::new(a, b)))
}

/// The updates not beyond `middle`, and the rest, as adjacent batches.
fn batches(updates: &[Update], middle: &Antichain<Time>) -> [OrdBatch<u64, u64, Time, i64>; 2] {
    let mut columns = [Updates::default(), Updates::default()];
    for (key, val, a, b, diff) in updates {
        let time = time(*a, *b);
        let side = usize::from(middle.less_equal(&time));
        columns[side].push((u64::from(key % 8), u64::from(val % 4)), time, i64::from(*diff));
    }
    let [first, second] = columns.map(sort_and_consolidate);
    [batch_from_sorted(first, start(), middle.clone()), batch_from_sorted(second, middle.clone(), Antichain::new())]
}

fn frontier(elements: &Frontier) -> Antichain<Time> {
    elements.iter().map(|(a, b)| time(*a, *b)).collect()
}

fn merge<B: MergeBatch>(first: &B, second: &B, since: &Antichain<B::Time>, fuel: isize) -> B {
    merge_all(&[first.clone(), second.clone()], since, fuel)
}

fn merge_all<B: MergeBatch>(inputs: &[B], since: &Antichain<B::Time>, fuel: isize) -> B {
    let mut merger = B::begin_merge(inputs, since);
    let updates: usize = inputs.iter().map(Batch::len).sum();
    let mut rounds = 0;
    while !merger.is_done() {
        let before = merger.remaining();
        merger.work(&mut { fuel });
        assert!(merger.remaining() <= before, "work makes progress");
        rounds += 1;
        assert!(rounds <= 4 * updates + 4 * inputs.len(), "each call makes progress");
    }
    assert_eq!(merger.remaining(), 0);
    merger.finish()
}

quickcheck::quickcheck! {
    fn accumulates_alike_beyond_since(updates: Vec<Update>, middle: Frontier, since: Frontier, fuel: u8) -> bool {
        let since = frontier(&since);
        let [first, second] = batches(&updates, &frontier(&middle));
        first.check_upper();
        second.check_upper();
        let merged = merge(&first, &second, &since, isize::from(fuel % 32) + 1);
        merged.check_invariants();
        assert_eq!((merged.lower(), merged.upper()), (first.lower(), second.upper()));
        times().filter(|t| since.is_empty() || since.less_equal(t)).all(|at| {
            accumulate(std::slice::from_ref(&merged), &at) == accumulate(&[first.clone(), second.clone()], &at)
        })
    }

    fn folds_what_none_tells_apart(updates: Vec<Update>, middle: Frontier, since: Frontier) -> bool {
        let since = frontier(&since);
        let [first, second] = batches(&updates, &frontier(&middle));
        let merged = merge(&first, &second, &since, isize::MAX);
        first.is_empty() || second.is_empty() || (0..merged.len()).all(|index| {
            let time = merged.layers().times.get(index);
            rep(&time, &since) == time
        })
    }

    fn slices_change_nothing(updates: Vec<Update>, middle: Frontier, since: Frontier, fuel: u8) -> bool {
        let since = frontier(&since);
        let [first, second] = batches(&updates, &frontier(&middle));
        let whole = merge(&first, &second, &since, isize::MAX);
        let sliced = merge(&first, &second, &since, isize::from(fuel % 4) + 1);
        let all = |b: &OrdBatch<u64, u64, Time, i64>| -> Vec<_> {
            (0..b.len()).map(|i| (b.layers().times.get(i), b.layers().diffs.get(i))).collect()
        };
        all(&whole) == all(&sliced)
    }
}

/// As `batches`, of keys that have one val and one update each.
fn flat_batches(updates: &[(u16, u8, u8, i8)]) -> [OrdBatch<u64, u64, u64, i64>; 2] {
    let middle = Antichain::from_elem(4);
    let mut columns = [Updates::default(), Updates::default()];
    let mut seen = std::collections::HashSet::new();
    for (key, val, time, diff) in updates {
        let (key, time) = (u64::from(key % 128), u64::from(time % 8));
        if *diff != 0 && seen.insert((key, time / 4)) {
            columns[usize::from(time >= 4)].push((key, u64::from(val % 2)), time, i64::from(diff.signum()));
        }
    }
    let [first, second] = columns.map(sort_and_consolidate);
    [batch_from_sorted(first, start(), middle.clone()), batch_from_sorted(second, middle, Antichain::from_elem(8))]
}

quickcheck::quickcheck! {
    fn flat_ones_too(updates: Vec<(u16, u8, u8, i8)>, since: u8, fuel: u8) -> bool {
        let since = Antichain::from_elem(u64::from(since % 10));
        let [first, second] = flat_batches(&updates);
        let merged = merge(&first, &second, &since, isize::from(fuel % 32) + 1);
        merged.check_invariants();
        (since.elements()[0]..12).all(|at| {
            accumulate(std::slice::from_ref(&merged), &at) == accumulate(&[first.clone(), second.clone()], &at)
        })
    }
}

/// Cuts updates at ever later times into adjacent batches.
fn pile(updates: &[Update], cuts: &[u8]) -> Vec<OrdBatch<u64, u64, u64, i64>> {
    let mut bounds: Vec<u64> = cuts.iter().take(6).map(|cut| u64::from(cut % 12)).filter(|cut| *cut > 0).collect();
    bounds.push(12);
    bounds.sort_unstable();
    bounds.dedup();
    let mut lower = 0;
    let batch = |upper| {
        let within = updates.iter().filter(|u| (lower..upper).contains(&u64::from(u.2 % 12)));
        let mut columns = Updates::default();
        within
            .for_each(|u| columns.push((u64::from(u.0 % 16), u64::from(u.1 % 3)), u64::from(u.2 % 12), i64::from(u.4)));
        let bounds = [lower, upper].map(Antichain::from_elem);
        lower = upper;
        let [lower, upper] = bounds;
        batch_from_sorted(sort_and_consolidate(columns), lower, upper)
    };
    bounds.into_iter().map(batch).collect()
}

quickcheck::quickcheck! {
    /// Many at once come to what pairs come to, one after the other: update by update, in any slices.
    fn many_are_as_pairs(updates: Vec<Update>, cuts: Vec<u8>, since: u8, fuel: u8) -> bool {
        let (inputs, since) = (pile(&updates, &cuts), Antichain::from_elem(u64::from(since % 14)));
        let many = merge_all(&inputs, &since, isize::from(fuel % 32) + 1);
        many.check_invariants();
        let pairs = inputs[1..].iter().fold(inputs[0].clone(), |all, next| merge(&all, next, &since, isize::MAX));
        let all = |b: &OrdBatch<u64, u64, u64, i64>| accumulate(std::slice::from_ref(b), &13);
        assert_eq!((many.lower(), many.upper(), many.len()), (pairs.lower(), pairs.upper(), pairs.len()));
        all(&many) == all(&pairs)
    }
    /// Of keys that have one update each: the flat form, with its stretches.
    fn many_flat_ones_too(runs: Vec<(u16, u8, u8)>, since: u8, fuel: u8) -> bool {
        let mut seen = std::collections::BTreeSet::new();
        let mut columns: Vec<Updates<(u64, ()), u64, i64>> = (0..5).map(|_| Updates::default()).collect();
        for (from, len, side) in runs {
            let side = u64::from(side % 5);
            for key in u64::from(from % 512)..u64::from(from % 512) + u64::from(len % 40) {
                if seen.insert((side, key)) {
                    columns[side as usize].push((key, ()), side, if side == 3 { -1 } else { 1 });
                }
            }
        }
        let batch = |(side, updates)| {
            let side = side as u64;
            batch_from_sorted(sort_and_consolidate(updates), Antichain::from_elem(side), Antichain::from_elem(side + 1))
        };
        let inputs: Vec<_> = columns.into_iter().enumerate().map(batch).collect();
        let since = Antichain::from_elem(u64::from(since % 6));
        let merged = merge_all(&inputs, &since, isize::from(fuel) + 1);
        merged.check_invariants();
        let contents = |batches: &[OrdBatch<u64, (), u64, i64>]| {
            let mut cursor = CursorList::new(batches.iter().map(Batch::cursor).collect());
            let mut all = std::collections::BTreeMap::new();
            while let Some(key) = cursor.key() {
                cursor.for_each_time(|time, diff| *all.entry((key, rep(&time, &since))).or_insert(0) += diff);
                cursor.step_key();
            }
            all.retain(|_, sum| *sum != 0);
            all
        };
        contents(std::slice::from_ref(&merged)) == contents(&inputs)
    }
}

#[test]
fn stays_near_its_fuel() {
    // One key with many vals, and many keys with one.
    let mut updates = [Updates::<(u64, u64), u64, i64>::default(), Updates::default()];
    for index in 0..10_000 {
        updates[index % 2].push((7, index as u64), (index % 2) as u64, 1);
        updates[index % 2].push((10 + index as u64, 0), (index % 2) as u64, 1);
    }
    let [first, second] = updates.map(sort_and_consolidate);
    let first = batch_from_sorted(first, start(), Antichain::from_elem(1));
    let second = batch_from_sorted(second, Antichain::from_elem(1), Antichain::from_elem(2));
    let mut merger = OrdBatch::begin_merge(&[first.clone(), second.clone()], &Antichain::from_elem(1));
    let (mut calls, mut sealing) = (0, 0);
    while !merger.is_done() {
        let (before, mut fuel) = (merger.remaining(), 100);
        merger.work(&mut fuel);
        assert!((-10..100).contains(&fuel), "{fuel} left of 100");
        let Work::Pair(pair) = &merger.work else { panic!("two inputs") };
        match pair.output.is_sealing() {
            false => assert!(before - merger.remaining() <= 110, "{} of fuel 100", before - merger.remaining()),
            true => sealing += 1,
        }
        calls += 1;
    }
    assert!((180..=700).contains(&calls), "{calls}");
    // Six columns and the sample: about eight passes, at a word a pass.
    assert!((10..=60).contains(&sealing), "{sealing} calls for sealing");
    let merged = merger.finish();
    assert_eq!(merged.len(), 20_000);
    merged.check_invariants();
    // The same as if it had been sealed at once.
    let whole = merge(&first, &second, &Antichain::from_elem(1), isize::MAX);
    assert_eq!(merged.bytes(), whole.bytes());
}

/// Keys without vals, which are merged as words: with all that fuel may be, and with sums that do not fit among others that do.
#[test]
fn words_stay_near_their_fuel_and_keep_what_does_not_fit() {
    const MAX: i32 = i32::MAX;
    let diff = |key: u64, side: u64| match key % 97 {
        5 => MAX,
        6 => [1, -1][side as usize],
        _ => 1,
    };
    let batch = |side: u64| {
        let mut updates = Updates::<(u64, ()), u64, i32>::default();
        (0..5000u64).filter(|key| key % (3 + side) > 0).for_each(|key| updates.push((key, ()), side, diff(key, side)));
        batch_from_sorted(updates, Antichain::from_elem(side), Antichain::from_elem(side + 1))
    };
    let (first, second) = (batch(0), batch(1));
    for given in [1, 50, 65, 300, 5000, isize::MAX] {
        let mut merger = OrdBatch::begin_merge(&[first.clone(), second.clone()], &Antichain::from_elem(1));
        while !merger.is_done() {
            let mut fuel = given;
            merger.work(&mut fuel);
            assert!(fuel >= -10, "{fuel} left of {given}");
        }
        let merged = merger.finish();
        merged.check_invariants();
        let (mut cursor, mut keys) = (merged.cursor(), 0);
        while let Some(key) = cursor.key() {
            let own = |side: u64| if key % (3 + side) > 0 { i64::from(diff(key, side)) } else { 0 };
            let mut sum = 0;
            cursor.for_each_time(&mut |time, diff: i32| {
                assert_eq!(time, 1);
                sum += i64::from(diff);
            });
            assert!(sum == own(0) + own(1) && sum != 0, "{key}: {sum}");
            keys += 1;
            cursor.step_key();
        }
        assert_eq!(
            keys,
            (0..5000)
                .filter(|key| (key % 3 > 0 || key % 4 > 0) && (key % 97 != 6 || key % 3 == 0 || key % 4 == 0))
                .count()
        );
    }
}

/// All that a batch says, update by update.
fn listed<T: Timestamp>(batch: &OrdBatch<u32, u32, T, i64>) -> Vec<(u32, u32, T, i64)> {
    let (mut cursor, mut all) = (batch.cursor(), Vec::new());
    while let Some(key) = cursor.key() {
        while let Some(val) = cursor.val() {
            cursor.for_each_time(|time, diff| all.push((key, val, time, diff)));
            cursor.step_val();
        }
        cursor.step_key();
    }
    all
}

/// Two batches of many updates, merged with much fuel, as words, and with so little that they are not: it is the same. Keys with
/// one val and with many, vals with one update and with many, few and many of which both have; times that fold to one, to few, and
/// in another order.
#[test]
fn words_give_what_the_general_form_gives() {
    type Made = OrdBatch<u32, u32, Time, i64>;
    let batch = |seed: u64, [keys, vals, times]: [u64; 3], late: u64| -> Made {
        let mut updates = Updates::default();
        for index in 0..4000 {
            let random = |what: u64| kpg_columnar::mix(seed << 40 | what << 32 | index);
            let time = Pair::new(late + random(2) % times, random(3) % times);
            let diff = [1, -1, 1, 1, 300][random(4) as usize % 5];
            updates.push(((random(0) % keys) as u32, (random(1) % vals) as u32), time, diff);
        }
        let bound = |at| Antichain::from_elem(Pair::new(at, 0));
        batch_from_sorted(sort_and_consolidate(updates), bound(late), bound(late + times))
    };
    let shapes =
        [[1 << 20, 1, 1], [3000, 1, 1], [700, 3, 1], [300, 50, 3], [40, 20, 30], [2, 8000, 2], [500, 1 << 30, 9]];
    for (seed, shape) in shapes.into_iter().enumerate() {
        let [first, second] = [0, shape[2]].map(|late| batch(2 * seed as u64 + late.min(1), shape, late));
        let sinces = [vec![], vec![(0, 0)], vec![(1, 0)], vec![(2, 1)], vec![(100, 100)], vec![(100, 0), (0, 100)]];
        for since in sinces {
            let since: Antichain<Time> = since.into_iter().map(|(a, b)| Pair::new(a, b)).collect();
            let general = merge(&first, &second, &since, 60);
            for fuel in [150, 2000, isize::MAX] {
                let merged = merge(&first, &second, &since, fuel);
                merged.check_invariants();
                assert_eq!(listed(&merged), listed(&general), "{shape:?} folded at {since:?}");
            }
        }
    }
}

/// One key, or one key and val, that takes no bits: all others are there, up to the last of a word.
#[test]
fn words_of_one_key_may_be_full() {
    let bound = |time| Antichain::from_elem(time);
    for bits in 54..64 {
        let spread = |side: u64, index: u64| (side + 2 * index) << (bits - 8) | u64::from(index == 99 && side == 1);
        let vals = [0, 1].map(|side| {
            let mut updates = Updates::<(u32, u64), u64, i64>::default();
            (0..100).for_each(|index| updates.push((1, spread(side, index)), side, 1));
            batch_from_sorted(updates, bound(side), bound(side + 1))
        });
        let merged = merge(&vals[0], &vals[1], &bound(1), isize::MAX);
        merged.check_invariants();
        assert_eq!((merged.layers().key_count(), merged.len()), (1, 200), "{bits} bits");

        // Apart in time, so that the first ends where the second begins.
        let later = 1 << (bits - 1);
        let times = [0, 1].map(|side| {
            let mut updates = Updates::<((), ()), u64, i64>::default();
            (0..100).for_each(|index| updates.push(((), ()), side * later + (index << (bits - 9)), 1));
            batch_from_sorted(updates, bound(side * later), bound((side + 1) * later))
        });
        let merged = merge(&times[0], &times[1], &bound(0), isize::MAX);
        merged.check_invariants();
        assert_eq!((merged.layers().key_count(), merged.len()), (1, 200), "{bits} bits of time");
    }
}

/// Three that are kept apart, of which any two would fit.
#[test]
fn words_do_not_sum_up_what_is_kept_apart() {
    const THIRD_OF_MOST: i32 = i32::MAX / 3 + 1;
    let batch = |side: u64| {
        let mut updates = Updates::<(u64, ()), u64, i32>::default();
        if side == 0 {
            (0..3).for_each(|_| updates.push((0, ()), 0, THIRD_OF_MOST));
        }
        (1 - side..100).for_each(|key| updates.push((key, ()), side, 1));
        batch_from_sorted(updates, Antichain::from_elem(side), Antichain::from_elem(side + 1))
    };
    let merged = merge(&batch(0), &batch(1), &Antichain::from_elem(0), isize::MAX);
    merged.check_invariants();
    let mut of_zero = Vec::new();
    merged.cursor().for_each_time(|time, diff| of_zero.push((time, diff)));
    assert_eq!(of_zero, [(0, THIRD_OF_MOST), (0, THIRD_OF_MOST), (0, THIRD_OF_MOST), (1, 1)]);
}

#[test]
fn a_sample_of_the_keys_is_sought_first() {
    let mut updates = Updates::<(u64, ()), u64, i64>::default();
    let count = 20_000;
    (0..count).for_each(|key| updates.push((3 * key, ()), 0, 1));
    let batch = batch_from_sorted(updates, start(), Antichain::from_elem(1));
    batch.check_invariants();
    let layers = batch.layers();
    let mut random = 1_u64;
    for _ in 0..20_000 {
        random = kpg_columnar::mix(random);
        let (from, key) = (random % (count + 1), (random >> 32) % (3 * count + 9));
        let expected = from.max(key.div_ceil(3)).min(count);
        assert_eq!(layers.seek_key(from as usize, key), expected as usize, "key {key} from {from}");
    }
}

#[test]
fn sums_that_do_not_fit_stay_apart() {
    let batch = |diff: i64, lower: u64| {
        let mut updates = Updates::<(u64, ()), u64, i64>::default();
        updates.push((1, ()), lower, diff);
        batch_from_sorted(updates, Antichain::from_elem(lower), Antichain::from_elem(lower + 1))
    };
    let since = Antichain::from_elem(9);
    let merged = merge(&batch(i64::MAX, 0), &batch(i64::MAX, 1), &since, 1);
    merged.check_invariants();
    assert_eq!(merged.len(), 2);
    let less = merge(&merged, &batch(-i64::MAX, 2), &since, 1);
    less.check_invariants();
    assert_eq!(less.len(), 1);
}

#[test]
fn an_empty_neighbour_costs_nothing() {
    let mut updates = Updates::<(u64, ()), u64, i64>::default();
    (0..100).for_each(|key| updates.push((key, ()), 0, 1));
    let first = batch_from_sorted(updates, start(), Antichain::from_elem(1));
    let second = OrdBatch::empty(Antichain::from_elem(1), Antichain::new());
    let merger = OrdBatch::begin_merge(&[first.clone(), second.clone()], &Antichain::from_elem(1));
    assert!(merger.is_done());
    let merged = merger.finish();
    assert!(Arc::ptr_eq(merged.layers(), first.layers()));
    assert!(merged.upper().is_empty());
}

/// What a reader at times beyond `since` can tell: the sum of each (key, val, time), times folded.
fn told<T: Timestamp>(
    batches: &[OrdBatch<u64, u64, T, i64>],
    since: &Antichain<T>,
) -> std::collections::BTreeMap<(u64, u64, T), i64> {
    let mut all = std::collections::BTreeMap::new();
    for batch in batches {
        let mut cursor = batch.cursor();
        while let Some(key) = cursor.key() {
            while let Some(val) = cursor.val() {
                cursor.for_each_time(|time, diff| *all.entry((key, val, rep(&time, since))).or_insert(0) += diff);
                cursor.step_val();
            }
            cursor.step_key();
        }
    }
    all.retain(|_, sum| *sum != 0);
    all
}

/// Two batches of `count` updates each, around time 4, of keys, vals and times below these, and diffs of 1 and -1.
fn large<T: Timestamp>(
    count: u64,
    (keys, vals, times): (u64, u64, u64),
    time: impl Fn(u64, u64) -> T,
) -> [OrdBatch<u64, u64, T, i64>; 2] {
    let mut columns = [Updates::default(), Updates::default()];
    for index in 0..2 * count {
        let random = |by: u64, below: u64| kpg_columnar::mix(index << 3 | by) % below;
        let side = (index % 2) as usize;
        let time = time(4 * side as u64 + random(0, times), random(1, times));
        columns[side].push((random(2, keys), random(3, vals)), time, random(4, 2) as i64 * 2 - 1);
    }
    let [first, second] = columns.map(sort_and_consolidate);
    let middle = Antichain::from_elem(time(4, 0));
    [batch_from_sorted(first, start(), middle.clone()), batch_from_sorted(second, middle, Antichain::new())]
}

/// More than is planned at once: flat ones; keys of some vals, and of very many; vals of several times; in total and partial
/// order, unfolded, folded in part, and to one time.
#[test]
fn large_batches_of_every_shape() {
    fn check<T: Timestamp>(batches: &[OrdBatch<u64, u64, T, i64>; 2], since: &Antichain<T>) {
        let expected = told(batches, since);
        for fuel in [isize::MAX, 3000, 100] {
            let merged = merge(&batches[0], &batches[1], since, fuel);
            merged.check_invariants();
            assert!(told(std::slice::from_ref(&merged), since) == expected, "fuel {fuel}, since {since:?}");
            let folds = (0..merged.len()).all(|index| {
                let time = merged.layers().times.get(index);
                rep(&time, since) == time
            });
            assert!(folds && merged.len() == expected.len(), "fuel {fuel}, since {since:?}");
        }
    }
    let shapes = [(1 << 40, 2, 1), (4000, 1, 1), (2000, 4, 1), (1500, 2, 4), (300, 40, 3), (3, 5000, 2), (40, 3, 4)];
    for shape in shapes {
        let batches = large(6000, shape, |a, _| a);
        for since in [0, 2, 5, 8] {
            check(&batches, &Antichain::from_elem(since));
        }
        let batches = large(3000, shape, Pair::new);
        for since in [vec![(0, 0)], vec![(5, 2)], vec![(2, 3), (6, 1)], vec![(9, 9)]] {
            check(&batches, &since.into_iter().map(|(a, b)| Pair::new(a, b)).collect());
        }
    }
}

/// The rounds of a loop stay apart for what may change at a later outer time: nothing folds, so nothing is looked at again.
#[test]
fn what_cannot_fold_is_copied_as_it_lies() {
    let mut updates = Updates::<(u64, ()), Time, i64>::default();
    (0..10u64).for_each(|key| updates.push((key, ()), Pair::new(0, 3), 1i64));
    let batch: OrdBatch<u64, (), Time, i64> =
        batch_from_sorted(updates, Antichain::from_elem(Pair::new(0, 3)), Antichain::new());
    let floors = |since: &[(u64, u64)]| {
        let since: Antichain<Time> = since.iter().map(|(a, b)| Pair::new(*a, *b)).collect();
        let input = Input::new(&batch, floor(&since));
        (input.floor.is_some(), input.common_time)
    };
    let time = Pair::new;
    assert_eq!(floors(&[(0, 7), (1, 0)]), (false, Some(time(0, 3))), "their meet is before all there is");
    assert_eq!(floors(&[(0, 7), (1, 5)]), (true, Some(time(0, 5))));
    assert_eq!(floors(&[(2, 1)]), (true, Some(time(2, 3))));
    assert_eq!(floors(&[]), (false, Some(time(0, 3))), "nobody reads");
    for since in [&[(0, 7), (1, 5)][..], &[(2, 1)], &[(0, 7), (1, 0)]] {
        let since: Antichain<Time> = since.iter().map(|(a, b)| Pair::new(*a, *b)).collect();
        times().for_each(|time| assert_eq!(output::folded(time, floor(&since)), rep(&time, &since)));
    }
}
