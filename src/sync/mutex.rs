//! A mutex that a panic does not poison.
//!
//! A holder that panics leaves the value as it was at that moment; whoever locks next sees it. What must hold across a
//! panic is the business of the code that locks, as with any early return. Next stop: `monitor`.
#![forbid(unsafe_code)]

use super::shim;
use std::sync::PoisonError;

/// The right to the value, until dropped.
pub type MutexGuard<'a, T> = shim::MutexGuard<'a, T>;

/// Mutual exclusion without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    inner: shim::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A mutex around `value`.
    pub fn new(value: T) -> Self {
        Mutex { inner: shim::Mutex::new(value) }
    }

    /// Blocks until the value is free.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value, if nobody has it now.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    /// The value, without a lock.
    pub fn get_mut(&mut self) -> &mut T {
        self.inner.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value itself.
    pub fn into_inner(self) -> T {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_panic_does_not_poison() {
        let mutex = Mutex::new(1);
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            *mutex.lock() = 2;
            mutex.panic_while_held();
        }));
        assert!(unwound.is_err());
        assert_eq!(*mutex.lock(), 2);
        assert_eq!(mutex.into_inner(), 2);
    }

    impl Mutex<i32> {
        fn panic_while_held(&self) {
            let _held = self.lock();
            assert!(self.try_lock().is_none());
            std::panic::resume_unwind(Box::new("held"));
        }
    }
}
