//! Open loop: requests are due at times that no engine can put off, and latency counts from there.
#![forbid(unsafe_code)]

use hdrhistogram::Histogram;
use std::time::{Duration, Instant};

/// A histogram of nanoseconds, up to an hour, in three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 3_600_000_000_000, 3).expect("three digits of an hour")
}

/// So many requests a second, of which those count that are due from `warm` until `end`.
#[derive(Copy, Clone, Debug)]
pub struct OpenLoop {
    /// Requests a second.
    pub rate: u64,
    /// Those due before are not recorded.
    pub warm: Duration,
    /// Nothing is due after.
    pub end: Duration,
}

impl OpenLoop {
    /// When request `i` is due, in nanoseconds from the start.
    pub fn due(&self, i: u64) -> u64 {
        (u128::from(i) * 1_000_000_000 / u128::from(self.rate)) as u64
    }
    /// How many requests are due by `elapsed` nanoseconds after the start.
    pub fn due_by(&self, elapsed: u64) -> u64 {
        let before = elapsed.saturating_add(1).min(self.end.as_nanos() as u64);
        (u128::from(before) * u128::from(self.rate)).div_ceil(1_000_000_000) as u64
    }
    /// Runs it: whenever everything before is done, `serve(from, to)` is given the requests that are due by now and
    /// returns when they are done; `idle` is called while nothing is due. Requests `share.0`, `share.0 + share.1`, … are
    /// this thread's.
    ///
    /// A latency is from when a request was due to when `serve` returned.
    pub fn run(&self, share: (u64, u64), mut serve: impl FnMut(u64, u64), mut idle: impl FnMut()) -> Histogram<u64> {
        let mut latencies = histogram();
        let (warm, end) = (self.warm.as_nanos() as u64, self.end.as_nanos() as u64);
        let (start, mut next) = (Instant::now(), 0);
        loop {
            let now = start.elapsed().as_nanos() as u64;
            let due = self.due_by(now);
            if due == next {
                if now >= end {
                    return latencies;
                }
                idle();
                continue;
            }
            serve(next, due);
            let done = start.elapsed().as_nanos() as u64;
            let first = next + (share.1 + share.0 - next % share.1) % share.1;
            for request in (first..due).step_by(share.1 as usize) {
                let at = self.due(request);
                if at >= warm {
                    latencies.saturating_record(done.saturating_sub(at).max(1));
                }
            }
            next = due;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_request_is_due_once_and_counted_once() {
        let schedule = OpenLoop { rate: 12_345, warm: Duration::from_millis(10), end: Duration::from_millis(40) };
        for share in [(0, 1), (0, 2), (1, 2)] {
            let mut served = 0;
            let latencies = schedule.run(
                share,
                |from, to| {
                    assert_eq!(from, served);
                    served = to;
                },
                std::thread::yield_now,
            );
            assert_eq!(served, schedule.due_by(u64::MAX));
            let counted = (0..served).filter(|i| i % share.1 == share.0 && schedule.due(*i) >= 10_000_000).count();
            assert_eq!(latencies.len(), counted as u64);
        }
        for i in 1..400 {
            assert_eq!(schedule.due_by(schedule.due(i)), i + 1);
            assert_eq!(schedule.due_by(schedule.due(i) - 1), i);
        }
    }
}
