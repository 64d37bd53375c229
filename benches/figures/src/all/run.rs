//! Runs measurements, each in a process of its own; one that was asked for already is not made again.
#![forbid(unsafe_code)]

use super::plan::Point;
use std::collections::HashMap;
use std::process::{Command, Stdio};
use std::time::Instant;
use workloads::Report;

pub struct Runs {
    known: HashMap<Vec<String>, Report>,
    done: usize,
    count: usize,
    start: Instant,
}

impl Runs {
    pub fn new(count: usize) -> Self {
        Runs { known: HashMap::new(), done: 0, count, start: Instant::now() }
    }

    /// What this point's workload gives. Says on the standard error what goes on.
    pub fn get(&mut self, figure: &str, point: &Point) -> Result<Report, String> {
        self.done += 1;
        let words = point.words.join(" ");
        let elapsed = self.start.elapsed().as_secs();
        eprintln!("[{}/{}] {elapsed} s  {figure}: {words}", self.done, self.count);
        if let Some(known) = self.known.get(&point.words) {
            return Ok(known.clone());
        }
        let program = std::env::current_exe().map_err(|error| format!("this program's own path: {error}"))?;
        let mut command = Command::new(program);
        command.arg("measure").args(&point.words).stderr(Stdio::inherit());
        let output = command.output().map_err(|error| format!("{words}: {error}"))?;
        if !output.status.success() {
            return Err(format!("measure {words}: {}", output.status));
        }
        let line = String::from_utf8_lossy(&output.stdout);
        let report = Report::parse(line.trim()).map_err(|error| format!("measure {words}: {error}"))?;
        self.known.insert(point.words.clone(), report.clone());
        Ok(report)
    }
}
