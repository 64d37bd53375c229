//! Views against naive ones.
use super::super::check::accumulate;
use super::super::{
    Batch, Cursor, CursorList, MergePolicy, OrdBatch, Trace, TraceHandle, TraceWriter, batch_from_sorted,
    sort_and_consolidate,
};
use super::*;
use crate::dataflow::Updates;
use crate::order::{Antichain, Lattice, Pair, PartialOrder, Product};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

type Time = Pair<u64, u64>;
type B = OrdBatch<u64, u64, Time, i64>;
type Update = (u8, u8, u8, i8);
type Full = ((u64, u64), Time, i64);

/// Updates of one coordinate's time each, in three batches.
fn trace(updates: &[Update]) -> (TraceHandle<B>, Vec<Full>) {
    let (mut writer, handle) = TraceWriter::new(MergePolicy::lazy());
    let mut all = Vec::new();
    for round in 0..3u64 {
        let mut columns = Updates::default();
        for (key, val, time, diff) in updates.iter().filter(|u| u64::from(u.0 / 16) % 3 == round) {
            let time = Pair::new(round * 2 + u64::from(time % 2), u64::from(time / 2 % 4));
            let data = (u64::from(key % 8), u64::from(val % 4));
            columns.push(data, time, i64::from(*diff));
            all.push((data, time, i64::from(*diff)));
        }
        let [lower, upper] = [round * 2, round * 2 + 2].map(|t| Antichain::from_elem(Pair::new(t, 0)));
        writer.insert(batch_from_sorted(sort_and_consolidate(columns), lower, upper));
    }
    (handle, all)
}

fn naive(updates: &[Full], at: Time) -> BTreeMap<(u64, u64), i64> {
    let mut out = BTreeMap::new();
    updates.iter().filter(|u| u.1.less_equal(&at)).for_each(|u| *out.entry(u.0).or_insert(0) += u.2);
    out.retain(|_, sum| *sum != 0);
    out
}

fn times() -> impl Iterator<Item = Time> {
    (0..7).flat_map(|a| (0..5).map(move |b| Pair::new(a, b)))
}

quickcheck::quickcheck! {
    fn enter(updates: Vec<Update>) -> bool {
        let (handle, all) = trace(&updates);
        let view = EnterTrace::new(handle);
        let (batches, upper) = view.batches();
        assert_eq!(upper, Antichain::from_elem(Product::new(Pair::new(6, 0), 0)));
        assert_eq!(view.batches_through(&upper).map(|b| b.len()), Some(3));
        assert!(view.batches_through(&Antichain::from_elem(Product::new(Pair::new(6, 0), 1))).is_none());
        times().all(|at| [0, 3].into_iter().all(|round| accumulate(&batches, &Product::new(at, round)) == naive(&all, at)))
    }

    fn filter(updates: Vec<Update>, keep: u8) -> bool {
        let (handle, all) = trace(&updates);
        let admits = move |key: u64, val: u64| (key * 4 + val) % 8 != u64::from(keep % 8) && key != u64::from(keep / 8);
        let view = FilterTrace::new(handle, Arc::new(admits));
        let (batches, _) = view.batches();
        let kept: Vec<_> = all.into_iter().filter(|u| admits(u.0.0, u.0.1)).collect();
        for batch in &batches {
            let mut cursor = batch.cursor();
            while cursor.key().is_some() {
                assert!(cursor.val().is_some(), "a shown key has a val");
                cursor.step_key();
            }
        }
        times().all(|at| accumulate(&batches, &at) == naive(&kept, at))
    }

    fn negate(updates: Vec<Update>) -> bool {
        let (handle, all) = trace(&updates);
        let (batches, _) = NegateTrace::new(handle).batches();
        let all: Vec<_> = all.into_iter().map(|(data, time, diff)| (data, time, -diff)).collect();
        times().all(|at| accumulate(&batches, &at) == naive(&all, at))
    }

    fn as_of(updates: Vec<Update>, a: u8, b: u8) -> bool {
        let (handle, all) = trace(&updates);
        let time = Pair::new(u64::from(a % 7), u64::from(b % 5));
        let view = AsOfTrace::new(handle.clone(), time);
        let (batches, upper) = view.batches();
        assert_eq!(upper, handle.batches().1);
        let all: Vec<_> = all.into_iter().map(|(data, t, diff)| (data, t.join(&time), diff)).collect();
        times().all(|at| accumulate(&batches, &at) == naive(&all, at))
    }

    fn a_list_goes_where_it_was(updates: Vec<Update>, seeks: Vec<u8>) -> bool {
        let (handle, _) = trace(&updates);
        let view = FilterTrace::new(handle, Arc::new(|key: u64, val: u64| !(key + val).is_multiple_of(3)));
        let (batches, _) = view.batches();
        let mut cursor = CursorList::new(batches.iter().map(Batch::cursor).collect());
        let mut at = vec![];
        while let Some(key) = cursor.key() {
            let mut vals = vec![];
            while let Some(val) = cursor.val() {
                vals.push(val);
                cursor.step_val();
            }
            at.push((cursor.position(), key, vals));
            cursor.step_key();
        }
        assert!(at.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
        seeks.iter().all(|seek| {
            let Some((position, key, vals)) = at.get(*seek as usize % (at.len() + 1)) else { return true };
            cursor.set_position(*position);
            let mut shown = vec![];
            while let Some(val) = cursor.val() {
                shown.push(val);
                cursor.step_val();
            }
            cursor.rewind_vals();
            let again = cursor.val() == shown.first().copied();
            cursor.key() == Some(*key) && shown == *vals && again && cursor.position() == *position
        })
    }

    fn cursors_resume(updates: Vec<Update>, order: Vec<u8>) -> bool {
        let (handle, _) = trace(&updates);
        let admits = Arc::new(|key: u64, val: u64| !(key + val).is_multiple_of(3) && val != key % 4);
        let (stored, filtered) = (handle.batches().0, FilterTrace::new(handle.clone(), admits).batches().0);
        let entered = EnterTrace::new(NegateTrace::new(AsOfTrace::new(handle, Pair::new(1, 2)))).batches().0;
        stored.iter().for_each(|batch| resumes(batch.cursor(), &order));
        filtered.iter().for_each(|batch| resumes(batch.cursor(), &order));
        entered.iter().for_each(|batch| resumes(batch.cursor(), &order));
        resumes(CursorList::new(stored.iter().map(Batch::cursor).collect()), &order);
        resumes(CursorList::new(filtered.iter().map(Batch::cursor).collect()), &order);
        true
    }

    fn a_list_seeks(updates: Vec<Update>, seeks: Vec<u8>) -> bool {
        let (handle, all) = trace(&updates);
        let (batches, _) = handle.batches();
        let stored = naive_keys(&batches);
        assert!(stored.iter().all(|k| all.iter().any(|u| u.0 == *k)));
        let mut seeks: Vec<u64> = seeks.iter().map(|s| u64::from(s % 9)).collect();
        seeks.sort_unstable();
        let mut cursor = CursorList::new(batches.iter().map(Batch::cursor).collect());
        seeks.iter().all(|seek| {
            cursor.seek_key(*seek);
            let key = stored.iter().map(|k| k.0).find(|k| k >= seek);
            let vals: Vec<_> = stored.iter().filter(|k| Some(k.0) == key).map(|k| k.1).collect();
            let sought = cursor.key() == key && cursor.val() == vals.first().copied();
            cursor.seek_val(2);
            sought && cursor.val() == vals.iter().copied().find(|v| *v >= 2)
        })
    }
}

/// Wherever a cursor stood, also past a key's last val, it shows again what it showed there, and its times in parts.
fn resumes<'a, C: Cursor<'a, Key = u64, Val = u64>>(mut cursor: C, order: &[u8]) {
    fn show<'a, C: Cursor<'a, Key = u64, Val = u64>>(
        cursor: &mut C,
    ) -> (Option<u64>, Vec<(u64, Vec<(C::Time, C::Diff)>)>) {
        let mut vals = vec![];
        while let Some(val) = cursor.val() {
            let (mut all, mut parts) = (vec![], vec![]);
            cursor.for_each_time(|time, diff| all.push((time, diff)));
            assert_eq!(cursor.time_count(), all.len());
            for start in (0..=all.len()).step_by(2) {
                cursor.for_each_time_in(start..start + 2, |time, diff| parts.push((time, diff)));
            }
            assert!(all == parts, "times in parts are the times");
            vals.push((val, all));
            cursor.step_val();
        }
        (cursor.key(), vals)
    }
    let mut stood = vec![];
    while cursor.key().is_some() {
        let mut steps = 0;
        loop {
            cursor.rewind_vals();
            (0..steps).for_each(|_| cursor.step_val());
            let (at, last) = ((cursor.position(), cursor.val_position()), cursor.val().is_none());
            stood.push((at, show(&mut cursor)));
            if last {
                break;
            }
            steps += 1;
        }
        cursor.step_key();
    }
    assert!(stood.is_sorted_by(|a, b| a.0 < b.0));
    for at in order.iter().map(|at| usize::from(*at)).filter(|_| !stood.is_empty()) {
        let ((position, val_position), shown) = &stood[at % stood.len()];
        cursor.resume(*position, *val_position);
        assert_eq!((cursor.position(), cursor.val_position()), (*position, *val_position));
        assert!(show(&mut cursor) == *shown, "at {position}, {val_position}");
    }
}

/// Each (key, val) in any of the batches, in order.
fn naive_keys(batches: &[B]) -> Vec<(u64, u64)> {
    let mut out = std::collections::BTreeSet::new();
    for batch in batches {
        let mut cursor = batch.cursor();
        while let Some(key) = cursor.key() {
            while let Some(val) = cursor.val() {
                out.insert((key, val));
                cursor.step_val();
            }
            cursor.step_key();
        }
    }
    out.into_iter().collect()
}

#[test]
fn registrations_pass_through_a_loop() {
    let (handle, _) = trace(&[]);
    let mut view = EnterTrace::new(handle.clone());
    let inner = view.inner().clone();
    let frontier = Antichain::from([Product::new(Pair::new(1, 2), 3), Product::new(Pair::new(2, 1), 0)]);
    view.set_since(&frontier);
    view.set_cut(&frontier);
    let expected = Antichain::from([Pair::new(1, 2), Pair::new(2, 1)]);
    assert_eq!((view.inner().since(), view.inner().cut()), (expected.clone(), expected));
    view.bind_since(Rc::new(|| Antichain::from_elem(Product::new(Pair::new(4, 4), 1))));
    assert_eq!(view.inner().since(), Antichain::from_elem(Pair::new(4, 4)));
    assert_eq!(inner.since(), handle.since(), "a clone keeps its own");
}
