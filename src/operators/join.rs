//! Join: each pair of updates with one key meets exactly once, at the join of their times.
//!
//! ```text
//! batches of 1 ─▶ meet trace 2 up to acknowledged(2) ─┐
//!                                                      ├─▶ futures, oldest first, a quantum a step ─▶ updates
//! batches of 2 ─▶ meet trace 1 up to acknowledged(1) ─┘
//! ```
//! Invariants: whether a pair has met is decided by what was acknowledged when its later batch arrived, never by what a
//! compacted trace happens to contain; a future owns its batches and the capabilities at their stamps, and no handle;
//! trace 1's since is the frontier of input 2, its cut what was acknowledged of input 1; it is dropped when input 2 is
//! closed. Cost: seeks alternate, so work is linear in the smaller side and logarithmic in the larger, plus the output.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::Collection;
use super::history::Product;
use crate::dataflow::{CapabilitySet, Fuel, InputPort, Interest, Node, OutputPort, Updates};
use crate::order::{Antichain, Multiply, Semigroup, Timestamp};
use crate::trace::{Batch, Cursor, Delivery, Ref, Trace};
use kpg_columnar::Columnar;
use std::cmp::Ordering;
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;

/// Updates that a join gathers before it sends them on.
const CHUNK: usize = 1024;

impl<'s, Tr: Trace> Arranged<'s, Tr> {
    /// All pairs of a val here and a val there under the same key: for each, the data that `f` gives of key and vals,
    /// with the product of the diffs, at the join of the times.
    ///
    /// A product that does not fit its type ends the query with an error.
    pub fn join_core<Tr2, D, I, F>(
        &self,
        other: &Arranged<'s, Tr2>,
        f: F,
    ) -> Collection<'s, Tr::Time, D, <Tr::Diff as Multiply<Tr2::Diff>>::Output>
    where
        Tr2: Trace<Key = Tr::Key, Time = Tr::Time>,
        Tr::Diff: Multiply<Tr2::Diff>,
        D: Columnar,
        I: IntoIterator<Item = D> + 'static,
        F: Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>, Ref<'_, Tr2::Val>) -> I + 'static,
    {
        let scope = &self.stream.scope;
        let mut builder = scope.node("join");
        let port1 = builder.input(&self.stream);
        let port2 = builder.input(&other.stream);
        let (output, stream) = builder.output();
        let mut trace1 = self.trace.clone();
        let mut trace2 = other.trace.clone();
        trace1.bind_since(port2.frontier_source());
        trace2.bind_since(port1.frontier_source());
        let node = Join {
            port1,
            port2,
            output,
            side1: Side { trace: Some(trace1), acknowledged: None },
            side2: Side { trace: Some(trace2), acknowledged: None },
            todo1: VecDeque::new(),
            todo2: VecDeque::new(),
            worker: Work { product: Product::default(), updates: Updates::default(), f, marker: PhantomData },
        };
        builder.finish(Interest::Held, node);
        Collection::new(stream)
    }
}

struct Side<Tr: Trace> {
    trace: Option<Tr>,
    acknowledged: Option<Antichain<Tr::Time>>,
}

impl<Tr: Trace> Side<Tr> {
    fn acknowledge(&mut self, upper: &Antichain<Tr::Time>) {
        self.acknowledged = Some(upper.clone());
        if let Some(trace) = &mut self.trace {
            trace.set_cut(upper);
        }
    }
    /// What has been acknowledged of this side.
    fn acknowledged(&self) -> Vec<Tr::Batch> {
        match (&self.trace, &self.acknowledged) {
            (Some(trace), Some(upper)) => {
                trace.batches_through(upper).expect("a trace keeps the bounds that its readers' cuts ask for")
            }
            _ => Vec::new(),
        }
    }
}

/// Pairs of batches that are still to meet, in order; `position` is in the first batch of the first pair.
struct Future<B1, B2, T: Timestamp> {
    capabilities: CapabilitySet<T>,
    pairs: VecDeque<(B1, B2)>,
    position: (usize, usize),
    vals_done: usize,
}

type Port<Tr> = InputPort<<Tr as Trace>::Time, Delivery<<Tr as Trace>::Batch>>;
type Todo<Tr1, Tr2> = VecDeque<Future<<Tr1 as Trace>::Batch, <Tr2 as Trace>::Batch, <Tr1 as Trace>::Time>>;

struct Join<Tr1: Trace, Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>, D: Columnar, I, F, R: Semigroup> {
    port1: Port<Tr1>,
    port2: Port<Tr2>,
    output: OutputPort<Tr1::Time, Rc<Updates<D, Tr1::Time, R>>>,
    side1: Side<Tr1>,
    side2: Side<Tr2>,
    // Both hold pairs (batch of 1, batch of 2); apart, so that neither input's work starves the other's.
    todo1: Todo<Tr1, Tr2>,
    todo2: Todo<Tr1, Tr2>,
    worker: Work<Tr1, Tr2, D, I, F, R>,
}

impl<Tr1, Tr2, D, I, F, R> Node for Join<Tr1, Tr2, D, I, F, R>
where
    Tr1: Trace,
    Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>,
    Tr1::Diff: Multiply<Tr2::Diff, Output = R>,
    D: Columnar,
    R: Semigroup,
    I: IntoIterator<Item = D>,
    F: Fn(Ref<'_, Tr1::Key>, Ref<'_, Tr1::Val>, Ref<'_, Tr2::Val>) -> I,
{
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        self.take();
        loop {
            let Some(todo) = [&mut self.todo1, &mut self.todo2].into_iter().find(|todo| !todo.is_empty()) else {
                return false;
            };
            if fuel.is_spent() {
                // The other input's turn next time, if it has work.
                std::mem::swap(&mut self.todo1, &mut self.todo2);
                return true;
            }
            let future = todo.front_mut().expect("chosen because it is not empty");
            let done = self.worker.run(future, &mut self.output, fuel);
            self.worker.flush(&future.capabilities, &mut self.output);
            if done {
                todo.pop_front();
            }
        }
    }
}

impl<Tr1, Tr2, D, I, F, R> Join<Tr1, Tr2, D, I, F, R>
where
    Tr1: Trace,
    Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>,
    D: Columnar,
    R: Semigroup,
{
    /// Takes all deliveries: each meets what the other side has acknowledged, then is acknowledged itself.
    fn take(&mut self) {
        while let Some((token, delivery)) = self.port1.next() {
            let others = self.side2.acknowledged();
            let pairs: VecDeque<_> =
                delivery.batches.iter().flat_map(|b1| others.iter().map(move |b2| (b1.clone(), b2.clone()))).collect();
            if let Some(future) = future(pairs, |set| self.output.retain(&token, set)) {
                self.todo1.push_back(future);
            }
            if let Some(last) = delivery.batches.last() {
                self.side1.acknowledge(last.upper());
            }
        }
        while let Some((token, delivery)) = self.port2.next() {
            let others = self.side1.acknowledged();
            let pairs: VecDeque<_> =
                delivery.batches.iter().flat_map(|b2| others.iter().map(move |b1| (b1.clone(), b2.clone()))).collect();
            if let Some(future) = future(pairs, |set| self.output.retain(&token, set)) {
                self.todo2.push_back(future);
            }
            if let Some(last) = delivery.batches.last() {
                self.side2.acknowledge(last.upper());
            }
        }
        if self.side1.trace.is_some() && self.port2.frontier().is_empty() {
            self.side1.trace = None;
        }
        if self.side2.trace.is_some() && self.port1.frontier().is_empty() {
            self.side2.trace = None;
        }
    }
}

fn future<B1: Batch, B2: Batch, T: Timestamp>(
    pairs: VecDeque<(B1, B2)>,
    retain: impl FnOnce(&mut CapabilitySet<T>),
) -> Option<Future<B1, B2, T>> {
    let pairs: VecDeque<_> = pairs.into_iter().filter(|(b1, b2)| !b1.is_empty() && !b2.is_empty()).collect();
    if pairs.is_empty() {
        return None;
    }
    let mut capabilities = CapabilitySet::new();
    retain(&mut capabilities);
    Some(Future { capabilities, pairs, position: (0, 0), vals_done: 0 })
}

struct Work<Tr1: Trace, Tr2: Trace, D: Columnar, I, F, R: Semigroup> {
    product: Product<Tr1::Time, Tr1::Diff, Tr2::Diff, R>,
    updates: Updates<D, Tr1::Time, R>,
    f: F,
    marker: PhantomData<fn() -> I>,
}

impl<Tr1, Tr2, D, I, F, R> Work<Tr1, Tr2, D, I, F, R>
where
    Tr1: Trace,
    Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>,
    Tr1::Diff: Multiply<Tr2::Diff, Output = R>,
    D: Columnar,
    R: Semigroup,
    I: IntoIterator<Item = D>,
    F: Fn(Ref<'_, Tr1::Key>, Ref<'_, Tr1::Val>, Ref<'_, Tr2::Val>) -> I,
{
    /// Works on a future; true iff it is done. What it made may still wait in `updates`.
    fn run(
        &mut self,
        future: &mut Future<Tr1::Batch, Tr2::Batch, Tr1::Time>,
        output: &mut OutputPort<Tr1::Time, Rc<Updates<D, Tr1::Time, R>>>,
        fuel: &mut Fuel,
    ) -> bool {
        while let Some((b1, b2)) = future.pairs.front().cloned() {
            let mut c1 = b1.cursor();
            let mut c2 = b2.cursor();
            c1.set_position(future.position.0);
            c2.set_position(future.position.1);
            while let (Some(k1), Some(k2)) = (c1.key(), c2.key()) {
                let order = Tr1::Key::reborrow(k1).cmp(&Tr1::Key::reborrow(k2));
                match order {
                    Ordering::Less => c1.seek_key(k2),
                    Ordering::Greater => c2.seek_key(k1),
                    Ordering::Equal => {
                        let done = self.key(&mut c1, &mut c2, k1, &mut future.vals_done, fuel);
                        if self.updates.len() >= CHUNK {
                            self.flush(&future.capabilities, output);
                        }
                        if done {
                            c1.step_key();
                            c2.step_key();
                            future.vals_done = 0;
                        }
                    }
                }
                if !fuel.spend(1) {
                    future.position = (c1.position(), c2.position());
                    return false;
                }
            }
            future.pairs.pop_front();
            future.position = (0, 0);
        }
        true
    }

    /// Joins the vals of one key from the `vals_done`-th of the first side on; true iff all are done.
    fn key<'a, 'b>(
        &mut self,
        c1: &mut <Tr1::Batch as Batch>::Cursor<'a>,
        c2: &mut <Tr2::Batch as Batch>::Cursor<'b>,
        key: Ref<'a, Tr1::Key>,
        vals_done: &mut usize,
        fuel: &mut Fuel,
    ) -> bool {
        for _ in 0..*vals_done {
            c1.step_val();
        }
        while let Some(v1) = c1.val() {
            c2.rewind_vals();
            while let Some(v2) = c2.val() {
                let product = &mut self.product;
                product.first.clear();
                product.second.clear();
                c1.for_each_time(|t, r| product.first.push((t, r)));
                c2.for_each_time(|t, r| product.second.push((t, r)));
                product.multiply();
                fuel.spend(product.first.len() + product.second.len());
                if !product.output.is_empty() {
                    let data = (self.f)(Tr1::Key::reborrow(key), Tr1::Val::reborrow(v1), Tr2::Val::reborrow(v2));
                    for datum in data {
                        for (time, diff) in &product.output {
                            self.updates.push(datum.borrow(), *time, *diff);
                        }
                    }
                }
                c2.step_val();
            }
            c1.step_val();
            *vals_done += 1;
            if fuel.is_spent() && c1.val().is_some() {
                return false;
            }
        }
        true
    }

    fn flush(
        &mut self,
        capabilities: &CapabilitySet<Tr1::Time>,
        output: &mut OutputPort<Tr1::Time, Rc<Updates<D, Tr1::Time, R>>>,
    ) {
        if !self.updates.is_empty() {
            output.send(capabilities, Rc::new(std::mem::take(&mut self.updates)));
        }
    }
}
