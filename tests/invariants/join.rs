//! Invariants 5, 6 and 11: join, over times of two coordinates and over one.

use crate::support::*;
use kpg::prelude::*;

fn life(seed: u64, workers: usize, policy: MergePolicy) {
    let random = &mut Random::new(seed);
    let sim = simulated(workers, seed, policy);
    let built = sim.engine.install_at::<Time2, _, _>("join", |scope| {
        let (left, a) = scope.input::<(u64, u64)>();
        let (right, b) = scope.input::<(u64, u64)>();
        let (a, b) = (a.arrange_by_key(), b.arrange_by_key());
        let both = a.join_core(&b, |key, v1, v2| Some((key, (v1, v2))));
        let own = a.join_core(&a, |key, v1, v2| Some((key, (v1, v2))));
        (left, right, both.subscribe(), own.subscribe())
    });
    let (_query, (left, right, both, own)) = built.expect("installed");
    let (mut left, mut right) = (Feed::new(left), Feed::new(right));
    let (mut both, mut own) = (Heard::new(both), Heard::new(own));
    for _ in 0..25 {
        for _ in 0..random.below(4) {
            if random.coin() { left.push(random, 2, 3) } else { right.push(random, 2, 3) }
        }
        // Now both in one step, now one by jumps.
        if random.coin() {
            left.advance(random);
        }
        if random.coin() {
            right.advance(random);
        }
        if random.coin() {
            sim.some_steps(random, 5);
        }
        if random.below(6) == 0 {
            sim.settle();
        }
        both.check(square(), |at| joined(&sums(&left.model, at), &sums(&right.model, at)));
        own.check(square(), |at| joined(&sums(&left.model, at), &sums(&left.model, at)));
    }
    let (left, right) = (left.close(), right.close());
    sim.settle();
    assert!(both.is_closed() && own.is_closed(), "seed {seed}");
    both.check(square(), |at| joined(&sums(&left, at), &sums(&right, at)));
    own.check(square(), |at| joined(&sums(&left, at), &sums(&left, at)));
}

#[test]
fn inv_05_join_once() {
    for seed in 0..60 {
        let policy = if seed % 2 == 0 { MergePolicy::lazy() } else { MergePolicy::eager() };
        life(seed, 1 + seed as usize % 3, policy);
    }
}

/// The same with imports that come in mid-stream: an arrangement's history meets what arrives, once.
#[test]
fn inv_05_join_once_with_imports_in_mid_stream() {
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let policy = if seed % 2 == 0 { MergePolicy::lazy() } else { MergePolicy::eager() };
        let sim = simulated(1 + seed as usize % 2, seed, policy);
        let source = |scope: &Scope<'_, u64>| {
            let (input, data) = scope.input::<(u64, u64)>();
            (input, data.arrange_by_key().publish())
        };
        let (_left, (mut left, shared_left)) = sim.engine.install("left", source).unwrap();
        let (_right, (mut right, shared_right)) = sim.engine.install("right", source).unwrap();
        let (mut model_left, mut model_right) = (Vec::new(), Vec::new());
        let mut heard = None;
        let install_at = random.below(12);
        for time in 0..16 {
            for _ in 0..random.below(5) {
                let (datum, diff) = ((random.below(2), random.below(3)), random.below(3) as i64 - 1);
                left.update(datum, diff).unwrap();
                model_left.push((datum, time, diff));
                let (datum, diff) =
                    if random.coin() { (datum, -diff) } else { ((random.below(2), random.below(3)), 1) };
                right.update(datum, diff).unwrap();
                model_right.push((datum, time, diff));
            }
            left.advance_to(time + 1).unwrap();
            sim.some_steps(random, 6);
            right.advance_to(time + 1).unwrap();
            sim.some_steps(random, 6);
            if time == install_at {
                let (_query, (clock, output)) = sim
                    .engine
                    .install("join", |scope| {
                        let (a, b) = (shared_left.import(scope), shared_right.import(scope));
                        let (clock, _) = scope.input::<u64>();
                        (clock, a.join_core(&b, |key, v1, v2| Some((key, (v1, v2)))).subscribe())
                    })
                    .unwrap();
                heard = Some((clock.time(), Heard::new(output)));
            }
            if let Some((first, heard)) = &mut heard {
                heard.check(*first..20, |at| joined(&sums(&model_left, at), &sums(&model_right, at)));
            }
        }
        drop((left, right));
        sim.settle();
        let (first, mut heard) = heard.unwrap();
        assert!(heard.is_closed());
        heard.check(first..20, |at| joined(&sums(&model_left, at), &sums(&model_right, at)));
    }
}

/// One input stalls for long: the other's history is kept for it, the result is right, then the memory is let go. Closed,
/// it holds nothing of the other.
#[test]
fn inv_06_holds_of_a_join() {
    let engine = threads(2);
    let (query, (mut fast, mut slow, mut output)) = engine
        .install("join", |scope| {
            let (fast, a) = scope.input::<(u64, u64)>();
            let (slow, b) = scope.input::<(u64, u64)>();
            (fast, slow, a.join(&b).map(|(_, (_, w))| w).consolidate().subscribe())
        })
        .unwrap();
    let epochs = 20_000;
    let put = |fast: &mut Input<u64, (u64, u64)>, from: u64, to: u64| {
        for time in from..to {
            fast.insert((time % 8, time)).unwrap();
            if time > 0 {
                fast.remove(((time - 1) % 8, time - 1)).unwrap();
            }
            fast.advance_to(time + 1).unwrap();
        }
    };
    slow.insert((3, 77)).unwrap();
    put(&mut fast, 0, epochs);
    // Key 3 has a val at each eighth time.
    slow.advance_to(epochs / 2).unwrap();
    let got = output.wait_past(&(epochs / 2 - 1), LONG).unwrap().into_vec();
    let changes: i64 = got.iter().map(|(_, _, diff)| diff.abs()).sum();
    assert!(got.iter().all(|(w, time, _)| *w == 77 && [3, 4].contains(&(time % 8))));
    assert_eq!(changes, 2 * epochs as i64 / 2 / 8);
    let stalled = query.bytes().private;
    slow.advance_to(epochs).unwrap();
    output.wait_past(&(epochs - 1), LONG).unwrap();
    // From here on nothing can be joined with what comes: none of it is kept, though nothing is removed again.
    drop(slow);
    let more = 10 * epochs;
    let mut put_more = |from: u64| {
        for time in from..from + more {
            fast.insert((time % 8, time)).unwrap();
            if time % 10 == 9 {
                fast.advance_to(time + 1).unwrap();
            }
            // Not far ahead, so that buffers for what is on its way stay small.
            if time % 2000 == 1999 {
                output.wait_past(&time, LONG).unwrap();
            }
        }
        // At rest: what is under way counts as well.
        let bytes = (0..50).map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(2));
            query.bytes().private
        });
        bytes.min().expect("several looks")
    };
    let once = put_more(epochs);
    let twice = put_more(epochs + more);
    // An update takes more than 6 bytes in a trace: one of what came would show.
    let kept = 4 * more as usize;
    assert!(twice < once + kept && once < stalled + kept, "{stalled} bytes while stalled, then {once}, then {twice}");
}

/// Inputs advance unevenly, by jumps, workers are stepped one by one: a frontier falls inside another's batch.
#[test]
fn inv_11_frontiers_inside_batches() {
    for seed in 0..80 {
        let random = &mut Random::new(seed);
        let sim = simulated(1 + seed as usize % 2, seed, MergePolicy::lazy());
        let (_query, (left, right, output)) = sim
            .engine
            .install("uneven", |scope| {
                let (left, a) = scope.input::<(u64, u64)>();
                let (right, b) = scope.input::<(u64, u64)>();
                // The reduce's input is the join of both, arranged again: its frontier is the lesser one.
                let all = a.join(&b).map(|(key, (v, w))| (key, v * 10 + w));
                let least =
                    all.arrange_by_key().reduce(|_, vals, output: &mut Vec<(u64, i64)>| output.push((vals[0].0, 1)));
                (left, right, least.join_core(&a.arrange_by_key(), |key, v, w| Some((key, (v, w)))).subscribe())
            })
            .unwrap();
        let mut heard = Heard::new(output);
        let (mut inputs, mut models, mut now) = ([left, right], [vec![], vec![]], [0u64, 0]);
        for _ in 0..25 {
            let side = random.below(2) as usize;
            for _ in 0..random.below(4) {
                let time = now[side] + random.below(9);
                let (datum, diff) = ((random.below(2), random.below(3)), random.below(3) as i64 - 1);
                inputs[side].update_at(datum, time, diff).unwrap();
                models[side].push((datum, time, diff));
            }
            now[side] += random.below(8);
            inputs[side].advance_to(now[side]).unwrap();
            sim.some_steps(random, 4);
            let truth = |at: &u64| truth_11(&sums(&models[0], at), &sums(&models[1], at));
            heard.check(0..now[side] + 1, truth);
        }
        drop(inputs);
        sim.settle();
        assert!(heard.is_closed());
        heard.check(0..250, |at| truth_11(&sums(&models[0], at), &sums(&models[1], at)));
    }
}

fn truth_11(a: &Sums<(u64, u64)>, b: &Sums<(u64, u64)>) -> Sums<(u64, (u64, u64))> {
    let mut all = Sums::new();
    for ((key, (v, w)), diff) in joined(a, b) {
        *all.entry((key, v * 10 + w)).or_insert(0) += diff;
    }
    all.retain(|_, diff| *diff != 0);
    let mut least = Sums::new();
    for (key, val) in all.keys().rev() {
        least.retain(|(other, _), _| other != key);
        least.insert((*key, *val), 1);
    }
    joined(&least, a)
}
