//! A monitor: a value under a mutex, and all who wait for it to change, blocked threads and futures alike.
//!
//! Protocol. Who waits looks at the value under the lock, and before giving the lock up is counted in `waiting`
//! (blocked) or kept in `wakers` (a future). Who changes the value does so under the lock and calls `notify_all` after the
//! change, with the lock or without it. So either the change comes first and the waiter sees it, or the waiter is
//! counted before the change, and the notifier, who has had the lock since, sees the count: its loads may be relaxed.
//!
//! Cost: `notify_all` with nobody waiting is two loads. Next stop: `scoped`, and the handles in `client`.
#![forbid(unsafe_code)]

use super::mutex::{Mutex, MutexGuard};
use super::shim::{AtomicUsize, Condvar, Ordering, mutant};
use std::fmt;
use std::mem::take;
use std::sync::PoisonError;
use std::task::Waker;
use std::time::Instant;

/// The right to a monitor's value, until dropped.
pub type MonitorGuard<'a, T> = MutexGuard<'a, T>;

/// A value and those who wait for it to change.
pub struct Monitor<T> {
    value: Mutex<T>,
    changed: Condvar,
    /// Threads blocked in `wait`; counted up under the lock.
    waiting: AtomicUsize,
    /// `wakers.len()`; counted up under the lock of the value.
    registered: AtomicUsize,
    wakers: Mutex<Vec<Waker>>,
}

impl<T: Default> Default for Monitor<T> {
    fn default() -> Self {
        Monitor::new(T::default())
    }
}

impl<T> Monitor<T> {
    /// A monitor of `value`.
    pub fn new(value: T) -> Self {
        Monitor {
            value: Mutex::new(value),
            changed: Condvar::new(),
            waiting: AtomicUsize::new(0),
            registered: AtomicUsize::new(0),
            wakers: Mutex::new(Vec::new()),
        }
    }

    /// Blocks until the value is free.
    pub fn lock(&self) -> MonitorGuard<'_, T> {
        self.value.lock()
    }

    /// Gives the value up until the next `notify_all`, or until the deadline, and says whether that has passed. May
    /// also return for no reason: look at the value in a loop.
    pub fn wait<'a>(&'a self, guard: MonitorGuard<'a, T>, deadline: Option<Instant>) -> (MonitorGuard<'a, T>, bool) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return (guard, true);
        }
        if !mutant("monitor.waiting") {
            self.waiting.fetch_add(1, Ordering::Relaxed);
        }
        let (guard, timed_out) = match left {
            None => (self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner), false),
            Some(left) => {
                let (guard, result) = self.changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner);
                (guard, result.timed_out())
            }
        };
        if !mutant("monitor.waiting") {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        (guard, timed_out)
    }

    /// Counts the caller as waiting until what it gets is dropped: for one who waits for a value that is not the monitor's own.
    /// It enlists before it looks at that value, under the lock of this monitor and whatever guards the value. Who changes the
    /// value asks afterwards whether it [`is_awaited`](Monitor::is_awaited), and if so takes this lock before it notifies.
    pub fn enlist(&self) -> Enlisted<'_, T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Enlisted(self)
    }

    /// Whether anyone has enlisted, or is blocked. What was enlisted before a look at a value under a lock is seen by who
    /// has that lock after it.
    pub fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Has `waker` woken at the next `notify_all`, once. The guard is proof that the caller looked at the value, and
    /// still has it.
    pub fn register(&self, _guard: &mut MonitorGuard<'_, T>, waker: &Waker) {
        let mut wakers = self.wakers.lock();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
            self.registered.store(wakers.len(), Ordering::Relaxed);
        }
    }

    /// Wakes all who wait. Call it after the change that was made under the lock; better without the lock, since
    /// wakers run foreign code.
    pub fn notify_all(&self) {
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.changed.notify_all();
        }
        if self.registered.load(Ordering::Relaxed) > 0 {
            let mut wakers = self.wakers.lock();
            let woken = take(&mut *wakers);
            self.registered.store(0, Ordering::Relaxed);
            drop(wakers);
            woken.into_iter().for_each(Waker::wake);
        }
    }
}

/// See [`Monitor::enlist`].
pub struct Enlisted<'a, T>(&'a Monitor<T>);

impl<T> Drop for Enlisted<'_, T> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<T> fmt::Debug for Monitor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Parker;
    use super::*;
    use std::time::Duration;

    #[test]
    fn threads_and_futures() {
        let monitor = Monitor::new(0);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut guard = monitor.lock();
                    while *guard < 100 {
                        guard = monitor.wait(guard, None).0;
                    }
                });
            }
            scope.spawn(|| {
                let parker = Parker::new();
                let waker = parker.unparker().waker();
                loop {
                    let mut guard = monitor.lock();
                    if *guard == 100 {
                        break;
                    }
                    monitor.register(&mut guard, &waker);
                    monitor.register(&mut guard, &waker);
                    drop(guard);
                    parker.park();
                }
            });
            for _ in 0..100 {
                *monitor.lock() += 1;
                monitor.notify_all();
            }
        });
        assert_eq!(monitor.waiting.load(Ordering::Relaxed), 0);
        assert!(monitor.wakers.lock().is_empty());
    }

    #[test]
    fn deadlines() {
        let monitor = Monitor::new(());
        assert!(monitor.wait(monitor.lock(), Some(Instant::now())).1);
        assert!(monitor.wait(monitor.lock(), Some(Instant::now() + Duration::from_millis(2))).1);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::Parker;
    use super::super::shim::{Arc, Kept, bound, with_mutant};
    use super::*;
    use loom::thread;

    /// One thread changes the value, the other waits for it, blocked.
    fn blocked() {
        loom::model(|| {
            let monitor = Kept::new(Arc::new(Monitor::new(false)));
            let theirs = Arc::clone(&monitor);
            let thread = thread::spawn(move || {
                *theirs.lock() = true;
                theirs.notify_all();
            });
            let mut guard = monitor.lock();
            while !*guard {
                guard = monitor.wait(guard, None).0;
            }
            drop(guard);
            thread.join().expect("the thread ends well");
        });
    }

    /// The same as a future, on a parker. `late`: registers after it has given up the lock.
    fn registered(late: bool) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = bound(3, None);
        builder.check(move || {
            let monitor = Kept::new(Arc::new(Monitor::new(false)));
            let parker = Kept::new(Parker::new());
            let waker = Kept::new(parker.unparker().waker());
            let theirs = Arc::clone(&monitor);
            let thread = thread::spawn(move || {
                *theirs.lock() = true;
                theirs.notify_all();
            });
            loop {
                let mut guard = monitor.lock();
                if *guard {
                    break;
                }
                if late {
                    drop(guard);
                    guard = monitor.lock();
                }
                monitor.register(&mut guard, &waker);
                drop(guard);
                parker.park();
            }
            thread.join().expect("the thread ends well");
        });
    }

    /// One thread changes a value that is not the monitor's, the other enlists and waits for it. `late`: it looks first.
    fn enlisted(late: bool) {
        loom::model(move || {
            let both = Kept::new(Arc::new((Monitor::new(()), Mutex::new(false))));
            let theirs = Arc::clone(&both);
            let thread = thread::spawn(move || {
                let (monitor, value) = &*theirs;
                *value.lock() = true;
                if monitor.is_awaited() {
                    drop(monitor.lock());
                    monitor.notify_all();
                }
            });
            let (monitor, value) = &**both;
            let looked_early = late && *value.lock();
            let enlisted = monitor.enlist();
            let mut guard = monitor.lock();
            while !looked_early && (late || !*value.lock()) {
                guard = monitor.wait(guard, None).0;
                if late {
                    break;
                }
            }
            drop(guard);
            drop(enlisted);
            thread.join().expect("the thread ends well");
        });
    }

    #[test]
    fn wakes_the_enlisted() {
        enlisted(false);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn mutant_enlists_late() {
        enlisted(true);
    }

    #[test]
    fn wakes_threads() {
        blocked();
    }

    #[test]
    fn wakes_futures() {
        registered(false);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn mutant_waiting() {
        with_mutant("monitor.waiting", blocked);
    }

    #[test]
    #[should_panic(expected = "deadlock")]
    fn mutant_late() {
        registered(true);
    }
}
