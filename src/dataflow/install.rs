//! What the workers share while one dataflow is installed on all of them: its handles, its first time, its digests.
//!
//! Invariants: the n-th handle made in the closure is one object on all workers; F is fixed by the first worker that
//! finishes the closure and is the same for all; no node runs before all digests are known to agree.
#![forbid(unsafe_code)]

use crate::order::{Coords, Lattice};
use crate::runtime::{DataflowId, Query};
use crate::sync::Mutex;
use std::any::Any;
use std::sync::Arc;

/// A hold that an install took on an imported arrangement.
pub trait HistoryHold: Send {
    /// The committed since of every shard.
    fn since(&self) -> Vec<Coords>;
    /// Moves it up to the first time.
    fn move_to(&mut self, first: &Coords);
}

/// A handle that the closure makes: one object on all workers.
pub trait SharedHandle: Any + Send + Sync {
    /// All workers have left the closure, and its result was handed over: from now on the handles' own users decide.
    fn installed(&self) {}
}

/// Takes the hold of one import.
pub type TakeHold = Box<dyn FnOnce() -> Box<dyn HistoryHold> + Send>;

/// Why an install failed, on some worker.
#[derive(Clone, Debug, PartialEq)]
pub enum InstallFault {
    /// The graph is not one that can be run.
    Graph(String),
    /// The source of an import has ended, or belongs to another engine.
    Source(String),
    /// Handles of different types at the same place of the closure on two workers.
    Differs,
}

/// One install, shared by its workers and the thread that asked for it.
pub struct InstallShared {
    /// The query.
    pub query: Arc<Query>,
    state: Mutex<State>,
}

struct State {
    handles: Vec<(Arc<dyn Any + Send + Sync>, Arc<dyn SharedHandle>)>,
    first: Option<Coords>,
    holds: Vec<Box<dyn HistoryHold>>,
    digests: Vec<Option<u64>>,
    imports: Vec<DataflowId>,
    fault: Option<InstallFault>,
    given_up: bool,
}

/// What the digests say so far.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Agreement {
    /// Some worker has not built yet.
    Open,
    /// All have built the same.
    Agreed,
    /// They have not, or the install failed.
    Failed,
}

impl InstallShared {
    /// An install on `peers` workers.
    pub fn new(query: Arc<Query>, peers: usize) -> Arc<Self> {
        let state = State {
            handles: Vec::new(),
            first: None,
            holds: Vec::new(),
            digests: vec![None; peers],
            imports: Vec::new(),
            fault: None,
            given_up: false,
        };
        Arc::new(InstallShared { query, state: Mutex::new(state) })
    }

    /// The `index`-th handle: made by the first worker that gets there.
    pub fn handle<H: SharedHandle>(&self, index: usize, make: impl Fn() -> H) -> Arc<H> {
        let existing = self.state.lock().handles.get(index).map(|handle| handle.0.clone());
        let any = match existing {
            Some(any) => any,
            None => {
                let made = Arc::new(make());
                let mut state = self.state.lock();
                match state.handles.get(index) {
                    Some(handle) => handle.0.clone(),
                    None => {
                        state.handles.push((made.clone(), made.clone()));
                        made
                    }
                }
            }
        };
        any.downcast::<H>().unwrap_or_else(|_| {
            self.fail(InstallFault::Differs);
            // Of no use to anyone: the install fails. But this worker's closure can go on to its end.
            Arc::new(make())
        })
    }

    /// Notes the first fault; the install then fails on all workers.
    pub fn fail(&self, fault: InstallFault) {
        self.state.lock().fault.get_or_insert(fault);
    }

    /// Notes that the dataflow imports from `source`.
    pub fn note_import(&self, source: DataflowId) {
        let mut state = self.state.lock();
        if !state.imports.contains(&source) {
            state.imports.push(source);
        }
    }

    /// The dataflows that it imports from.
    pub fn imports(&self) -> Vec<DataflowId> {
        self.state.lock().imports.clone()
    }

    /// F, the first time: the first to ask takes the holds and joins their sinces; the others find it.
    pub fn first_time(&self, minimum: Coords, takes: Vec<TakeHold>) -> Coords {
        let mut state = self.state.lock();
        if let Some(first) = state.first {
            return first;
        }
        let mut first = minimum;
        for take in takes {
            let hold = take();
            for time in hold.since() {
                first = first.join(&time);
            }
            state.holds.push(hold);
        }
        for hold in &mut state.holds {
            hold.move_to(&first);
        }
        state.first = Some(first);
        first
    }

    /// A worker has built: what it built. The last one releases the holds.
    pub fn built(&self, worker: usize, digest: u64) {
        let mut state = self.state.lock();
        state.digests[worker] = Some(digest);
        if state.digests.iter().all(Option::is_some) {
            let holds = std::mem::take(&mut state.holds);
            drop(state);
            drop(holds);
        }
    }

    /// The install failed: workers that have built drop what they built, its holds end.
    pub fn give_up(&self) {
        let mut state = self.state.lock();
        state.given_up = true;
        let holds = std::mem::take(&mut state.holds);
        let handles = std::mem::take(&mut state.handles);
        drop(state);
        drop((holds, handles));
    }

    /// Whether all workers have built, and the same.
    pub fn agreement(&self) -> Agreement {
        let state = self.state.lock();
        if state.given_up || state.fault.is_some() {
            return Agreement::Failed;
        }
        let mut digests = state.digests.iter();
        let first = digests.next().copied().flatten();
        if first.is_none() || state.digests.iter().any(Option::is_none) {
            Agreement::Open
        } else if digests.all(|digest| *digest == first) {
            Agreement::Agreed
        } else {
            Agreement::Failed
        }
    }

    /// The first fault.
    pub fn fault(&self) -> Option<InstallFault> {
        self.state.lock().fault.clone()
    }

    /// Ends the install's own session of every handle.
    pub fn release_handles(&self) {
        let handles = std::mem::take(&mut self.state.lock().handles);
        handles.iter().for_each(|(_, handle)| handle.installed());
    }
}
