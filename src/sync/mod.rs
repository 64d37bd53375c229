//! Sync: the only atomics, locks and parking of the engine, on std or, under `--cfg loom`, on loom.
//!
//! ```text
//! spsc     one sender, one receiver, a list of segments       messages between two workers
//! log      one writer, many readers, a list of segments       progress, from one worker to all others
//! parker   sleep until woken, a wake is one atomic swap        a worker with nothing to do      (README.md)
//! mutex    std's, without poisoning
//! monitor  a mutex, those blocked on it and futures' wakers    clients that wait for the engine
//! cell     one published Arc behind one atomic word            a published shard
//! scoped   a borrowed closure, run on other threads            the install closure
//! ```
//!
//! Each structure stands in one small file with its loom models, and among those at least one mutant (a weakened
//! ordering, a lost wake-up) that the model must reject. Run them with their own target directory:
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test --profile loom --lib sync
//! ```
//!
//! Unsafe code is in `spsc`, `log`, `cell` and `scoped` only. Next stop up: `progress`; the fabric that uses the
//! queues is in `runtime`.

mod cell;
pub mod log;
mod monitor;
mod mutex;
mod parker;
mod scoped;
mod shim;
pub mod spsc;

pub use cell::ArcCell;
pub use monitor::{Monitor, MonitorGuard};
pub use mutex::{Mutex, MutexGuard};
pub use parker::{Parker, Unparker};
pub use scoped::{Entered, Outcome, ScopedCall};
pub(crate) use shim::Padded;
#[cfg(all(test, loom))]
pub(crate) use shim::{Kept, bound};

/// A number that no other call in this process has given.
#[cfg(not(loom))]
pub fn unique() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A count to which any thread adds, and which any thread reads; it orders nothing else.
#[cfg(not(loom))]
#[derive(Debug, Default)]
pub struct Counter(std::sync::atomic::AtomicU64);

#[cfg(not(loom))]
impl Counter {
    /// Adds.
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, std::sync::atomic::Ordering::Relaxed);
    }
    /// Replaces the sum, for a thread that alone writes it.
    pub fn set(&self, sum: u64) {
        self.0.store(sum, std::sync::atomic::Ordering::Relaxed);
    }
    /// The sum so far.
    pub fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}
