//! Arrangements: a stream of batches and the trace that accumulates them, shared by all who read.
//!
//! `filter`, `negate` and `enter` wrap the cursors and copy nothing. Streams of updates and arrangements are different
//! types; `as_collection` goes from one to the other.
#![forbid(unsafe_code)]

use super::collection::Collection;
use super::outbox::{CHUNK, Outbox};
use crate::dataflow::{CapabilitySet, Closure, Fuel, Interest, Scope, Stream};
use crate::order::{Abelian, Product, Timestamp};
use crate::progress::Summary;
use crate::trace::{
    Batch, Cursor, Delivery, EnterBatch, EnterTrace, FilterBatch, FilterTrace, NegateBatch, NegateTrace, Ref, Trace,
};
use kpg_columnar::Columnar;
use std::any::Any;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

/// An arranged collection: its batches as they are minted, and a reader of its trace.
pub struct Arranged<'s, Tr: Trace> {
    pub(crate) stream: Stream<'s, Tr::Time, Delivery<Tr::Batch>>,
    pub(crate) trace: Tr,
    /// The writer, where this is the arrangement itself and no view of one: what `publish` needs.
    pub(crate) own: Option<Rc<dyn Any>>,
}

impl<Tr: Trace> Clone for Arranged<'_, Tr> {
    fn clone(&self) -> Self {
        Arranged { stream: self.stream.clone(), trace: self.trace.clone(), own: self.own.clone() }
    }
}

fn wrap_all<B, B2>(delivery: Delivery<B>, wrap: impl Fn(&B) -> B2) -> Delivery<B2> {
    Delivery { batches: delivery.batches.iter().map(wrap).collect() }
}

impl<'s, Tr: Trace> Arranged<'s, Tr> {
    /// The same arrangement inside a loop. Copies nothing.
    pub fn enter(&self, inner: &Scope<'s, Product<Tr::Time, u32>>) -> Arranged<'s, EnterTrace<Tr>> {
        let summary = Summary::enter(Tr::Time::COORDINATES);
        let stream = self
            .stream
            .cross("enter", inner, summary, |delivery| wrap_all(delivery, |batch| EnterBatch::new(batch.clone())));
        Arranged { stream, trace: EnterTrace::new(self.trace.clone()), own: None }
    }

    /// Only the (key, val) for which `keep` holds, which is asked at each read. Copies nothing.
    pub fn filter<P>(&self, keep: P) -> Arranged<'s, FilterTrace<Tr, P>>
    where
        P: Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> bool + 'static,
    {
        let keep = Arc::new(keep);
        let trace = FilterTrace::new(self.trace.clone(), keep.clone());
        let stream = self.stream.stage("filter", move |stamp, delivery: Delivery<Tr::Batch>, outlet| {
            outlet.push(stamp, wrap_all(delivery, |batch| FilterBatch::new(batch.clone(), keep.clone())));
        });
        Arranged { stream, trace, own: None }
    }

    /// Every diff negated, at each read. Copies nothing.
    pub fn negate(&self) -> Arranged<'s, NegateTrace<Tr>>
    where
        Tr::Diff: Abelian,
    {
        let stream = self.stream.stage("negate", |stamp, delivery: Delivery<Tr::Batch>, outlet| {
            outlet.push(stamp, wrap_all(delivery, |batch| NegateBatch::new(batch.clone())));
        });
        Arranged { stream, trace: NegateTrace::new(self.trace.clone()), own: None }
    }

    /// The updates, each (key, val) as what `f` makes of it.
    pub fn as_collection<D: Columnar>(
        &self,
        f: impl Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> D + 'static,
    ) -> Collection<'s, Tr::Time, D, Tr::Diff> {
        self.flat_map_ref(move |key, val| Some(f(key, val)))
    }

    /// The updates, each (key, val) as all that `f` gives for it.
    ///
    /// A node: it yields within a batch, also within a val that has many times or many data, and resumes there.
    pub fn flat_map_ref<D: Columnar, I: IntoIterator<Item = D> + 'static>(
        &self,
        f: impl Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> I + 'static,
    ) -> Collection<'s, Tr::Time, D, Tr::Diff> {
        let mut builder = self.stream.scope.node("flatten");
        let mut input = builder.input(&self.stream);
        let (mut output, stream) = builder.output();
        // Batches to flatten, each with its capabilities; the place is in the first.
        let mut queue: VecDeque<(Rc<CapabilitySet<Tr::Time>>, Tr::Batch)> = VecDeque::new();
        let mut place = Place { position: (0, 0), data: None, datum: None };
        builder.finish(
            Interest::Held,
            Closure(move |fuel: &mut Fuel| {
                while let Some((token, delivery)) = input.next() {
                    let mut capabilities = CapabilitySet::new();
                    output.retain(&token, &mut capabilities);
                    let capabilities = Rc::new(capabilities);
                    queue.extend(delivery.batches.iter().map(|batch| (capabilities.clone(), batch.clone())));
                }
                while let Some((capabilities, batch)) = queue.front() {
                    let mut outbox = Outbox::new(capabilities, &mut output);
                    let done = flatten(batch, &mut place, &f, &mut outbox, fuel);
                    outbox.send();
                    if !done {
                        return true;
                    }
                    place.position = (0, 0);
                    queue.pop_front();
                }
                false
            }),
        );
        Collection::new(stream)
    }
}

/// How far a batch has been flattened.
struct Place<I: IntoIterator> {
    /// Of the next val; or of the one in hand, while there are `data` of it.
    position: (usize, usize),
    /// What is left of its data.
    data: Option<I::IntoIter>,
    /// The datum in hand, and how many times it has been given with.
    datum: Option<(I::Item, usize)>,
}

/// Flattens a batch from `place` on; true iff it is done, else the fuel is spent and `place` says where.
fn flatten<B: Batch, D: Columnar, I: IntoIterator<Item = D>>(
    batch: &B,
    place: &mut Place<I>,
    f: &impl Fn(Ref<'_, B::Key>, Ref<'_, B::Val>) -> I,
    outbox: &mut Outbox<'_, D, B::Time, B::Diff>,
    fuel: &mut Fuel,
) -> bool {
    let mut cursor = batch.cursor();
    cursor.resume(place.position.0, place.position.1);
    while let Some(key) = cursor.key() {
        while let Some(val) = cursor.val() {
            let new = || f(B::Key::reborrow(key), B::Val::reborrow(val)).into_iter();
            if fuel.is_spent() || !flatten_val::<B, I>(&mut cursor, place, new, outbox, fuel) {
                place.position = (cursor.position(), cursor.val_position());
                return false;
            }
            cursor.step_val();
        }
        cursor.step_key();
    }
    true
}

/// The data of one val, from `place` on, each with all times; true iff all have been given.
fn flatten_val<B: Batch, I: IntoIterator<Item: Columnar>>(
    cursor: &mut B::Cursor<'_>,
    place: &mut Place<I>,
    new: impl FnOnce() -> I::IntoIter,
    outbox: &mut Outbox<'_, I::Item, B::Time, B::Diff>,
    fuel: &mut Fuel,
) -> bool {
    let times = cursor.time_count();
    let mut data = place.data.take().unwrap_or_else(new);
    fuel.spend(1);
    while let Some((datum, from)) = place.datum.take().or_else(|| data.next().map(|datum| (datum, 0))) {
        let to = times.min(from + CHUNK);
        cursor.for_each_time_in(from..to, |time, diff| outbox.push(datum.borrow(), time, diff));
        place.datum = (to < times).then_some((datum, to));
        if !fuel.spend(1 + to - from) {
            place.data = Some(data);
            return false;
        }
    }
    true
}
