//! What is shown: one line of progress on standard error while rounds go by, one table on standard output at the end.
//!
//! ```text
//! round 420 of 1,000   31,204 updates/s   arenas 48.2 MiB
//!
//! query        first result     median        p99   changes       shared      private
//! out-degrees       41.2 ms    12.3 us     0.9 ms     1,204     8.10 MiB      512 KiB
//! ```
//!
//! Everything is formatted by functions from values to strings; only [`Progress::show`] prints.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
use std::time::{Duration, Instant};

/// The progress line, at most every [`Progress::ON_TERMINAL`], or [`Progress::IN_FILE`] where lines pile up.
pub struct Progress {
    rounds: u64,
    started: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Progress {
    /// On a terminal the line is written over, ten times a second.
    const ON_TERMINAL: Duration = Duration::from_millis(100);
    /// In a file or a pipe each line stays.
    const IN_FILE: Duration = Duration::from_secs(2);

    /// Starts the clock of `rounds` rounds.
    pub fn start(rounds: u64) -> Self {
        Progress { rounds, started: Instant::now(), shown: None, terminal: std::io::stderr().is_terminal() }
    }

    /// Tells how far we are, if the last time was long enough ago; `updates` counts from the start.
    pub fn show(&mut self, done: u64, updates: u64, arena_bytes: u64) {
        let (rounds, elapsed) = (self.rounds, self.started.elapsed());
        self.tell(done >= rounds, || progress_line(done, rounds, updates, elapsed, arena_bytes));
    }

    /// Shows the line, if the last was long enough ago or this one is the last.
    pub fn tell(&mut self, last: bool, line: impl FnOnce() -> String) {
        let now = Instant::now();
        let every = if self.terminal { Self::ON_TERMINAL } else { Self::IN_FILE };
        let due = self.shown.is_none_or(|shown| now - shown >= every);
        if !due && !last {
            return;
        }
        self.shown = Some(now);
        let line = line();
        // A standard error that is closed is no reason to stop.
        let _ = match (self.terminal, last) {
            (true, false) => write!(std::io::stderr(), "\r{line}\x1b[K"),
            (true, true) => writeln!(std::io::stderr(), "\r{line}\x1b[K"),
            (false, _) => writeln!(std::io::stderr(), "{line}"),
        };
    }
}

/// One line: rounds, updates a second, bytes that the arenas of all workers have reserved.
pub fn progress_line(done: u64, rounds: u64, updates: u64, elapsed: Duration, arena_bytes: u64) -> String {
    let rate = updates as f64 / elapsed.as_secs_f64().max(1e-9);
    format!(
        "round {} of {}   {} updates/s   arenas {}",
        count(done),
        count(rounds),
        count(rate.round() as u64),
        bytes(arena_bytes)
    )
}

/// Durations, kept to be ranked: 8 bytes each.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    nanos: Vec<u64>,
}

impl Latencies {
    /// One more.
    pub fn record(&mut self, latency: Duration) {
        self.nanos.push(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The nearest rank: the least of them that at least `fraction` of all do not exceed; `None` if there are none.
    ///
    /// # Panics
    /// If `fraction` is not in 0..=1.
    pub fn quantile(&self, fraction: f64) -> Option<Duration> {
        assert!((0.0..=1.0).contains(&fraction), "{fraction} is no fraction");
        let rank = (self.nanos.len() as f64 * fraction).ceil() as usize;
        let index = rank.max(1) - 1;
        let mut nanos = self.nanos.clone();
        (index < nanos.len()).then(|| Duration::from_nanos(*nanos.select_nth_unstable(index).1))
    }

    /// Half of all are at most this.
    pub fn median(&self) -> Option<Duration> {
        self.quantile(0.5)
    }

    /// 99 of 100 are at most this.
    pub fn p99(&self) -> Option<Duration> {
        self.quantile(0.99)
    }
}

/// What there is to say of one query.
#[derive(Clone, Debug, Default)]
pub struct QueryRow {
    /// Its name.
    pub name: String,
    /// From the call of install to the first complete result.
    pub first: Duration,
    /// Per round, from its input to its complete output.
    pub rounds: Latencies,
    /// Changes delivered to the subscriber, the first result included.
    pub changes: u64,
    /// Bytes of the arrangements that it reads and others read as well.
    pub shared_bytes: u64,
    /// Bytes that only this query holds.
    pub private_bytes: u64,
}

/// The final table, a line a query; the first column stands left, all others right.
pub fn table(rows: &[QueryRow]) -> String {
    let head = ["query", "first result", "median", "p99", "changes", "shared", "private"];
    let mut lines = vec![head.map(String::from)];
    lines.extend(rows.iter().map(|row| {
        let optional = |latency: Option<Duration>| latency.map_or("-".into(), duration);
        [
            row.name.clone(),
            duration(row.first),
            optional(row.rounds.median()),
            optional(row.rounds.p99()),
            count(row.changes),
            bytes(row.shared_bytes),
            bytes(row.private_bytes),
        ]
    }));
    align(&lines)
}

/// Columns as wide as their widest cell, two blanks between them.
pub fn align<const N: usize>(lines: &[[String; N]]) -> String {
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; N] = std::array::from_fn(width);
    let mut text = String::new();
    for line in lines {
        for (column, (cell, width)) in line.iter().zip(widths).enumerate() {
            let written = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
            written.expect("a String takes whatever is written");
        }
        text.push('\n');
    }
    text
}

/// `283196` as `283,196`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Three significant digits and a binary unit: `512 B`, `1.50 KiB`, `48.2 MiB`.
pub fn bytes(number: u64) -> String {
    scaled(number as f64, &[("B", 1024.0), ("KiB", 1024.0), ("MiB", 1024.0), ("GiB", 1024.0), ("TiB", f64::INFINITY)])
}

/// Three significant digits and a unit: `950 ns`, `12.3 us`, `4.56 ms`, `1.20 s`.
pub fn duration(time: Duration) -> String {
    scaled(time.as_nanos() as f64, &[("ns", 1000.0), ("us", 1000.0), ("ms", 1000.0), ("s", f64::INFINITY)])
}

/// Each unit with how many of it make the next. The smallest unit is never split, so it has no fraction.
fn scaled(mut number: f64, units: &[(&str, f64)]) -> String {
    for (index, &(unit, next)) in units.iter().enumerate() {
        // Not to show 1000 us for 999.7 us: what would be rounded up to the next unit is shown in it.
        if number.round() < next {
            let digits = if index == 0 || number >= 99.95 { 0 } else { 1 + usize::from(number < 9.995) };
            return format!("{number:.digits$} {unit}");
        }
        number /= next;
    }
    unreachable!("the last unit has no next one")
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    #[test]
    fn numbers_are_readable() {
        assert_eq!([0, 12, 999, 1000, 283_196, 1_000_000].map(count).join(" "), "0 12 999 1,000 283,196 1,000,000");
        let sizes = [0, 1023, 1024, 1536, 50_541_000, 1 << 30, (1 << 20) - 1, u64::MAX].map(bytes);
        assert_eq!(sizes.join(" "), "0 B 1023 B 1.00 KiB 1.50 KiB 48.2 MiB 1.00 GiB 1.00 MiB 16777216 TiB");
        let times = [0, 950, 12_345, 999_700, 4_560_000, 99_960_000, 1_200_000_000, 120_000_000_000];
        let times = times.map(|nanos| duration(Duration::from_nanos(nanos)));
        assert_eq!(times.join(" "), "0 ns 950 ns 12.3 us 1.00 ms 4.56 ms 100 ms 1.20 s 120 s");
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.median(), latencies.p99()), (None, None));
        for nanos in (1..=200).rev() {
            latencies.record(Duration::from_nanos(nanos));
        }
        let nanos = |nanos| Some(Duration::from_nanos(nanos));
        assert_eq!((latencies.median(), latencies.p99()), (nanos(100), nanos(198)));
        assert_eq!((latencies.quantile(0.0), latencies.quantile(1.0)), (nanos(1), nanos(200)));
    }

    #[test]
    fn the_line_and_the_table() {
        let line = progress_line(420, 1000, 62_408, Duration::from_secs(2), 50_541_000);
        assert_eq!(line, "round 420 of 1,000   31,204 updates/s   arenas 48.2 MiB");
        let mut row = QueryRow { name: "two-hop".into(), first: Duration::from_millis(41), ..QueryRow::default() };
        row.changes = 1204;
        let lines = table(std::slice::from_ref(&row));
        assert_eq!(
            lines,
            "query    first result  median  p99  changes  shared  private\n\
             two-hop       41.0 ms       -    -    1,204     0 B      0 B\n"
        );
        row.rounds.record(Duration::from_micros(12));
        assert!(table(&[row]).contains("12.0 us  12.0 us"));
    }

    quickcheck! {
        fn a_quantile_has_its_share_below(nanos: Vec<u32>, percent: u8) -> bool {
            let fraction = f64::from(percent % 101) / 100.0;
            let mut latencies = Latencies::default();
            nanos.iter().for_each(|&nanos| latencies.record(Duration::from_nanos(nanos.into())));
            let Some(quantile) = latencies.quantile(fraction) else { return nanos.is_empty() };
            let at_most = nanos.iter().filter(|&&nanos| Duration::from_nanos(nanos.into()) <= quantile).count();
            let below = nanos.iter().filter(|&&nanos| Duration::from_nanos(nanos.into()) < quantile).count();
            let share = nanos.len() as f64 * fraction;
            at_most as f64 >= share && (below as f64) < share.max(1.0)
        }

        fn columns_line_up(cells: Vec<(u64, u64)>) -> bool {
            let lines: Vec<_> = cells.iter().map(|&(a, b)| [count(a), bytes(b)]).collect();
            let text = align(&lines);
            let mut widths = text.lines().map(|line| line.chars().count());
            let first = widths.next();
            text.lines().count() == cells.len() && widths.all(|width| Some(width) == first)
        }
    }
}
