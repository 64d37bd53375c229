//! Times that go back, and input queues that are full.

use super::common::*;
use kpg::prelude::*;
use std::time::Duration;

/// What was given up is given up: an input says so, and works on at its own time.
#[test]
fn an_input_does_not_go_back() {
    let engine = engine();
    let (_, (mut input, mut sub)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input::<u32>();
            (input, numbers.subscribe())
        })
        .unwrap();
    input.advance_to(5).unwrap();
    let back = Err(Error::TimeWentBack { asked: "4".into(), at: "5".into() });
    assert_eq!(input.advance_to(4), back);
    assert_eq!(input.update_at(7, 4, 1), back);
    assert_eq!(input.time(), 5);
    let mut clone = input.clone();
    assert_eq!(clone.advance_to(4), back);
    input.insert(1).unwrap();
    input.update_at(2, 9, 1).unwrap();
    input.advance_to(10).unwrap();
    // The clone holds 5 still.
    assert!(matches!(sub.wait_past(&5, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    drop(clone);
    assert_eq!(sub.wait_past(&9, SOON).unwrap(), [(1, 5, 1), (2, 9, 1)]);
}

/// Incomparable is back too: a session promises all that is not at or after its time.
#[test]
fn an_input_does_not_go_sideways() {
    let engine = engine();
    let (_, mut input) = engine.install_at::<Pair<u64, u64>, _, _>("pairs", |scope| scope.input::<u32>().0).unwrap();
    input.advance_to(Pair::new(2, 2)).unwrap();
    assert!(matches!(input.advance_to(Pair::new(3, 1)), Err(Error::TimeWentBack { .. })));
    assert!(matches!(input.update_at(1, Pair::new(1, 9), 1), Err(Error::TimeWentBack { .. })));
    input.advance_to(Pair::new(2, 3)).unwrap();
}

/// A full queue: `try_flush` says so and keeps what was gathered, `flush` waits and goes on, nothing is lost.
#[test]
fn a_full_queue_waits() {
    let engine = engine();
    let (_, (mut input, mut sub)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input_with::<u32, i64>(1);
            (input, numbers.subscribe())
        })
        .unwrap();
    let blocked = Blocked::worker_0(&engine);
    input.insert(1).unwrap();
    input.flush().unwrap();
    input.insert(2).unwrap();
    assert_eq!(input.try_flush(), Err(Error::Full));
    assert!(matches!(input.flush_timeout(Duration::from_millis(10)), Err(Error::Deadline { .. })));
    let waiting = std::thread::spawn(move || {
        input.flush().unwrap();
        input.advance_to(1).unwrap();
    });
    std::thread::sleep(Duration::from_millis(20));
    assert!(!waiting.is_finished(), "there was no room");
    drop(blocked);
    assert_eq!(sub.wait_past(&0, SOON).unwrap(), [(1, 0, 1), (2, 0, 1)]);
    waiting.join().unwrap();
}
