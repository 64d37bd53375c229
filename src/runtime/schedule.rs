//! The schedule of a simulation: the choices that are left to the system otherwise, and a trace of what came of them.
//!
//! ```text
//! seed, or a list of decisions ─▶ Schedule ─┬─▶ what was chosen, where that was out of the ordinary: a list of decisions
//!                                           └─▶ trace: a hash of each step, message and change batch in their order
//! ```
//! Which worker steps next and how often, how long a step takes and how much it may do, what has arrived, when there is
//! time to merge: all may be so in a run on threads. Two runs with the same trace were the same; a run by the list that
//! another made is the same run. Where a list says nothing, what is chosen is the ordinary (`decision`). Cost: a few
//! numbers a step; a list holds each decision of the run that made it. Next stop: `worker`.
#![forbid(unsafe_code)]

use super::decision::{Choice, Decision, Decisions, Freight, Key, Lane, Merging, Place, key};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

/// How often in a row a receive may take nothing of what is on its way: enough that other queues are drained several
/// times meanwhile.
pub const REFUSALS: u32 = 6;

/// What a step may do at most, each as likely: little, so that everything yields everywhere, and all.
const QUANTA: [usize; 5] = [1, 4, 32, 256, usize::MAX];

/// One step in so many lasts longer, and so many microseconds at most.
const LONGER: (usize, usize) = (8, 50);

/// The streams of chances: apart, so that one of them does not depend on how much the others were asked.
#[derive(Copy, Clone)]
enum Stream {
    Work,
    Delivery,
    Time,
}

/// What is kept of the runs of some engines, one after the other, also where a panic ends them.
#[derive(Debug, Default)]
pub struct Tape {
    /// What was decided.
    pub decisions: Decisions,
    /// How many engines were started.
    pub engines: u32,
    trace: DefaultHasher,
}

impl Tape {
    /// A hash of all that happened.
    pub fn trace(&self) -> u64 {
        self.trace.finish()
    }
}

/// The choices of one simulation.
pub struct Schedule {
    engine: u32,
    chances: [u64; 3],
    /// In place of chances: what is said, by where.
    said: Option<BTreeMap<Key, Choice>>,
    tape: Option<Arc<Mutex<Tape>>>,
    rounds: u64,
    /// Steps begun, by worker.
    steps: Vec<u64>,
    trace: DefaultHasher,
    events: u64,
}

/// What is on its way, of one lane.
#[derive(Copy, Clone, Debug)]
pub struct Waiting {
    /// Of which.
    pub lane: Lane,
    /// How much.
    pub count: usize,
    /// How often in a row nothing was taken of it.
    pub refused: u32,
}

impl Schedule {
    /// As `seed` says.
    pub fn new(seed: u64) -> Self {
        Schedule {
            engine: 0,
            chances: [seed ^ 0x5851_f42d_4c95_7f2d, seed, seed.rotate_left(32)],
            said: None,
            tape: None,
            rounds: 0,
            steps: Vec::new(),
            trace: DefaultHasher::new(),
            events: 0,
        }
    }

    /// As a list of decisions says.
    pub fn by(decisions: &Decisions) -> Self {
        let said = decisions.0.iter().map(|decision| (decision.key(), decision.choice.clone())).collect();
        Schedule { said: Some(said), ..Schedule::new(0) }
    }

    /// Keeps on a tape what it chooses and what comes of it; its engine is the tape's next.
    pub fn kept_on(self, tape: Arc<Mutex<Tape>>) -> Self {
        let engine = {
            let mut tape = tape.lock();
            tape.engines += 1;
            tape.engines - 1
        };
        Schedule { engine, tape: Some(tape), ..self }
    }

    /// A number below `bound`, from splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
    fn below(&mut self, stream: Stream, bound: usize) -> usize {
        let state = &mut self.chances[stream as usize];
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = *state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) % bound as u64) as usize
    }

    /// What is said at a place, where `like` has the kind of what is asked for.
    fn said(&self, place: Place, like: &Choice) -> Option<&Choice> {
        self.said.as_ref()?.get(&key(self.engine, place, like))
    }

    fn keep(&self, place: Place, choice: Choice) {
        if let Some(tape) = &self.tape {
            tape.lock().decisions.0.push(Decision { engine: self.engine, place, choice });
        }
    }

    /// The step of a worker that is going on.
    fn step_of(&self, worker: usize) -> Place {
        Place::Step { worker, step: self.steps.get(worker).map_or(0, |steps| steps.saturating_sub(1)) }
    }

    /// How arrangements are to merge, if otherwise than by default; to be asked at the start.
    pub fn merging(&mut self, seed: u64) -> Option<Merging> {
        let chosen = match &self.said {
            None => [None, Some(Merging::Lazy), Some(Merging::Eager)][Schedule::new(!seed).below(Stream::Work, 3)],
            Some(_) => match self.said(Place::Start, &Choice::Merging(Merging::Lazy)) {
                Some(Choice::Merging(merging)) => Some(*merging),
                _ => None,
            },
        };
        if let Some(merging) = chosen {
            self.keep(Place::Start, Choice::Merging(merging));
        }
        chosen
    }

    /// Which of `workers` are to step in this round, and in which order: some more than once, and some not.
    pub fn round(&mut self, workers: usize) -> Vec<usize> {
        let place = Place::Round(self.rounds);
        self.rounds += 1;
        let ordinary: Vec<usize> = (0..workers).collect();
        let chosen = match &self.said {
            None => (0..workers).map(|_| self.below(Stream::Work, workers)).collect(),
            Some(_) => match self.said(place, &Choice::Steps(Vec::new())) {
                Some(Choice::Steps(said)) => said.iter().copied().filter(|worker| *worker < workers).collect(),
                _ => ordinary.clone(),
            },
        };
        if chosen != ordinary {
            self.keep(place, Choice::Steps(chosen.clone()));
        }
        chosen
    }

    /// A worker begins a step: how much that may do, at most `most`, and how long it takes.
    pub fn begin(&mut self, worker: usize, most: usize) -> (usize, Duration) {
        if self.steps.len() <= worker {
            self.steps.resize(worker + 1, 0);
        }
        self.steps[worker] += 1;
        let place = self.step_of(worker);
        let (fuel, micros) = match &self.said {
            None => {
                let fuel = QUANTA[self.below(Stream::Work, QUANTA.len())];
                let longer = self.below(Stream::Time, LONGER.0) == 0;
                (fuel, if longer { 1 + self.below(Stream::Time, LONGER.1) as u64 } else { 1 })
            }
            Some(_) => {
                let fuel = match self.said(place, &Choice::Fuel(0)) {
                    Some(Choice::Fuel(fuel)) => (*fuel).max(1),
                    _ => usize::MAX,
                };
                match self.said(place, &Choice::Lasts(0)) {
                    Some(Choice::Lasts(micros)) => (fuel, *micros),
                    _ => (fuel, 1),
                }
            }
        };
        if fuel < most {
            self.keep(place, Choice::Fuel(fuel));
        }
        if micros != 1 {
            self.keep(place, Choice::Lasts(micros));
        }
        (fuel.min(most), Duration::from_micros(micros))
    }

    /// Whether no merge goes on in a worker's step, as if others had needed the core.
    pub fn rests(&mut self, worker: usize) -> bool {
        let place = self.step_of(worker);
        let rests = match &self.said {
            None => self.below(Stream::Work, 2) == 0,
            Some(_) => self.said(place, &Choice::Rests).is_some(),
        };
        if rests {
            self.keep(place, Choice::Rests);
        }
        rests
    }

    /// How many of what waits have arrived at a worker now, and in which order they are taken: places in `waiting`, each
    /// once.
    pub fn arrivals(&mut self, worker: usize, waiting: &[Waiting]) -> Vec<(usize, usize)> {
        let place = self.step_of(worker);
        let mut order: Vec<usize> = (0..waiting.len()).collect();
        if self.said.is_none() {
            for end in (1..order.len()).rev() {
                let other = self.below(Stream::Delivery, end + 1);
                order.swap(end, other);
            }
        } else if let Some(Choice::Order(first)) = self.said(place, &Choice::Order(Vec::new())) {
            order.sort_by_key(|at| first.iter().position(|lane| *lane == waiting[*at].lane).unwrap_or(first.len()));
        }
        let some: Vec<usize> = order.iter().copied().filter(|at| waiting[*at].count > 0).collect();
        if !some.is_sorted() {
            self.keep(place, Choice::Order(some.iter().map(|at| waiting[*at].lane).collect()));
        }
        order.into_iter().map(|at| (at, self.prefix(place, waiting[at]))).collect()
    }

    /// How much of what waits to deliver now; nothing, one, all and any number are all likely.
    fn prefix(&mut self, place: Place, Waiting { lane, count, refused }: Waiting) -> usize {
        if count == 0 {
            return 0;
        }
        let least = usize::from(refused >= REFUSALS);
        let chosen = match &self.said {
            None => match self.below(Stream::Delivery, 4) {
                0 => least,
                1 => 1,
                2 => count,
                _ => 1 + self.below(Stream::Delivery, count),
            },
            Some(_) => match self.said(place, &Choice::Takes(lane, 0)) {
                Some(Choice::Takes(_, said)) => (*said).clamp(least, count),
                _ => count,
            },
        };
        if chosen < count {
            self.keep(place, Choice::Takes(lane, chosen));
        }
        chosen
    }

    /// Notes what happened.
    pub fn note(&mut self, event: impl Hash) {
        event.hash(&mut self.trace);
        self.events += 1;
        if let Some(tape) = &self.tape {
            event.hash(&mut tape.lock().trace);
        }
    }

    /// A hash of all that happened, and how much that was.
    pub fn trace(&self) -> (u64, u64) {
        (self.trace.finish(), self.events)
    }
}

/// The lanes on which something comes to a worker, in the ordinary order.
pub fn lanes(peers: usize) -> impl Iterator<Item = Lane> {
    (0..peers).flat_map(|from| [Freight::Messages, Freight::Progress].map(|freight| Lane { from, freight }))
}
