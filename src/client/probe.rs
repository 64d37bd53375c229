//! Probes: how far a collection's times have come.
#![forbid(unsafe_code)]

use super::error::Error;
use super::waiting;
use crate::dataflow::{Closure, Fuel, Interest, Payload, SharedHandle, Stream};
use crate::operators::{Arranged, Collection};
use crate::order::{Antichain, Semigroup, Timestamp};
use crate::runtime::{Query, Wake};
use crate::sync::{Counter, Monitor, Mutex, Padded};
use crate::trace::Trace;
use kpg_columnar::Columnar;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

impl<T: Timestamp, D: Columnar, R: Semigroup> Collection<'_, T, D, R> {
    /// Tells a client how far this collection's times have come.
    pub fn probe(&self) -> Probe<T> {
        probe(&self.stream)
    }
}

impl<Tr: Trace> Arranged<'_, Tr> {
    /// Tells a client how far this arrangement's times have come; makes no reader of its trace.
    pub fn probe(&self) -> Probe<Tr::Time> {
        probe(&self.stream)
    }
}

fn probe<T: Timestamp, C: Payload>(stream: &Stream<'_, T, C>) -> Probe<T> {
    let mut builder = stream.scope.node("probe");
    let mut input = builder.input(stream);
    let build = stream.scope.build.clone();
    let (local, query) = (build.local().clone(), build.install.query.clone());
    let core = build.handle(|| ProbeCore::<T> {
        shards: (0..local.peers).map(|_| Padded(Shard::default())).collect(),
        waiters: Monitor::new(()),
        query: query.clone(),
    });
    let waiter: std::sync::Weak<ProbeCore<T>> = Arc::downgrade(&core);
    query.register(waiter);
    let (shared, worker) = (core.clone(), local.index);
    builder.finish(
        Interest::Always,
        Closure(move |_: &mut Fuel| {
            while input.next().is_some() {}
            let frontier = input.frontier();
            if shared.shards[worker].0.set(frontier) && shared.waiters.is_awaited() {
                shared.wake();
            }
            false
        }),
    );
    Probe { core, asked: Mutex::new(None) }
}

/// A worker's frontier, which it alone changes, on lines of its own.
struct Shard<T: Timestamp> {
    /// How often it has moved: who asks over and over, as a loop of steps does, takes the lock after a move only.
    moves: Counter,
    frontier: Mutex<Antichain<T>>,
}

impl<T: Timestamp> Default for Shard<T> {
    fn default() -> Self {
        Shard { moves: Counter::default(), frontier: Mutex::new(Antichain::from_elem(T::minimum())) }
    }
}

impl<T: Timestamp> Shard<T> {
    /// Whether that is another.
    fn set(&self, frontier: Antichain<T>) -> bool {
        let mut here = self.frontier.lock();
        let moved = *here != frontier;
        if moved {
            *here = frontier;
            self.moves.set(self.moves.get() + 1);
        }
        moved
    }
    fn is_past(&self, time: &T) -> bool {
        !self.frontier.lock().less_equal(time)
    }
}

struct ProbeCore<T: Timestamp> {
    shards: Box<[Padded<Shard<T>>]>,
    /// Those who wait enlist before they look at the shards; so whoever changes one later sees that they do.
    waiters: Monitor<()>,
    query: Arc<Query>,
}

impl<T: Timestamp> ProbeCore<T> {
    fn is_past(&self, time: &T) -> bool {
        self.shards.iter().all(|shard| shard.0.is_past(time))
    }
}

impl<T: Timestamp> SharedHandle for ProbeCore<T> {}

impl<T: Timestamp> Wake for ProbeCore<T> {
    fn wake(&self) {
        drop(self.waiters.lock());
        self.waiters.notify_all();
    }
}

/// How far a collection's times have come, on all workers. `Send`; a clone is the same.
pub struct Probe<T: Timestamp> {
    core: Arc<ProbeCore<T>>,
    /// What was last asked for and not complete.
    asked: Mutex<Option<Asked<T>>>,
}

/// A time, the first worker where it was not complete, and how often that one's frontier had moved.
struct Asked<T> {
    time: T,
    worker: usize,
    moves: u64,
}

/// Whether all shards are past `time`; `last` is what was asked before. Frontiers do not move back: what was complete for a
/// worker is, and where it was not, it is not until that frontier has moved.
fn ask<T: Timestamp>(shards: &[Padded<Shard<T>>], last: &mut Option<Asked<T>>, time: &T) -> bool {
    let known = last.take().filter(|asked| asked.time == *time);
    let start = known.as_ref().map_or(0, |asked| asked.worker);
    for (worker, Padded(shard)) in shards.iter().enumerate().skip(start) {
        let moves = shard.moves.get();
        let unmoved = known.as_ref().is_some_and(|asked| (asked.worker, asked.moves) == (worker, moves));
        if unmoved || !shard.is_past(time) {
            *last = Some(Asked { time: *time, worker, moves });
            return false;
        }
    }
    true
}

impl<T: Timestamp> Clone for Probe<T> {
    fn clone(&self) -> Self {
        Probe { core: self.core.clone(), asked: Mutex::new(None) }
    }
}

impl<T: Timestamp> fmt::Debug for Probe<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Probe at {:?}", self.frontier())
    }
}

impl<T: Timestamp> Probe<T> {
    /// What is not beyond this frontier is complete.
    pub fn frontier(&self) -> Antichain<T> {
        let mut meet = Antichain::new();
        self.core.shards.iter().for_each(|shard| meet.meet_with(&shard.0.frontier.lock()));
        meet
    }

    /// Whether `time` is complete.
    pub fn is_past(&self, time: &T) -> bool {
        ask(&self.core.shards, &mut self.asked.lock(), time)
    }

    /// Waits until `time` is complete.
    ///
    /// # Errors
    /// When the query ended and `time` will not complete; `Deadline`; `WouldBlock` inside a step.
    pub fn wait_past(&self, time: &T, timeout: Duration) -> Result<(), Error> {
        let clock = &self.core.query.clock;
        let deadline = clock.deadline(timeout);
        // Who steps workers meanwhile does not sleep.
        let sleeps = matches!(waiting::role(), waiting::Role::Client);
        let _enlisted = sleeps.then(|| self.core.waiters.enlist());
        waiting::wait(clock, &self.core.waiters, deadline, &format!("{time:?} was complete"), |()| {
            if self.core.is_past(time) {
                return Some(Ok(()));
            }
            Error::ended(&self.core.query).map(Err)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::Pair;
    use quickcheck::quickcheck;

    quickcheck! {
        /// Whoever asks, and for whatever times in turn, is told what the frontiers say.
        fn what_was_asked_before_changes_no_answer(ops: Vec<(u8, u8, u8)>) -> bool {
            let shards: Vec<_> = (0..3).map(|_| Padded(Shard::<Pair<u64, u64>>::default())).collect();
            let mut last = [None, None];
            ops.into_iter().all(|(op, a, b)| {
                let time = Pair::new(u64::from(a % 4), u64::from(b % 4));
                if op % 3 == 0 {
                    let Padded(shard) = &shards[usize::from(op / 3) % 3];
                    let moved = shard.frontier.lock().join(&Antichain::from_elem(time));
                    shard.set(moved);
                    return true;
                }
                let expected = shards.iter().all(|Padded(shard)| !shard.frontier.lock().less_equal(&time));
                ask(&shards, &mut last[usize::from(op) % 2], &time) == expected
            })
        }
    }
}
