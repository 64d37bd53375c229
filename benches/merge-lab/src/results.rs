//! What was found so far: kept as JSON, so that a sweep can go on later.
#![forbid(unsafe_code)]

use crate::options::{Load, Point};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use workloads::Report;

/// How an arrangement was at one moment.
#[derive(Copy, Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Since the open loop began.
    pub seconds: f64,
    /// Batches that a reader of one worker's part met, on the mean over workers.
    pub batches: f64,
    /// Fuel that merges needed, all workers together.
    pub debt: u64,
    /// Merges in progress, all workers together.
    pub merges: u64,
}

/// What was found at one point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// Where.
    pub point: Point,
    /// What each point did.
    pub load: Load,
    /// Numbers, the latencies' curve, the answer's hash.
    pub report: Report,
    /// Batches and debt over time, in the open loop and then the closed one.
    pub series: Vec<Sample>,
}

impl Outcome {
    /// The number of this name; not a number, if there is none.
    pub fn get(&self, name: &str) -> f64 {
        self.report.get(name).map_or(f64::NAN, |metric| metric.value)
    }
}

/// What a sweep found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    /// The command.
    pub command: String,
    /// The processor, and how many there are.
    pub machine: String,
    /// When the last point ended.
    pub date: String,
    /// The points.
    pub outcomes: Vec<Outcome>,
}

impl Results {
    /// From a file that [`Results::write`] made; none, if it is not there.
    ///
    /// # Errors
    /// A file that cannot be read, or is another one.
    pub fn read(path: &Path) -> io::Result<Option<Results>> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes).map_err(io::Error::other)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
    /// Writes `report.json` and `report.html` to `directory`, each whole or not at all.
    ///
    /// # Errors
    /// What the system refuses, or a plot that cannot be drawn.
    pub fn write(&self, directory: &Path) -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        let json = serde_json::to_string(self).map_err(io::Error::other)?;
        let page = crate::page::page(self).map_err(|error| io::Error::other(error.to_string()))?;
        for (name, text) in [("report.json", json), ("report.html", page)] {
            let half = directory.join(format!(".{name}.half"));
            std::fs::write(&half, text)?;
            std::fs::rename(half, directory.join(name))?;
        }
        Ok(())
    }
    /// Whether this point was run, in the same way.
    pub fn has(&self, point: &Point, load: &Load) -> bool {
        self.outcomes.iter().any(|outcome| outcome.point == *point && outcome.load == *load)
    }
    /// Points of the same content that have different answers: there must be none.
    pub fn differing(&self) -> Vec<String> {
        let mut out = Vec::new();
        for (index, one) in self.outcomes.iter().enumerate() {
            let same = |other: &&Outcome| {
                other.point.keys_are == one.point.keys_are
                    && other.load.keys == one.load.keys
                    && other.get("updates") == one.get("updates")
            };
            if let Some(other) = self.outcomes[..index].iter().find(same)
                && other.report.answer != one.report.answer
            {
                out.push(format!("{:?} and {:?} have different contents", other.point, one.point));
            }
        }
        out
    }
}
