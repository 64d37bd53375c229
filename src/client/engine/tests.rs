//! What is seen of ends from inside the workers: nothing is left there, and nobody is told what is not true.
#![forbid(unsafe_code)]

use super::*;

/// A closure that panics once it has published and imported leaves nothing with the others on its worker.
#[test]
fn a_failed_install_withdraws_its_offers() {
    let (engine, workers) = Engine::start_simulated(Config::default().workers(1), 1).expect("an engine starts");
    let (_, published) = engine
        .install("source", |scope| scope.input::<(u32, u32)>().1.arrange_by_key().publish())
        .expect("a dataflow that can be built");
    let offers = || workers[0].worker.borrow().local().offers.borrow().len();
    assert_eq!(offers(), 1);
    for _ in 0..3 {
        let failed = engine.install("failing", |scope| {
            let imported = published.import(scope);
            let _again = imported.as_collection(|k, v| (k, v)).arrange_by_key().publish();
            std::panic::resume_unwind(Box::new("meant"));
        });
        assert!(matches!(failed, Err(Error::InstallPanicked { .. })));
    }
    assert_eq!(offers(), 1);
}

/// Nor does one that is retired, or poisoned.
#[test]
fn an_ended_query_withdraws_its_offers() {
    let (engine, workers) = Engine::start_simulated(Config::default().workers(2), 1).expect("an engine starts");
    let offers = || workers.iter().map(|worker| worker.worker.borrow().local().offers.borrow().len()).sum::<usize>();
    for poisoned in [false, true] {
        let (query, (mut input, _published)) = engine
            .install("source", |scope| {
                let (input, numbers) = scope.input::<(u32, u32)>();
                let passed = numbers.inspect(|_, _, _| std::panic::resume_unwind(Box::new("meant")));
                (input, passed.arrange_by_key().publish())
            })
            .expect("a dataflow that can be built");
        assert_eq!(offers(), 2);
        if poisoned {
            input.insert((1, 1)).expect("the query goes on");
            input.flush().expect("the query goes on");
            for _ in 0..1000 {
                workers.iter().for_each(|worker| {
                    worker.step();
                });
            }
            assert!(matches!(query.error(), Some(Error::Poisoned { .. })));
        } else {
            query.retire().expect("it is there to be retired");
        }
        assert_eq!(offers(), 0);
    }
}

/// Nothing that is left of a query keeps the worker's state: also where a stage was cut short in the middle.
#[test]
fn a_poisoned_query_leaves_no_cycle() {
    let (engine, workers) = Engine::start_simulated(Config::default().workers(1), 1).expect("an engine starts");
    let local = Rc::downgrade(workers[0].worker.borrow().local());
    let (query, mut input) = engine
        .install("poisoned", |scope| {
            let (input, numbers) = scope.input::<u32>();
            numbers.map(|n| n + 1).inspect(|_, _, _| std::panic::resume_unwind(Box::new("meant"))).probe();
            input
        })
        .expect("a dataflow that can be built");
    input.insert(1).expect("the query goes on");
    input.flush().expect("the query goes on");
    (0..100).for_each(|_| {
        workers[0].step();
    });
    assert!(matches!(query.error(), Some(Error::Poisoned { .. })));
    drop((query, input, engine, workers));
    assert!(local.upgrade().is_none());
}

/// Steps the workers until they have surely come to rest.
fn rounds(workers: &[HostedWorker]) {
    for _ in 0..200 {
        workers.iter().for_each(|worker| {
            worker.step();
        });
    }
}

/// Nor do its sources know of it any more, whether it heard every tick or dozed.
#[test]
fn an_ended_query_leaves_its_sources() {
    let (engine, workers) = Engine::start_simulated(Config::default().workers(2), 1).expect("an engine starts");
    let (_query, (mut input, published)) = engine
        .install("source", |scope| {
            let (input, numbers) = scope.input::<(u32, u32)>();
            (input, numbers.arrange_by_key().publish())
        })
        .expect("a dataflow that can be built");
    let known = || workers.iter().map(|worker| published.importers_on(worker.worker.borrow().local())).sum::<usize>();
    for (round, (end, hears)) in
        ["retired", "poisoned", "cascade"].into_iter().flat_map(|end| [(end, false), (end, true)]).enumerate()
    {
        let (query, (_probe, copy)) = engine
            .install("importer", |scope| {
                let imported = published.import(scope).as_collection(|k, v| (k, v));
                let passed = imported.inspect(move |_, time, _| {
                    if end == "poisoned" && time == round as u64 {
                        std::panic::resume_unwind(Box::new("meant"));
                    }
                });
                (hears.then(|| passed.probe()), (end == "cascade").then(|| passed.arrange_by_key().publish()))
            })
            .expect("a dataflow that can be built");
        let copy_of_both = copy.map(|copy| {
            engine
                .install("both", |scope| {
                    copy.import(scope)
                        .as_collection(|k, v| (k, v))
                        .concat(&published.import(scope).as_collection(|k, v| (k, v)))
                        .probe()
                })
                .expect("a dataflow that can be built")
        });
        rounds(&workers);
        assert_eq!(known(), if copy_of_both.is_some() { 4 } else { 2 });
        input.insert((1, 1)).expect("the query goes on");
        input.advance_to(round as u64 + 1).expect("the query goes on");
        rounds(&workers);
        match end {
            "retired" => query.retire().expect("it is there to be retired"),
            "cascade" => query.retire_cascade().expect("it is there to be retired"),
            _ => assert!(matches!(query.error(), Some(Error::Poisoned { .. }))),
        }
        assert_eq!(known(), 0, "{end}, hears {hears}");
    }
}

/// The end of a fabric that notes which dataflows' messages and change batches it was given.
struct Noting {
    end: Box<dyn Fabric<Envelope, ProgressEntry> + Send>,
    noted: Arc<Mutex<Vec<(&'static str, DataflowId)>>>,
}

impl Fabric<Envelope, ProgressEntry> for Noting {
    fn index(&self) -> usize {
        self.end.index()
    }
    fn peers(&self) -> usize {
        self.end.peers()
    }
    fn send(&mut self, to: usize, message: Envelope) {
        self.noted.lock().push(("message", message.dataflow));
        self.end.send(to, message);
    }
    fn broadcast(&mut self, entry: ProgressEntry) {
        entry.for_each(&mut Vec::new(), |dataflow, _| self.noted.lock().push(("changes", dataflow)));
        self.end.broadcast(entry);
    }
    fn flush(&mut self) {
        self.end.flush();
    }
    fn receive(&mut self, limit: usize, f: &mut dyn FnMut(fabric::Incoming<Envelope, ProgressEntry>)) -> usize {
        self.end.receive(limit, f)
    }
    fn has_incoming(&self) -> bool {
        self.end.has_incoming()
    }
    fn park(&mut self, timeout: Option<Duration>) {
        self.end.park(timeout);
    }
    fn unparkers(&self) -> &[crate::sync::Unparker] {
        self.end.unparkers()
    }
}

/// What a step did before it failed no other worker hears of, not even one that has yet to hear of the end: neither the
/// messages that it had sent, nor the time that its input had left.
#[test]
fn a_failed_step_tells_nobody() {
    let noted = Arc::new(Mutex::new(Vec::new()));
    let (engine, seeds) = Engine::start_hosted(Config::default().workers(2).pinned(false)).expect("an engine starts");
    let noting =
        |seed: WorkerSeed| WorkerSeed { fabric: Box::new(Noting { end: seed.fabric, noted: noted.clone() }), ..seed };
    let workers: Vec<_> = seeds.into_iter().map(|seed| noting(seed).start()).collect();
    for fails in [false, true] {
        let (query, mut input) = engine
            .install("failing", |scope| {
                let (input, numbers) = scope.input::<u64>();
                // Messages for both workers, before the panic in the same step.
                numbers.consolidate().probe();
                numbers.inspect(move |_, _, _| {
                    if fails {
                        std::panic::resume_unwind(Box::new("meant"));
                    }
                });
                input
            })
            .expect("a dataflow that can be built");
        rounds(&workers);
        noted.lock().clear();
        (0..100).for_each(|number| input.insert(number).expect("the query goes on"));
        input.advance_to(1).expect("the query goes on");
        // What is put in first goes to worker 0.
        workers[0].step();
        assert_eq!(matches!(query.error(), Some(Error::Poisoned { .. })), fails);
        for kind in ["message", "changes"] {
            assert_eq!(noted.lock().contains(&(kind, query.query.id)), !fails, "{kind} of a step that fails: {fails}");
        }
    }
}

/// A worker keeps what was freed for what comes next, and gives it back to the system when nothing comes for long.
#[test]
fn a_worker_that_rests_gives_idle_memory_back() {
    // In the test mode of a block a mapping nothing is kept.
    let arena = kpg_arena::ArenaConfig { per_block: false, ..kpg_arena::ArenaConfig::default() };
    let (engine, workers) =
        Engine::start_simulated(Config::default().workers(1).arena(arena), 1).expect("an engine starts");
    let (query, mut input) = engine
        .install("large", |scope| {
            let (input, numbers) = scope.input::<u64>();
            numbers.arrange_by_self().publish();
            input
        })
        .expect("a dataflow that can be built");
    (0..300_000).for_each(|number| input.insert(number * number).expect("the query goes on"));
    input.flush().expect("the query goes on");
    rounds(&workers);
    query.retire().expect("it is there to be retired");
    drop(input);
    rounds(&workers);
    let reserved = || engine.metrics().arenas.iter().map(|arena| arena.reserved_bytes).sum::<usize>();
    let steps = |count: usize| {
        (0..count).for_each(|_| {
            workers[0].step();
        });
    };
    let before = reserved();
    assert!(before > 8 << 20, "{before} bytes");
    // A simulated step lasts a microsecond.
    steps(60_000);
    assert_eq!(reserved(), before);
    // Work in between: it has not rested for long.
    engine
        .install("small", |scope| scope.input::<u64>().1.probe())
        .expect("a dataflow that can be built")
        .0
        .retire()
        .expect("it is there to be retired");
    steps(60_000);
    assert_eq!(reserved(), before);
    steps(100_000);
    assert!(reserved() < before / 2, "{} of {before} bytes", reserved());
}
