//! A sweep of seconds: what must hold at every point, and between points, whatever the machine.
#![forbid(unsafe_code)]

use merge_lab::{Options, Outcome, Results, page, run, summary};

fn smoke(words: &str) -> (Options, Results) {
    let words = "--smoke --warm 0.01 --seconds 0.05 ".to_string() + words;
    let options = Options::parse(words.split(' ').map(String::from)).expect("options");
    let outcomes = options.points().iter().map(|point| run::run(point, &options.load).expect("it runs")).collect();
    (options, Results { command: "<&\">".to_string(), outcomes, ..Results::default() })
}

fn find<'a>(results: &'a Results, keys_are: &str, coefficient: usize, fan_out: usize, idle: usize) -> &'a Outcome {
    let point = |o: &&Outcome| {
        let point = &o.point;
        (point.coefficient, point.fan_out, point.idle) == (coefficient, fan_out, idle) && point.keys_are == keys_are
    };
    results.outcomes.iter().find(point).expect("it was swept")
}

const EAGER: usize = 1 << 24;

#[test]
fn what_must_hold_holds_at_every_point() {
    let (options, results) = smoke("--keys-are uniform,sequential,zipf:1,hot:0.1:0.9 --workers 1,2");
    assert_eq!(results.outcomes.len(), options.points().len());
    assert_eq!(results.outcomes.len(), 4 * 2 * 2 * 2 * 2);
    assert_eq!(results.differing(), Vec::<String>::new(), "equal contents whatever the policy and the workers");
    for outcome in &results.outcomes {
        let (get, point) = (|name| outcome.get(name), &outcome.point);
        assert!(get("p50") <= get("p99") && get("p99") <= get("p99.9") && get("p99.9") <= get("max"), "{point:?}");
        assert!(get("p50") > 0.0 && get("throughput") > 0.0, "{point:?}");
        assert!(get("peak bytes") >= get("bytes") && get("bytes") > 0.0, "{point:?}");
        assert!(get("merged") > 0.0 && get("most batches") >= get("batches") && get("batches") >= 1.0, "{point:?}");
        assert!(outcome.series.len() > 1 && outcome.series.is_sorted_by(|a, b| a.seconds < b.seconds), "{point:?}");
        // What was put in arrives, less what cancels at one time.
        assert!(get("inserted") <= get("updates") && get("inserted") > 0.3 * get("updates"), "{point:?}");
        assert_eq!(get("write amplification"), get("merged") / get("inserted"));
        let curve = &outcome.report.distributions[""];
        assert!(curve.is_sorted_by(|a, b| a.0 < b.0 && a.1 >= b.1));
        // An idle worker stops where its slice ends.
        if point.coefficient == EAGER && point.idle == 0 {
            assert_eq!(get("most debt"), 0.0, "eager ones owe nothing: {point:?}");
        }
    }
    let page = page::page(&results).expect("a page");
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..Default::default() };
    let html = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
    let tags = |name| html.descendants().filter(move |node| node.tag_name().name() == name);
    let workloads = 4 * 2;
    assert_eq!(tags("details").count(), workloads);
    assert_eq!(tags("svg").count(), 1 + 6 * workloads, "a legend, and six plots for each workload");
    let rows = |name: &str| tags("td").filter(|node| node.text() == Some(name)).count();
    for outcome in &results.outcomes {
        // Once for each workload, and in the summary.
        assert_eq!(rows(&outcome.point.policy_name()), workloads + 1, "{:?}", outcome.point);
    }
    assert!(!page.contains("NaN"));
    let (rows, over) = summary::rows(&results);
    assert_eq!((rows.len(), over), (8, workloads));
    assert!(rows.iter().all(|row| row.values.iter().all(|value| value.is_finite())));
    assert!(summary::markdown(&results).contains("best p99.9: coefficient"));
}

/// Without idle workers that mix in: eager ones write more and are read in fewer batches, a greater fan-out the other way. On a
/// machine that has other work to do as well, batches grow while they wait, and a short run may have too few to tell; so it
/// is tried again.
#[test]
fn policies_differ_as_they_should() {
    let differ = |results: &Results, keys: &str| {
        let (lazy, eager) = (find(results, keys, 5, 2, 0), find(results, keys, EAGER, 2, 0));
        let wide = find(results, keys, EAGER, 8, 0);
        let written = |outcome: &Outcome| outcome.get("write amplification");
        let batches = |outcome: &Outcome| outcome.get("batches");
        let said = [lazy, eager, wide].map(|outcome| (written(outcome), batches(outcome)));
        let eagerness = written(eager) >= 1.0 && written(eager) >= written(lazy) && batches(eager) < batches(lazy);
        let width = written(wide) < written(eager) && batches(wide) > batches(eager);
        (eagerness && width).then_some(()).ok_or(said)
    };
    let mut said = Vec::new();
    for _ in 0..6 {
        let (_, results) = smoke("--keys-are uniform,sequential --workers 1 --idle 0");
        match ["uniform", "sequential"].into_iter().try_for_each(|keys| differ(&results, keys)) {
            Ok(()) => return,
            Err(what) => said.push(what),
        }
    }
    panic!("written and batches of lazy, eager and wide: {said:?}");
}

#[test]
fn what_was_written_is_read_and_gone_on_from() {
    let (options, results) = smoke("--coefficient 5 --fan-out 2 --idle 0 --keys-are uniform --closed 0");
    let directory = std::env::temp_dir().join(format!("merge-lab-{}", std::process::id()));
    assert!(Results::read(&directory.join("report.json")).expect("none is none").is_none());
    results.write(&directory).expect("written");
    let read = Results::read(&directory.join("report.json")).expect("read").expect("there");
    assert!(directory.join("report.html").is_file());
    std::fs::remove_dir_all(&directory).expect("removed");
    assert_eq!(read.outcomes[0].series, results.outcomes[0].series);
    assert_eq!(read.outcomes[0].report.line(), results.outcomes[0].report.line());
    let point = &options.points()[0];
    assert!(read.has(point, &options.load));
    let mut other = options.load.clone();
    other.rate += 1;
    assert!(!read.has(point, &other), "run in another way");
    // A different content would be said.
    let mut twice = Results { outcomes: vec![read.outcomes[0].clone(), read.outcomes[0].clone()], ..read };
    assert!(twice.differing().is_empty());
    twice.outcomes[1].report.answer = "other".to_string();
    assert_eq!(twice.differing().len(), 1);
}
