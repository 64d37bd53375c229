//! Simulations: the same seed is the same run, bit for bit; another is another; results never depend on it; time costs
//! nothing.
#![forbid(unsafe_code)]

use kpg::prelude::*;
use kpg::simulation::{self, Simulated, Simulation};
use std::collections::BTreeMap;
use std::panic::catch_unwind;
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

/// A service that is wrong: it takes the first datum that arrives for the first that was sent. What it takes, and the run.
fn first_come(simulation: Simulation) -> Result<u64, Error> {
    let engine = simulation.workers(3).start()?;
    let (_, (mut input, mut winner)) = engine.install("first come", |scope| {
        let (input, bids) = scope.input::<u64>();
        let mut builder = scope.operator("first come");
        let mut bids = builder.input_exchanged(&bids, |_| 0);
        let (mut output, winner) = builder.output();
        let mut seen = false;
        builder.build(move |_fuel| {
            while let Some((token, chunk)) = bids.next() {
                let mut session = output.session(&token);
                for (bid, time, diff) in chunk.iter().filter(|_| !std::mem::replace(&mut seen, true)) {
                    session.give(bid, time, diff);
                }
            }
            false
        });
        (input, winner.subscribe())
    })?;
    for bid in 1..=6 {
        // Each goes to the next worker, and from there to the one that decides.
        input.insert(bid)?;
        input.flush()?;
    }
    input.advance_to(1)?;
    let winner = winner.wait_past(&0, SOON)?[0].0;
    Ok(winner)
}

fn first_wins(simulation: Simulation) -> Result<(), Error> {
    let winner = first_come(simulation)?;
    assert_eq!(winner, 1, "the first does not win");
    Ok(())
}

/// A fault that depends on what arrives first is found, its schedule is made small, and both run again as they did.
#[test]
fn a_fault_of_the_order_has_a_minimal_schedule() {
    let failure = simulation::find(0..100, first_wins).expect("some seed has another order");
    assert!(failure.repeats && failure.decided > 20, "{failure}");
    assert!((1..=2).contains(&failure.decisions.0.len()), "{failure}");
    assert!(failure.fault.contains("the first does not win"), "{failure}");
    assert_eq!(simulation::find([failure.seed], first_wins), Some(failure.clone()));
    // By hand: the small one fails, and it only, and each time in the same way.
    let small = || Simulation::new(failure.seed).decisions(failure.decisions.clone());
    let winner = first_come(small()).unwrap();
    assert_ne!(winner, 1);
    assert_eq!(first_come(small()).unwrap(), winner);
    for left_out in 0..failure.decisions.0.len() {
        let mut fewer = failure.decisions.clone();
        fewer.0.remove(left_out);
        assert_eq!(first_come(Simulation::new(failure.seed).decisions(fewer)).unwrap(), 1);
    }
    let panic = |call: &(dyn Fn() + std::panic::RefUnwindSafe)| {
        *catch_unwind(call).expect_err("it fails").downcast::<String>().expect("with a text")
    };
    let lines = failure.decisions.to_string();
    assert_eq!(panic(&|| simulation::replay(failure.seed, &lines, first_wins)), failure.small_fault);
    let report = panic(&|| simulation::check(0..100, first_wins));
    assert_eq!(report, failure.to_string());
    for text in [&failure.fault, &format!("seed {}", failure.seed), &failure.decisions.0[0].to_string()] {
        assert!(report.contains(text), "{report}");
    }
    assert_eq!(
        panic(&|| simulation::replay(0, "worker 1: sings", |_| Ok(()))).split(':').next(),
        Some("no decision of a schedule")
    );
    // What is right passes.
    simulation::check(0..20, |simulation| first_come(simulation).map(drop));
    simulation::replay(failure.seed, "", first_wins);
}

/// A list of decisions is the run that made it; also if there was more than one engine.
#[test]
fn a_list_of_decisions_is_the_run() {
    for seed in 0..10 {
        let mut traces = Vec::new();
        let mut twice = |simulation: Simulation| {
            for _ in 0..2 {
                traces.push(by(simulation.clone()));
            }
            Err::<(), _>("only to see the decisions")
        };
        let failure = simulation::find([seed], &mut twice).expect("it always fails");
        assert!(failure.repeats && failure.decisions.0.is_empty(), "{failure}");
        // The first run, the second one, and the one without decisions; two engines each.
        let [a, b, c, d, e, f] = traces[..] else { panic!("{} engines", traces.len()) };
        assert!((a, b) == (c, d) && a == b && e == f && a != e, "seed {seed}: {traces:?}");
    }
}

fn by(simulation: Simulation) -> u64 {
    let engine = simulation.workers(3).start().unwrap();
    let (_, (mut input, mut counts)) = engine
        .install("counts", |scope| {
            let (input, data) = scope.input::<u64>();
            (input, data.map(|n| n % 7).count().subscribe())
        })
        .unwrap();
    for round in 0..20 {
        (0..20).for_each(|n| input.insert(round * n).unwrap());
        input.advance_to(round + 1).unwrap();
        engine.step();
    }
    counts.wait_past(&19, SOON).unwrap();
    engine.trace()
}
