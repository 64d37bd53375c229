//! Reduce: for each key, a function of all its accumulated vals; output arranged, and shareable as any arrangement.
//!
//! ```text
//! batches taken ─┐
//! pending (key, time) ─┴▶ round: keys × interesting times, resumable ─▶ one output batch, up to the limit
//!                             keys without vals over totally ordered times: `reduce/counts`;
//!                             one new time over an older history: `reduce/direct`, at once; else `reduce/slices`
//! ```
//! The limit is the join of (the upper of the last batch taken) and (the frontier at the input): times not beyond it are
//! complete in the input trace. Invariants: the output batch seals to the limit; it holds capabilities at just the
//! minimal pending times, and while a round is open at those of the batches taken; both traces' since is the frontier at
//! its own output port; old output is read back, save where it is the function of one sum (`direct`, `counts`); a key that
//! is not done is the next again, with the cursors of new batches still at it. `reduce/key` has the per-key algorithm.
#![forbid(unsafe_code)]

mod counts;
mod direct;
mod history;
mod key;
mod slices;
mod sort;
mod times;
mod walk;

use self::counts::{Counts, Progress};
use self::direct::{Direct, Seeds, Spare};
use self::slices::{Slices, Sources};
use super::arrange::{ArrangedByKey, Writing};
use super::arranged::Arranged;
use crate::dataflow::{Fuel, InputPort, Interest, Node, Updates};
use crate::order::{Abelian, Antichain, Timestamp};
use crate::trace::{
    Batch, Cursor, Delivery, OrdBatch, Ref, Trace, TraceHandle, batch_from_sorted, sort_and_consolidate,
};
use kpg_columnar::{Column, Columnar};
use std::cell::OnceCell;
use std::collections::BTreeMap;

impl<'s, Tr: Trace> Arranged<'s, Tr> {
    /// For each key that has vals: the vals (ascending, with how many there are of each, none zero) go to `f`, which
    /// pushes what the output is to hold for the key. Called anew at each time at which the input of the key may
    /// differ, and for keys without vals also for what was there before; the change of the output is derived. `f` must give
    /// the same for the same input.
    ///
    /// A key without vals has no output, and `f` is not called. Diffs that overflow end the query with an error.
    pub fn reduce<V2: Columnar, R2: Abelian>(
        &self,
        f: impl for<'a> Fn(Ref<'a, Tr::Key>, &[(Ref<'a, Tr::Val>, Tr::Diff)], &mut Vec<(V2, R2)>) + 'static,
    ) -> ArrangedByKey<'s, Tr::Time, Tr::Key, V2, R2> {
        self.reduce_named("reduce", f)
    }

    /// As `reduce`, under a name that errors and metrics give.
    pub fn reduce_named<V2: Columnar, R2: Abelian>(
        &self,
        name: &str,
        f: impl for<'a> Fn(Ref<'a, Tr::Key>, &[(Ref<'a, Tr::Val>, Tr::Diff)], &mut Vec<(V2, R2)>) + 'static,
    ) -> ArrangedByKey<'s, Tr::Time, Tr::Key, V2, R2> {
        let mut builder = self.stream.scope.node(name);
        let input = builder.input(&self.stream);
        let (end, arranged) = Writing::new(&mut builder, None);
        let mut source = self.trace.clone();
        source.bind_since(end.output.frontier_source());
        let mut stored = arranged.trace.clone();
        stored.bind_since(end.output.frontier_source());
        stored.set_cut(&Antichain::new());
        let node = Reduce {
            input,
            source: Some(source),
            stored,
            end,
            acknowledged: None,
            pending: Pending { keys: BTreeMap::new() },
            round: None,
            spare: Spare::new(),
            counts: Counts::new(),
            key: Slices::new(),
            f,
        };
        builder.finish(Interest::Held, node);
        arranged
    }
}

/// Future work: keys by the time at which they are to be looked at. A key may stand at a time more than once.
struct Pending<K: Columnar, T> {
    keys: BTreeMap<T, K::Column>,
}

impl<K: Columnar, T: Timestamp> Pending<K, T> {
    fn insert(&mut self, key: Ref<'_, K>, time: T) {
        self.keys.entry(time).or_default().push(key);
    }
    fn frontier(&self) -> Antichain<T> {
        self.keys.keys().copied().collect()
    }
    /// Takes what is not beyond `limit`, sorted by (key, time).
    fn take_due(&mut self, limit: &Antichain<T>) -> Updates<K, T, i64> {
        let due: Vec<T> = self.keys.keys().filter(|t| !limit.less_equal(t)).copied().collect();
        let mut out = Updates::default();
        for time in due {
            let keys = self.keys.remove(&time).expect("just seen");
            for index in 0..keys.len() {
                out.push(keys.get(index), time, 1);
            }
        }
        sort_and_consolidate(out)
    }
}

/// Keys to look at, in order, and where we are among them.
struct Round<B: Batch> {
    /// The input before `fresh`.
    before: Vec<B>,
    /// Batches taken, whose times are new.
    fresh: Vec<B>,
    /// As long as keys can be looked at in groups, by the sums of what they have (`counts`).
    by_counts: bool,
    /// The time of all `fresh`, if they have but one.
    at: Option<B::Time>,
    due: Updates<B::Key, B::Time, i64>,
    due_next: usize,
    /// Position in each of `fresh`.
    positions: Vec<usize>,
    limit: Antichain<B::Time>,
}

struct Reduce<Tr: Trace, V2: Columnar, R2: Abelian, F> {
    input: InputPort<Tr::Time, Delivery<Tr::Batch>>,
    source: Option<Tr>,
    stored: TraceHandle<OrdBatch<Tr::Key, V2, Tr::Time, R2>>,
    end: Writing<Tr::Time, OrdBatch<Tr::Key, V2, Tr::Time, R2>>,
    acknowledged: Option<Antichain<Tr::Time>>,
    pending: Pending<Tr::Key, Tr::Time>,
    round: Option<(Round<Tr::Batch>, Updates<(Tr::Key, V2), Tr::Time, R2>)>,
    spare: Spare<Tr::Val, Tr::Diff, V2, R2>,
    counts: Counts<Tr::Key, Tr::Time, Tr::Diff, V2, R2>,
    key: Slices<Tr::Val, Tr::Time, Tr::Diff, V2, R2>,
    f: F,
}

/// The batches up to a bound that have updates.
fn full_batches<Tr: Trace>(source: &Tr, upper: &Antichain<Tr::Time>) -> Vec<Tr::Batch> {
    let batches = source.batches_through(upper).expect("a trace keeps the bounds that its readers' cuts ask for");
    batches.into_iter().filter(|batch| !batch.is_empty()).collect()
}

impl<Tr, V2, R2, F> Node for Reduce<Tr, V2, R2, F>
where
    Tr: Trace,
    V2: Columnar,
    R2: Abelian,
    F: for<'a> Fn(Ref<'a, Tr::Key>, &[(Ref<'a, Tr::Val>, Tr::Diff)], &mut Vec<(V2, R2)>),
{
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        if self.round.is_none() && !self.open_round() {
            return false;
        }
        let (mut round, mut output) = self.round.take().expect("a round is open");
        if !self.work(&mut round, &mut output, fuel) {
            self.round = Some((round, output));
            return true;
        }
        let moved = self.limit() != round.limit;
        self.close_round(round.limit, output);
        // What arrived meanwhile; and what became due while the round was open: nobody will tell of that again.
        moved || !self.input.is_empty()
    }
    fn output_moved(&mut self) {
        self.end.output_moved();
    }
    fn idle(&mut self) -> bool {
        self.end.idle()
    }
    fn is_read(&mut self) -> bool {
        self.end.is_published()
    }
}

impl<Tr, V2, R2, F> Reduce<Tr, V2, R2, F>
where
    Tr: Trace,
    V2: Columnar,
    R2: Abelian,
    F: for<'a> Fn(Ref<'a, Tr::Key>, &[(Ref<'a, Tr::Val>, Tr::Diff)], &mut Vec<(V2, R2)>),
{
    /// Takes all deliveries; true iff there are keys to look at.
    fn open_round(&mut self) -> bool {
        let mut fresh = Vec::new();
        let acknowledged = self.acknowledged.clone();
        while let Some((token, delivery)) = self.input.next() {
            self.end.output.retain(&token, &mut self.end.capabilities);
            if let Some(last) = delivery.batches.last() {
                self.acknowledged = Some(last.upper().clone());
            }
            fresh.extend(delivery.batches.iter().filter(|batch| !batch.is_empty()).cloned());
        }
        let limit = self.limit();
        let due = self.pending.take_due(&limit);
        if fresh.is_empty() && due.is_empty() {
            self.end.capabilities.must_downgrade(&self.pending.frontier());
            if self.input.frontier().is_empty() && self.pending.keys.is_empty() {
                self.source = None;
            }
            return false;
        }
        let source = self.source.as_mut().expect("kept while input or pending times may come");
        let before = acknowledged.map_or_else(Vec::new, |upper| full_batches(source, &upper));
        if let Some(upper) = &self.acknowledged {
            source.set_cut(upper);
        }
        let by_counts = const { Tr::Time::TOTAL && size_of::<Tr::Val>() == 0 } && due.is_empty();
        let at = fresh.first().and_then(Batch::only_time);
        let at = at.filter(|time| fresh.iter().all(|batch| batch.only_time() == Some(*time)));
        let positions = vec![0; fresh.len()];
        let round = Round { before, fresh, by_counts, at, due, due_next: 0, positions, limit };
        self.round = Some((round, Updates::default()));
        true
    }

    /// Times not beyond it are complete in what was taken.
    fn limit(&self) -> Antichain<Tr::Time> {
        let frontier = self.input.frontier();
        self.acknowledged.as_ref().map_or(frontier.clone(), |upper| upper.join(&frontier))
    }

    /// Looks at keys while there is fuel; true iff none is left.
    fn work(
        &mut self,
        round: &mut Round<Tr::Batch>,
        output: &mut Updates<(Tr::Key, V2), Tr::Time, R2>,
        fuel: &mut Fuel,
    ) -> bool {
        let Round { before, fresh, by_counts, at, due, due_next, positions, limit } = round;
        if *by_counts {
            let emit = |key: Ref<'_, Tr::Key>, val: &V2, time, diff| {
                output.push((Tr::Key::reborrow(key), val.borrow()), time, diff);
            };
            match self.counts.work((fresh, positions), before, limit, fuel, &self.f, emit) {
                Progress::Done => return true,
                Progress::Spent => return false,
                Progress::Other => *by_counts = false,
            }
        }
        // Keys without vals seldom need it.
        let stored = OnceCell::new();
        let open_stored = || -> Vec<_> {
            let batches = stored.get_or_init(|| self.stored.batches().0);
            batches.iter().filter(|batch| !batch.is_empty()).map(Batch::cursor).collect()
        };
        let mut had = None;
        let mut new: Vec<_> = fresh.iter().map(Batch::cursor).collect();
        for (cursor, position) in new.iter_mut().zip(positions.iter()) {
            cursor.set_position(*position);
        }
        let mut old: Vec<_> = before.iter().chain(fresh.iter()).map(Batch::cursor).collect();
        let mut direct = Direct::new(&mut self.spare);
        let done = loop {
            let next_due = (*due_next < due.len()).then(|| due.data.get(*due_next));
            let key = new.iter().filter_map(|c| c.key()).map(Tr::Key::reborrow).chain(next_due).min();
            let Some(key) = key else { break true };
            if fuel.is_spent() {
                break false;
            }
            let due_times = (*due_next..due.len()).take_while(|index| due.data.get(*index) == key);
            let due_times = due_times.map(|index| due.times.get(index));
            let mut emit = |val: Ref<'_, V2>, time, diff| {
                output.push((Tr::Key::reborrow(key), V2::reborrow(val)), time, diff);
            };
            let mut pend = |time| self.pending.insert(key, time);
            let f = &self.f;
            if !self.key.is_open() {
                let seeds = match *at {
                    Some(time) if due_times.clone().next().is_none() => {
                        fuel.spend(8);
                        Seeds::One(time)
                    }
                    _ => direct.seeds(&mut new, key, due_times.clone(), fuel),
                };
                let at_once = match seeds {
                    Seeds::One(time) if limit.less_equal(&time) => {
                        pend(time);
                        true
                    }
                    Seeds::One(time) => {
                        let f = |vals: &[_], should: &mut Vec<_>| f(key, vals, should);
                        if const { size_of::<Tr::Val>() == 0 } && due_times.clone().next().is_none() {
                            let before = &mut old[..before.len()];
                            direct.visit_sum(before, &mut new, (key, time), fuel, f, &mut emit)
                        } else {
                            let had = had.get_or_insert_with(open_stored);
                            direct.visit(&mut old, had, (key, time), fuel, f, &mut emit)
                        }
                    }
                    Seeds::Many => false,
                };
                if !at_once {
                    self.key.open(limit);
                }
            }
            if self.key.is_open() {
                let had = had.get_or_insert_with(open_stored);
                let sources = Sources { new: &mut new, old: &mut old, had, due: due_times };
                if !self.key.resume(sources, key, fuel, f, emit, pend) {
                    break false;
                }
            }
            for cursor in new.iter_mut().filter(|c| c.key().is_some_and(|k| Tr::Key::reborrow(k) == key)) {
                cursor.step_key();
            }
            while *due_next < due.len() && due.data.get(*due_next) == key {
                *due_next += 1;
            }
        };
        for (cursor, position) in new.iter().zip(positions.iter_mut()) {
            *position = cursor.position();
        }
        done
    }

    fn close_round(&mut self, limit: Antichain<Tr::Time>, output: Updates<(Tr::Key, V2), Tr::Time, R2>) {
        let output = sort_and_consolidate(output);
        if !output.is_empty() {
            let batch = batch_from_sorted(output, self.end.upper(), limit);
            self.end.write(batch);
        }
        self.end.capabilities.must_downgrade(&self.pending.frontier());
    }
}
