//! Each kernel against its naive form.
use super::{Sample, Values};
use crate::traits::{Column, Columnar};
use crate::{A, B, DROP, Frame, Group, KRun, KWay, Run, Sorter, THIRD, merge_runs, run_end, sort_permutation, taken};

type ColumnOf<T> = <T as Columnar>::Column;

fn column_of<T: Columnar>(values: &[T]) -> ColumnOf<T> {
    let mut column = ColumnOf::<T>::default();
    column.push_values(values);
    column
}

/// Prefixes, packing, sorting and seeking on a column that holds `model`.
pub(super) fn check<T: Sample>(column: &ColumnOf<T>, model: &[T]) {
    prefixes(column, model);
    for room in [0, 1, 7, 50, 64] {
        pack(column, model, room);
    }
    words(column, model);
    sort(column, model);
    for times in 0..4 {
        groups::<T>(column, model, times);
    }
    let mut sorted = model.to_vec();
    sorted.sort();
    let mut ordered = column_of(&sorted);
    seek(&ordered, &sorted);
    ordered.seal();
    seek(&ordered, &sorted);
    sorted.dedup();
    for (seed, sealed) in [(1, [false, false]), (2, [true, false]), (3, [true, true])] {
        weaving(&sorted, seed, sealed);
    }
}

/// Splits sorted values in two, some in both, and weaves them together again.
fn weaving<T: Sample>(sorted: &[T], seed: u8, sealed: [bool; 2]) {
    let mut choices = Values::new(8, seed);
    let sides: Vec<u64> = sorted.iter().map(|_| 1 + u64::sample(&mut choices) % 3).collect();
    let half = |bit: u64| -> Vec<T> {
        sorted.iter().zip(&sides).filter(|(_, side)| **side & bit > 0).map(|(value, _)| value.clone()).collect()
    };
    let [mut a, mut b] = [column_of(&half(1)), column_of(&half(2))];
    let [seal_a, seal_b] = sealed;
    if seal_a {
        a.seal();
    }
    if seal_b {
        b.seal();
    }
    let mut steps = vec![0; sorted.len()];
    let count = a.plan(0..a.len(), &b, 0..b.len(), &mut steps);
    let known = |steps: &[u8]| steps.iter().zip(&sides).all(|(step, side)| u64::from(*step) == *side);
    assert!(known(&steps[..count]) && (taken(&steps[..count]).0 == a.len() || taken(&steps[..count]).1 == b.len()));
    // Some vanish, of one side or of both; for some of both comes what the third column has next, at once or after they were
    // dropped.
    let third: Vec<T> = sorted.last().map(|last| vec![last.clone(); sorted.len()]).unwrap_or_default();
    let third = column_of(&third);
    let (mut woven, mut expected) = (Vec::new(), Vec::new());
    for (step, value) in steps[..count].iter().zip(sorted) {
        let last = &sorted[sorted.len() - 1];
        match (u64::sample(&mut choices) % 4, *step == A | B) {
            (0, _) => woven.push(step | DROP),
            (1, true) => {
                woven.push(step | THIRD);
                expected.push(last);
            }
            (2, true) => {
                woven.extend([step | DROP, THIRD]);
                expected.push(last);
            }
            _ => {
                woven.push(*step);
                expected.push(value);
            }
        }
    }
    for sums in [true, false] {
        let mut out = ColumnOf::<T>::default();
        out.prepare_merge(&[&a, &b], sums);
        out.weave((&a, 0), (&b, 0), &third, &woven);
        out.check_invariants();
        assert_eq!(out.len(), expected.len());
        assert!(expected.iter().enumerate().all(|(index, value)| out.get(index) == value.borrow()));
    }
}

fn prefixes<T: Columnar>(column: &ColumnOf<T>, model: &[T]) {
    let mut bulk = vec![0; model.len()];
    column.prefixes(0, &mut bulk);
    let half = model.len() / 2;
    let mut later = vec![0; model.len() - half];
    column.prefixes(half, &mut later);
    assert_eq!(bulk[half..], later);
    let mut pairs: Vec<(&T, u64)> = Vec::new();
    for (index, value) in model.iter().enumerate() {
        let prefix = column.prefix(index);
        assert_eq!(bulk[index], prefix);
        let bits = ColumnOf::<T>::PREFIX_BITS;
        assert!(bits == 64 || prefix >> bits == 0, "prefix {prefix:x} of {bits} bits");
        pairs.push((value, prefix));
    }
    pairs.sort();
    for pair in pairs.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        assert!(a.1 <= b.1, "{:?} has prefix {:x}, {:?} {:x}", a.0, a.1, b.0, b.1);
        assert!(a.0 == b.0 || a.1 < b.1 || !ColumnOf::<T>::PREFIX_EXACT, "{:?} {:?}", a.0, b.0);
        let same = T::hash(a.0.borrow()) == T::hash(b.0.borrow());
        assert_eq!(a.0 == b.0, same, "hashes of {:?} and {:?}", a.0, b.0);
    }
}

fn pack<T: Columnar>(column: &ColumnOf<T>, model: &[T], room: u32) {
    let lower = model.len() / 4;
    let mut keys = vec![if room < 64 { 1u64 } else { 0 }; model.len() - lower];
    let packed = column.pack(lower, model.len(), room, &mut keys);
    assert!(packed.bits <= room, "{packed:?} in {room}");
    if room < 64 {
        assert!(keys.iter().all(|key| key >> packed.bits == 1), "the old bits are shifted up");
    }
    let mut pairs: Vec<(&T, u64)> = model[lower..].iter().zip(keys).collect();
    pairs.sort();
    for pair in pairs.windows(2) {
        assert!(pair[0].1 <= pair[1].1, "{pair:?} packed in {room}");
        let differ = pair[0].0 != pair[1].0;
        assert!(!differ || pair[0].1 < pair[1].1 || !packed.exact, "{pair:?} {packed:?}");
    }
}

/// Values as words of a frame, if they can be, in order; and back.
fn words<T: Columnar>(column: &ColumnOf<T>, model: &[T]) {
    let (lower, mut frame) = (model.len() / 4, Frame::default());
    if model.is_empty() || !frame.add(column, lower, model.len()) || !frame.place() {
        return;
    }
    let mut words = vec![0; model.len() - lower];
    column.encode(lower, &mut frame.fields(), &mut words);
    assert!(words.iter().all(|word| frame.bits_from(0) == 64 || word >> frame.bits_from(0) == 0));
    let mut pairs: Vec<(&T, u64)> = model[lower..].iter().zip(words.iter().copied()).collect();
    pairs.sort();
    assert!(pairs.windows(2).all(|pair| pair[0].0.cmp(pair[1].0) == pair[0].1.cmp(&pair[1].1)), "{pairs:?}");
    let mut out = column_of(&model[..lower]);
    out.decode(&mut frame.fields(), &words);
    out.check_invariants();
    assert!(out.len() == model.len() && (0..out.len()).all(|index| out.get(index) == model[index].borrow()));
}

fn sort<T: Columnar>(column: &ColumnOf<T>, model: &[T]) {
    let mut expected: Vec<u32> = (0..model.len() as u32).collect();
    expected.sort_by_key(|&index| &model[index as usize]);
    assert_eq!(&sort_permutation(column)[..], expected);
}

/// Sorts a part by (value, time) and groups equal ones.
fn groups<T: Columnar>(column: &ColumnOf<T>, model: &[T], shape: u8) {
    let mut values = Values::new([3, 7, 0, 8][usize::from(shape)], 1);
    let times: Vec<(u64, u32)> = model.iter().map(|_| Sample::sample(&mut values)).collect();
    let time_column = column_of(&times);
    let lower = model.len() / 5;
    let mut expected: Vec<u32> = (lower as u32..model.len() as u32).collect();
    let key = |index: u32| (&model[index as usize], times[index as usize]);
    expected.sort_by(|&a, &b| key(a).cmp(&key(b)));

    let mut sorter = Sorter::default();
    let sorted = sorter.sort(column, &time_column, lower, model.len());
    assert_eq!(sorted, expected);
    let mut found: Vec<Vec<u32>> = Vec::new();
    sorter.sort_groups(column, &time_column, lower, model.len(), |group| match group {
        Group::Singles(all) => found.extend(all.iter().map(|one| vec![*one])),
        Group::Equal(group) => {
            assert!(group.len() > 1);
            found.push(group.to_vec());
        }
    });
    let grouped: Vec<Vec<u32>> = expected.chunk_by(|&a, &b| key(a) == key(b)).map(<[u32]>::to_vec).collect();
    assert_eq!(found, grouped);
}

fn seek<T: Sample>(column: &ColumnOf<T>, sorted: &[T]) {
    let mut values = Values::new(7, 9);
    let mut targets: Vec<T> = (0..8).map(|_| T::sample(&mut values)).collect();
    targets.extend(sorted.iter().step_by(sorted.len() / 16 + 1).cloned());
    for width in [1, 2, 8, 64].into_iter().filter(|width| *width <= sorted.len()) {
        let starts: Vec<usize> = (0..targets.len()).map(|i| i * 7 % (sorted.len() + 1 - width)).collect();
        let mut found = starts.clone();
        let borrowed: Vec<_> = targets.iter().map(T::borrow).collect();
        column.seek_windows(&mut found, width, &borrowed);
        for ((start, found), target) in starts.into_iter().zip(found).zip(&targets) {
            let window = &sorted[start..start + width];
            assert_eq!(found, start + window.partition_point(|value| value < target), "{target:?} from {start}");
        }
    }
    for target in &targets {
        for lower in [0, sorted.len() / 3, sorted.len()] {
            for upper in [lower, (lower + 5).min(sorted.len()), sorted.len()] {
                let expected = lower + sorted[lower..upper].partition_point(|value| value < target);
                let found = column.seek(lower, upper, target.borrow());
                let ascends = sorted[lower..upper].windows(2).all(|pair| pair[0] < pair[1]);
                assert_eq!(column.ascends(lower, upper), ascends, "{lower}..{upper}");
                assert_eq!(found, expected, "{target:?} in {lower}..{upper}");
                if expected < upper {
                    let run = sorted[expected..upper].partition_point(|v| *v == sorted[expected]);
                    assert_eq!(run_end(column, expected, upper), expected + run);
                }
            }
        }
    }
}

/// Merges two sorted columns, and those two with a third, in slices.
pub(super) fn check_merges<T: Sample>(a: &[T], b: &[T]) {
    let (mut a, mut b) = (a.to_vec(), b.to_vec());
    a.sort();
    b.sort();
    for budget in [1, 3, usize::MAX] {
        merge_two(&a, &b, budget);
        merge_many(&[&a, &b, &a[a.len() / 2..], &[]], budget);
    }
    a.dedup();
    b.dedup();
    merge_two(&a, &b, 7);
    merge_many(&[&a, &b], 5);
}

fn merge_two<T: Columnar>(a: &[T], b: &[T], budget: usize) {
    let (mut column_a, column_b) = (column_of(a), column_of(b));
    column_a.seal();
    let mut merged: Vec<T> = Vec::new();
    let (mut i, mut j) = (0, 0);
    while i < a.len() || j < b.len() {
        let before = (i, j);
        let start = merged.len();
        (i, j) = merge_runs(&column_a, &column_b, i..a.len(), j..b.len(), budget, |run| match run {
            Run::A(lower, upper) => {
                assert!(lower < upper);
                merged.extend_from_slice(&a[lower..upper]);
            }
            Run::B(lower, upper) => {
                assert!(lower < upper);
                merged.extend_from_slice(&b[lower..upper]);
            }
            Run::Both(i, j) => {
                assert_eq!(a[i], b[j]);
                merged.extend([a[i].clone(), b[j].clone()]);
            }
        });
        assert!(before != (i, j) && merged.len() - start <= budget.saturating_add(1));
    }
    let mut expected = [a, b].concat();
    expected.sort();
    assert_eq!(merged, expected);
}

fn merge_many<T: Columnar>(parts: &[&[T]], budget: usize) {
    let columns: Vec<ColumnOf<T>> = parts.iter().map(|part| column_of(part)).collect();
    let columns: Vec<&ColumnOf<T>> = columns.iter().collect();
    let mut merge = KWay::new(parts.iter().map(|part| 0..part.len()).collect());
    let mut merged: Vec<T> = Vec::new();
    while !merge.is_done() {
        let before = merged.len();
        let spent = merge.step(&columns, budget, |run| match run {
            KRun::One { column, lower, upper } => {
                merged.extend_from_slice(&parts[column][lower..upper]);
            }
            KRun::Equal(equal) => {
                assert!(equal.len() > 1);
                assert!(equal.windows(2).all(|pair| pair[0].0 < pair[1].0), "{equal:?}");
                merged.extend(equal.iter().map(|&(column, i)| parts[column][i].clone()));
            }
        });
        assert_eq!(merged.len() - before, spent);
        assert!(spent > 0);
    }
    assert!(merge.ranges().iter().all(|range| range.is_empty()));
    let mut expected = parts.concat();
    expected.sort();
    assert_eq!(merged, expected);
}
