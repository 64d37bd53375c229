//! What is known of a query outside its workers: its name, its end, and who waits for it.
//!
//! The three ends stay apart: CLOSED is no state here (its frontiers become empty, and that is all); RETIRED and
//! POISONED are an [`Ending`], set once, by whoever is first. Every waiter on a handle of the query checks it, and
//! setting it wakes them all.
#![forbid(unsafe_code)]

use super::clock::Clock;
use super::merging::{MergeGauges, MergeState};
use super::message::DataflowId;
use crate::order::DiffOverflow;
use crate::sync::{Counter, Mutex, Padded};
use kpg_arena::OutOfMemory;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Weak};

/// Why user code, or what it asked for, ended a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// A panic in user code: what it said.
    Panic(String),
    /// A diff that its type cannot hold.
    DiffOverflow,
    /// An allocation beyond a cap, or refused by the system.
    OutOfMemory(String),
    /// A message or an update at a time that was not held.
    NotHeld(String),
}

impl Failure {
    /// Reads what a caught unwind carried.
    pub fn from_payload(payload: Box<dyn Any + Send>) -> Failure {
        match payload.downcast::<DiffOverflow>() {
            Ok(_) => Failure::DiffOverflow,
            Err(payload) => match payload.downcast::<OutOfMemory>() {
                Ok(error) => Failure::OutOfMemory(error.to_string()),
                Err(payload) => match payload.downcast::<Failure>() {
                    Ok(failure) => *failure,
                    Err(payload) => {
                        let text = panic_text(&*payload);
                        // A payload is foreign code, and its drop may panic too.
                        quietly(move || drop(payload));
                        Failure::Panic(text)
                    }
                },
            },
        }
    }

    /// Unwinds to the node that runs, which ends its query with this failure; no panic hook is run.
    pub fn raise(self) -> ! {
        std::panic::resume_unwind(Box::new(self))
    }
}

/// Runs what may panic where nobody is to hear of it.
pub(super) fn quietly(call: impl FnOnce()) {
    if let Err(payload) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)) {
        // Its drop may panic as well: it is not run.
        std::mem::forget(payload);
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic with a payload that is no text".to_string()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Panic(text) => write!(f, "panicked: {text}"),
            Failure::DiffOverflow => DiffOverflow.fmt(f),
            Failure::OutOfMemory(text) | Failure::NotHeld(text) => f.write_str(text),
        }
    }
}

/// How a query ended, other than by closing its inputs.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// Retired by its owner.
    Retired,
    /// User code failed, at the named operator.
    Poisoned {
        /// The operator or stage.
        operator: String,
        /// What happened there.
        failure: Failure,
    },
    /// A query that it imports from ended.
    Source {
        /// That query's name.
        query: String,
        /// How it ended.
        ending: Box<Ending>,
    },
    /// The workers built different graphs, or the install was given up.
    NotInstalled,
    /// The engine shut down.
    Shutdown,
}

/// Someone who waits for something of a query, and must look again when it ends.
pub trait Wake: Send + Sync {
    /// Wakes all who wait here.
    fn wake(&self);
}

/// A query as its handles see it, on any thread.
pub struct Query {
    /// Its dataflow's number.
    pub id: DataflowId,
    /// The name it was installed under.
    pub name: String,
    /// All its bytes: those it holds for itself and those of what it publishes. They have its cap.
    pub all: kpg_arena::Tag,
    /// The bytes it holds for itself.
    pub private: kpg_arena::Tag,
    /// The bytes of what it publishes.
    pub shared: kpg_arena::Tag,
    /// The clock of its engine.
    pub clock: Clock,
    /// Not 0 once `state.ending` is set; so that asking takes no lock while the query runs.
    ended: Counter,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ending: Option<Ending>,
    // Steps of its nodes, by worker.
    steps: Vec<Arc<Padded<Counter>>>,
    waiters: Vec<Weak<dyn Wake>>,
    importers: Vec<Weak<Query>>,
    lags: BTreeMap<(u64, usize), Lag>,
    // By node, with the node's name.
    arrangements: BTreeMap<u32, (String, Arc<MergeGauges>)>,
}

/// What a query keeps of one worker's part of another query's arrangement, because it lags.
#[derive(Clone, Debug, PartialEq)]
pub struct Lag {
    /// The query that publishes the arrangement.
    pub source: String,
    /// From where on this query still reads.
    pub since: String,
    /// About how many bytes could be folded without it.
    pub bytes: usize,
}

impl fmt::Debug for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query {} ({})", self.id, self.name)
    }
}

impl Query {
    /// A query that runs.
    pub fn new(id: DataflowId, name: &str, cap_bytes: Option<usize>, clock: Clock) -> Arc<Query> {
        let all = kpg_arena::Tag::with_cap(name, cap_bytes);
        Arc::new(Query {
            id,
            name: name.to_string(),
            private: all.part(name),
            shared: all.part(format!("{name} (published)")),
            all,
            ended: Counter::default(),
            clock,
            state: Mutex::new(State::default()),
        })
    }

    /// How it ended, if it has.
    pub fn ending(&self) -> Option<Ending> {
        if self.ended.get() == 0 {
            // Who was woken for the end sees it: the locks of what it waits for order this.
            return None;
        }
        self.state.lock().ending.clone()
    }

    /// Where one more worker is to count the steps of its nodes.
    pub(crate) fn count_steps(&self) -> Arc<Padded<Counter>> {
        let counter = Arc::new(Padded(Counter::default()));
        self.state.lock().steps.push(counter.clone());
        counter
    }

    /// Steps of its nodes, on all workers.
    pub fn steps(&self) -> u64 {
        self.state.lock().steps.iter().map(|counter| counter.0.get()).sum()
    }

    /// Notes what the query keeps of arrangement `offer` on a worker.
    ///
    /// # Errors
    /// If that, with what it keeps elsewhere and its own bytes, published ones included, is beyond its cap.
    pub fn report_lag(&self, offer: u64, worker: usize, lag: Lag) -> Result<(), Failure> {
        let mut state = self.state.lock();
        if lag.bytes == 0 {
            state.lags.remove(&(offer, worker));
            return Ok(());
        }
        let text = format!("it keeps {} bytes of {:?} from {} on", lag.bytes, lag.source, lag.since);
        state.lags.insert((offer, worker), lag);
        let kept: usize = state.lags.values().map(|lag| lag.bytes).sum();
        let own = self.all.live_bytes();
        match self.all.cap_bytes() {
            Some(cap) if kept + own > cap => Err(Failure::OutOfMemory(format!(
                "its lag goes beyond its cap: {text}, in all {kept} bytes beside {own} of its own, the cap is {cap}: \
                 advance its inputs, or let them follow"
            ))),
            _ => Ok(()),
        }
    }

    /// Where the workers, `peers` in all, tell how the merging of the arrangement is that a node keeps.
    pub fn arrangement(&self, node: u32, name: &str, peers: usize) -> Arc<MergeGauges> {
        let mut state = self.state.lock();
        let new = || (name.to_string(), Arc::new(MergeGauges::new(peers)));
        state.arrangements.entry(node).or_insert_with(new).1.clone()
    }

    /// The arrangements that it keeps, in the order in which they were made: their names, and how their merging is.
    pub fn arrangements(&self) -> Vec<(String, MergeState)> {
        self.state.lock().arrangements.values().map(|(name, gauges)| (name.clone(), gauges.read())).collect()
    }

    /// What it keeps of others' arrangements because it lags.
    pub fn lags(&self) -> Vec<Lag> {
        self.state.lock().lags.values().cloned().collect()
    }

    /// Registers a waiter for the end; one that is dropped is forgotten.
    pub fn register(&self, waiter: Weak<dyn Wake>) {
        let mut state = self.state.lock();
        if state.waiters.len() == state.waiters.capacity() {
            state.waiters.retain(|w| w.strong_count() > 0);
        }
        state.waiters.push(waiter);
    }

    /// Notes that `importer` imports from this query, and so gets an error when this one ends.
    pub fn add_importer(&self, importer: &Arc<Query>) {
        let mut state = self.state.lock();
        state.importers.retain(|w| w.strong_count() > 0);
        if !state.importers.iter().any(|w| std::ptr::eq(w.as_ptr(), Arc::as_ptr(importer))) {
            state.importers.push(Arc::downgrade(importer));
        }
    }

    /// The names of those that import from this query, or are being installed to, transitively, and have not ended;
    /// nearer ones first.
    pub fn importers(&self) -> Vec<String> {
        let live = |query: &Query| -> Vec<Arc<Query>> {
            let importers: Vec<_> = query.state.lock().importers.iter().filter_map(Weak::upgrade).collect();
            importers.into_iter().filter(|importer| importer.ending().is_none()).collect()
        };
        let mut all = live(self);
        let mut next = 0;
        while let Some(query) = all.get(next).cloned() {
            for importer in live(&query) {
                if !all.iter().any(|known| Arc::ptr_eq(known, &importer)) {
                    all.push(importer);
                }
            }
            next += 1;
        }
        all.iter().map(|query| query.name.clone()).collect()
    }

    /// Ends the query, unless it has ended; wakes every waiter, and transitively its importers'. True iff this call
    /// ended it.
    pub fn end(&self, ending: Ending) -> bool {
        let (waiters, importers) = {
            let mut state = self.state.lock();
            if state.ending.is_some() {
                return false;
            }
            state.ending = Some(ending.clone());
            self.ended.set(1);
            (std::mem::take(&mut state.waiters), std::mem::take(&mut state.importers))
        };
        // Outside the lock: a waiter's own lock may be held by someone who asks for the ending.
        for waiter in waiters.iter().filter_map(Weak::upgrade) {
            waiter.wake();
        }
        for importer in importers.iter().filter_map(Weak::upgrade) {
            let ending = match &ending {
                Ending::Shutdown => Ending::Shutdown,
                ending => Ending::Source { query: self.name.clone(), ending: Box::new(ending.clone()) },
            };
            importer.end(ending);
        }
        true
    }
}
