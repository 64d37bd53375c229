//! Panics in user code: the query ends, named, with the text; importers keep their last complete frontier; all others
//! stay exact; the memory comes back.

use super::common::*;
use kpg::columnar::{HeapSize, Opaque};
use kpg::prelude::*;
use kpg::runtime::{Ending, Failure};
use std::cmp::Ordering;

type Numbers<'s> = Collection<'s, u64, (u32, u32)>;

fn unlucky(number: u32) {
    assert!(number != 13, "not 13");
}

/// Runs `body` on one number that is well and one that is 13, with an importer and a bystander.
fn case(operator: &str, body: impl for<'s> Fn(&Numbers<'s>) -> Numbers<'s> + Send + Sync) {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    witness.check();
    let (query, (mut input, mut sub, probe, published)) = engine
        .install("unlucky", |scope| {
            let (input, numbers) = scope.input::<(u32, u32)>();
            let arranged = body(&numbers).arrange_by_key();
            let out = arranged.as_collection(|k, v| (k, v));
            (input, out.subscribe(), out.probe(), arranged.publish())
        })
        .unwrap();
    let (importer, mut copy) =
        engine.install("importer", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe()).unwrap();
    input.insert((1, 1)).unwrap();
    input.advance_to(1).unwrap();
    assert_eq!(sub.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
    assert_eq!(copy.wait_past(&0, SOON).unwrap(), [((1, 1), 0, 1)]);
    let kept = published.snapshot_at(&0).unwrap();
    input.insert((13, 13)).unwrap();
    input.insert((14, 14)).unwrap();
    input.advance_to(2).unwrap();

    let failure = match sub.wait_past(&1, SOON).unwrap_err() {
        Error::Poisoned { query, operator: at, failure } => {
            assert_eq!((query.as_str(), at.as_str()), ("unlucky", operator));
            failure
        }
        other => panic!("not the error: {other:?}"),
    };
    assert!(matches!(&failure, Failure::Panic(text) if text.contains("not 13")), "{failure:?}");
    assert!(matches!(probe.wait_past(&1, SOON), Err(Error::Poisoned { .. })));
    assert!(matches!(input.advance_to(3), Err(Error::Poisoned { .. })));
    assert!(matches!(published.snapshot(), Err(Error::Poisoned { .. })));
    // The importer: typed, transitively, and its last complete frontier stays.
    let ending = Ending::Poisoned { operator: operator.into(), failure };
    let ended = Error::SourceEnded { query: "importer".into(), source: "unlucky".into(), ending };
    assert_eq!(copy.wait_past(&1, SOON).unwrap_err(), ended);
    assert_eq!(copy.complete(), Antichain::from_elem(1));
    // Whoever holds a snapshot keeps it.
    assert_eq!(kept.get(&1).collect::<Vec<_>>(), [(1, 1)]);
    witness.check();

    drop((input, sub, probe, kept, published));
    eventually("what was its own is freed", || query.bytes().private == 0);
    drop(copy);
    importer.retire().unwrap();
    eventually("what it published is freed", || query.bytes().shared == 0);
    query.retire().unwrap();
    witness.check();
}

/// A stage is named.
#[test]
fn in_map() {
    case("map", |numbers| {
        numbers.map(|(k, v)| {
            unlucky(v);
            (k, v)
        })
    });
}

/// The stage's own name, where it has one.
#[test]
fn in_a_named_map() {
    case("my stage", |numbers| {
        numbers.map_named("my stage", |(k, v)| {
            unlucky(v);
            (k, v)
        })
    });
}

/// Not the stage before or after it.
#[test]
fn in_filter() {
    case("filter", |numbers| {
        let kept = numbers.map(|pair| pair).filter(|(_, v)| {
            unlucky(v);
            true
        });
        kept.map(|pair| pair)
    });
}

/// Stages that end a chain.
#[test]
fn in_inspect() {
    case("inspect", |numbers| {
        numbers.inspect(|(_, v), _, _| unlucky(v));
        numbers.clone()
    });
}

/// A time that a delay takes back.
#[test]
fn in_delay() {
    case("delay", |numbers| {
        numbers.delay(|t| {
            assert!(*t == 0, "not 13");
            *t
        })
    });
}

/// A node, whose output is an arrangement: nothing of the half-done round is sealed.
#[test]
fn in_reduce() {
    case("reduce", |numbers| {
        let reduced = numbers.arrange_by_key().reduce(|_, vals, output: &mut Vec<(u32, i64)>| {
            unlucky(vals[0].0);
            output.push((vals[0].0, 1));
        });
        reduced.as_collection(|k, v| (k, v))
    });
}

/// A node with futures under way.
#[test]
fn in_join_core() {
    case("join", |numbers| {
        let arranged = numbers.arrange_by_key();
        arranged.join_core(&arranged, |k, v, _| {
            unlucky(v);
            Some((k, v))
        })
    });
}

/// Inside a loop.
#[test]
fn in_iterate() {
    case("map", |numbers| {
        numbers.iterate(|_, inner| {
            inner
                .map(|(k, v)| {
                    unlucky(v);
                    (k, v)
                })
                .distinct()
        })
    });
}

/// An operator of the user's own.
#[test]
fn in_a_users_operator() {
    case("mine", |numbers| {
        numbers.unary("mine", |input, output, _| {
            while let Some((token, chunk)) = input.next() {
                let mut session = output.session(&token);
                for (data, time, diff) in chunk.iter() {
                    unlucky(data.1);
                    session.give(data, time, diff);
                }
            }
            false
        })
    });
}

/// Ordered, until it meets an unlucky one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Touchy(u32);
impl HeapSize for Touchy {}
impl PartialOrd for Touchy {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Touchy {
    fn cmp(&self, other: &Self) -> Ordering {
        // Each one alone can be sorted, and sealed; together they cannot.
        assert!(self.0.abs_diff(other.0) < 1000, "not 13: {self:?} meets {other:?}");
        self.0.cmp(&other.0)
    }
}

/// A user's `Ord`, in a merge: each batch is well by itself, so it is the merge that fails, and that is the arrangement's.
#[test]
fn in_a_merge() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, (mut input, probe, published)) = engine
        .install("touchy", |scope| {
            let (input, numbers) = scope.input::<(u32, Opaque<Touchy>)>();
            let arranged = numbers.arrange_named("touchy arrange");
            (input, arranged.as_collection(|k, _| k).probe(), arranged.publish())
        })
        .unwrap();
    let (importer, mut keys) =
        engine.install("importer", |scope| published.import(scope).as_collection(|k, _| k).subscribe()).unwrap();
    let mut failed = false;
    for t in 0..1000 {
        // One key: the vals are compared; both kinds are never in one batch.
        let number = if t % 2 == 0 { 1 } else { 5000 };
        if input.insert((7, Opaque(Touchy(number)))).and_then(|()| input.advance_to(t + 1)).is_err() {
            failed = true;
            break;
        }
        if let Err(error) = probe.wait_past(&t, SOON) {
            assert!(matches!(error, Error::Poisoned { .. }), "{error:?}");
            failed = true;
            break;
        }
    }
    assert!(failed, "a thousand batches and no merge");
    match ending(&query) {
        Error::Poisoned { operator, failure: Failure::Panic(text), .. } => {
            assert_eq!(operator, "touchy arrange");
            assert!(text.contains("not 13"), "{text}");
        }
        other => panic!("not the error: {other:?}"),
    }
    assert!(matches!(keys.wait_past(&5000, SOON), Err(Error::SourceEnded { .. })));
    witness.check();
    drop((input, probe, published, keys));
    importer.retire().unwrap();
    eventually("it is freed", || query.bytes() == kpg::client::QueryBytes { private: 0, shared: 0 });
    witness.check();
}

/// Panics when it is dropped.
struct Bomb;
impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("dropped");
        }
    }
}

/// A payload whose own drop panics must not take the worker along.
#[test]
fn with_a_payload_that_panics() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, mut input) = engine
        .install("bomb", |scope| {
            let (input, numbers) = scope.input::<u32>();
            numbers.inspect(|_, _, _| std::panic::panic_any(Bomb)).probe();
            input
        })
        .unwrap();
    input.insert(1).unwrap();
    input.flush().unwrap();
    assert!(matches!(ending(&query), Error::Poisoned { .. }));
    witness.check();
    query.retire().unwrap();
    witness.check();
}

/// What a closure holds may panic when it is dropped: at the query's end, and when its operator is done.
#[test]
fn in_the_drop_of_a_closure() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let install = || {
        let installed = engine.install("bomb", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let bomb = Bomb;
            let out = numbers.unary::<u32, i64>("bomb", move |input, _, _| {
                let _held = &bomb;
                while input.next().is_some() {}
                false
            });
            (input, out.probe())
        });
        installed.unwrap()
    };
    let (query, (input, _probe)) = install();
    query.retire().unwrap();
    drop(input);
    witness.check();
    let (query, (input, _probe)) = install();
    // Its operator is done, and dropped while the dataflow runs.
    drop(input);
    match ending(&query) {
        Error::Poisoned { operator, failure: Failure::Panic(text), .. } => {
            assert_eq!((operator.as_str(), text.as_str()), ("bomb", "dropped"));
        }
        other => panic!("not the error: {other:?}"),
    }
    witness.check();
    query.retire().unwrap();
    witness.check();
}
