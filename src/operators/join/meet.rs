//! The work of a join: pairs of batches meet, key by key, val by val, product by product.
//!
//! ```text
//! futures ─▶ pairs of batches ─▶ keys of both ─▶ vals 1 × vals 2 ─▶ products of two histories × data that `f` gives
//! ```
//! It stops wherever its quantum ends: inside a key, also between vals of the second side, and inside a pair of vals that
//! makes many products or data. Invariant: the position names the next pair of vals that has not been begun, or, while
//! one is `begun`, that one, whose products and data the lane keeps. To come back there costs no pass over what was done.
//! Cost: seeks alternate, so work is linear in the smaller side and logarithmic in the larger, plus the output.
#![forbid(unsafe_code)]

use super::history::{self, Product};
use crate::dataflow::{CapabilitySet, Fuel};
use crate::operators::outbox::{CHUNK, Outbox};
use crate::order::{Lattice, Multiply, Semigroup};
use crate::trace::{Batch, Cursor, Ref};
use kpg_columnar::Columnar;
use std::cmp::Ordering;
use std::collections::VecDeque;

/// Pairs of batches that are still to meet, in order, and the right to send what they make.
pub(super) struct Future<B1: Batch, B2> {
    pub(super) capabilities: CapabilitySet<B1::Time>,
    pub(super) pairs: VecDeque<(B1, B2)>,
}

/// The futures of one input's batches, and how far the first pair of the first has come.
pub(super) struct Lane<B1: Batch, B2: Batch, R, I: IntoIterator> {
    pub(super) futures: VecDeque<Future<B1, B2>>,
    /// Key and val positions in the first batch and in the second.
    position: [(usize, usize); 2],
    meeting: Meeting<B1, B2, R, I>,
}

/// A pair of vals that meet.
struct Meeting<B1: Batch, B2: Batch, R, I: IntoIterator> {
    begun: bool,
    product: Product<B1::Time, B1::Diff, B2::Diff, R>,
    /// What is left of the data of the products that are ready: at most `CHUNK` of them, so that data × products is too.
    data: Option<I::IntoIter>,
}

impl<B1: Batch, B2: Batch, R, I: IntoIterator> Lane<B1, B2, R, I> {
    pub(super) fn new() -> Self {
        let meeting = Meeting { begun: false, product: Product::default(), data: None };
        Lane { futures: VecDeque::new(), position: [(0, 0); 2], meeting }
    }
}

impl<B1, B2, R, I> Lane<B1, B2, R, I>
where
    B1: Batch,
    B2: Batch<Key = B1::Key, Time = B1::Time>,
    B1::Diff: Multiply<B2::Diff, Output = R>,
    R: Semigroup,
    I: IntoIterator<Item: Columnar>,
{
    /// Works on the oldest future until it is done or the fuel is spent.
    pub(super) fn run<F>(&mut self, f: &F, output: &mut super::Output<I::Item, B1::Time, R>, fuel: &mut Fuel)
    where
        F: Fn(Ref<'_, B1::Key>, Ref<'_, B1::Val>, Ref<'_, B2::Val>) -> I,
    {
        let Some(future) = self.futures.front_mut() else { return };
        let mut outbox = Outbox::new(&future.capabilities, output);
        while let Some((b1, b2)) = future.pairs.front() {
            if !keys(b1, b2, &mut self.position, &mut self.meeting, f, &mut outbox, fuel) {
                return outbox.send();
            }
            self.position = [(0, 0); 2];
            future.pairs.pop_front();
        }
        outbox.send();
        self.futures.pop_front();
    }
}

/// Two batches meet, from `position` on; true iff they are done, else the fuel is spent and `position` says where.
fn keys<B1, B2, R, I, F>(
    b1: &B1,
    b2: &B2,
    position: &mut [(usize, usize); 2],
    meeting: &mut Meeting<B1, B2, R, I>,
    f: &F,
    outbox: &mut Outbox<'_, I::Item, B1::Time, R>,
    fuel: &mut Fuel,
) -> bool
where
    B1: Batch,
    B2: Batch<Key = B1::Key, Time = B1::Time>,
    B1::Diff: Multiply<B2::Diff, Output = R>,
    R: Semigroup,
    I: IntoIterator<Item: Columnar>,
    F: Fn(Ref<'_, B1::Key>, Ref<'_, B1::Val>, Ref<'_, B2::Val>) -> I,
{
    let (mut c1, mut c2) = (b1.cursor(), b2.cursor());
    c1.resume(position[0].0, position[0].1);
    c2.resume(position[1].0, position[1].1);
    while let (Some(k1), Some(k2)) = (c1.key(), c2.key()) {
        let order = B1::Key::reborrow(k1).cmp(&B1::Key::reborrow(k2));
        match order {
            Ordering::Less => c1.seek_key(k2),
            Ordering::Greater => c2.seek_key(k1),
            Ordering::Equal => {
                let f = |v1: Ref<'_, B1::Val>, v2: Ref<'_, B2::Val>| f(B1::Key::reborrow(k1), v1, v2);
                if meeting.vals(&mut c1, &mut c2, &f, outbox, fuel) {
                    c1.step_key();
                    c2.step_key();
                }
            }
        }
        if !fuel.spend(1) {
            *position = [(c1.position(), c1.val_position()), (c2.position(), c2.val_position())];
            return false;
        }
    }
    true
}

impl<B1, B2, R, I> Meeting<B1, B2, R, I>
where
    B1: Batch,
    B2: Batch<Key = B1::Key, Time = B1::Time>,
    B1::Diff: Multiply<B2::Diff, Output = R>,
    R: Semigroup,
    I: IntoIterator<Item: Columnar>,
{
    /// The vals of one key meet: the first side's current one those of the second from the current one on, each later
    /// one all. True iff they are done, else the fuel is spent and the cursors stay where to go on.
    fn vals<'a, 'b, F>(
        &mut self,
        c1: &mut B1::Cursor<'a>,
        c2: &mut B2::Cursor<'b>,
        f: &F,
        outbox: &mut Outbox<'_, I::Item, B1::Time, R>,
        fuel: &mut Fuel,
    ) -> bool
    where
        F: Fn(Ref<'_, B1::Val>, Ref<'_, B2::Val>) -> I,
    {
        while let Some(v1) = c1.val() {
            let only1 = only(c1);
            while let Some(v2) = c2.val() {
                if fuel.is_spent() {
                    return false;
                }
                let f = || f(B1::Val::reborrow(v1), B2::Val::reborrow(v2));
                let done = match only1.and_then(|one| Some((one, only(c2)?))) {
                    Some(((t1, r1), (t2, r2))) if !self.begun => {
                        self.one(t1.join(&t2), history::product(r1, r2), f, outbox, fuel)
                    }
                    _ => self.many(c1, c2, f, outbox, fuel),
                };
                if !done {
                    return false;
                }
                c2.step_val();
            }
            c1.step_val();
            c2.rewind_vals();
        }
        true
    }

    /// Vals that have one update each: there is one product, and no history to replay.
    #[inline]
    fn one(
        &mut self,
        time: B1::Time,
        diff: R,
        f: impl Fn() -> I,
        outbox: &mut Outbox<'_, I::Item, B1::Time, R>,
        fuel: &mut Fuel,
    ) -> bool {
        fuel.spend(1);
        let mut data = f().into_iter();
        while let Some(datum) = data.next() {
            outbox.push(datum.borrow(), time, diff);
            if !fuel.spend(1) {
                self.begun = true;
                self.product.start_with(time, diff);
                self.data = Some(data);
                return false;
            }
        }
        true
    }

    /// Any two vals, from where they stopped.
    fn many<'a, 'b>(
        &mut self,
        c1: &mut B1::Cursor<'a>,
        c2: &mut B2::Cursor<'b>,
        f: impl Fn() -> I,
        outbox: &mut Outbox<'_, I::Item, B1::Time, R>,
        fuel: &mut Fuel,
    ) -> bool {
        let product = &mut self.product;
        if !self.begun {
            product.first.clear();
            product.second.clear();
            c1.for_each_time(|t, r| product.first.push((t, r)));
            c2.for_each_time(|t, r| product.second.push((t, r)));
            fuel.spend(product.start());
            self.begun = true;
        }
        while !product.is_done() {
            let ready = product.ready(CHUNK);
            if ready.is_empty() {
                fuel.spend(product.advance(CHUNK));
            } else {
                let data = self.data.get_or_insert_with(|| f().into_iter());
                if let Some(datum) = data.next() {
                    for (time, diff) in ready {
                        outbox.push(datum.borrow(), *time, *diff);
                    }
                    fuel.spend(ready.len());
                } else {
                    let taken = ready.len();
                    product.take(taken);
                    self.data = None;
                }
            }
            if fuel.is_spent() {
                // Also if all is done: then nothing is left of it when it is asked again.
                return false;
            }
        }
        self.begun = false;
        true
    }
}

/// The only update of the current (key, val), if it has no other.
#[inline]
fn only<'a, C: Cursor<'a>>(cursor: &mut C) -> Option<(C::Time, C::Diff)> {
    let mut update = None;
    if cursor.time_count() == 1 {
        cursor.for_each_time(|time, diff| update = Some((time, diff)));
    }
    update
}
