use super::*;
use crate::order::{Lattice, Pair};
use quickcheck::quickcheck;

fn state<T: Timestamp>(workers: usize) -> State<T, u64, i64> {
    State {
        sessions: Vec::new(),
        first: None,
        installing: false,
        queues: (0..workers).map(|_| Vec::new()).collect(),
        queued: 0,
        queued_bytes: 0,
        capacity: CAPACITY,
        turn: 0,
        followers: 0,
    }
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
