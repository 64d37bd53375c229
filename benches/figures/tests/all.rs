//! All figures in small: tables on the standard output, JSON and SVG in a directory, and the results known to be right.
#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::Command;
use workloads::Report;

/// Of all results; `answers` checks such ones against plain code.
const HASH: &str = "59bbe40504fcfa07";

#[test]
fn all_figures_in_small() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("figures");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = Command::new(env!("CARGO_BIN_EXE_figures"));
    let output = command.args(["all", "--smoke", "-w", "2", "--out"]).arg(&out).output().expect("a program that runs");
    let (text, progress) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{progress}");
    assert!(text.contains(&format!("hash of all results: {HASH}")), "{text}");
    assert!(text.contains("Latency by offered load (arrange, 1 worker)") && text.contains("p99.9"), "{text}");
    assert!(progress.starts_with("[1/"), "{progress}");

    let (mut lines, mut drawn) = (0, 0);
    for entry in std::fs::read_dir(&out).expect("a directory") {
        let path = entry.expect("an entry").path();
        let content = std::fs::read_to_string(&path).expect("text");
        if path.extension().is_some_and(|extension| extension == "json") {
            lines += content.lines().filter(|line| Report::parse(line).is_ok()).count();
        } else {
            assert!(content.starts_with("<svg") && content.contains("<polyline"), "{}", path.display());
            drawn += 1;
        }
    }
    assert!(progress.contains(&format!("/{lines}]")), "a report for each measurement: {lines}");
    assert_eq!(drawn, 12, "figures that are drawn");
}

/// What is asked for wrongly is said.
#[test]
fn mistakes_are_named() {
    let said = |words: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_figures")).args(words).output().expect("a program that runs");
        assert!(!output.status.success(), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said(&["all", "--out", env!("CARGO_TARGET_TMPDIR"), "fig-5z"]).contains("5a-load"));
    assert!(said(&["all", "--rates", "fast"]).contains("--rates fast"));
    assert!(said(&["measure", "throughput", "pace=1"]).contains("operator"));
    assert!(said(&[]).contains("--smoke"));
}
