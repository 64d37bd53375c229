//! The fabric of a simulation: all workers on one thread, a seeded delivery that does whatever the promise permits.
//!
//! ```text
//!   queues[from][to] = { messages: m3 m2 m1 ▶, entries: e2 e1 ▶ }     each receive takes some prefix of each queue
//! ```
//!
//! Messages and entries of one sender are separate queues, so either overtakes the other. How much is taken, and in which
//! order, is the schedule's to say (`Schedule::arrivals`): a queue that is not empty is refused `REFUSALS` times in a row
//! and no more; so everything arrives. The same schedule and the same calls give the same delivery.
//!
//! Cost: a receive looks at all queues to this worker. Next stop: the worker, which does not know the difference.
#![forbid(unsafe_code)]

use super::super::decision::Freight;
use super::super::schedule::{Schedule, Waiting, lanes};
use super::{Fabric, Incoming};
use crate::sync::{Parker, Unparker};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

struct Queue<I> {
    items: VecDeque<I>,
    refused: u32,
}

impl<I> Default for Queue<I> {
    fn default() -> Self {
        Queue { items: VecDeque::new(), refused: 0 }
    }
}

/// All that is on its way.
struct Net<M, P> {
    peers: usize,
    schedule: Rc<RefCell<Schedule>>,
    /// By sender · peers + receiver: messages, then entries.
    messages: Vec<Queue<M>>,
    entries: Vec<Queue<P>>,
}

/// One worker's end of the fabric of a simulation.
pub struct SimFabric<M, P> {
    index: usize,
    peers: usize,
    net: Rc<RefCell<Net<M, P>>>,
    unparkers: Rc<[Unparker]>,
}

/// The ends of a simulated fabric, by worker.
///
/// # Panics
/// If `peers` is 0.
pub fn simulation<M, P>(peers: usize, seed: u64) -> Vec<SimFabric<M, P>> {
    scheduled(peers, Rc::new(RefCell::new(Schedule::new(seed))))
}

/// As [`simulation`]; the schedule is shared with those who choose the rest.
///
/// # Panics
/// If `peers` is 0.
pub fn scheduled<M, P>(peers: usize, schedule: Rc<RefCell<Schedule>>) -> Vec<SimFabric<M, P>> {
    assert!(peers > 0, "a fabric without workers");
    let net = Net {
        peers,
        schedule,
        messages: (0..peers * peers).map(|_| Queue::default()).collect(),
        entries: (0..peers * peers).map(|_| Queue::default()).collect(),
    };
    let net = Rc::new(RefCell::new(net));
    // Nobody sleeps here; clients that wake a worker need something to wake all the same.
    let unparkers: Rc<[Unparker]> = (0..peers).map(|_| Parker::new().unparker()).collect();
    (0..peers).map(|index| SimFabric { index, peers, net: net.clone(), unparkers: unparkers.clone() }).collect()
}

impl<M, P> Net<M, P> {
    /// Moves prefixes of the queues to worker `to`, in the order of the schedule, into `arrived`.
    fn deliver(&mut self, to: usize, limit: usize, arrived: &mut Vec<Incoming<M, P>>) {
        let waiting = lanes(self.peers).map(|lane| {
            let at = lane.from * self.peers + to;
            let (count, refused) = match lane.freight {
                Freight::Messages => (self.messages[at].items.len(), self.messages[at].refused),
                Freight::Progress => (self.entries[at].items.len(), self.entries[at].refused),
            };
            Waiting { lane, count, refused }
        });
        let waiting: Vec<_> = waiting.collect();
        let arrivals = self.schedule.borrow_mut().arrivals(to, &waiting);
        for (index, count) in arrivals {
            let Waiting { lane, count: len, refused } = waiting[index];
            let (from, at) = (lane.from, lane.from * self.peers + to);
            let count = count.min(limit - arrived.len());
            let refused = if len > 0 && count == 0 { refused + 1 } else { 0 };
            match lane.freight {
                Freight::Messages => {
                    self.messages[at].refused = refused;
                    let items = self.messages[at].items.drain(..count);
                    arrived.extend(items.map(|message| Incoming::Message { from, message }));
                }
                Freight::Progress => {
                    self.entries[at].refused = refused;
                    let items = self.entries[at].items.drain(..count);
                    arrived.extend(items.map(|entry| Incoming::Progress { from, entry }));
                }
            }
        }
    }
}

impl<M, P> SimFabric<M, P> {
    /// Items on their way to any worker: 0 when the fabric is quiet.
    pub fn in_flight(&self) -> usize {
        let net = self.net.borrow();
        let messages: usize = net.messages.iter().map(|queue| queue.items.len()).sum();
        messages + net.entries.iter().map(|queue| queue.items.len()).sum::<usize>()
    }
}

impl<M, P: Clone> Fabric<M, P> for SimFabric<M, P> {
    fn index(&self) -> usize {
        self.index
    }

    fn peers(&self) -> usize {
        self.peers
    }

    fn send(&mut self, to: usize, message: M) {
        assert!(to < self.peers, "worker {to} of {}", self.peers);
        self.net.borrow_mut().messages[self.index * self.peers + to].items.push_back(message);
    }

    fn broadcast(&mut self, entry: P) {
        let mut net = self.net.borrow_mut();
        for to in (0..self.peers).filter(|&to| to != self.index) {
            net.entries[self.index * self.peers + to].items.push_back(entry.clone());
        }
    }

    fn flush(&mut self) {}

    fn receive(&mut self, limit: usize, f: &mut dyn FnMut(Incoming<M, P>)) -> usize {
        let mut arrived = Vec::new();
        // Handed over without the borrow: what `f` drops may reach other ends.
        self.net.borrow_mut().deliver(self.index, limit, &mut arrived);
        let count = arrived.len();
        arrived.into_iter().for_each(f);
        count
    }

    fn has_incoming(&self) -> bool {
        let net = self.net.borrow();
        (0..self.peers)
            .map(|from| from * self.peers + self.index)
            .any(|at| !net.messages[at].items.is_empty() || !net.entries[at].items.is_empty())
    }

    fn park(&mut self, _timeout: Option<Duration>) {}

    fn unparkers(&self) -> &[Unparker] {
        &self.unparkers
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::schedule::REFUSALS;
    use super::*;

    /// Sends `count` of each kind from worker 1 to worker 0, then receives; returns the order of arrival.
    fn run(seed: u64, count: usize, limit: usize) -> Vec<Incoming<usize, usize>> {
        let mut ends = simulation(2, seed);
        for n in 0..count {
            ends[1].send(0, n);
            ends[1].broadcast(n);
        }
        let mut all = Vec::new();
        let mut receives = 0;
        while ends[0].has_incoming() {
            assert!(ends[0].receive(limit, &mut |incoming| all.push(incoming)) <= limit);
            receives += 1;
            assert!(receives <= 2 * count * (REFUSALS as usize + 1) + 2, "it must all arrive");
        }
        assert_eq!(ends[0].in_flight(), 0);
        all
    }

    #[test]
    fn fifo_live_and_reproducible() {
        for seed in 0..200 {
            let all = run(seed, 20, if seed % 2 == 0 { usize::MAX } else { 3 });
            let of = |entries: bool| -> Vec<usize> {
                let wanted = all.iter().filter_map(|incoming| match incoming {
                    Incoming::Message { from: 1, message } if !entries => Some(*message),
                    Incoming::Progress { from: 1, entry } if entries => Some(*entry),
                    _ => None,
                });
                wanted.collect()
            };
            assert_eq!(of(false), (0..20).collect::<Vec<_>>());
            assert_eq!(of(true), (0..20).collect::<Vec<_>>());
            assert_eq!(all.len(), 40);
            assert_eq!(all, run(seed, 20, if seed % 2 == 0 { usize::MAX } else { 3 }));
        }
    }

    #[test]
    fn each_kind_overtakes_the_other() {
        let all_of_one_first = |entries: bool| {
            (0..1000).any(|seed| {
                let all = run(seed, 3, usize::MAX);
                all[..3].iter().all(|incoming| matches!(incoming, Incoming::Progress { .. }) == entries)
            })
        };
        assert!(all_of_one_first(true) && all_of_one_first(false));
    }

    #[test]
    fn to_itself_and_to_all_others() {
        let mut ends = simulation(3, 7);
        ends[1].send(1, "self");
        ends[1].broadcast("all");
        assert_eq!(ends[0].in_flight(), 3);
        for (index, end) in ends.iter_mut().enumerate() {
            let mut all = Vec::new();
            while end.has_incoming() {
                end.receive(1, &mut |incoming| all.push(incoming));
            }
            let expected = match index {
                1 => Incoming::Message { from: 1, message: "self" },
                _ => Incoming::Progress { from: 1, entry: "all" },
            };
            assert_eq!(all, [expected]);
        }
    }
}
