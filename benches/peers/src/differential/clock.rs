//! A closed loop's clock: how long each round took, and all of them.
#![forbid(unsafe_code)]

use hdrhistogram::Histogram;
use std::time::{Duration, Instant};
use workloads::open_loop::histogram;
use workloads::{Report, Unit};

/// So many rounds of next to nothing come before those that are measured.
pub const WARM: u64 = 100;

/// Runs from one round to the next: nothing lies between.
pub struct Clock {
    pub latencies: Histogram<u64>,
    start: Instant,
    before: Instant,
}

impl Clock {
    /// From now on.
    pub fn start() -> Self {
        let start = Instant::now();
        Clock { latencies: histogram(), start, before: start }
    }
    /// What was since the last round does not count.
    pub fn skip(&mut self) {
        self.before = Instant::now();
    }
    /// A round is over.
    pub fn round(&mut self) {
        let now = Instant::now();
        self.latencies.saturating_record((now - self.before).as_nanos() as u64);
        self.before = now;
    }
    /// Until the last round's end.
    pub fn elapsed(&self) -> Duration {
        self.before - self.start
    }
    /// Rounds a second, and how long they took.
    pub fn report(&self, report: &mut Report) {
        report.metric("rounds", self.latencies.len() as f64 / self.elapsed().as_secs_f64(), Unit::PerSecond);
        report.latencies("", &self.latencies);
    }
}

/// Rounds that are not measured, and then those that are.
pub fn closed(rounds: u64, mut round: impl FnMut(u64)) -> Clock {
    (0..WARM).for_each(&mut round);
    let mut clock = Clock::start();
    for number in WARM..WARM + rounds {
        round(number);
        clock.round();
    }
    clock
}
