use super::*;
use crate::client::{Config, Engine};
use crate::order::{Lattice, Pair};
use quickcheck::quickcheck;
use std::sync::mpsc::channel;

fn state<T: Timestamp>(workers: usize) -> State<T, u64, i64> {
    State::new(workers, CAPACITY, false)
}

quickcheck! {
    /// Workers are told of a session that moves or ends just when the input's frontier moves.
    fn moves_are_told_when_the_frontier_moves(ops: Vec<(u8, u8, u8)>, first: (u8, u8)) -> bool {
        let mut state = state::<Pair<u64, u64>>(1);
        state.first = Some(Pair::new(u64::from(first.0 % 3), u64::from(first.1 % 3)));
        let mut live = Vec::new();
        for (op, a, b) in ops {
            if op % 4 == 0 || live.is_empty() {
                live.push(state.open(Session { time: None, follows: None }));
                continue;
            }
            let at = usize::from(op / 4) % live.len();
            let before = state.frontier();
            let to = (op % 4 > 1).then(|| state.time(live[at]).join(&Pair::new(u64::from(a % 6), u64::from(b % 6))));
            if state.set(live[at], to) != (state.frontier() != before) {
                return false;
            }
            if to.is_none() {
                live.remove(at);
            }
        }
        true
    }
}

#[test]
fn chunks_wait_for_the_worker_of_their_thread() {
    let mut state = state::<u64>(3);
    let chunk = || {
        let mut chunk = Updates::default();
        chunk.push(7, 0, 1);
        chunk
    };
    let mut queue = |own| state.queue(chunk(), own);
    assert!((0..NEAR).all(|_| queue(Some(1)) == 1));
    let others: Vec<_> = (0..6).map(|_| queue(Some(1))).collect();
    assert!((0..3).all(|worker| others.iter().filter(|to| **to == worker).count() == 2), "{others:?}: in turn");
    let others: Vec<_> = (0..6).map(|_| queue(None)).collect();
    assert!((0..3).all(|worker| others.iter().filter(|to| **to == worker).count() == 2), "{others:?}: in turn");
}

/// On the threads of two hosted workers: sessions that move by small steps live with the worker of their thread, and so do
/// their clones; what they put in, and their ends, are heard of all the same.
#[test]
fn sessions_live_with_the_worker_of_their_thread() {
    let (engine, seeds) = Engine::start_hosted(Config::default().workers(2).pinned(false)).expect("it can be run");
    let mut seeds = seeds.into_iter();
    let (first, second) = (seeds.next().expect("two workers"), seeds.next().expect("two workers"));
    let (sessions, given) = channel::<Input<u64, u64>>();
    let there = std::thread::spawn(move || {
        let worker = second.start();
        while !worker.is_stopped() {
            worker.step();
            let Ok(mut session) = given.try_recv() else { continue };
            session.insert(1).expect("the query goes on");
            session.advance_to(1).expect("time goes on");
            assert_eq!(session.lot, 1);
            let mut clone = session.clone();
            assert_eq!((clone.lot, clone.time()), (1, 1));
            session.advance_to(9).expect("time goes on");
            clone.insert(2).expect("the query goes on");
            clone.advance_to(2).expect("time goes on");
        }
    });
    let worker = first.start();
    let installed = engine.install("sum", |scope| {
        let (input, numbers) = scope.input::<u64>();
        let all = numbers.consolidate();
        (input, all.probe(), all.subscribe())
    });
    let (query, (mut session, probe, mut all)) = installed.expect("it can be built");
    let mut large = session.clone();
    sessions.send(session.clone()).expect("the thread goes on");
    session.insert(3).expect("the query goes on");
    session.advance_to(1).expect("time goes on");
    assert_eq!(session.lot, 0);
    while !probe.is_past(&0) {
        worker.step();
        if large.lot == 2 && large.time() == 0 {
            // Not by small steps: it stays everyone's.
            (0..(NEAR as u64 + 1) * CHUNK as u64).for_each(|_| large.insert(4).expect("the query goes on"));
            large.advance_to(1).expect("time goes on");
            assert_eq!(large.lot, 2);
        }
    }
    drop(large);
    drop(session);
    while !all.complete().is_empty() {
        worker.step();
    }
    let mut sums = std::collections::BTreeMap::new();
    for (number, _, diff) in all.poll().expect("it has not ended").into_vec() {
        *sums.entry(number).or_insert(0) += diff;
    }
    let many = (NEAR as i64 + 1) * CHUNK as i64;
    assert_eq!(sums.into_iter().collect::<Vec<_>>(), [(1, 1), (2, 1), (3, 1), (4, many)]);
    drop((query, engine));
    there.join().expect("the thread ends well");
}
