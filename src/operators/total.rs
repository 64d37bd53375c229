//! Functions of counts over totally ordered times: no stored output, no pending times.
//!
//! Where times are totally ordered, batches of a key come in the order of their times, so the count before a batch is the
//! sum of all that was acknowledged before it, and each of its times changes the count once. The change of the output
//! follows from the two counts; the output need not be read back. Cost: a seek in each stored batch for each new key.
//!
//! Invariant: each batch meets exactly what was acknowledged before it, which its future owns; a view may hold times
//! beyond its upper, unsorted, so the times of a key are sorted and summed first.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::{Chunk, Collection};
use crate::dataflow::{CapabilitySet, Fuel, InputPort, Interest, Node, OutputPort, Updates};
use crate::order::{Abelian, Antichain, DiffOverflow, Semigroup};
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
        use crate::order::Timestamp;
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
            let mut updates = Updates::default();
            let done = run::<Tr, D, R2, F>(future, &self.f, &mut updates, fuel);
            if !updates.is_empty() {
                self.output.send(&*future.capabilities, Rc::new(updates));
            }
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

fn run<Tr: Trace<Val = ()>, D: Columnar, R2: Abelian, F>(
    future: &mut Future<Tr::Batch>,
    f: &F,
    updates: &mut Updates<D, Tr::Time, R2>,
    fuel: &mut Fuel,
) -> bool
where
    F: Fn(Ref<'_, Tr::Key>, Tr::Diff) -> Option<(D, R2)>,
{
    let mut fresh = future.fresh.cursor();
    fresh.set_position(future.position);
    let mut stored: Vec<_> = future.before.iter().map(Batch::cursor).collect();
    let mut times = Vec::new();
    while let Some(key) = fresh.key() {
        // Asked before it is spent: a key that costs more than a quantum is done all the same.
        if fuel.is_spent() {
            future.position = fresh.position();
            return false;
        }
        fuel.spend(1 + stored.len());
        let mut sum = <Tr::Diff as Semigroup>::Sum::default();
        for cursor in &mut stored {
            cursor.seek_key(key);
            if cursor.key().is_some_and(|k| Tr::Key::reborrow(k) == Tr::Key::reborrow(key)) {
                cursor.for_each_time(|_, diff| diff.add_to(&mut sum));
            }
        }
        times.clear();
        fresh.for_each_time(|time, diff| times.push((time, diff)));
        consolidate_times(&mut times);
        let mut before = value(&sum, key, f);
        for (time, diff) in &times {
            diff.add_to(&mut sum);
            let after = value(&sum, key, f);
            if before != after {
                if let Some((datum, diff)) = &before {
                    let diff = diff.negate().unwrap_or_else(|| DiffOverflow::raise());
                    updates.push(datum.borrow(), *time, diff);
                }
                if let Some((datum, diff)) = &after {
                    updates.push(datum.borrow(), *time, *diff);
                }
                before = after;
            }
        }
        fresh.step_key();
    }
    true
}

/// What `f` makes of a count, unless it is none.
fn value<K: Copy, R: Semigroup, D, R2>(sum: &R::Sum, key: K, f: impl Fn(K, R) -> Option<(D, R2)>) -> Option<(D, R2)> {
    if R::sum_is_zero(sum) {
        return None;
    }
    f(key, R::from_sum(*sum).unwrap_or_else(|| DiffOverflow::raise()))
}
