//! Policies compared: each number over all workloads that every policy was run on.
#![forbid(unsafe_code)]

use crate::options::Point;
use crate::results::{Outcome, Results};
use workloads::{Metric, Unit};

/// What a table shows of each policy or point: the number's name, and its unit.
pub const COLUMNS: [(&str, Unit); 11] = [
    ("p50", Unit::Nanoseconds),
    ("p99", Unit::Nanoseconds),
    ("p99.9", Unit::Nanoseconds),
    ("max", Unit::Nanoseconds),
    ("throughput", Unit::PerSecond),
    ("write amplification", Unit::Count),
    ("batches", Unit::Count),
    ("most debt", Unit::Count),
    ("look-up", Unit::Nanoseconds),
    ("bytes", Unit::Bytes),
    ("peak bytes", Unit::Bytes),
];

/// A policy's numbers, those of [`COLUMNS`] in their order.
pub struct Row {
    /// One of its points.
    pub point: Point,
    /// Geometric means; of plain numbers, means.
    pub values: Vec<f64>,
}

/// A row for each policy, and over how many workloads.
pub fn rows(results: &Results) -> (Vec<Row>, usize) {
    let mut policies: Vec<&Point> = Vec::new();
    let mut workloads: Vec<String> = Vec::new();
    for Outcome { point, .. } in &results.outcomes {
        if !policies.iter().any(|other| other.policy() == point.policy()) {
            policies.push(point);
        }
        if !workloads.contains(&point.workload_name()) {
            workloads.push(point.workload_name());
        }
    }
    let find = |policy: &Point, workload: &String| {
        let same = |o: &&Outcome| o.point.policy() == policy.policy() && o.point.workload_name() == *workload;
        results.outcomes.iter().find(same)
    };
    workloads.retain(|workload| policies.iter().all(|policy| find(policy, workload).is_some()));
    let row = |policy: &&Point| {
        let outcomes: Vec<_> = workloads.iter().filter_map(|workload| find(policy, workload)).collect();
        let values = COLUMNS.iter().map(|(name, unit)| {
            let values = outcomes.iter().map(|outcome| outcome.get(name));
            match unit {
                Unit::Count => values.sum::<f64>() / outcomes.len() as f64,
                _ => (values.map(f64::ln).sum::<f64>() / outcomes.len() as f64).exp(),
            }
        });
        Row { point: (*policy).clone(), values: values.collect() }
    };
    let rows = if workloads.is_empty() { Vec::new() } else { policies.iter().map(row).collect() };
    (rows, workloads.len())
}

/// A number as a table shows it.
pub fn show(value: f64, unit: Unit) -> String {
    match unit {
        _ if !value.is_finite() => "–".to_string(),
        Unit::Count if value >= 1e4 => format!("{:.0}k", value / 1e3),
        Unit::Count => format!("{value:.1}"),
        unit => Metric { name: String::new(), value, unit }.show(),
    }
}

/// The rows as a table in Markdown, and what is best of them.
pub fn markdown(results: &Results) -> String {
    let (rows, workloads) = rows(results);
    let names: Vec<_> = COLUMNS.iter().map(|(name, _)| *name).collect();
    let mut out = format!("| policy | {} |\n|---|{}\n", names.join(" | "), "---:|".repeat(names.len()));
    for row in &rows {
        let cells: Vec<_> = row.values.iter().zip(COLUMNS).map(|(value, (_, unit))| show(*value, unit)).collect();
        out += &format!("| {} | {} |\n", row.point.policy_name(), cells.join(" | "));
    }
    let best = |name: &str| {
        let (index, unit) = (names.iter().position(|other| *other == name)?, unit_of(name));
        let of = |row: &Row| if unit == Unit::PerSecond { -row.values[index] } else { row.values[index] };
        let best = rows.iter().min_by(|a, b| of(a).total_cmp(&of(b)))?;
        Some(format!("- best {name}: {} ({})\n", best.point.policy_name(), show(best.values[index], unit)))
    };
    out += &format!("\nOver {workloads} workloads, geometric means; of plain numbers, means.\n\n");
    out.extend(["p50", "p99.9", "max", "throughput", "look-up", "peak bytes"].iter().filter_map(|name| best(name)));
    out
}

fn unit_of(name: &str) -> Unit {
    COLUMNS.iter().find(|column| column.0 == name).map_or(Unit::Count, |column| column.1)
}
