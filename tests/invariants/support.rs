//! What these tests share: engines, seeded schedules, inputs over two-dimensional times, and sums to compare with.

use kpg::order::PartialOrder;
use kpg::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;

/// No test waits longer than this for anything.
pub const LONG: Duration = Duration::from_secs(30);

/// Times of two independent coordinates.
pub type Time2 = Pair<u64, u64>;

pub fn pair(first: u64, second: u64) -> Time2 {
    Pair::new(first, second)
}

/// Splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) % bound
    }
    pub fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// An engine on threads that are not pinned.
pub fn threads(workers: usize) -> Engine {
    Engine::start(Config::default().workers(workers).pinned(false)).expect("threads")
}

/// An engine whose workers all run on this thread, stepped as the test says.
pub struct Sim {
    pub engine: Engine,
    pub workers: Vec<kpg::client::HostedWorker>,
}

pub fn simulated(workers: usize, seed: u64, policy: MergePolicy) -> Sim {
    let config = Config::default().workers(workers).pinned(false).merge_policy(policy);
    let (engine, workers) = Engine::start_simulated(config, seed).expect("a simulation");
    Sim { engine, workers }
}

impl Sim {
    /// Steps one worker, once.
    pub fn step(&self, random: &mut Random) {
        self.workers[random.below(self.workers.len() as u64) as usize].step();
    }

    /// Steps single workers, up to `most` times in all.
    pub fn some_steps(&self, random: &mut Random, most: u64) {
        for _ in 0..random.below(most + 1) {
            self.step(random);
        }
    }

    /// Steps all until nothing has happened for as long as a message may be delayed.
    ///
    /// # Panics
    /// If that does not come about.
    pub fn settle(&self) {
        let mut quiet = 0;
        for _ in 0..1_000_000 {
            let busy = self.workers.iter().filter(|worker| worker.step()).count() > 0;
            quiet = if busy { 0 } else { quiet + 1 };
            if quiet > 20 {
                return;
            }
        }
        panic!("the workers do not come to rest");
    }
}

pub type Sums<D> = BTreeMap<D, i64>;

/// What the updates at or before `at` add up to.
pub fn sums<D: Ord + Clone, T: PartialOrder>(updates: &[(D, T, i64)], at: &T) -> Sums<D> {
    let mut out = Sums::new();
    for (datum, time, diff) in updates {
        if time.less_equal(at) {
            *out.entry(datum.clone()).or_insert(0) += diff;
        }
    }
    out.retain(|_, sum| *sum != 0);
    out
}

/// The join of two collections, from what they add up to.
pub fn joined(left: &Sums<(u64, u64)>, right: &Sums<(u64, u64)>) -> Sums<(u64, (u64, u64))> {
    let mut out = Sums::new();
    for ((key, v1), r1) in left {
        for ((_, v2), r2) in right.range((*key, 0)..=(*key, u64::MAX)) {
            out.insert((*key, (*v1, *v2)), r1 * r2);
        }
    }
    out
}

/// Greatest coordinate of the times that a `Feed` makes.
pub const SIDE: u64 = 7;

/// All times of the square that random updates and their joins lie in.
pub fn square() -> impl Iterator<Item = Time2> {
    (0..=SIDE).flat_map(|a| (0..=SIDE).map(move |b| pair(a, b)))
}

/// An input that is fed at random times by several sessions, and all that was put in.
pub struct Feed {
    pub sessions: Vec<Input<Time2, (u64, u64)>>,
    pub model: Vec<((u64, u64), Time2, i64)>,
}

impl Feed {
    pub fn new(input: Input<Time2, (u64, u64)>) -> Self {
        let other = input.clone();
        Feed { sessions: vec![input, other], model: Vec::new() }
    }

    fn later(random: &mut Random, time: Time2, most: u64) -> Time2 {
        let (a, b) = (random.below(most + 1), random.below(most + 1));
        pair((time.first + a).min(SIDE), (time.second + b).min(SIDE))
    }

    /// Puts in an update at a random time that a random session still has.
    pub fn push(&mut self, random: &mut Random, keys: u64, vals: u64) {
        let session = random.below(self.sessions.len() as u64) as usize;
        let session = &mut self.sessions[session];
        let time = Self::later(random, session.time(), 3);
        let datum = (random.below(keys), random.below(vals));
        // Often just what cancels an earlier update.
        let (datum, diff) = match self.model.last() {
            Some((last, _, diff)) if random.below(3) == 0 => (*last, -diff),
            _ => (datum, random.below(4) as i64 - 1),
        };
        session.update_at(datum, time, diff).expect("the query lives");
        if random.coin() {
            session.flush().expect("the query lives");
        }
        self.model.push((datum, time, diff));
    }

    /// Moves a random session on, each along its own axis more than along the other.
    pub fn advance(&mut self, random: &mut Random) {
        let index = random.below(self.sessions.len() as u64) as usize;
        let session = &mut self.sessions[index];
        let mut time = Self::later(random, session.time(), 2);
        if random.coin() {
            let old = session.time();
            time = if index == 0 { pair(time.first, old.second) } else { pair(old.first, time.second) };
        }
        session.advance_to(time).expect("the query lives");
    }

    pub fn frontier(&self) -> Antichain<Time2> {
        self.sessions.iter().map(|session| session.time()).collect()
    }

    /// Lets the last session go.
    pub fn close(self) -> Vec<((u64, u64), Time2, i64)> {
        self.model
    }
}

/// What a subscription has handed over up to now.
pub struct Heard<D: Columnar + Clone + Ord, T: Timestamp> {
    pub subscription: Subscription<T, D>,
    pub updates: Vec<(D, T, i64)>,
}

impl<D: Columnar + Clone + Ord + std::fmt::Debug, T: Timestamp> Heard<D, T> {
    pub fn new(subscription: Subscription<T, D>) -> Self {
        Heard { subscription, updates: Vec::new() }
    }

    /// Takes what is complete; then all that is complete among `times` must be as `truth` says.
    pub fn check(&mut self, times: impl Iterator<Item = T>, truth: impl Fn(&T) -> Sums<D>) {
        let complete = self.subscription.complete();
        self.updates.extend(self.subscription.poll().expect("the query lives"));
        for at in times.filter(|at| !complete.less_equal(at)) {
            assert_eq!(sums(&self.updates, &at), truth(&at), "at {at:?}, complete up to {complete:?}");
        }
    }

    /// Whether everything is complete.
    pub fn is_closed(&self) -> bool {
        self.subscription.complete().is_empty()
    }
}

/// The frontier's times, in order, to compare.
pub fn sorted<T: Ord + Copy + PartialOrder>(frontier: &Antichain<T>) -> Vec<T> {
    let mut times = frontier.elements().to_vec();
    times.sort();
    times
}
