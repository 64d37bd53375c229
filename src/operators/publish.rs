//! Publishing an arrangement, and importing a published one into another dataflow.
//!
//! ```text
//! arrange ─ writes ─▶ spine ─ shard, replaced whole ─▶ snapshots of any thread
//!    └ pokes ─▶ import node ─▶ the history as of F in one go, then each new batch once
//! ```
//! Invariants: an import shows times through rep_F, bounds as the source's own; its capability is {F join u : u in the
//! published upper}; it keeps its own cut at what it has delivered.
#![forbid(unsafe_code)]

use super::arranged::Arranged;
use super::collection::Collection;
use super::importers::Importers;
use crate::dataflow::{
    CapabilitySet, Fuel, HistoryHold, InstallFault, Interest, Node, OutputPort, Scope, SharedHandle,
};
use crate::order::{Antichain, Coords, Lattice, Semigroup, Timestamp};
#[cfg(test)]
use crate::runtime::Local;
use crate::runtime::{Lag, Mailbox, Query, Wake};
use crate::trace::{
    AsOfBatch, AsOfTrace, Delivery, Hold, ImportHold, MergeBatch, MergePolicy, OrdBatch, Published, Trace, TraceHandle,
    TraceWriter, WeakTrace,
};
use kpg_columnar::Columnar;
use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a publishing dataflow offers the others on its worker.
struct Offer<B: MergeBatch> {
    trace: WeakTrace<B>,
    importers: Importers,
}

/// A published arrangement: any thread may read it, any later dataflow import it. A clone is the same.
///
/// It stays published while a clone of it exists.
pub struct PublishedArrangement<B: MergeBatch> {
    core: Arc<PublishedCore<B>>,
}

impl<B: MergeBatch> Clone for PublishedArrangement<B> {
    fn clone(&self) -> Self {
        PublishedArrangement { core: self.core.clone() }
    }
}

impl<B: MergeBatch> fmt::Debug for PublishedArrangement<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublishedArrangement of {:?}", self.core.query)
    }
}

struct PublishedCore<B: MergeBatch> {
    published: Published<B>,
    query: Arc<Query>,
    offer: u64,
    engine: u64,
    mailboxes: Arc<[Arc<Mailbox>]>,
    node: u32,
}

impl<B: MergeBatch> Drop for PublishedCore<B> {
    fn drop(&mut self) {
        // A writer whose input has closed keeps its trace just for those who have this.
        self.mailboxes.iter().for_each(|mailbox| mailbox.activate(self.query.id, self.node));
    }
}

impl<B: MergeBatch + Send + Sync> SharedHandle for PublishedCore<B> {}

impl<B: MergeBatch + Send + Sync> Wake for PublishedCore<B> {
    fn wake(&self) {
        self.published.end();
    }
}

impl<'s, B: MergeBatch + Send + Sync> Arranged<'s, TraceHandle<B>> {
    /// Makes the arrangement readable from any thread and importable into dataflows installed later.
    pub fn publish(&self) -> PublishedArrangement<B> {
        let build = self.stream.scope.build.clone();
        let local = build.local().clone();
        let (query, peers, engine) = (build.install.query.clone(), local.peers, local.engine);
        let offer = build.next_offer();
        let own = self.own.as_ref().expect("an arrangement that is no view has its writer");
        let own = own.downcast_ref::<(Rc<RefCell<TraceWriter<B>>>, Importers)>().expect("stored with this type");
        let core = build.handle(|| PublishedCore {
            published: Published::<B>::new(peers),
            query: query.clone(),
            offer,
            engine,
            mailboxes: local.mailboxes.clone(),
            node: own.1.writer(),
        });
        own.0.borrow_mut().publish(&core.published, local.index);
        own.1.set_tag(query.shared.clone());
        let offered = Offer { trace: self.trace.downgrade(), importers: own.1.clone() };
        local.offers.borrow_mut().insert(offer, Box::new(offered));
        let waiter: std::sync::Weak<PublishedCore<B>> = Arc::downgrade(&core);
        query.register(waiter);
        PublishedArrangement { core }
    }
}

/// What can be held readable from any thread: see [`Collection::subscribe_holding`].
pub trait Holdable<T: Timestamp> {
    /// A hold on each shard, as far back as it can be read.
    fn hold_committed(&self) -> Hold<T>;
}

impl<B: MergeBatch + Send + Sync> Holdable<B::Time> for PublishedArrangement<B> {
    fn hold_committed(&self) -> Hold<B::Time> {
        self.core.published.take_import_hold().1
    }
}

struct HeldHistory<T: Timestamp>(ImportHold<T>);
impl<T: Timestamp> HistoryHold for HeldHistory<T> {
    fn since(&self) -> Vec<Coords> {
        vec![self.0.join().to_coords()]
    }
    fn move_to(&mut self, first: &Coords) {
        self.0.move_to(&Antichain::from_elem(T::from_coords(first))).expect("F is the join of all that is held");
    }
}

/// A published arrangement as a later dataflow sees it.
pub type Imported<'s, B> = Arranged<'s, AsOfTrace<TraceHandle<B>>>;

impl<B: MergeBatch + Send + Sync> PublishedArrangement<B> {
    /// The published value, to be read from any thread.
    pub fn published(&self) -> &Published<B> {
        &self.core.published
    }

    /// The query that publishes it.
    pub fn query(&self) -> &Arc<Query> {
        &self.core.query
    }

    /// How many importers a worker tells of what it publishes here.
    #[cfg(test)]
    pub(crate) fn importers_on(&self, local: &Local) -> usize {
        let offers = local.offers.borrow();
        let offer = offers.get(&self.core.offer).and_then(|offer| offer.downcast_ref::<Offer<B>>());
        offer.expect("it is published").importers.count()
    }

    /// The arrangement in another dataflow, from that one's first time on: its history as of then in one go, then
    /// each batch as it is minted. Copies nothing; it is the very same trace.
    ///
    /// If its source has ended, or belongs to another engine, the install fails with an error that says so.
    pub fn import<'s>(&self, scope: &Scope<'s, B::Time>) -> Imported<'s, B> {
        let build = scope.build.clone();
        let local = build.local().clone();
        let offers = local.offers.borrow();
        let offer = offers.get(&self.core.offer).filter(|_| self.core.engine == local.engine);
        let offer = offer.and_then(|offer| offer.downcast_ref::<Offer<B>>());
        let trace = offer.and_then(|offer| offer.trace.register_committed());
        let importers = offer.map(|offer| offer.importers.clone());
        drop(offers);
        build.install.note_import(self.core.query.id);
        self.core.query.add_importer(&build.install.query);
        let mut trace = trace.filter(|_| self.core.query.ending().is_none()).unwrap_or_else(|| {
            scope.fail(InstallFault::Source(self.core.query.name.clone()));
            TraceWriter::new(MergePolicy::default()).1
        });
        trace.set_owner(build.core.id);
        let published = self.core.published.clone();
        build.takes.borrow_mut().push(Box::new({
            let published = published.clone();
            move || Box::new(HeldHistory(published.take_import_hold().1))
        }));
        let mut builder = scope.node("import");
        let (output, stream) = builder.source();
        if let Some(importers) = importers {
            let source = importers.add(build.core.id, builder.index);
            build.imports.borrow_mut().push((builder.index, source));
        }
        let first = Rc::new(OnceCell::new());
        let view = AsOfTrace::pending(trace.clone(), first.clone());
        let account = Account {
            query: build.install.query.clone(),
            source: self.core.query.name.clone(),
            offer: self.core.offer,
            looked: build.install.query.clock.now(),
        };
        let worker = local.index;
        let node = Import { trace: Some(trace), published, output, worker, first, delivered: None, account };
        let node = Importing { node, capabilities: CapabilitySet::new() };
        builder.finish(Interest::Held, node);
        Arranged { stream, trace: view, own: None }
    }
}

struct Import<B: MergeBatch> {
    trace: Option<TraceHandle<B>>,
    published: Published<B>,
    output: OutputPort<B::Time, Delivery<AsOfBatch<B>>>,
    worker: usize,
    first: Rc<OnceCell<B::Time>>,
    /// The bound up to which batches have been delivered; none before the history was.
    delivered: Option<Antichain<B::Time>>,
    account: Account,
}

/// Where it is noted what the importing query's readers keep of the source's memory.
struct Account {
    query: Arc<Query>,
    source: String,
    offer: u64,
    looked: Instant,
}

/// How often it is noted: often enough for a cap, seldom enough to cost nothing.
const LOOK: Duration = Duration::from_millis(5);

impl Account {
    fn look<B: MergeBatch>(&mut self, trace: &TraceHandle<B>, published: &Published<B>, worker: usize) {
        let now = self.query.clock.now();
        if now.saturating_duration_since(self.looked) < LOOK {
            return;
        }
        self.looked = now;
        let (since, bytes) = trace.lag_of(self.query.id, &published.default_since());
        let lag = Lag { source: self.source.clone(), since: format!("{since:?}"), bytes };
        if let Err(failure) = self.query.report_lag(self.offer, worker, lag) {
            failure.raise();
        }
    }
}

struct Importing<B: MergeBatch> {
    node: Import<B>,
    capabilities: CapabilitySet<B::Time>,
}

impl<B: MergeBatch + Send + Sync> Node for Importing<B> {
    fn start(&mut self, first: &Coords) {
        let node = &mut self.node;
        self.capabilities.insert(node.output.born(first));
        let first = B::Time::from_coords(first);
        node.first.set(first).unwrap_or_else(|_| unreachable!("a node is started once"));
        if let Some(trace) = &mut node.trace {
            trace.set_since(&Antichain::from_elem(first));
        }
    }

    fn step(&mut self, _fuel: &mut Fuel) -> bool {
        let node = &mut self.node;
        let Some(trace) = &mut node.trace else { return false };
        let first = *node.first.get().expect("a node is started before it is stepped");
        // The value first, then the list: what is delivered reaches at least as far as what is called complete.
        let upper = node.published.shard(node.worker).upper.clone();
        let (batches, bound) = match &node.delivered {
            None => {
                let history = trace.cut();
                (trace.batches_through(&history).expect("the import's cut keeps this bound"), history)
            }
            Some(bound) => trace.batches_after(bound).expect("the import's cut keeps this bound"),
        };
        let again = node.delivered.is_none();
        let views: Arc<[AsOfBatch<B>]> = batches.into_iter().map(|batch| AsOfBatch::new(batch, first)).collect();
        if !views.is_empty() {
            node.output.send(&self.capabilities, Delivery { batches: views });
        }
        if node.delivered.as_ref() != Some(&bound) {
            trace.set_cut(&bound);
            node.delivered = Some(bound);
        }
        if again {
            // What it still has to deliver are batches as minted: they need no since.
            trace.set_since(&Antichain::new());
            return true;
        }
        node.account.look(trace, &node.published, node.worker);
        let frontier: Antichain<B::Time> = upper.elements().iter().map(|u| first.join(u)).collect();
        self.capabilities.must_downgrade(&frontier);
        if frontier.is_empty() {
            node.trace = None;
        }
        false
    }
}

/// A published stream of changes: later dataflows see what changes from when they are installed, and no history.
///
/// It keeps a trace of what its importers have not taken yet, and nothing else. It stays published while a clone of it
/// exists.
pub struct PublishedStream<T: Timestamp, D: Columnar, R: Semigroup = i64> {
    changes: PublishedArrangement<OrdBatch<D, (), T, R>>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Clone for PublishedStream<T, D, R> {
    fn clone(&self) -> Self {
        PublishedStream { changes: self.changes.clone() }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> fmt::Debug for PublishedStream<T, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublishedStream of {:?}", self.changes.core.query)
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Collection<'_, T, D, R> {
    /// Shares what changes here with dataflows installed later, consolidated, without a history.
    ///
    /// # Panics
    /// If times are not totally ordered: "from now on" says nothing then.
    pub fn publish_stream(&self) -> PublishedStream<T, D, R> {
        assert!(T::TOTAL, "a stream is published from a time on, so times must be totally ordered");
        let arranged = self.arrange_by_self();
        let own = arranged.own.as_ref().and_then(|own| own.downcast_ref::<(Rc<RefCell<TraceWriter<_>>>, Importers)>());
        let own: &(Rc<RefCell<TraceWriter<OrdBatch<D, (), T, R>>>>, Importers) = own.expect("stored with this type");
        own.0.borrow_mut().keep_no_history();
        PublishedStream { changes: arranged.publish() }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> PublishedStream<T, D, R> {
    /// The changes after the dataflow's first time; that is a time that is complete on every worker, or about to be. Where
    /// that is the least time there is, the changes at it too: nothing was complete before it.
    ///
    /// Fails the install as `PublishedArrangement::import` does.
    pub fn import<'s>(&self, scope: &Scope<'s, T>) -> Collection<'s, T, D, R> {
        let first = scope.build.first.clone();
        let changes = self.changes.import(scope).as_collection(|datum, ()| <D as Columnar>::to_owned(datum));
        changes.filter_times(move |time| {
            let first = first.get().expect("a dataflow's first time is known before it runs");
            time.to_coords() != *first || *time == T::minimum()
        })
    }

    /// The query that publishes it.
    pub fn query(&self) -> &Arc<Query> {
        self.changes.query()
    }
}
