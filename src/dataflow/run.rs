//! Running a built dataflow on its worker.
//!
//! ```text
//! step: pop an active node ▷ its logic ▷ the stages after it ▷ its change batch is applied to the tracker
//!       none active: propagate ▷ publish at moved outputs ▷ activate who must hear ▷ again, for a quantum
//! ```
//! Invariants: a change batch is applied and broadcast whole, or, if user code failed in the step, discarded whole;
//! a node's logic is dropped as soon as nothing can reach it any more. Cost of a step: its nodes and what changed.
#![forbid(unsafe_code)]

use super::core::{Core, Running};
use super::doze::Imports;
use super::edge::{Receive, Stage};
use super::install::{Agreement, InstallFault, InstallShared};
use super::node::{Fuel, Node};
use super::scope::Build;
use crate::order::Coords;
use crate::progress::{ChangeBatch, Kind, Location, Tracker};
use crate::runtime::{Changes, Ending, Failure, Query, Round, Runnable};
use crate::sync::{Counter, Padded};
use std::any::Any;
use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

/// Node steps that a dataflow takes at most before others get their turn.
const STEPS: usize = 64;

/// Quanta of updates that its nodes and stages may spend before that.
const TURN: isize = 4;

pub(crate) struct NodeSlot {
    pub(crate) name: String,
    pub(crate) logic: Option<Box<dyn Node>>,
    pub(crate) inputs: Vec<Location>,
    pub(crate) outputs: Vec<Location>,
    pub(crate) always: bool,
    pub(crate) watched: bool,
}

impl NodeSlot {
    pub(crate) fn empty(name: &str) -> Self {
        NodeSlot { name: name.to_string(), logic: None, inputs: vec![], outputs: vec![], always: false, watched: false }
    }
}

/// A dataflow on one worker.
pub(crate) struct Dataflow {
    core: Rc<Core>,
    install: Arc<InstallShared>,
    nodes: Vec<NodeSlot>,
    stages: Vec<(String, Box<dyn Stage>)>,
    channels: Vec<Receive>,
    round: ChangeBatch,
    merge_failure: Option<Ending>,
    merging: bool,
    moved: Vec<Location>,
    closed: Vec<u32>,
    unpropagated: bool,
    failed: bool,
    // In updates, of this turn.
    spent: isize,
    // Steps of nodes in this turn; and where it tells them, which it alone writes.
    steps: u64,
    told: Arc<Padded<Counter>>,
    imports: Imports,
}

impl Dataflow {
    /// Completes a dataflow when its closure has returned: fixes the first time, builds the tracker with the births of
    /// all workers, starts the nodes.
    pub(crate) fn finish(build: &Rc<Build>, root_coordinates: usize) -> Result<Dataflow, InstallFault> {
        let install = build.install.clone();
        let takes = std::mem::take(&mut *build.takes.borrow_mut());
        let first = install.first_time(Coords::zero(root_coordinates), takes);
        build.first.set(first).unwrap_or_else(|_| unreachable!("a dataflow is finished once"));
        let graph = build.graph.borrow_mut().take().expect("a dataflow is finished once");
        let graph = Arc::new(graph.build().map_err(|error| InstallFault::Graph(error.to_string()))?);
        let mut tracker = Tracker::new(graph.clone());
        let peers = build.local().peers as i64;
        for location in build.births.borrow().iter() {
            tracker.update(*location, widen(&first, graph.coordinates(*location)), peers);
        }
        tracker.propagate(|_| {});
        *build.core.tracker.borrow_mut() = Some(tracker);
        let nodes = std::mem::take(&mut *build.nodes.borrow_mut());
        let sources = std::mem::take(&mut *build.imports.borrow_mut());
        let imports = Imports::new(sources, build.publishes(), &nodes, &build.births.borrow(), peers);
        let told = install.query.count_steps();
        let mut dataflow = Dataflow {
            core: build.core.clone(),
            install,
            nodes,
            stages: std::mem::take(&mut *build.stages.borrow_mut()),
            channels: std::mem::take(&mut *build.channels.borrow_mut()),
            round: ChangeBatch::new(),
            merge_failure: None,
            merging: false,
            moved: Vec::new(),
            closed: Vec::new(),
            // Each port hears once of the frontier it is born with: that of a port which no source reaches never moves.
            unpropagated: true,
            failed: false,
            spent: 0,
            steps: 0,
            told,
            imports,
        };
        // From here on `dataflow` cleans up, also if a user's operator panics when it starts.
        build.finished.set(true);
        for (index, slot) in dataflow.nodes.iter_mut().enumerate() {
            let scope = slot.outputs.first().or(slot.inputs.first());
            let len = scope.map_or(root_coordinates, |location| graph.coordinates(*location));
            dataflow.moved.extend(slot.inputs.iter().chain(&slot.outputs));
            if let Some(logic) = &mut slot.logic {
                logic.start(&widen(&first, len));
                dataflow.core.activate(index as u32);
            }
        }
        let changes: Vec<_> = dataflow.core.changes.borrow_mut().drain().collect();
        assert!(changes.is_empty(), "every replica has counted what a node is born with: {changes:?}");
        Ok(dataflow)
    }

    pub(crate) fn digest(build: &Build) -> u64 {
        build.digest.borrow().finish()
    }

    fn run_node(&mut self, node: u32) -> Result<(), Ending> {
        let core = self.core.clone();
        let Some(logic) = self.nodes[node as usize].logic.as_mut() else { return Ok(()) };
        let stages = &mut self.stages;
        core.running.set(Running::Node(node));
        self.steps += 1;
        let quantum = core.local.quantum.get() as isize;
        let outcome = guarded(&self.install.query, || {
            let mut fuel = Fuel(quantum);
            let again = logic.step(&mut fuel);
            (again, quantum - fuel.0 + run_stages(&core, stages))
        });
        match outcome {
            Ok((again, spent)) => {
                self.spent += spent;
                core.running.set(Running::Nothing);
                if again {
                    core.nodes.insert(node);
                }
                self.commit();
                // What was kept for readers outside, when all its ports had closed, may be released now.
                let slot = &self.nodes[node as usize];
                if slot.watched {
                    let tracker = self.core.tracker.borrow();
                    let tracker = tracker.as_ref().expect("a dataflow that runs has a tracker");
                    if slot.inputs.iter().chain(&slot.outputs).all(|at| tracker.frontier(*at).is_empty()) {
                        self.closed.push(node);
                    }
                }
                Ok(())
            }
            Err(payload) => Err(self.fail(Failure::from_payload(payload))),
        }
    }

    /// Goes on with what was left at stages when a quantum was over.
    fn resume_stages(&mut self) -> Result<(), Ending> {
        let core = self.core.clone();
        let stages = &mut self.stages;
        match guarded(&self.install.query, || run_stages(&core, stages)) {
            Ok(spent) => {
                self.spent += spent;
                core.running.set(Running::Nothing);
                self.commit();
                Ok(())
            }
            Err(payload) => Err(self.fail(Failure::from_payload(payload))),
        }
    }

    /// Applies the step's change batch here, and keeps it for the others.
    fn commit(&mut self) {
        let mut changes = self.core.changes.borrow_mut();
        if changes.is_empty() {
            return;
        }
        let mut tracker = self.core.tracker.borrow_mut();
        let tracker = tracker.as_mut().expect("a dataflow that runs has a tracker");
        let keep = self.core.local.peers > 1;
        changes.take_each(|location, time, diff| {
            tracker.update(location, time, diff);
            self.imports.count(location, diff);
            if keep {
                self.round.update(location, time, diff);
            }
        });
        self.unpropagated = true;
    }

    fn fail(&mut self, failure: Failure) -> Ending {
        let operator = match self.core.running.get() {
            Running::Node(node) => self.nodes[node as usize].name.clone(),
            Running::Stage(stage) => self.stages[stage as usize].0.clone(),
            Running::Nothing => "no operator".to_string(),
        };
        self.core.ended.set(true);
        self.core.changes.borrow_mut().drain().for_each(drop);
        self.failed = true;
        Ending::Poisoned { operator, failure }
    }

    /// Propagates, publishes at moved outputs, activates who must hear.
    fn propagate(&mut self) -> Result<(), Ending> {
        self.unpropagated = false;
        let mut moved = std::mem::take(&mut self.moved);
        {
            let mut tracker = self.core.tracker.borrow_mut();
            tracker.as_mut().expect("a dataflow that runs has a tracker").propagate(|location| moved.push(location));
        }
        for location in moved.drain(..) {
            self.hear(location)?;
        }
        self.moved = moved;
        Ok(())
    }

    fn hear(&mut self, location: Location) -> Result<(), Ending> {
        let node = self.core.owners.borrow()[location as usize];
        if node == u32::MAX {
            return Ok(());
        }
        let (empty, is_input) = {
            let tracker = self.core.tracker.borrow();
            let tracker = tracker.as_ref().expect("a dataflow that runs has a tracker");
            (tracker.frontier(location).is_empty(), tracker.graph().kind(location) == Kind::Input)
        };
        let slot = &mut self.nodes[node as usize];
        if let Some(logic) = slot.logic.as_mut().filter(|_| !is_input && slot.watched) {
            self.core.running.set(Running::Node(node));
            if let Err(payload) = guarded(&self.install.query, || logic.output_moved()) {
                return Err(self.fail(Failure::from_payload(payload)));
            }
            self.commit();
        }
        let slot = &self.nodes[node as usize];
        let holds = self.core.held.borrow().get(node as usize).is_some_and(|held| *held > 0);
        if is_input && (slot.always || holds || empty) {
            self.core.nodes.insert(node);
        }
        if empty {
            self.closed.push(node);
        }
        Ok(())
    }

    /// Drops the logic of nodes that nothing can reach any more; they have been stepped since their inputs closed.
    fn release_closed(&mut self) -> Result<(), Ending> {
        let mut closed = std::mem::take(&mut self.closed);
        // Once for each of its ports that closed.
        closed.sort_unstable();
        closed.dedup();
        let dropped: Vec<(u32, Box<dyn Node>)> = {
            let tracker = self.core.tracker.borrow();
            let tracker = tracker.as_ref().expect("a dataflow that runs has a tracker");
            let nodes = &mut self.nodes;
            closed
                .drain(..)
                .filter_map(|node| {
                    let slot = &mut nodes[node as usize];
                    let mut ports = slot.inputs.iter().chain(&slot.outputs);
                    if !ports.all(|at| tracker.frontier(*at).is_empty()) || slot.logic.as_mut()?.is_read() {
                        return None;
                    }
                    Some((node, slot.logic.take()?))
                })
                .collect()
        };
        self.closed = closed;
        let mut outcome = Ok(());
        for (node, logic) in dropped {
            // It may own values whose drop is user code.
            self.core.running.set(Running::Node(node));
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(logic))) {
                outcome = Err(self.fail(Failure::from_payload(payload)));
            }
        }
        if outcome.is_ok() {
            self.core.running.set(Running::Nothing);
            self.commit();
        }
        outcome
    }

    fn run(&mut self) -> Result<(), Ending> {
        self.spent = 0;
        for _ in 0..STEPS {
            if self.spent > TURN * self.core.local.quantum.get() as isize {
                break;
            }
            if !self.core.stages.is_empty() {
                self.resume_stages()?;
                continue;
            }
            match self.core.nodes.pop() {
                Some(node) => self.run_node(node)?,
                None => {
                    self.commit();
                    if !self.unpropagated {
                        break;
                    }
                    self.propagate()?;
                }
            }
        }
        self.commit();
        if self.core.nodes.is_empty() && !self.unpropagated && !self.closed.is_empty() {
            self.release_closed()?;
        }
        Ok(())
    }
}

/// Runs what may be user code on a query's account.
fn guarded<O>(query: &Query, run: impl FnOnce() -> O) -> std::thread::Result<O> {
    query.private.scope(|| catch_unwind(AssertUnwindSafe(run)))
}

/// Runs stages in the order of their numbers for a turn; the producers of what is left hold its stamps. How much it spent.
fn run_stages(core: &Rc<Core>, stages: &mut [(String, Box<dyn Stage>)]) -> isize {
    let turn = TURN * core.local.quantum.get() as isize;
    core.stage_fuel.set(turn);
    while let Some(stage) = core.stages.pop() {
        core.running.set(Running::Stage(stage));
        let stage_of = &mut stages[stage as usize].1;
        if !stage_of.run() {
            core.stages.insert(stage);
            break;
        }
        if core.stage_fuel.get() <= 0 {
            break;
        }
    }
    core.stages.for_each(|stage| stages[stage as usize].1.hold_origins());
    turn - core.stage_fuel.get()
}

/// A time of the root scope as one of a scope inside it.
fn widen(time: &Coords, len: usize) -> Coords {
    let mut out = Coords::zero(len);
    out.as_mut_slice()[..time.len()].copy_from_slice(time.as_slice());
    out
}

impl Runnable for Dataflow {
    fn ready(&mut self) -> bool {
        self.install.agreement() == Agreement::Agreed
    }

    fn activate(&mut self, node: u32) {
        if !self.failed && (node as usize) < self.nodes.len() {
            self.core.activate(node);
        }
    }

    fn deliver(&mut self, channel: u32, payload: Box<dyn Any + Send>) {
        if !self.failed {
            (self.channels[channel as usize])(payload);
        }
    }

    fn apply(&mut self, changes: &[(Location, Coords, i64)]) {
        if self.failed {
            return;
        }
        let mut tracker = self.core.tracker.borrow_mut();
        let tracker = tracker.as_mut().expect("a dataflow that runs has a tracker");
        for (location, time, diff) in changes {
            tracker.update(*location, *time, *diff);
            self.imports.count(*location, *diff);
        }
        self.unpropagated = true;
        self.core.schedule();
    }

    fn step(&mut self) -> Round {
        self.core.unscheduled();
        let outcome = match self.merge_failure.take() {
            Some(ending) => Err(ending),
            None => self.run(),
        };
        let changes = if self.round.is_empty() { Changes::new() } else { self.round.drain().collect() };
        if self.steps > 0 {
            self.told.0.set(self.told.0.get() + std::mem::take(&mut self.steps));
        }
        if outcome.is_ok() {
            let core = &self.core;
            self.imports.settle(|node| core.nodes.insert(node));
        }
        if outcome.is_ok() && (self.unpropagated || !self.core.nodes.is_empty() || !self.core.stages.is_empty()) {
            self.core.schedule();
        }
        if outcome.is_ok() && !self.core.mergers.is_empty() && !std::mem::replace(&mut self.merging, true) {
            self.core.local.mergers.borrow_mut().push(self.core.id);
        }
        Round { changes, failed: outcome.err() }
    }

    fn idle(&mut self) -> bool {
        let Some(node) = self.core.mergers.pop().filter(|_| !self.failed) else {
            self.merging = false;
            return false;
        };
        let Some(logic) = self.nodes[node as usize].logic.as_mut() else { return true };
        self.core.running.set(Running::Node(node));
        // What it merges stays on the query's account, whoever's turn it was.
        match guarded(&self.install.query, || logic.idle()) {
            Ok(true) => self.core.mergers.insert(node),
            Ok(false) => {}
            Err(payload) => {
                self.merge_failure = Some(self.fail(Failure::from_payload(payload)));
                self.core.local.schedule(self.core.id);
            }
        }
        true
    }

    fn query(&self) -> &Arc<Query> {
        &self.install.query
    }
}

impl Drop for Dataflow {
    fn drop(&mut self) {
        // From here on nothing is counted: what this worker drops now is not what it gave up.
        self.core.ended.set(true);
        *self.core.tracker.borrow_mut() = None;
        // A stage that panicked left here what it ran for, which has this core.
        let origin = self.core.origin.borrow_mut().take();
        drop(origin);
        self.core.forget_offers();
    }
}
