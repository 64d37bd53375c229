//! Measures kpg: `figures measure WORKLOAD [name=value ...]` prints a report as one line of JSON.
#![forbid(unsafe_code)]

use std::process::ExitCode;
use workloads::Spec;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("measure") => match Spec::parse(words) {
            Ok(spec) => {
                println!("{}", figures::measure(&spec).line());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        },
        _ => {
            eprintln!("figures measure WORKLOAD [name=value ...]");
            ExitCode::FAILURE
        }
    }
}
