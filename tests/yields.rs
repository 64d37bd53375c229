//! Nothing holds others up, however it is skewed: joins, flattened arrangements and counts yield inside a key, a pair of
//! vals, a history; they send messages of bounded size, and come back without passing again what was done.
//!
//! A hosted worker is stepped by hand; looked at is what passes in one of its steps, and what a view was asked, which
//! counts the vals that a cursor passed.
#![forbid(unsafe_code)]

use kpg::dataflow::QUANTUM;
use kpg::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A turn is four quanta, of which each update that is made takes at least one; the last of them may take some more.
const BOUND: u64 = 5 * QUANTUM as u64;
const MILLION: u64 = 1_000_000;
const LONG: u64 = 100_000;
/// Later than all times that are put in.
const END: u64 = 1 << 20;

type Pairs<'s> = Collection<'s, u64, (u64, u64)>;
type Numbers<'s> = Collection<'s, u64, u64>;

/// What passed: updates, the sum of their data times diffs, the longest message; and how often a view was asked.
#[derive(Clone, Default)]
struct Watch {
    updates: Arc<AtomicU64>,
    sum: Arc<AtomicU64>,
    longest: Arc<AtomicU64>,
    asked: Arc<AtomicU64>,
    steps: u64,
}

impl Watch {
    fn sum(&self) -> u64 {
        self.sum.load(Relaxed)
    }
    fn updates(&self) -> u64 {
        self.updates.load(Relaxed)
    }
    fn asked(&self) -> u64 {
        self.asked.load(Relaxed)
    }
    /// A view of all that counts how often it is asked.
    fn admit(&self) -> impl Fn(u64, u64) -> bool + use<> {
        let asked = self.asked.clone();
        move |_, _| asked.fetch_add(1, Relaxed) < u64::MAX
    }
    fn probe(&self, numbers: &Numbers<'_>) -> Probe<u64> {
        let (updates, sum, longest) = (self.updates.clone(), self.sum.clone(), self.longest.clone());
        let inspected = numbers.inspect(move |datum, _, diff| {
            updates.fetch_add(1, Relaxed);
            sum.fetch_add(datum.wrapping_mul(diff as u64), Relaxed);
        });
        let messages = inspected.unary::<u64, i64>("messages", move |input, _, _| {
            while let Some((_, chunk)) = input.next() {
                longest.fetch_max(chunk.len() as u64, Relaxed);
            }
            false
        });
        messages.probe()
    }
}

/// Under key 0, each val below `vals` once more at each time below `times`.
#[derive(Clone, Copy)]
struct Many {
    vals: u64,
    times: u64,
}

fn many(vals: u64, times: u64) -> Many {
    Many { vals, times }
}

/// Runs a query over two collections on one worker, and looks at each of its steps.
fn run(a: Many, b: Many, query: for<'s> fn(&Pairs<'s>, &Pairs<'s>, &Watch) -> Numbers<'s>) -> Watch {
    run_rounds(1, a, b, query)
}

/// As `run`, and that again, once all is out, at later times.
fn run_rounds(
    rounds: u64,
    a: Many,
    b: Many,
    query: for<'s> fn(&Pairs<'s>, &Pairs<'s>, &Watch) -> Numbers<'s>,
) -> Watch {
    let mut watch = Watch::default();
    let (engine, mut seeds) = Engine::start_hosted(Config::default().workers(1).pinned(false)).unwrap();
    let worker = seeds.remove(0).start();
    let watching = watch.clone();
    let (_, (mut input, probe)) = engine
        .install("skewed", move |scope| {
            let (input, seeds) = scope.input::<u64>();
            let [a, b] = [a, b].map(|many| {
                seeds.unary::<(u64, u64), i64>("many", move |input, output, _| {
                    while let Some((token, chunk)) = input.next() {
                        let mut session = output.session(&token);
                        for (start, _, _) in chunk.iter() {
                            for time in start..start + many.times {
                                (0..many.vals).for_each(|val| session.give((0, val), time, 1));
                            }
                        }
                    }
                    false
                })
            });
            (input, watching.probe(&query(&a, &b, &watching)))
        })
        .unwrap();
    let (mut before, mut asked) = (0, 0);
    for round in 0..rounds {
        input.insert(round * END).unwrap();
        input.advance_to((round + 1) * END).unwrap();
        while !probe.is_past(&((round + 1) * END - 1)) {
            worker.step();
            let now = watch.updates();
            assert!(now - before <= BOUND, "{} updates in one step", now - before);
            let now_asked = watch.asked();
            assert!(now_asked - asked <= 2 * BOUND, "{} vals in one step", now_asked - asked);
            (before, asked) = (now, now_asked);
            watch.steps += 1;
        }
    }
    let longest = watch.longest.load(Relaxed);
    assert!(longest <= QUANTUM as u64, "a message of {longest} updates");
    engine.shutdown(Duration::from_secs(20)).unwrap();
    watch
}

/// Vals of one key that meet: each pair once, whichever side is the long one.
#[test]
fn a_join_yields_between_vals_of_either_side() {
    for (n1, n2) in [(1, MILLION), (MILLION, 1), (1000, 1000)] {
        let watch = run(many(n1, 1), many(n2, 1), |a, b, watch| {
            let (a, b) = (a.arrange_by_key().filter(watch.admit()), b.arrange_by_key().filter(watch.admit()));
            a.join_core(&b, |_, v1, v2| Some(1 + v1 + v2))
        });
        assert_eq!(watch.updates(), n1 * n2);
        assert_eq!(watch.sum(), n1 * n2 + n2 * (n1 * (n1 - 1) / 2) + n1 * (n2 * (n2 - 1) / 2), "{n1} x {n2}");
        // Each pair is a val passed, each first val a return to the second's start; a resume costs a few.
        let most = 3 * MILLION + 10 * watch.steps;
        assert!(watch.asked() <= most, "{} vals passed for {n1} x {n2}, at most {most} expected", watch.asked());
    }
}

/// One pair of vals of which one or both have long histories: in near-linear time, and not in one go.
#[test]
fn a_join_yields_inside_a_history() {
    for (n1, n2) in [(LONG, 1), (1, LONG), (LONG, LONG)] {
        let watch = run(many(1, n1), many(1, n2), |a, b, _| {
            a.arrange_by_key().join_core(&b.arrange_by_key(), |_, v1, v2| Some(1 + v1 + v2))
        });
        assert_eq!((watch.updates(), watch.sum()), (LONG, n1 * n2), "{n1} x {n2}");
        // Each update takes a few of a quantum: to be put in, arranged, replayed, sent.
        let most = 200 + 20 * (n1 + n2) / QUANTUM as u64;
        assert!(watch.steps <= most, "{} steps for {n1} x {n2}, at most {most} expected", watch.steps);
    }
}

/// One pair of vals of which much is made: by one call, and by several of histories.
#[test]
fn a_join_yields_inside_what_its_function_gives() {
    for times in [1, 1000] {
        let watch = run(many(1, times), many(1, 1), |a, b, _| {
            a.arrange_by_key()
                .join_core(&b.arrange_by_key(), |_, _, _| 0..1000u64)
                .flat_map(|n| (n < 1000).then_some(n))
        });
        assert_eq!((watch.updates(), watch.sum()), (times * 1000, times * 999 * 500));
    }
    let watch =
        run(many(1, 1), many(1, 1), |a, b, _| a.arrange_by_key().join_core(&b.arrange_by_key(), |_, _, _| 0..MILLION));
    assert_eq!((watch.updates(), watch.sum()), (MILLION, MILLION * (MILLION - 1) / 2));
}

#[test]
fn a_flattened_arrangement_yields_inside_a_key() {
    for (vals, times) in [(MILLION, 1), (1, LONG), (1000, 1000)] {
        let watch = run(many(vals, times), many(0, 0), |a, _, watch| {
            a.arrange_by_key().filter(watch.admit()).as_collection(|_, val| val)
        });
        assert_eq!((watch.updates(), watch.sum()), (vals * times, times * (vals * (vals - 1) / 2)));
        assert!(watch.asked() <= vals + 10 * watch.steps, "{} vals passed", watch.asked());
    }
    let watch = run(many(1, 10), many(0, 0), |a, _, _| a.arrange_by_key().flat_map_ref(|_, _| 0..LONG));
    assert_eq!((watch.updates(), watch.sum()), (10 * LONG, 10 * (LONG * (LONG - 1) / 2)));
}

/// A count that changes at each of many times, and again after those have been stored.
#[test]
fn a_count_yields_inside_a_key() {
    let watch = run_rounds(2, many(1, LONG), many(0, 0), |a, _, _| {
        a.map(|(_, val)| val).count().map(|(_, count)| count as u64)
    });
    // Each time takes a count away and adds one that is one more.
    assert_eq!((watch.updates(), watch.sum()), (4 * LONG - 1, 2 * LONG));
}
