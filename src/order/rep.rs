//! `rep`: the one time that stands for all times alike to readers from a frontier on.
#![forbid(unsafe_code)]

use super::{Antichain, Lattice};

/// The representative of `time` for readers from `since` on: the meet over f in `since` of (`time` join f).
///
/// For every s beyond `since`: `time` ≤ s iff `rep(time)` ≤ s; and two times alike to all such s have one
/// representative. An empty `since` (no reader) leaves the time as it is. Cost: one join and one meet an element.
/// Shared Arrangements (VLDB 2020), section 5.1, "consolidation".
pub fn rep<T: Lattice + Clone>(time: &T, since: &Antichain<T>) -> T {
    let mut elements = since.elements().iter();
    match elements.next() {
        None => time.clone(),
        Some(first) => elements.fold(time.join(first), |meet, f| meet.meet(&time.join(f))),
    }
}
