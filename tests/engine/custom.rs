//! Operators of one's own: ports, capabilities, notifications, and trace handles whose cursors they navigate.
#![forbid(unsafe_code)]

use kpg::dataflow::{CapabilitySet, Interest};
use kpg::operators::{ArrangedByKey, Notificator};
use kpg::order::PartialOrder;
use kpg::prelude::*;
use kpg::trace::{Batch, Cursor, CursorList};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

fn engine(workers: usize) -> Engine {
    Engine::start(Config::default().workers(workers).pinned(false)).unwrap()
}

/// For each key: the vals that `index` has under it at the key's time, found once that is complete. The keys wait with
/// their capabilities, and the trace is not folded past what waits.
fn look_up<'s>(
    keys: &Collection<'s, u64, u64>,
    index: &ArrangedByKey<'s, u64, u64, u64, i64>,
) -> Collection<'s, u64, (u64, u64)> {
    let mut builder = keys.scope().operator("look up").interest(Interest::Always);
    let mut keys = builder.input_exchanged(keys, <u64 as Columnar>::hash);
    let mut batches = builder.input_arranged(index);
    let (mut output, found) = builder.output();
    let mut trace = index.trace().clone();
    let mut waiting = Vec::new();
    builder.build(move |_fuel| {
        while let Some((token, chunk)) = keys.next() {
            let mut held = CapabilitySet::new();
            output.retain(&token, &mut held);
            waiting.push((held, chunk));
        }
        while let Some((_, delivery)) = batches.next() {
            trace.set_cut(delivery.batches.last().expect("a delivery brings batches").upper());
        }
        let complete = batches.frontier();
        waiting.retain(|(held, chunk)| {
            if chunk.iter().any(|(_, time, _)| complete.less_equal(&time)) {
                return true;
            }
            let (list, _) = trace.batches();
            let mut session = output.session(held);
            let mut keys: Vec<_> = chunk.iter().collect();
            keys.sort();
            for (key, time, diff) in keys {
                let mut cursor = CursorList::new(list.iter().map(Batch::cursor).collect());
                cursor.seek_key(key);
                while let (true, Some(val)) = (cursor.key() == Some(key), cursor.val()) {
                    let mut count = 0;
                    cursor.for_each_time(|t, r| count += if t.less_equal(&time) { r } else { 0 });
                    if count != 0 {
                        session.give((key, val), time, diff * count);
                    }
                    cursor.step_val();
                }
            }
            false
        });
        let mut since = keys.frontier();
        waiting.iter().for_each(|(held, _)| since.meet_with(&held.frontier()));
        trace.set_since(&since);
        false
    });
    found
}

/// Answers are those of the key's own time, however the index changes meanwhile.
#[test]
fn an_operator_navigates_a_trace() {
    for workers in 1..=3 {
        let engine = engine(workers);
        let (_, (mut pairs, mut keys, mut found)) = engine
            .install("look up", |scope| {
                let (pairs_in, pairs) = scope.input::<(u64, u64)>();
                let (keys_in, keys) = scope.input::<u64>();
                (pairs_in, keys_in, look_up(&keys, &pairs.arrange_by_key()).subscribe())
            })
            .unwrap();
        let mut expected = Vec::new();
        for round in 0..50u64 {
            for key in 0..10 {
                pairs.insert((key, round)).unwrap();
                if round > 0 {
                    pairs.remove((key, round - 1)).unwrap();
                }
            }
            keys.insert(round % 10).unwrap();
            expected.push(((round % 10, round), round, 1));
            // The keys run ahead of the index: they must wait for it.
            keys.advance_to(round + 1).unwrap();
            if round % 7 == 6 {
                pairs.advance_to(round + 1).unwrap();
            } else {
                pairs.flush().unwrap();
                pairs.advance_to(round + 1).unwrap();
            }
        }
        assert_eq!(found.wait_past(&49, SOON).unwrap(), expected, "at {workers} workers");
    }
}

/// Notifications come once each, in order, and those asked for from within one come after it.
#[test]
fn notifications_come_in_order() {
    let engine = engine(1);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let log = heard.clone();
    let (_, (mut input, mut sums)) = engine
        .install("sums", move |scope| {
            let (input, numbers) = scope.input::<u64>();
            let log = log.clone();
            let mut notificator = Notificator::default();
            let mut pending: BTreeMap<u64, i64> = BTreeMap::new();
            let sums = numbers.unary::<i64, i64>("sum", move |input, output, _| {
                while let Some((token, chunk)) = input.next() {
                    let mut held = CapabilitySet::new();
                    output.retain(&token, &mut held);
                    for (n, time, diff) in chunk.iter() {
                        *pending.entry(time).or_default() += n as i64 * diff;
                        notificator.notify_at(held.delayed(&time).unwrap());
                    }
                }
                while let Some(capability) = notificator.next(&input.frontier()) {
                    let time = *capability.time();
                    log.lock().unwrap().push(time);
                    if let Some(sum) = pending.remove(&time) {
                        output.session(&capability).give(sum, time, 1);
                        // Asked for from within, for a time that may be complete already.
                        if time % 2 == 0 {
                            notificator.notify_at(capability.delayed(&(time + 1)).unwrap());
                        }
                    }
                }
                false
            });
            (input, sums.subscribe())
        })
        .unwrap();
    for time in [4, 0, 8, 2] {
        input.update_at(time, time, 1).unwrap();
        input.update_at(1, time, 1).unwrap();
    }
    input.advance_to(20).unwrap();
    let changes = sums.wait_past(&19, SOON).unwrap();
    assert_eq!(changes, [(1, 0, 1), (3, 2, 1), (5, 4, 1), (9, 8, 1)]);
    assert_eq!(*heard.lock().unwrap(), [0, 1, 2, 3, 4, 5, 8, 9]);
    // Half of a time's updates are there, the other half may still come: nobody is told.
    input.update_at(30, 30, 1).unwrap();
    input.flush().unwrap();
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(heard.lock().unwrap().len(), 8);
    input.update_at(12, 30, 1).unwrap();
    input.advance_to(31).unwrap();
    assert_eq!(sums.wait_past(&30, SOON).unwrap(), [(42, 30, 1)]);
}

/// Two inputs: what comes on either is sent on as it comes, at the times it bears.
#[test]
fn a_binary_operator_sees_both() {
    let engine = engine(2);
    let (_, (mut a, mut b, mut both)) = engine
        .install("both", |scope| {
            let (a_in, a) = scope.input::<u64>();
            let (b_in, b) = scope.input::<String>();
            let both = a.binary::<_, _, (u64, String), i64>(&b, "both", |numbers, words, output, _| {
                while let Some((token, chunk)) = numbers.next() {
                    let mut session = output.session(&token);
                    chunk.iter().for_each(|(n, time, diff)| session.give((n, ""), time, diff));
                }
                while let Some((token, chunk)) = words.next() {
                    let mut session = output.session(&token);
                    chunk.iter().for_each(|(word, time, diff)| session.give((0, word), time, diff));
                }
                false
            });
            (a_in, b_in, both.subscribe())
        })
        .unwrap();
    a.insert(7).unwrap();
    b.insert("seven".to_string()).unwrap();
    a.advance_to(1).unwrap();
    b.advance_to(1).unwrap();
    let changes = both.wait_past(&0, SOON).unwrap();
    assert_eq!(changes, [((0, "seven".to_string()), 0, 1), ((7, String::new()), 0, 1)]);
}
