//! Simulations: the same seed is the same run, bit for bit; another is another; results never depend on it; time costs
//! nothing.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use kpg::simulation::{Simulated, Simulation};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const SOON: Duration = Duration::from_secs(5);

/// What a run showed, and how it went.
#[derive(Debug, PartialEq)]
struct Run {
    heard: Vec<String>,
    trace: u64,
    events: u64,
    elapsed: Duration,
}

/// A service with all kinds of parts: shared arrangements, imports, loops, reductions, deadlines that pass, a cap that
/// ends a query, a retirement. `pause` is called in between, and must not matter.
fn service(seed: u64, workers: usize, pause: &dyn Fn()) -> Run {
    let config = Config::default().idle_tick(3);
    let simulation = Simulation::new(seed).config(config).workers(workers).start().unwrap();
    let mut heard = Vec::new();
    let (_source, (mut edges, shared)) = simulation
        .install("source", |scope| {
            let (input, edges) = scope.input::<(u32, u32)>();
            (input, edges.arrange_by_key().publish())
        })
        .unwrap();
    let (reach, (mut roots, mut reached)) = simulation
        .install("reach", |scope| {
            let edges = shared.import(scope);
            let (input, roots) = scope.input::<u32>();
            let reached = roots.iterate(|inner, reached| {
                let (edges, roots) = (edges.enter(inner), roots.enter(inner));
                reached.arrange_by_self().join_core(&edges, |_, (), to| Some(to)).concat(&roots).distinct()
            });
            (input, reached.subscribe())
        })
        .unwrap();
    // Nobody watches it, and it lags: its input stands still, so its cap ends it.
    let (capped, still) = simulation
        .install_capped::<u64, _, _>("capped", Some(4 << 10), |scope| {
            let (input, keys) = scope.input::<u32>();
            shared.import(scope).join_core(&keys.arrange_by_self(), |k, v, ()| Some((k, v))).inspect(|_, _, _| {});
            input
        })
        .unwrap();
    roots.insert(0).unwrap();
    for round in 0..30_u64 {
        pause();
        for edge in 0..40 {
            let hash = (round as u32 * 40 + edge).wrapping_mul(0x9e37_79b1);
            let (from, to) = (hash >> 8 & 63, hash >> 20 & 63);
            edges.insert((from, to)).unwrap();
            if edge % 3 == 0 {
                edges.remove((from, to)).unwrap();
            }
        }
        edges.advance_to(round + 1).unwrap();
        roots.advance_to(round + 1).unwrap();
        if round % 3 == 0 {
            // Too soon, now and then: what counts is the simulation's time.
            heard.push(format!("{:?}", reached.wait_past(&round, Duration::from_micros(40))));
        }
        simulation.step();
        if round % 2 == 0 {
            heard.push(format!("{:?}", reached.wait_past(&round, SOON).unwrap()));
        }
        simulation.pass(Duration::from_millis(3));
        heard.push(format!("{:?} {:?} {:?} {:?}", shared.complete(), capped.error(), capped.lags(), capped.bytes()));
    }
    heard.push(format!("{:?}", reached.wait_past(&30, SOON)));
    simulation.settle();
    drop(still);
    reach.retire().unwrap();
    let metrics = simulation.metrics();
    heard.push(format!("{:?}", metrics.queries.iter().map(|q| (&q.name, q.node_steps, q.ended)).collect::<Vec<_>>()));
    Run { heard, trace: simulation.trace(), events: simulation.events(), elapsed: simulation.elapsed() }
}

/// Twice the same, though the second time all is slower by the wall, and memory lies elsewhere.
#[test]
fn the_same_seed_is_the_same_run() {
    let mut traces = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let workers = 1 + seed as usize % 4;
        let first = service(seed, workers, &|| {});
        let ballast = std::cell::RefCell::new(Vec::new());
        let second = service(seed, workers, &|| {
            std::thread::sleep(Duration::from_micros(300));
            ballast.borrow_mut().push(vec![0_u8; 777]);
        });
        assert_eq!(first, second, "seed {seed}");
        assert!(first.heard.iter().any(|text| text.contains("OutOfMemory")), "the cap did not end its query");
        assert!(first.events > 200, "only {} events", first.events);
        assert!(traces.insert(first.trace), "two seeds, one run");
    }
}

/// Whatever the seed: what is heard is what an oracle says.
#[test]
fn results_do_not_depend_on_the_seed() {
    for seed in 0..60 {
        let simulation = Simulation::new(seed).workers(1 + seed as usize % 3).start().unwrap();
        let (_, (mut left, mut right, mut sums)) = simulation
            .install("sums", |scope| {
                let (left, a) = scope.input::<(u32, i64)>();
                let (right, b) = scope.input::<(u32, i64)>();
                (left, right, a.join(&b).map(|(key, (a, b))| (key, a * b)).subscribe())
            })
            .unwrap();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        let mut heard = BTreeMap::<(u32, i64), i64>::new();
        for round in 0..12_i64 {
            left.insert((round as u32 % 3, round)).unwrap();
            a.push((round as u32 % 3, round));
            if round % 4 == 3 {
                let gone = a.remove(0);
                left.remove(gone).unwrap();
            }
            right.insert((round as u32 % 2, round * 10)).unwrap();
            b.push((round as u32 % 2, round * 10));
            left.advance_to(round as u64 + 1).unwrap();
            right.advance_to(round as u64 + 1).unwrap();
            for (datum, _, diff) in sums.wait_past(&(round as u64), SOON).unwrap() {
                *heard.entry(datum).or_insert(0) += diff;
            }
            heard.retain(|_, count| *count != 0);
            let mut want = BTreeMap::new();
            for (key, x) in &a {
                for (_, y) in b.iter().filter(|(other, _)| other == key) {
                    *want.entry((*key, x * y)).or_insert(0) += 1;
                }
            }
            assert_eq!(heard, want, "seed {seed}, round {round}");
        }
        assert!(simulation.shutdown(SOON).unwrap().drained);
    }
}

/// A wait for what never comes ends at its deadline by the simulation's clock, at once by the wall's; one without a
/// deadline fails too, rather than hang.
#[test]
fn time_costs_nothing() {
    let simulation: Simulated = Simulation::new(1).workers(3).start().unwrap();
    let (_, (mut input, mut sub, probe, published)) = simulation
        .install("numbers", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.subscribe(), numbers.probe(), numbers.arrange_by_key().publish())
        })
        .unwrap();
    let (start, day) = (Instant::now(), Duration::from_secs(24 * 3600));
    let before = simulation.elapsed();
    input.insert((1, 1)).unwrap();
    assert!(matches!(sub.wait_past(&0, day), Err(Error::Deadline { .. })));
    assert!(matches!(probe.wait_past(&0, day), Err(Error::Deadline { .. })));
    assert!(matches!(published.wait_snapshot(&0, day).map(drop), Err(Error::Deadline { .. })));
    assert!(simulation.elapsed() - before >= 3 * day);
    for forever in [Duration::MAX, Duration::MAX] {
        assert!(matches!(sub.wait_past(&0, forever), Err(Error::Deadline { .. })));
        assert!(matches!(probe.wait_past(&0, forever), Err(Error::Deadline { .. })));
        assert!(matches!(published.wait_snapshot(&0, forever).map(drop), Err(Error::Deadline { .. })));
    }
    assert!(start.elapsed() < SOON);
    input.advance_to(1).unwrap();
    assert_eq!(sub.wait_past(&0, Duration::from_millis(100)).unwrap(), [((1, 1), 0, 1)]);
    assert!(matches!(Simulation::new(1).workers(0).start(), Err(Error::Config(_))));
}
