//! Subscriptions: what a client hears of a collection.
//!
//! ```text
//! sink node of worker w ─ seal at the frontier ─▶ shard w: (updates, frontier) ─┐
//! …                                                                              ├─▶ complete: passed by every shard
//! ```
//! A sink node runs after its worker has published what lies below it, so what a subscription calls complete has been
//! passed by the upper of every arrangement below it. A full subscription never stops a worker: it coalesces.
#![forbid(unsafe_code)]

use super::error::Error;
use super::waiting;
use crate::dataflow::{Closure, Fuel, Interest, SharedHandle, Updates};
use crate::operators::{Collection, Holdable};
use crate::order::{Antichain, Semigroup, Timestamp};
use crate::runtime::{Query, Wake};
use crate::sync::Monitor;
use crate::trace::{Batcher, Hold, sort_and_consolidate};
use kpg_columnar::Columnar;
use std::fmt;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Updates that wait in a subscription before it coalesces.
const CAPACITY: usize = 1 << 20;

struct State<T: Timestamp, D: Columnar, R: Semigroup> {
    frontiers: Vec<Antichain<T>>,
    /// Sealed by their worker; each part sorted and consolidated by (data, time).
    parts: Vec<Updates<D, T, R>>,
    waiting: usize,
    /// What was handed over is not beyond this; nor is what was coalesced with it.
    coalesced: Option<T>,
    /// What was handed over are all changes not beyond this.
    handed: Antichain<T>,
    capacity: usize,
    readers: usize,
    /// A sum did not fit: what it was part of is lost, so there is nothing right to hand over any more.
    overflowed: bool,
    /// Of arrangements that are to stay readable at what was handed over last.
    holds: Vec<Hold<T>>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> State<T, D, R> {
    fn complete(&self) -> Antichain<T> {
        let mut complete = Antichain::new();
        self.frontiers.iter().for_each(|frontier| complete.meet_with(frontier));
        complete
    }

    /// One reader less; what waits for none is freed.
    fn leave(&mut self) {
        self.readers -= 1;
        if self.readers == 0 {
            self.free();
        }
    }

    fn free(&mut self) {
        self.parts = Vec::new();
        self.waiting = 0;
        self.holds = Vec::new();
    }

    /// What was not beyond `through` was handed over. The holds stand where this take began, so that every time whose
    /// changes it gave, and the last one of all, can be read until the next.
    fn hand_over(&mut self, through: &Antichain<T>) {
        let handed = self.handed.join(through);
        if handed == self.handed {
            return;
        }
        let before = std::mem::replace(&mut self.handed, handed);
        for hold in &mut self.holds {
            // An import's history begins later than the subscription's first time: held from there on already.
            if hold.sinces().all(|since| since.before_equal(&before)) {
                hold.move_to(&before).expect("it was just compared");
            }
        }
    }

    /// What was taken, unless a sum in it does not fit: then that is all there will ever be.
    fn checked(&mut self, updates: Vec<(D, T, R)>) -> Result<Changes<D, T, R>, Error> {
        // Equal neighbours are sums that do not fit.
        if updates.windows(2).any(|pair| pair[0].0 == pair[1].0 && pair[0].1 == pair[1].1) {
            self.overflowed = true;
            self.free();
            return Err(Error::DiffOverflow);
        }
        Ok(Changes { updates, through: self.handed.clone() })
    }

    /// Takes the updates of times at which `take` holds; sorted by (time, data), summed across shards.
    fn take(&mut self, take: impl Fn(&T) -> bool) -> Vec<(D, T, R)> {
        let mut taken = Updates::default();
        let mut kept = Vec::new();
        for part in std::mem::take(&mut self.parts) {
            let mut rest = Updates::default();
            for (datum, time, diff) in part.iter() {
                let into = if take(&time) { &mut taken } else { &mut rest };
                into.push(datum, time, diff);
            }
            if !rest.is_empty() {
                kept.push(rest);
            }
        }
        self.parts = kept;
        self.waiting -= taken.len();
        let taken = sort_and_consolidate(taken);
        let mut out: Vec<_> = taken.iter().map(|(datum, t, r)| (<D as Columnar>::to_owned(datum), t, r)).collect();
        // Sums that do not fit are left apart by the sort; they must not be handed over as several.
        out.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        out
    }

    /// Folds what is complete to its last time, so that what waits grows with the data, not with the changes.
    fn coalesce(&mut self) {
        let complete = self.complete();
        let times = self.parts.iter().flat_map(|part| part.iter().map(|(_, t, _)| t));
        let Some(last) = times.filter(|t| !complete.less_equal(t)).max() else { return };
        let mut all = Updates::default();
        for part in std::mem::take(&mut self.parts) {
            for (datum, time, diff) in part.iter() {
                let time = if T::TOTAL && !complete.less_equal(&time) { last } else { time };
                all.push(datum, time, diff);
            }
        }
        let all = sort_and_consolidate(all);
        self.waiting = all.len();
        self.parts.push(all);
        if T::TOTAL {
            self.coalesced = Some(last);
        }
    }
}

struct SubscriptionCore<T: Timestamp, D: Columnar, R: Semigroup> {
    state: Monitor<State<T, D, R>>,
    query: Arc<Query>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> SharedHandle for SubscriptionCore<T, D, R> {
    fn installed(&self) {
        self.state.lock().leave();
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Wake for SubscriptionCore<T, D, R> {
    fn wake(&self) {
        drop(self.state.lock());
        self.state.notify_all();
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> SubscriptionCore<T, D, R> {
    fn pass(&self, worker: usize, sealed: Option<Updates<D, T, R>>, frontier: Antichain<T>) {
        let mut state = self.state.lock();
        if let Some(sealed) = sealed.filter(|_| state.readers > 0 && !state.overflowed) {
            state.waiting += sealed.len();
            state.parts.push(sealed);
        }
        state.frontiers[worker] = frontier;
        if state.waiting > state.capacity {
            state.coalesce();
            // Not again before there is half as much once more.
            state.capacity = state.capacity.max(state.waiting + state.waiting / 2);
        }
        drop(state);
        self.state.notify_all();
    }
}

/// Complete changes, consolidated: (data, time, diff) in the order of (time, data).
#[derive(Clone)]
pub struct Changes<D, T, R> {
    updates: Vec<(D, T, R)>,
    through: Antichain<T>,
}

impl<D, T, R> Changes<D, T, R> {
    /// What was handed over up to now are all changes not beyond this frontier, and at most those.
    pub fn through(&self) -> &Antichain<T> {
        &self.through
    }
    /// The changes.
    pub fn into_vec(self) -> Vec<(D, T, R)> {
        self.updates
    }
}

impl<D, T, R> Deref for Changes<D, T, R> {
    type Target = [(D, T, R)];
    fn deref(&self) -> &Self::Target {
        &self.updates
    }
}

impl<D: fmt::Debug, T: fmt::Debug, R: fmt::Debug> fmt::Debug for Changes<D, T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.updates.fmt(f)
    }
}

impl<D: PartialEq, T: PartialEq, R: PartialEq, const N: usize> PartialEq<[(D, T, R); N]> for Changes<D, T, R> {
    fn eq(&self, other: &[(D, T, R); N]) -> bool {
        self.updates == other
    }
}

impl<D: PartialEq, T: PartialEq, R: PartialEq> PartialEq<Vec<(D, T, R)>> for Changes<D, T, R> {
    fn eq(&self, other: &Vec<(D, T, R)>) -> bool {
        self.updates == *other
    }
}

impl<D, T, R> IntoIterator for Changes<D, T, R> {
    type Item = (D, T, R);
    type IntoIter = std::vec::IntoIter<(D, T, R)>;
    fn into_iter(self) -> Self::IntoIter {
        self.updates.into_iter()
    }
}

/// The changes of a collection: first its state, then what changes, as times complete. `Send`.
///
/// When more waits than it holds, and times are totally ordered, complete changes are summed up over time; they then bear
/// the last time summed. Otherwise only those of one time are.
pub struct Subscription<T: Timestamp, D: Columnar, R: Semigroup = i64> {
    core: Arc<SubscriptionCore<T, D, R>>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> fmt::Debug for Subscription<T, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subscription of {:?}", self.core.query)
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Semigroup> Collection<'s, T, D, R> {
    /// Hands this collection's changes to a client.
    pub fn subscribe(&self) -> Subscription<T, D, R> {
        self.subscribe_bounded(CAPACITY)
    }

    /// As `subscribe`; it coalesces when more than about `capacity` updates wait.
    pub fn subscribe_bounded(&self, capacity: usize) -> Subscription<T, D, R> {
        self.subscribe_with(capacity, &[])
    }

    /// As `subscribe`, keeping the arrangements `held` readable at what it hands over: those below this collection, of
    /// this dataflow or imported into it. At each time whose changes the last take handed over, so at the `time` of a
    /// `wait_past(time)` that was not complete in an earlier take, `snapshot_at` succeeds until a later take hands over more. (An arrangement that is not
    /// below this collection may have `time` complete later: `wait_snapshot` waits for it.)
    ///
    /// The holds go forward with the takes only: who takes nothing keeps all history. They end with the subscription.
    pub fn subscribe_holding(&self, held: &[&dyn Holdable<T>]) -> Subscription<T, D, R> {
        self.subscribe_with(CAPACITY, held)
    }

    fn subscribe_with(&self, capacity: usize, held: &[&dyn Holdable<T>]) -> Subscription<T, D, R> {
        let scope = self.scope();
        let mut builder = scope.node("subscription");
        let mut input = builder.input(&self.stream);
        let build = scope.build.clone();
        let (local, query) = (build.local().clone(), build.install.query.clone());
        let core = build.handle(|| SubscriptionCore::<T, D, R> {
            state: Monitor::new(State {
                frontiers: vec![Antichain::from_elem(T::minimum()); local.peers],
                parts: Vec::new(),
                waiting: 0,
                coalesced: None,
                handed: Antichain::from_elem(T::minimum()),
                capacity,
                // The install's own.
                readers: 1,
                overflowed: false,
                holds: held.iter().map(|held| held.hold_committed()).collect(),
            }),
            query: query.clone(),
        });
        core.state.lock().readers += 1;
        let waiter: std::sync::Weak<SubscriptionCore<T, D, R>> = Arc::downgrade(&core);
        query.register(waiter);
        let shared = core.clone();
        let worker = local.index;
        let mut batcher = Batcher::<D, T, R>::new();
        let mut passed: Option<Antichain<T>> = None;
        builder.finish(
            Interest::Always,
            Closure(move |_: &mut Fuel| {
                while let Some((_, chunk)) = input.next() {
                    batcher.push(crate::operators::owned(chunk));
                }
                let frontier = input.frontier();
                if passed.as_ref() != Some(&frontier) {
                    let sealed = batcher.seal(&frontier);
                    shared.pass(worker, sealed, frontier.clone());
                    passed = Some(frontier);
                }
                false
            }),
        );
        Subscription { core }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Subscription<T, D, R> {
    /// Waits until `time` is complete; then takes all changes at or before it that were not handed over yet. What was
    /// coalesced over `time` comes whole.
    ///
    /// # Errors
    /// When the query ended and `time` will not complete; `Deadline`; `WouldBlock` inside a step; `DiffOverflow`, from then
    /// on at each call.
    pub fn wait_past(&mut self, time: &T, timeout: Duration) -> Result<Changes<D, T, R>, Error> {
        let query = &self.core.query;
        let deadline = query.clock.deadline(timeout);
        waiting::wait(&query.clock, &self.core.state, deadline, &format!("{time:?} was complete"), |state| {
            Self::look(state, query, time)
        })
    }

    fn look(state: &mut State<T, D, R>, query: &Query, time: &T) -> Option<Result<Changes<D, T, R>, Error>> {
        if state.overflowed {
            return Some(Err(Error::DiffOverflow));
        }
        let complete = state.complete();
        if complete.less_equal(time) {
            return Error::ended(query).map(Err);
        }
        let to = state.coalesced.filter(|last| time.less_equal(last)).unwrap_or(*time);
        let updates = state.take(|t| t.less_equal(&to));
        if state.coalesced == Some(to) {
            state.coalesced = None;
        }
        state.hand_over(&after(&to));
        Some(state.checked(updates))
    }

    /// All complete changes that were not handed over yet, without waiting.
    ///
    /// # Errors
    /// When the query ended and nothing is left; `DiffOverflow`, from then on at each call.
    pub fn poll(&mut self) -> Result<Changes<D, T, R>, Error> {
        let mut state = self.core.state.lock();
        if state.overflowed {
            return Err(Error::DiffOverflow);
        }
        let complete = state.complete();
        let updates = state.take(|t| !complete.less_equal(t));
        state.coalesced = None;
        state.hand_over(&complete);
        let changes = state.checked(updates)?;
        drop(state);
        if changes.is_empty() {
            Error::check(&self.core.query)?;
        }
        Ok(changes)
    }

    /// A future of what `wait_past` gives; needs no runtime of its own.
    pub fn past(&mut self, time: T) -> Past<'_, T, D, R> {
        Past { subscription: self, time }
    }

    /// What is not beyond this frontier is complete.
    pub fn complete(&self) -> Antichain<T> {
        self.core.state.lock().complete()
    }
}

/// The minimal times that are not at or before `time`: each passes it in one coordinate.
fn after<T: Timestamp>(time: &T) -> Antichain<T> {
    let (coords, mut maxima) = (time.to_coords(), T::minimum().to_coords());
    T::write_maxima(maxima.as_mut_slice());
    let passes = coords.as_slice().iter().zip(maxima.as_slice()).enumerate().filter(|(_, (at, most))| at < most);
    let passing = passes.map(|(index, (at, _))| {
        let mut coords = T::minimum().to_coords();
        coords.as_mut_slice()[index] = at + 1;
        T::from_coords(&coords)
    });
    passing.collect()
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Drop for Subscription<T, D, R> {
    fn drop(&mut self) {
        self.core.state.lock().leave();
    }
}

/// Resolves when a time is complete; see [`Subscription::past`].
pub struct Past<'a, T: Timestamp, D: Columnar, R: Semigroup> {
    subscription: &'a mut Subscription<T, D, R>,
    time: T,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Future for Past<'_, T, D, R> {
    type Output = Result<Changes<D, T, R>, Error>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let core = &self.subscription.core;
        let mut state = core.state.lock();
        match Subscription::look(&mut state, &core.query, &self.time) {
            Some(ready) => Poll::Ready(ready),
            None => {
                core.state.register(&mut state, context.waker());
                Poll::Pending
            }
        }
    }
}
