//! The report: one HTML file that needs nothing else, and is XML as well.
#![forbid(unsafe_code)]

use crate::options::{Point, coefficient_name};
use crate::plot::{self, Axis, Line, Plot};
use crate::results::{Outcome, Results, Sample};
use crate::summary::{self, COLUMNS, show};
use std::error::Error;
use std::fmt::Write;
use workloads::Unit;

const HEAD: &str = "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\"><head><meta charset=\"utf-8\"/>\
    <title>kpg merge-lab</title><style>body{font:14px sans-serif;margin:24px;max-width:1340px}\
    table{border-collapse:collapse;margin:12px 0}th,td{padding:2px 8px;text-align:right;border-bottom:1px solid #ddd}\
    th:first-child,td:first-child{text-align:left}code{background:#eee}.plots svg{margin:4px}\
    summary{font-size:17px;margin:10px 0;cursor:pointer}</style></head><body>\n<h1>kpg merge-lab</h1>\n";

const ABOUT: &str = "<p>Latency is from when a batch was due until it can be read; the open loop's. Throughput is the closed \
    loop's. Write amplification: updates that merges wrote for each one inserted, loading included. Batches: what a reader \
    of one worker's part meets, the mean over open and closed loop. Debt: fuel that merges need which could run. Look-up: \
    the mean of many keys, at the end. Bytes: in the workers' arenas, at the end and at most. Disturbed: seconds of \
    processor time that others took meanwhile.</p>\n";

/// All of `items` that differ, in their order.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut all, item| {
        if !all.contains(&item) {
            all.push(item);
        }
        all
    })
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// What colours and dashes stand for, the same on the whole page.
struct Styles {
    /// Coefficient and fan-out.
    policies: Vec<(usize, usize)>,
    fan_outs: Vec<usize>,
    idles: Vec<usize>,
}

impl Styles {
    fn new(results: &Results) -> Self {
        let points = || results.outcomes.iter().map(|outcome| &outcome.point);
        let mut policies = distinct(points().map(|point| (point.coefficient, point.fan_out)));
        policies.sort_by_key(|(coefficient, fan_out)| (*fan_out, *coefficient));
        let mut idles = distinct(points().map(|point| point.idle));
        idles.sort_by_key(|idle| std::cmp::Reverse(*idle));
        Styles { policies, fan_outs: distinct(points().map(|point| point.fan_out)), idles }
    }
    fn line(&self, point: &Point, points: Vec<(f64, f64)>) -> Line {
        let policy = (point.coefficient, point.fan_out);
        let style = self.policies.iter().position(|other| *other == policy).unwrap_or_default();
        Line { style, dash: self.dash(point.idle), points }
    }
    fn dash(&self, idle: usize) -> usize {
        self.idles.iter().position(|other| *other == idle).unwrap_or_default()
    }
    fn legend(&self) -> Result<String, Box<dyn Error>> {
        let policies = self.policies.iter().enumerate().map(|(style, (coefficient, fan_out))| {
            (style, 0, format!("coefficient {}, fan-out {fan_out}", coefficient_name(*coefficient)))
        });
        let idles = self.idles.iter().map(|idle| (6, self.dash(*idle), format!("(any) idle {idle}")));
        plot::legend(&policies.chain(idles).collect::<Vec<_>>())
    }
}

/// Points of a line over time.
const PARTS: usize = 48;

const LATENCY: Axis = Axis { label: "latency", unit: Unit::Nanoseconds, log: true };
const SECONDS: Axis = Axis { label: "seconds since the open loop began", unit: Unit::Count, log: false };

/// The plots of one workload.
fn plots(outcomes: &[&Outcome], styles: &Styles) -> Vec<Plot> {
    let all = |points: &dyn Fn(&Outcome) -> Vec<(f64, f64)>| {
        outcomes.iter().map(|outcome| styles.line(&outcome.point, points(outcome))).collect::<Vec<_>>()
    };
    let count = |label, log| Axis { label, unit: Unit::Count, log };
    let ccdf = |outcome: &Outcome| {
        let curve = outcome.report.distributions.values().flatten();
        curve.copied().filter(|(latency, part)| *latency > 0.0 && *part > 0.0).collect()
    };
    let plot = |title: &str, x, y, lines| Plot { title: title.to_string(), x, y, lines };
    let mut out = vec![plot("latency: part of all updates that took longer", LATENCY, count("part", true), all(&ccdf))];
    if outcomes.iter().all(|outcome| outcome.get("throughput") > 0.0) {
        let rate = Axis { label: "throughput, closed loop", unit: Unit::PerSecond, log: false };
        let slow = Axis { label: "p99.9 latency, open loop", ..LATENCY };
        let at = |outcome: &Outcome| vec![(outcome.get("throughput"), outcome.get("p99.9"))];
        out.push(plot("the trade-off: down and to the right is better", rate, slow, all(&at)));
    }
    let most = |part: &[Sample]| part.iter().map(|s| s.debt as f64).fold(1.0, f64::max);
    let debt = |o: &Outcome| thinned(&o.series, most);
    out.push(plot(
        "merge debt, the most in each part of the time (none shown as 1)",
        SECONDS,
        count("fuel", true),
        all(&debt),
    ));
    let mean = |part: &[Sample]| part.iter().map(|s| s.batches).sum::<f64>() / part.len() as f64;
    let batches = |o: &Outcome| thinned(&o.series, mean);
    out.push(plot(
        "batches that a reader meets, the mean of each part of the time",
        SECONDS,
        count("batches", false),
        all(&batches),
    ));
    let coefficient = count("coefficient", true);
    for (title, name, unit) in [
        (
            "write amplification by coefficient; each fan-out as its greatest coefficient",
            "write amplification",
            Unit::Count,
        ),
        ("batches by coefficient; each fan-out as its greatest coefficient", "batches", Unit::Count),
    ] {
        let axis = Axis { label: name, unit, log: false };
        out.push(plot(title, coefficient, axis, by_coefficient(outcomes, styles, name)));
    }
    out
}

/// A series in about so many parts, each as one point.
fn thinned(series: &[Sample], value: impl Fn(&[Sample]) -> f64) -> Vec<(f64, f64)> {
    let parts = series.chunks(series.len().div_ceil(PARTS).max(1));
    parts.map(|part| (part[part.len() / 2].seconds, value(part))).collect()
}

fn by_coefficient(outcomes: &[&Outcome], styles: &Styles, name: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for fan_out in &styles.fan_outs {
        let style = styles.policies.iter().rposition(|(_, other)| other == fan_out).unwrap_or_default();
        for idle in &styles.idles {
            let of = outcomes.iter().filter(|o| o.point.fan_out == *fan_out && o.point.idle == *idle);
            let mut points: Vec<_> = of.map(|o| (o.point.coefficient as f64, o.get(name))).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            if !points.is_empty() {
                lines.push(Line { style, dash: styles.dash(*idle), points });
            }
        }
    }
    lines
}

fn table(out: &mut String, first: &str, rows: impl Iterator<Item = (String, Vec<String>)>) -> std::fmt::Result {
    write!(out, "<table><tr><th>{first}</th>")?;
    COLUMNS.iter().try_for_each(|(name, _)| write!(out, "<th>{name}</th>"))?;
    writeln!(out, "<th></th></tr>")?;
    for (name, cells) in rows {
        write!(out, "<tr><td>{}</td>", escaped(&name))?;
        cells.iter().try_for_each(|cell| write!(out, "<td>{}</td>", escaped(cell)))?;
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table>")
}

fn cells(values: impl Iterator<Item = f64>) -> Vec<String> {
    values.zip(COLUMNS).map(|(value, (_, unit))| show(value, unit)).collect()
}

/// The report of all that was found.
///
/// # Errors
/// What the drawing says.
pub fn page(results: &Results) -> Result<String, Box<dyn Error>> {
    let styles = Styles::new(results);
    let mut out = HEAD.to_string();
    let Results { command, machine, date, outcomes } = results;
    let others: f64 = outcomes.iter().map(|outcome| outcome.report.disturbed).sum();
    writeln!(out, "<p><code>{}</code></p>", escaped(command))?;
    writeln!(
        out,
        "<p>{}; {}; {} points; disturbed: {others:.1} s</p>",
        escaped(machine),
        escaped(date),
        outcomes.len()
    )?;
    out += ABOUT;
    let (rows, workloads) = summary::rows(results);
    writeln!(out, "<h2>Policies</h2><p>Over {workloads} workloads: geometric means; of plain numbers, means.</p>")?;
    let rows = rows.iter().map(|row| (row.point.policy_name(), cells(row.values.iter().copied())));
    table(&mut out, "policy", rows)?;
    writeln!(out, "<h2>Workloads</h2>{}", styles.legend()?)?;
    for (index, name) in distinct(outcomes.iter().map(|o| o.point.workload_name())).into_iter().enumerate() {
        let of: Vec<_> = outcomes.iter().filter(|outcome| outcome.point.workload_name() == name).collect();
        let open = if index == 0 { " open=\"open\"" } else { "" };
        writeln!(out, "<details{open}><summary>{}</summary><div class=\"plots\">", escaped(&name))?;
        for plot in plots(&of, &styles) {
            out += &plot::draw(&plot)?;
        }
        writeln!(out, "</div>")?;
        let row = |outcome: &&Outcome| {
            let mut cells = cells(COLUMNS.iter().map(|(name, _)| outcome.get(name)));
            cells.push(format!("disturbed {:.1} s", outcome.report.disturbed));
            (outcome.point.policy_name(), cells)
        };
        table(&mut out, "policy", of.iter().map(row))?;
        writeln!(out, "</details>")?;
    }
    out += "</body></html>\n";
    Ok(out)
}
