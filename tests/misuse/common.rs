//! What the cases share: an engine, a query that must stay exact whatever others do, waiting with a deadline.

use kpg::prelude::*;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// No wait takes longer, unless something is broken.
pub const SOON: Duration = Duration::from_secs(10);

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
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !std::thread::current().name().is_some_and(|name| name.starts_with("kpg worker")) {
                loud(info);
            }
        }));
    });
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

/// Bytes live in the workers' arenas.
pub fn live(engine: &Engine) -> usize {
    engine.metrics().arenas.iter().map(|stats| stats.live_bytes).sum()
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

/// A query with an arrangement, a join and a subscription, whose answers are known.
pub struct Witness {
    input: Input<u64, (u64, u64)>,
    pairs: Subscription<u64, (u64, u64)>,
    /// The arrangement.
    pub published: Published<u64, u64>,
    next: u64,
}

impl Witness {
    pub fn install(engine: &Engine) -> Witness {
        let (_, (input, pairs, published)) = engine
            .install("witness", |scope| {
                let (input, numbers) = scope.input::<(u64, u64)>();
                let arranged = numbers.arrange_by_key();
                let pairs = arranged.join_core(&arranged, |_, a, b| Some((a, b))).subscribe();
                (input, pairs, arranged.publish())
            })
            .unwrap();
        Witness { input, pairs, published, next: 0 }
    }

    /// One more number; all that comes of it, exactly.
    pub fn check(&mut self) {
        let t = self.next;
        self.next += 1;
        self.input.insert((t % 3, t)).unwrap();
        self.input.advance_to(t + 1).unwrap();
        let got = self.pairs.wait_past(&t, SOON).unwrap();
        let mut want = vec![((t, t), t, 1)];
        for u in (t % 3..t).step_by(3) {
            want.extend([((t, u), t, 1), ((u, t), t, 1)]);
        }
        want.sort_unstable();
        assert_eq!(got, want);
        let snapshot = self.published.wait_snapshot(&t, SOON).unwrap();
        assert_eq!(snapshot.get(&(t % 3)).last(), Some((t, 1)));
    }
}
