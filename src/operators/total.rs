//! Functions of counts over totally ordered times: no stored output, no pending times.
//!
//! Where times are totally ordered, batches of a key come in the order of their times, so the count before a batch is the
//! sum of all that was acknowledged before it, and each of its times changes the count once. The change of the output
//! follows from the two counts; the output need not be read back. Cost: a seek in each stored batch for each new key, which
//! are looked up in groups, so that one need not wait for another's memory. It yields between groups, and inside a key
//! that has many times; only to sort its new ones is one piece.
//!
//! Invariant: each batch meets exactly what was acknowledged before it, which its future owns; a view may hold times
//! beyond its upper, unsorted, so the times of a key are sorted and summed first.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::{Chunk, Collection};
use super::outbox::{CHUNK, Outbox};
use crate::dataflow::{CapabilitySet, Fuel, InputPort, Interest, Node, OutputPort};
use crate::order::{Abelian, Antichain, DiffOverflow, Semigroup, Timestamp};
use crate::trace::{Batch, Cursor, Delivery, Ref, Trace, consolidate_times};
use kpg_columnar::Columnar;
use std::collections::VecDeque;
use std::rc::Rc;

impl<'s, Tr: Trace<Val = ()>> Arranged<'s, Tr> {
    /// For each key and each change of its count, what `f` makes of the count, taken away for the count before and added
    /// for the count after. For totally ordered times.
    pub(crate) fn map_counts<D: Columnar, R2: Abelian>(
        &self,
        name: &str,
        f: impl Fn(Ref<'_, Tr::Key>, Tr::Diff) -> Option<(D, R2)> + 'static,
    ) -> Collection<'s, Tr::Time, D, R2> {
        assert!(Tr::Time::TOTAL, "counts follow one another only where times are totally ordered");
        let mut builder = self.stream.scope.node(name);
        let input = builder.input(&self.stream);
        let (output, stream) = builder.output();
        let mut trace = self.trace.clone();
        // All that is stored is summed, whatever its time: any folding will do that the input's frontier allows.
        trace.bind_since(input.frontier_source());
        let node = Counts { input, output, trace: Some(trace), acknowledged: None, todo: VecDeque::new(), f };
        builder.finish(Interest::Held, node);
        Collection::new(stream)
    }
}

/// A batch to go through, and what was acknowledged before it.
struct Future<B: Batch> {
    capabilities: Rc<CapabilitySet<B::Time>>,
    fresh: B,
    before: Rc<[B]>,
    position: usize,
    /// The key at `position`, once it is begun.
    key: Option<KeyCounts<B>>,
}

/// How far one key has come: its stored updates are summed first, batch by batch; then its new ones are read, and
/// replayed in order of time.
struct KeyCounts<B: Batch> {
    sum: <B::Diff as Semigroup>::Sum,
    /// The stored batch to be summed, and how many of its times have been.
    batch: usize,
    summed: usize,
    /// The new times, sorted and summed once all are read, and how many of them are in `sum`.
    times: Vec<(B::Time, B::Diff)>,
    read: bool,
    replayed: usize,
}

impl<B: Batch> Default for KeyCounts<B> {
    fn default() -> Self {
        KeyCounts { sum: Default::default(), batch: 0, summed: 0, times: Vec::new(), read: false, replayed: 0 }
    }
}

struct Counts<Tr: Trace, D: Columnar, R2: Semigroup, F> {
    input: InputPort<Tr::Time, Delivery<Tr::Batch>>,
    output: OutputPort<Tr::Time, Chunk<D, Tr::Time, R2>>,
    trace: Option<Tr>,
    acknowledged: Option<Antichain<Tr::Time>>,
    todo: VecDeque<Future<Tr::Batch>>,
    f: F,
}

impl<Tr: Trace<Val = ()>, D: Columnar, R2: Abelian, F> Node for Counts<Tr, D, R2, F>
where
    F: Fn(Ref<'_, Tr::Key>, Tr::Diff) -> Option<(D, R2)>,
{
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        self.take();
        while let Some(future) = self.todo.front_mut() {
            let capabilities = future.capabilities.clone();
            let mut outbox = Outbox::new(&capabilities, &mut self.output);
            let done = run(future, &self.f, &mut outbox, fuel);
            outbox.send();
            if !done {
                return true;
            }
            self.todo.pop_front();
        }
        false
    }
}

impl<Tr: Trace, D: Columnar, R2: Semigroup, F> Counts<Tr, D, R2, F> {
    fn take(&mut self) {
        while let Some((token, delivery)) = self.input.next() {
            let Some(trace) = &mut self.trace else { continue };
            let mut before = match &self.acknowledged {
                Some(upper) => {
                    trace.batches_through(upper).expect("a trace keeps the bounds that its readers' cuts ask for")
                }
                None => Vec::new(),
            };
            before.retain(|batch| !batch.is_empty());
            let mut capabilities = CapabilitySet::new();
            self.output.retain(&token, &mut capabilities);
            let capabilities = Rc::new(capabilities);
            for fresh in delivery.batches.iter().filter(|batch| !batch.is_empty()) {
                let (capabilities, fresh) = (capabilities.clone(), fresh.clone());
                self.todo.push_back(Future {
                    capabilities,
                    fresh: fresh.clone(),
                    before: before.clone().into(),
                    position: 0,
                    key: None,
                });
                before.push(fresh);
            }
            if let Some(last) = delivery.batches.last() {
                trace.set_cut(last.upper());
                self.acknowledged = Some(last.upper().clone());
            }
        }
        if self.trace.is_some() && self.input.frontier().is_empty() {
            self.trace = None;
        }
    }
}

/// Keys that are looked up together: enough to keep memory busy, few enough to stay within a quantum.
const GROUP: usize = 256;

/// Goes through keys from where a batch stopped, in groups, until there are none, the fuel is spent, or a key has so many times
/// that it must be gone through in slices.
fn run_groups<B: Batch<Val = ()>, D: Columnar, R2: Abelian>(
    future: &mut Future<B>,
    f: &impl Fn(Ref<'_, B::Key>, B::Diff) -> Option<(D, R2)>,
    outbox: &mut Outbox<'_, D, B::Time, R2>,
    fuel: &mut Fuel,
) {
    let fresh_batch = future.fresh.clone();
    let mut fresh = fresh_batch.cursor();
    fresh.set_position(future.position);
    let mut keys = Vec::with_capacity(GROUP);
    let mut times = Vec::new();
    let mut sums = Vec::with_capacity(GROUP);
    while !fuel.is_spent() && fresh.key().is_some() {
        keys.clear();
        let most = GROUP.min(1 + fuel.0.max(0) as usize / (3 + future.before.len()));
        while let Some(key) = fresh.key()
            && keys.len() < most
            && fresh.time_count() <= CHUNK
        {
            keys.push(key);
            fresh.step_key();
        }
        sums.clear();
        sums.resize(keys.len(), <B::Diff as Semigroup>::Sum::default());
        if keys.is_empty() || !future.before.iter().all(|batch| batch.sum_keys(&keys, CHUNK, &mut sums)) {
            return;
        }
        fuel.spend(keys.len() * future.before.len());
        fresh.set_position(future.position);
        for (key, sum) in keys.iter().zip(&sums) {
            times.clear();
            fresh.for_each_time(|time, diff| times.push((time, diff)));
            consolidate_times(&mut times);
            fuel.spend(1 + 2 * times.len());
            replay(sum, &times, |count| f(B::Key::reborrow(*key), count), outbox);
            fresh.step_key();
        }
        future.position = fresh.position();
    }
}

/// Goes through a batch from where it stopped; true iff it is done, else the fuel is spent.
fn run<B: Batch<Val = ()>, D: Columnar, R2: Abelian>(
    future: &mut Future<B>,
    f: &impl Fn(Ref<'_, B::Key>, B::Diff) -> Option<(D, R2)>,
    outbox: &mut Outbox<'_, D, B::Time, R2>,
    fuel: &mut Fuel,
) -> bool {
    if future.key.is_none() {
        run_groups(future, f, outbox, fuel);
    }
    let mut fresh = future.fresh.cursor();
    fresh.set_position(future.position);
    let mut stored: Vec<_> = future.before.iter().map(Batch::cursor).collect();
    // A key's buffer, reused by the next.
    let mut times = Vec::new();
    while let Some(key) = fresh.key() {
        if fuel.is_spent() {
            future.position = fresh.position();
            return false;
        }
        let mut counts = future.key.take().unwrap_or_else(|| KeyCounts { times, ..KeyCounts::default() });
        let done = counts.sum_stored(&mut stored, key, fuel)
            && counts.read(&mut fresh, fuel)
            && counts.replay(|count| f(B::Key::reborrow(key), count), outbox, fuel);
        if done {
            times = counts.times;
            times.clear();
            fresh.step_key();
        } else {
            times = Vec::new();
            future.key = Some(counts);
        }
    }
    true
}

/// Each goes on from where it stopped; true iff it is done, else the fuel is spent.
impl<B: Batch<Val = ()>> KeyCounts<B> {
    fn sum_stored(&mut self, stored: &mut [B::Cursor<'_>], key: Ref<'_, B::Key>, fuel: &mut Fuel) -> bool {
        while let Some(cursor) = stored.get_mut(self.batch) {
            if fuel.is_spent() {
                return false;
            }
            fuel.spend(1);
            cursor.seek_key(key);
            if cursor.key().is_some_and(|k| B::Key::reborrow(k) == B::Key::reborrow(key)) {
                let sum = &mut self.sum;
                self.summed += in_parts(cursor, self.summed, fuel, |_, diff| diff.add_to(sum));
                if self.summed < cursor.time_count() {
                    return false;
                }
            }
            (self.batch, self.summed) = (self.batch + 1, 0);
        }
        true
    }

    fn read(&mut self, fresh: &mut B::Cursor<'_>, fuel: &mut Fuel) -> bool {
        if self.read {
            return true;
        }
        fuel.spend(1);
        let times = &mut self.times;
        in_parts(fresh, times.len(), fuel, |time, diff| times.push((time, diff)));
        if self.times.len() < fresh.time_count() {
            return false;
        }
        consolidate_times(&mut self.times);
        self.read = true;
        true
    }

    fn replay<D: Columnar, R2: Abelian>(
        &mut self,
        f: impl Fn(B::Diff) -> Option<(D, R2)>,
        outbox: &mut Outbox<'_, D, B::Time, R2>,
        fuel: &mut Fuel,
    ) -> bool {
        while self.replayed < self.times.len() {
            let part = self.replayed..self.times.len().min(self.replayed + CHUNK);
            let left = fuel.spend(2 * part.len());
            self.replayed = part.end;
            self.sum = replay(&self.sum, &self.times[part], &f, outbox);
            if !left && self.replayed < self.times.len() {
                return false;
            }
        }
        true
    }
}

/// Gives the changes of the output as a count goes from `sum` through `times`; the sum in the end.
fn replay<T: Timestamp, R: Semigroup, D: Columnar, R2: Abelian>(
    sum: &R::Sum,
    times: &[(T, R)],
    f: impl Fn(R) -> Option<(D, R2)>,
    outbox: &mut Outbox<'_, D, T, R2>,
) -> R::Sum {
    let mut sum = *sum;
    let mut before = value(&sum, &f);
    for (time, diff) in times {
        diff.add_to(&mut sum);
        let after = value(&sum, &f);
        if before != after {
            if let Some((datum, diff)) = &before {
                let diff = diff.negate().unwrap_or_else(|| DiffOverflow::raise());
                outbox.push(datum.borrow(), *time, diff);
            }
            if let Some((datum, diff)) = &after {
                outbox.push(datum.borrow(), *time, *diff);
            }
            before = after;
        }
    }
    sum
}

/// Shows times from the `from`-th on, a chunk at a time, until there are no more or the fuel is spent; how many.
fn in_parts<'a, C: Cursor<'a>>(
    cursor: &mut C,
    from: usize,
    fuel: &mut Fuel,
    mut f: impl FnMut(C::Time, C::Diff),
) -> usize {
    let all = cursor.time_count();
    let mut at = from;
    while at < all {
        let to = all.min(at + CHUNK);
        cursor.for_each_time_in(at..to, &mut f);
        let left = fuel.spend(to - at);
        at = to;
        if !left {
            break;
        }
    }
    at - from
}

/// What `f` makes of a count, unless it is none.
fn value<R: Semigroup, D, R2>(sum: &R::Sum, f: impl Fn(R) -> Option<(D, R2)>) -> Option<(D, R2)> {
    if R::sum_is_zero(sum) {
        return None;
    }
    f(R::from_sum(*sum).unwrap_or_else(|| DiffOverflow::raise()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Builder, OrdBatch};

    const TIMES: usize = 50_000;
    const FUEL: usize = 100;
    /// What a slice may do: times are seen a chunk at a time.
    const SLICE: usize = FUEL + CHUNK;

    type Stored = OrdBatch<u64, (), u64, i64>;

    /// Key 7, once more at each time from `lower` on.
    fn batch(lower: u64, times: usize) -> Stored {
        let mut builder = Builder::new();
        (0..times as u64).for_each(|time| builder.update(lower + time, 1));
        builder.val(());
        builder.key(7);
        builder.finish(Antichain::from_elem(lower), Antichain::from_elem(lower + times as u64))
    }

    /// Calls `part` with a little fuel until it is done: how often, and how much all of them spent.
    fn in_slices(mut part: impl FnMut(&mut Fuel) -> bool) -> (usize, usize) {
        let (mut slices, mut spent) = (0, 0);
        loop {
            let mut fuel = Fuel(FUEL as isize);
            let done = part(&mut fuel);
            let cost = (FUEL as isize - fuel.0) as usize;
            assert!(cost <= SLICE + 10, "a slice cost {cost}");
            (slices, spent) = (slices + 1, spent + cost);
            if done {
                return (slices, spent);
            }
        }
    }

    /// What is stored is summed in slices, each update once, with new cursors in each; no batch is looked at again.
    #[test]
    fn what_is_stored_is_summed_in_slices() {
        let stored = [batch(0, TIMES), batch(TIMES as u64, 10), batch(TIMES as u64 + 10, TIMES)];
        let mut counts = KeyCounts::<Stored>::default();
        let (slices, spent) = in_slices(|fuel| {
            let before = counts.sum;
            let mut cursors: Vec<_> = stored.iter().map(Batch::cursor).collect();
            let done = counts.sum_stored(&mut cursors, 7, fuel);
            assert!(counts.sum - before <= SLICE as i128, "{} updates in one slice", counts.sum - before);
            done
        });
        let all = 2 * TIMES + 10;
        assert_eq!(counts.sum, all as i128);
        assert!(slices >= all / SLICE, "{slices} slices");
        assert!(spent <= all + slices + stored.len(), "{slices} slices cost {spent}");
    }

    /// New times are read in slices, each once.
    #[test]
    fn what_is_new_is_read_in_slices() {
        let fresh = batch(0, TIMES);
        let mut counts = KeyCounts::<Stored>::default();
        let (slices, spent) = in_slices(|fuel| {
            let before = counts.times.len();
            let done = counts.read(&mut fresh.cursor(), fuel);
            assert!(counts.times.len() - before <= SLICE, "{} times in one slice", counts.times.len() - before);
            done
        });
        assert_eq!(counts.times, (0..TIMES as u64).map(|time| (time, 1)).collect::<Vec<_>>());
        assert!(slices >= TIMES / SLICE, "{slices} slices");
        assert!(spent <= TIMES + slices, "{slices} slices cost {spent}");
    }
}
