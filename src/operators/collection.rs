//! Collections: streams of updates, and what needs no state on them.
//!
//! Everything here but `consolidate` is a stage: it runs inside the producer's step, costs the tracker nothing, and
//! touches each update once. Closures read data through `Columnar::Ref`: plain values by value, others by reference.
#![forbid(unsafe_code)]

use crate::dataflow::{Core, Outlet, OutputPort, Scope, Stamp, Stamped, Stream, Updates};
use crate::order::{Abelian, DiffOverflow, Multiply, Product, Semigroup, Timestamp};
use crate::progress::Summary;
use kpg_columnar::{Column, Columnar, Tuple2, Units};
use std::rc::Rc;

/// What a stream of updates carries.
pub type Chunk<D, T, R> = Rc<Updates<D, T, R>>;

/// A changing multiset of `D`, as the stream of its updates (data, time, diff).
pub struct Collection<'s, T: Timestamp, D: Columnar, R: Semigroup = i64> {
    pub(crate) stream: Stream<'s, T, Chunk<D, T, R>>,
    /// Whether each (datum, time) comes at most once from all workers together, so that nothing in it cancels.
    pub(crate) consolidated: bool,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Clone for Collection<'_, T, D, R> {
    fn clone(&self) -> Self {
        Collection { stream: self.stream.clone(), consolidated: self.consolidated }
    }
}

/// The updates of a chunk, to keep: without a copy if nobody else reads it.
pub(crate) fn owned<D: Columnar, T: Timestamp, R: Semigroup>(chunk: Chunk<D, T, R>) -> Updates<D, T, R> {
    Rc::try_unwrap(chunk).unwrap_or_else(|shared| {
        let mut copy = Updates::default();
        copy.extend_from(&shared, 0, shared.len());
        copy
    })
}

/// About how many updates a message holds at most, whoever makes it: what a stage does to one message of updates is not
/// interrupted, save where it makes many of each.
const MESSAGE: usize = 4096;

/// What a stage has made of the update in hand and those before it.
struct Made<'o, D: Columnar, T: Timestamp, R: Semigroup> {
    updates: Updates<D, T, R>,
    /// That of the update in hand.
    time: T,
    stamp: &'o Stamp,
    outlet: &'o Outlet<Chunk<D, T, R>>,
    core: &'o Core,
}

impl<D: Columnar, T: Timestamp, R: Semigroup> Made<'_, D, T, R> {
    fn push(&mut self, datum: D::Ref<'_>, diff: R) {
        self.updates.push(datum, self.time, diff);
        if self.updates.len() == MESSAGE {
            self.send();
        }
    }
    fn send(&mut self) {
        self.core.spend_on_stages(self.updates.len());
        if !self.updates.is_empty() {
            self.outlet.push(self.stamp, Rc::new(std::mem::take(&mut self.updates)));
        }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> OutputPort<T, Chunk<D, T, R>> {
    /// Sends updates in messages of bounded size.
    pub(crate) fn send_all(&mut self, at: &impl Stamped, updates: Updates<D, T, R>) {
        if updates.len() <= MESSAGE {
            return self.send(at, Rc::new(updates));
        }
        for start in (0..updates.len()).step_by(MESSAGE) {
            let mut part = Updates::default();
            part.extend_from(&updates, start, updates.len().min(start + MESSAGE));
            self.send(at, Rc::new(part));
        }
    }
}

/// Consolidated updates that are to be sent on. A sum that does not fit was left apart; it ends the query with an error:
/// in a loop what is apart would double in number each round.
pub(crate) fn fitting<D: Columnar, T: Timestamp, R: Semigroup>(updates: Updates<D, T, R>) -> Updates<D, T, R> {
    let (data, times) = (&updates.data, &updates.times);
    let apart = |i: usize| times.get(i - 1) == times.get(i) && data.get(i - 1) == data.get(i);
    if (1..updates.len()).any(apart) {
        DiffOverflow::raise();
    }
    updates
}

impl<'s, T: Timestamp, D: Columnar, R: Semigroup> Collection<'s, T, D, R> {
    pub(crate) fn new(stream: Stream<'s, T, Chunk<D, T, R>>) -> Self {
        Collection { stream, consolidated: false }
    }

    /// Vouches that each (datum, time) comes at most once from all workers together.
    pub(crate) fn consolidated(self) -> Self {
        Collection { consolidated: true, ..self }
    }

    /// The scope it lives in.
    pub fn scope(&self) -> Scope<'s, T> {
        self.stream.scope.clone()
    }

    /// A stage that makes of each message one message at most. Messages are small, so it need not stop inside one.
    fn each<D2: Columnar, R2: Semigroup>(
        &self,
        name: &str,
        mut f: impl FnMut(Updates<D, T, R>, &mut Updates<D2, T, R2>) + 'static,
    ) -> Collection<'s, T, D2, R2> {
        let core = self.stream.scope.build.core.clone();
        Collection::new(self.stream.stage(name, move |stamp, chunk: Chunk<D, T, R>, outlet| {
            let mut out = Updates::default();
            core.spend_on_stages(chunk.len());
            f(owned(chunk), &mut out);
            if !out.is_empty() {
                outlet.push(stamp, Rc::new(out));
            }
        }))
    }

    /// A stage that makes any number of updates of each. It stops between two of them when the quantum is over, and what it
    /// makes leaves in messages of bounded size.
    fn each_many<D2: Columnar, R2: Semigroup>(
        &self,
        name: &str,
        f: impl Fn(D::Ref<'_>, R, &mut Made<'_, D2, T, R2>) + 'static,
    ) -> Collection<'s, T, D2, R2> {
        let core = self.stream.scope.build.core.clone();
        let mut done = 0;
        Collection::new(self.stream.stage_in_parts(name, move |stamp, chunk: Chunk<D, T, R>, outlet| {
            let mut made = Made { updates: Updates::default(), time: T::minimum(), stamp, outlet, core: &core };
            while done < chunk.len() {
                let (data, time, diff) = chunk.get(done);
                done += 1;
                made.time = time;
                f(data, diff, &mut made);
                core.spend_on_stages(1);
                if core.stage_fuel.get() <= made.updates.len() as isize {
                    break;
                }
            }
            made.send();
            if done < chunk.len() {
                return Some(chunk);
            }
            done = 0;
            None
        }))
    }

    /// Each datum replaced by `f` of it.
    pub fn map<D2: Columnar>(&self, f: impl Fn(D::Ref<'_>) -> D2 + 'static) -> Collection<'s, T, D2, R> {
        self.map_named("map", f)
    }

    /// As `map`, under a name that errors give.
    pub fn map_named<D2: Columnar>(
        &self,
        name: &str,
        f: impl Fn(D::Ref<'_>) -> D2 + 'static,
    ) -> Collection<'s, T, D2, R> {
        self.each(name, move |updates, out: &mut Updates<D2, T, R>| {
            out.data.reserve(updates.len());
            for index in 0..updates.len() {
                out.data.push(f(updates.data.get(index)).borrow());
            }
            out.times = updates.times;
            out.diffs = updates.diffs;
        })
    }

    /// Each datum as a key, with `()` for its val. Copies nothing.
    pub(crate) fn with_units(&self) -> Collection<'s, T, (D, ()), R> {
        self.each("to key", move |updates, out: &mut Updates<(D, ()), T, R>| {
            let units = Units::of(updates.len());
            *out = Updates { data: Tuple2(updates.data, units), times: updates.times, diffs: updates.diffs };
        })
    }

    /// Each datum replaced by all that `f` gives for it.
    pub fn flat_map<D2: Columnar, I: IntoIterator<Item = D2>>(
        &self,
        f: impl Fn(D::Ref<'_>) -> I + 'static,
    ) -> Collection<'s, T, D2, R> {
        self.each_many("flat_map", move |data, diff, made| {
            f(data).into_iter().for_each(|d| made.push(d.borrow(), diff))
        })
    }

    /// Only the data for which `keep` holds.
    pub fn filter(&self, keep: impl Fn(D::Ref<'_>) -> bool + 'static) -> Self {
        self.each("filter", move |updates, out| {
            let mut start = 0;
            let len = updates.len();
            while start < len {
                // Runs that stay are copied whole.
                let end = (start..len).find(|i| !keep(updates.data.get(*i))).unwrap_or(len);
                if end > start {
                    out.extend_from(&updates, start, end);
                }
                start = end + 1;
            }
        })
    }

    /// Only the updates at times for which `keep` holds.
    pub(crate) fn filter_times(&self, keep: impl Fn(&T) -> bool + 'static) -> Self {
        self.each("filter", move |updates, out| {
            for (data, time, diff) in updates.iter().filter(|(_, time, _)| keep(time)) {
                out.push(data, time, diff);
            }
        })
    }

    /// The updates with diffs by which `f` explodes each datum: all (d2, r2) of it, with r2 multiplied in; none where that
    /// is zero.
    ///
    /// A product that does not fit ends the query with an error.
    pub fn explode<D2: Columnar, R2, I: IntoIterator<Item = (D2, R2)>>(
        &self,
        f: impl Fn(D::Ref<'_>) -> I + 'static,
    ) -> Collection<'s, T, D2, <R as Multiply<R2>>::Output>
    where
        R: Multiply<R2>,
    {
        self.each_many("explode", move |data, diff, made| {
            for (datum, factor) in f(data) {
                let product = diff.multiply(factor).unwrap_or_else(|| DiffOverflow::raise());
                if !product.is_zero() {
                    made.push(datum.borrow(), product);
                }
            }
        })
    }

    /// Calls `f` with each update, in the order in which they come by here; not consolidated.
    pub fn inspect(&self, f: impl Fn(D::Ref<'_>, T, R) + 'static) -> Self {
        let core = self.stream.scope.build.core.clone();
        Collection::new(self.stream.stage("inspect", move |stamp, chunk: Chunk<D, T, R>, outlet| {
            core.spend_on_stages(chunk.len());
            for (data, time, diff) in chunk.iter() {
                f(data, time, diff);
            }
            outlet.push(stamp, chunk);
        }))
    }

    /// All updates of both.
    pub fn concat(&self, other: &Self) -> Self {
        Self::concat_all([self, other])
    }

    /// All updates of all; at least one collection.
    ///
    /// # Panics
    /// Without any collection, for then there is no scope to put the result in.
    pub fn concat_all<'c>(collections: impl IntoIterator<Item = &'c Self>) -> Self
    where
        's: 'c,
    {
        let streams: Vec<_> = collections.into_iter().map(|c| &c.stream).collect();
        assert!(!streams.is_empty(), "concat_all needs a collection");
        Collection::new(Stream::concat_all("concat", &streams))
    }

    /// Each update at the time `f` gives, which must be at or after its own, and monotone: times in order stay so.
    ///
    /// A time that `f` takes back ends the query with an error.
    pub fn delay(&self, f: impl Fn(&T) -> T + 'static) -> Self {
        let f = Rc::new(f);
        let (outlet, stream) = self.stream.same_sources();
        self.stream.add_stage("delay", move |stamp, chunk| {
            let later = |time: T| {
                let to = f(&time);
                assert!(time.less_equal(&to), "delay took {time:?} back to {to:?}: it must not");
                to
            };
            let stamp: Stamp = stamp.elements().iter().map(|t| later(T::from_coords(t)).to_coords()).collect();
            let updates = owned(chunk);
            let mut times = T::Column::default();
            for index in 0..updates.len() {
                times.push(later(updates.times.get(index)));
            }
            outlet.push(&stamp, Rc::new(Updates { times, ..updates }));
        });
        Collection::new(stream)
    }

    /// The same collection inside a loop: each update at round 0, and so in all rounds.
    pub fn enter<C: Timestamp>(&self, inner: &Scope<'s, Product<T, C>>) -> Collection<'s, Product<T, C>, D, R> {
        self.enter_each(inner, |_| C::minimum())
    }

    /// As `enter`, each datum from the round on that `f` gives.
    pub fn enter_at<C: Timestamp>(
        &self,
        inner: &Scope<'s, Product<T, C>>,
        f: impl Fn(D::Ref<'_>) -> C + 'static,
    ) -> Collection<'s, Product<T, C>, D, R> {
        self.enter_each(inner, f)
    }

    fn enter_each<C: Timestamp>(
        &self,
        inner: &Scope<'s, Product<T, C>>,
        f: impl Fn(D::Ref<'_>) -> C + 'static,
    ) -> Collection<'s, Product<T, C>, D, R> {
        let summary = Summary::enter(T::COORDINATES);
        Collection::new(self.stream.cross("enter", inner, summary, move |chunk: Chunk<D, T, R>| {
            let updates = owned(chunk);
            let mut times = <Product<T, C> as Columnar>::Column::default();
            for index in 0..updates.len() {
                times.push(Product::new(updates.times.get(index), f(updates.data.get(index))));
            }
            Rc::new(Updates { data: updates.data, times, diffs: updates.diffs })
        }))
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Abelian> Collection<'s, T, D, R> {
    /// Every diff negated. One that has no inverse in its type ends the query with an error.
    pub fn negate(&self) -> Self {
        self.each("negate", |updates, out: &mut Updates<D, T, R>| {
            for index in 0..updates.len() {
                out.diffs.push(updates.diffs.get(index).negate().unwrap_or_else(|| DiffOverflow::raise()));
            }
            out.data = updates.data;
            out.times = updates.times;
        })
    }
}

impl<'s, T: Timestamp, C: Timestamp, D: Columnar, R: Semigroup> Collection<'s, Product<T, C>, D, R> {
    /// The collection outside the loop: all rounds' updates, that is, the last round's accumulation.
    pub fn leave(&self) -> Collection<'s, T, D, R> {
        let summary = Summary::leave(Product::<T, C>::COORDINATES);
        let outer = self.stream.scope.outer();
        Collection::new(self.stream.cross("leave", &outer, summary, |chunk: Chunk<D, Product<T, C>, R>| {
            let updates = owned(chunk);
            let mut times = T::Column::default();
            for index in 0..updates.len() {
                times.push(updates.times.get(index).outer);
            }
            Rc::new(Updates { data: updates.data, times, diffs: updates.diffs })
        }))
    }
}
