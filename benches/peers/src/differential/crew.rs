//! Workers: each pinned to its core; whoever waits for a result steps, and never parks.
#![forbid(unsafe_code)]

use crate::setting::Setting;
use std::sync::{Arc, Barrier};
use timely::worker::{ProgressMode, Worker};
use workloads::{Spec, machine};

/// Runs `work` on each worker, and gives what each returns, in their order. The barrier is for moments that are not
/// measured.
pub fn run<T: Send + 'static>(
    spec: &Spec,
    setting: Setting,
    work: impl Fn(&mut Worker, &Barrier) -> T + Send + Sync + 'static,
) -> Vec<T> {
    let mut config = match spec.workers() {
        1 => timely::Config::thread(),
        workers => timely::Config::process(workers),
    };
    let mode = if setting.eager { ProgressMode::Eager } else { ProgressMode::Demand };
    config.worker = config.worker.progress_mode(mode);
    let options = differential_dataflow::Config::default().idle_merge_effort(setting.idle);
    differential_dataflow::configure(&mut config.worker, &options);
    let barrier = Arc::new(Barrier::new(spec.workers()));
    let guards = timely::execute(config, move |worker| {
        machine::pin(worker.index());
        work(worker, &barrier)
    });
    let results = guards.expect("threads can be started").join();
    results.into_iter().map(|result| result.expect("a worker ends well")).collect()
}
