//! Measures a kernel beside its limits, and shows both in one table.
//!
//! Criterion chooses how often what runs, and reports each by itself. Here the time is taken: inputs are made before the
//! clock runs, results are dropped after it stopped. What counts in the table is the least of all samples, since whatever
//! else runs on the machine only ever adds. Where one thread works its own processor time is taken, which leaves out
//! most of what others do.
//!
//! Each run of a comparison must come to the same result, by its hash.
#![forbid(unsafe_code)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, Throughput};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::cell::RefCell;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Where the table goes, as Markdown or, if the name ends so, JSON. A relative path is one of the workspace's.
pub const SAVE: &str = "KPG_BENCH_SAVE";

/// Which clock a comparison is measured by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The processor time of this thread: for what it does alone.
    Thread,
    /// Time as it passes: for what several threads do.
    Wall,
}

impl Clock {
    /// How long `f` takes, by this clock.
    pub fn time<O>(self, f: impl FnOnce() -> O) -> (Duration, O) {
        match self {
            Clock::Wall => {
                let start = Instant::now();
                let out = black_box(f());
                (start.elapsed(), out)
            }
            Clock::Thread => {
                let start = thread_time();
                let out = black_box(f());
                (thread_time() - start, out)
            }
        }
    }
}

/// The processor time of this thread so far.
pub fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Whether a run by these arguments is a test: then each runs once, on a small size.
pub fn is_test(mut arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<_> = arguments.by_ref().collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    has("--test") || !has("--bench")
}

/// One line of the table.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub kernel: String,
    /// On how much of what.
    pub size: String,
    /// Nanoseconds a record, the least.
    pub ns: f64,
    /// And the median.
    pub median_ns: f64,
    /// What it is held against; empty if there is none.
    pub limit: String,
    /// Its nanoseconds a record, the least.
    pub limit_ns: f64,
    /// Of the limit's speed; above 1 is faster.
    pub ratio: f64,
    /// Of the result.
    pub hash: String,
}

/// All that is measured.
pub struct Lab {
    criterion: Criterion,
    is_test: bool,
    rows: Vec<Row>,
}

impl Lab {
    /// By the command line: criterion's own options.
    pub fn new() -> Self {
        let criterion = Criterion::default()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(100))
            .measurement_time(Duration::from_millis(400))
            .without_plots()
            .configure_from_args();
        Lab { criterion, is_test: is_test(std::env::args()), rows: Vec::new() }
    }
    /// `full`, or `small` where this is a test.
    pub fn size(&self, full: u64, small: u64) -> u64 {
        if self.is_test { small } else { full }
    }
    /// Compares a kernel with its limits, on `records` records.
    pub fn compare(
        &mut self,
        clock: Clock,
        kernel: &str,
        size: impl Into<String>,
        records: u64,
        f: impl FnOnce(&mut Compared<'_>),
    ) {
        let size = size.into();
        let mut group = self.criterion.benchmark_group(kernel);
        group.throughput(Throughput::Elements(records)).sampling_mode(SamplingMode::Flat);
        let mut compared = Compared { group, clock, size, records, runs: Vec::new() };
        f(&mut compared);
        let Compared { group, size, runs, .. } = compared;
        group.finish();
        self.rows.extend(rows(kernel, &size, &runs));
    }
    /// Shows the table, and saves it where that is asked for.
    ///
    /// # Panics
    /// If it cannot be saved.
    pub fn finish(self) {
        self.criterion.final_summary();
        if self.rows.is_empty() {
            return;
        }
        println!("\n{}", table(&self.rows, self.is_test));
        if let Some(file) = std::env::var_os(SAVE) {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PathBuf::from(file));
            let text = match path.extension().is_some_and(|extension| extension == "json") {
                true => serde_json::to_string_pretty(&self.rows).expect("strings and numbers"),
                false => table(&self.rows, self.is_test),
            };
            std::fs::write(&path, text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

impl Default for Lab {
    fn default() -> Self {
        Self::new()
    }
}

struct Run {
    who: String,
    least: f64,
    median: f64,
    hash: Option<u64>,
}

/// A kernel and its limits, as they are measured. The first is the kernel.
pub struct Compared<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    clock: Clock,
    size: String,
    records: u64,
    runs: Vec<Run>,
}

impl Compared<'_> {
    /// Measures `routine` on what `setup` makes; `hash` is of its result.
    ///
    /// # Panics
    /// If another run of this comparison came to another result.
    pub fn run<I, O>(
        &mut self,
        who: &str,
        setup: impl FnMut() -> I,
        routine: impl FnMut(I) -> O,
        hash: impl Fn(&O) -> u64,
    ) {
        self.measure(who, setup, routine, |out| Some(hash(out)));
    }
    /// The same, of something that has no result to compare, as copying.
    pub fn run_blind<I, O>(&mut self, who: &str, setup: impl FnMut() -> I, routine: impl FnMut(I) -> O) {
        self.measure(who, setup, routine, |_| None);
    }

    fn measure<I, O>(
        &mut self,
        who: &str,
        mut setup: impl FnMut() -> I,
        mut routine: impl FnMut(I) -> O,
        hash: impl Fn(&O) -> Option<u64>,
    ) {
        let (samples, hashed, clock) = (RefCell::new(Vec::new()), RefCell::new(None), self.clock);
        self.group.bench_function(format!("{}/{who}", self.size), |bencher| {
            bencher.iter_custom(|times| {
                let mut total = Duration::ZERO;
                for _ in 0..times {
                    let input = black_box(setup());
                    let (time, out) = clock.time(|| routine(input));
                    total += time;
                    hashed.borrow_mut().get_or_insert_with(|| hash(&out));
                }
                samples.borrow_mut().push(total.as_nanos() as f64 / times as f64);
                // Criterion divides by it.
                total.max(Duration::from_nanos(1))
            });
        });
        let mut samples = samples.into_inner();
        if samples.is_empty() {
            return;
        }
        if samples.len() > 1 {
            // The first is a cold one.
            samples.remove(0);
        }
        samples.sort_by(f64::total_cmp);
        let a_record = |sample: f64| sample / self.records as f64;
        let (least, median) = (a_record(samples[0]), a_record(samples[samples.len() / 2]));
        let hash = hashed.into_inner().flatten();
        if let (Some(hash), Some(other)) = (hash, self.runs.iter().find(|run| run.hash.is_some())) {
            assert_eq!(Some(hash), other.hash, "{}: {who} has another result than {}", self.size, other.who);
        }
        self.runs.push(Run { who: who.to_string(), least, median, hash });
    }
}

fn rows(kernel: &str, size: &str, runs: &[Run]) -> Vec<Row> {
    let Some((own, limits)) = runs.split_first() else { return Vec::new() };
    let row = |limit: Option<&Run>| Row {
        kernel: kernel.to_string(),
        size: size.to_string(),
        ns: own.least,
        median_ns: own.median,
        limit: limit.map_or(String::new(), |limit| limit.who.clone()),
        limit_ns: limit.map_or(f64::NAN, |limit| limit.least),
        ratio: limit.map_or(f64::NAN, |limit| limit.least / own.least),
        hash: own.hash.map_or(String::new(), |hash| format!("{hash:016x}")),
    };
    match limits.is_empty() {
        true => vec![row(None)],
        false => limits.iter().map(|limit| row(Some(limit))).collect(),
    }
}

fn number(value: f64) -> String {
    match value {
        value if value.is_nan() => String::new(),
        value if value.abs() >= 100.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value if value.abs() >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// The rows as Markdown that is a plain table too; in a test hashes are what matters.
fn table(rows: &[Row], is_test: bool) -> String {
    let mut cells: Vec<Vec<String>> = Vec::new();
    if is_test {
        cells.push(["kernel", "size", "held against", "hash"].map(String::from).into());
        cells.extend(rows.iter().map(|row| [&row.kernel, &row.size, &row.limit, &row.hash].map(String::clone).into()));
    } else {
        cells.push(["kernel", "size", "ns", "limit", "limit's ns", "ratio"].map(String::from).into());
        let line = |row: &Row| {
            let [ns, limit_ns, ratio] = [row.ns, row.limit_ns, row.ratio].map(number);
            vec![row.kernel.clone(), row.size.clone(), ns, row.limit.clone(), limit_ns, ratio]
        };
        cells.extend(rows.iter().map(line));
    }
    let is_number = |column: usize| !is_test && matches!(column, 2 | 4 | 5);
    let columns = cells[0].len();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let rule = |column: usize| match is_number(column) {
        true => "-".repeat(widths[column] + 1) + ":",
        false => "-".repeat(widths[column] + 2),
    };
    let mut out = String::new();
    for (index, row) in cells.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            out += &if is_number(column) { format!("| {cell:>width$} ") } else { format!("| {cell:<width$} ") };
        }
        out += "|\n";
        if index == 0 {
            out += &format!("|{}|\n", (0..columns).map(rule).collect::<Vec<_>>().join("|"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(who: &str, least: f64) -> Run {
        Run { who: who.to_string(), least, median: least, hash: Some(7) }
    }

    #[test]
    fn each_limit_has_a_row() {
        let rows = rows("merge", "10", &[run("kpg", 4.0), run("plain", 2.0), run("copy", 1.0)]);
        assert_eq!(rows.iter().map(|row| row.ratio).collect::<Vec<_>>(), [0.5, 0.25]);
        let text = table(&rows, false);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{text}");
        assert_eq!(lines[2], "| merge  | 10   | 4.00 | plain |       2.00 |  0.50 |");
        assert!(table(&rows, true).contains("0000000000000007"));
    }

    #[test]
    fn one_without_a_limit_has_a_row_too() {
        let rows = rows("merge", "10", &[run("kpg", 4.0)]);
        assert!(rows.len() == 1 && rows[0].ratio.is_nan() && table(&rows, false).contains("4.00"));
    }

    #[test]
    fn a_test_is_told_by_its_arguments() {
        let told = |arguments: &[&str]| is_test(arguments.iter().map(|argument| argument.to_string()));
        assert!(told(&["kernels"]) && told(&["kernels", "--bench", "--test"]) && !told(&["kernels", "--bench"]));
    }

    #[test]
    fn a_thread_that_sleeps_takes_no_time() {
        let (time, ()) = Clock::Thread.time(|| std::thread::sleep(Duration::from_millis(20)));
        assert!(time < Duration::from_millis(10), "{time:?}");
    }
}
