//! Operators as a user would write them, by ports, notifications and cursors, each as good as one that the engine has.
//!
//! ```text
//! notified    waits until a time is complete, then passes on what came at it        ≡ consolidate
//! difference  two inputs of updates: the first less the second                      ≡ concat of the first and the negated second
//! join        two arrangements: each batch meets what was acknowledged of the other ≡ join_core
//! ```

use super::program::{D, JoinFn};
use kpg::dataflow::{CapabilitySet, Interest};
use kpg::operators::{ArrangedByKey, Notificator};
use kpg::order::Lattice;
use kpg::prelude::*;
use kpg::trace::{Batch, Cursor, CursorList};
use std::collections::BTreeMap;

type Bag<'s, T> = Collection<'s, T, D>;
type Arr<'s, T> = ArrangedByKey<'s, T, u32, u32, i64>;

/// The updates of each time once that is complete.
pub fn notified<'s, T: Timestamp>(of: &Bag<'s, T>) -> Bag<'s, T> {
    let mut notificator = Notificator::default();
    let mut pending: BTreeMap<T, Vec<(D, i64)>> = BTreeMap::new();
    of.unary("notified", move |input, output, _fuel| {
        while let Some((token, chunk)) = input.next() {
            let mut held = CapabilitySet::new();
            output.retain(&token, &mut held);
            for (datum, time, diff) in chunk.iter() {
                let waiting = pending.entry(time).or_default();
                if waiting.is_empty() {
                    notificator.notify_at(held.delayed(&time).expect("an update's time is beyond its message's"));
                }
                waiting.push((datum, diff));
            }
        }
        while let Some(capability) = notificator.next(&input.frontier()) {
            let time = *capability.time();
            let mut session = output.session(&capability);
            pending.remove(&time).into_iter().flatten().for_each(|(datum, diff)| session.give(datum, time, diff));
        }
        false
    })
}

/// The first less the second.
pub fn difference<'s, T: Timestamp>(first: &Bag<'s, T>, second: &Bag<'s, T>) -> Bag<'s, T> {
    first.binary(second, "difference", |first, second, output, _fuel| {
        for (input, factor) in [(first, 1), (second, -1)] {
            while let Some((token, chunk)) = input.next() {
                let mut session = output.session(&token);
                chunk.iter().for_each(|(datum, time, diff)| session.give(datum, time, factor * diff));
            }
        }
        false
    })
}

/// What `f` makes of each pair of vals of a key.
pub fn join<'s, T: Timestamp>(left: &Arr<'s, T>, right: &Arr<'s, T>, f: JoinFn) -> Bag<'s, T> {
    let mut builder = left.scope().operator("own join").interest(Interest::Always);
    let mut ports = [builder.input_arranged(left), builder.input_arranged(right)];
    let (mut output, joined) = builder.output();
    let mut traces = [left.trace().clone(), right.trace().clone()];
    let mut acknowledged: [Option<Antichain<T>>; 2] = [None, None];
    builder.build(move |_fuel| {
        for side in 0..2 {
            while let Some((token, delivery)) = ports[side].next() {
                let through = acknowledged[1 - side].as_ref();
                let others = through.map_or_else(Vec::new, |upper| {
                    traces[1 - side].batches_through(upper).expect("the cut keeps what was acknowledged")
                });
                let mut session = output.session(&token);
                for batch in delivery.batches.iter() {
                    meet(batch, &others, |key, val, other, time, diff| {
                        let datum = if side == 0 { f.apply(key, val, other) } else { f.apply(key, other, val) };
                        datum.into_iter().for_each(|datum| session.give(datum, time, diff));
                    });
                }
                let upper = delivery.batches.last().expect("a delivery brings batches").upper();
                traces[side].set_cut(upper);
                acknowledged[side] = Some(upper.clone());
            }
        }
        for side in 0..2 {
            // It is read at times that may still come on the other side.
            traces[side].set_since(&ports[1 - side].frontier());
        }
        false
    });
    joined
}

/// Each pair of updates with the same key, of a batch and of others.
fn meet<B>(batch: &B, others: &[B], mut give: impl FnMut(u32, u32, u32, B::Time, i64))
where
    B: Batch<Key = u32, Val = u32, Diff = i64>,
{
    let mut cursor = batch.cursor();
    while let Some(key) = cursor.key() {
        let mut other = CursorList::new(others.iter().map(Batch::cursor).collect());
        other.seek_key(key);
        while let (true, Some(theirs)) = (other.key() == Some(key), other.val()) {
            cursor.rewind_vals();
            while let Some(val) = cursor.val() {
                let mut times = Vec::new();
                cursor.for_each_time(|time, diff| times.push((time, diff)));
                other.for_each_time(|t, r| times.iter().for_each(|(u, s)| give(key, val, theirs, t.join(u), r * s)));
                cursor.step_val();
            }
            other.step_val();
        }
        cursor.step_key();
    }
}
