//! What once failed, each as small as it went.

use kpg::prelude::*;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

fn engine(workers: usize) -> Engine {
    Engine::start(Config::default().workers(workers).pinned(false)).expect("an engine")
}

/// The trace went with the node of the arrangement, when that had closed.
#[test]
fn an_arrangement_whose_input_closed_can_be_imported() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let (_query, (mut input, published)) = engine
            .install("source", |scope| {
                let (input, data) = scope.input::<(u32, u32)>();
                (input, data.arrange_by_key().publish())
            })
            .expect("a query");
        input.insert((1, 2)).expect("open");
        drop(input);
        published.wait_snapshot(&7, PATIENCE).expect("complete");
        let (_query, mut seen) = engine
            .install("reader", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe())
            .expect("a query");
        let seen: Vec<_> =
            seen.wait_past(&u64::MAX, PATIENCE).expect("complete").into_iter().map(|(d, _, r)| (d, r)).collect();
        assert_eq!(seen, [((1, 2), 1)]);
    }
}

/// Frontiers that are empty from the start never move, and what was published of them never became complete.
#[test]
fn what_no_source_reaches_is_published_as_complete() {
    let engine = engine(2);
    let (_query, published) = engine
        .install("nothing", |scope| scope.empty::<(u32, u32), i64>().arrange_by_key().publish())
        .expect("a query");
    assert_eq!(published.wait_snapshot(&7, PATIENCE).expect("complete").iter().count(), 0);
}

/// Counts over total times spent a key's fuel before its work, and so never did a key that costs more than a quantum.
#[test]
fn counts_go_on_where_a_key_costs_more_than_a_quantum() {
    let config = Config::default().workers(1).pinned(false).quantum(1);
    let engine = Engine::start(config).expect("an engine");
    let (_query, (mut input, mut counts)) = engine
        .install("counts", |scope| {
            let (input, data) = scope.input::<u32>();
            (input, data.count().subscribe())
        })
        .expect("a query");
    for time in 0..5 {
        input.insert(3).expect("open");
        input.advance_to(time + 1).expect("later");
        let changes = counts.wait_past(&time, PATIENCE).expect("complete");
        assert_eq!(changes.last(), Some(&((3, time as i64 + 1), time, 1)));
    }
}

/// `through` told what was complete, also where `wait_past` had handed over less, or, coalesced, nothing but whole sums.
#[test]
fn changes_say_through_which_frontier_they_are() {
    let engine = engine(1);
    let (_query, (mut input, mut all, mut summed)) = engine
        .install("through", |scope| {
            let (input, data) = scope.input::<u32>();
            (input, data.subscribe(), data.subscribe_bounded(1))
        })
        .expect("a query");
    for time in 0..5 {
        input.insert(time as u32).expect("open");
        input.advance_to(time + 1).expect("later");
        let probe = all.wait_past(&0, PATIENCE).expect("complete");
        assert_eq!(probe.through(), &Antichain::from_elem(1));
    }
    let changes = all.wait_past(&2, PATIENCE).expect("complete");
    assert_eq!((changes.through(), changes.len()), (&Antichain::from_elem(3), 2));
    all.wait_past(&4, PATIENCE).expect("complete");
    let changes = summed.wait_past(&1, PATIENCE).expect("complete");
    let through = *changes.through().as_single().expect("the input is open");
    assert!(through > 1 && changes.len() as u64 == through, "{through}: {changes:?}");
}
