//! How an engine is run, and how one install is.
#![forbid(unsafe_code)]

use super::error::Error;
use crate::dataflow::QUANTUM;
use crate::runtime::topology::{self, CoreId};
use crate::trace::MergePolicy;
use kpg_arena::ArenaConfig;
use std::time::Duration;

/// Ticks without data that an importer which nobody watches is not told of, unless configured.
const IDLE_TICK: usize = 256;

/// How an engine is run. `Config::default()` takes every core, one pinned worker each, and no cap on memory.
#[derive(Clone, Debug)]
pub struct Config {
    workers: Option<usize>,
    cores: Option<Vec<usize>>,
    pinned: bool,
    pub(super) arena: ArenaConfig,
    pub(super) merge_policy: MergePolicy,
    pub(super) quantum: usize,
    pub(super) idle_tick: usize,
    pub(super) install_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            workers: None,
            cores: None,
            pinned: true,
            arena: ArenaConfig::default(),
            merge_policy: MergePolicy::default(),
            quantum: QUANTUM as usize,
            idle_tick: IDLE_TICK,
            install_timeout: Duration::from_secs(30),
        }
    }
}

impl Config {
    /// Number of workers, at least 1. If it is not said, one for each core that was named, or else that can be used.
    pub fn workers(mut self, count: usize) -> Self {
        self.workers = Some(count);
        self
    }
    /// The cores that workers are pinned to, by the system's numbers: worker 0 to the first, and so on; at least as many
    /// as there are workers. A core that this process may not use, or that is named twice, is an error when the engine
    /// starts. Workers on a host's threads are told theirs ([`super::WorkerSeed::core`]); those of a simulation have none.
    pub fn cores(mut self, cores: impl IntoIterator<Item = usize>) -> Self {
        self.cores = Some(cores.into_iter().collect());
        self
    }
    /// Whether each worker is pinned to a core of its own; if no cores are named and there are more workers than cores,
    /// none is.
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }
    /// The most bytes that each worker's arena holds live; a query that asks for more ends with an error.
    pub fn arena_cap(mut self, bytes: usize) -> Self {
        self.arena.cap_bytes = Some(bytes);
        self
    }
    /// How workers' arenas behave otherwise.
    pub fn arena(mut self, config: ArenaConfig) -> Self {
        self.arena = config;
        self
    }
    /// How traces merge: what each new batch pays, between short steps and few batches.
    pub fn merge_policy(mut self, policy: MergePolicy) -> Self {
        self.merge_policy = policy;
        self
    }
    /// About how many updates an operator may touch before it yields, at least 1: less shortens steps, more shortens the
    /// work as a whole. Tests set it to very little, so that everything yields everywhere.
    pub fn quantum(mut self, updates: usize) -> Self {
        self.quantum = updates.clamp(1, isize::MAX as usize / 8);
        self
    }
    /// How many ticks without data of an arrangement pass before an importer is told whose dataflow nobody watches: one
    /// without probe, subscription, published arrangement, node that always hears, or capability held by a node other
    /// than an importer. At least 1, which tells of each; ticks within one quantum of the arrangement's dataflow are one.
    /// What such a dataflow keeps of its sources lags by at most so many ticks; data, and ends, are told at once.
    ///
    /// A count, not a time, so that the lag is bounded whatever the pace, and simulations repeat.
    pub fn idle_tick(mut self, ticks: usize) -> Self {
        self.idle_tick = ticks.max(1);
        self
    }
    /// How long an install, or a retirement, waits for the slowest worker before it gives up with `Deadline`, if it is
    /// not told.
    pub fn install_timeout(mut self, timeout: Duration) -> Self {
        self.install_timeout = timeout;
        self
    }

    /// Number of workers.
    pub(super) fn worker_count(&self) -> usize {
        let named = || self.cores.as_ref().map(Vec::len);
        self.workers.or_else(named).unwrap_or_else(topology::usable_cores)
    }

    /// The core that each worker is pinned to.
    ///
    /// # Errors
    /// If it cannot be run.
    pub(super) fn check(&self) -> Result<Vec<Option<CoreId>>, Error> {
        let count = self.worker_count();
        if count == 0 {
            return Err(Error::Config("an engine needs at least one worker: Config::workers(1)".to_string()));
        }
        let usable = topology::cores();
        let Some(named) = &self.cores else {
            let pinned = self.pinned && count <= topology::usable_cores();
            return Ok((0..count).map(|index| usable.get(index).copied().filter(|_| pinned)).collect());
        };
        if count > named.len() {
            return Err(Error::Config(format!(
                "{count} workers, but {} cores: name as many in Config::cores, or ask for fewer workers",
                named.len()
            )));
        }
        for (index, core) in named.iter().enumerate() {
            if named[..index].contains(core) {
                return Err(Error::CoreTwice { core: *core });
            }
            if !usable.iter().any(|usable| usable.id == *core) {
                return Err(Error::NoSuchCore { core: *core, usable: usable.iter().map(|core| core.id).collect() });
            }
        }
        Ok(named[..count].iter().map(|id| self.pinned.then_some(CoreId { id: *id })).collect())
    }
}

/// How one query is installed; see [`super::Engine::install_with`].
#[derive(Clone, Debug, Default)]
pub struct InstallOptions {
    pub(super) cap_bytes: Option<usize>,
    pub(super) timeout: Option<Duration>,
}

impl InstallOptions {
    /// The most bytes that the query may hold, for itself and in what it publishes, on all workers together; past it, it
    /// ends with an error. What it keeps of others' arrangements because it lags counts as well.
    pub fn cap_bytes(mut self, bytes: usize) -> Self {
        self.cap_bytes = Some(bytes);
        self
    }
    /// How long to wait for the slowest worker before the install is given up with `Deadline`, in place of
    /// [`Config::install_timeout`].
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }
}
