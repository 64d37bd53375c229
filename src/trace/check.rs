//! Random lives of one trace against a list of all updates: shared by tests, fuzzing and the replay of saved inputs.
//! Built with the feature `check` only, which tests and fuzz targets ask for. Beside it: `batch`, the same for batches.
//!
//! After each operation every reader is checked: its accumulation at times beyond its since, its batches at its cut,
//! what is published, what snapshots taken earlier show.
#![forbid(unsafe_code)]

pub mod batch;

use super::{
    Batch, Batcher, Cursor, CursorList, Hold, MergePolicy, OrdBatch, Published, Snapshot, SnapshotError, Trace,
    TraceHandle, TraceWriter, batch_from_sorted,
};
use crate::dataflow::Updates;
use crate::order::{Antichain, Pair, PartialOrder, Timestamp};
use std::collections::BTreeMap;

/// The time of these lives.
pub type Time = Pair<u64, u64>;
/// The batches of these lives.
pub type OrdTestBatch = OrdBatch<u64, u64, Time, i64>;
type Model = Vec<((u64, u64), Time, i64)>;
type Sums = BTreeMap<(u64, u64), i64>;

/// One step of a life. Small numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub enum Op {
    /// Pushes updates: key, val, by how much each coordinate lies past the last seal, diff.
    Push(Vec<(u8, u8, u8, u8, i8)>),
    /// Seals at a frontier that is further by these amounts.
    Seal(u8, u8),
    /// Merges with that much fuel.
    Work(u8),
    /// Clones a reader.
    Clone(u8),
    /// Drops a reader, but never the last.
    Drop(u8),
    /// Moves a reader's since.
    Since(u8, u8, u8),
    /// Moves every reader's since up to a time that lies that far before the last seal.
    Catch(u8, u8),
    /// Binds a reader's since to its cut.
    Bind(u8),
    /// Moves a reader's cut to the trace's upper.
    Cut(u8),
    /// Publishes how far the output port has come.
    Advance,
    /// Takes a snapshot, and keeps it.
    Snapshot(u8, u8),
    /// Takes a hold, and keeps it.
    Hold(u8, u8),
    /// Releases a snapshot or hold.
    Release(u8),
}

/// Reads what a fuzzer gives; zeros after the end.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl Bytes<'_> {
    pub(super) fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Op {
    /// The life that `bytes` spell, whatever they are: a byte for the kind, one for each number.
    fn decode(bytes: &[u8]) -> Vec<Op> {
        let (mut from, mut ops) = (Bytes(bytes), Vec::new());
        while !from.is_empty() {
            ops.push(Op::decode_one(&mut from));
        }
        ops
    }

    fn decode_one(from: &mut Bytes<'_>) -> Op {
        let mut b = || from.byte();
        match b() % 24 {
            0..=4 => {
                let count = b() % 12;
                Op::Push((0..count).map(|_| (b(), b(), b(), b(), (b() % 5) as i8 - 2)).collect())
            }
            5..=8 => Op::Seal(b(), b()),
            9 => Op::Work(b()),
            10 => Op::Clone(b()),
            11 => Op::Drop(b()),
            12 => Op::Since(b(), b(), b()),
            13 => Op::Bind(b()),
            14 | 15 => Op::Cut(b()),
            16..=18 => Op::Advance,
            19 => Op::Snapshot(b(), b()),
            20 => Op::Hold(b(), b()),
            21 | 22 => Op::Catch(b(), b()),
            _ => Op::Release(b()),
        }
    }
}

struct Reader {
    handle: TraceHandle<OrdTestBatch>,
    // A cut that is a bound of the list, kept since.
    cut: Antichain<Time>,
}

struct Life {
    batcher: Batcher<(u64, u64), Time, i64>,
    writer: TraceWriter<OrdTestBatch>,
    published: Published<OrdTestBatch>,
    readers: Vec<Reader>,
    snapshots: Vec<(Snapshot<OrdTestBatch>, Sums)>,
    holds: Vec<(Hold<Time>, Antichain<Time>)>,
    sealed: Model,
    pending: Model,
    least: (u64, u64),
    // Loses what a canary says.
    planted: bool,
}

/// Lives the life that bytes tell: the first chooses how eagerly and how many at once are merged, the others are operations. A planted fault is
/// for canaries: a batch with two elements in its upper is sealed without its last update.
///
/// # Panics
/// If the trace differs from the model.
pub fn check_bytes(bytes: &[u8], planted: bool) {
    let (first, rest) = bytes.split_first().unwrap_or((&0, &[]));
    let policy = match first % 4 {
        0 | 1 => MergePolicy::lazy(),
        2 => MergePolicy::default(),
        _ => MergePolicy::eager(),
    };
    live(&Op::decode(rest), MergePolicy { fan_out: 2 + usize::from(first / 4 % 7), ..policy }, planted);
}

/// Lives the life that `ops` tell, lazily, with this fan-out.
///
/// # Panics
/// If the trace differs from the model.
pub fn check(ops: &[Op], fan_out: usize) {
    live(ops, MergePolicy { fan_out, ..MergePolicy::lazy() }, false);
}

fn live(ops: &[Op], policy: MergePolicy, planted: bool) {
    let (writer, handle) = TraceWriter::new(policy);
    let published = Published::new(1);
    let cut = super::start();
    let mut life = Life {
        batcher: Batcher::new(),
        writer,
        published,
        readers: vec![Reader { handle, cut }],
        snapshots: Vec::new(),
        holds: Vec::new(),
        sealed: Vec::new(),
        pending: Vec::new(),
        least: (0, 0),
        planted,
    };
    life.writer.publish(&life.published, 0);
    for op in ops {
        life.step(op);
        life.verify();
    }
}

fn sums(model: &Model, at: &Time, within: impl Fn(&Time) -> bool) -> Sums {
    let mut out = Sums::new();
    for (data, time, diff) in model {
        if time.less_equal(at) && within(time) {
            *out.entry(*data).or_insert(0) += diff;
        }
    }
    out.retain(|_, sum| *sum != 0);
    out
}

/// What `batches` accumulate to at `at`, by a merged cursor.
pub fn accumulate<B>(batches: &[B], at: &B::Time) -> BTreeMap<(u64, u64), i64>
where
    B: Batch<Key = u64, Val = u64, Diff = i64>,
{
    let mut cursor = CursorList::new(batches.iter().map(B::cursor).collect());
    let mut out = Sums::new();
    while let Some(key) = cursor.key() {
        while let Some(val) = cursor.val() {
            cursor.for_each_time(|time, diff| {
                if time.less_equal(at) {
                    *out.entry((key, val)).or_insert(0) += diff;
                }
            });
            cursor.step_val();
        }
        cursor.step_key();
    }
    out.retain(|_, sum| *sum != 0);
    out
}

impl Life {
    fn upper(&self) -> Antichain<Time> {
        self.writer.upper().clone()
    }
    fn times(&self) -> Vec<Time> {
        let (a, b) = self.least;
        let steps = |x: u64| [x.saturating_sub(2), x.saturating_sub(1), x, x + 1, x + 4];
        steps(a).into_iter().flat_map(|a| steps(b).map(|b| Pair::new(a, b))).collect()
    }

    fn step(&mut self, op: &Op) {
        let count = self.readers.len();
        let reader = |index: &u8| *index as usize % count;
        match op {
            Op::Push(updates) => self.push(updates),
            Op::Seal(a, b) => self.seal(u64::from(a % 4), u64::from(b % 4)),
            Op::Work(fuel) => {
                self.writer.work(&mut (*fuel as isize));
            }
            Op::Clone(index) if count < 5 => {
                let Reader { handle, cut } = &self.readers[reader(index)];
                self.readers.push(Reader { handle: handle.clone(), cut: cut.clone() });
            }
            Op::Drop(index) if count > 1 => drop(self.readers.swap_remove(reader(index))),
            Op::Since(index, a, b) => {
                let handle = &mut self.readers[reader(index)].handle;
                let step = |t: &Time| Pair::new(t.first + u64::from(a % 3), t.second + u64::from(b % 3));
                let since = handle.since().elements().iter().map(step).collect();
                handle.set_since(&since);
            }
            Op::Catch(a, b) => {
                let least = self.least;
                for Reader { handle, .. } in &mut self.readers {
                    let to =
                        Pair::new(least.0.saturating_sub(u64::from(a % 3)), least.1.saturating_sub(u64::from(b % 3)));
                    let since = handle.since().join(&Antichain::from_elem(to));
                    handle.set_since(&since);
                }
            }
            Op::Bind(index) => {
                let Reader { handle, cut } = &mut self.readers[reader(index)];
                let since = handle.since().join(cut);
                if !since.is_empty() {
                    handle.bind_since(std::rc::Rc::new(move || since.clone()));
                }
            }
            Op::Cut(index) => {
                let upper = self.upper();
                let Reader { handle, cut } = &mut self.readers[reader(index)];
                handle.set_cut(&upper);
                *cut = upper;
            }
            Op::Advance => {
                let upper = self.upper();
                self.writer.advance_upper(&upper);
            }
            Op::Snapshot(a, b) => self.snapshot(u64::from(a % 4), u64::from(b % 4)),
            Op::Hold(a, b) => {
                let since = Antichain::from_elem(Pair::new(
                    (self.least.0 + u64::from(a % 4)).saturating_sub(2),
                    (self.least.1 + u64::from(b % 4)).saturating_sub(2),
                ));
                match self.published.hold(&since) {
                    Ok(hold) => self.holds.push((hold, since)),
                    Err(SnapshotError::Compacted { since: committed }) => assert!(!committed.before_equal(&since)),
                    Err(error) => panic!("{error}"),
                }
            }
            Op::Release(index) => {
                let index = *index as usize % (self.snapshots.len() + self.holds.len() + 1);
                if index < self.snapshots.len() {
                    self.snapshots.swap_remove(index);
                } else if index - self.snapshots.len() < self.holds.len() {
                    self.holds.swap_remove(index - self.snapshots.len());
                }
            }
            Op::Clone(_) | Op::Drop(_) => {}
        }
    }

    fn push(&mut self, updates: &[(u8, u8, u8, u8, i8)]) {
        let upper = self.upper();
        let mut columns = Updates::default();
        for (key, val, a, b, diff) in updates {
            let data = (u64::from(key % 16), u64::from(val % 4));
            let time = Pair::new(self.least.0 + u64::from(a % 8), self.least.1 + u64::from(b % 8));
            if upper.less_equal(&time) && *diff != 0 {
                columns.push(data, time, i64::from(*diff));
                self.pending.push((data, time, i64::from(*diff)));
            }
        }
        self.batcher.push(columns);
    }

    fn seal(&mut self, a: u64, b: u64) {
        let Pair { first, second } = Pair::new(self.least.0 + a, self.least.1 + b);
        // Two elements where both moved: the frontier that keeps what is neither before one nor the other.
        let upper = match (a % 2 == 1, b % 2 == 1) {
            (true, true) => [Pair::new(first, self.least.1), Pair::new(self.least.0, second)].into(),
            _ => Antichain::from_elem(Pair::new(first, second)),
        };
        let upper = upper.join(&self.upper());
        if upper == self.upper() {
            return;
        }
        let lower = self.upper();
        let mut sealed = self.batcher.seal(&upper).unwrap_or_default();
        if self.planted && upper.elements().len() == 2 && sealed.len() > 2 {
            let mut fewer = Updates::default();
            fewer.extend_from(&sealed, 0, sealed.len() - 1);
            sealed = fewer;
        }
        let batch = batch_from_sorted(sealed, lower, upper.clone());
        batch.check_invariants();
        batch.check_upper();
        self.writer.insert(batch);
        let (late, early) = std::mem::take(&mut self.pending).into_iter().partition(|u| upper.less_equal(&u.1));
        self.pending = late;
        self.sealed.extend::<Model>(early);
        self.least = upper
            .elements()
            .iter()
            .map(|t| (t.first, t.second))
            .reduce(|x, y| (x.0.min(y.0), x.1.min(y.1)))
            .unwrap_or(self.least);
        self.check_frontier();
    }

    /// The batcher's frontier is that of what does not cancel.
    fn check_frontier(&mut self) {
        let mut sums = BTreeMap::new();
        self.pending.iter().for_each(|(data, time, diff)| *sums.entry((*data, *time)).or_insert(0i64) += diff);
        let expected = sums.iter().filter(|(_, sum)| **sum != 0).map(|((_, time), _)| *time).collect();
        assert_eq!(self.batcher.frontier(), expected);
    }

    fn snapshot(&mut self, a: u64, b: u64) {
        let time = Pair::new((self.least.0 + a).saturating_sub(2), (self.least.1 + b).saturating_sub(2));
        let complete = self.published.complete();
        let taken = if a == 3 { self.published.snapshot() } else { self.published.snapshot_at(&time) };
        match taken {
            Ok(snapshot) => {
                let at = *snapshot.time();
                assert!(!complete.less_equal(&at));
                let expected = sums(&self.sealed, &at, |t| !complete.less_equal(t));
                self.snapshots.push((snapshot, expected));
            }
            Err(SnapshotError::NotYet { .. }) => assert!(complete == super::start() || complete.less_equal(&time)),
            Err(SnapshotError::Compacted { since }) => assert!(!since.less_equal(&time)),
            Err(SnapshotError::Unpublished) => panic!("published"),
        }
    }

    fn verify(&self) {
        for Reader { handle, cut } in &self.readers {
            handle.check_invariants();
            let since = handle.since();
            let (batches, upper) = handle.batches();
            assert_eq!(upper, *self.writer.upper());
            let early = handle.batches_through(cut).expect("a cut is kept");
            let (late, _) = handle.batches_after(cut).expect("a cut is kept");
            assert_eq!(early.len() + late.len(), batches.len());
            for at in self.times().iter().filter(|t| since.less_equal(t)) {
                assert_eq!(accumulate(&batches, at), sums(&self.sealed, at, |_| true), "at {at:?}");
                assert_eq!(
                    accumulate(&early, at),
                    sums(&self.sealed, at, |t| !cut.less_equal(t)),
                    "cut {cut:?}, {at:?}"
                );
            }
        }
        for (snapshot, expected) in &self.snapshots {
            assert_eq!(snapshot.iter().map(|(k, v, r)| ((k, v), r)).collect::<Sums>(), *expected);
            for key in 0..16 {
                let got: Vec<_> = snapshot.get(&key).collect();
                let want: Vec<_> = expected.range((key, 0)..(key + 1, 0)).map(|((_, v), r)| (*v, *r)).collect();
                assert_eq!(got, want);
            }
        }
        for (_, since) in &self.holds {
            let complete = self.published.complete();
            for at in self.times().iter().filter(|t| since.less_equal(t) && !complete.less_equal(t)) {
                let snapshot = self.published.snapshot_at(at).expect("held");
                assert_eq!(
                    snapshot.iter().map(|(k, v, r)| ((k, v), r)).collect::<Sums>(),
                    sums(&self.sealed, at, |_| true)
                );
            }
        }
        let complete = self.published.complete();
        if complete != Antichain::from_elem(Time::minimum()) {
            self.published.snapshot().expect("the latest complete time stays readable");
        }
    }
}
