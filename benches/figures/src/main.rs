//! Measures kpg, and draws the figures.
//!
//! ```text
//! figures measure WORKLOAD [name=value ...]    prints a report as one line of JSON
//! figures all [options] [FIGURE ...]           measures all, or these; prints tables, writes JSON and SVG
//! ```
#![forbid(unsafe_code)]

use figures::all::{Options, all};
use lexopt::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;
use workloads::Spec;

const HELP: &str = "\
figures measure WORKLOAD [name=value ...]   a report as one line of JSON; `smoke` among the words: in small
figures all [options] [FIGURE ...]          all figures and tables, or these

  -w, --workers N     at most so many workers (2)
      --rates A,B,…   offered loads, updates a second (1000000,500000,250000,125000)
      --keys N        live keys (10000000)
      --seconds S     how long each open loop is measured (10)
      --out DIR       where JSON and SVG go (target/figures)
      --smoke         all in small, in less than a minute
  -h, --help          this";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("measure") => {
            println!("{}", figures::measure(&Spec::parse(words)?).line());
            Ok(())
        }
        Some("all") => draw(lexopt::Parser::from_args(words)).map_err(|error| error.to_string()),
        Some("-h" | "--help") => {
            println!("{HELP}");
            Ok(())
        }
        _ => Err(HELP.to_string()),
    }
}

fn draw(mut arguments: lexopt::Parser) -> Result<(), lexopt::Error> {
    let rates = vec![1_000_000, 500_000, 250_000, 125_000];
    let mut options = Options { workers: 2, rates, keys: 10_000_000, seconds: 10.0, smoke: false };
    let (mut out, mut only) = (PathBuf::from("target/figures"), Vec::new());
    while let Some(argument) = arguments.next()? {
        match argument {
            Short('w') | Long("workers") => options.workers = arguments.value()?.parse()?,
            Long("rates") => {
                let text = arguments.value()?.string()?;
                let rates = text.split(',').map(str::parse).collect::<Result<_, _>>();
                options.rates = rates.map_err(|_| format!("--rates {text}: numbers, with commas between them"))?;
            }
            Long("keys") => options.keys = arguments.value()?.parse()?,
            Long("seconds") => options.seconds = arguments.value()?.parse()?,
            Long("out") => out = arguments.value()?.into(),
            Long("smoke") => {
                options = Options { rates: vec![20_000, 10_000], keys: 10_000, seconds: 0.1, smoke: true, ..options };
            }
            Short('h') | Long("help") => {
                println!("{HELP}");
                return Ok(());
            }
            Value(name) => only.push(name.string()?),
            other => return Err(other.unexpected()),
        }
    }
    if options.workers == 0 || options.rates.is_empty() || options.rates.contains(&0) {
        return Err("at least one worker, and one rate".into());
    }
    let hash = all(&options, &only, &out)?;
    println!("hash of all results: {hash:016x}; JSON and SVG are in {}", out.display());
    Ok(())
}
