//! kpg's side of every workload: the same updates, at the same moments, as every other engine is given.
//!
//! ```text
//! host      workers on threads of our own, stepped in spinning loops; a client on the first of them
//! watch     how far an arrangement is, and a hash of what changes from some time on
//! keys      throughput and latency of keys that come and go
//! rounds    barrier, single, chain, idle: rounds of next to nothing
//! ```
#![forbid(unsafe_code)]

mod host;
mod keys;
mod rounds;
mod watch;

use std::time::Duration;
use workloads::machine::Meter;
use workloads::{Report, Spec};

/// As long as anything may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs a workload and says what it found.
///
/// # Panics
/// If kpg gives an error, or a parameter cannot be read.
pub fn measure(spec: &Spec) -> Report {
    let mut report = Report {
        engine: "kpg".to_string(),
        workload: spec.workload.name.to_string(),
        parameters: spec.parameters.clone(),
        ..Report::default()
    };
    let meter = Meter::start();
    match spec.workload.name {
        "throughput" => keys::throughput(spec, &mut report),
        "latency" => keys::latency(spec, &mut report),
        "barrier" => rounds::barrier(spec, &mut report),
        "single" => rounds::single(spec, &mut report),
        "chain" => rounds::chain(spec, &mut report),
        "idle" => rounds::idle(spec, &mut report),
        other => panic!("{other} is not measured"),
    }
    report.disturbed = meter.others();
    report
}
