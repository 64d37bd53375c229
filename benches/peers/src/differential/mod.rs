//! Each workload on differential-dataflow.
//!
//! ```text
//! crew         workers: pinned, they never park
//! clock        closed loops
//! keyed        one input of keys, and what is maintained of it: throughput, latency, single
//! stored       join, attached, memory: a large arrangement, dataflows on it, the bytes of it
//! graph        graph and incremental
//! datalog      closure and pointers
//! interactive  queries that come and go
//! sums         how many results there are
//! rounds       what moves no data, or hardly any: barrier, chain, idle
//! ```
#![forbid(unsafe_code)]

mod clock;
mod crew;
mod datalog;
mod graph;
mod interactive;
mod keyed;
mod rounds;
mod stored;
mod sums;

use crate::setting::Setting;
use workloads::{Report, Spec};

/// Runs a workload and adds its numbers and its answer to the report.
///
/// # Errors
/// A workload that is not here, or whose data is not.
pub fn measure(spec: &Spec, setting: Setting, report: &mut Report) -> Result<(), String> {
    match spec.workload.name {
        "throughput" => keyed::throughput(spec, setting, report),
        "latency" => keyed::latency(spec, setting, report),
        "single" => keyed::single(spec, setting, report),
        "join" => stored::join(spec, setting, report),
        "attached" => stored::attached(spec, setting, report),
        "memory" => stored::memory(spec, setting, report),
        "graph" => graph::graph(spec, setting, report),
        "incremental" => graph::incremental(spec, setting, report),
        "closure" => datalog::closure(spec, setting, report),
        "pointers" => datalog::pointers(spec, setting, report),
        "interactive" => interactive::interactive(spec, setting, report),
        "barrier" => rounds::barrier(spec, setting, report),
        "chain" => rounds::chain(spec, setting, report),
        "idle" => rounds::idle(spec, setting, report),
        name => Err(format!("{name}: not on this engine")),
    }
}
