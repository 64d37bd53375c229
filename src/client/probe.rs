//! Probes: how far a collection's times have come.
#![forbid(unsafe_code)]

use super::error::Error;
use super::waiting;
use crate::dataflow::{Closure, Fuel, Interest, Payload, SharedHandle, Stream};
use crate::operators::{Arranged, Collection};
use crate::order::{Antichain, Semigroup, Timestamp};
use crate::runtime::{Query, Wake};
use crate::sync::{Counter, Monitor, Mutex};
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
        frontiers: Monitor::new(vec![Antichain::from_elem(T::minimum()); local.peers]),
        moves: Counter::default(),
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
            let mut frontiers = shared.frontiers.lock();
            if frontiers[worker] != frontier {
                frontiers[worker] = frontier;
                shared.moves.add(1);
                drop(frontiers);
                shared.frontiers.notify_all();
            }
            false
        }),
    );
    Probe { core, asked: Mutex::new(None) }
}

struct ProbeCore<T: Timestamp> {
    frontiers: Monitor<Vec<Antichain<T>>>,
    /// How often one of them has moved.
    moves: Counter,
    query: Arc<Query>,
}

impl<T: Timestamp> SharedHandle for ProbeCore<T> {}

impl<T: Timestamp> Wake for ProbeCore<T> {
    fn wake(&self) {
        drop(self.frontiers.lock());
        self.frontiers.notify_all();
    }
}

fn meet<T: Timestamp>(frontiers: &[Antichain<T>]) -> Antichain<T> {
    let mut meet = Antichain::new();
    frontiers.iter().for_each(|frontier| meet.meet_with(frontier));
    meet
}

/// As the meet of the frontiers would say it, which need not be made for that.
fn is_past<T: Timestamp>(frontiers: &[Antichain<T>], time: &T) -> bool {
    !frontiers.iter().any(|frontier| frontier.less_equal(time))
}

/// How far a collection's times have come, on all workers. `Send`; a clone is the same.
pub struct Probe<T: Timestamp> {
    core: Arc<ProbeCore<T>>,
    /// What was last asked for and not complete, and how often frontiers had moved until then: who asks over and over, as a
    /// loop of steps does, then takes no lock that other threads want.
    asked: Mutex<Option<(u64, T)>>,
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
        meet(&self.core.frontiers.lock())
    }

    /// Whether `time` is complete.
    pub fn is_past(&self, time: &T) -> bool {
        let asked = Some((self.core.moves.get(), *time));
        let mut last = self.asked.lock();
        if *last == asked {
            return false;
        }
        let is_past = is_past(&self.core.frontiers.lock(), time);
        *last = asked.filter(|_| !is_past);
        is_past
    }

    /// Waits until `time` is complete.
    ///
    /// # Errors
    /// When the query ended and `time` will not complete; `Deadline`; `WouldBlock` inside a step.
    pub fn wait_past(&self, time: &T, timeout: Duration) -> Result<(), Error> {
        let clock = &self.core.query.clock;
        let deadline = clock.deadline(timeout);
        waiting::wait(clock, &self.core.frontiers, deadline, &format!("{time:?} was complete"), |frontiers| {
            if is_past(frontiers, time) {
                return Some(Ok(()));
            }
            Error::ended(&self.core.query).map(Err)
        })
    }
}
