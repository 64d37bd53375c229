//! The shim: what the structures of `sync` are made of, from std or, under `cfg(loom)`, from loom.
//!
//! Also the switch for mutants: [`ordering`] and [`mutant`] are the identity and `false`, except in a loom test
//! that has chosen to break the named site. loom runs all threads of a model on one thread of the system, so a
//! thread-local names the site. In unit tests on std `KPG_MUTANT` in the environment does: `ci/sanitize.sh canary`.

#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    sync::{Arc, Condvar, Mutex, MutexGuard},
};

/// std's `UnsafeCell` behind loom's interface.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> Self {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }
    /// A shared look at the value.
    #[inline(always)]
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }
    /// An exclusive look at the value.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// Keeps what two threads write apart: two cache lines, since neighbours are fetched in pairs.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// `ordering`, or `Relaxed` where a loom test has broken `site`.
#[inline(always)]
pub(crate) fn ordering(site: &'static str, ordering: Ordering) -> Ordering {
    if mutant(site) { Ordering::Relaxed } else { ordering }
}

/// Whether a model is being given up: a destructor that touched loom's objects then would panic in a panic. Never so on
/// std, where destructors do their work in a panic too.
#[inline(always)]
pub(crate) fn model_failed() -> bool {
    cfg!(loom) && std::thread::panicking()
}

/// Whether a loom test has broken `site`.
#[cfg(not(test))]
#[inline(always)]
pub(crate) fn mutant(_site: &'static str) -> bool {
    false
}

/// Whether `site` is to be broken in this run of the unit tests, which ThreadSanitizer must then report.
#[cfg(all(test, not(loom)))]
pub(crate) fn mutant(site: &'static str) -> bool {
    static BROKEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    BROKEN.get_or_init(|| std::env::var("KPG_MUTANT").ok()).as_deref() == Some(site)
}

#[cfg(all(test, loom))]
pub(crate) use mutants::{Kept, bound, mutant, with_mutant};

#[cfg(all(test, loom))]
mod mutants {
    use std::cell::Cell;
    use std::mem::ManuallyDrop;
    use std::ops::{Deref, DerefMut};

    std::thread_local! {
        static BROKEN: Cell<Option<&'static str>> = const { Cell::new(None) };
    }

    /// How many preemptions a model has at most (nothing: all schedules): `quick`, or with `KPG_LOOM=full` in the
    /// environment `full`, as `ci/loom.sh` asks for.
    pub(crate) fn bound(quick: usize, full: Option<usize>) -> Option<usize> {
        let is_full = std::env::var("KPG_LOOM").is_ok_and(|value| value == "full");
        if is_full { full } else { Some(quick) }
    }

    /// Whether `site` is broken in the model that runs.
    pub(crate) fn mutant(site: &'static str) -> bool {
        BROKEN.get() == Some(site)
    }

    /// Runs a model with `site` broken.
    pub(crate) fn with_mutant(site: &'static str, model: impl FnOnce()) {
        struct Mend;
        impl Drop for Mend {
            fn drop(&mut self) {
                BROKEN.set(None);
            }
        }
        let _mend = Mend;
        BROKEN.set(Some(site));
        model();
    }

    /// Keeps a value of a model that is given up: loom's objects can't be dropped after a deadlock.
    pub(crate) struct Kept<T>(ManuallyDrop<T>);

    impl<T> Kept<T> {
        pub(crate) fn new(value: T) -> Self {
            Kept(ManuallyDrop::new(value))
        }
    }

    impl<T> Deref for Kept<T> {
        type Target = T;
        fn deref(&self) -> &T {
            &self.0
        }
    }

    impl<T> DerefMut for Kept<T> {
        fn deref_mut(&mut self) -> &mut T {
            &mut self.0
        }
    }

    impl<T> Drop for Kept<T> {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                // SAFETY: dropped here only, and not looked at after.
                unsafe { ManuallyDrop::drop(&mut self.0) };
            }
        }
    }
}
