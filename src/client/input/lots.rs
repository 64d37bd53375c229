//! What the sessions of an input share, and its node on each worker with them: lots.
//!
//! ```text
//! common lot:    sessions of all workers    each worker's node holds the meet of their times
//! a worker's:    sessions that live there   its node alone does; the others hear of it as of any capability
//! ```
//! A session moves to a worker's lot when its time moves by small steps on the thread that owns the worker: from then on
//! nothing that it does is written where another worker writes.
//!
//! Invariants: a worker takes queue and frontier of a lot together. A session that moves is in the new lot before it leaves
//! the old one, and a worker looks at the common lot first; so it is never missed.
#![forbid(unsafe_code)]

use crate::client::error::Error;
use crate::client::waiting;
use crate::dataflow::{SharedHandle, Updates};
use crate::order::{Antichain, Semigroup, Timestamp};
use crate::runtime::{Command, CommandLog, DataflowId, Ending, Failure, Mailbox, Query, Wake};
use crate::sync::{Counter, Monitor, MonitorGuard, Padded};
use kpg_arena::OutOfMemory;
use kpg_columnar::Columnar;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::Instant;

/// So many chunks of a thread that owns a worker wait for that; then the others get their share, if the session is of all.
pub(super) const NEAR: usize = 16;

/// What part of a query's cap the queue of one of its inputs may take up, so that who puts in too fast waits, rather than
/// leave the workers without memory for what they have taken.
pub(super) const QUEUE_SHARE: usize = 4;

pub(super) struct Session<T> {
    /// None: the dataflow's first time, as long as that is not known.
    pub(super) time: Option<T>,
    /// Under a number of its own, never used again: its place is.
    pub(super) follows: Option<u64>,
}

pub(super) struct State<T: Timestamp, D: Columnar, R: Semigroup> {
    pub(super) sessions: Vec<Option<Session<T>>>,
    pub(super) first: Option<T>,
    /// The install's own session.
    pub(super) installing: bool,
    /// By worker; in a worker's own lot, its only.
    pub(super) queues: Vec<Vec<Updates<D, T, R>>>,
    pub(super) queued: usize,
    pub(super) queued_bytes: usize,
    pub(super) capacity: usize,
    pub(super) turn: usize,
    pub(super) followers: u64,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> State<T, D, R> {
    pub(super) fn new(queues: usize, capacity: usize, installing: bool) -> Self {
        State {
            sessions: Vec::new(),
            first: None,
            installing,
            queues: (0..queues).map(|_| Vec::new()).collect(),
            queued: 0,
            queued_bytes: 0,
            capacity,
            turn: 0,
            followers: 0,
        }
    }
    pub(super) fn time(&self, session: usize) -> T {
        let session = self.sessions[session].as_ref().expect("a live session's number");
        session.time.or(self.first).unwrap_or_else(T::minimum)
    }
    pub(super) fn times(&self) -> impl Iterator<Item = T> {
        let first = self.first.unwrap_or_else(T::minimum);
        let sessions = self.sessions.iter().flatten().map(move |session| session.time.unwrap_or(first));
        sessions.chain(self.installing.then_some(first))
    }
    pub(super) fn frontier(&self) -> Antichain<T> {
        self.times().collect()
    }
    /// Gives a session another time, or ends it: whether the frontier moved, of which all workers have to hear. It did
    /// if nobody holds any more what this session held.
    pub(super) fn set(&mut self, session: usize, to: Option<T>) -> bool {
        let at = self.time(session);
        match to {
            Some(time) => self.sessions[session].as_mut().expect("a live session's number").time = Some(time),
            None => self.sessions[session] = None,
        }
        !self.times().any(|time| time.less_equal(&at))
    }
    /// Takes what waits in a queue, and the frontier.
    pub(super) fn take(&mut self, queue: usize) -> (Vec<Updates<D, T, R>>, Antichain<T>) {
        let chunks = std::mem::take(&mut self.queues[queue]);
        self.queued -= chunks.iter().map(Updates::len).sum::<usize>();
        self.queued_bytes -= chunks.iter().map(Updates::bytes).sum::<usize>();
        (chunks, self.frontier())
    }
    /// Queues a chunk; gives in which queue: for the one that this thread owns, if that has not many, so that what it
    /// wrote is read by the same core.
    pub(super) fn queue(&mut self, chunk: Updates<D, T, R>, own: Option<usize>) -> usize {
        self.queued += chunk.len();
        self.queued_bytes += chunk.bytes();
        let worker = own.filter(|own| self.queues[*own].len() < NEAR).unwrap_or_else(|| {
            let next = (self.turn + 1) % self.queues.len();
            std::mem::replace(&mut self.turn, next)
        });
        self.queues[worker].push(chunk);
        worker
    }
    pub(super) fn open(&mut self, session: Session<T>) -> usize {
        match self.sessions.iter().position(Option::is_none) {
            Some(index) => {
                self.sessions[index] = Some(session);
                index
            }
            None => {
                self.sessions.push(Some(session));
                self.sessions.len() - 1
            }
        }
    }
}

pub(super) type Lot<T, D, R> = Padded<Monitor<State<T, D, R>>>;

pub(super) struct InputCore<T: Timestamp, D: Columnar, R: Semigroup> {
    /// One a worker, and the common one.
    pub(super) lots: Box<[Lot<T, D, R>]>,
    /// How often the common lot has changed; counted under its lock, so that a worker need not take that.
    pub(super) changes: Padded<Counter>,
    pub(super) query: Arc<Query>,
    pub(super) commands: Arc<CommandLog>,
    pub(super) mailboxes: Arc<[Arc<Mailbox>]>,
    pub(super) dataflow: DataflowId,
    pub(super) node: u32,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> InputCore<T, D, R> {
    pub(super) fn lot(&self, lot: usize) -> &Monitor<State<T, D, R>> {
        &self.lots[lot].0
    }
    pub(super) fn common(&self) -> usize {
        self.mailboxes.len()
    }
    /// Changes the common lot: those who look without its lock see that it has.
    pub(super) fn lock(&self, lot: usize) -> MonitorGuard<'_, State<T, D, R>> {
        let state = self.lot(lot).lock();
        if lot == self.common() {
            self.changes.0.set(self.changes.0.get() + 1);
        }
        state
    }
    /// Has those hear whose frontier a lot's may move.
    pub(super) fn wake_workers(&self, lot: usize) {
        let all = lot == self.common();
        let of_lot = |worker: &usize| all || *worker == lot;
        (0..self.mailboxes.len()).filter(of_lot).for_each(|worker| self.wake_worker(worker));
    }
    /// Queues a chunk in a lot: for which worker.
    pub(super) fn queue(
        &self,
        lot: usize,
        state: &mut State<T, D, R>,
        chunk: Updates<D, T, R>,
        own: Option<usize>,
    ) -> usize {
        if lot == self.common() {
            self.changes.0.set(self.changes.0.get() + 1);
            return state.queue(chunk, own);
        }
        state.queue(chunk, None);
        lot
    }
    pub(super) fn wake_worker(&self, worker: usize) {
        self.mailboxes[worker].activate(self.dataflow, self.node);
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> SharedHandle for InputCore<T, D, R> {
    fn installed(&self) {
        self.lock(self.common()).installing = false;
        self.wake_workers(self.common());
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Wake for InputCore<T, D, R> {
    fn wake(&self) {
        for lot in &self.lots {
            drop(lot.0.lock());
            lot.0.notify_all();
        }
    }
}

/// What those wait for who put in.
pub(super) const ROOM: &str = "there was room in the input's queue";

impl<T: Timestamp, D: Columnar, R: Semigroup> InputCore<T, D, R> {
    /// A copy of what was gathered whose bytes are the query's, from now until the workers have done with them. Its cap
    /// is a bound of the queue as well: it waits until the workers have taken something, and is the query's end only if
    /// nothing is left to take.
    pub(super) fn on_account(
        &self,
        gathered: &Updates<D, T, R>,
        deadline: Option<Instant>,
    ) -> Result<Updates<D, T, R>, Error> {
        let mut none_queued = false;
        loop {
            let copied = catch_unwind(AssertUnwindSafe(|| {
                let _tag = self.query.private.enter();
                let mut chunk = Updates::default();
                chunk.extend_from(gathered, 0, gathered.len());
                chunk
            }));
            let payload = match copied {
                Ok(chunk) => return Ok(chunk),
                Err(payload) if payload.is::<OutOfMemory>() => payload,
                // A user's `Clone`: it is on the user's own thread.
                Err(payload) => resume_unwind(payload),
            };
            let fullest = self.lots.iter().map(|lot| (lot.0.lock().queued, &lot.0)).max_by_key(|(queued, _)| *queued);
            let Some((queued, lot)) = fullest.filter(|(queued, _)| *queued > 0) else {
                if !std::mem::replace(&mut none_queued, true) {
                    // The workers may have taken it all just now.
                    continue;
                }
                let ending =
                    Ending::Poisoned { operator: "input".to_string(), failure: Failure::from_payload(payload) };
                if self.query.end(ending.clone()) {
                    self.commands.append(Command::End(self.dataflow, ending));
                    self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
                }
                Error::check(&self.query)?;
                continue;
            };
            waiting::wait(&self.query.clock, lot, deadline, ROOM, |state| match Error::ended(&self.query) {
                Some(error) => Some(Err(error)),
                None if state.queued < queued || state.queued == 0 => Some(Ok(())),
                None => None,
            })?;
        }
    }

    /// Moves a session up to the meet of a frontier, if it still follows under this number: whether the input's frontier
    /// moved.
    pub(super) fn follow_to(&self, lot: usize, session: usize, number: u64, complete: &Antichain<T>) -> Option<bool> {
        let mut state = self.lock(lot);
        state.sessions.get(session)?.as_ref().filter(|live| live.follows == Some(number))?;
        let Some(to) = complete.elements().iter().copied().reduce(|a, b| a.meet(&b)) else { return Some(false) };
        let at = state.time(session);
        Some(state.set(session, Some(at.join(&to))))
    }
}
