//! Sleep until woken; a wake-up of a thread that runs is one atomic swap. README.md has the protocol and its proof.
//!
//! ```text
//!            park: nothing to consume        unpark: lock, unlock, notify
//!   EMPTY ───────────────────────▶ PARKED ───────────────┐
//!     ▲ ╲ unpark                                         ▼
//!     │  ╲──────────────────────────────────────────▶ NOTIFIED
//!     └───────────────────────────────────────────────┘ park consumes
//! ```
//!
//! Next stop: the fabric in `runtime`, where workers park.
#![forbid(unsafe_code)]

use super::shim::{Arc, AtomicU32, Condvar, Mutex, Ordering, mutant, ordering};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::PoisonError;
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// Awake, with no wake-up to consume.
const EMPTY: u32 = 0;
/// A wake-up waits to be consumed.
const NOTIFIED: u32 = 1;
/// Asleep, or about to be: a waker has to lock and notify.
const PARKED: u32 = 2;

/// On lines of its own: those who wake write it, and several parkers are made one after another.
#[repr(align(128))]
struct Inner {
    state: AtomicU32,
    /// Held by the sleeper from setting PARKED until it waits.
    lock: Mutex<()>,
    wakes: Condvar,
}

/// One thread's place to sleep.
pub struct Parker {
    inner: Arc<Inner>,
    /// One thread parks at a time: not `Sync`.
    single: PhantomData<Cell<()>>,
}

/// Wakes one [`Parker`], from any thread.
#[derive(Clone)]
pub struct Unparker {
    inner: Arc<Inner>,
}

impl Default for Parker {
    fn default() -> Self {
        Self::new()
    }
}

impl Parker {
    /// A parker with no wake-up to consume.
    pub fn new() -> Self {
        let inner = Inner { state: AtomicU32::new(EMPTY), lock: Mutex::new(()), wakes: Condvar::new() };
        Parker { inner: Arc::new(inner), single: PhantomData }
    }

    /// Sleeps until an `unpark` since the last wake-up consumed; at once, if there is one. What the waker did before
    /// its `unpark` is seen after. Never wakes without cause.
    pub fn park(&self) {
        self.sleep(None);
    }

    /// As `park`, for `timeout` at most. Returns whether a wake-up was consumed.
    pub fn park_timeout(&self, timeout: Duration) -> bool {
        if timeout.is_zero() {
            return self.inner.consume();
        }
        // A deadline beyond what the clock can say is none.
        self.sleep(Instant::now().checked_add(timeout))
    }

    /// Whether a wake-up waits to be consumed.
    pub fn is_notified(&self) -> bool {
        self.inner.state.load(Ordering::Relaxed) == NOTIFIED
    }

    /// A handle that wakes this parker.
    pub fn unparker(&self) -> Unparker {
        Unparker { inner: self.inner.clone() }
    }

    fn sleep(&self, deadline: Option<Instant>) -> bool {
        let inner = &*self.inner;
        if inner.consume() {
            return true;
        }
        let mut guard = inner.lock.lock().unwrap_or_else(PoisonError::into_inner);
        let to_parked = inner.state.compare_exchange(EMPTY, PARKED, Ordering::Relaxed, Ordering::Relaxed);
        if to_parked.is_err() {
            // A swap, not a store: it reads the waker's last swap and so sees what came before it.
            return inner.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED;
        }
        loop {
            let left = match deadline {
                None => None,
                Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => Some(left),
                    _ => return inner.state.swap(EMPTY, Ordering::Acquire) == NOTIFIED,
                },
            };
            guard = match left {
                None => inner.wakes.wait(guard).unwrap_or_else(PoisonError::into_inner),
                Some(left) => inner.wakes.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0,
            };
            if inner.consume() {
                return true;
            }
        }
    }
}

impl Inner {
    /// Takes the wake-up, if there is one.
    #[inline]
    fn consume(&self) -> bool {
        let order = ordering("parker.consume", Ordering::Acquire);
        self.state.compare_exchange(NOTIFIED, EMPTY, order, Ordering::Relaxed).is_ok()
    }
}

impl Unparker {
    /// Wakes the parker, or lets its next `park` return at once. One atomic swap if it is awake.
    #[inline]
    pub fn unpark(&self) {
        // Always a write, also over NOTIFIED: it must publish what this thread did before.
        if self.inner.state.swap(NOTIFIED, ordering("parker.unpark", Ordering::Release)) == PARKED {
            self.wake();
        }
    }

    /// A waker for futures that wakes this parker.
    pub fn waker(&self) -> Waker {
        struct Wakes(Unparker);
        impl Wake for Wakes {
            fn wake(self: std::sync::Arc<Self>) {
                self.0.unpark();
            }
            fn wake_by_ref(self: &std::sync::Arc<Self>) {
                self.0.unpark();
            }
        }
        Waker::from(std::sync::Arc::new(Wakes(self.clone())))
    }

    #[cold]
    fn wake(&self) {
        if !mutant("parker.lock") {
            // Between PARKED and its wait the sleeper holds the lock: once we have had it, the sleeper waits.
            drop(self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.inner.wakes.notify_one();
    }
}

impl fmt::Debug for Parker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parker").finish_non_exhaustive()
    }
}

impl fmt::Debug for Unparker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unparker").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_before_the_park_counts_once() {
        let parker = Parker::new();
        parker.unparker().unpark();
        parker.unparker().waker().wake();
        assert!(parker.is_notified());
        parker.park();
        assert!(!parker.park_timeout(Duration::from_millis(1)));
        assert!(!parker.park_timeout(Duration::ZERO));
        parker.unparker().unpark();
        assert!(parker.park_timeout(Duration::MAX));
    }

    #[test]
    fn ping_pong() {
        let (here, there) = (Parker::new(), Parker::new());
        let (wake_here, wake_there) = (here.unparker(), there.unparker());
        let thread = std::thread::spawn(move || {
            for _ in 0..2_000 {
                there.park();
                wake_here.unpark();
            }
        });
        for _ in 0..2_000 {
            wake_there.unpark();
            here.park();
        }
        thread.join().expect("the thread ends well");
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::shim::{AtomicUsize, Kept, bound, with_mutant};
    use super::*;
    use loom::thread;

    /// `wakers` threads each publish something relaxed and unpark; the sleeper parks until it has seen it all.
    fn wake_up(wakers: usize) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = if wakers > 1 { bound(3, Some(4)) } else { None };
        builder.check(move || {
            let parker = Kept::new(Parker::new());
            let published = Kept::new(Arc::new(AtomicUsize::new(0)));
            let threads: Vec<_> = (0..wakers)
                .map(|_| {
                    let (published, unparker) = (Arc::clone(&published), parker.unparker());
                    thread::spawn(move || {
                        published.fetch_add(1, Ordering::Relaxed);
                        unparker.unpark();
                    })
                })
                .collect();
            while published.load(Ordering::Relaxed) < wakers {
                parker.park();
            }
            threads.into_iter().for_each(|thread| thread.join().expect("the thread ends well"));
        });
    }

    /// One wake-up: after one park, what came before it is there.
    fn visible() {
        loom::model(|| {
            let parker = Kept::new(Parker::new());
            let published = Kept::new(Arc::new(AtomicUsize::new(0)));
            let (theirs, unparker) = (Arc::clone(&published), parker.unparker());
            let thread = thread::spawn(move || {
                theirs.store(1, Ordering::Relaxed);
                unparker.unpark();
            });
            parker.park();
            assert_eq!(published.load(Ordering::Relaxed), 1);
            thread.join().expect("the thread ends well");
        });
    }

    #[test]
    fn one_waker() {
        wake_up(1);
    }

    #[test]
    fn two_wakers() {
        wake_up(2);
    }

    #[test]
    fn sees_what_came_before() {
        visible();
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn mutant_lock() {
        with_mutant("parker.lock", || wake_up(1));
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn mutant_unpark() {
        with_mutant("parker.unpark", visible);
    }

    #[test]
    #[should_panic(expected = "assertion")]
    fn mutant_consume() {
        with_mutant("parker.consume", visible);
    }
}
