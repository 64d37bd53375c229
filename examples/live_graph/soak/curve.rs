//! What memory did over the run, and whether it stayed flat.
//!
//! ```text
//! resident │      ╭╮ ╭╮  ╭─╮   ╭╮
//!          │   ╭──╯╰─╯╰──╯ ╰───╯╰─      the medians of the second and of the last quarter are compared
//!          │╭──╯
//!          └──────┴──────┴──────┴──────  time
//!           warm-up   2nd    3rd   last
//! ```
//!
//! Medians, since what a query keeps while it is there comes and goes with it: peaks say nothing. Next stop: `report`.

use crate::report;
use std::fmt::Write as _;

/// Memory may grow by this share from the second quarter to the last, in a soak of [`LONG`] or more.
///
/// By measurement: on two cores live bytes vary by 15 % about their mean, since which queries are there is random, and are
/// new after about five seconds. So the medians of two quarters of twenty minutes, 60 such stretches each, differ by chance with
/// a standard deviation of 3.5 %, of which this is about three; in an hour it is five.
const LEAST_ALLOWED: f64 = 0.10;

/// Seconds from which on chance is no reason to allow more.
const LONG: f64 = 1200.0;

/// By how much memory may grow in a soak of so many seconds: chance counts for less as the root of time.
pub fn allowed(seconds: f64) -> f64 {
    LEAST_ALLOWED * (LONG / seconds.max(1.0)).sqrt().max(1.0)
}

/// Samples that a quarter has at least.
const FEWEST: usize = 4;

/// How things stand at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Seconds since the soak began.
    pub seconds: f64,
    /// Rounds so far.
    pub rounds: u64,
    /// Queries installed so far.
    pub installed: u64,
    /// Queries that the engine has, that of the graph not counted.
    pub live: u64,
    /// Bytes live in the workers' arenas.
    pub live_bytes: u64,
    /// Bytes that the workers' arenas have mapped.
    pub mapped_bytes: u64,
    /// Bytes of the process that are in memory.
    pub resident_bytes: u64,
}

/// The first line of a curve's file.
pub const HEAD: &str = "seconds\trounds\tinstalled\tlive\tlive_bytes\tmapped_bytes\tresident_bytes\n";

impl Sample {
    /// Its line in a curve's file.
    pub fn line(&self) -> String {
        let Sample { seconds, rounds, installed, live, live_bytes, mapped_bytes, resident_bytes } = self;
        format!("{seconds:.1}\t{rounds}\t{installed}\t{live}\t{live_bytes}\t{mapped_bytes}\t{resident_bytes}\n")
    }

    /// What the progress line says.
    pub fn progress(&self, of_seconds: u64) -> String {
        format!(
            "second {:.0} of {of_seconds}   {} rounds   {} queries came, {} are there   live {}   mapped {}   resident {}",
            self.seconds,
            report::count(self.rounds),
            report::count(self.installed),
            self.live,
            report::bytes(self.live_bytes),
            report::bytes(self.mapped_bytes),
            report::bytes(self.resident_bytes)
        )
    }
}

/// A kind of memory, as the table calls it, where a sample has it, and whether it is judged: mapped memory comes in whole
/// regions, so one more may be a third.
const KINDS: [(&str, fn(&Sample) -> u64, bool); 3] = [
    ("live in arenas", |sample| sample.live_bytes, true),
    ("mapped by arenas", |sample| sample.mapped_bytes, false),
    ("resident", |sample| sample.resident_bytes, true),
];

/// The medians of a kind in the second and in the last quarter; nothing, if there are too few samples.
fn quarters(samples: &[Sample], bytes: fn(&Sample) -> u64) -> Option<(u64, u64)> {
    let quarter = samples.len() / 4;
    if quarter < FEWEST {
        return None;
    }
    let median = |part: &[Sample]| {
        let mut all: Vec<u64> = part.iter().map(bytes).collect();
        let middle = all.len() / 2;
        *all.select_nth_unstable(middle).1
    };
    Some((median(&samples[quarter..2 * quarter]), median(&samples[samples.len() - quarter..])))
}

fn growth((second, last): (u64, u64)) -> f64 {
    last as f64 / second.max(1) as f64 - 1.0
}

/// Whether memory stayed flat.
///
/// # Errors
/// A sentence that says what grew, or that there are too few samples to say.
pub fn verdict(samples: &[Sample]) -> Result<(), String> {
    let allowed = allowed(samples.last().map_or(0.0, |sample| sample.seconds));
    for (name, bytes, judged) in KINDS {
        let medians = quarters(samples, bytes).ok_or_else(|| {
            format!("{} samples are too few to say whether memory stayed flat: soak for longer.", samples.len())
        })?;
        if judged && growth(medians) > allowed {
            return Err(format!(
                "memory is not flat: {name} were {} in the second quarter, {} in the last; {:.1} % more, allowed are {:.1}.",
                report::bytes(medians.0),
                report::bytes(medians.1),
                growth(medians) * 100.0,
                allowed * 100.0
            ));
        }
    }
    Ok(())
}

/// The medians, a line a kind of memory.
pub fn table(samples: &[Sample]) -> String {
    let mut lines = vec![["memory", "second quarter", "last quarter", "growth"].map(String::from)];
    for (name, bytes, _) in KINDS {
        let Some(medians) = quarters(samples, bytes) else { continue };
        let mut percent = String::new();
        write!(percent, "{:+.1} %", growth(medians) * 100.0).expect("a String takes whatever is written");
        lines.push([name.into(), report::bytes(medians.0), report::bytes(medians.1), percent]);
    }
    report::align(&lines)
}

/// Bytes of this process that are in memory. From `status`, which has them in kB: `statm` counts pages, of a size that
/// cannot be asked for without `unsafe`.
///
/// # Errors
/// A sentence, if the system does not say.
pub fn resident_bytes() -> Result<u64, String> {
    let read = std::fs::read_to_string("/proc/self/status").ok();
    let line = read.as_deref().and_then(|text| text.lines().find_map(|line| line.strip_prefix("VmRSS:")));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok());
    Ok(kilobytes.ok_or("the process's memory is not in /proc/self/status: is /proc mounted?")? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 samples of which the n-th quarter has these bytes.
    fn curve(live: [u64; 4], resident: [u64; 4]) -> Vec<Sample> {
        let at = |index: usize| Sample {
            live_bytes: live[index / 10],
            resident_bytes: resident[index / 10],
            seconds: LONG,
            mapped_bytes: 1 << (index / 10),
            ..Sample::default()
        };
        (0..40).map(at).collect()
    }

    #[test]
    fn up_to_a_tenth_is_flat_and_more_is_not() {
        let flat = [1000; 4];
        assert_eq!(verdict(&curve(flat, flat)), Ok(()));
        assert_eq!(verdict(&curve([1000, 1000, 5000, 1099], [1000, 1000, 1000, 1])), Ok(()));
        let live = verdict(&curve([1000, 1000, 1000, 1101], flat)).expect_err("live bytes grow");
        assert!(live.contains("not flat: live in arenas") && live.contains("10.1 % more, allowed are 10.0"), "{live}");
        let resident = verdict(&curve(flat, [1000, 1000, 1000, 2000])).expect_err("resident bytes grow");
        assert!(resident.contains("not flat: resident") && resident.contains("100.0 % more"), "{resident}");
    }

    #[test]
    fn short_soaks_may_vary_more() {
        assert_eq!([LONG / 4.0, LONG, 3600.0].map(allowed), [0.2, 0.1, 0.1]);
        let mut samples = curve([1000, 1000, 1000, 1150], [1000; 4]);
        assert!(verdict(&samples).is_err());
        samples[39].seconds = LONG / 4.0;
        assert_eq!(verdict(&samples), Ok(()));
    }

    #[test]
    fn warm_up_and_peaks_do_not_count() {
        assert_eq!(verdict(&curve([1, 1000, 1000, 1000], [1, 1000, 1000, 1000])), Ok(()));
        let mut samples = curve([1000; 4], [1000; 4]);
        samples[36..].iter_mut().for_each(|sample| sample.live_bytes = 1_000_000);
        assert_eq!(verdict(&samples), Ok(()), "four of ten are a peak");
        samples[34..].iter_mut().for_each(|sample| sample.live_bytes = 1_000_000);
        assert!(verdict(&samples).is_err(), "six of ten are growth");
    }

    #[test]
    fn few_samples_say_nothing() {
        assert!(verdict(&curve([1000; 4], [1000; 4])[..15]).is_err_and(|sentence| sentence.contains("too few")));
        assert!(verdict(&[]).is_err());
        assert_eq!(table(&[]).lines().count(), 1);
    }

    #[test]
    fn lines_and_the_table() {
        let sample = Sample { seconds: 1.25, rounds: 2, installed: 3, live: 4, ..Sample::default() };
        assert_eq!(sample.line(), "1.2\t2\t3\t4\t0\t0\t0\n");
        assert_eq!(HEAD.matches('\t').count(), sample.line().matches('\t').count());
        assert!(sample.progress(20).starts_with("second 1 of 20   2 rounds   3 queries came, 4 are there"));
        let table = table(&curve([1000, 1000, 1000, 1050], [1 << 20; 4]));
        let live = table.lines().nth(1).expect("a line a kind");
        assert_eq!(live.split_whitespace().collect::<Vec<_>>().join(" "), "live in arenas 1000 B 1.03 KiB +5.0 %");
        assert!(resident_bytes().expect("there is a /proc") > 100_000);
    }
}
