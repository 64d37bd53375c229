//! Inputs: updates from any thread into a dataflow, bounded, at times that go forward.
//!
//! ```text
//! session, session, … ─ chunks ─▶ a queue a worker ─ taken whole, with the frontier, under one lock ─▶ input node
//! ```
//! Invariants: a session's updates are queued in its lot before its time moves; a worker takes queue and frontier of a lot
//! together; so what it takes is at or after the capability it holds. The input's time is the meet over its live sessions.
//! Next stop: `lots`, where sessions and queues are.
#![forbid(unsafe_code)]

mod lots;

use self::lots::{InputCore, NEAR, QUEUE_SHARE, ROOM, Session, State};
use super::error::Error;
use super::waiting;
use crate::dataflow::{CapabilitySet, Closure, Fuel, Interest, Node, OutputPort, Scope, Updates};
use crate::operators::{Chunk, Collection, PublishedArrangement};
use crate::order::{Antichain, Coords, Semigroup, Timestamp};
use crate::sync::{Monitor, Padded};
use crate::trace::MergeBatch;
use kpg_columnar::Columnar;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Updates that a session gathers before it queues them.
const CHUNK: usize = 1024;

/// Updates that wait in an input before `insert` waits, unless configured.
pub(crate) const CAPACITY: usize = 1 << 20;

/// One session of an input: `Send`, for one thread at a time; clone it for others.
///
/// Updates are gathered and queued when there are many, at `flush`, and when the time moves. The input's time is the meet
/// over its live sessions; dropping one releases it, dropping the last closes the input.
pub struct Input<T: Timestamp, D: Columnar, R: Semigroup = i64> {
    core: Arc<InputCore<T, D, R>>,
    lot: usize,
    session: usize,
    time: Option<T>,
    follows: bool,
    /// Queued since its time last moved.
    chunks: usize,
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
        let lot = |queues, capacity, installing| Padded(Monitor::new(State::new(queues, capacity, installing)));
        let of_worker = |_| lot(1, capacity.div_ceil(local.peers), false);
        let core = build.handle(|| InputCore::<T, D, R> {
            lots: (0..local.peers).map(of_worker).chain([lot(local.peers, capacity, true)]).collect(),
            changes: Padded::default(),
            query: query.clone(),
            commands: local.commands.clone(),
            mailboxes: local.mailboxes.clone(),
            dataflow: build.core.id,
            node: builder.index,
        });
        let waiter: std::sync::Weak<InputCore<T, D, R>> = Arc::downgrade(&core);
        query.register(waiter);
        let lot = core.common();
        let session = core.lock(lot).open(Session { time: None, follows: None });
        let node = InputNode {
            core: core.clone(),
            worker: local.index,
            output,
            capabilities: CapabilitySet::new(),
            seen: None,
            common: Antichain::new(),
        };
        builder.finish(Interest::Held, node);
        let input = Input { core, lot, session, time: None, follows: false, chunks: 0, buffer: Updates::default() };
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
    /// The common lot when it was last looked at: how often it had changed, and its frontier.
    seen: Option<u64>,
    common: Antichain<T>,
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Node for InputNode<T, D, R> {
    fn start(&mut self, first: &Coords) {
        let capability = self.output.born(first);
        self.core.lock(self.core.common()).first = Some(*capability.time());
        self.capabilities.insert(capability);
    }

    fn step(&mut self, _: &mut Fuel) -> bool {
        if self.capabilities.is_empty() {
            return false;
        }
        let core = &self.core;
        // The common lot first: a session that moves from there to this worker's is in one of them, or in both.
        if self.seen != Some(core.changes.0.get()) {
            let monitor = core.lot(core.common());
            let chunks;
            {
                let mut state = monitor.lock();
                self.seen = Some(core.changes.0.get());
                (chunks, self.common) = state.take(self.worker);
            }
            send(&mut self.output, &self.capabilities, monitor, chunks);
        }
        let monitor = core.lot(self.worker);
        let (chunks, mut frontier) = monitor.lock().take(0);
        send(&mut self.output, &self.capabilities, monitor, chunks);
        frontier.meet_with(&self.common);
        self.capabilities.must_downgrade(&frontier);
        false
    }
}

/// Sends what was taken out of a lot, in which there is room now.
fn send<T: Timestamp, D: Columnar, R: Semigroup>(
    output: &mut OutputPort<T, Chunk<D, T, R>>,
    capabilities: &CapabilitySet<T>,
    lot: &Monitor<State<T, D, R>>,
    chunks: Vec<Updates<D, T, R>>,
) {
    if !chunks.is_empty() {
        lot.notify_all();
    }
    chunks.into_iter().for_each(|chunk| output.send(capabilities, Rc::new(chunk)));
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Input<T, D, R> {
    /// This session's time: updates are made at it unless told otherwise.
    #[inline]
    pub fn time(&self) -> T {
        match self.time {
            Some(time) if !self.follows => time,
            _ => self.core.lot(self.lot).lock().time(self.session),
        }
    }

    /// Adds an update at this session's time. What fails was not added.
    ///
    /// # Errors
    /// When the query has ended. Waits while the queue is full; inside a step that is `WouldBlock`.
    #[inline]
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

    #[inline]
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

    #[inline]
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
        let (lot, session, follows, query) = (self.lot, self.session, self.follows, &core.query);
        let own = waiting::own_index(&core.mailboxes);
        let mut chunk = Some(core.on_account(&self.buffer, deadline)?);
        let most = query.all.cap_bytes().map(|cap| cap / QUEUE_SHARE / core.mailboxes.len());
        let worker = waiting::wait(&query.clock, core.lot(lot), deadline, ROOM, |state| {
            if let Some(error) = Error::ended(query) {
                return Some(Err(error));
            }
            let bytes = state.queued_bytes + chunk.as_ref().map_or(0, Updates::bytes);
            if state.queued >= state.capacity || (state.queued > 0 && most.is_some_and(|most| bytes > most)) {
                return None;
            }
            let chunk = chunk.take().expect("it is queued once");
            let chunk = if follows { moved_up(chunk, &state.time(session)) } else { chunk };
            Some(Ok(core.queue(lot, state, chunk, own)))
        })?;
        self.buffer.clear();
        self.chunks += 1;
        core.wake_worker(worker);
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
        let core = self.core.clone();
        if std::mem::take(&mut self.chunks) <= NEAR
            && let Some(home) = self.new_home()
        {
            let number = core.lot(home).lock().open(Session { time: Some(time), follows: None });
            let moved = core.lock(self.lot).set(self.session, None);
            let left = std::mem::replace(&mut self.lot, home);
            (self.session, self.time) = (number, Some(time));
            if moved {
                core.wake_workers(left);
            }
            return Ok(());
        }
        let moved = {
            let mut state = core.lock(self.lot);
            // One that follows may have been moved further meanwhile.
            let time = if self.follows { state.time(self.session).join(&time) } else { time };
            state.set(self.session, Some(time))
        };
        self.time = Some(time);
        if moved {
            core.wake_workers(self.lot);
        }
        Ok(())
    }

    /// In which worker's lot the session may live from now on. One that follows is moved by other threads. In a simulation
    /// one thread owns all workers: there sessions are dealt out.
    fn new_home(&self) -> Option<usize> {
        let (core, workers) = (&self.core, self.core.mailboxes.len());
        if self.lot != core.common() || self.follows || workers == 1 {
            return None;
        }
        let dealt = core.query.clock.is_simulated().then_some(self.session % workers);
        waiting::own_index(&core.mailboxes).or(dealt)
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
            let mut state = self.core.lock(self.lot);
            state.followers += 1;
            let number = state.followers;
            state.sessions[self.session].as_mut().expect("a live session's number").follows = Some(number);
            number
        };
        let core = Arc::downgrade(&self.core);
        let source = to.published().clone();
        let (lot, session, shared) = (self.lot, self.session, source.downgrade());
        let catch_up = move || {
            let (Some(core), Some(complete)) = (core.upgrade(), shared.complete()) else { return false };
            let Some(moved) = core.follow_to(lot, session, number, &complete) else { return false };
            if moved {
                core.wake_workers(lot);
            }
            true
        };
        let catch_up = Arc::new(catch_up);
        source.on_change(Box::new({
            let catch_up = catch_up.clone();
            move || catch_up()
        }));
        catch_up();
        Ok(())
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
    #[inline]
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
        let mut state = self.core.lock(self.lot);
        // One that follows may be further than it knows.
        let time = if self.follows { Some(state.time(self.session)) } else { self.time };
        let session = state.open(Session { time, follows: None });
        drop(state);
        Input {
            core: self.core.clone(),
            lot: self.lot,
            session,
            time,
            follows: false,
            chunks: 0,
            buffer: Updates::default(),
        }
    }
}

impl<T: Timestamp, D: Columnar, R: Semigroup> Drop for Input<T, D, R> {
    fn drop(&mut self) {
        if self.core.query.ending().is_some() {
            // Part of a time's updates may have been refused for that: closed now, the rest would pass for the whole.
            return;
        }
        let core = &self.core;
        let mut state = core.lock(self.lot);
        let mut worker = None;
        if !self.buffer.is_empty() {
            // Beyond the bound if need be: a drop can neither wait nor lose what was inserted.
            let mut chunk = std::mem::take(&mut self.buffer);
            if self.follows {
                chunk = moved_up(chunk, &state.time(self.session));
            }
            worker = Some(core.queue(self.lot, &mut state, chunk, waiting::own_index(&core.mailboxes)));
        }
        let moved = state.set(self.session, None);
        drop(state);
        match worker {
            _ if moved => core.wake_workers(self.lot),
            Some(worker) => core.wake_worker(worker),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests;
