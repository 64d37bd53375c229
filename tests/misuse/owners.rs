//! Blocking calls on threads that own workers: progress; from inside a step: a typed error (CASES 35).

use super::common::*;
use kpg::client::HostedWorker;
use kpg::prelude::*;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// All that blocks, on the thread that owns all workers.
fn all_calls(engine: Engine, workers: Vec<HostedWorker>) {
    let mut witness = Witness::install(&engine);
    witness.check();
    let (query, (mut input, mut sub, probe, published)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input_with::<(u64, u64), i64>(1);
            (input, numbers.subscribe(), numbers.probe(), numbers.arrange_by_key().publish())
        })
        .unwrap();
    for n in 0..20 {
        // Full each time: the workers are stepped until there is room.
        input.insert((n, n)).unwrap();
        input.flush().unwrap();
    }
    input.insert((20, 20)).unwrap();
    assert!(matches!(input.try_flush(), Ok(()) | Err(Error::Full)));
    input.advance_to(1).unwrap();
    probe.wait_past(&0, SOON).unwrap();
    assert_eq!(sub.wait_past(&0, SOON).unwrap().len(), 21);
    assert_eq!(published.wait_snapshot(&0, SOON).unwrap().iter().count(), 21);
    let start = Instant::now();
    assert!(matches!(probe.wait_past(&1, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    assert!(matches!(sub.wait_past(&1, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    assert!(matches!(published.wait_snapshot(&1, Duration::from_millis(20)), Err(Error::Deadline { .. })));
    assert!(start.elapsed() < SOON / 2);
    let (_, mut copy) =
        engine.install("copy", |scope| published.import(scope).as_collection(|k, v| (k, v)).subscribe()).unwrap();
    assert_eq!(copy.wait_past(&0, SOON).unwrap().len(), 21);
    query.retire_cascade().unwrap();
    witness.check();
    engine.shutdown(SOON).unwrap();
    assert!(workers.iter().all(HostedWorker::is_stopped));
}

/// A simulation's one thread.
#[test]
fn a_simulation_steps_itself() {
    for seed in 0..5 {
        let (engine, workers) = Engine::start_simulated(config(), seed).unwrap();
        all_calls(engine, workers);
    }
}

/// A host's thread that owns all workers.
#[test]
fn a_host_steps_its_workers() {
    let (engine, seeds) = Engine::start_hosted(config()).unwrap();
    let workers = seeds.into_iter().map(|seed| seed.start()).collect();
    all_calls(engine, workers);
}

/// A host's thread that owns one of two.
#[test]
fn a_host_steps_its_share() {
    let (engine, mut seeds) = Engine::start_hosted(config()).unwrap();
    let other = seeds.pop().unwrap();
    let thread = std::thread::spawn(move || {
        let worker = other.start();
        while !worker.is_stopped() {
            if !worker.step() {
                worker.park(Duration::from_millis(1));
            }
        }
    });
    let mine = seeds.pop().unwrap().start();
    let mut witness = Witness::install(&engine);
    (0..5).for_each(|_| witness.check());
    engine.shutdown(SOON).unwrap();
    assert!(mine.is_stopped());
    thread.join().unwrap();
}

/// Handles that a step uses, put there once they exist.
type Inside = Arc<Mutex<Option<Box<dyn FnMut() -> Vec<Result<(), Error>> + Send>>>>;

/// From inside an inspect closure nothing may wait for the worker that runs it; what needs no wait works.
#[test]
fn inside_a_step() {
    let engine = Arc::new(engine());
    let mut witness = Witness::install(&engine);
    let (query, (mut other, probe, mut sub, published)) = engine
        .install("other", |scope| {
            let (input, numbers) = scope.input_with::<(u64, u64), i64>(1);
            (input, numbers.probe(), numbers.subscribe(), numbers.arrange_by_key().publish())
        })
        .unwrap();
    let inside: Inside = Arc::default();
    let (results, heard) = mpsc::channel();
    let results = Mutex::new(results);
    let (_, mut input) = engine
        .install("inside", |scope| {
            let (input, numbers) = scope.input::<u64>();
            let (inside, results) = (inside.clone(), results.lock().unwrap().clone());
            let calls = move |_, _, _| {
                if let Some(calls) = inside.lock().unwrap().as_mut() {
                    results.send(calls()).unwrap();
                }
            };
            numbers.inspect(calls).probe();
            input
        })
        .unwrap();
    *inside.lock().unwrap() = Some(Box::new({
        let (engine, query) = (Arc::downgrade(&engine), Mutex::new(Some(query)));
        move || {
            let engine = engine.upgrade().unwrap();
            let mut gathered = vec![
                engine.install("nested", |_| ()).map(drop),
                probe.wait_past(&7, SOON),
                sub.wait_past(&7, SOON).map(drop),
                published.wait_snapshot(&7, SOON).map(drop),
            ];
            if let Some(query) = query.lock().unwrap().take() {
                gathered.push(query.retire());
            }
            // Its own worker would have to make room: the second or third finds the queue full.
            let full = (0..3).find_map(|n| other.insert((n, n)).and_then(|()| other.flush()).err());
            gathered.push(full.map_or(Ok(()), Err));
            gathered
        }
    }));
    input.insert(1).unwrap();
    input.flush().unwrap();
    for result in heard.recv_timeout(SOON).unwrap() {
        assert!(matches!(result, Err(Error::WouldBlock { .. })), "{result:?}");
    }
    *inside.lock().unwrap() = None;
    witness.check();
}

/// Wakes a thread: the whole executor.
struct Unpark(std::thread::Thread);
impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end on this thread.
pub fn block_on<O>(future: impl Future<Output = O>) -> O {
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    let deadline = Instant::now() + SOON;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nobody woke the future");
        std::thread::park_timeout(left);
    }
}

/// `Subscription::past` needs no more than a waker; a future that is dropped has taken nothing.
#[test]
fn futures() {
    let engine = engine();
    let (_, (mut input, mut sub)) = engine
        .install("numbers", |scope| {
            let (input, numbers) = scope.input::<u64>();
            (input, numbers.subscribe())
        })
        .unwrap();
    let feeding = std::thread::spawn(move || {
        for t in 0..50 {
            std::thread::sleep(Duration::from_micros(500));
            input.insert(t).unwrap();
            input.advance_to(t + 1).unwrap();
        }
        input
    });
    for t in 0..50 {
        {
            let mut dropped = pin!(sub.past(t + 1000));
            assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        }
        assert_eq!(block_on(sub.past(t)).unwrap(), [(t, t, 1)]);
    }
    drop(feeding.join().unwrap());
    assert!(block_on(sub.past(u64::MAX)).unwrap().is_empty());
}
