//! Batch, trace and spine are layers behind traits: here the batch is replaced by rows in a vector, and the spine, the
//! handles, the views, the arrangement, the join and the reduce go on as they are.
#![forbid(unsafe_code)]

use kpg::dataflow::Updates;
use kpg::order::{Antichain, PartialOrder, rep};
use kpg::prelude::*;
use kpg::trace::{Batch, Cursor, CursorList, Merge, MergeBatch, SealBatch, TraceWriter};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

type Row = (u64, u64, u64, i64);

/// A batch that is a sorted vector of rows.
#[derive(Clone)]
struct Rows {
    rows: Arc<Vec<Row>>,
    bounds: Arc<[Antichain<u64>; 2]>,
}

impl Rows {
    fn new(mut rows: Vec<Row>, lower: Antichain<u64>, upper: Antichain<u64>) -> Self {
        rows.sort();
        let mut sums: Vec<Row> = Vec::new();
        for row in rows {
            match sums.last_mut() {
                Some(last) if (last.0, last.1, last.2) == (row.0, row.1, row.2) => last.3 += row.3,
                _ => sums.push(row),
            }
        }
        sums.retain(|row| row.3 != 0);
        Rows { rows: Arc::new(sums), bounds: Arc::new([lower, upper]) }
    }
}

struct RowsCursor<'a> {
    rows: &'a [Row],
    at: usize,
    key_start: usize,
}

impl RowsCursor<'_> {
    fn key_end(&self) -> usize {
        let key = self.rows[self.key_start].0;
        self.key_start + self.rows[self.key_start..].iter().take_while(|row| row.0 == key).count()
    }
}

impl<'a> Cursor<'a> for RowsCursor<'a> {
    type Key = u64;
    type Val = u64;
    type Time = u64;
    type Diff = i64;
    fn key(&self) -> Option<u64> {
        self.rows.get(self.key_start).map(|row| row.0)
    }
    fn val(&self) -> Option<u64> {
        let key = self.key()?;
        self.rows.get(self.at).filter(|row| row.0 == key).map(|row| row.1)
    }
    fn step_key(&mut self) {
        self.key_start = self.key_end();
        self.at = self.key_start;
    }
    fn seek_key(&mut self, key: u64) {
        while self.key().is_some_and(|at| at < key) {
            self.step_key();
        }
        self.rewind_vals();
    }
    fn step_val(&mut self) {
        let (key, val) = (self.rows[self.at].0, self.rows[self.at].1);
        while self.rows.get(self.at).is_some_and(|row| (row.0, row.1) == (key, val)) {
            self.at += 1;
        }
    }
    fn seek_val(&mut self, val: u64) {
        while self.val().is_some_and(|at| at < val) {
            self.step_val();
        }
    }
    fn rewind_vals(&mut self) {
        self.at = self.key_start;
    }
    fn time_count(&self) -> usize {
        let (key, val) = (self.key(), self.val());
        self.rows[self.at..].iter().take_while(|row| Some(row.0) == key && Some(row.1) == val).count()
    }
    fn for_each_time_in(&mut self, range: Range<usize>, mut f: impl FnMut(u64, i64)) {
        let times = &self.rows[self.at..self.at + self.time_count()];
        for row in &times[range.start.min(times.len())..range.end.min(times.len())] {
            f(row.2, row.3);
        }
    }
    fn position(&self) -> usize {
        self.key_start
    }
    fn val_position(&self) -> usize {
        self.at - self.key_start
    }
    fn resume(&mut self, position: usize, val_position: usize) {
        (self.key_start, self.at) = (position, position + val_position);
    }
}

impl Batch for Rows {
    type Key = u64;
    type Val = u64;
    type Time = u64;
    type Diff = i64;
    type Cursor<'a> = RowsCursor<'a>;
    fn cursor(&self) -> RowsCursor<'_> {
        RowsCursor { rows: &self.rows, at: 0, key_start: 0 }
    }
    fn len(&self) -> usize {
        self.rows.len()
    }
    fn lower(&self) -> &Antichain<u64> {
        &self.bounds[0]
    }
    fn upper(&self) -> &Antichain<u64> {
        &self.bounds[1]
    }
}

/// Merges all at once, once there is fuel.
struct AtOnce {
    rows: Vec<Row>,
    bounds: [Antichain<u64>; 2],
    done: bool,
}

impl Merge<Rows> for AtOnce {
    fn work(&mut self, fuel: &mut isize) {
        *fuel -= self.rows.len() as isize + 1;
        self.done = true;
    }
    fn is_done(&self) -> bool {
        self.done
    }
    fn remaining(&self) -> usize {
        if self.done { 0 } else { self.rows.len() }
    }
    fn finish(self) -> Rows {
        let [lower, upper] = self.bounds;
        Rows::new(self.rows, lower, upper)
    }
}

impl MergeBatch for Rows {
    type Merger = AtOnce;
    fn begin_merge(inputs: &[Self], since: &Antichain<u64>) -> AtOnce {
        let all = inputs.iter().flat_map(|batch| batch.rows.iter());
        let rows = all.map(|row| (row.0, row.1, rep(&row.2, since), row.3)).collect();
        let bounds = [inputs[0].lower().clone(), inputs[inputs.len() - 1].upper().clone()];
        AtOnce { rows, bounds, done: false }
    }
    fn empty(lower: Antichain<u64>, upper: Antichain<u64>) -> Self {
        Rows::new(Vec::new(), lower, upper)
    }
    fn bytes(&self) -> usize {
        self.rows.len() * size_of::<Row>()
    }
}

impl SealBatch for Rows {
    fn seal(updates: Updates<(u64, u64), u64, i64>, lower: Antichain<u64>, upper: Antichain<u64>) -> Self {
        Rows::new(updates.iter().map(|((k, v), t, r)| (k, v, t, r)).collect(), lower, upper)
    }
}

/// The spine keeps another kind of batch short, and accumulates as it should.
#[test]
fn the_spine_merges_rows() {
    let (mut writer, mut trace) = TraceWriter::<Rows>::new(MergePolicy::eager());
    for time in 0..200u64 {
        let bounds = (Antichain::from_elem(time), Antichain::from_elem(time + 1));
        writer.insert(Rows::new(vec![(time % 5, time % 3, time, 1)], bounds.0, bounds.1.clone()));
        trace.set_cut(&bounds.1);
        trace.set_since(&Antichain::from_elem(time));
    }
    let (batches, _) = trace.batches();
    assert!(batches.len() < 20, "{} batches", batches.len());
    let mut cursor = CursorList::new(batches.iter().map(Batch::cursor).collect());
    let mut count = 0;
    while cursor.key().is_some() {
        while cursor.val().is_some() {
            cursor.for_each_time(|time, diff| {
                assert!(time.less_equal(&199));
                count += diff;
            });
            cursor.step_val();
        }
        cursor.step_key();
    }
    assert_eq!(count, 200);
}

/// Arrangement, publication, import, join and reduce over another kind of batch.
#[test]
fn operators_read_rows() {
    let soon = Duration::from_secs(20);
    let engine = Engine::start(Config::default().workers(2).pinned(false)).unwrap();
    let (_, (mut input, published)) = engine
        .install("rows", |scope| {
            let (input, pairs) = scope.input::<(u64, u64)>();
            (input, pairs.arrange_as::<Rows>("rows", None).publish())
        })
        .unwrap();
    for i in 0..100 {
        input.insert((i % 10, i)).unwrap();
    }
    input.advance_to(1).unwrap();
    let (_, (mut keys, mut joined, mut greatest)) = engine
        .install("readers", |scope| {
            let rows = published.import(scope);
            let (input, keys) = scope.input::<u64>();
            let joined = rows.join_core(&keys.arrange_by_self(), |key, val, ()| Some((key, val)));
            let greatest = rows.reduce(|_, vals, out| out.push((vals[vals.len() - 1].0, 1i64)));
            (input, joined.subscribe(), greatest.as_collection(|key, val| (key, val)).subscribe())
        })
        .unwrap();
    keys.insert(3).unwrap();
    keys.advance_to(2).unwrap();
    input.remove((3, 93)).unwrap();
    input.advance_to(2).unwrap();
    let mut got = std::collections::BTreeMap::new();
    for (pair, _, diff) in joined.wait_past(&1, soon).unwrap() {
        *got.entry(pair).or_insert(0) += diff;
    }
    got.retain(|_, diff| *diff != 0);
    let expected: Vec<_> = (0..9).map(|i| ((3, 3 + 10 * i), 1)).collect();
    assert_eq!(got.into_iter().collect::<Vec<_>>(), expected);
    let mut best = std::collections::BTreeMap::new();
    for (pair, _, diff) in greatest.wait_past(&1, soon).unwrap() {
        *best.entry(pair).or_insert(0) += diff;
    }
    best.retain(|_, diff| *diff != 0);
    let expected: Vec<_> = (0..10).map(|k| ((k, if k == 3 { 83 } else { 90 + k }), 1)).collect();
    assert_eq!(best.into_iter().collect::<Vec<_>>(), expected);
    assert_eq!(published.snapshot_at(&1).unwrap().get(&3).count(), 9);
}
