//! Inputs: updates from any thread into a dataflow, bounded, at times that go forward.
//!
//! ```text
//! session, session, … ─ chunks ─▶ a queue a worker ─ taken whole, with the frontier, under one lock ─▶ input node
//! ```
//! Invariants: a session's updates are queued before its time moves; a worker takes queue and frontier together; so what
//! it takes is at or after the capability it holds. The input's time is the meet over its live sessions.
#![forbid(unsafe_code)]

use super::error::Error;
use super::waiting;
use crate::dataflow::{CapabilitySet, Closure, Fuel, Interest, Node, OutputPort, Scope, SharedHandle, Updates};
use crate::operators::{Chunk, Collection, PublishedArrangement};
use crate::order::{Antichain, Coords, Semigroup, Timestamp};
use crate::runtime::{Command, CommandLog, DataflowId, Ending, Failure, Mailbox, Query, Wake};
use crate::sync::Monitor;
use crate::trace::MergeBatch;
use kpg_arena::OutOfMemory;
use kpg_columnar::Columnar;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Updates that a session gathers before it queues them.
const CHUNK: usize = 1024;

/// Updates that wait in an input before `insert` waits, unless configured.
pub(crate) const CAPACITY: usize = 1 << 20;

/// So many chunks of a thread that owns a worker wait for that; then the others get their share.
const NEAR: usize = 16;

/// What part of a query's cap the queue of one of its inputs may take up, so that who puts in too fast waits, rather than
/// leave the workers without memory for what they have taken.
const QUEUE_SHARE: usize = 4;

struct Session<T> {
    /// None: the dataflow's first time, as long as that is not known.
    time: Option<T>,
    /// Under a number of its own, never used again: its place is.
    follows: Option<u64>,
}

struct State<T: Timestamp, D: Columnar, R: Semigroup> {
    sessions: Vec<Option<Session<T>>>,
    first: Option<T>,
    /// The install's own session.
    installing: bool,
    queues: Vec<Vec<Updates<D, T, R>>>,
    queued: usize,
    queued_bytes: usize,
    capacity: usize,
    turn: usize,
    followers: u64,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> State<T, D, R> {
    fn time(&self, session: usize) -> T {
        let session = self.sessions[session].as_ref().expect("a live session's number");
        session.time.or(self.first).unwrap_or_else(T::minimum)
    }
    fn times(&self) -> impl Iterator<Item = T> {
        let first = self.first.unwrap_or_else(T::minimum);
        let sessions = self.sessions.iter().flatten().map(move |session| session.time.unwrap_or(first));
        sessions.chain(self.installing.then_some(first))
    }
    fn frontier(&self) -> Antichain<T> {
        self.times().collect()
    }
    /// Gives a session another time, or ends it: whether the frontier moved, of which all workers have to hear. It did
    /// if nobody holds any more what this session held.
    fn set(&mut self, session: usize, to: Option<T>) -> bool {
        let at = self.time(session);
        match to {
            Some(time) => self.sessions[session].as_mut().expect("a live session's number").time = Some(time),
            None => self.sessions[session] = None,
        }
        !self.times().any(|time| time.less_equal(&at))
    }
    /// Queues a chunk; gives for which worker: for the one that this thread owns, if that has not many, so that what it
    /// wrote is read by the same core.
    fn queue(&mut self, chunk: Updates<D, T, R>, own: Option<usize>) -> usize {
        self.queued += chunk.len();
        self.queued_bytes += chunk.bytes();
        let worker = own.filter(|own| self.queues[*own].len() < NEAR).unwrap_or_else(|| {
            let next = (self.turn + 1) % self.queues.len();
            std::mem::replace(&mut self.turn, next)
        });
        self.queues[worker].push(chunk);
        worker
    }
    fn open(&mut self, session: Session<T>) -> usize {
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

struct InputCore<T: Timestamp, D: Columnar, R: Semigroup> {
    state: Monitor<State<T, D, R>>,
    query: Arc<Query>,
    commands: Arc<CommandLog>,
    mailboxes: Arc<[Arc<Mailbox>]>,
    dataflow: DataflowId,
    node: u32,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> InputCore<T, D, R> {
    fn wake_workers(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.activate(self.dataflow, self.node));
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> SharedHandle for InputCore<T, D, R> {
    fn installed(&self) {
        self.state.lock().installing = false;
        self.wake_workers();
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Wake for InputCore<T, D, R> {
    fn wake(&self) {
        drop(self.state.lock());
        self.state.notify_all();
    }
}

/// One session of an input: `Send`, for one thread at a time; clone it for others.
///
/// Updates are gathered and queued when there are many, at `flush`, and when the time moves. The input's time is the meet
/// over its live sessions; dropping one releases it, dropping the last closes the input.
pub struct Input<T: Timestamp, D: Columnar, R: Semigroup = i64> {
    core: Arc<InputCore<T, D, R>>,
    session: usize,
    time: Option<T>,
    follows: bool,
    buffer: Updates<D, T, R>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> fmt::Debug for Input<T, D, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input of {:?} at {:?}", self.core.query, self.time)
    }
}

impl<'s, T: Timestamp> Scope<'s, T> {
    /// An input, and the collection of what is put in. It starts at the dataflow's first time.
    pub fn input<D: Columnar>(&self) -> (Input<T, D, i64>, Collection<'s, T, D, i64>) {
        self.input_with::<D, i64>(CAPACITY)
    }

    /// As `input`, with diffs of another type, and at most about `capacity` updates that wait.
    pub fn input_with<D: Columnar, R: Semigroup>(&self, capacity: usize) -> (Input<T, D, R>, Collection<'s, T, D, R>) {
        let mut builder = self.node("input");
        let (output, stream) = builder.source();
        let build = self.build.clone();
        let (local, query) = (build.local().clone(), build.install.query.clone());
        let core = build.handle(|| InputCore::<T, D, R> {
            state: Monitor::new(State {
                sessions: Vec::new(),
                first: None,
                installing: true,
                queues: (0..local.peers).map(|_| Vec::new()).collect(),
                queued: 0,
                queued_bytes: 0,
                capacity,
                turn: 0,
                followers: 0,
            }),
            query: query.clone(),
            commands: local.commands.clone(),
            mailboxes: local.mailboxes.clone(),
            dataflow: build.core.id,
            node: builder.index,
        });
        let waiter: std::sync::Weak<InputCore<T, D, R>> = Arc::downgrade(&core);
        query.register(waiter);
        let session = core.state.lock().open(Session { time: None, follows: None });
        let node = InputNode { core: core.clone(), worker: local.index, output, capabilities: CapabilitySet::new() };
        builder.finish(Interest::Held, node);
        let input = Input { core, session, time: None, follows: false, buffer: Updates::default() };
        (input, Collection::new(stream))
    }

    /// A collection that is `data` at the dataflow's first time and never changes. Worker 0's iterator counts.
    pub fn constant<D: Columnar>(&self, data: impl IntoIterator<Item = D>) -> Collection<'s, T, D, i64> {
        let mut builder = self.node("constant");
        let (output, stream) = builder.source();
        let mut updates = Updates::<D, T, i64>::default();
        if self.index() == 0 {
            for datum in data {
                updates.push(datum.borrow(), T::minimum(), 1);
            }
        }
        builder.finish(Interest::Held, Constant { output, updates: Some(updates), capability: CapabilitySet::new() });
        Collection::new(stream)
    }

    /// A stream without updates, closed from the start.
    pub fn empty<D: Columnar, R: Semigroup>(&self) -> Collection<'s, T, D, R> {
        let mut builder = self.node("empty");
        let (_, stream) = builder.output();
        builder.finish(Interest::Held, Closure(|_: &mut Fuel| false));
        Collection::new(stream)
    }
}

struct Constant<T: Timestamp, D: Columnar> {
    output: OutputPort<T, Chunk<D, T, i64>>,
    updates: Option<Updates<D, T, i64>>,
    capability: CapabilitySet<T>,
}

impl<T: Timestamp, D: Columnar> Node for Constant<T, D> {
    fn start(&mut self, first: &Coords) {
        self.capability.insert(self.output.born(first));
    }
    fn step(&mut self, _: &mut Fuel) -> bool {
        if let Some(updates) = self.updates.take().filter(|updates| !updates.is_empty()) {
            let mut at_first = Updates::default();
            for (datum, _, diff) in updates.iter() {
                at_first.push(datum, *self.capability.elements()[0].time(), diff);
            }
            self.output.send_all(&self.capability, at_first);
        }
        self.capability.clear();
        false
    }
}

struct InputNode<T: Timestamp, D: Columnar, R: Semigroup> {
    core: Arc<InputCore<T, D, R>>,
    worker: usize,
    output: OutputPort<T, Chunk<D, T, R>>,
    capabilities: CapabilitySet<T>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Node for InputNode<T, D, R> {
    fn start(&mut self, first: &Coords) {
        let capability = self.output.born(first);
        self.core.state.lock().first = Some(*capability.time());
        self.capabilities.insert(capability);
    }

    fn step(&mut self, _: &mut Fuel) -> bool {
        if self.capabilities.is_empty() {
            return false;
        }
        let (chunks, frontier) = {
            let mut state = self.core.state.lock();
            let chunks = std::mem::take(&mut state.queues[self.worker]);
            state.queued -= chunks.iter().map(Updates::len).sum::<usize>();
            state.queued_bytes -= chunks.iter().map(Updates::bytes).sum::<usize>();
            (chunks, state.frontier())
        };
        if !chunks.is_empty() {
            self.core.state.notify_all();
        }
        for chunk in chunks {
            self.output.send(&self.capabilities, Rc::new(chunk));
        }
        self.capabilities.must_downgrade(&frontier);
        false
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Input<T, D, R> {
    /// This session's time: updates are made at it unless told otherwise.
    pub fn time(&self) -> T {
        match self.time {
            Some(time) if !self.follows => time,
            _ => self.core.state.lock().time(self.session),
        }
    }

    /// Adds an update at this session's time. What fails was not added.
    ///
    /// # Errors
    /// When the query has ended. Waits while the queue is full; inside a step that is `WouldBlock`.
    pub fn update(&mut self, datum: D, diff: R) -> Result<(), Error> {
        self.update_until(datum, diff, None)
    }

    /// As `update`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `update`; `Deadline`.
    pub fn update_timeout(&mut self, datum: D, diff: R, timeout: Duration) -> Result<(), Error> {
        let deadline = self.deadline(timeout);
        self.update_until(datum, diff, deadline)
    }

    fn update_until(&mut self, datum: D, diff: R, deadline: Option<Instant>) -> Result<(), Error> {
        if self.buffer.is_empty() {
            Error::check(&self.core.query)?;
        }
        let time = self.time();
        self.time.get_or_insert(time);
        self.push(datum, time, diff, deadline)
    }

    /// Adds an update at a time at or after this session's. What fails was not added.
    ///
    /// # Errors
    /// As `update`; `TimeWentBack`, if `time` is not at or after this session's.
    pub fn update_at(&mut self, datum: D, time: T, diff: R) -> Result<(), Error> {
        self.update_at_until(datum, time, diff, None)
    }

    /// As `update_at`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `update_at`; `Deadline`.
    pub fn update_at_timeout(&mut self, datum: D, time: T, diff: R, timeout: Duration) -> Result<(), Error> {
        let deadline = self.deadline(timeout);
        self.update_at_until(datum, time, diff, deadline)
    }

    fn update_at_until(&mut self, datum: D, time: T, diff: R, deadline: Option<Instant>) -> Result<(), Error> {
        Error::check(&self.core.query)?;
        let at = self.time();
        if !at.less_equal(&time) {
            return Err(Error::TimeWentBack { asked: format!("{time:?}"), at: format!("{at:?}") });
        }
        self.push(datum, time, diff, deadline)
    }

    fn deadline(&self, timeout: Duration) -> Option<Instant> {
        // Without a limit, for what is further than the system can say.
        self.core.query.clock.deadline(timeout)
    }

    fn push(&mut self, datum: D, time: T, diff: R, deadline: Option<Instant>) -> Result<(), Error> {
        if diff.is_zero() {
            // Changes nothing, so nobody need hear of it.
            return Ok(());
        }
        if self.follows {
            // A session that follows may be moved at any moment: its updates don't wait.
            self.buffer.push(datum.borrow(), time, diff);
            return self.flush_until(deadline).inspect_err(|_| self.buffer.clear());
        }
        if self.buffer.len() >= CHUNK {
            self.flush_until(deadline)?;
        }
        self.buffer.push(datum.borrow(), time, diff);
        if self.buffer.len() >= CHUNK {
            // It is added now. If it cannot be queued at once, the next one waits.
            return match self.try_flush() {
                Err(Error::Full) => Ok(()),
                other => other,
            };
        }
        Ok(())
    }

    /// Queues what was gathered. Waits while the queue is full.
    ///
    /// # Errors
    /// When the query has ended; `WouldBlock`, if it would have to wait inside a step.
    pub fn flush(&mut self) -> Result<(), Error> {
        self.flush_until(None)
    }

    /// As `flush`, for at most `timeout`; what could not be queued stays gathered. With no time at all it does not wait.
    ///
    /// # Errors
    /// As `flush`; `Deadline`.
    pub fn flush_timeout(&mut self, timeout: Duration) -> Result<(), Error> {
        let deadline = self.deadline(timeout);
        self.flush_until(deadline)
    }

    /// As `flush`, without waiting.
    ///
    /// # Errors
    /// As `flush`; `Full`: what was gathered stays so.
    pub fn try_flush(&mut self) -> Result<(), Error> {
        match self.flush_timeout(Duration::ZERO) {
            Err(Error::Deadline { .. }) => Err(Error::Full),
            other => other,
        }
    }

    fn flush_until(&mut self, deadline: Option<Instant>) -> Result<(), Error> {
        Error::check(&self.core.query)?;
        if self.buffer.is_empty() {
            return Ok(());
        }
        let core = self.core.clone();
        let (session, follows, query) = (self.session, self.follows, &core.query);
        let own = waiting::own_index(&core.mailboxes);
        let mut chunk = Some(core.on_account(&self.buffer, deadline)?);
        let most = query.all.cap_bytes().map(|cap| cap / QUEUE_SHARE);
        let worker = waiting::wait(&query.clock, &core.state, deadline, ROOM, |state| {
            if let Some(error) = Error::ended(query) {
                return Some(Err(error));
            }
            let bytes = state.queued_bytes + chunk.as_ref().map_or(0, Updates::bytes);
            if state.queued >= state.capacity || (state.queued > 0 && most.is_some_and(|most| bytes > most)) {
                return None;
            }
            let chunk = chunk.take().expect("it is queued once");
            let chunk = if follows { moved_up(chunk, &state.time(session)) } else { chunk };
            Some(Ok(state.queue(chunk, own)))
        })?;
        self.buffer.clear();
        self.core.mailboxes[worker].activate(self.core.dataflow, self.core.node);
        Ok(())
    }

    /// Moves this session's time forward: it will make no more updates at times not at or after `time`.
    ///
    /// # Errors
    /// `TimeWentBack`; otherwise as `flush`: then its time has not moved.
    pub fn advance_to(&mut self, time: T) -> Result<(), Error> {
        self.advance_until(time, None)
    }

    /// As `advance_to`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `advance_to`; `Deadline`.
    pub fn advance_to_timeout(&mut self, time: T, timeout: Duration) -> Result<(), Error> {
        let deadline = self.deadline(timeout);
        self.advance_until(time, deadline)
    }

    fn advance_until(&mut self, time: T, deadline: Option<Instant>) -> Result<(), Error> {
        let at = self.time();
        if !at.less_equal(&time) {
            Error::check(&self.core.query)?;
            return Err(Error::TimeWentBack { asked: format!("{time:?}"), at: format!("{at:?}") });
        }
        self.flush_until(deadline)?;
        let moved = {
            let mut state = self.core.state.lock();
            // One that follows may have been moved further meanwhile.
            let time = if self.follows { state.time(self.session).join(&time) } else { time };
            state.set(self.session, Some(time))
        };
        self.time = Some(time);
        if moved {
            self.core.wake_workers();
        }
        Ok(())
    }

    /// From now on this session's time moves along with what `published` has complete, besides `advance_to`: for inputs
    /// that seldom change, which would otherwise hold everything back. It follows the last arrangement it was told to.
    ///
    /// # Errors
    /// As `flush`.
    pub fn follow<B>(&mut self, published: &PublishedArrangement<B>) -> Result<(), Error>
    where
        B: MergeBatch<Time = T> + Send + Sync,
    {
        self.follow_until(published, None)
    }

    /// As `follow`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `follow`; `Deadline`.
    pub fn follow_timeout<B>(&mut self, published: &PublishedArrangement<B>, timeout: Duration) -> Result<(), Error>
    where
        B: MergeBatch<Time = T> + Send + Sync,
    {
        let deadline = self.deadline(timeout);
        self.follow_until(published, deadline)
    }

    fn follow_until<B>(&mut self, to: &PublishedArrangement<B>, deadline: Option<Instant>) -> Result<(), Error>
    where
        B: MergeBatch<Time = T> + Send + Sync,
    {
        self.flush_until(deadline)?;
        self.follows = true;
        let number = {
            let mut state = self.core.state.lock();
            state.followers += 1;
            let number = state.followers;
            state.sessions[self.session].as_mut().expect("a live session's number").follows = Some(number);
            number
        };
        let core = Arc::downgrade(&self.core);
        let source = to.published().clone();
        let (session, shared) = (self.session, source.downgrade());
        let catch_up = move || {
            let (Some(core), Some(complete)) = (core.upgrade(), shared.complete()) else { return false };
            let Some(moved) = core.follow_to(session, number, &complete) else { return false };
            if moved {
                core.wake_workers();
            }
            true
        };
        catch_up();
        source.on_change(Box::new(catch_up));
        Ok(())
    }
}

/// What those wait for who put in.
const ROOM: &str = "there was room in the input's queue";

impl<T: Timestamp, D: Columnar, R: Semigroup> InputCore<T, D, R> {
    /// A copy of what was gathered whose bytes are the query's, from now until the workers have done with them. Its cap
    /// is a bound of the queue as well: it waits until the workers have taken something, and is the query's end only if
    /// nothing is left to take.
    fn on_account(&self, gathered: &Updates<D, T, R>, deadline: Option<Instant>) -> Result<Updates<D, T, R>, Error> {
        loop {
            let queued = self.state.lock().queued;
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
            if queued == 0 {
                let ending =
                    Ending::Poisoned { operator: "input".to_string(), failure: Failure::from_payload(payload) };
                if self.query.end(ending.clone()) {
                    self.commands.append(Command::End(self.dataflow, ending));
                    self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
                }
                Error::check(&self.query)?;
            }
            waiting::wait(&self.query.clock, &self.state, deadline, ROOM, |state| match Error::ended(&self.query) {
                Some(error) => Some(Err(error)),
                None if state.queued < queued || state.queued == 0 => Some(Ok(())),
                None => None,
            })?;
        }
    }

    /// Moves a session up to the meet of a frontier, if it still follows under this number: whether the input's frontier
    /// moved.
    fn follow_to(&self, session: usize, number: u64, complete: &Antichain<T>) -> Option<bool> {
        let mut state = self.state.lock();
        state.sessions.get(session)?.as_ref().filter(|live| live.follows == Some(number))?;
        let Some(to) = complete.elements().iter().copied().reduce(|a, b| a.meet(&b)) else { return Some(false) };
        let at = state.time(session);
        Some(state.set(session, Some(at.join(&to))))
    }
}

/// Updates at times joined with `time`.
fn moved_up<D: Columnar, T: Timestamp, R: Semigroup>(updates: Updates<D, T, R>, time: &T) -> Updates<D, T, R> {
    let mut out = Updates::default();
    for (datum, t, diff) in updates.iter() {
        out.push(datum, t.join(time), diff);
    }
    out
}

impl<T: Timestamp, D: Columnar> Input<T, D, i64> {
    /// Adds `datum` once, at this session's time.
    ///
    /// # Errors
    /// As `update`.
    pub fn insert(&mut self, datum: D) -> Result<(), Error> {
        self.update(datum, 1)
    }

    /// As `insert`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `update_timeout`.
    pub fn insert_timeout(&mut self, datum: D, timeout: Duration) -> Result<(), Error> {
        self.update_timeout(datum, 1, timeout)
    }

    /// Takes `datum` away once, at this session's time.
    ///
    /// # Errors
    /// As `update`.
    pub fn remove(&mut self, datum: D) -> Result<(), Error> {
        self.update(datum, -1)
    }

    /// As `remove`, for at most `timeout`; with no time at all it does not wait.
    ///
    /// # Errors
    /// As `update_timeout`.
    pub fn remove_timeout(&mut self, datum: D, timeout: Duration) -> Result<(), Error> {
        self.update_timeout(datum, -1, timeout)
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Clone for Input<T, D, R> {
    /// Another session, at this one's time.
    fn clone(&self) -> Self {
        let mut state = self.core.state.lock();
        // One that follows may be further than it knows.
        let time = if self.follows { Some(state.time(self.session)) } else { self.time };
        let session = state.open(Session { time, follows: None });
        drop(state);
        Input { core: self.core.clone(), session, time, follows: false, buffer: Updates::default() }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Drop for Input<T, D, R> {
    fn drop(&mut self) {
        if self.core.query.ending().is_some() {
            // Part of a time's updates may have been refused for that: closed now, the rest would pass for the whole.
            return;
        }
        let mut state = self.core.state.lock();
        let mut worker = None;
        if !self.buffer.is_empty() {
            // Beyond the bound if need be: a drop can neither wait nor lose what was inserted.
            let mut chunk = std::mem::take(&mut self.buffer);
            if self.follows {
                chunk = moved_up(chunk, &state.time(self.session));
            }
            worker = Some(state.queue(chunk, waiting::own_index(&self.core.mailboxes)));
        }
        let moved = state.set(self.session, None);
        drop(state);
        match worker {
            _ if moved => self.core.wake_workers(),
            Some(worker) => self.core.mailboxes[worker].activate(self.core.dataflow, self.core.node),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
