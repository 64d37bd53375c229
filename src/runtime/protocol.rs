//! The models of the progress protocol, under loom: workers' trackers, joined by the fabric that runs in production.
//!
//! ```text
//! worker 0: source ─ message (0,0) ─▶ worker 1: node ─ feedback, message (0,1) ─▶ worker 0: node
//!        each step one change batch, applied here, broadcast to the other replicas
//! ```
//! Each worker is born with a capability of its source. The first sends one message and drops its capability in the
//! same step, the others just drop theirs; whoever takes the message sends it on across the feedback edge, to the next
//! worker, one round later, until it has gone round. A ghost, which loom does not see, knows at each moment what lives
//! (capabilities, messages on their way). Checked in every interleaving: no replica's frontier at any location passes
//! what lives there; no frontier moves back; each sender's entries and messages come in order; in the end every replica
//! is empty. A parking worker is woken, or the model deadlocks. Mutants: a step's change batch sent in two parts; a
//! replica born with its own worker's capability only; a broadcast without the flush that wakes.
#![forbid(unsafe_code)]

use super::fabric::{Fabric, Incoming, ThreadFabric, threads};
use crate::order::{Antichain, Coords, Product, Timestamp};
use crate::progress::{Graph, GraphBuilder, Location, ScopeId, Summary, Tracker};
use crate::sync::{Kept, bound};
use std::sync::{Arc, Mutex};

type Time = Product<u64, u32>;
type Changes = Vec<(Location, Coords, i64)>;

#[derive(Copy, Clone, PartialEq)]
enum Mutant {
    None,
    SplitsBatches,
    BornAlone,
    DoesNotFlush,
}

const SOURCE: Location = 0;
const INPUT: Location = 1;
const OUTPUT: Location = 2;

/// source ─▶ input ─▶ output ─ one round later ─▶ input.
fn graph() -> Arc<Graph> {
    let mut builder = GraphBuilder::new("model", 1, &[u64::MAX]);
    let inner = builder.add_scope(ScopeId::ROOT, "loop", u64::from(u32::MAX));
    assert_eq!(builder.add_output(inner, "source"), SOURCE);
    assert_eq!(builder.add_input(inner, "input"), INPUT);
    assert_eq!(builder.add_output(inner, "output"), OUTPUT);
    let identity = Summary::identity(Time::COORDINATES);
    builder.connect(SOURCE, INPUT, identity);
    builder.connect(INPUT, OUTPUT, identity);
    builder.connect(OUTPUT, INPUT, Summary::step(Time::COORDINATES, 1));
    Arc::new(builder.build().expect("the cycle counts its rounds"))
}

/// What lives, by location and time. Its lock is std's: no point at which loom may switch.
type Ghost = Arc<Mutex<Vec<(Location, Coords)>>>;

struct Replica {
    fabric: ThreadFabric<(u64, u64), (u64, Changes)>,
    tracker: Tracker,
    frontiers: Vec<Antichain<Coords>>,
    ghost: Ghost,
    mutant: Mutant,
    /// Whether anyone parks, and so must be woken.
    parks: bool,
    steps: u64,
    /// Of each sender: the next entry, the next message.
    expected: Vec<(u64, u64)>,
    rounds: u64,
    /// Messages that this worker is still to take.
    awaited: usize,
}

fn at(round: u64) -> Coords {
    Product::new(0u64, round as u32).to_coords()
}

impl Replica {
    fn new(
        fabric: ThreadFabric<(u64, u64), (u64, Changes)>,
        ghost: &Ghost,
        rounds: u64,
        parks: bool,
        mutant: Mutant,
    ) -> Self {
        let peers = fabric.peers();
        let mut tracker = Tracker::new(graph());
        let births = if mutant == Mutant::BornAlone { 1 } else { peers as i64 };
        tracker.update(SOURCE, at(0), births);
        tracker.propagate(|_| {});
        // The message of round r is taken by worker r + 1, counted round.
        let awaited = (0..=rounds).filter(|r| (*r as usize + 1) % peers == fabric.index()).count();
        let mut replica = Replica {
            frontiers: Vec::new(),
            ghost: ghost.clone(),
            mutant,
            parks,
            steps: 0,
            expected: vec![(0, 0); peers],
            rounds,
            awaited,
            fabric,
            tracker,
        };
        replica.frontiers = (SOURCE..=OUTPUT).map(|l| replica.tracker.frontier(l).clone()).collect();
        replica.check();
        replica
    }

    /// Nothing that lives has been passed, no frontier has moved back.
    fn check(&mut self) {
        for (location, time) in self.ghost.lock().expect("no model panics twice").iter() {
            let frontier = self.tracker.frontier(*location);
            assert!(frontier.less_equal(time), "{frontier:?} at {location} has passed {time:?}");
        }
        for (location, before) in (SOURCE..).zip(&mut self.frontiers) {
            let now = self.tracker.frontier(location);
            assert!(before.before_equal(now), "{before:?} at {location} moved back to {now:?}");
            *before = now.clone();
        }
    }

    /// The whole of a step: what it consumed, what it leaves alive, its message; then its change batch.
    fn step(&mut self, consumed: (Location, Coords), message: Option<u64>) {
        let mut changes: Changes = vec![(consumed.0, consumed.1, -1)];
        {
            let mut ghost = self.ghost.lock().expect("no model panics twice");
            let index = ghost.iter().position(|live| *live == consumed).expect("what is consumed was alive");
            ghost.swap_remove(index);
            if let Some(round) = message {
                ghost.push((INPUT, at(round)));
                changes.push((INPUT, at(round), 1));
            }
        }
        for (location, time, diff) in &changes {
            self.tracker.update(*location, *time, *diff);
        }
        self.tracker.propagate(|_| {});
        self.check();
        if let Some(round) = message {
            let to = (round as usize + 1) % self.fabric.peers();
            self.fabric.send(to, (self.steps, round));
        }
        let parts = match self.mutant {
            Mutant::SplitsBatches => changes.into_iter().map(|change| vec![change]).collect(),
            _ => vec![changes],
        };
        for part in parts {
            self.fabric.broadcast((self.steps, part));
            self.steps += 1;
        }
        if self.parks && self.mutant != Mutant::DoesNotFlush {
            self.fabric.flush();
        }
    }

    /// Takes what has come, entry by entry: the frontiers after each are shown to somebody.
    fn receive(&mut self) -> bool {
        let mut incoming = Vec::new();
        self.fabric.receive(usize::MAX, &mut |item| incoming.push(item));
        let any = !incoming.is_empty();
        for item in incoming {
            match item {
                Incoming::Progress { from, entry } => {
                    assert_eq!(entry.0, self.expected[from].0, "an entry of {from} out of order");
                    self.expected[from].0 += 1;
                    for (location, time, diff) in &entry.1 {
                        self.tracker.update(*location, *time, *diff);
                    }
                    self.tracker.propagate(|_| {});
                    self.check();
                }
                Incoming::Message { from, message: (number, round) } => {
                    assert!(number >= self.expected[from].1, "a message of {from} out of order");
                    self.expected[from].1 = number + 1;
                    self.awaited -= 1;
                    self.step((INPUT, at(round)), (round < self.rounds).then_some(round + 1));
                }
            }
        }
        any
    }

    fn start(&mut self) {
        let first = self.fabric.index() == 0;
        self.step((SOURCE, at(0)), first.then_some(0));
    }

    fn is_done(&self) -> bool {
        self.awaited == 0 && self.tracker.is_empty()
    }

    fn check_end(&self) {
        assert!(self.is_done() && self.frontiers.iter().all(Antichain::is_empty), "{:?}", self.frontiers);
    }
}

/// How workers live beside each other.
#[derive(Copy, Clone)]
enum Life {
    /// Until they have heard all; whoever finds nothing parks.
    Whole,
    /// Looking so many times at what has come; the rest of it one after the other.
    Looks(usize),
}

/// `workers` of them; the message makes `rounds` rounds after the first.
fn model(workers: usize, rounds: u64, preemptions: Option<usize>, life: Life, mutant: Mutant) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 10_000;
    let parks = matches!(life, Life::Whole);
    builder.check(move || {
        let ghost: Ghost = Arc::new(Mutex::new(vec![(SOURCE, at(0)); workers]));
        let mut replicas: Vec<_> =
            threads(workers).into_iter().map(|f| Kept::new(Replica::new(f, &ghost, rounds, parks, mutant))).collect();
        let live = move |replica: &mut Replica| {
            replica.start();
            match life {
                Life::Looks(times) => (0..times).for_each(|_| _ = replica.receive()),
                Life::Whole => {
                    while !replica.is_done() {
                        if !replica.receive() {
                            replica.fabric.park(None);
                        }
                    }
                }
            }
        };
        let mut mine = replicas.remove(0);
        let others = replicas.into_iter().map(|mut replica| {
            loom::thread::spawn(move || {
                live(&mut replica);
                replica
            })
        });
        let others: Vec<_> = others.collect();
        live(&mut mine);
        let mut all: Vec<_> = others.into_iter().map(|other| other.join().expect("the thread ends well")).collect();
        all.push(mine);
        while all.iter_mut().any(|replica| replica.receive()) {}
        all.iter().for_each(|replica| replica.check_end());
        assert!(ghost.lock().expect("no model panics twice").is_empty());
    });
}

/// A message that crosses, and one that comes back through the feedback edge; all interleavings of what both do at once.
#[test]
fn protocol_two_workers() {
    model(2, 1, None, Life::Looks(1), Mutant::None);
}

#[test]
fn protocol_two_workers_that_park() {
    model(2, 1, bound(2, Some(3)), Life::Whole, Mutant::None);
}

#[test]
fn protocol_three_workers() {
    model(3, 2, Some(2), Life::Looks(1), Mutant::None);
}

#[test]
#[should_panic(expected = "has passed")]
fn protocol_mutant_splits_batches() {
    model(2, 1, None, Life::Looks(2), Mutant::SplitsBatches);
}

#[test]
#[should_panic(expected = "has passed")]
fn protocol_mutant_born_alone() {
    model(2, 1, None, Life::Looks(2), Mutant::BornAlone);
}

#[test]
#[should_panic(expected = "deadlock")]
fn protocol_mutant_does_not_flush() {
    model(2, 1, Some(2), Life::Whole, Mutant::DoesNotFlush);
}
