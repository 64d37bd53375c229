//! Every blocking call has a form with a deadline, which with no time at all is a try; nobody waits for who is gone.

use super::common::*;
use kpg::client::InstallOptions;
use kpg::prelude::*;
use kpg::runtime::topology;
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(10);

fn late<O: std::fmt::Debug>(result: Result<O, Error>) {
    assert!(matches!(result, Err(Error::Deadline { .. })), "{result:?}");
}

fn step(workers: &[kpg::client::HostedWorker]) {
    workers.iter().for_each(|worker| {
        worker.step();
    });
}

/// A queue that stays full: each call that puts in gives up at its deadline, and has not added what it says it has not.
#[test]
fn what_puts_in() {
    let engine = engine();
    let (_, (input, mut sub)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input_with::<u64, i64>(1);
            (input, numbers.subscribe())
        })
        .unwrap();
    let (_, published) =
        engine.install("other", |scope| scope.input::<(u64, u64)>().1.arrange_by_key().publish()).unwrap();
    let blocked = Blocked::worker_0(&engine);
    let mut sum = 0;
    let mut sessions: Vec<_> = (0..3).map(|_| input.clone()).collect();
    drop(input);
    for (index, timeout) in [Duration::ZERO, SHORT, Duration::ZERO].into_iter().enumerate() {
        let input = &mut sessions[index];
        let mut added = 0;
        let start = Instant::now();
        loop {
            match input.insert_timeout(1, timeout) {
                Ok(()) => added += 1,
                Err(error) => break late(Err::<(), _>(error)),
            }
            assert!(added < 10_000, "the queue has no bound");
        }
        late(input.update_timeout(1, 5, timeout));
        late(input.update_at_timeout(1, 3, 5, timeout));
        late(input.remove_timeout(1, timeout));
        late(input.flush_timeout(timeout));
        late(input.advance_to_timeout(1, timeout));
        late(input.follow_timeout(&published, timeout));
        assert_eq!(input.time(), 0);
        assert_eq!(input.try_flush(), Err(Error::Full));
        assert!(start.elapsed() < SOON / 2);
        sum += added;
    }
    drop(blocked);
    for mut input in sessions {
        // Further away than any clock says: without a deadline, then.
        input.insert_timeout(1, Duration::MAX).unwrap();
        input.advance_to_timeout(1, Duration::MAX).unwrap();
    }
    assert_eq!(sub.wait_past(&0, Duration::MAX).unwrap(), [(1, 0, sum + 3)]);
}

/// With no time at all a call looks and goes, also on a thread that owns workers and could step them, and inside a step.
#[test]
fn with_no_time_nobody_is_stepped() {
    let (engine, workers) = Engine::start_simulated(config(), 3).unwrap();
    let (query, (mut input, mut sub, probe, published)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.subscribe(), numbers.probe(), numbers.arrange_by_key().publish())
        })
        .unwrap();
    input.insert_timeout((1, 1), Duration::ZERO).unwrap();
    input.advance_to_timeout(1, Duration::ZERO).unwrap();
    for _ in 0..1000 {
        late(probe.wait_past(&0, Duration::ZERO));
        late(sub.wait_past(&0, Duration::ZERO));
        late(published.wait_snapshot(&0, Duration::ZERO).map(drop));
    }
    for _ in 0..1000 {
        step(&workers);
    }
    probe.wait_past(&0, Duration::ZERO).unwrap();
    assert_eq!(sub.wait_past(&0, Duration::ZERO).unwrap(), [((1, 1), 0, 1)]);
    assert_eq!(published.wait_snapshot(&0, Duration::ZERO).unwrap().iter().count(), 1);
    late(query.retire_timeout(Duration::ZERO));
    late(query.retire_timeout(Duration::ZERO));
    for _ in 0..100 {
        step(&workers);
    }
    query.retire_timeout(SHORT).unwrap();
}

/// A retirement that gives up waiting is one all the same.
#[test]
fn retiring() {
    let engine = engine();
    let (source, (mut input, published)) = engine
        .install("source", |scope| {
            let (input, numbers) = scope.input::<(u64, u64)>();
            (input, numbers.arrange_by_key().publish())
        })
        .unwrap();
    let (_importer, probe) =
        engine.install("importer", |scope| published.import(scope).as_collection(|k, v| (k, v)).probe()).unwrap();
    assert!(matches!(source.retire_timeout(SHORT), Err(Error::Imported { .. })));
    let blocked = Blocked::worker_0(&engine);
    late(source.retire_cascade_timeout(Duration::ZERO));
    late(source.retire_cascade_timeout(SHORT));
    assert_eq!(input.insert((1, 1)), Err(Error::Retired { query: "source".into() }));
    assert!(matches!(probe.wait_past(&0, SOON), Err(Error::SourceEnded { .. })));
    drop(blocked);
    source.retire_cascade_timeout(SOON).unwrap();
}

/// An install's own deadline goes before the configured one.
#[test]
fn installing() {
    let (engine, seeds) = Engine::start_hosted(config().install_timeout(SOON * 10)).unwrap();
    let start = Instant::now();
    for timeout in [SHORT, Duration::ZERO] {
        let options = InstallOptions::default().timeout(timeout);
        late(engine.install_with::<u64, _, _>("never", options, |scope| scope.input::<u64>().0.time()));
    }
    assert!(start.elapsed() < SOON / 2);
    assert!(engine.metrics().queries.is_empty());
    drop(seeds);
}

/// Of a worker that is gone nothing will come: a shutdown does not wait for it to come to rest.
#[test]
fn shutting_down_without_all_workers() {
    let (engine, mut seeds) = Engine::start_hosted(config()).unwrap();
    drop(seeds.pop());
    let start = Instant::now();
    let seed = seeds.pop().unwrap();
    let thread = std::thread::spawn(move || {
        let worker = seed.start();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(SOON);
            }
        }
    });
    assert!(!engine.shutdown(SOON).unwrap().drained);
    thread.join().unwrap();
    assert!(start.elapsed() < SOON / 4, "{:?}", start.elapsed());
}

/// Nor for one that goes meanwhile.
#[test]
fn shutting_down_while_a_worker_goes() {
    let (engine, seeds) = Engine::start_hosted(config()).unwrap();
    let start = Instant::now();
    let shutdown = std::thread::spawn(move || engine.shutdown(SOON));
    std::thread::sleep(SHORT * 5);
    assert!(!shutdown.is_finished(), "its workers have not even started");
    drop(seeds);
    assert!(!shutdown.join().unwrap().unwrap().drained);
    assert!(start.elapsed() < SOON / 4, "{:?}", start.elapsed());
}

/// A worker whose dataflow waits for the others to build it may sleep, and is woken when they have.
#[test]
fn a_worker_sleeps_until_the_others_have_built() {
    let (engine, mut seeds) = Engine::start_hosted(config()).unwrap();
    let (second, first) = (seeds.pop().unwrap(), seeds.pop().unwrap());
    let (go, told) = mpsc::channel::<()>();
    let slow = std::thread::spawn(move || {
        let worker = second.start();
        told.recv_timeout(SOON).unwrap();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(SOON);
            }
        }
    });
    let installing = std::thread::spawn(move || {
        let installed = engine.install("constant", |scope| scope.constant([1_u64, 2]).subscribe()).unwrap();
        (engine, installed)
    });
    // The first worker finds the command, and so has the dataflow before it is idle.
    std::thread::sleep(SHORT * 10);
    let (slept, heard) = mpsc::channel();
    let early = std::thread::spawn(move || {
        let worker = first.start();
        let mut idle = 0;
        while !worker.is_stopped() {
            if worker.step() {
                idle = 0;
                continue;
            }
            idle += 1;
            if idle == 20 {
                let _ = slept.send(());
            }
            worker.park(if idle < 20 { SHORT / 10 } else { SOON });
        }
    });
    heard.recv_timeout(SOON).expect("it has nothing to do");
    go.send(()).unwrap();
    let (engine, (_, mut sub)) = installing.join().unwrap();
    assert_eq!(sub.wait_past(&0, SOON).unwrap().len(), 2);
    engine.shutdown(SOON).unwrap();
    slow.join().unwrap();
    early.join().unwrap();
}

/// A core that is not there, or is named twice; more workers than cores; and one that is.
#[test]
fn cores() {
    let usable: Vec<_> = topology::cores().iter().map(|core| core.id).collect();
    let Some(&core) = usable.first() else { return };
    let start = |config: Config| Engine::start(config).map(|engine| engine.workers());
    assert_eq!(start(Config::default().cores([core])), Ok(1));
    assert_eq!(start(Config::default().cores([core]).workers(1).pinned(false)), Ok(1));
    assert_eq!(start(Config::default().cores(usable.clone()).workers(1)), Ok(1));
    assert_eq!(start(Config::default().cores([core, core])), Err(Error::CoreTwice { core }));
    assert_eq!(start(Config::default().cores([core, 9999])), Err(Error::NoSuchCore { core: 9999, usable }));
    assert!(matches!(start(Config::default().cores([core]).workers(2)), Err(Error::Config(_))));
    assert!(matches!(start(Config::default().cores([])), Err(Error::Config(_))));
    let (_engine, seeds) = Engine::start_hosted(Config::default().cores([core])).unwrap();
    assert_eq!(seeds[0].core(), Some(core));
}
