//! Each workload on differential-dataflow.
//!
//! ```text
//! crew     workers: pinned, they never park
//! clock    closed loops
//! keyed    one input of keys, and what is maintained of it: throughput, latency, single
//! rounds   what moves no data, or hardly any: barrier, chain, idle
//! ```
#![forbid(unsafe_code)]

mod clock;
mod crew;
mod keyed;
mod rounds;

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
        "barrier" => rounds::barrier(spec, setting, report),
        "chain" => rounds::chain(spec, setting, report),
        "idle" => rounds::idle(spec, setting, report),
        name => Err(format!("{name}: not on this engine")),
    }
}
