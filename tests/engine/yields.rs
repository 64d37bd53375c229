//! Nothing holds others up, however it is skewed: joins, flattened arrangements and counts yield inside a key, a pair of
//! vals, a history; they send messages of bounded size, and come back without passing again what was done.
//!
//! A hosted worker is stepped by hand; looked at is what passes in one of its steps. What comes behind a node yields by
//! itself, and would hide a node that does not; so the node's own work is counted where it does it, by user code that it
//! alone calls: a view that is asked for each val that a cursor passes, diffs that are multiplied, data that are copied to
//! a message, functions and what their iterators give.
#![forbid(unsafe_code)]

use kpg::columnar::{HeapSize, Opaque};
use kpg::dataflow::QUANTUM;
use kpg::order::{Multiply, Semigroup};
use kpg::prelude::*;
use std::cell::Cell;
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

thread_local! {
    /// What nodes did, seen where they do it. The hosted worker is on the test's thread.
    static TOUCHED: Cell<u64> = const { Cell::new(0) };
}

fn touch() {
    TOUCHED.set(TOUCHED.get() + 1);
}

/// A datum that is seen when it is copied, as into a message.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Copied(u64);
impl HeapSize for Copied {}
impl Clone for Copied {
    fn clone(&self) -> Self {
        touch();
        Copied(self.0)
    }
}

/// A diff that is seen when it is multiplied.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Factor {
    diff: i64,
}
kpg::columnar::plain_struct_column! {
    struct FactorColumn for Factor { diff: i64 }
}
impl Semigroup for Factor {
    type Sum = i128;
    fn add_to(self, sum: &mut i128) {
        self.diff.add_to(sum);
    }
    fn from_sum(sum: i128) -> Option<Self> {
        i64::from_sum(sum).map(|diff| Factor { diff })
    }
    fn sum_is_zero(sum: &i128) -> bool {
        *sum == 0
    }
}
impl Multiply<Factor> for Factor {
    type Output = i64;
    fn multiply(self, other: Factor) -> Option<i64> {
        touch();
        self.diff.multiply(other.diff)
    }
}

/// What passed: updates, the sum of their data times diffs, the longest message; and how many steps it took.
#[derive(Clone, Default)]
struct Watch {
    updates: Arc<AtomicU64>,
    sum: Arc<AtomicU64>,
    longest: Arc<AtomicU64>,
    touched: u64,
    steps: u64,
}

impl Watch {
    fn sum(&self) -> u64 {
        self.sum.load(Relaxed)
    }
    fn updates(&self) -> u64 {
        self.updates.load(Relaxed)
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

/// For a view of all, which is seen when it is asked.
fn admit(_: u64, _: u64) -> bool {
    touch();
    true
}

/// The data of `0..count`, each seen when it is asked for.
fn seen(count: u64) -> impl Iterator<Item = u64> {
    (0..count).inspect(|_| touch())
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
fn run(a: Many, b: Many, query: for<'s> fn(&Pairs<'s>, &Pairs<'s>) -> Numbers<'s>) -> Watch {
    run_rounds(1, a, b, query)
}

/// As `run`, and that again, once all is out, at later times.
fn run_rounds(rounds: u64, a: Many, b: Many, query: for<'s> fn(&Pairs<'s>, &Pairs<'s>) -> Numbers<'s>) -> Watch {
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
            (input, watching.probe(&query(&a, &b)))
        })
        .unwrap();
    TOUCHED.set(0);
    let mut before = 0;
    for round in 0..rounds {
        input.insert(round * END).unwrap();
        input.advance_to((round + 1) * END).unwrap();
        while !probe.is_past(&((round + 1) * END - 1)) {
            worker.step();
            let (now, touched) = (watch.updates(), TOUCHED.get());
            assert!(now - before <= BOUND, "{} updates in one step", now - before);
            let (touched, before_it) = (touched, std::mem::replace(&mut watch.touched, touched));
            assert!(touched - before_it <= 2 * BOUND, "{} touched in one step", touched - before_it);
            before = now;
            watch.steps += 1;
        }
    }
    let longest = watch.longest.load(Relaxed);
    assert!(longest <= QUANTUM as u64, "a message of {longest} updates");
    engine.shutdown(Duration::from_secs(20)).unwrap();
    watch
}

/// Vals of one key that meet: each pair once, whichever side is the long one, also if nothing is made of it.
#[test]
fn a_join_yields_between_vals_of_either_side() {
    for (n1, n2) in [(1, MILLION), (MILLION, 1), (1000, 1000)] {
        // Each pair is a val passed, each first val a return to the second's start; a resume costs a few.
        let check = |watch: &Watch| {
            let most = 3 * MILLION + 10 * watch.steps;
            assert!(watch.touched <= most, "{} vals passed for {n1} x {n2}, at most {most} expected", watch.touched);
        };
        let watch = run(many(n1, 1), many(n2, 1), |a, b| {
            let (a, b) = (a.arrange_by_key().filter(admit), b.arrange_by_key().filter(admit));
            a.join_core(&b, |_, v1, v2| Some(1 + v1 + v2))
        });
        assert_eq!(watch.updates(), n1 * n2);
        assert_eq!(watch.sum(), n1 * n2 + n2 * (n1 * (n1 - 1) / 2) + n1 * (n2 * (n2 - 1) / 2), "{n1} x {n2}");
        check(&watch);
        let watch = run(many(n1, 1), many(n2, 1), |a, b| {
            let (a, b) = (a.arrange_by_key().filter(admit), b.arrange_by_key().filter(admit));
            a.join_core(&b, |_, _, _| None)
        });
        assert_eq!(watch.updates(), 0);
        check(&watch);
    }
}

/// Keys of two sides that alternate and never meet.
#[test]
fn a_join_yields_between_keys() {
    let watch = run(many(LONG, 1), many(LONG, 1), |a, b| {
        let even = a.map(|(_, val)| (2 * val, val)).arrange_by_key().filter(admit);
        let odd = b.map(|(_, val)| (2 * val + 1, val)).arrange_by_key().filter(admit);
        even.join_core(&odd, |_, _, _| Some(0))
    });
    assert_eq!(watch.updates(), 0);
    assert!(watch.touched >= 2 * LONG, "{} keys passed", watch.touched);
}

/// One pair of vals of which one or both have long histories: in near-linear time, and not in one go.
#[test]
fn a_join_yields_inside_a_history() {
    /// The same, with diffs that are seen.
    fn factors<'s>(pairs: &Pairs<'s>) -> Collection<'s, u64, (u64, u64), Factor> {
        pairs.unary::<(u64, u64), Factor>("factors", |input, output, _| {
            while let Some((token, chunk)) = input.next() {
                let mut session = output.session(&token);
                chunk.iter().for_each(|(pair, time, diff)| session.give(pair, time, Factor { diff }));
            }
            false
        })
    }
    for (n1, n2) in [(LONG, 1), (1, LONG), (LONG, LONG)] {
        let watch = run(many(1, n1), many(1, n2), |a, b| {
            let (a, b) = (factors(a).arrange_by_key(), factors(b).arrange_by_key());
            a.join_core(&b, |_, v1, v2| Some(1 + v1 + v2))
        });
        assert_eq!((watch.updates(), watch.sum()), (LONG, n1 * n2), "{n1} x {n2}");
        // Each update takes a few of a quantum: to be put in, arranged, replayed, sent.
        let most = 200 + 20 * (n1 + n2) / QUANTUM as u64;
        assert!(watch.steps <= most, "{} steps for {n1} x {n2}, at most {most} expected", watch.steps);
        // Over a total order what has been replayed of a side is one update.
        assert!(watch.touched >= LONG && watch.touched <= n1 + n2, "{} products", watch.touched);
    }
}

/// One pair of vals of which much is made: by one call, and by several of histories.
#[test]
fn a_join_yields_inside_what_its_function_gives() {
    for times in [1, 1000] {
        let watch = run(many(1, times), many(1, 1), |a, b| {
            let made = a.arrange_by_key().join_core(&b.arrange_by_key(), |_, _, _| (0..1000).map(Copied).map(Opaque));
            made.map(|datum| datum.0.0).flat_map(|n| (n < 1000).then_some(n))
        });
        assert_eq!((watch.updates(), watch.sum()), (times * 1000, times * 999 * 500));
        assert!(watch.touched >= times * 1000, "{} data copied", watch.touched);
    }
    let watch =
        run(many(1, 1), many(1, 1), |a, b| a.arrange_by_key().join_core(&b.arrange_by_key(), |_, _, _| seen(MILLION)));
    assert_eq!((watch.updates(), watch.sum()), (MILLION, MILLION * (MILLION - 1) / 2));
    // Each was asked for once.
    assert_eq!(watch.touched, MILLION);
}

#[test]
fn a_flattened_arrangement_yields_inside_a_key() {
    for (vals, times) in [(MILLION, 1), (1, LONG), (1000, 1000)] {
        let watch =
            run(many(vals, times), many(0, 0), |a, _| a.arrange_by_key().filter(admit).as_collection(|_, val| val));
        assert_eq!((watch.updates(), watch.sum()), (vals * times, times * (vals * (vals - 1) / 2)));
        assert!(watch.touched <= vals + 10 * watch.steps, "{} vals passed", watch.touched);
    }
    // Many vals of which nothing is made.
    let watch = run(many(MILLION, 1), many(0, 0), |a, _| {
        a.arrange_by_key().flat_map_ref(|_, _| {
            touch();
            None
        })
    });
    assert_eq!((watch.updates(), watch.touched), (0, MILLION));
}

#[test]
fn a_flattened_arrangement_yields_inside_a_val() {
    // Many times of one datum; few data with each of few times; many data of one call.
    let watch = run(many(1, LONG), many(0, 0), |a, _| {
        let copies = a.arrange_by_key().as_collection(|_, val| Opaque(Copied(val)));
        copies.map(|datum| datum.0.0)
    });
    assert_eq!(watch.updates(), LONG);
    assert!(watch.touched >= LONG, "{} data copied", watch.touched);
    let watch = run(many(1, 10), many(0, 0), |a, _| a.arrange_by_key().flat_map_ref(|_, _| seen(LONG)));
    assert_eq!((watch.updates(), watch.sum()), (10 * LONG, 10 * (LONG * (LONG - 1) / 2)));
    assert_eq!(watch.touched, LONG);
}

/// A count that changes at each of many times, and again after those have been stored.
#[test]
fn a_count_yields_inside_a_key() {
    let watch =
        run_rounds(2, many(1, LONG), many(0, 0), |a, _| a.map(|(_, val)| val).count().map(|(_, count)| count as u64));
    // Each time takes a count away and adds one that is one more.
    assert_eq!((watch.updates(), watch.sum()), (4 * LONG - 1, 2 * LONG));
}

/// The same, where the output is seldom another; the function is asked at each time once, and once more for a resume.
#[test]
fn a_threshold_yields_inside_a_key_and_between_keys() {
    fn seen_distinct<'s>(numbers: &Numbers<'s>) -> Numbers<'s> {
        numbers.threshold(|_, count| {
            touch();
            i64::from(count > 0)
        })
    }
    let watch = run_rounds(2, many(1, LONG), many(0, 0), |a, _| seen_distinct(&a.map(|(_, val)| val + 1)));
    assert_eq!((watch.updates(), watch.sum()), (1, 1));
    let most = 2 * LONG + 10 * watch.steps;
    assert!((2 * LONG..most).contains(&watch.touched), "asked {} times, at most {most} expected", watch.touched);
    // A key of one time each; in the second round each has been stored.
    let watch = run_rounds(2, many(LONG, 1), many(0, 0), |a, _| seen_distinct(&a.map(|(_, val)| val)));
    assert_eq!((watch.updates(), watch.sum()), (LONG, LONG * (LONG - 1) / 2));
    assert!(watch.touched >= 3 * LONG && watch.touched <= 3 * LONG + 10 * watch.steps, "asked {} times", watch.touched);
}
