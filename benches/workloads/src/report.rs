//! What a run says: one line of JSON.
#![forbid(unsafe_code)]

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a number counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// More is better.
    PerSecond,
    /// Less is better, as in all that follow.
    Nanoseconds,
    /// Of memory.
    Bytes,
    /// A plain number.
    Count,
}

/// One number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metric {
    /// Such as "p99".
    pub name: String,
    /// Its value.
    pub value: f64,
    /// And what that counts.
    pub unit: Unit,
}

/// What one run of one workload on one engine found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// Who was measured.
    pub engine: String,
    /// What it did.
    pub workload: String,
    /// With which parameters.
    pub parameters: BTreeMap<String, String>,
    /// The numbers, in the order in which they are printed.
    pub metrics: Vec<Metric>,
    /// A hash of the result, the same for each engine.
    pub answer: String,
    /// Pairs of nanoseconds, and the part of all requests that took longer; of each distribution by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub distributions: BTreeMap<String, Vec<(f64, f64)>>,
    /// Seconds of processor time that others took meanwhile.
    pub disturbed: f64,
}

impl Report {
    /// Adds a number.
    pub fn metric(&mut self, name: impl Into<String>, value: f64, unit: Unit) {
        self.metrics.push(Metric { name: name.into(), value, unit });
    }
    /// Adds a distribution: its quantiles as numbers, `name` before each unless that is empty, and its curve.
    pub fn latencies(&mut self, name: &str, latencies: &Histogram<u64>) {
        let of = |quantile: &str| if name.is_empty() { quantile.to_string() } else { format!("{name} {quantile}") };
        for (quantile, at) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            self.metric(of(quantile), latencies.value_at_quantile(at) as f64, Unit::Nanoseconds);
        }
        self.metric(of("max"), latencies.max() as f64, Unit::Nanoseconds);
        let (total, mut seen, mut curve) = (latencies.len().max(1) as f64, 0, Vec::<(f64, f64)>::new());
        let mut first = 0.0;
        for value in latencies.iter_recorded() {
            seen += value.count_since_last_iteration();
            let point = (value.value_iterated_to() as f64, (total - seen as f64) / total);
            // Points within a hundredth of the first of them are one in any plot.
            match curve.last_mut() {
                Some(last) if point.0 < 1.01 * first => *last = point,
                _ => {
                    curve.push(point);
                    first = point.0;
                }
            }
        }
        self.distributions.insert(name.to_string(), curve);
    }
    /// As one line of JSON.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("strings and numbers")
    }
    /// From what `line` wrote.
    ///
    /// # Errors
    /// If it is no report.
    pub fn parse(line: &str) -> Result<Report, serde_json::Error> {
        serde_json::from_str(line)
    }
    /// The number of this name.
    pub fn get(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().find(|metric| metric.name == name)
    }
}

impl Metric {
    /// As people read it.
    pub fn show(&self) -> String {
        let scaled = |value: f64, steps: &[(f64, &str)]| {
            let (scale, suffix) = steps.iter().find(|(scale, _)| value >= *scale).or(steps.last()).expect("steps");
            let value = value / scale;
            let digits = if value >= 100.0 {
                0
            } else if value >= 10.0 {
                1
            } else {
                2
            };
            format!("{value:.digits$} {suffix}")
        };
        match self.unit {
            Unit::PerSecond => scaled(self.value, &[(1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")]),
            Unit::Nanoseconds => scaled(self.value, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")]),
            Unit::Bytes => scaled(self.value, &[(1048576.0, "MiB"), (1024.0, "KiB"), (1.0, "B")]),
            Unit::Count => format!("{}", self.value),
        }
    }
    /// How many times better than `other` this is; above 1 is better.
    pub fn better_than(&self, other: &Metric) -> f64 {
        match self.unit {
            Unit::PerSecond => self.value / other.value,
            _ => other.value / self.value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_all_there_is() {
        let mut latencies = crate::open_loop::histogram();
        (1..=1000).for_each(|value| latencies.record(value * 1000).expect("in bounds"));
        let mut report = Report { engine: "x".to_string(), ..Report::default() };
        report.latencies("", &latencies);
        report.metric("rate", 2.5e6, Unit::PerSecond);
        let read = Report::parse(&report.line()).expect("what it wrote");
        assert_eq!(read.line(), report.line());
        assert!((read.get("p50").expect("p50").value - 500_000.0).abs() < 1000.0);
        assert_eq!(read.get("rate").expect("rate").show(), "2.50 M/s");
        let curve = &read.distributions[""];
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1) && curve.last().expect("points").1 == 0.0);
        // However dense the values are, the curve has them all, to a hundredth or two.
        assert!(curve.is_sorted_by(|a, b| b.0 / a.0 < 1.03 || a.0 < 50_000.0) && (200..500).contains(&curve.len()));
        let (fast, slow) = (read.get("p50").expect("p50"), read.get("p99").expect("p99"));
        assert!(fast.better_than(slow) > 1.9);
    }
}
