//! `compare quick|full [--runs N] [--again N] [--only WORKLOAD] [--out DIR]`: runs both sides in alternation, and says who is ahead.
#![forbid(unsafe_code)]

use lexopt::{Arg, ValueExt};
use peers::contest::{self, Contest};
use peers::suite::{SUITE, Size};
use peers::table;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "compare quick|full [--runs N] [--again N] [--only WORKLOAD] [--out DIR]";

struct Options {
    size: Size,
    runs: usize,
    again: usize,
    only: Option<String>,
    out: PathBuf,
}

fn options() -> Result<Options, lexopt::Error> {
    let (mut size, mut runs, mut only, mut out) = (None, None, None, PathBuf::from("peers-results"));
    let mut again = 2;
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("runs") => runs = Some(parser.value()?.parse::<usize>()?.max(1)),
            Arg::Long("again") => again = parser.value()?.parse()?,
            Arg::Long("only") => only = Some(parser.value()?.string()?),
            Arg::Long("out") => out = parser.value()?.into(),
            Arg::Value(word) if word == "quick" => size = Some(Size::Quick),
            Arg::Value(word) if word == "full" => size = Some(Size::Full),
            arg => return Err(arg.unexpected()),
        }
    }
    let size = size.ok_or("quick or full?")?;
    let runs = runs.unwrap_or(match size {
        Size::Quick => 1,
        Size::Full => 3,
    });
    Ok(Options { size, runs, again, only, out })
}

fn run(options: &Options) -> std::io::Result<bool> {
    let rows: Vec<_> = SUITE.iter().filter(|row| row.is_part_of(options.size, options.only.as_deref())).collect();
    std::fs::create_dir_all(&options.out)?;
    let mut lines = std::fs::File::create(options.out.join("runs.jsonl"))?;
    let mut contests = Vec::<Contest>::new();
    for (number, row) in rows.iter().enumerate() {
        eprintln!("[{}/{}] {}", number + 1, rows.len(), row.words(options.size).join(" "));
        let contest = contest::hold(row, options.size, options.runs, options.again);
        contest.write(&mut lines)?;
        for line in table::rows(&contest) {
            eprintln!("    {line}");
        }
        contests.push(contest);
        // After each row: whoever stops it keeps what there is.
        std::fs::write(options.out.join("table.md"), table::whole(&contests, options.size, options.runs))?;
    }
    print!("{}", table::whole(&contests, options.size, options.runs));
    Ok(contests.iter().all(|contest| contest.error.is_none()))
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", options.out.display());
            ExitCode::from(2)
        }
    }
}
