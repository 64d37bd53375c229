//! What is swept, as a command line says.
#![forbid(unsafe_code)]

use kpg::prelude::MergePolicy;
use lexopt::prelude::*;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use workloads::Distribution;

/// What `--help` prints.
pub const HELP: &str = "\
merge-lab: sweeps kpg's merge policies over workloads that arrange updates of keys, and reports what each does to
latency (open loop, from when an update was due), throughput (closed loop), writes, reads and memory.

usage: cargo run --release -p merge-lab -- [OPTIONS]

What is swept; each takes a list, separated by commas, and all combinations run, less those that come to the same:
  --coefficient LIST   fuel that each batch pays to each open merge, for each of its updates; eager is all there is.
                       What is below a fan-out's least is that least.                            [5,16,256]
  --fan-out LIST       batches of a class that are merged at once, 2 to 16                       [2,4,8]
  --idle LIST          fuel that an idle worker spends on merging at a time, 0 for none          [0,1000,10000]
  --batch LIST         updates that are put in at one time, at least                             [10,1000]
  --workers LIST                                                                                 [1,2]
  --keys-are LIST      uniform, zipf:EXPONENT, sequential, hot:PART:SHARE (a part of the keys gets a share of the
                       updates)                                                                  [uniform,zipf:1]

What each point does: loads the keys, then adds and removes keys in turns
  --keys N             keys that are live at any time                                            [500000]
  --rate N             updates a second in open loop                                             [200000]
  --warm SECONDS       of the open loop, not recorded                                            [0.2]
  --seconds SECONDS    of the open loop, recorded                                                [1]
  --closed N           updates put in after that as fast as they are taken; 0: none              [500000]
  --sample SECONDS     how often batches and debt are looked at                                  [0.01]

  --out DIRECTORY      where report.html and report.json go                                      [target/merge-lab]
  --resume             keep what report.json there has of the same points, and run the rest
  --retry SECONDS      with --resume: run those again during which others took more of the processors than that
  --plot               run nothing: draw report.html anew from report.json
  --smoke              small defaults, for a run of seconds
  -h, --help

Both files are written anew after each point; Ctrl-C ends the sweep after the point that runs.
";

/// A combination of all that is swept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// As it takes effect.
    pub coefficient: usize,
    /// Batches of a class merged at once.
    pub fan_out: usize,
    /// Fuel of an idle worker.
    pub idle: usize,
    /// Updates at one time, at least.
    pub batch: u64,
    /// Workers.
    pub workers: usize,
    /// A [`Distribution`], as written.
    pub keys_are: String,
}

impl Point {
    /// The policy.
    pub fn policy(&self) -> MergePolicy {
        MergePolicy {
            coefficient: self.coefficient,
            fan_out: self.fan_out,
            idle_fuel: self.idle,
            ..MergePolicy::default()
        }
    }
    /// The policy in a few words.
    pub fn policy_name(&self) -> String {
        let coefficient = coefficient_name(self.coefficient);
        format!("coefficient {coefficient}, fan-out {}, idle {}", self.fan_out, self.idle)
    }
    /// What is not policy, in a few words.
    pub fn workload_name(&self) -> String {
        let workers = if self.workers == 1 { "1 worker".to_string() } else { format!("{} workers", self.workers) };
        format!("{} keys, batches of {}, {workers}", self.keys_are, self.batch)
    }
}

/// As the command line has it.
pub fn coefficient_name(coefficient: usize) -> String {
    if coefficient == MergePolicy::eager().coefficient { "eager".to_string() } else { coefficient.to_string() }
}

/// What each point does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Keys that are live.
    pub keys: u64,
    /// Updates a second in open loop.
    pub rate: u64,
    /// Seconds of it not recorded.
    pub warm: f64,
    /// Seconds of it recorded.
    pub seconds: f64,
    /// Updates in closed loop.
    pub closed: u64,
    /// Seconds between looks.
    pub sample: f64,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Options {
    coefficients: Vec<usize>,
    fan_outs: Vec<usize>,
    idles: Vec<usize>,
    batches: Vec<u64>,
    workers: Vec<usize>,
    keys_are: Vec<Distribution>,
    /// What each point does.
    pub load: Load,
    /// Where the report goes.
    pub out: PathBuf,
    /// Whether to go on from what is there.
    pub resume: bool,
    /// Points that were disturbed for longer, in seconds of the processors, are run again.
    pub retry: f64,
    /// Whether to draw only.
    pub plot: bool,
    /// Whether to print help, and no more.
    pub help: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            coefficients: vec![5, 16, 256],
            fan_outs: vec![2, 4, 8],
            idles: vec![0, 1_000, 10_000],
            batches: vec![10, 1_000],
            workers: vec![1, 2],
            keys_are: vec![Distribution::Uniform, Distribution::Zipf(1.0)],
            load: Load { keys: 500_000, rate: 200_000, warm: 0.2, seconds: 1.0, closed: 500_000, sample: 0.01 },
            out: PathBuf::from("target/merge-lab"),
            resume: false,
            retry: f64::INFINITY,
            plot: false,
            help: false,
        }
    }
}

impl Options {
    /// For a run of seconds.
    pub fn smoke() -> Self {
        Options {
            coefficients: vec![5, MergePolicy::eager().coefficient],
            fan_outs: vec![2, 8],
            idles: vec![0, 1_000],
            batches: vec![100],
            workers: vec![1],
            load: Load { keys: 5_000, rate: 20_000, warm: 0.02, seconds: 0.1, closed: 20_000, sample: 0.005 },
            ..Options::default()
        }
    }
    /// From the words of a command.
    ///
    /// # Errors
    /// What is not understood, in words.
    pub fn parse(words: impl IntoIterator<Item = String>) -> Result<Options, String> {
        let words: Vec<String> = words.into_iter().collect();
        let smoke = words.iter().any(|word| word == "--smoke");
        let mut options = if smoke { Options::smoke() } else { Options::default() };
        options.take(lexopt::Parser::from_args(words)).map_err(|error| format!("{error}; --help lists the options"))?;
        options.check()?;
        Ok(options)
    }
    fn take(&mut self, mut words: lexopt::Parser) -> Result<(), lexopt::Error> {
        let load = &mut self.load;
        while let Some(word) = words.next()? {
            match word {
                Long("coefficient") => self.coefficients = words.value()?.parse_with(|list| each(list, coefficient))?,
                Long("fan-out") => self.fan_outs = words.value()?.parse_with(|list| each(list, number))?,
                Long("idle") => self.idles = words.value()?.parse_with(|list| each(list, number))?,
                Long("batch") => self.batches = words.value()?.parse_with(|list| each(list, number))?,
                Long("workers") => self.workers = words.value()?.parse_with(|list| each(list, number))?,
                Long("keys-are") => self.keys_are = words.value()?.parse_with(|list| each(list, number))?,
                Long("keys") => load.keys = words.value()?.parse()?,
                Long("rate") => load.rate = words.value()?.parse()?,
                Long("warm") => load.warm = words.value()?.parse()?,
                Long("seconds") => load.seconds = words.value()?.parse()?,
                Long("closed") => load.closed = words.value()?.parse()?,
                Long("sample") => load.sample = words.value()?.parse()?,
                Long("out") => self.out = words.value()?.into(),
                Long("resume") => self.resume = true,
                Long("retry") => self.retry = words.value()?.parse()?,
                Long("plot") => self.plot = true,
                Long("smoke") => {}
                Short('h') | Long("help") => self.help = true,
                _ => return Err(word.unexpected()),
            }
        }
        Ok(())
    }
    fn check(&self) -> Result<(), String> {
        let load = &self.load;
        let seconds = |value: f64| Duration::try_from_secs_f64(value).is_ok_and(|time| time.as_secs() < 3600);
        let bound = |good: bool, what: &str| if good { Ok(()) } else { Err(format!("{what}; see --help")) };
        bound(load.keys > 0 && load.rate > 0, "--keys and --rate are at least 1")?;
        bound(load.seconds > 0.0 && load.sample > 0.0, "--seconds and --sample are above 0")?;
        bound([load.warm, load.seconds, load.sample].into_iter().all(seconds), "seconds are from 0 to an hour")?;
        bound(self.fan_outs.iter().all(|f| (2..=MergePolicy::MOST).contains(f)), "--fan-out is from 2 to 16")?;
        bound(self.workers.iter().all(|w| *w > 0), "--workers is at least 1")?;
        bound(self.batches.iter().all(|b| (1..=load.rate).contains(b)), "--batch is from 1 to --rate")
    }
    /// All points, each once: workloads one after the other, and all policies for each, so that what differs by policy
    /// alone was measured close together.
    pub fn points(&self) -> Vec<Point> {
        let mut points = Vec::new();
        for keys_are in &self.keys_are {
            for (&workers, &batch) in self.workers.iter().flat_map(|w| self.batches.iter().map(move |b| (w, b))) {
                for (&fan_out, &idle) in self.fan_outs.iter().flat_map(|f| self.idles.iter().map(move |i| (f, i))) {
                    for &coefficient in &self.coefficients {
                        let least = MergePolicy { fan_out, ..MergePolicy::default() }.least();
                        let (coefficient, keys_are) = (coefficient.max(least), keys_are.to_string());
                        let point = Point { coefficient, fan_out, idle, batch, workers, keys_are };
                        if !points.contains(&point) {
                            points.push(point);
                        }
                    }
                }
            }
        }
        points
    }
}

fn each<T, E: Display>(list: &str, one: impl Fn(&str) -> Result<T, E>) -> Result<Vec<T>, String> {
    list.split(',').map(|word| one(word.trim()).map_err(|error| format!("{word:?}: {error}"))).collect()
}
fn number<T: FromStr>(word: &str) -> Result<T, T::Err> {
    word.parse()
}
fn coefficient(word: &str) -> Result<usize, std::num::ParseIntError> {
    if word == "eager" { Ok(MergePolicy::eager().coefficient) } else { word.parse() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split(' ').filter(|word| !word.is_empty()).map(String::from))
    }

    #[test]
    fn lists_become_points_each_once() {
        let options =
            parse("--coefficient 5,8,eager --fan-out 2,4 --idle 0 --batch 1,10 --workers 1 --keys-are hot:0.1:0.5")
                .expect("options");
        let points = options.points();
        // With a fan-out of 4 the least coefficient is 10: 5 and 8 are one.
        assert_eq!(points.len(), 2 * (3 + 2));
        assert_eq!(points[0].policy().coefficient, 5);
        assert!(points.iter().all(|point| point.keys_are == "hot:0.1:0.5" && point.policy().idle_fuel == 0));
        assert!(points.iter().all(|point| point.coefficient >= point.policy().least()));
        assert_eq!(points[2].policy_name(), "coefficient eager, fan-out 2, idle 0");
        let default = Options::default();
        assert!(HELP.contains("[5,16,256]") && default.coefficients == [5, 16, 256], "help tells the defaults");
        assert_eq!(parse("").expect("defaults").points(), default.points());
        assert!(parse("--smoke --batch 7").expect("both").points().len() < default.points().len());
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (words, part) in [
            ("--fan-out 1", "from 2 to 16"),
            ("--fan-out two", "two"),
            ("--keys-are zip", "zipf"),
            ("--batch 0", "--batch"),
            ("--fanout 2", "--fanout"),
            ("--seconds -1", "--seconds"),
            ("--idle", "--idle"),
        ] {
            let complaint = parse(words).expect_err(words);
            assert!(complaint.contains(part), "{words}: {complaint}");
        }
    }
}
