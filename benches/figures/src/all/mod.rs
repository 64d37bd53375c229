//! All figures: what is measured for each, and how it is drawn, printed and kept.
//!
//! ```text
//! plan   which workloads make which figure
//! run    each in a process of its own, so that its memory is its own
//! table  a figure as text          plot   a figure as SVG
//! ```
#![forbid(unsafe_code)]

mod plan;
mod plot;
mod run;
mod table;

pub use plan::{Figure, Kind, Options, Point, figures};

use std::fs;
use std::path::Path;
use workloads::generate::mix;
use workloads::{Report, machine};

/// Measures and draws all figures; gives a hash of all results.
///
/// # Errors
/// A measurement that failed, a file that could not be written.
pub fn all(options: &Options, only: &[String], out: &Path) -> Result<u64, String> {
    fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
    let mut figures = figures(options);
    if let Some(unknown) = only.iter().find(|name| figures.iter().all(|figure| figure.name != **name)) {
        let names: Vec<_> = figures.iter().map(|figure| figure.name.as_str()).collect();
        return Err(format!("there is no figure {unknown}; there are {}", names.join(", ")));
    }
    figures.retain(|figure| only.is_empty() || only.contains(&figure.name));
    println!("{}, {} workers at most", machine::processor(), options.workers);
    let count = figures.iter().map(|figure| figure.points.len()).sum();
    let (mut runs, mut hash) = (run::Runs::new(count), 0);
    for figure in &figures {
        let mut found = Vec::new();
        for point in &figure.points {
            let report = runs.get(&figure.name, point)?;
            hash = mix(hash ^ of_result(&report));
            found.push((point, report));
        }
        println!("\n{}", table::text(figure, &found));
        keep(figure, &found, out)?;
        plot::draw(figure, &found, out)?;
    }
    Ok(hash)
}

fn of_result(report: &Report) -> u64 {
    report.workload.bytes().chain(report.answer.bytes()).fold(0, |hash, byte| mix(hash ^ u64::from(byte)))
}

/// The reports as JSON, one a line.
fn keep(figure: &Figure, found: &[(&Point, Report)], out: &Path) -> Result<(), String> {
    let lines: String = found.iter().map(|(_, report)| report.line() + "\n").collect();
    let path = out.join(format!("{}.json", figure.name));
    fs::write(&path, lines).map_err(|error| format!("{}: {error}", path.display()))
}
