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
//! closed. How batches meet is in `meet`.
#![forbid(unsafe_code)]

mod history;
mod meet;

use self::meet::{Future, Lane};
use super::arranged::Arranged;
use super::collection::{Chunk, Collection};
use crate::dataflow::{CapabilitySet, Fuel, InputPort, Interest, Node, OutputPort};
use crate::order::{Antichain, Multiply, Semigroup};
use crate::trace::{Batch, Delivery, Ref, Trace};
use kpg_columnar::Columnar;
use std::collections::VecDeque;

impl<'s, Tr: Trace> Arranged<'s, Tr> {
    /// All pairs of a val here and a val there under the same key: for each, the data that `f` gives of key and vals,
    /// with the product of the diffs, at the join of the times.
    ///
    /// A pair of vals whose histories have many products may have `f` asked for its data more than once.
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
            lanes: [Lane::new(), Lane::new()],
            turn: 0,
            f,
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

type Port<Tr> = InputPort<<Tr as Trace>::Time, Delivery<<Tr as Trace>::Batch>>;
pub(super) type Output<D, T, R> = OutputPort<T, Chunk<D, T, R>>;

struct Join<Tr1: Trace, Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>, I: IntoIterator<Item: Columnar>, F, R: Semigroup>
{
    port1: Port<Tr1>,
    port2: Port<Tr2>,
    output: Output<I::Item, Tr1::Time, R>,
    side1: Side<Tr1>,
    side2: Side<Tr2>,
    // What came of input 1 and of input 2, both as pairs (batch of 1, batch of 2); apart, so that neither input's work
    // starves the other's.
    lanes: [Lane<Tr1::Batch, Tr2::Batch, R, I>; 2],
    // The lane that works first.
    turn: usize,
    f: F,
}

impl<Tr1, Tr2, I, F, R> Node for Join<Tr1, Tr2, I, F, R>
where
    Tr1: Trace,
    Tr2: Trace<Key = Tr1::Key, Time = Tr1::Time>,
    Tr1::Diff: Multiply<Tr2::Diff, Output = R>,
    R: Semigroup,
    I: IntoIterator<Item: Columnar>,
    F: Fn(Ref<'_, Tr1::Key>, Ref<'_, Tr1::Val>, Ref<'_, Tr2::Val>) -> I,
{
    fn step(&mut self, fuel: &mut Fuel) -> bool {
        let [lane1, lane2] = &mut self.lanes;
        let output = &self.output;
        take(&mut self.port1, &mut self.side1, &mut self.side2, &mut lane1.futures, output, |b1, b2| (b1, b2));
        take(&mut self.port2, &mut self.side2, &mut self.side1, &mut lane2.futures, output, |b2, b1| (b1, b2));
        loop {
            let turns = [self.turn, 1 - self.turn];
            let Some(lane) = turns.into_iter().find(|lane| !self.lanes[*lane].futures.is_empty()) else {
                return false;
            };
            if fuel.is_spent() {
                self.turn = 1 - lane;
                return true;
            }
            self.lanes[lane].run(&self.f, &mut self.output, fuel);
        }
    }
}

/// Takes all deliveries of one side: each meets what the other side has acknowledged, then is acknowledged itself. Once
/// there are no more to come, the other side's trace is not needed.
fn take<Tr: Trace, Other: Trace<Time = Tr::Time>, B1: Batch<Time = Tr::Time>, B2: Batch, D: Columnar, R: Semigroup>(
    port: &mut Port<Tr>,
    side: &mut Side<Tr>,
    other: &mut Side<Other>,
    futures: &mut VecDeque<Future<B1, B2>>,
    output: &Output<D, Tr::Time, R>,
    pair: impl Fn(Tr::Batch, Other::Batch) -> (B1, B2),
) {
    while let Some((token, delivery)) = port.next() {
        let mut others = other.acknowledged();
        others.retain(|batch| !batch.is_empty());
        let fresh = delivery.batches.iter().filter(|batch| !batch.is_empty());
        let pairs: VecDeque<_> =
            fresh.flat_map(|batch| others.iter().map(|other| pair(batch.clone(), other.clone()))).collect();
        if !pairs.is_empty() {
            let mut capabilities = CapabilitySet::new();
            output.retain(&token, &mut capabilities);
            futures.push_back(Future { capabilities, pairs });
        }
        if let Some(last) = delivery.batches.last() {
            side.acknowledge(last.upper());
        }
    }
    if other.trace.is_some() && port.frontier().is_empty() {
        other.trace = None;
    }
}
