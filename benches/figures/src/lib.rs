//! kpg's side of every workload: the same updates, at the same moments, as every other engine is given.
//!
//! ```text
//! host      workers on threads of our own, stepped in spinning loops; a client on the first of them
//! watch     how far an arrangement is, and a hash of what changes from some time on
//! keys      throughput and latency of keys that come and go
//! stored    join, attached, memory: a large arrangement, a new query on it, many queries on it, its bytes
//! graph     graph and incremental: queries of `graphs`, beside `plain` code
//! datalog   closure and pointers: rules until nothing follows
//! interactive  look-ups and paths on a graph held both ways
//! rounds    barrier, single, chain, idle: rounds of next to nothing
//! all       the figures, which the program draws
//! ```
#![forbid(unsafe_code)]

pub mod all;
pub mod datalog;
mod graph;
mod graphs;
mod host;
mod interactive;
mod keys;
pub mod plain;
mod rounds;
mod stored;
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
        "join" => stored::join(spec, &mut report),
        "attached" => stored::attached(spec, &mut report),
        "memory" => stored::memory(spec, &mut report),
        "graph" => graph::graph(spec, &mut report),
        "incremental" => graph::incremental(spec, &mut report),
        "closure" => datalog::closure(spec, &mut report),
        "pointers" => datalog::pointers(spec, &mut report),
        "interactive" => interactive::interactive(spec, &mut report),
        "barrier" => rounds::barrier(spec, &mut report),
        "single" => rounds::single(spec, &mut report),
        "chain" => rounds::chain(spec, &mut report),
        "idle" => rounds::idle(spec, &mut report),
        other => panic!("{other} is not measured"),
    }
    report.disturbed = meter.others();
    report
}
