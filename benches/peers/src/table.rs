//! What came of the comparison, as Markdown.
#![forbid(unsafe_code)]

use crate::contest::Contest;
use crate::suite::{Goal, Size};
use workloads::{Metric, machine};

/// The middle one; of an even number the mean of the two.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 { values[half] } else { (values[half - 1] + values[half]) / 2.0 }
}

/// The metric with the median of all.
fn middle(numbers: &[&Metric]) -> Option<Metric> {
    let first = (*numbers.first()?).clone();
    Some(Metric { value: median(numbers.iter().map(|metric| metric.value).collect()), ..first })
}

/// A number of both sides.
struct Compared {
    /// The best of the peer's settings, and its median.
    peer: Option<(&'static str, Metric)>,
    ours: Metric,
    /// Run by run, how many times better kpg is.
    ratios: Vec<f64>,
}

fn compare(contest: &Contest, metric: &str) -> Option<Compared> {
    let own = contest.numbers(None, metric);
    let ours = middle(&own)?;
    let medians = contest.row.settings.iter().filter_map(|setting| {
        let numbers = contest.numbers(Some(*setting), metric);
        middle(&numbers).map(|median| (*setting, median))
    });
    let peer = medians.reduce(|best, other| if other.1.better_than(&best.1) > 1.0 { other } else { best });
    let ratios = peer.as_ref().map_or(Vec::new(), |(setting, _)| {
        let numbers = contest.numbers(Some(setting), metric);
        own.iter().zip(numbers).map(|(ours, peer)| ours.better_than(peer)).collect()
    });
    Some(Compared { peer, ours, ratios })
}

fn goal(contest: &Contest, goal: Goal, found: &Compared) -> (String, bool) {
    let ratio = if found.ratios.is_empty() { f64::NAN } else { median(found.ratios.clone()) };
    match goal {
        Goal::Times(times) => (format!("≥ {times}×"), ratio >= times),
        Goal::Better => ("> 1×".to_string(), ratio > 1.0),
        Goal::AtMost(value) => {
            let shown = Metric { value, ..found.ours.clone() }.show();
            (format!("≤ {shown}"), found.ours.value <= value)
        }
        Goal::AtMostOf(times, metric) => {
            let other = middle(&contest.numbers(None, metric));
            let met = other.is_some_and(|other| found.ours.value <= times * other.value);
            (format!("≤ {times} × {metric}"), met)
        }
    }
}

/// The lines of one workload.
pub fn rows(contest: &Contest) -> Vec<String> {
    let words = contest.words.join(" ");
    if let Some(error) = &contest.error {
        return vec![format!("| {words} | | | | | | ERROR: {error} |")];
    }
    let line = |(metric, goals): &(&str, &[Goal])| {
        let Some(found) = compare(contest, metric) else {
            return format!("| {words} | {metric} | | | | | not measured |");
        };
        let peer = match &found.peer {
            Some(("", median)) => median.show(),
            Some((setting, median)) => format!("{} ({setting})", median.show()),
            None => "not run".to_string(),
        };
        let ratio = match found.ratios.as_slice() {
            [] => String::new(),
            [only] => format!("{only:.2}"),
            ratios => {
                let (least, most) = ratios.iter().fold((f64::MAX, 0f64), |(a, b), r| (a.min(*r), b.max(*r)));
                format!("{:.2} [{least:.2}–{most:.2}]", median(ratios.to_vec()))
            }
        };
        let (shown, met): (Vec<_>, Vec<_>) = goals.iter().map(|one| goal(contest, *one, &found)).unzip();
        let verdict = match (met.is_empty(), met.iter().all(|met| *met)) {
            (true, _) => "",
            (false, true) => "met",
            (false, false) => "MISSED",
        };
        let mark = if contest.disturbed() > 0 { " *" } else { "" };
        let ours = found.ours.show();
        format!("| {words}{mark} | {metric} | {peer} | {ours} | {ratio} | {} | {verdict} |", shown.join(", "))
    };
    contest.row.goals.iter().map(line).collect()
}

/// How much more two workers do than one, where both were run.
fn scaling(contests: &[Contest]) -> String {
    let mut text = String::new();
    for two in contests.iter().filter(|contest| contest.words.iter().any(|word| word == "workers=2")) {
        let words: Vec<_> = two.words.iter().filter(|word| *word != "workers=2").cloned().collect();
        let Some(one) = contests.iter().find(|contest| contest.words == words) else { continue };
        let times = |of: fn(Compared) -> Option<Metric>| {
            let more = compare(two, "updates").and_then(of)?.value / compare(one, "updates").and_then(of)?.value;
            Some(format!("{more:.2}×"))
        };
        let sides = (times(|found| found.peer.map(|(_, metric)| metric)), times(|found| Some(found.ours)));
        if let (Some(peer), Some(ours)) = sides {
            text += &format!("| {} | {peer} | {ours} |\n", words.join(" "));
        }
    }
    if text.is_empty() {
        return text;
    }
    format!("\nTwo workers over one (goal: ≥ 1.85×):\n\n| workload | peer | kpg |\n|---|---|---|\n{text}")
}

/// All of it.
pub fn whole(contests: &[Contest], size: Size, runs: usize) -> String {
    let lines: Vec<_> = contests.iter().flat_map(rows).collect();
    let size = format!("{size:?}").to_lowercase();
    let disturbed: usize = contests.iter().map(Contest::disturbed).sum();
    let mut text = format!(
        "kpg and differential-dataflow 0.26 in alternation, {size}, {runs} run(s) of each, on {}, {} cores.\n\
         Medians; the peer's best setting for each number; how many times better kpg is [least–most of the runs].\n\
         `*`: others took more than 5 % of a run's time, each time it was tried ({disturbed} such runs).\n\n\
         | workload | number | peer's best | kpg | ratio | goal | |\n|---|---|---|---|---|---|---|\n",
        machine::processor(),
        std::thread::available_parallelism().map_or(0, |cores| cores.get()),
    );
    text += &lines.join("\n");
    text.push('\n');
    text += &scaling(contests);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contest::Run;
    use crate::suite::Row;
    use workloads::{Report, Unit};

    static ROW: Row = Row {
        spec: "throughput",
        quick: Some(""),
        full: None,
        settings: &["", "idle=1000"],
        goals: &[("updates", &[Goal::Times(3.0)]), ("p99", &[Goal::AtMost(50.0), Goal::Better])],
    };

    fn run(setting: Option<&'static str>, updates: f64, p99: f64) -> Run {
        let mut report = Report::default();
        report.metric("updates", updates, Unit::PerSecond);
        report.metric("p99", p99, Unit::Nanoseconds);
        Run { report, wall: 1.0, setting }
    }

    #[test]
    fn the_best_setting_counts_for_each_number() {
        let round = |own| vec![run(Some(""), 10.0, 300.0), run(Some("idle=1000"), 5.0, 100.0), run(None, own, 60.0)];
        let mut contest = Contest {
            row: &ROW,
            words: vec!["throughput".to_string()],
            rounds: vec![round(29.0), round(40.0), round(31.0)],
            error: None,
        };
        assert_eq!(
            rows(&contest),
            [
                "| throughput | updates | 10.0 /s | 31.0 /s | 3.10 [2.90–4.00] | ≥ 3× | met |",
                "| throughput | p99 | 100 ns (idle=1000) | 60.0 ns | 1.67 [1.67–1.67] | ≤ 50.0 ns, > 1× | MISSED |",
            ]
        );
        contest.error = Some("differs".to_string());
        assert!(rows(&contest)[0].contains("ERROR: differs"));
    }
}
