//! Random piles of adjacent batches against lists of updates: built in each way there is, merged in slices with times
//! folded, read and sought. Shared by tests, fuzzing and the replay of saved inputs.
//!
//! ```text
//! Push, Run ─▶ pending ─ Seal ─▶ batch | batch | batch ─ Merge, at a since that grows ─▶ batch | batch
//! ```
//! Compared after each seal and merge: the updates of the batch, their times as `rep` at the since, summed in 128 bits.
//! That is all that a reader from the since on can tell. Seeks are compared with steps.
#![forbid(unsafe_code)]

use super::super::{
    Batch, Builder, Cursor, CursorList, Merge, MergeBatch, OrdBatch, batch_from_sorted, sort_and_consolidate, start,
};
use super::{Bytes, Time};
use crate::dataflow::Updates;
use crate::order::{Antichain, Pair, rep};
use kpg_columnar::Columnar;
use std::collections::BTreeMap;

/// Coordinates of times are below this.
const SIZE: u8 = 12;
/// Updates in all, so that a long input stays fast.
const MOST: usize = 3_000;

/// One step. Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Op {
    /// An update: key, val, time, diff.
    Push(u8, u8, u8, u8, u8),
    /// As many keys in a row, with one update each: first key, count, time.
    Run(u8, u8, u8, u8),
    /// Seals at a later frontier what is not beyond it; the last number chooses how the batch is built.
    Seal(u8, u8, u8),
    /// Moves the frontier at which merges fold.
    Since(u8, u8),
    /// Merges two neighbours, so much fuel at a time.
    Merge(u8, u8),
    /// Begins to, and gives up.
    Abandon(u8, u8),
    /// Seeks in a batch, or in all of them: a key, a val, another key.
    Seek(u8, u8, u8, u8),
}

fn decode(from: &mut Bytes<'_>) -> Op {
    let mut b = || from.byte();
    match b() % 16 {
        0..=4 => Op::Push(b(), b(), b(), b(), b()),
        5 | 6 => Op::Run(b(), b(), b(), b()),
        7..=9 => Op::Seal(b(), b(), b()),
        10 => Op::Since(b(), b()),
        11..=13 => Op::Merge(b(), b()),
        14 => Op::Abandon(b(), b()),
        _ => Op::Seek(b(), b(), b(), b()),
    }
}

/// What keys and vals are made of.
trait Datum: Columnar {
    fn make(number: u8) -> Self;
}
impl Datum for u64 {
    fn make(number: u8) -> u64 {
        u64::from(number)
    }
}
impl Datum for () {
    fn make(_: u8) {}
}
impl Datum for String {
    fn make(number: u8) -> String {
        // Some share their first eight bytes, and some are longer than a word.
        ["", "k", "long enough "][usize::from(number % 3)].to_string() + &number.to_string()
    }
}

type Update<K, V> = ((K, V), Time, i64);
type Contents<K, V> = BTreeMap<(K, V, Time), i128>;
type Built<K, V> = OrdBatch<K, V, Time, i64>;

struct Pile<K: Datum, V: Datum> {
    pending: Vec<Update<K, V>>,
    // Adjacent, and what is in each.
    batches: Vec<(Built<K, V>, Vec<Update<K, V>>)>,
    upper: Antichain<Time>,
    since: Antichain<Time>,
    count: usize,
    planted: bool,
}

/// Runs what `bytes` spell, whatever they are; the first chooses the types. A planted fault is for canaries: merges fold
/// further than the since, where that has two elements.
///
/// # Panics
/// If a batch differs from its model.
pub fn check_bytes(bytes: &[u8], planted: bool) {
    let Some((first, rest)) = bytes.split_first() else { return };
    match first % 3 {
        0 => check::<u64, u64>(rest, planted),
        1 => check::<String, ()>(rest, planted),
        _ => check::<u64, String>(rest, planted),
    }
}

fn check<K: Datum, V: Datum>(bytes: &[u8], planted: bool) {
    let (pending, batches) = (Vec::new(), Vec::new());
    let mut pile = Pile::<K, V> { pending, batches, upper: start(), since: start(), count: 0, planted };
    let mut from = Bytes(bytes);
    while !from.is_empty() {
        pile.step(&decode(&mut from));
    }
    // And at last, all in one.
    pile.seal(Antichain::new(), 0);
    while pile.batches.len() > 1 {
        pile.merge(0, 0);
    }
}

fn time(a: u8, b: u8) -> Time {
    Pair::new(u64::from(a % SIZE), u64::from(b % SIZE))
}

/// One element, or two where both numbers are odd.
fn frontier(a: u8, b: u8) -> Antichain<Time> {
    let Pair { first, second } = time(a / 2, b / 2);
    match (a % 2 == 1, b % 2 == 1) {
        (true, true) => [Pair::new(first, second + 2), Pair::new(first + 3, second)].into(),
        _ => Antichain::from_elem(Pair::new(first, second)),
    }
}

fn diff(code: u8) -> i64 {
    match code {
        0..=3 => i64::MAX,
        4..=7 => i64::MIN,
        code => [1, 1, 1, -1, -1, 2, -2, 5][usize::from(code % 8)],
    }
}

/// All updates of a cursor, as a reader from `since` on sees them.
fn contents<'a, K, V, C>(mut cursor: C, since: &Antichain<Time>) -> Contents<K, V>
where
    K: Columnar,
    V: Columnar,
    C: Cursor<'a, Key = K, Val = V, Time = Time, Diff = i64>,
{
    let mut out = Contents::new();
    while let Some(key) = cursor.key() {
        while let Some(val) = cursor.val() {
            cursor.for_each_time(|time, diff| {
                let seen = (K::to_owned(key), V::to_owned(val), rep(&time, since));
                *out.entry(seen).or_insert(0) += i128::from(diff);
            });
            cursor.step_val();
        }
        cursor.step_key();
    }
    out.retain(|_, sum| *sum != 0);
    out
}

/// Builds a batch in one of three ways.
fn build<K: Datum, V: Datum>(
    updates: &[Update<K, V>],
    lower: &Antichain<Time>,
    upper: &Antichain<Time>,
    how: u8,
) -> Built<K, V> {
    let mut columns = Updates::<(K, V), Time, i64>::default();
    updates.iter().for_each(|(data, time, diff)| columns.push(data.borrow(), *time, *diff));
    let sorted = sort_and_consolidate(columns);
    if how.is_multiple_of(3) {
        return batch_from_sorted(sorted, lower.clone(), upper.clone());
    }
    let mut builder = Builder::new();
    for (index, ((key, val), time, diff)) in sorted.iter().enumerate() {
        if how % 3 == 1 {
            builder.push(key, val, time, diff);
            continue;
        }
        builder.update(time, diff);
        let next = (index + 1 < sorted.len()).then(|| sorted.get(index + 1).0);
        if next.is_none_or(|next| next != (key, val)) {
            builder.val(val);
        }
        if next.is_none_or(|next| next.0 != key) {
            builder.key(key);
        }
    }
    assert_eq!(builder.len(), sorted.len());
    builder.finish(lower.clone(), upper.clone())
}

impl<K: Datum, V: Datum> Pile<K, V> {
    fn step(&mut self, op: &Op) {
        match *op {
            Op::Push(key, val, a, b, code) => self.push(key, val % 8, time(a, b), diff(code)),
            Op::Run(first, count, a, b) => {
                (first..first.saturating_add(count)).for_each(|key| self.push(key, key % 2, time(a, b), 1));
            }
            Op::Seal(a, b, how) => self.seal(self.upper.join(&frontier(a, b)), how),
            Op::Since(a, b) => self.since = self.since.join(&frontier(a, b)),
            Op::Merge(at, fuel) => self.merge(at, fuel),
            Op::Abandon(at, fuel) => {
                if self.batches.len() > 1 {
                    let at = usize::from(at) % (self.batches.len() - 1);
                    let mut merger =
                        Built::begin_merge(&[self.batches[at].0.clone(), self.batches[at + 1].0.clone()], &self.since);
                    merger.work(&mut isize::from(fuel));
                    drop(merger);
                    self.compare(at);
                    self.compare(at + 1);
                }
            }
            Op::Seek(at, key, val, other) => {
                let at = usize::from(at) % (self.batches.len() + 1);
                let targets = (K::make(key), V::make(val), K::make(other));
                match self.batches.get(at) {
                    Some((batch, _)) => seek(|| batch.cursor(), &targets),
                    None => seek(|| CursorList::new(self.batches.iter().map(|b| b.0.cursor()).collect()), &targets),
                }
            }
        }
    }

    fn push(&mut self, key: u8, val: u8, time: Time, diff: i64) {
        if self.upper.less_equal(&time) && self.count < MOST {
            self.count += 1;
            self.pending.push(((K::make(key), V::make(val)), time, diff));
        }
    }

    fn seal(&mut self, upper: Antichain<Time>, how: u8) {
        if upper == self.upper {
            return;
        }
        let (late, early): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|u| upper.less_equal(&u.1));
        self.pending = late;
        let batch = build(&early, &self.upper, &upper, how);
        batch.check_upper();
        self.batches.push((batch, early));
        self.upper = upper;
        self.compare(self.batches.len() - 1);
    }

    fn merge(&mut self, at: u8, fuel: u8) {
        if self.batches.len() < 2 {
            return;
        }
        let at = usize::from(at) % (self.batches.len() - 1);
        // Two at least, five at most.
        let count = (2 + usize::from(fuel / 64)).min(self.batches.len() - at);
        let fuel = if fuel == 0 { isize::MAX } else { isize::from(fuel % 64) + 1 };
        let mut since = self.since.clone();
        if self.planted && since.elements().len() > 1 {
            since = since.elements().iter().fold(start(), |all, f| all.join(&Antichain::from_elem(*f)));
        }
        let (inputs, updates): (Vec<_>, Vec<_>) = self.batches.drain(at..at + count).unzip();
        let mut merger = Built::begin_merge(&inputs, &since);
        let total: usize = inputs.iter().map(Built::len).sum();
        let mut rounds = 0;
        while !merger.is_done() {
            let before = merger.remaining();
            merger.work(&mut { fuel });
            assert!(merger.remaining() <= before, "work makes progress");
            rounds += 1;
            assert!(rounds <= 4 * total + 4 * count, "each call makes progress");
        }
        let merged = merger.finish();
        assert_eq!((merged.lower(), merged.upper()), (inputs[0].lower(), inputs[count - 1].upper()));
        if inputs.iter().filter(|batch| !batch.is_empty()).count() > 1 {
            let mut cursor = merged.cursor();
            while cursor.key().is_some() {
                while cursor.val().is_some() {
                    cursor.for_each_time(|time, _| assert_eq!(rep(&time, &since), time, "times are folded"));
                    cursor.step_val();
                }
                cursor.step_key();
            }
        }
        self.batches.insert(at, (merged, updates.concat()));
        self.compare(at);
    }

    fn compare(&self, at: usize) {
        let (batch, updates) = &self.batches[at];
        batch.check_invariants();
        let mut expected = Contents::new();
        for ((key, val), time, diff) in updates {
            let seen = (key.clone(), val.clone(), rep(time, &self.since));
            *expected.entry(seen).or_insert(0) += i128::from(*diff);
        }
        expected.retain(|_, sum| *sum != 0);
        assert_eq!(contents(batch.cursor(), &self.since), expected);
    }
}

/// Seeks against steps: key, val, a second key, and back to positions.
fn seek<'a, K, V, C>(make: impl Fn() -> C, (key, val, other): &(K, V, K))
where
    K: Columnar,
    V: Columnar,
    C: Cursor<'a, Key = K, Val = V>,
{
    let (mut all, mut cursor) = (Vec::<(K, Vec<V>)>::new(), make());
    while let Some(key) = cursor.key() {
        let mut vals = Vec::new();
        while let Some(val) = cursor.val() {
            vals.push(V::to_owned(val));
            cursor.step_val();
        }
        assert!(!vals.is_empty() && vals.is_sorted_by(|a, b| a < b), "vals ascend");
        all.push((K::to_owned(key), vals));
        cursor.step_key();
    }
    assert!(all.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
    assert!(cursor.val().is_none(), "past the last key there is no val");

    let mut cursor = make();
    let mut least = 0;
    for target in [key, other] {
        cursor.seek_key(target.borrow());
        least = least.max(all.partition_point(|(key, _)| key < target));
        assert_eq!(cursor.key().map(K::to_owned).as_ref(), all.get(least).map(|(key, _)| key));
        let position = cursor.position();
        let vals = all.get(least).map_or(&[][..], |(_, vals)| vals);
        assert_eq!(cursor.val().map(V::to_owned).as_ref(), vals.first());
        cursor.seek_val(val.borrow());
        assert_eq!(cursor.val().map(V::to_owned).as_ref(), vals.iter().find(|v| *v >= val));
        cursor.rewind_vals();
        assert_eq!(cursor.val().map(V::to_owned).as_ref(), vals.first());
        let mut again = make();
        again.set_position(position);
        assert_eq!(again.key().map(K::to_owned).as_ref(), all.get(least).map(|(key, _)| key));
        assert_eq!(again.val().map(V::to_owned).as_ref(), vals.first());
    }
}
