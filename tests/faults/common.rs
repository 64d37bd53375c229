//! What all cases share, beside the witness.

pub use super::witness::{SOON, Witness};
use kpg::prelude::*;
use kpg::simulation::{Simulated, Simulation};

/// Whether nothing is left out, however long it takes.
pub fn heavy() -> bool {
    std::env::var_os("KPG_HEAVY").is_some_and(|value| value == "1")
}

/// Two workers on this thread.
pub fn simulated(seed: u64) -> Simulated {
    quiet();
    Simulation::new(seed).workers(2).start().unwrap()
}

/// Panics that are meant are not printed: those of fuses.
pub fn quiet() {
    super::witness::silence(|info| info.payload_as_str().is_some_and(|text| text.starts_with("the fuse")));
}

/// Bytes live in the workers' arenas that are on no query's account.
pub fn unaccounted(engine: &Engine) -> i64 {
    let known: usize = engine.metrics().queries.iter().map(|query| query.bytes.private + query.bytes.shared).sum();
    super::witness::live(engine) as i64 - known as i64
}
