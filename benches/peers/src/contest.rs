//! One workload on both sides, in alternation, each run a process of its own.
#![forbid(unsafe_code)]

use crate::suite::{Row, Size};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Instant;
use workloads::{Metric, Report};

/// A run is disturbed if others took more than this part of its time.
const DISTURBED: f64 = 0.05;

/// A setting that starts so is the allocator's, and goes into the environment.
pub const ALLOCATOR: &str = "MIMALLOC_";

/// A run of one side.
pub struct Run {
    /// What it said.
    pub report: Report,
    /// Seconds that the process lived.
    pub wall: f64,
    /// Which of the row's settings; none if it is kpg's.
    pub setting: Option<&'static str>,
}

impl Run {
    /// Whether others took much of the processors meanwhile.
    pub fn disturbed(&self) -> bool {
        self.report.disturbed > DISTURBED * self.wall
    }
}

/// What came of a row.
pub struct Contest {
    /// What it is.
    pub row: &'static Row,
    /// The words of the command.
    pub words: Vec<String>,
    /// Round by round: a run of each setting, then kpg's.
    pub rounds: Vec<Vec<Run>>,
    /// Why there is nothing to compare.
    pub error: Option<String>,
}

impl Contest {
    /// All runs, one a line.
    ///
    /// # Errors
    /// What the writer gives.
    pub fn write(&self, to: &mut impl Write) -> std::io::Result<()> {
        for run in self.rounds.iter().flatten() {
            writeln!(to, "{}", run.report.line())?;
        }
        self.error.iter().try_for_each(|error| writeln!(to, "{}", serde_json::json!({ "error": error })))
    }
    /// A number of all runs of a side, run by run.
    pub fn numbers(&self, setting: Option<&str>, metric: &str) -> Vec<&Metric> {
        let runs = self.rounds.iter().flatten().filter(|run| run.setting == setting);
        runs.filter_map(|run| run.report.get(metric)).collect()
    }
    /// The runs that were disturbed.
    pub fn disturbed(&self) -> usize {
        self.rounds.iter().flatten().filter(|run| run.disturbed()).count()
    }
    fn disagreement(&self) -> Option<String> {
        let mut answers = self.rounds.iter().flatten().map(|run| (&run.report.engine, &run.report.answer));
        let (engine, answer) = answers.next()?;
        let (other, differs) = answers.find(|(_, other)| *other != answer)?;
        Some(format!("{engine} answers {answer:?}, {other} {differs:?}"))
    }
}

/// Runs both sides so often; a run that was disturbed, up to `again` times more.
pub fn hold(row: &'static Row, size: Size, runs: usize, again: usize) -> Contest {
    let mut contest = Contest { row, words: row.words(size), rounds: Vec::new(), error: None };
    for _ in 0..runs {
        let sides = row.settings.iter().map(|setting| Some(*setting)).chain([None]);
        match sides.map(|setting| undisturbed(setting, &contest.words, again)).collect() {
            Ok(round) => contest.rounds.push(round),
            Err(error) => {
                contest.error = Some(error);
                return contest;
            }
        }
        contest.error = contest.disagreement();
        if contest.error.is_some() {
            break;
        }
    }
    contest
}

/// The least disturbed of a few runs.
fn undisturbed(setting: Option<&'static str>, words: &[String], again: usize) -> Result<Run, String> {
    let mut best = once(setting, words)?;
    for _ in 0..again {
        if !best.disturbed() {
            break;
        }
        eprintln!("    others took {:.2} s of {:.2} s: again", best.report.disturbed, best.wall);
        let run = once(setting, words)?;
        if run.report.disturbed / run.wall < best.report.disturbed / best.wall {
            best = run;
        }
    }
    Ok(best)
}

fn once(setting: Option<&'static str>, words: &[String]) -> Result<Run, String> {
    let program = if setting.is_some() { "peer" } else { "ours" };
    let program = std::env::current_exe().map_err(|error| error.to_string())?.with_file_name(program);
    let mut command = Command::new(&program);
    command.arg("measure").args(words);
    for word in setting.unwrap_or_default().split_whitespace() {
        match word.split_once('=') {
            Some((name, value)) if name.starts_with(ALLOCATOR) => command.env(name, value),
            _ => command.arg(word),
        };
    }
    let start = Instant::now();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let wall = start.elapsed().as_secs_f64();
    let name = program.file_name().unwrap_or_default().display();
    if !output.status.success() {
        return Err(format!("{name} {}: {}", words.join(" "), output.status));
    }
    let line = String::from_utf8_lossy(&output.stdout);
    let report = Report::parse(line.trim()).map_err(|error| format!("{name}: no report: {error}"))?;
    eprintln!("    {:<28} {:<18} {wall:.1} s", report.engine, setting.unwrap_or_default());
    Ok(Run { report, wall, setting })
}
