//! The workloads on differential-dataflow 0.26 over timely 0.32, as one who knows it well would write them, and the driver
//! that sets kpg beside it.
//!
//! ```text
//! setting       what may be chosen without changing the engine
//! differential  each workload on the peer
//! suite         what is compared, and what is hoped of it
//! contest       both sides in alternation, each run a process
//! table         what came of it
//! ```
#![forbid(unsafe_code)]

pub mod contest;
pub mod differential;
pub mod setting;
pub mod suite;
pub mod table;

use setting::Setting;
use workloads::machine::Meter;
use workloads::{Report, Spec};

/// Measures what the words ask for: a workload, its parameters, and settings of the peer among them.
///
/// # Errors
/// Words that are not understood, or a workload that needs what is not there.
pub fn measure(words: impl IntoIterator<Item = String>) -> Result<Report, String> {
    let (setting, words) = Setting::parse(words)?;
    let spec = Spec::parse(words)?;
    let meter = Meter::start();
    let mut report = Report {
        engine: "differential-dataflow 0.26".to_string(),
        workload: spec.workload.name.to_string(),
        parameters: spec.parameters.clone(),
        ..Report::default()
    };
    report.parameters.extend(setting.parameters());
    differential::measure(&spec, setting, &mut report)?;
    report.disturbed = meter.others();
    Ok(report)
}
