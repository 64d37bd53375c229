//! Arrange: updates in, batches out, a trace kept for whoever reads it.
//!
//! ```text
//! updates ─ exchange by key ─▶ batcher ─ seal when the frontier moves ─▶ batch ─▶ spine (if it is read)
//!                                                                          └────▶ the batch stream
//! ```
//! Invariants: what is not yet sealed is a held capability, so the frontier at the output port is the arrangement's
//! upper; a batch is in the spine before the step's change batch is applied; with nothing pending no batch is minted when
//! time passes. Stop before: `exchange`; after: whoever reads the arrangement, and `publish`.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::{Chunk, Collection, fitting, owned};
use super::exchange::exchanged;
use super::importers::{Importers, News};
use crate::dataflow::{CapabilitySet, Core, Fuel, InputPort, Interest, Node, NodeBuilder, OutputPort, Scope, Stream};
use crate::order::{Antichain, Semigroup, Timestamp};
use crate::runtime::{MergeGauges, MergeState};
use crate::trace::{
    Batch, Batcher, Delivery, MergeBatch, MergePolicy, OrdBatch, SealBatch, TraceHandle, TraceWriter, start,
};
use kpg_columnar::Columnar;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The arrangement of a collection of (key, val) as kpg stores it.
pub type ArrangedByKey<'s, T, K, V, R> = Arranged<'s, TraceHandle<OrdBatch<K, V, T, R>>>;
/// The arrangement of a collection by its data themselves.
pub type ArrangedBySelf<'s, T, K, R> = ArrangedByKey<'s, T, K, (), R>;

impl<'s, T: Timestamp, K: Columnar, V: Columnar, R: Semigroup> Collection<'s, T, (K, V), R> {
    /// Arranges by the first part of each pair: equal keys go to one worker; batches and trace are sorted by (key, val,
    /// time). Share the result: each further use of it costs no copy.
    pub fn arrange_by_key(&self) -> ArrangedByKey<'s, T, K, V, R> {
        self.arrange_named("arrange")
    }

    /// As `arrange_by_key`, under a name that errors and metrics give.
    pub fn arrange_named(&self, name: &str) -> ArrangedByKey<'s, T, K, V, R> {
        self.arrange_with(name, None)
    }

    /// As `arrange_named`, with a merge policy of its own in place of the engine's.
    pub fn arrange_with(&self, name: &str, policy: Option<MergePolicy>) -> ArrangedByKey<'s, T, K, V, R> {
        self.arrange_as(name, policy)
    }

    /// As `arrange_with`, in batches of another layout.
    pub fn arrange_as<B>(&self, name: &str, policy: Option<MergePolicy>) -> Arranged<'s, TraceHandle<B>>
    where
        B: SealBatch<Key = K, Val = V, Time = T, Diff = R>,
    {
        let mut builder = self.stream.scope.node(name);
        let input =
            exchanged(&mut builder, &self.stream, |(key, _): (K::Ref<'_>, V::Ref<'_>)| <K as Columnar>::hash(key));
        let (end, arranged) = Writing::new(&mut builder, policy);
        builder.finish(Interest::Held, Arrange { input, batcher: Batcher::new(), sealed: start(), end });
        arranged
    }
}

impl<'s, T: Timestamp, K: Columnar, R: Semigroup> Collection<'s, T, K, R> {
    /// Arranges by the data themselves, with `()` for vals.
    pub fn arrange_by_self(&self) -> ArrangedBySelf<'s, T, K, R> {
        self.with_units().arrange_named("arrange by self")
    }
}

/// What every operator that writes a trace has: the writer, its output port, its capabilities.
pub(crate) struct Writing<T: Timestamp, B: MergeBatch<Time = T>> {
    pub(crate) writer: Rc<RefCell<TraceWriter<B>>>,
    pub(crate) output: OutputPort<T, Delivery<B>>,
    pub(crate) capabilities: CapabilitySet<T>,
    importers: Importers,
    core: Rc<Core>,
    node: u32,
    idle_fuel: usize,
    gauges: Arc<MergeGauges>,
}

impl<T: Timestamp, B: MergeBatch<Time = T>> Writing<T, B> {
    pub(crate) fn new<'s>(
        builder: &mut NodeBuilder<'s, T>,
        policy: Option<MergePolicy>,
    ) -> (Self, Arranged<'s, TraceHandle<B>>)
    where
        B: Batch,
    {
        let (output, stream) = builder.output();
        builder.watch_outputs();
        let policy = policy.or_else(|| builder.core().local.defaults.downcast_ref().copied()).unwrap_or_default();
        let (writer, trace) = TraceWriter::new(policy);
        let writer = Rc::new(RefCell::new(writer));
        let importers = Importers::of(builder.index, &builder.core().local);
        let own = Some(Rc::new((writer.clone(), importers.clone())) as Rc<dyn std::any::Any>);
        let arranged = Arranged { stream, trace, own };
        let core = builder.core().clone();
        let node = builder.index;
        let gauges = builder.query().arrangement(node, builder.name(), core.local.peers);
        (
            Writing {
                writer,
                output,
                capabilities: CapabilitySet::new(),
                importers,
                core,
                node,
                idle_fuel: policy.idle_fuel,
                gauges,
            },
            arranged,
        )
    }

    /// The last batch's upper bound.
    pub(crate) fn upper(&self) -> Antichain<T> {
        self.writer.borrow().upper().clone()
    }

    /// Inserts a batch and sends it at the capabilities held.
    pub(crate) fn write(&mut self, batch: B) {
        self.importers.on_account(|| {
            self.writer.borrow_mut().insert(batch.clone());
            self.output.send(&self.capabilities, Delivery { batches: Arc::new([batch]) });
        });
        self.tell();
        if self.idle_fuel > 0 {
            self.core.mergers.insert(self.node);
        }
        self.importers.poke(&self.core.local, News::Data);
    }

    fn tell(&self) {
        self.gauges.tell(self.core.local.index, self.writer.borrow().state());
    }

    pub(crate) fn output_moved(&mut self) {
        let frontier = self.output.frontier();
        let mut writer = self.writer.borrow_mut();
        writer.advance_upper(&frontier);
        if writer.is_denied() {
            // Tried again as time passes, too; an idle worker is not kept awake for it.
            self.core.mergers.insert(self.node);
        }
        drop(writer);
        self.importers.poke(&self.core.local, if frontier.is_empty() { News::Data } else { News::Tick });
    }

    /// Whether anyone has the published arrangement: then its trace stays, also once the input has closed, so that late
    /// importers find the history and the end.
    pub(crate) fn is_published(&self) -> bool {
        self.writer.borrow_mut().is_published()
    }

    /// Whether more merging is due than the policy allows to put off.
    fn is_overdue(&self) -> bool {
        self.writer.borrow().is_overdue()
    }

    /// Merges on for as long as the policy lets an idle worker; true iff work remains.
    pub(crate) fn idle(&mut self) -> bool {
        self.idle_fuel > 0 && self.merge_on(self.idle_fuel)
    }

    /// Merges on though the worker is not idle: what is overdue comes first.
    fn catch_up(&mut self) {
        self.merge_on(if self.idle_fuel > 0 { self.idle_fuel } else { MergePolicy::default().idle_fuel });
    }

    fn merge_on(&mut self, fuel: usize) -> bool {
        let mut fuel = isize::try_from(fuel).unwrap_or(isize::MAX);
        let more = self.importers.on_account(|| self.writer.borrow_mut().work(&mut fuel));
        self.tell();
        more
    }
}

impl<T: Timestamp, B: MergeBatch<Time = T>> Drop for Writing<T, B> {
    fn drop(&mut self) {
        // Nobody inserts or merges any more: what readers still keep is theirs.
        let gone = MergeState { batches: 0, open_merges: 0, debt: 0, ..*self.writer.borrow().state() };
        self.gauges.tell(self.core.local.index, &gone);
    }
}

struct Arrange<B: SealBatch> {
    input: InputPort<B::Time, Chunk<(B::Key, B::Val), B::Time, B::Diff>>,
    batcher: Batcher<(B::Key, B::Val), B::Time, B::Diff>,
    /// The frontier up to which was sealed. While it stands, what is held need not be exact: nobody can pass it.
    sealed: Antichain<B::Time>,
    end: Writing<B::Time, B>,
}

impl<B: SealBatch> Node for Arrange<B> {
    fn step(&mut self, _fuel: &mut Fuel) -> bool {
        let end = &mut self.end;
        while let Some((token, chunk)) = self.input.next() {
            end.output.retain(&token, &mut end.capabilities);
            self.batcher.push(owned(chunk));
        }
        let frontier = self.input.frontier();
        if self.sealed == frontier {
            return false;
        }
        if !self.batcher.is_empty() && end.is_overdue() {
            // Merges first: what is not sealed holds the frontier back, and so, in the end, whoever puts it in.
            end.catch_up();
            return true;
        }
        self.sealed = frontier.clone();
        if let Some(updates) = self.batcher.seal(&frontier) {
            let batch = B::seal(updates, end.upper(), frontier);
            end.write(batch);
        }
        end.capabilities.must_downgrade(&self.batcher.frontier());
        false
    }
    fn output_moved(&mut self) {
        self.end.output_moved();
    }
    fn idle(&mut self) -> bool {
        self.end.idle()
    }
    fn is_read(&mut self) -> bool {
        self.end.is_published()
    }
}

impl<'s, T: Timestamp, D: Columnar, R: Semigroup> Collection<'s, T, D, R> {
    /// The same updates, consolidated: those of complete times, equal ones summed, none that vanish; equal data on one
    /// worker.
    pub fn consolidate(&self) -> Self {
        let mut builder = self.stream.scope.node("consolidate");
        let mut input = exchanged(&mut builder, &self.stream, |datum: D::Ref<'_>| <D as Columnar>::hash(datum));
        let (mut output, stream) = builder.output();
        let mut batcher = Batcher::<D, T, R>::new();
        let mut capabilities = CapabilitySet::new();
        let mut sealed_to = start();
        builder.finish(
            Interest::Held,
            crate::dataflow::Closure(move |_: &mut Fuel| {
                while let Some((token, chunk)) = input.next() {
                    output.retain(&token, &mut capabilities);
                    batcher.push(owned(chunk));
                }
                let frontier = input.frontier();
                if sealed_to != frontier {
                    if let Some(updates) = batcher.seal(&frontier) {
                        output.send_all(&capabilities, fitting(updates));
                    }
                    capabilities.must_downgrade(&batcher.frontier());
                    sealed_to = frontier;
                }
                false
            }),
        );
        Collection::new(stream).consolidated()
    }
}

/// The stream and scope of an arrangement, for operators written outside.
impl<'s, Tr: crate::trace::Trace> Arranged<'s, Tr> {
    /// The batches as they are minted.
    pub fn stream(&self) -> &Stream<'s, Tr::Time, Delivery<Tr::Batch>> {
        &self.stream
    }
    /// A reader of its trace; a clone of it registers anew.
    pub fn trace(&self) -> &Tr {
        &self.trace
    }
    /// The scope it lives in.
    pub fn scope(&self) -> Scope<'s, Tr::Time> {
        self.stream.scope.clone()
    }
}
