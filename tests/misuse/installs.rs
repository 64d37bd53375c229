//! Installs that fail, each in its own way: typed, nothing left behind, and the next one works (Invariant 30).

use super::common::*;
use kpg::operators::Variable;
use kpg::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Does a failing install over an import; then checks that it left nothing: no bytes, no hold that stops merging, no
/// entry, and that the next install works.
fn fails(build: impl for<'s> Fn(&Scope<'s, u64>, &Collection<'s, u64, (u64, u64)>) + Send + Sync) -> Error {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    witness.check();
    let before = live(&engine);
    let mut error = None;
    for _ in 0..3 {
        let failed = engine.install("failing", |scope| {
            let imported = witness.published.import(scope);
            let (input, _) = scope.input::<u64>();
            let published = imported.as_collection(|k, v| (k, v)).arrange_by_key().publish();
            let copy = imported.as_collection(|k, v| (k, v));
            build(scope, &copy);
            (input, published, copy.subscribe())
        });
        error = failed.err();
    }
    eventually("what was built is freed", || live(&engine) <= before);
    assert_eq!(engine.metrics().queries.iter().map(|q| q.name.as_str()).collect::<Vec<_>>(), ["witness"]);
    witness.check();
    let (query, mut copy) = engine
        .install("next", |scope| witness.published.import(scope).as_collection(|k, v| (k, v)).subscribe())
        .unwrap();
    assert_eq!(copy.wait_past(&1, SOON).unwrap().len(), 2);
    query.retire().unwrap();
    witness.check();
    error.expect("the install fails")
}

/// Workers that build different graphs could never agree on what is complete.
#[test]
fn different_graphs() {
    let error = fails(|scope, numbers| {
        if scope.index() == 1 {
            numbers.map(|pair| pair).inspect(|_, _, _| ());
        }
    });
    assert_eq!(error, Error::Differs { query: "failing".into() });
}

/// More nodes, ports and edges on one worker, not just another stage.
#[test]
fn different_nodes() {
    let error = fails(|scope, numbers| {
        if scope.index() == 0 {
            numbers.distinct().probe();
        }
    });
    assert_eq!(error, Error::Differs { query: "failing".into() });
}

/// The n-th handle is one handle on all workers: it can't be of two types.
#[test]
fn different_handles() {
    let error = fails(|scope, numbers| {
        if scope.index() == 0 {
            numbers.probe();
        } else {
            numbers.subscribe();
        }
    });
    assert_eq!(error, Error::Differs { query: "failing".into() });
}

/// A panic on one worker: the closure's borrow ends, the text arrives.
#[test]
fn a_panic_on_one_worker() {
    for worker in 0..2 {
        let error = fails(move |scope, _| assert!(scope.index() != worker, "not here"));
        assert_eq!(error, Error::InstallPanicked { query: "failing".into(), message: "panicked: not here".into() });
    }
}

/// What leaves a loop enters it again without an outer feedback: refused by name (CASES 34).
#[test]
fn a_loop_that_must_not_be() {
    let error = fails(|scope, numbers| {
        let inner = scope.nest("inner loop");
        let left = numbers.enter(&inner).distinct().leave();
        left.enter(&inner).distinct().leave().probe();
    });
    match error {
        Error::Graph { query, reason } => {
            assert_eq!(query, "failing");
            assert!(reason.contains("inner loop"), "{reason}");
        }
        other => panic!("not the error: {other:?}"),
    }
}

/// Loops inside loops until no time can hold them.
#[test]
fn variables_that_are_never_set_are_empty() {
    let engine = engine();
    let (_, (mut input, mut sub)) = engine
        .install("unset", |scope| {
            let (input, numbers) = scope.input::<u64>();
            let inner = scope.nest("loop");
            let variable: Variable<'_, u64, u32, u64, i64> = Variable::new_from(&numbers.enter(&inner));
            let out = variable.collection().leave().subscribe();
            (input, out)
        })
        .unwrap();
    input.insert(1).unwrap();
    input.advance_to(1).unwrap();
    assert_eq!(sub.wait_past(&0, SOON).unwrap(), [(1, 0, 1)]);
}

/// Nothing can run without workers; the error says what to write.
#[test]
fn no_workers() {
    match Engine::start(Config::default().workers(0)) {
        Err(Error::Config(text)) => assert!(text.contains("workers(1)"), "{text}"),
        other => panic!("not the error: {other:?}"),
    }
    assert!(matches!(Engine::start_hosted(Config::default().workers(0)), Err(Error::Config(_))));
    assert!(matches!(Engine::start_simulated(Config::default().workers(0), 1), Err(Error::Config(_))));
}

/// An install from inside an install, or any wait in one, would wait for itself.
#[test]
fn waiting_inside_an_install() {
    let engine = engine();
    let mut witness = Witness::install(&engine);
    let (_, errors) = engine
        .install("outer", |_| {
            let install = engine.install("inner", |_| ()).map(drop);
            let wait = witness.published.wait_snapshot(&9, SOON).map(drop);
            let metrics = engine.metrics();
            assert!(!metrics.queries.is_empty());
            [install, wait]
        })
        .unwrap();
    for error in errors {
        assert!(matches!(error, Err(Error::WouldBlock { .. })), "{error:?}");
    }
    witness.check();
}

/// A hosted worker that nobody steps: the install ends at its deadline; the worker then skips it, closure and all.
#[test]
fn a_worker_that_is_not_stepped() {
    quiet();
    let config = config().install_timeout(Duration::from_millis(100));
    let (engine, mut seeds) = Engine::start_hosted(config).unwrap();
    let (steps, ask) = std::sync::mpsc::channel::<()>();
    let lazy_seed = seeds.pop().unwrap();
    let lazy = std::thread::spawn(move || {
        let worker = lazy_seed.start();
        ask.recv_timeout(SOON).unwrap();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(Duration::from_millis(1));
            }
        }
    });
    let seed = seeds.pop().unwrap();
    let eager = std::thread::spawn(move || {
        let worker = seed.start();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(Duration::from_millis(1));
            }
        }
    });
    let ran = AtomicUsize::new(0);
    let start = Instant::now();
    let late = {
        // Borrowed by the closure: gone when install returns.
        let borrowed = [1_u64, 2, 3];
        engine.install("late", |scope| {
            ran.fetch_add(borrowed.len(), Ordering::SeqCst);
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.subscribe())
        })
    };
    assert!(matches!(late, Err(Error::Deadline { .. })), "{late:?}");
    assert!(start.elapsed() < SOON / 2);
    assert_eq!(ran.load(Ordering::SeqCst), 3, "only the worker that is stepped ran it");
    steps.send(()).unwrap();
    let deadline = Instant::now() + SOON;
    let mut witness = loop {
        // The lazy one may need a moment to come.
        match engine.install("probe", |_| ()) {
            Ok(_) => break Witness::install(&engine),
            Err(error) => assert!(matches!(error, Error::Deadline { .. }) && Instant::now() < deadline, "{error:?}"),
        }
    };
    witness.check();
    assert_eq!(ran.load(Ordering::SeqCst), 3, "the closure was touched after install returned");
    engine.shutdown(SOON).unwrap();
    lazy.join().unwrap();
    eager.join().unwrap();
}

/// Workers that nobody ever starts: each install ends at its deadline, a second one meanwhile too.
#[test]
fn workers_that_are_never_started() {
    let (engine, seeds) = Engine::start_hosted(config().install_timeout(Duration::from_millis(50))).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let result = engine.install("never", |_| ()).map(drop);
                assert!(matches!(result, Err(Error::Deadline { .. })), "{result:?}");
            });
        }
    });
    drop(seeds);
    assert!(engine.metrics().queries.is_empty());
}

/// One worker builds, and gives up its capability, long before the other has built: nothing is called complete before
/// both have spoken (Invariant 26).
#[test]
fn a_slow_worker_is_waited_for() {
    let engine = engine();
    for slow in [0, 1, 0, 1] {
        let (query, mut sub) = engine
            .install("births", |scope| {
                let index = scope.index();
                if index == slow {
                    std::thread::sleep(Duration::from_millis(20));
                }
                let mut builder = scope.operator("source");
                let (output, numbers) = builder.source::<u64, i64>();
                builder.build_source(output, move |mut output, capability| {
                    let mut capability = Some(capability);
                    move |_| {
                        if let Some(capability) = capability.take() {
                            output.session(&capability).give(index as u64, 0, 1);
                        }
                        false
                    }
                });
                numbers.distinct().subscribe()
            })
            .unwrap();
        assert_eq!(sub.wait_past(&0, SOON).unwrap(), [(0, 0, 1), (1, 0, 1)]);
        query.retire().unwrap();
    }
}
