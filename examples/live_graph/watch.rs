//! A thread per query that waits for its changes, notes when they came, and adds them up.
//!
//! ```text
//! live ── time ──► watcher: wait_past(time) ── (query, time, when, how many) ──► live
//!                     └─ accumulated result, read by live between rounds
//! ```
//!
//! A query's latency is taken by its own thread, so that it is not that of whichever query is waited for first.
//! Next stop: `live`.

use kpg::prelude::*;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a round may take before the run is given up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What a query's changes add up to.
#[derive(Default)]
pub struct Accumulated(HashMap<(u32, u32), i64>);

impl Accumulated {
    /// One change.
    pub fn add(&mut self, pair: (u32, u32), diff: i64) {
        let count = self.0.entry(pair).or_insert(0);
        *count += diff;
        if *count == 0 {
            self.0.remove(&pair);
        }
    }

    /// The pairs that are there, sorted.
    pub fn pairs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.0.keys().copied()
    }

    /// The first pair that is not there exactly once, or is and is not expected, and how often it is there.
    pub fn first_difference(&self, expected: &[(u32, u32)]) -> Option<((u32, u32), i64)> {
        let missing = expected.iter().filter(|pair| self.0.get(pair) != Some(&1));
        let more = self.0.keys().filter(|pair| expected.binary_search(pair).is_err());
        let first = missing.chain(more).min()?;
        Some((*first, self.0.get(first).copied().unwrap_or(0)))
    }
}

/// Word from a watcher: a time is complete.
pub struct Word {
    /// The number given to `Watcher::start`.
    pub query: usize,
    /// When its changes were handed over, and how many there were.
    pub complete: Result<(Instant, usize), kpg::Error>,
}

/// The live end of a watcher.
pub struct Watcher {
    times: Sender<u64>,
    accumulated: Arc<Mutex<Accumulated>>,
    thread: JoinHandle<()>,
}

impl Watcher {
    /// A thread that watches `changes` and sends word to `words`.
    pub fn start(query: usize, mut changes: Subscription<u64, (u32, u32)>, words: Sender<Word>) -> Self {
        let (times, asked): (_, Receiver<u64>) = channel();
        let accumulated = Arc::new(Mutex::new(Accumulated::default()));
        let adding = accumulated.clone();
        let thread = std::thread::spawn(move || {
            for time in asked {
                let complete = changes.wait_past(&time, PATIENCE).map(|changes| {
                    let when = Instant::now();
                    let mut accumulated = adding.lock().expect("nobody panics while holding it");
                    let count = changes.len();
                    changes.into_iter().for_each(|(pair, _, diff)| accumulated.add(pair, diff));
                    (when, count)
                });
                if words.send(Word { query, complete }).is_err() {
                    return;
                }
            }
        });
        Watcher { times, accumulated, thread }
    }

    /// Asks for word when `time` is complete.
    pub fn ask(&self, time: u64) {
        // A watcher that is gone has said why.
        let _ = self.times.send(time);
    }

    /// What the changes add up to; between a word and the next `ask`.
    pub fn look<O>(&self, look: impl FnOnce(&Accumulated) -> O) -> O {
        look(&self.accumulated.lock().expect("nobody panics while holding it"))
    }

    /// Ends the thread.
    pub fn stop(self) {
        drop(self.times);
        self.thread.join().expect("a watcher does not panic");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let mut accumulated = Accumulated::default();
        [(1, 2), (3, 4), (3, 4), (5, 6)].iter().for_each(|&pair| accumulated.add(pair, 1));
        accumulated.add((5, 6), -1);
        assert_eq!(accumulated.first_difference(&[(1, 2), (3, 4)]), Some(((3, 4), 2)));
        accumulated.add((3, 4), -1);
        assert_eq!(accumulated.first_difference(&[(1, 2), (3, 4)]), None);
        assert_eq!(accumulated.first_difference(&[(1, 2), (3, 3), (3, 4)]), Some(((3, 3), 0)));
        assert_eq!(accumulated.first_difference(&[(3, 4)]), Some(((1, 2), 1)));
    }
}
