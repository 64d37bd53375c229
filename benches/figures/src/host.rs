//! Workers on threads of our own, as a service hosts them that has no time to sleep.
//!
//! ```text
//! thread 0: client: install, then its share of the work ─┐ each steps its worker
//! thread 1: waits for work, stepping; then its share    ─┘ until all are done
//! ```
#![forbid(unsafe_code)]

use crate::PATIENCE;
use kpg::client::HostedWorker;
use kpg::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use workloads::machine;

type Job = Box<dyn FnOnce(&Turn) + Send>;

/// A thread's worker, and which of how many it is.
pub struct Turn {
    pub index: usize,
    pub peers: usize,
    worker: HostedWorker,
    arrived: Arc<AtomicUsize>,
}

impl Turn {
    /// Steps the worker once; true iff there was, or is, something to do.
    pub fn step(&self) -> bool {
        self.worker.step()
    }
    /// Steps the worker until something holds.
    pub fn until(&self, done: impl Fn() -> bool) {
        while !done() {
            self.worker.step();
        }
    }
    /// Steps the worker until all have come here equally often.
    pub fn meet(&self) {
        let arrived = 1 + self.arrived.fetch_add(1, Ordering::AcqRel);
        let all = arrived.next_multiple_of(self.peers);
        self.until(|| self.arrived.load(Ordering::Acquire) >= all);
    }
}

/// An engine whose worker 0 is this thread's.
pub struct Host {
    pub engine: Engine,
    pub turn: Turn,
    others: Vec<(Sender<Job>, JoinHandle<()>)>,
}

impl Host {
    /// With so many workers, each pinned to a core of its own.
    pub fn start(workers: usize) -> Host {
        Host::start_with(workers, MergePolicy::default())
    }

    /// As `start`, merging as it is told.
    pub fn start_with(workers: usize, policy: MergePolicy) -> Host {
        let config = Config::default().workers(workers).pinned(false).merge_policy(policy);
        let (engine, seeds) = Engine::start_hosted(config).expect("a configuration that can be run");
        let arrived = Arc::new(AtomicUsize::new(0));
        let turn = move |index, worker, arrived| Turn { index, peers: workers, worker, arrived };
        let mut seeds = seeds.into_iter().enumerate();
        let (_, first) = seeds.next().expect("a worker");
        machine::pin(0);
        let others = seeds.map(|(index, seed)| {
            let (jobs, todo): (Sender<Job>, Receiver<Job>) = channel();
            let arrived = arrived.clone();
            let thread = std::thread::spawn(move || {
                machine::pin(index);
                let turn = turn(index, seed.start(), arrived);
                while !turn.worker.is_stopped() {
                    turn.step();
                    if let Ok(job) = todo.try_recv() {
                        job(&turn);
                    }
                }
            });
            (jobs, thread)
        });
        let others = others.collect();
        Host { engine, turn: turn(0, first.start(), arrived), others }
    }

    /// Gives each thread its share of some work, and waits until all are done: what each found, by worker.
    pub fn together<S: Send + 'static, O: Send + 'static>(
        &self,
        shares: Vec<S>,
        work: impl Fn(&Turn, S) -> O + Send + Sync + 'static,
    ) -> Vec<O> {
        let work = Arc::new(work);
        let mut shares = shares.into_iter();
        let own = shares.next().expect("a share for each worker");
        let waiting: Vec<_> = self
            .others
            .iter()
            .map(|(jobs, _)| {
                let (share, work, (found, finding)) =
                    (shares.next().expect("a share for each worker"), work.clone(), channel());
                let job: Job = Box::new(move |turn| {
                    turn.meet();
                    found.send(work(turn, share)).expect("the client waits");
                });
                jobs.send(job).expect("a worker's thread ends after the engine");
                finding
            })
            .collect();
        self.turn.meet();
        let mut all = vec![work(&self.turn, own)];
        for finding in waiting {
            loop {
                if let Ok(found) = finding.try_recv() {
                    all.push(found);
                    break;
                }
                self.turn.step();
            }
        }
        all
    }

    /// As many sessions of an input as there are workers.
    pub fn sessions<D: Columnar>(&self, input: Input<u64, D>) -> Vec<Input<u64, D>> {
        let mut sessions: Vec<_> = (1..self.turn.peers).map(|_| input.clone()).collect();
        sessions.insert(0, input);
        sessions
    }

    /// Stops everything.
    pub fn stop(self) {
        self.engine.shutdown(PATIENCE).expect("nothing keeps the workers");
        for (jobs, thread) in self.others {
            drop(jobs);
            thread.join().expect("a worker's thread ends well");
        }
    }
}
