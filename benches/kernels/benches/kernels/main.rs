//! kpg's kernels, each beside its limit: `cargo bench -p kpg-bench --bench kernels`.
//!
//! ```text
//! sort      fresh updates to a sealed batch
//! merge     batches to one
//! seek      keys in batches
//! columns   values in and out of their encodings
//! memory    blocks
//! queues    messages between threads
//! progress  frontiers from counts
//! ```
//! Criterion's options hold; the table at the end is saved to the file that `KPG_BENCH_SAVE` names. Without `--bench`, as
//! `cargo test` runs it, each kernel runs once on a small size, and the table shows the hashes of their results.
#![forbid(unsafe_code)]

mod columns;
mod data;
mod memory;
mod merge;
mod progress;
mod queues;
mod seek;
mod sort;

use kpg::arena::{Arena, ArenaConfig};
use kpg_bench::Lab;

fn main() {
    // As a worker does for its steps: an arena of this thread's own.
    let arena = Arena::new(ArenaConfig::default());
    let _entered = arena.enter();
    workloads::machine::pin(0);
    let meter = workloads::machine::Meter::start();
    let start = std::time::Instant::now();
    let mut lab = Lab::new();
    sort::benches(&mut lab);
    merge::benches(&mut lab);
    seek::benches(&mut lab);
    columns::benches(&mut lab);
    memory::benches(&mut lab);
    queues::benches(&mut lab);
    progress::benches(&mut lab);
    lab.finish();
    let took = start.elapsed().as_secs();
    println!("{took} s; others took {:.0} s of the processors meanwhile", meter.others());
}
