//! Operators of a user's own that ask for times, or ports, that they don't hold.

use super::common::*;
use kpg::dataflow::{Capability, CapabilitySet};
use kpg::prelude::*;
use kpg::runtime::Failure;
use std::cell::RefCell;
use std::sync::{Arc, Mutex};

/// `downgrade` and `delayed` go forward only; a refused one changes nothing, and the query goes on.
#[test]
fn a_capability_does_not_go_back() {
    let engine = engine();
    let refused = Arc::new(Mutex::new(Vec::new()));
    let (_, (mut input, probe, mut sub)) = engine
        .install("forward", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let refused = refused.clone();
            let moved = numbers.unary::<u32, i64>("forward", move |input, output, _| {
                while let Some((token, chunk)) = input.next() {
                    let mut set = CapabilitySet::new();
                    output.retain(&token, &mut set);
                    let mut capability: Capability<u64> = set.delayed(&7).unwrap();
                    let back = [capability.downgrade(&6).is_err(), capability.delayed(&0).is_err()];
                    let set_back = [set.downgrade(&Antichain::from_elem(4)).is_err(), set.delayed(&4).is_err()];
                    refused.lock().unwrap().extend(back.into_iter().chain(set_back));
                    assert_eq!((*capability.time(), set.frontier()), (7, Antichain::from_elem(5)));
                    for (datum, _, diff) in chunk.iter() {
                        output.session(&capability).give(datum, 7, diff);
                    }
                }
                false
            });
            (input, numbers.probe(), moved.subscribe())
        })
        .unwrap();
    input.advance_to(5).unwrap();
    // A message's times are those that its sender holds: wait until that is 5.
    probe.wait_past(&4, SOON).unwrap();
    input.insert(1).unwrap();
    input.advance_to(8).unwrap();
    assert_eq!(sub.wait_past(&7, SOON).unwrap(), [(1, 7, 1)]);
    assert_eq!(*refused.lock().unwrap(), [true; 4]);
}

fn not_held(error: Error, name: &str) {
    match error {
        Error::Poisoned { operator, failure: Failure::NotHeld(text), .. } => {
            assert_eq!(operator, name);
            assert!(!text.is_empty());
        }
        other => panic!("not the error: {other:?}"),
    }
}

/// An update at a time that is not held would be lost to whoever was told that time is complete.
#[test]
fn sending_at_a_time_not_held_poisons() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    witness.check();
    let (query, (mut input, probe, mut sub)) = engine
        .install("early", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let early = numbers.unary::<u32, i64>("early", |input, output, _| {
                while let Some((token, chunk)) = input.next() {
                    for (datum, time, diff) in chunk.iter() {
                        output.session(&token).give(datum, time - 1, diff);
                    }
                }
                false
            });
            (input, numbers.probe(), early.subscribe())
        })
        .unwrap();
    input.advance_to(3).unwrap();
    probe.wait_past(&2, SOON).unwrap();
    input.insert(1).unwrap();
    input.advance_to(4).unwrap();
    not_held(sub.wait_past(&3, SOON).unwrap_err(), "early");
    not_held(ending(&query), "early");
    witness.check();
}

/// A capability is for one output port; at another one, nobody has counted it.
#[test]
fn a_capability_is_for_one_port() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (_, (mut input, mut sub)) = engine
        .install("ports", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let mut builder = scope.operator("two outputs");
            let mut port = builder.input(&numbers);
            let (first, _) = builder.output::<u32, i64>();
            let (mut second, stream) = builder.output::<u32, i64>();
            builder.build(move |_| {
                while let Some((token, _)) = port.next() {
                    let mut set = CapabilitySet::new();
                    first.retain(&token, &mut set);
                    second.session(&set).give(1, 0, 1);
                }
                false
            });
            (input, stream.subscribe())
        })
        .unwrap();
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    not_held(sub.wait_past(&0, SOON).unwrap_err(), "two outputs");
    witness.check();
}

/// A message of an input that does not reach an output gives no right there.
#[test]
fn a_token_is_for_connected_ports() {
    let engine = engine();
    let (_, (mut input, mut sub)) = engine
        .install("ports", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let mut builder = scope.operator("unconnected");
            let mut first = builder.input(&numbers);
            let (mut output, stream) = builder.output::<u32, i64>();
            let mut second = builder.input(&numbers);
            builder.build(move |_| {
                while first.next().is_some() {}
                while let Some((token, _)) = second.next() {
                    output.session(&token).give(1, 0, 1);
                }
                false
            });
            (input, stream.subscribe())
        })
        .unwrap();
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    not_held(sub.wait_past(&0, SOON).unwrap_err(), "unconnected");
}

thread_local! {
    static KEPT: RefCell<Vec<CapabilitySet<u64>>> = const { RefCell::new(Vec::new()) };
}

/// A dataflow's last capability, dropped from inside another one: those downstream hear of it (CASES 17). Until then
/// its holder holds the time, though its input has closed (CASES 14).
#[test]
fn a_capability_may_be_dropped_from_elsewhere() {
    let engine = engine();
    let (_, (mut input, probe)) = engine
        .install("keeper", |scope| {
            let (input, numbers) = scope.input::<u32>();
            let kept = numbers.unary::<u32, i64>("keep", |input, output, _| {
                while let Some((token, _)) = input.next() {
                    let mut set = CapabilitySet::new();
                    output.retain(&token, &mut set);
                    KEPT.with(|kept| kept.borrow_mut().push(set));
                }
                false
            });
            (input, kept.probe())
        })
        .unwrap();
    let (_, mut other) = engine
        .install("dropper", |scope| {
            let (input, numbers) = scope.input::<u32>();
            numbers.inspect(|_, _, _| KEPT.with(|kept| kept.borrow_mut().clear())).probe();
            input
        })
        .unwrap();
    input.insert(1).unwrap();
    drop(input);
    assert!(probe.wait_past(&0, std::time::Duration::from_millis(50)).is_err());
    // One to each worker.
    for _ in 0..2 {
        other.insert(1).unwrap();
        other.flush().unwrap();
    }
    probe.wait_past(&0, SOON).unwrap();
    eventually("the keeper's output is closed", || probe.frontier().is_empty());
}
