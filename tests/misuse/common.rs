//! What the cases share, beside the witness: an engine, waiting with a deadline, a worker inside a step.

pub use super::witness::{SOON, Witness, live, silence};
use kpg::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// What is asked of an engine here, but for the number of workers.
pub fn config() -> Config {
    Config::default().workers(2).pinned(false).install_timeout(SOON)
}

/// Two workers on threads of their own.
pub fn engine() -> Engine {
    quiet();
    Engine::start(config()).unwrap()
}

/// Panics that are meant are not printed: those on workers' threads, and on threads named so.
pub fn quiet() {
    silence(|_| std::thread::current().name().is_some_and(|name| name.starts_with("kpg worker")));
}

/// Looks again and again until `look` holds.
pub fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !look() {
        assert!(Instant::now() < deadline, "not within {SOON:?}: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The error with which a query ends, soon.
pub fn ending(query: &Query) -> Error {
    eventually("the query has ended", || query.error().is_some());
    query.error().unwrap()
}

/// Runs `call` on a thread of its own, and gives up on it after `SOON`: for what has no deadline of its own.
pub fn in_time<O: Send + 'static>(what: &str, call: impl FnOnce() -> O + Send + 'static) -> O {
    let (done, result) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || done.send(call()));
    match result.recv_timeout(SOON * 2) {
        Ok(output) => output,
        Err(std::sync::mpsc::RecvTimeoutError::Timeout) => panic!("hangs: {what}"),
        Err(_) => std::panic::resume_unwind(thread.join().unwrap_err()),
    }
}

/// Keeps worker 0 inside a step until dropped, so that what is queued for it stays so.
pub struct Blocked {
    state: Arc<AtomicU8>,
    _input: Input<u64, u64>,
}

impl Blocked {
    pub fn worker_0(engine: &Engine) -> Blocked {
        let state = Arc::new(AtomicU8::new(0));
        let (_, mut input) = engine
            .install("blocker", |scope| {
                let (input, numbers) = scope.input::<u64>();
                let state = state.clone();
                let block = move |_, _, _| {
                    let _ = state.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst);
                    while state.load(Ordering::SeqCst) != 2 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                };
                numbers.inspect(block).probe();
                input
            })
            .unwrap();
        // An input's first message goes to worker 0.
        input.insert(1).unwrap();
        input.flush().unwrap();
        eventually("worker 0 is inside the step", || state.load(Ordering::SeqCst) == 1);
        Blocked { state, _input: input }
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        self.state.store(2, Ordering::SeqCst);
    }
}
