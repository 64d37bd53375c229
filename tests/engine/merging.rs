//! What merging costs, and how far it is, as an engine's metrics show it; and what a policy does to that.
#![forbid(unsafe_code)]

use kpg::client::MergeState;
use kpg::prelude::*;
use std::time::Duration;

const ROUNDS: u64 = 200;
const EACH: u64 = 50;

/// Of a run: the state after its last round, and once the workers have come to rest.
struct Ran {
    busy: MergeState,
    rested: MergeState,
    /// The sum, over all rounds, of the batches that a reader met then.
    met: u64,
}

/// Puts in rounds of fresh keys on two workers; each is there in the end.
fn run(policy: MergePolicy) -> Ran {
    let config = Config::default().workers(2).merge_policy(policy);
    let (engine, workers) = Engine::start_simulated(config, 3).unwrap();
    let (query, (mut input, probe, published)) = engine
        .install("index", |scope| {
            let (input, numbers) = scope.input::<u64>();
            let arranged = numbers.arrange_by_self();
            (input, numbers.probe(), arranged.publish())
        })
        .unwrap();
    let state = || engine.metrics().queries[0].arrangements[0].merging;
    assert_eq!(state(), MergeState::default());
    let mut met = 0;
    for round in 0..ROUNDS {
        (0..EACH).for_each(|n| input.insert(round * EACH + n).unwrap());
        input.advance_to(round + 1).unwrap();
        probe.wait_past(&round, Duration::from_secs(5)).unwrap();
        published.wait_snapshot(&round, Duration::from_secs(5)).unwrap();
        met += state().batches;
    }
    let busy = state();
    for _ in 0..10_000 {
        workers.iter().for_each(|worker| {
            worker.step();
        });
    }
    let rested = state();
    assert_eq!(engine.metrics().queries[0].arrangements.len(), 1);
    assert_eq!(engine.metrics().queries[0].arrangements[0].name, "arrange by self");
    let found = published.snapshot_at(&(ROUNDS - 1)).unwrap().iter().filter(|(_, (), count)| *count == 1).count();
    assert_eq!((busy.inserted, found as u64), (ROUNDS * EACH, ROUNDS * EACH));
    query.retire().unwrap();
    assert!(engine.metrics().queries.is_empty());
    Ran { busy, rested, met }
}

#[test]
fn metrics_show_what_merging_costs() {
    let lazy = MergePolicy::lazy();
    let Ran { busy, rested, .. } = run(lazy);
    assert!((ROUNDS..=2 * ROUNDS).contains(&busy.batches_inserted), "{busy:?}");
    assert!(busy.merges > 0 && busy.written > 0 && busy.write_amplification() > 0.0, "{busy:?}");
    assert_eq!((rested.debt, rested.open_merges), (0, 0), "idle workers merge on");
    assert!(rested.batches <= busy.batches && rested.merges >= busy.merges);

    // Told not to, they do not: nothing but new batches pays.
    let idle = run(MergePolicy { idle_fuel: 0, ..lazy });
    assert_eq!(idle.rested, idle.busy);

    // Eager ones have fewer batches, and write more; of more that are merged at once, it is the other way.
    let eager = run(MergePolicy { idle_fuel: 0, ..MergePolicy::eager() });
    assert!(eager.met < idle.met && eager.busy.written > idle.busy.written, "{:?} {:?}", eager.busy, idle.busy);
    assert_eq!(eager.busy.debt, 0);
    let wide = run(MergePolicy { idle_fuel: 0, fan_out: 8, ..MergePolicy::eager() });
    assert!(wide.met > eager.met && 2 * wide.busy.written < eager.busy.written, "{:?} {:?}", wide.busy, eager.busy);
}

/// Past the bound on debt an arrangement merges before it seals, also where idle workers do not.
#[test]
fn what_is_overdue_is_merged_without_idle_workers() {
    let policy = MergePolicy { idle_fuel: 0, debt_bound: 100, ..MergePolicy::lazy() };
    let bound = run(policy).busy;
    let unbound = run(MergePolicy { debt_bound: 1 << 26, ..policy }).busy;
    assert!(bound.debt <= unbound.debt && bound.merges >= unbound.merges, "{bound:?} {unbound:?}");
}
