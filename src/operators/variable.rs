//! Loops: `iterate`, and variables for mutual recursion.
//!
//! ```text
//!            ┌───────────────── variable = source + what goes round ───────────────┐
//!   source ──┤                                                                      ▼
//!            └─▶ [feedback: value − source, consolidated, one round later] ◀── value = body(variable)
//! ```
//! In round 0 the variable is its source, in each later one the body's value of the round before. What goes round is the
//! difference, consolidated, so that updates that cancel don't circulate and a loop at its fixed point is at rest.
//! A time goes round when the frontiers of value and source have passed it; or at once, when the value's producer gives
//! each (datum, time) once and nothing of the source is to come or is stored at that time: so each round after the first.
//! Invariants: feedback is a node, never a stage: a cycle never runs on the stack; it steps stamps and each record's
//! time; what would pass the counter's maximum is dropped; it holds capabilities as a batcher does, one step on.
#![forbid(unsafe_code)]

use super::collection::{Chunk, Collection, fitting, owned};
use super::exchange::exchanged;
use crate::dataflow::{CapabilitySet, Closure, Fuel, InputPort, Interest, NodeBuilder, OutputPort, Scope};
use crate::dataflow::{Token, Updates};
use crate::order::{Abelian, Antichain, Coords, MAX_COORDINATES, Product, Timestamp};
use crate::progress::Summary;
use crate::trace::{Batcher, start};
use kpg_columnar::{Column, Columnar};
use std::rc::Rc;

/// A collection that a loop's body defines in terms of itself.
///
/// Made before its value is; `set` closes the loop. Several in one scope make mutual recursion. It reads as the
/// collection it stands for.
pub struct Variable<'s, T: Timestamp, C: Timestamp, D: Columnar, R: Abelian> {
    collection: Collection<'s, Product<T, C>, D, R>,
    source: Option<Collection<'s, Product<T, C>, D, R>>,
    feedback: Feedback<'s, Product<T, C>, D, R>,
}

/// A node that has its output before its inputs.
struct Feedback<'s, T: Timestamp, D: Columnar, R: Abelian> {
    builder: NodeBuilder<'s, T>,
    output: OutputPort<T, Chunk<D, T, R>>,
    eager: bool,
}

impl<'s, T: Timestamp, C: Timestamp, D: Columnar, R: Abelian> std::ops::Deref for Variable<'s, T, C, D, R> {
    type Target = Collection<'s, Product<T, C>, D, R>;
    fn deref(&self) -> &Self::Target {
        &self.collection
    }
}

impl<'s, T: Timestamp, C: Timestamp, D: Columnar, R: Abelian> Variable<'s, T, C, D, R> {
    /// A variable that is empty in round 0.
    pub fn new(scope: &Scope<'s, Product<T, C>>) -> Self {
        Self::make(scope, None, false)
    }

    /// A variable that is `source` in round 0.
    pub fn new_from(source: &Collection<'s, Product<T, C>, D, R>) -> Self {
        Self::make(&source.scope(), Some(source.clone()), false)
    }

    /// As `new_from`, but what goes round is passed on as it comes, for bodies that consolidate themselves. If they do
    /// not, updates that cancel circulate without end.
    pub fn eager(source: &Collection<'s, Product<T, C>, D, R>) -> Self {
        Self::make(&source.scope(), Some(source.clone()), true)
    }

    fn make(
        scope: &Scope<'s, Product<T, C>>,
        source: Option<Collection<'s, Product<T, C>, D, R>>,
        eager: bool,
    ) -> Self {
        let mut builder = scope.node("feedback");
        let (output, stream) = builder.output();
        let around = Collection::new(stream);
        let collection = match &source {
            Some(source) => around.concat(source),
            None => around,
        };
        Variable { collection, source, feedback: Feedback { builder, output, eager } }
    }

    /// The collection it stands for.
    pub fn collection(&self) -> Collection<'s, Product<T, C>, D, R> {
        self.collection.clone()
    }

    /// Closes the loop: from round 1 on the variable is `value` of the round before. Gives `value` back.
    pub fn set(self, value: &Collection<'s, Product<T, C>, D, R>) -> Collection<'s, Product<T, C>, D, R> {
        let Feedback { mut builder, mut output, eager } = self.feedback;
        let hash = |datum: D::Ref<'_>| <D as Columnar>::hash(datum);
        let step = Summary::step(Product::<T, C>::COORDINATES, 1);
        let mut value_port = exchanged(&mut builder, &value.stream, hash);
        builder.connect_back(step);
        let mut source_port = self.source.map(|source| {
            let port = exchanged(&mut builder, &source.negate().stream, hash);
            builder.connect_back(step);
            port
        });
        let maxima = builder.scope.maxima();
        let mut batcher = Batcher::<D, Product<T, C>, R>::new();
        let mut capabilities = CapabilitySet::new();
        // While this stands, what is held need not be exact: nobody can pass it.
        let mut sealed_to = start();
        let consolidated = value.consolidated;
        // Times at or before whatever the batcher holds.
        let mut stored = Antichain::new();
        builder.finish(
            Interest::Held,
            Closure(move |_: &mut Fuel| {
                let mut around = Around { output: &mut output, maxima: &maxima };
                // The source first: what it has for a time must not come after that time went round at once.
                if let Some(port) = &mut source_port {
                    while let Some((token, chunk)) = port.next() {
                        if eager {
                            around.pass_on(&token, owned(chunk));
                        } else {
                            around.output.retain(&token, &mut capabilities);
                            store(&mut batcher, &mut stored, owned(chunk));
                        }
                    }
                }
                let source_frontier = source_port.as_ref().map(InputPort::frontier).unwrap_or_default();
                while let Some((token, chunk)) = value_port.next() {
                    let at_once = |time| !source_frontier.less_equal(&time) && !stored.less_equal(&time);
                    if eager || consolidated && (0..chunk.len()).all(|i| at_once(chunk.times.get(i))) {
                        around.pass_on(&token, owned(chunk));
                    } else {
                        around.output.retain(&token, &mut capabilities);
                        store(&mut batcher, &mut stored, owned(chunk));
                    }
                }
                let mut limit = value_port.frontier();
                if let Some(port) = &source_port {
                    limit.meet_with(&port.frontier());
                }
                if sealed_to == limit {
                    return false;
                }
                sealed_to = limit.clone();
                if let Some(updates) = batcher.seal(&limit) {
                    let stepped = stepped(fitting(updates), &maxima);
                    if !stepped.is_empty() {
                        output.send_all(&capabilities, stepped);
                    }
                }
                stored = batcher.frontier();
                let held: Antichain<Product<T, C>> =
                    stored.elements().iter().filter_map(|t| next_round(t, &maxima)).collect();
                capabilities.must_downgrade(&held);
                false
            }),
        );
        value.clone()
    }
}

/// Where what goes round at once leaves.
struct Around<'o, T: Timestamp, D: Columnar, R: Abelian> {
    output: &'o mut OutputPort<T, Chunk<D, T, R>>,
    maxima: &'o [u64; MAX_COORDINATES],
}

impl<T: Timestamp, D: Columnar, R: Abelian> Around<'_, T, D, R> {
    fn pass_on(&mut self, token: &Token<T>, updates: Updates<D, T, R>) {
        let stepped = stepped(updates, self.maxima);
        if !stepped.is_empty() {
            self.output.send(token, Rc::new(stepped));
        }
    }
}

/// Keeps updates until their times are complete; `stored` is a bound on all that is kept.
fn store<T: Timestamp, D: Columnar, R: Abelian>(
    batcher: &mut Batcher<D, T, R>,
    stored: &mut Antichain<T>,
    updates: Updates<D, T, R>,
) {
    for index in 0..updates.len() {
        stored.insert(updates.times.get(index));
    }
    batcher.push(updates);
}

/// The time one round on; nothing past the counter's maximum.
fn next_round<T: Timestamp>(time: &T, maxima: &[u64; MAX_COORDINATES]) -> Option<T> {
    let mut coords: Coords = time.to_coords();
    let last = coords.len() - 1;
    let counter = &mut coords.as_mut_slice()[last];
    if *counter >= maxima[last] {
        return None;
    }
    *counter += 1;
    Some(T::from_coords(&coords))
}

fn stepped<T: Timestamp, D: Columnar, R: Abelian>(
    updates: Updates<D, T, R>,
    maxima: &[u64; MAX_COORDINATES],
) -> Updates<D, T, R> {
    let mut out = Updates::default();
    for (data, time, diff) in updates.iter() {
        if let Some(time) = next_round(&time, maxima) {
            out.push(data, time, diff);
        }
    }
    out
}

impl<'s, T: Timestamp, D: Columnar, R: Abelian> Collection<'s, T, D, R> {
    /// Applies `body` over and over, from this collection on, until nothing changes; then the result is what is left.
    /// Follows changes of whatever `body` reads: only what they touch is done again.
    ///
    /// `body` gets the loop's scope, into which collections and arrangements from outside `enter`.
    pub fn iterate<F>(&self, body: F) -> Collection<'s, T, D, R>
    where
        F: FnOnce(
            &Scope<'s, Product<T, u32>>,
            &Collection<'s, Product<T, u32>, D, R>,
        ) -> Collection<'s, Product<T, u32>, D, R>,
    {
        let inner = self.stream.scope.nest("iterate");
        let variable = Variable::new_from(&self.enter(&inner));
        let value = body(&inner, &variable);
        variable.set(&value).leave()
    }
}

impl<'s, T: Timestamp> Scope<'s, T> {
    /// A loop with any number of variables: `body` makes them in the scope it is given, sets them, and returns what
    /// `leave`s.
    pub fn iterative<O>(&self, body: impl FnOnce(&Scope<'s, Product<T, u32>>) -> O) -> O {
        body(&self.nest("iterative"))
    }
}
