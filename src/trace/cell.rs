//! The few things that threads share here, in one place.
#![forbid(unsafe_code)]

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A lock that a panic elsewhere does not poison: what it guards is changed whole.
#[derive(Default, Debug)]
pub(super) struct Lock<T> {
    inner: Mutex<T>,
}

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Lock { inner: Mutex::new(value) }
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A shared value that is replaced whole.
#[derive(Debug)]
pub(super) struct ArcCell<T> {
    inner: Lock<Arc<T>>,
}

impl<T> ArcCell<T> {
    pub fn new(value: T) -> Self {
        ArcCell { inner: Lock::new(Arc::new(value)) }
    }
    pub fn load(&self) -> Arc<T> {
        self.inner.lock().clone()
    }
    pub fn store(&self, value: T) {
        let value = Arc::new(value);
        // The old value may own much: it is dropped after the lock is.
        let _old = std::mem::replace(&mut *self.inner.lock(), value);
    }
}

/// A count of changes that threads can wait for, and calls to make at each.
#[derive(Default)]
pub(super) struct Changes {
    count: Lock<u64>,
    changed: Condvar,
    hooks: Lock<Vec<Hook>>,
}

/// Called at each change, until it says that nobody needs it any more.
type Hook = Arc<dyn Fn() -> bool + Send + Sync>;

impl Changes {
    pub fn hook(&self, call: Box<dyn Fn() -> bool + Send + Sync>) {
        self.hooks.lock().push(call.into());
    }
    pub fn notify(&self) {
        *self.count.lock() += 1;
        self.changed.notify_all();
        let hooks = self.hooks.lock().clone();
        let done: Vec<_> = hooks.iter().filter(|call| !call()).map(Arc::as_ptr).collect();
        if !done.is_empty() {
            self.hooks.lock().retain(|call| !done.iter().any(|other| std::ptr::addr_eq(*other, Arc::as_ptr(call))));
        }
    }
    pub fn count(&self) -> u64 {
        *self.count.lock()
    }
    /// Waits until the count is not `seen`; false if the deadline came first.
    pub fn wait(&self, seen: u64, deadline: Instant) -> bool {
        let mut count = self.count.lock();
        while *count == seen {
            let now = Instant::now();
            if now >= deadline {
                return false;
            }
            count = self.changed.wait_timeout(count, deadline - now).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
