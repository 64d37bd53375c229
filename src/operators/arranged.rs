//! Arrangements: a stream of batches and the trace that accumulates them, shared by all who read.
//!
//! `filter`, `negate` and `enter` wrap the cursors and copy nothing. Streams of updates and arrangements are different
//! types; `as_collection` goes from one to the other.
#![forbid(unsafe_code)]

use super::collection::Collection;
use crate::dataflow::{CapabilitySet, Closure, Fuel, Interest, Scope, Stream, Updates};
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
    /// A node: it yields within a batch, and resumes there.
    pub fn flat_map_ref<D: Columnar, I: IntoIterator<Item = D>>(
        &self,
        f: impl Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> I + 'static,
    ) -> Collection<'s, Tr::Time, D, Tr::Diff> {
        let mut builder = self.stream.scope.node("flatten");
        let mut input = builder.input(&self.stream);
        let (mut output, stream) = builder.output();
        // Batches to flatten, each with its capabilities; the position is in the first.
        let mut queue: VecDeque<(Rc<CapabilitySet<Tr::Time>>, Tr::Batch)> = VecDeque::new();
        let mut position = 0;
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
                    let mut updates = Updates::default();
                    let mut cursor = batch.cursor();
                    cursor.set_position(position);
                    let mut yielded = false;
                    while let Some(key) = cursor.key() {
                        if fuel.is_spent() {
                            yielded = true;
                            break;
                        }
                        flatten_key::<Tr, D, I>(&mut cursor, key, &f, &mut updates, fuel);
                        cursor.step_key();
                    }
                    position = if yielded { cursor.position() } else { 0 };
                    if !updates.is_empty() {
                        output.send(&**capabilities, Rc::new(updates));
                    }
                    if yielded {
                        return true;
                    }
                    drop(cursor);
                    queue.pop_front();
                }
                false
            }),
        );
        Collection::new(stream)
    }
}

fn flatten_key<'a, Tr: Trace, D: Columnar, I: IntoIterator<Item = D>>(
    cursor: &mut <Tr::Batch as Batch>::Cursor<'a>,
    key: Ref<'a, Tr::Key>,
    f: &impl Fn(Ref<'_, Tr::Key>, Ref<'_, Tr::Val>) -> I,
    updates: &mut Updates<D, Tr::Time, Tr::Diff>,
    fuel: &mut Fuel,
) {
    while let Some(val) = cursor.val() {
        for datum in f(Tr::Key::reborrow(key), Tr::Val::reborrow(val)) {
            cursor.for_each_time(|time, diff| {
                updates.push(datum.borrow(), time, diff);
                fuel.spend(1);
            });
        }
        cursor.step_val();
    }
}
