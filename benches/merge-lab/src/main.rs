//! The command: runs the points, says how far it is, writes the report after each.
#![forbid(unsafe_code)]

use merge_lab::options::HELP;
use merge_lab::{Options, Results, run, summary};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};
use workloads::machine;

fn main() -> ExitCode {
    let options = match Options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(complaint) => {
            eprintln!("merge-lab: {complaint}");
            return ExitCode::from(2);
        }
    };
    if options.help {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match sweep(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("merge-lab: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The date and time, in UTC.
fn now() -> String {
    humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
}

fn sweep(options: &Options) -> Result<(), Box<dyn Error>> {
    let path = options.out.join("report.json");
    let mut results = Results::default();
    if options.resume || options.plot {
        results = Results::read(&path)?.unwrap_or_default();
    }
    if options.plot {
        results.write(&options.out)?;
        return tell(options, &results);
    }
    let points = options.points();
    results.outcomes.retain(|outcome| {
        let wanted = points.contains(&outcome.point) && outcome.load == options.load;
        wanted && outcome.report.disturbed <= options.retry
    });
    let todo: Vec<_> = points.iter().filter(|point| !results.has(point, &options.load)).collect();
    let words: Vec<String> = std::env::args().skip(1).collect();
    results.command = format!("cargo run --release -p merge-lab -- {}", words.join(" ")).trim_end().to_string();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    results.machine = format!("{} × {cores}", machine::processor());

    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    ctrlc::set_handler(move || {
        if stopped.swap(true, SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nmerge-lab: ends after this point; once more ends at once");
    })?;
    let start = Instant::now();
    for (done, point) in todo.iter().enumerate() {
        let left = match done {
            0 => "time left not known yet".to_string(),
            _ => {
                let left = start.elapsed().mul_f64((todo.len() - done) as f64 / done as f64);
                format!("about {} left", humantime::format_duration(Duration::from_secs(left.as_secs() + 1)))
            }
        };
        eprint!("[{}/{}, {left}] {}; {}", done + 1, todo.len(), point.workload_name(), point.policy_name());
        let outcome = run::run(point, &options.load)?;
        let get = |name| outcome.report.get(name).map_or_else(|| "–".to_string(), |metric| metric.show());
        eprintln!(": p50 {}, p99.9 {}, {}", get("p50"), get("p99.9"), get("throughput"));
        results.outcomes.push(outcome);
        results.date = now();
        results.write(&options.out)?;
        if stop.load(SeqCst) {
            eprintln!("merge-lab: stopped; --resume goes on from here");
            break;
        }
    }
    tell(options, &results)
}

/// Prints what was found, and checks that all points came to the same contents.
fn tell(options: &Options, results: &Results) -> Result<(), Box<dyn Error>> {
    println!("{}", summary::markdown(results));
    println!("{} points: {}", results.outcomes.len(), options.out.join("report.html").display());
    match &results.differing()[..] {
        [] => Ok(()),
        [first, ..] => Err(first.clone().into()),
    }
}
