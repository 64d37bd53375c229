//! A thread that takes snapshots of the graph, keeps each for a while, and reads it again before it lets go.
//!
//! ```text
//! soak ── (time, what was there) ──► reader: snapshot_at(time) ── taken ──► soak goes on changing the graph
//!                                     └─ later: reads it whole, compares, drops it
//! reader, unasked: snapshot() at any moment; a few nodes read at once and again before it is dropped
//! ```
//!
//! What was there is handed over as a count and a sum, so that what waits is not another copy of the graph.
//! Next stop: `soak`.

use super::Fault;
use crate::changes::{Edge, Random};
use crate::queries::{Edges, Index};
use kpg::trace::{OrdBatch, Snapshot};
use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Snapshots are kept for less than this.
const KEPT_MILLIS: usize = 2000;

/// Between two that nobody asked for, less than this.
const UNASKED_MILLIS: usize = 200;

/// Nodes read of one that nobody asked for.
const NODES: usize = 5;

/// How many edges, and the sum of their scrambled forms: equal for equal sets, and different for others unless one is lucky
/// as one in 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content(usize, u64);

impl Content {
    /// Of these edges, in any order.
    pub fn of(edges: impl Iterator<Item = Edge>) -> Self {
        edges.fold(Content(0, 0), |Content(count, sum), (source, target)| {
            // splitmix64's last steps.
            let mut word = (u64::from(source) << 32 | u64::from(target)).wrapping_add(0x9E37_79B9_7F4A_7C15);
            word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            Content(count + 1, sum.wrapping_add(word ^ (word >> 31)))
        })
    }
}

type Taken = Snapshot<OrdBatch<u32, u32, u64, i64>>;

/// What a snapshot must hold when it is let go.
enum Expected {
    /// All of it, turned if it is by target.
    Whole { content: Content, turned: bool },
    /// What these nodes had when it was taken.
    Nodes(Vec<(u32, Vec<(u32, i64)>)>),
}

struct Held {
    snapshot: Taken,
    expected: Expected,
    until: Instant,
}

/// The live end of the thread.
pub struct Reader {
    asks: Sender<(u64, Content)>,
    taken: Receiver<()>,
    thread: JoinHandle<Result<u64, String>>,
}

impl Reader {
    /// A thread that reads `edges` of nodes below `nodes`.
    pub fn start(edges: &Edges, nodes: usize, seed: u64, fault: Option<Fault>) -> Self {
        let (asks, asked) = channel();
        let (say_taken, taken) = channel();
        let indexes = [edges.by_source.clone(), edges.by_target.clone()];
        let reading = Reading {
            indexes,
            nodes,
            random: Random::new(seed),
            held: VecDeque::new(),
            leaked: Vec::new(),
            leaks: fault == Some(Fault::Snapshots),
            count: 0,
        };
        Reader { asks, taken, thread: std::thread::spawn(move || reading.run(&asked, &say_taken)) }
    }

    /// Has a snapshot taken at `time`, which is complete and not past the next one, and returns once it is.
    ///
    /// # Errors
    /// The thread is gone: `stop` says why.
    pub fn ask(&self, time: u64, content: Content) -> Result<(), String> {
        let gone = |_| "the thread that reads snapshots is gone".to_string();
        self.asks.send((time, content)).map_err(|error| gone(error.to_string()))?;
        self.taken.recv().map_err(|error| gone(error.to_string()))
    }

    /// Ends the thread: how many snapshots it took.
    ///
    /// # Errors
    /// The first snapshot that did not hold what it should.
    pub fn stop(self) -> Result<u64, String> {
        drop(self.asks);
        self.thread.join().expect("the reader does not panic")
    }
}

struct Reading {
    indexes: [Index; 2],
    nodes: usize,
    random: Random,
    held: VecDeque<Held>,
    /// Where a planted leak puts what should be dropped.
    leaked: Vec<Taken>,
    leaks: bool,
    count: u64,
}

impl Reading {
    fn run(mut self, asked: &Receiver<(u64, Content)>, taken: &Sender<()>) -> Result<u64, String> {
        loop {
            let pause = Duration::from_millis(1 + self.random.below(UNASKED_MILLIS) as u64);
            match asked.recv_timeout(pause) {
                Ok((time, content)) => {
                    self.take_whole(time, content)?;
                    if taken.send(()).is_err() {
                        return Ok(self.count);
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.take_nodes()?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let now = Instant::now();
            let (due, held) = std::mem::take(&mut self.held).into_iter().partition(|held| held.until <= now);
            self.held = held;
            self.let_go(due)?;
        }
        let rest = std::mem::take(&mut self.held);
        self.let_go(rest)?;
        Ok(self.count)
    }

    fn keep(&mut self, snapshot: Taken, expected: Expected) {
        let until = Instant::now() + Duration::from_millis(self.random.below(KEPT_MILLIS) as u64);
        self.held.push_back(Held { snapshot, expected, until });
        self.count += 1;
    }

    fn take_whole(&mut self, time: u64, content: Content) -> Result<(), String> {
        let turned = self.random.below(2) == 1;
        let snapshot = self.indexes[usize::from(turned)]
            .wait_snapshot(&time, crate::watch::PATIENCE)
            .map_err(|error| format!("a snapshot at {time}: {error}"))?;
        self.keep(snapshot, Expected::Whole { content, turned });
        Ok(())
    }

    fn take_nodes(&mut self) -> Result<(), String> {
        let index = &self.indexes[self.random.below(2)];
        let snapshot = index.snapshot().map_err(|error| format!("the latest snapshot: {error}"))?;
        let nodes = (0..NODES).map(|_| self.random.below(self.nodes) as u32);
        let read = nodes.map(|node| (node, snapshot.get(&node).collect::<Vec<_>>())).collect();
        self.keep(snapshot, Expected::Nodes(read));
        Ok(())
    }

    fn let_go(&mut self, due: VecDeque<Held>) -> Result<(), String> {
        for Held { snapshot, expected, .. } in due {
            let time = snapshot.time();
            match expected {
                Expected::Whole { content, turned } => {
                    let edges = snapshot.iter().map(|(key, val, _)| if turned { (val, key) } else { (key, val) });
                    let found = Content::of(edges);
                    let once = snapshot.iter().all(|(_, _, diff)| diff == 1);
                    if found != content || !once {
                        return Err(format!(
                            "a snapshot at {time} has other edges than were there: {found:?}, not {content:?}"
                        ));
                    }
                }
                Expected::Nodes(read) => {
                    if let Some((node, _)) =
                        read.iter().find(|(node, vals)| !snapshot.get(node).eq(vals.iter().copied()))
                    {
                        return Err(format!("a snapshot at {time} reads otherwise the second time, at node {node}"));
                    }
                }
            }
            if self.leaks {
                self.leaked.push(snapshot);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_sets_apart() {
        let edges = [(1, 2), (3, 4), (5, 6)];
        let content = Content::of(edges.iter().copied());
        assert_eq!(content, Content::of(edges.iter().rev().copied()));
        for other in [&edges[..2], &[(1, 2), (3, 4), (6, 5)], &[(1, 2), (3, 4), (5, 7)]] {
            assert_ne!(content, Content::of(other.iter().copied()));
        }
    }
}
