//! Diffs beyond their type: a typed error of the query that reads them, in debug and release alike.

use super::common::*;
use kpg::prelude::*;
use kpg::runtime::Failure;

type Numbers<'s> = Collection<'s, u64, (u32, u32)>;

/// Puts in `diffs` of one datum, each in a batch of its own, but at one time.
fn case(
    diffs: &[i64],
    body: impl for<'s> Fn(&Numbers<'s>) -> Subscription<u64, (u32, u32)> + Send + Sync,
) -> (Result<Vec<((u32, u32), u64, i64)>, Error>, Option<Error>) {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (query, (mut input, mut sub)) = engine
        .install("large", |scope| {
            let (input, numbers) = scope.input::<(u32, u32)>();
            (input, body(&numbers))
        })
        .unwrap();
    for diff in diffs {
        input.update((1, 1), *diff).unwrap();
        input.flush().unwrap();
    }
    let _ = input.advance_to(1);
    let result = sub.wait_past(&0, SOON).map(Changes::into_vec);
    witness.check();
    (result, query.error())
}

fn assert_poisoned(diffs: &[i64], operator: &str, body: impl for<'s> Fn(&Numbers<'s>) -> Numbers<'s> + Send + Sync) {
    let (result, ending) = case(diffs, |numbers| body(numbers).subscribe());
    let error = Error::Poisoned { query: "large".into(), operator: operator.into(), failure: Failure::DiffOverflow };
    assert_eq!(result, Err(error.clone()));
    assert_eq!(ending, Some(error));
}

/// A sum that does not fit is never handed over, neither wrapped nor in parts.
#[test]
fn in_what_a_subscription_hands_over() {
    let (result, ending) = case(&[i64::MAX, 1], |numbers| numbers.subscribe());
    assert_eq!((result, ending), (Err(Error::DiffOverflow), None));
}

/// Nor is anything after it, as if nothing had been lost: the subscription's error stays, and it gathers no more.
#[test]
fn a_subscription_that_lost_a_sum_stays_failed() {
    let engine = engine();
    let (query, (mut input, mut first, mut second)) = engine
        .install("large", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.subscribe(), numbers.subscribe())
        })
        .unwrap();
    for diff in [i64::MAX, i64::MAX] {
        input.update(1, diff).unwrap();
        input.flush().unwrap();
    }
    input.advance_to(1).unwrap();
    assert_eq!(first.wait_past(&0, SOON).map(drop), Err(Error::DiffOverflow));
    eventually("it is complete", || second.complete() == Antichain::from_elem(1));
    assert_eq!(second.poll().map(drop), Err(Error::DiffOverflow));
    for n in 0..100_000 {
        input.insert(n).unwrap();
    }
    input.advance_to(2).unwrap();
    for sub in [&mut first, &mut second] {
        assert_eq!(sub.wait_past(&0, SOON).map(drop), Err(Error::DiffOverflow));
        assert_eq!(sub.wait_past(&1, SOON).map(drop), Err(Error::DiffOverflow));
        assert_eq!(sub.poll().map(drop), Err(Error::DiffOverflow));
    }
    eventually("nothing is kept", || query.bytes().private < 64 << 10);
}

/// consolidate promises sums.
#[test]
fn in_consolidate() {
    assert_poisoned(&[i64::MIN, -1], "consolidate", |numbers| numbers.consolidate());
}

/// Sums run in 128 bits: one that leaves the range and comes back is fine.
#[test]
fn not_where_the_sum_fits_in_the_end() {
    let diffs = [i64::MAX, i64::MAX, 5, -i64::MAX, -i64::MAX];
    let (result, ending) = case(&diffs, |numbers| numbers.subscribe());
    assert_eq!((result, ending), (Ok(vec![((1, 1), 0, 5)]), None));
    let (result, _) = case(&diffs, |numbers| numbers.count().map(|(_, count)| (count as u32, 0)).subscribe());
    assert_eq!(result, Ok(vec![((5, 0), 0, 1)]));
}

/// count accumulates.
#[test]
fn in_count() {
    assert_poisoned(&[i64::MAX, i64::MAX], "count", |numbers| numbers.count().map(|(data, _)| data));
}

/// distinct, too.
#[test]
fn in_distinct() {
    assert_poisoned(&[i64::MAX, 1], "distinct", |numbers| numbers.distinct());
}

/// A join multiplies.
#[test]
fn in_join() {
    assert_poisoned(&[1 << 32], "join", |numbers| {
        let arranged = numbers.arrange_by_key();
        arranged.join_core(&arranged, |k, v, _| Some((k, v)))
    });
}

/// So does explode.
#[test]
fn in_explode() {
    assert_poisoned(&[i64::MAX], "explode", |numbers| numbers.explode(|data| Some((data, 2_i64))));
}

/// The one diff without an inverse.
#[test]
fn in_negate() {
    assert_poisoned(&[i64::MIN], "negate", |numbers| numbers.negate());
}

/// In a loop that doubles, a typed error in the end (CASES 22).
#[test]
fn in_a_loop() {
    let (result, _) = case(&[1], |numbers| numbers.iterate(|_, inner| inner.concat(inner)).subscribe());
    match result {
        Err(Error::DiffOverflow | Error::Poisoned { failure: Failure::DiffOverflow, .. }) => {}
        other => panic!("not the error: {other:?}"),
    }
}

/// A snapshot's reader is told; the arrangement and its query are not harmed.
#[test]
fn in_a_snapshot() {
    let engine = engine();
    let (query, (mut input, published)) = engine
        .install("large", |scope| {
            let (input, numbers) = scope.input::<(u32, u32)>();
            (input, numbers.arrange_by_key().publish())
        })
        .unwrap();
    input.update((1, 1), i64::MAX).unwrap();
    input.insert((2, 2)).unwrap();
    input.advance_to(1).unwrap();
    input.update((1, 1), i64::MAX).unwrap();
    input.advance_to(2).unwrap();
    let snapshot = published.wait_snapshot(&1, SOON).unwrap();
    assert!(snapshot.try_get(&1).is_err());
    assert_eq!(snapshot.try_get(&2).unwrap(), [(2, 1)]);
    assert_eq!(query.error(), None);
}
