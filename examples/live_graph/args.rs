//! The command line: what may be asked for, and a sentence for everything that may not.
//!
//! Parsing takes the words and the number of cores as arguments, so that tests need neither. Next stop: `load`.

use crate::load::Form;
use lexopt::{Arg, Parser, ValueExt};
use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What `--help` prints.
pub const HELP: &str = "\
live_graph: several queries over one graph that keeps changing, all reading the same index

usage: live_graph [FILE] [options]

FILE is an edge list: a line is a source and a target, names or numbers, separated by a tab, a comma or blanks;
lines that start with # are skipped. Without FILE: what depends on what in Debian 12.

  -w, --workers N   workers, each pinned to a core (default: 2, or 1 where there is one core)
  --rounds N        rounds of changes after the graph is loaded (default: 1000)
  --seed N          seed of the changes; the same seed makes the same changes (default: 1)
  --adjacency       a line of FILE is a node and all its targets, separated by blanks
  --soak SECONDS    instead: queries come and go at random for so long, and memory must stay flat (at least 8)
  --curve FILE      with --soak: where its samples go, columns separated by tabs
  -h, --help        this page
";

/// What the words ask for.
#[derive(Debug, PartialEq)]
pub enum Command {
    /// Print [`HELP`].
    Help,
    /// Load the graph and run the queries.
    Run(Args),
    /// Load the graph and let queries come and go.
    Soak(Args, Soak),
}

/// How to run.
#[derive(Debug, PartialEq)]
pub struct Args {
    /// The graph's file; `None` is the data that comes with the example.
    pub file: Option<PathBuf>,
    /// What a line of the file is.
    pub form: Form,
    /// Number of workers, at least 1 and at most the number of cores.
    pub workers: usize,
    /// Rounds of changes.
    pub rounds: u64,
    /// Seed of the changes.
    pub seed: u64,
}

/// How long to soak.
#[derive(Debug, PartialEq)]
pub struct Soak {
    /// Seconds after the graph is loaded.
    pub seconds: u64,
    /// Where the samples go.
    pub curve: Option<PathBuf>,
}

/// A quarter of a shorter soak has too few rounds to say anything; a longer one would be years.
const SOAK_SECONDS: RangeInclusive<u64> = 8..=1_000_000;

/// Reads the words after the program's name; `cores` is how many this process may use.
///
/// # Errors
/// A sentence for the user: what is wrong and what to do.
pub fn parse<I>(words: I, cores: usize) -> Result<Command, String>
where
    I: IntoIterator,
    I::Item: Into<OsString>,
{
    let mut args = Args { file: None, form: Form::Edges, workers: cores.clamp(1, 2), rounds: 1000, seed: 1 };
    let (mut rounds, mut soak, mut curve) = (None, None, None);
    let mut parser = Parser::from_args(words);
    while let Some(arg) = parser.next().map_err(sentence)? {
        match arg {
            Arg::Short('h') | Arg::Long("help") => return Ok(Command::Help),
            Arg::Short('w') | Arg::Long("workers") => args.workers = workers(number(&mut parser, "-w")?, cores)?,
            Arg::Long("rounds") => rounds = Some(number(&mut parser, "--rounds")?),
            Arg::Long("seed") => args.seed = number(&mut parser, "--seed")?,
            Arg::Long("soak") => soak = Some(seconds(number(&mut parser, "--soak")?)?),
            Arg::Long("curve") => curve = Some(file(&mut parser, "--curve")?),
            Arg::Long("adjacency") => args.form = Form::Adjacency,
            Arg::Value(file) if args.file.is_none() => args.file = Some(file.into()),
            Arg::Value(file) => {
                return Err(format!("one FILE at a time: {} is one too many.", file.to_string_lossy()));
            }
            other => return Err(sentence(other.unexpected())),
        }
    }
    if args.file.is_none() {
        args.form = Form::Adjacency; // the data that comes with the example
    }
    match (soak, rounds, curve) {
        (Some(_), Some(_), _) => Err("--soak runs by the clock, --rounds by rounds: give one of the two.".into()),
        (Some(seconds), None, curve) => Ok(Command::Soak(args, Soak { seconds, curve })),
        (None, _, Some(_)) => Err("--curve has the samples of a soak: give --soak SECONDS too, or neither.".into()),
        (None, rounds, None) => {
            args.rounds = rounds.unwrap_or(args.rounds);
            Ok(Command::Run(args))
        }
    }
}

fn seconds(asked: u64) -> Result<u64, String> {
    if SOAK_SECONDS.contains(&asked) {
        return Ok(asked);
    }
    let (least, most) = (SOAK_SECONDS.start(), SOAK_SECONDS.end());
    Err(format!(
        "--soak {asked} tells nothing about growth: give from {least} to {most} seconds, for example --soak 20."
    ))
}

fn file(parser: &mut Parser, option: &str) -> Result<PathBuf, String> {
    let word =
        parser.value().map_err(|_| format!("{option} needs a file after it, for example {option} curve.tsv."))?;
    Ok(word.into())
}

fn workers(asked: u64, cores: usize) -> Result<usize, String> {
    match usize::try_from(asked) {
        Ok(0) => Err("-w 0 leaves nobody to do the work: give at least one worker, for example -w 1.".into()),
        Ok(count) if count <= cores => Ok(count),
        _ => Err(format!(
            "-w {asked} is more than the {cores} core(s) this process may use, and each worker is pinned to a core of \
             its own: give -w {cores} or less, or let the process use more cores."
        )),
    }
}

fn number(parser: &mut Parser, option: &str) -> Result<u64, String> {
    let word = parser.value().map_err(|_| format!("{option} needs a number after it, for example {option} 1."))?;
    word.parse::<u64>()
        .map_err(|_| format!("{option} takes a whole number that is not negative, not `{}`.", word.to_string_lossy()))
}

fn sentence(error: lexopt::Error) -> String {
    format!("{error}; live_graph --help lists what there is.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(words: &[&str]) -> Args {
        match parse(words, 4) {
            Ok(Command::Run(args)) => args,
            other => panic!("{words:?} gave {other:?}"),
        }
    }

    fn refused(words: &[&str]) -> String {
        parse(words, 4).expect_err("these words are refused")
    }

    #[test]
    fn nothing_is_the_built_in_data_on_two_workers() {
        let args = Args { file: None, form: Form::Adjacency, workers: 2, rounds: 1000, seed: 1 };
        assert_eq!(run(&[]), args);
        let alone = parse(["-h"; 0], 1);
        assert_eq!(alone, Ok(Command::Run(Args { workers: 1, ..args })));
    }

    #[test]
    fn every_option_is_read() {
        let args = run(&["-w2", "--rounds=7", "graph.csv", "--seed", "9"]);
        let file = Some("graph.csv".into());
        assert_eq!(args, Args { file, form: Form::Edges, workers: 2, rounds: 7, seed: 9 });
        assert_eq!(run(&["--adjacency", "f", "--workers", "3"]).form, Form::Adjacency);
        assert_eq!(parse(["-w", "2", "--help"], 4), Ok(Command::Help));
        assert_eq!(parse(["-h"], 4), Ok(Command::Help));
    }

    #[test]
    fn a_soak_has_seconds_and_perhaps_a_curve() {
        let soak = |words: &[&str]| match parse(words, 4) {
            Ok(Command::Soak(args, soak)) => (args.seed, soak),
            other => panic!("{words:?} gave {other:?}"),
        };
        assert_eq!(soak(&["--soak", "20"]), (1, Soak { seconds: 20, curve: None }));
        let curve = Some("c.tsv".into());
        assert_eq!(soak(&["--curve=c.tsv", "--seed", "3", "--soak=8"]), (3, Soak { seconds: 8, curve }));
    }

    #[test]
    fn refusals_say_what_to_do() {
        assert!(refused(&["-w", "0"]).contains("give at least one worker"));
        assert!(refused(&["-w", "5"]).contains("give -w 4 or less"));
        assert!(refused(&["-w", "99999999999999999999"]).contains("whole number"));
        assert!(refused(&["-w"]).contains("needs a number"));
        assert!(refused(&["--rounds", "-1"]).contains("whole number"));
        assert!(refused(&["--seed", "x"]).contains("not `x`"));
        assert!(refused(&["a", "b"]).contains("b is one too many"));
        assert!(refused(&["--soak"]).contains("needs a number"));
        assert!(refused(&["--soak", "7"]).contains("from 8 to"));
        assert!(refused(&["--soak=1000001"]).contains("to 1000000 seconds"));
        assert!(refused(&["--soak", "20", "--rounds", "5"]).contains("one of the two"));
        assert!(refused(&["--curve", "f"]).contains("give --soak"));
        assert!(refused(&["--soak", "20", "--curve"]).contains("needs a file"));
        assert!(refused(&["--frobnicate"]).contains("--help lists"));
    }

    #[test]
    fn help_names_every_option() {
        for option in ["FILE", "-w", "--rounds", "--seed", "--adjacency", "--soak", "--curve", "--help"] {
            assert!(HELP.contains(option), "{option} is missing");
        }
    }
}
