//! A figure as text: a line for each point, a column for each number.
#![forbid(unsafe_code)]

use super::plan::{Figure, Point};
use workloads::Report;

/// So many seconds of processor time that others took make a row one not to trust.
const DISTURBED: f64 = 0.5;

pub fn text(figure: &Figure, found: &[(&Point, Report)]) -> String {
    let mut columns: Vec<&str> = Vec::new();
    for metric in found.iter().flat_map(|(_, report)| &report.metrics) {
        let wanted = figure.columns.is_empty() || figure.columns.contains(&metric.name.as_str());
        if wanted && !columns.contains(&metric.name.as_str()) {
            columns.push(&metric.name);
        }
    }
    let mut rows = vec![[""].into_iter().chain(columns.iter().copied()).map(String::from).collect::<Vec<_>>()];
    for (point, report) in found {
        let parts = [&point.series, &point.at].into_iter().filter(|part| !part.is_empty());
        let name = parts.map(String::as_str).collect::<Vec<_>>().join(", ");
        let mark = if report.disturbed > DISTURBED { " *" } else { "" };
        let shown = columns.iter().map(|column| report.get(column).map_or(String::new(), |metric| metric.show()));
        rows.push([name + mark].into_iter().chain(shown).collect());
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut out = format!("{}\n", figure.title);
    for row in &rows {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(index, (cell, width))| match index {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        out += "  ";
        out += cells.collect::<Vec<_>>().join("  ").trim_end();
        out += "\n";
    }
    if found.iter().any(|(_, report)| report.disturbed > DISTURBED) {
        out += "  * others took the processor meanwhile\n";
    }
    out
}
