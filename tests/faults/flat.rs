//! Epochs by the hundred thousand, and queries by the thousand, that come and go: memory stays flat.
//!
//! Each in a process of its own, so that the resident set is its own as well. The workers are stepped by this thread.

use super::common::{SOON, Witness, heavy, quiet};
use super::witness::live;
use kpg::client::HostedWorker;
use kpg::prelude::*;

/// Runs `body` in a process of its own, as the test of that name.
fn alone(name: &str, body: impl FnOnce()) {
    const MARK: &str = "KPG_FAULTS_ALONE";
    if std::env::var(MARK).is_ok_and(|value| value == name) {
        return body();
    }
    let test = std::env::current_exe().unwrap();
    let status = std::process::Command::new(test).args(["--exact", name, "--nocapture"]).env(MARK, name).status();
    assert!(status.unwrap().success(), "{name} failed in a process of its own");
}

/// Bytes live in the arenas, and bytes of this process that are in memory.
fn memory(engine: &Engine) -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    (live(engine), line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10)
}

/// What may be resident at the end that was not there in the middle. Between the two lie a thousand queries or a hundred
/// thousand epochs at least: what each may leave is some hundred bytes, or one. Without a leak it is a few pages.
const NOISE: usize = 128 << 10;

/// Fails unless the last of the samples are what those after the first tenth were.
fn assert_flat(samples: &[(usize, usize)]) {
    let greatest = |part: &[(usize, usize)]| {
        (part.iter().map(|sample| sample.0).max().unwrap(), part.iter().map(|sample| sample.1).max().unwrap())
    };
    let (_, warm) = samples.split_at(samples.len() / 10);
    let (first, last) = warm.split_at(warm.len() / 2);
    let ((live_1, resident_1), (live_2, resident_2)) = (greatest(first), greatest(last));
    println!("live {live_1} then {live_2}, resident {resident_1} then {resident_2}");
    assert!(live_2 <= live_1 + (16 << 10), "live bytes grow from {live_1} to {live_2}");
    assert!(resident_2 <= resident_1 + NOISE, "resident bytes grow from {resident_1} to {resident_2}");
}

/// Two workers, to be stepped here.
fn hosted() -> (Engine, Vec<HostedWorker>) {
    quiet();
    let (engine, seeds) = Engine::start_hosted(Config::default().workers(2).pinned(false)).unwrap();
    (engine, seeds.into_iter().map(kpg::client::WorkerSeed::start).collect())
}

/// Two hundred thousand epochs, a million if nothing is left out: one input moves on without data, the other never gets
/// any and follows it, and each worker is stepped in each; both are joined, reduced, published and imported.
#[test]
fn epochs_without_data() {
    alone("flat::epochs_without_data", || {
        let (engine, workers) = hosted();
        let (_source, (mut input, published)) = engine
            .install("source", |scope| {
                let (input, numbers) = scope.input::<(u64, u64)>();
                (input, numbers.arrange_by_key().publish())
            })
            .unwrap();
        input.insert((1, 1)).unwrap();
        let (_query, (mut idle, mut results)) = engine
            .install("idle", |scope| {
                let (idle, keys) = scope.input::<u64>();
                let numbers = published.import(scope);
                let joined = numbers.join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v)));
                (idle, joined.count().subscribe())
            })
            .unwrap();
        idle.follow(&published).unwrap();
        let epochs = if heavy() { 1_000_000 } else { 200_000 };
        let mut samples = Vec::with_capacity(100);
        for t in 0..epochs {
            input.advance_to(t + 1).unwrap();
            workers.iter().for_each(|worker| {
                worker.step();
            });
            if t % (epochs / 100) == 0 {
                assert_eq!(results.wait_past(&t, SOON).unwrap(), []);
                samples.push(memory(&engine));
            }
        }
        assert_flat(&samples);
    });
}

/// Two thousand queries, ten thousand if nothing is left out, are installed, asked and retired, one after the other.
#[test]
fn queries_that_come_and_go() {
    alone("flat::queries_that_come_and_go", || {
        let (engine, workers) = hosted();
        let mut witness = Witness::install(&engine);
        (0..10).for_each(|_| witness.check());
        let cycles = if heavy() { 10_000 } else { 2_000 };
        let mut samples = Vec::with_capacity(100);
        for cycle in 0..cycles {
            witness.passing_query(&engine);
            if cycle % (cycles / 100) == 0 {
                workers.iter().for_each(|worker| while worker.step() {});
                samples.push(memory(&engine));
            }
        }
        assert_flat(&samples);
        witness.check();
    });
}
