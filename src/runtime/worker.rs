//! A worker: executes commands, takes what the fabric brings, steps the dataflows that have something to do, and
//! broadcasts their change batches, one entry a round.
//!
//! ```text
//! step = commands ▷ wakes from other threads ▷ receive ▷ active dataflows, a quantum each ▷ one broadcast ▷ merges if idle
//! ```
//! Invariants: a dataflow's change batches leave in the order of its steps; nothing of a dataflow that was poisoned
//! here leaves after the step that failed; what comes for a dataflow not yet built waits, what comes for one that has
//! ended is dropped unread. Cost: a step with nothing to do takes no lock but its arena's, and writes nothing that others read.
//! Stop before: `fabric`; after: `dataflow`, which implements [`Runnable`].
#![forbid(unsafe_code)]

use super::clock::Clock;
use super::commands::{AtRest, Command, CommandLog};
use super::fabric::{Fabric, Incoming};
use super::message::{Changes, DataflowId, Envelope, Parts, ProgressEntry};
use super::query::{Ending, Query};
use super::schedule::Schedule;
use crate::sync::{Counter, Monitor, Mutex, Unparker};
use kpg_arena::Arena;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most messages that one step takes from the fabric, so that a flood doesn't starve the dataflows.
const RECEIVE_LIMIT: usize = 1024;

/// A worker that has had nothing to do for so long gives idle memory back to the system.
const TRIM_AFTER: Duration = Duration::from_millis(100);

/// So many steps without anything to do are taken between looks at the clock.
const LOOK: u32 = 64;

/// How long a step takes by a simulation's clock, where no schedule says.
const SIMULATED_STEP: Duration = Duration::from_micros(1);

/// How other threads reach a worker: a list of nodes to activate, and its parker. On lines of its own, as others write it.
#[repr(align(128))]
pub struct Mailbox {
    woken: Mutex<Vec<(DataflowId, u32)>>,
    /// How often a node was activated; counted under the lock, so that an idle worker need not take that.
    count: Counter,
    unparker: Unparker,
}

impl Mailbox {
    /// Activates a node of a dataflow; wakes the worker.
    pub fn activate(&self, dataflow: DataflowId, node: u32) {
        {
            let mut woken = self.woken.lock();
            woken.push((dataflow, node));
            self.count.set(self.count.get() + 1);
        }
        self.unparker.unpark();
    }
    /// Wakes the worker.
    pub fn wake(&self) {
        self.unparker.unpark();
    }
}

/// What a dataflow did in a round.
#[derive(Default)]
pub struct Round {
    /// Its change batch.
    pub changes: Changes,
    /// Set if user code failed.
    pub failed: Option<Ending>,
}

/// A dataflow as its worker sees it.
pub trait Runnable {
    /// Whether its nodes may run yet; checked until true.
    fn ready(&mut self) -> bool;
    /// Activates a node.
    fn activate(&mut self, node: u32);
    /// Takes a message of an exchange channel.
    fn deliver(&mut self, channel: u32, payload: Box<dyn Any + Send>);
    /// Applies another worker's change batch.
    fn apply(&mut self, changes: &[(crate::progress::Location, crate::order::Coords, i64)]);
    /// Runs for about one quantum; messages for others go to `Local::outgoing`. Schedules itself if there is more to do.
    fn step(&mut self) -> Round;
    /// Merges on with spare time; true iff work remains.
    fn idle(&mut self) -> bool;
    /// What its handles know of it.
    fn query(&self) -> &Arc<Query>;
}

/// News of one dataflow for others on its worker.
pub trait Poke {
    /// Calls `activate` for each node that is to hear.
    fn tell(&self, activate: &mut dyn FnMut(DataflowId, u32));
}

/// What the dataflows of one worker share; lives on the worker's thread.
pub struct Local {
    /// This worker's number.
    pub index: usize,
    /// Number of workers.
    pub peers: usize,
    /// How others reach each worker.
    pub mailboxes: Arc<[Arc<Mailbox>]>,
    /// The log to which a poisoning worker appends.
    pub commands: Arc<CommandLog>,
    /// Messages for other workers, sent when the step that made them has succeeded.
    pub outgoing: RefCell<Vec<(usize, Envelope)>>,
    /// Dataflows with something to do.
    pub active: RefCell<VecDeque<DataflowId>>,
    /// Dataflows with merges to go on with.
    pub mergers: RefCell<Vec<DataflowId>>,
    /// News across dataflows of this worker, as a source's for its importers: told after the quantum that made them.
    pub pokes: RefCell<Vec<Rc<dyn Poke>>>,
    /// What this worker's dataflows offer each other, by a number that is the same on all workers.
    pub offers: RefCell<HashMap<u64, Box<dyn Any>>>,
    /// Dataflows built in the current command.
    pub built: RefCell<Vec<(DataflowId, Box<dyn Runnable>)>>,
    /// True while user code may run on this thread.
    pub stepping: Cell<bool>,
    /// This worker's memory.
    pub arena: Arena,
    /// Tells this engine from others in the process.
    pub engine: u64,
    /// What the floors above want at hand on each worker; they know its type.
    pub defaults: Box<dyn Any>,
    /// About how many updates a node may touch in one step.
    pub quantum: Cell<usize>,
    /// Ticks without data of which an importer that nobody watches is told once.
    pub idle_tick: usize,
    /// The engine's clock.
    pub clock: Clock,
}

impl Local {
    /// Puts a dataflow on the list of active ones. The caller's flag keeps it from being listed twice.
    pub fn schedule(&self, dataflow: DataflowId) {
        self.active.borrow_mut().push_back(dataflow);
    }
}

/// What a worker is given when it is made.
pub struct Setup {
    /// The engine's log of commands.
    pub commands: Arc<CommandLog>,
    /// How others reach each worker.
    pub mailboxes: Arc<[Arc<Mailbox>]>,
    /// The worker's memory.
    pub arena: Arena,
    /// Tells this engine from others in the process.
    pub engine: u64,
    /// See [`Local::defaults`].
    pub defaults: Box<dyn Any>,
    /// See [`Local::quantum`].
    pub quantum: usize,
    /// See [`Local::idle_tick`].
    pub idle_tick: usize,
    /// See [`Local::clock`].
    pub clock: Clock,
    /// In a simulation that chooses more than what is delivered when.
    pub schedule: Option<Rc<RefCell<Schedule>>>,
}

type AnyFabric = Box<dyn Fabric<Envelope, ProgressEntry>>;

struct Slot {
    dataflow: Box<dyn Runnable>,
    ready: bool,
    /// It has something to do as soon as it is ready: it is on no list of active ones meanwhile, so the worker may sleep.
    due: bool,
    poisoned: bool,
}

/// One worker. Call [`Worker::step`] in a loop, on one thread at a time.
pub struct Worker {
    local: Rc<Local>,
    fabric: AnyFabric,
    schedule: Option<Rc<RefCell<Schedule>>>,
    quantum: usize,
    executed: usize,
    stopped: bool,
    drain: Option<Arc<Monitor<Vec<AtRest>>>>,
    // Since when there has been nothing to do, steps since then, and whether idle memory was given back.
    idle_since: Option<Instant>,
    idle_steps: u32,
    trimmed: bool,
    // How many activations it has taken from its mailbox, and a list for the next ones.
    woken_count: u64,
    woken: Vec<(DataflowId, u32)>,
    // A list for what the fabric brings.
    incoming: Vec<Incoming<Envelope, ProgressEntry>>,
    // What it has ever sent and received, each to or from one other worker.
    sent: u64,
    received: u64,
    dataflows: BTreeMap<DataflowId, Slot>,
    unready: Vec<DataflowId>,
    // The number after the last one built or skipped: what comes for it or later ones waits.
    next_id: DataflowId,
    early: BTreeMap<DataflowId, (Vec<Envelope>, Vec<Changes>)>,
    // What it is about to broadcast; and a list to read what others have.
    parts: Parts,
    changes: Changes,
}

impl Worker {
    /// Worker `fabric.index()` of an engine.
    pub fn new(fabric: AnyFabric, setup: Setup) -> Self {
        let Setup { commands, mailboxes, arena, engine, defaults, quantum, idle_tick, clock, schedule } = setup;
        let local = Rc::new(Local {
            index: fabric.index(),
            peers: fabric.peers(),
            mailboxes,
            commands,
            outgoing: RefCell::default(),
            active: RefCell::default(),
            mergers: RefCell::default(),
            pokes: RefCell::default(),
            offers: RefCell::default(),
            built: RefCell::default(),
            stepping: Cell::new(false),
            arena,
            engine,
            defaults,
            quantum: Cell::new(quantum),
            idle_tick,
            clock,
        });
        Worker {
            local,
            fabric,
            schedule,
            quantum,
            executed: 0,
            stopped: false,
            drain: None,
            idle_since: None,
            idle_steps: 0,
            trimmed: false,
            woken_count: 0,
            woken: Vec::new(),
            incoming: Vec::new(),
            sent: 0,
            received: 0,
            dataflows: BTreeMap::new(),
            unready: Vec::new(),
            next_id: 0,
            early: BTreeMap::new(),
            parts: Parts::default(),
            changes: Changes::new(),
        }
    }

    /// A mailbox whose owner is woken through `unparker`.
    pub fn mailbox(unparker: Unparker) -> Arc<Mailbox> {
        Arc::new(Mailbox { woken: Mutex::new(Vec::new()), count: Counter::default(), unparker })
    }

    /// This worker's number.
    pub fn index(&self) -> usize {
        self.local.index
    }

    /// How the workers of its engine are reached.
    pub fn mailboxes(&self) -> &Arc<[Arc<Mailbox>]> {
        &self.local.mailboxes
    }

    /// The schedule of its simulation, if it has one.
    pub fn schedule(&self) -> Option<&Rc<RefCell<Schedule>>> {
        self.schedule.as_ref()
    }

    /// Whether something is on its way to it.
    pub fn has_incoming(&self) -> bool {
        self.fabric.has_incoming()
    }

    /// Notes what happened, in a simulation's trace.
    fn note(&self, event: impl std::hash::Hash) {
        if let Some(schedule) = &self.schedule {
            schedule.borrow_mut().note(event);
        }
    }

    /// What its dataflows share.
    #[cfg(test)]
    pub(crate) fn local(&self) -> &Rc<Local> {
        &self.local
    }

    /// Whether the engine has told it to stop; a stopped worker's steps do nothing.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// Whether its thread is inside a step now, so that nothing there may block on workers.
    pub fn is_stepping(&self) -> bool {
        self.local.stepping.get()
    }

    /// Steps once; true iff there was, or is, something to do.
    pub fn step(&mut self) -> bool {
        if self.stopped {
            return false;
        }
        let local = self.local.clone();
        local.arena.scope(|| self.step_in_arena())
    }

    fn step_in_arena(&mut self) -> bool {
        let mut lasts = SIMULATED_STEP;
        if let Some(schedule) = &self.schedule {
            let mut schedule = schedule.borrow_mut();
            let fuel;
            (fuel, lasts) = schedule.begin(self.local.index, self.quantum);
            self.local.quantum.set(fuel);
            schedule.note(("step", self.local.index, fuel, lasts));
        }
        self.local.clock.pass(lasts);
        self.local.stepping.set(true);
        let mut busy = self.execute_commands();
        if !self.stopped {
            busy |= self.take_wakes();
            busy |= self.receive();
            self.check_ready();
            busy |= self.run_active();
            if !busy {
                busy = self.merge_on();
            }
        }
        self.local.stepping.set(false);
        busy |= !self.local.active.borrow().is_empty();
        if busy {
            (self.idle_since, self.idle_steps, self.trimmed) = (None, 0, false);
        } else {
            self.idle_steps = self.idle_steps.wrapping_add(1);
            if self.idle_steps.is_multiple_of(LOOK) {
                self.look();
            }
        }
        if self.drain.is_some() {
            self.report_idle(!busy && !self.fabric.has_incoming());
        }
        busy
    }

    /// Looks at the clock, in a time without anything to do: after a long one, idle memory is given back to the system.
    fn look(&mut self) {
        if self.trimmed {
            return;
        }
        let now = self.local.clock.now();
        if now.saturating_duration_since(*self.idle_since.get_or_insert(now)) >= TRIM_AFTER {
            // Whoever has the arena just now will free more; then this is tried again after the next work.
            let _ = self.local.arena.trim();
            self.trimmed = true;
        }
    }

    fn report_idle(&self, idle: bool) {
        let Some(flags) = &self.drain else { return };
        let state = idle.then_some((self.sent, self.received));
        let was = std::mem::replace(&mut flags.lock()[self.local.index], state);
        if was != state {
            flags.notify_all();
        }
    }

    /// Parks until woken or `timeout` has passed, and no longer than until idle memory is to be given back.
    pub fn park(&mut self, timeout: Option<Duration>) {
        self.look();
        let longest =
            if self.trimmed { timeout } else { Some(timeout.map_or(TRIM_AFTER, |time| time.min(TRIM_AFTER))) };
        self.fabric.park(longest);
        self.look();
    }

    fn execute_commands(&mut self) -> bool {
        if !self.local.commands.has_more(self.executed) {
            return false;
        }
        let mut any = false;
        while let Some(command) = self.local.commands.next(self.local.index, self.executed) {
            any = true;
            self.executed += 1;
            match command {
                Command::Install(id, install) => {
                    install.execute(&self.local);
                    drop(install);
                    self.next_id = id + 1;
                    self.adopt_built();
                    self.release_early();
                }
                Command::End(id, ending) => self.end(id, ending),
                Command::Drain(flags) => self.drain = Some(flags),
                Command::Stop => {
                    self.stop();
                    break;
                }
            }
        }
        any
    }

    fn adopt_built(&mut self) {
        let built = std::mem::take(&mut *self.local.built.borrow_mut());
        for (id, dataflow) in built {
            self.dataflows.insert(id, Slot { dataflow, ready: false, due: false, poisoned: false });
            self.unready.push(id);
        }
    }

    fn release_early(&mut self) {
        while let Some(entry) = self.early.first_entry() {
            if *entry.key() >= self.next_id {
                break;
            }
            let (id, (envelopes, batches)) = entry.remove_entry();
            envelopes.into_iter().for_each(|envelope| self.take_message(envelope));
            batches.iter().for_each(|changes| self.take_changes(id, changes));
        }
    }

    fn end(&mut self, id: DataflowId, ending: Ending) {
        if let Some(slot) = self.dataflows.remove(&id) {
            slot.dataflow.query().end(ending);
            self.unready.retain(|other| *other != id);
            drop_quietly(slot.dataflow);
        }
    }

    fn stop(&mut self) {
        self.stopped = true;
        while let Some((_, slot)) = self.dataflows.pop_last() {
            slot.dataflow.query().end(Ending::Shutdown);
            drop_quietly(slot.dataflow);
        }
        self.local.offers.borrow_mut().clear();
        self.early.clear();
        self.local.commands.leave(self.local.index);
    }

    fn take_wakes(&mut self) -> bool {
        let mailbox = &self.local.mailboxes[self.local.index];
        // What is not seen now has its `unpark` to come, and is seen after that.
        if mailbox.count.get() == self.woken_count {
            return false;
        }
        let mut woken = std::mem::take(&mut self.woken);
        {
            let mut theirs = mailbox.woken.lock();
            std::mem::swap(&mut *theirs, &mut woken);
            self.woken_count = mailbox.count.get();
        }
        for (dataflow, node) in woken.drain(..) {
            self.activate(dataflow, node);
        }
        self.woken = woken;
        true
    }

    fn activate(&mut self, dataflow: DataflowId, node: u32) {
        if let Some(slot) = self.dataflows.get_mut(&dataflow) {
            slot.dataflow.activate(node);
        }
    }

    fn receive(&mut self) -> bool {
        let mut incoming = std::mem::take(&mut self.incoming);
        self.fabric.receive(RECEIVE_LIMIT, &mut |item| incoming.push(item));
        let any = !incoming.is_empty();
        self.received += incoming.len() as u64;
        for item in incoming.drain(..) {
            match item {
                Incoming::Message { from, message } => {
                    self.note(("message", from, message.dataflow, message.channel));
                    self.take_message(message);
                }
                Incoming::Progress { from, entry } => {
                    self.note(("progress", from, entry.parts()));
                    self.take_progress(&entry);
                }
            }
        }
        self.incoming = incoming;
        any
    }

    fn take_message(&mut self, envelope: Envelope) {
        if envelope.dataflow >= self.next_id {
            self.early.entry(envelope.dataflow).or_default().0.push(envelope);
        } else if let Some(slot) = self.dataflows.get_mut(&envelope.dataflow) {
            slot.dataflow.deliver(envelope.channel, envelope.payload);
        }
    }

    fn take_progress(&mut self, entry: &ProgressEntry) {
        let mut list = std::mem::take(&mut self.changes);
        entry.for_each(&mut list, |id, changes| {
            if id >= self.next_id {
                self.early.entry(id).or_default().1.push(changes.clone());
            } else {
                self.take_changes(id, changes);
            }
        });
        self.changes = list;
    }

    fn take_changes(&mut self, id: DataflowId, changes: &Changes) {
        if let Some(slot) = self.dataflows.get_mut(&id) {
            slot.dataflow.apply(changes);
        }
    }

    fn check_ready(&mut self) {
        let (dataflows, local) = (&mut self.dataflows, &self.local);
        self.unready.retain(|id| {
            let Some(slot) = dataflows.get_mut(id) else { return false };
            slot.ready = slot.dataflow.ready();
            if slot.ready && std::mem::take(&mut slot.due) {
                local.schedule(*id);
            }
            !slot.ready
        });
    }

    fn run_active(&mut self) -> bool {
        self.parts.clear();
        let mut busy = false;
        // Those active now, once each: one that stays active waits for the next round.
        let mut remaining = self.local.active.borrow().len();
        while remaining > 0 {
            remaining -= 1;
            let Some(id) = self.local.active.borrow_mut().pop_front() else { break };
            let Some(slot) = self.dataflows.get_mut(&id) else { continue };
            if slot.poisoned {
                continue;
            }
            if !slot.ready {
                // Whoever builds it last wakes all workers.
                slot.due = true;
                continue;
            }
            busy = true;
            let round = slot.dataflow.step();
            if let Some(schedule) = &self.schedule {
                schedule.borrow_mut().note((id, &round.changes, round.failed.is_some()));
            }
            if !round.changes.is_empty() && self.local.peers > 1 {
                self.parts.push(id, &round.changes);
            }
            if let Some(ending) = round.failed {
                slot.poisoned = true;
                self.local.outgoing.borrow_mut().retain(|(_, envelope)| envelope.dataflow != id);
                slot.dataflow.query().end(ending.clone());
                self.local.commands.append(Command::End(id, ending));
                self.local.mailboxes.iter().for_each(|mailbox| mailbox.wake());
            }
            self.run_pokes();
        }
        for (to, envelope) in self.local.outgoing.borrow_mut().drain(..) {
            self.fabric.send(to, envelope);
            self.sent += 1;
        }
        if !self.parts.is_empty() {
            self.fabric.broadcast(ProgressEntry::new(&self.parts));
            self.sent += self.local.peers as u64 - 1;
        }
        self.fabric.flush();
        busy
    }

    fn run_pokes(&mut self) {
        loop {
            let pokes = std::mem::take(&mut *self.local.pokes.borrow_mut());
            if pokes.is_empty() {
                return;
            }
            for poke in pokes {
                poke.tell(&mut |dataflow, node| self.activate(dataflow, node));
            }
        }
    }

    fn merge_on(&mut self) -> bool {
        if let Some(schedule) = self.schedule.as_ref().filter(|_| !self.local.mergers.borrow().is_empty())
            && schedule.borrow_mut().rests(self.local.index)
        {
            return true;
        }
        let Some(id) = self.local.mergers.borrow_mut().pop() else { return false };
        let Some(slot) = self.dataflows.get_mut(&id) else { return true };
        if !slot.poisoned && slot.dataflow.idle() {
            self.local.mergers.borrow_mut().insert(0, id);
        }
        true
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _arena = self.local.arena.enter();
        self.stop();
    }
}

/// Drops a dataflow; a panic in a user's `Drop` is the user's, and must not take the worker along.
fn drop_quietly(dataflow: Box<dyn Runnable>) {
    super::query::quietly(move || drop(dataflow));
}
