//! The fabric of workers on threads: a ring per ordered pair, a log per sender, a parker per worker.
//!
//! Invariant: whoever is in `unflushed` has been sent something since it was last woken; everyone else has been
//! woken after the last thing sent to it. A parker's wake-up publishes what was sent before it, and `park` looks at all
//! queues before it sleeps, so no message is slept over (sync/README.md).
//!
//! Cost: a send is a push to a ring; a flush one atomic swap per receiver; an idle receive two loads per peer. With one
//! worker there are no queues but the local one. Next stop: `simulation`, the same promises on one thread.
#![forbid(unsafe_code)]

use super::{Fabric, Incoming};
use crate::runtime::topology;
use crate::sync::{Parker, Unparker, log, spsc};
use std::collections::VecDeque;
use std::time::Duration;

/// Items taken from one queue before the next has its turn: enough to stay within a cache line or two of the ring's
/// bookkeeping, few enough that a burst delays others by microseconds only.
const TURN: usize = 32;

/// Looks at the queues before going to sleep, when every worker has a core: some microseconds, about what a sleep and a
/// wake-up cost.
const SPINS: usize = 200;

/// Queues from one other worker.
struct Peer<M, P> {
    from: usize,
    messages: spsc::Receiver<M>,
    entries: log::Reader<P>,
}

/// One worker's end of the fabric of threads.
pub struct ThreadFabric<M, P> {
    index: usize,
    /// By receiver; none to itself.
    rings: Vec<Option<spsc::Sender<M>>>,
    log: log::Writer<P>,
    /// What this worker has sent to itself.
    local: VecDeque<M>,
    /// All others.
    peers: Vec<Peer<M, P>>,
    /// Where in `peers` the next receive starts.
    turn: usize,
    /// Receivers to wake at the next flush, each once; `is_unflushed` by receiver.
    unflushed: Vec<usize>,
    is_unflushed: Vec<bool>,
    parker: Parker,
    unparkers: Vec<Unparker>,
    spins: usize,
}

/// The ends of a fabric of threads, by worker. Each goes to its own thread.
///
/// # Panics
/// If `peers` is 0.
pub fn threads<M: Send, P: Clone + Send + Sync>(peers: usize) -> Vec<ThreadFabric<M, P>> {
    assert!(peers > 0, "a fabric without workers");
    // loom is to see each look at the queues once.
    let spins = if peers <= topology::usable_cores() && !cfg!(loom) { SPINS } else { 0 };
    let parkers: Vec<Parker> = (0..peers).map(|_| Parker::new()).collect();
    let unparkers: Vec<Unparker> = parkers.iter().map(Parker::unparker).collect();
    let mut ends: Vec<ThreadFabric<M, P>> = Vec::with_capacity(peers);
    let mut incoming: Vec<Vec<Peer<M, P>>> = (0..peers).map(|_| Vec::with_capacity(peers - 1)).collect();
    for (index, parker) in parkers.into_iter().enumerate() {
        let (log, readers) = log::broadcast(peers - 1);
        let mut readers = readers.into_iter();
        let mut rings = Vec::with_capacity(peers);
        for (to, incoming) in incoming.iter_mut().enumerate() {
            if to == index {
                rings.push(None);
                continue;
            }
            let (ring, messages) = spsc::channel();
            rings.push(Some(ring));
            let entries = readers.next().expect("as many readers as other workers");
            incoming.push(Peer { from: index, messages, entries });
        }
        ends.push(ThreadFabric {
            index,
            rings,
            log,
            local: VecDeque::new(),
            peers: Vec::new(),
            turn: 0,
            unflushed: Vec::with_capacity(peers),
            is_unflushed: vec![false; peers],
            parker,
            unparkers: unparkers.clone(),
            spins,
        });
    }
    ends.iter_mut().zip(incoming).for_each(|(end, peers)| end.peers = peers);
    ends
}

impl<M: Send, P: Clone + Send + Sync> ThreadFabric<M, P> {
    fn mark(&mut self, to: usize) {
        if !self.is_unflushed[to] {
            self.is_unflushed[to] = true;
            self.unflushed.push(to);
        }
    }

    /// One turn of each queue, entries first. Returns the items handed over.
    fn round(&mut self, limit: usize, f: &mut dyn FnMut(Incoming<M, P>)) -> usize {
        let mut taken = 0;
        for offset in 0..self.peers.len() {
            let at = (self.turn + offset) % self.peers.len();
            let peer = &mut self.peers[at];
            let from = peer.from;
            for _ in 0..TURN.min(limit - taken) {
                let Some(entry) = peer.entries.next(P::clone) else { break };
                f(Incoming::Progress { from, entry });
                taken += 1;
            }
            for _ in 0..TURN.min(limit - taken) {
                let Some(message) = peer.messages.receive() else { break };
                f(Incoming::Message { from, message });
                taken += 1;
            }
        }
        for _ in 0..TURN.min(limit - taken) {
            let Some(message) = self.local.pop_front() else { break };
            f(Incoming::Message { from: self.index, message });
            taken += 1;
        }
        taken
    }
}

impl<M: Send, P: Clone + Send + Sync> Fabric<M, P> for ThreadFabric<M, P> {
    fn index(&self) -> usize {
        self.index
    }

    fn peers(&self) -> usize {
        self.rings.len()
    }

    #[inline]
    fn send(&mut self, to: usize, message: M) {
        match &mut self.rings[to] {
            Some(ring) => {
                ring.send(message);
                self.mark(to);
            }
            None => self.local.push_back(message),
        }
    }

    fn broadcast(&mut self, entry: P) {
        if self.peers.is_empty() {
            return;
        }
        self.log.append(entry);
        let index = self.index;
        (0..self.rings.len()).filter(|&to| to != index).for_each(|to| self.mark(to));
    }

    fn flush(&mut self) {
        while let Some(to) = self.unflushed.pop() {
            self.is_unflushed[to] = false;
            self.unparkers[to].unpark();
        }
    }

    fn receive(&mut self, limit: usize, f: &mut dyn FnMut(Incoming<M, P>)) -> usize {
        let mut taken = 0;
        while taken < limit {
            let round = self.round(limit - taken, f);
            // Each round starts one further, so that a small limit does not favour anyone.
            self.turn = (self.turn + 1) % self.peers.len().max(1);
            if round == 0 {
                break;
            }
            taken += round;
        }
        taken
    }

    fn has_incoming(&self) -> bool {
        !self.local.is_empty() || self.peers.iter().any(|peer| !peer.messages.is_empty() || !peer.entries.is_empty())
    }

    fn park(&mut self, timeout: Option<Duration>) {
        self.flush();
        for _ in 0..self.spins {
            if self.parker.is_notified() || self.has_incoming() {
                break;
            }
            std::hint::spin_loop();
        }
        if self.has_incoming() {
            return;
        }
        match timeout {
            None => self.parker.park(),
            Some(timeout) => {
                self.parker.park_timeout(timeout);
            }
        }
    }

    fn unparkers(&self) -> &[Unparker] {
        &self.unparkers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn received<M: Send, P: Clone + Send + Sync>(end: &mut ThreadFabric<M, P>, limit: usize) -> Vec<Incoming<M, P>> {
        let mut all = Vec::new();
        let count = end.receive(limit, &mut |incoming| all.push(incoming));
        assert_eq!(count, all.len());
        all
    }

    #[test]
    fn one_worker() {
        let mut ends = threads::<u32, u32>(1);
        let end = &mut ends[0];
        end.broadcast(1);
        assert!(!end.has_incoming());
        (0..100).for_each(|n| end.send(0, n));
        let expected: Vec<_> = (0..100).map(|message| Incoming::Message { from: 0, message }).collect();
        assert_eq!(received(end, 70), expected[..70]);
        end.park(None);
        assert_eq!(received(end, 70), expected[70..]);
        end.unparkers()[0].unpark();
        end.park(None);
        end.park(Some(Duration::from_millis(1)));
    }

    #[test]
    fn a_small_limit_starves_nobody() {
        let mut ends = threads::<usize, ()>(3);
        for end in &mut ends[1..] {
            (0..1000).for_each(|_| end.send(0, end.index));
        }
        let mut by = [0; 3];
        (0..100).for_each(|_| {
            ends[0].receive(4, &mut |incoming| by[incoming.from()] += 1);
        });
        assert_eq!(by, [0, 200, 200]);
    }

    /// All workers send to all, and broadcast; each sleeps when there is nothing; FIFO per sender and kind.
    #[test]
    fn all_to_all() {
        const PEERS: usize = 4;
        const COUNT: usize = 500;
        let counted = Arc::new(());
        let threads: Vec<_> = threads::<(usize, Arc<()>), (usize, Arc<()>)>(PEERS)
            .into_iter()
            .map(|mut end| {
                let counted = counted.clone();
                std::thread::spawn(move || {
                    let mut messages = [0; PEERS];
                    let mut entries = [0; PEERS];
                    entries[end.index()] = COUNT;
                    let mut sent = 0;
                    while sent < COUNT || messages != [COUNT; PEERS] || entries != [COUNT; PEERS] {
                        if sent < COUNT {
                            (0..PEERS).for_each(|to| end.send(to, (sent, counted.clone())));
                            end.broadcast((sent, counted.clone()));
                            sent += 1;
                            end.flush();
                        }
                        let count = end.receive(100, &mut |incoming| match incoming {
                            Incoming::Message { from, message } => {
                                assert_eq!(message.0, messages[from]);
                                messages[from] += 1;
                            }
                            Incoming::Progress { from, entry } => {
                                assert_eq!(entry.0, entries[from]);
                                entries[from] += 1;
                            }
                        });
                        if count == 0 && sent == COUNT {
                            let done = messages == [COUNT; PEERS] && entries == [COUNT; PEERS];
                            if !done {
                                end.park(None);
                            }
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn what_is_left_is_dropped() {
        let counted = Arc::new(());
        let mut ends = threads::<Arc<()>, Arc<()>>(3);
        for round in 0..100 {
            for end in &mut ends {
                (0..3).for_each(|to| end.send(to, counted.clone()));
                end.broadcast(counted.clone());
            }
            if round == 50 {
                received(&mut ends[1], 77);
                ends.remove(0);
            }
        }
        drop(ends);
        assert_eq!(Arc::strong_count(&counted), 1);
    }
}
