//! The handle of an arena: how it is made, entered, watched, capped, and how it ends.
//!
//! A thread that has entered an arena allocates in it; guards nest, and a thread may have many arenas entered (a
//! simulation). What an arena is, who owns it when, and how blocks come and go: `inner.rs`, the stop before this one.
//! Next stop: `buffer.rs`.

use crate::current;
use crate::error::Busy;
use crate::inner::Inner;
use crate::layout::CHUNK;
use crate::map::MapOptions;
use crate::store::StoreOptions;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

/// How an arena behaves. Write `ArenaConfig { cap_bytes: …, ..ArenaConfig::default() }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaConfig {
    /// Its name in errors.
    pub name: String,
    /// At most so many bytes of blocks may be live; no cap by default. What is mapped can be more, by the slack,
    /// headers and fragmentation.
    pub cap_bytes: Option<usize>,
    /// The size of a region, rounded up to 2 MiB. 8 MiB by default.
    pub region_bytes: usize,
    /// Idle bytes that are kept for reuse, or a quarter of the large blocks in use if that is more; what goes beyond is given
    /// back to the system at once. 32 MiB by default; with 0 nothing is kept. An engine's worker that has had nothing to do
    /// for a tenth of a second gives back the rest too.
    pub slack_bytes: usize,
    /// Ask the system for huge pages. Off by default: whoever touches one first waits until 2 MiB are cleared, which is a
    /// tenth of a millisecond on a bare machine, and was 6 ms on a virtual one whose host gives memory on demand, where they
    /// made the 99th percentile of an arrangement's latency 20 times what it is without, and throughput no better.
    pub huge_pages: bool,
    /// A mode for tests: each block has a mapping of its own, ends at a page that can't be touched, and is unmapped
    /// when freed, so that overruns and uses after the free are seen. Slow; many maps. Off by default.
    pub per_block: bool,
    /// Back all memory by unnamed files in this directory, so that the system can write it out. None by default.
    pub backing_directory: Option<PathBuf>,
    /// Take all pages from this NUMA node, and no other; if that has none left, or the system does not bind, allocations
    /// fail. By default each page comes from the node of the thread that touches it first.
    pub numa_node: Option<u32>,
}

impl ArenaConfig {
    /// Whether the system takes pages from `numa_node`, if one is named.
    ///
    /// # Errors
    /// What the system says.
    pub fn check_numa_node(&self) -> std::io::Result<()> {
        let options = MapOptions { numa_node: self.numa_node, ..MapOptions::default() };
        crate::map::Mapping::new(CHUNK, false, &options).map(drop)
    }
}

/// Off, but for a whole run of tests `KPG_ARENA_PER_BLOCK` in the environment turns it on: `ci/sanitize.sh`.
#[cfg(any(test, feature = "check"))]
fn per_block_by_default() -> bool {
    static IS_SET: OnceLock<bool> = OnceLock::new();
    *IS_SET.get_or_init(|| std::env::var_os("KPG_ARENA_PER_BLOCK").is_some())
}

#[cfg(not(any(test, feature = "check")))]
fn per_block_by_default() -> bool {
    false
}

impl Default for ArenaConfig {
    fn default() -> ArenaConfig {
        ArenaConfig {
            name: "arena".into(),
            cap_bytes: None,
            region_bytes: 4 * CHUNK,
            slack_bytes: 16 * CHUNK,
            huge_pages: false,
            per_block: per_block_by_default(),
            backing_directory: None,
            numa_node: None,
        }
    }
}

/// The accounts of an arena, in bytes. Exact whenever no other thread is just allocating or freeing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Mapped: blocks, free or not, and headers.
    pub reserved_bytes: usize,
    /// In blocks that are live, by the size of their class.
    pub live_bytes: usize,
    /// The greatest `live_bytes` so far.
    pub peak_bytes: usize,
}

/// Memory for one worker. A cheap, clonable handle; blocks keep the memory alive without one.
pub struct Arena {
    inner: NonNull<Inner>,
}

// SAFETY: `store` and `depth` are used only by the thread that owns the arena, or under the mutex; the owner changes
// by Acquire and Release. All else is atomics and what never changes.
unsafe impl Send for Arena {}
// SAFETY: as above.
unsafe impl Sync for Arena {}

impl Arena {
    /// An arena that has mapped nothing yet.
    pub fn new(config: ArenaConfig) -> Arena {
        Arena::build(config, false)
    }

    /// The arena of threads that have entered none. Thread-safe; slower, by a mutex.
    pub fn process_wide() -> Arena {
        process_wide().clone()
    }

    fn build(config: ArenaConfig, shared: bool) -> Arena {
        let options = StoreOptions {
            map: MapOptions {
                huge_pages: config.huge_pages,
                directory: config.backing_directory,
                numa_node: config.numa_node,
            },
            region_chunks: config.region_bytes.div_ceil(CHUNK).max(1),
            slack: config.slack_bytes,
            per_block: config.per_block,
        };
        Arena { inner: Inner::leak(config.name, config.cap_bytes, options, shared) }
    }

    pub(crate) fn inner(&self) -> &Inner {
        // SAFETY: handles keep it alive.
        unsafe { self.inner.as_ref() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.inner().name()
    }

    /// Makes it this thread's current arena until the guard is dropped. Nests, also in itself.
    ///
    /// # Panics
    /// If another thread has it entered just now; see [`Arena::try_enter`].
    pub fn enter(&self) -> Entered {
        self.try_enter().unwrap_or_else(|busy| panic!("{busy}"))
    }

    /// Makes it this thread's current arena until the guard is dropped.
    ///
    /// # Errors
    /// If another thread has it entered just now.
    pub fn try_enter(&self) -> Result<Entered, Busy> {
        let before = self.make_current()?;
        Ok(Entered { arena: self.clone(), before, here: PhantomData })
    }

    /// Calls `f` with this as the thread's current arena: as `enter`, but it counts no handle, for those who do so all the time.
    ///
    /// # Panics
    /// As `enter`.
    pub fn scope<O>(&self, f: impl FnOnce() -> O) -> O {
        struct Scope<'a>(&'a Arena, Option<Arena>);
        impl Drop for Scope<'_> {
            fn drop(&mut self) {
                self.0.leave(self.1.take());
            }
        }
        let _scope = Scope(self, self.make_current().unwrap_or_else(|busy| panic!("{busy}")));
        f()
    }

    /// Gives what was current before.
    fn make_current(&self) -> Result<Option<Arena>, Busy> {
        let inner = self.inner();
        let current: *const Inner = if inner.is_shared() {
            ptr::null()
        } else {
            inner.acquire()?;
            self.inner.as_ptr()
        };
        let before = current::swap_arena(current);
        // SAFETY: the current arena of a thread is one that it owns, and who made it current has a handle.
        Ok((!before.is_null()).then(|| unsafe { Arena::from_current(before) }))
    }

    fn leave(&self, before: Option<Arena>) {
        let inner = self.inner();
        let mut current: *const Inner = ptr::null();
        if !inner.is_shared() {
            current = self.inner.as_ptr();
            inner.release();
        }
        let now = current::swap_arena(ptr::null());
        let next = if now == current {
            // Only an arena that this thread still owns may become current again.
            let owned = before.as_ref().filter(|before| before.inner().is_owned());
            owned.map_or(ptr::null(), |before| before.inner.as_ptr().cast_const())
        } else {
            now
        };
        current::swap_arena(next);
    }

    /// A handle to an arena that is kept alive by another handle.
    ///
    /// # Safety
    /// There is such a handle.
    unsafe fn from_current(inner: *const Inner) -> Arena {
        // SAFETY: the caller says that it is alive, so it isn't null.
        unsafe {
            (*inner).handles.fetch_add(1, Ordering::Relaxed);
            Arena { inner: NonNull::new_unchecked(inner.cast_mut()) }
        }
    }

    /// Its accounts. From any thread.
    pub fn stats(&self) -> Stats {
        self.inner().stats()
    }

    /// Changes the cap. One below what is live refuses what comes and takes nothing away.
    pub fn set_cap(&self, cap_bytes: Option<usize>) {
        self.inner().set_cap(cap_bytes);
    }

    /// For tests: the `n`-th allocation from now, counted from 1, fails with [`Cause::Injected`](crate::Cause::Injected); 0 takes
    /// that back.
    pub fn fail_after(&self, n: u64) {
        self.inner().fail_after(n);
    }

    /// For tests: what is left of the `n` that [`Arena::fail_after`] was told; 0 once that allocation has failed.
    pub fn fails_in(&self) -> u64 {
        self.inner().fails_in()
    }

    /// Collects what other threads freed and gives all that is idle back to the system; how many bytes.
    ///
    /// # Errors
    /// If another thread has it entered just now.
    pub fn trim(&self) -> Result<usize, Busy> {
        self.inner().trim()
    }

    /// Walks everything. For tests and fuzzers; cost: all spans and all free blocks.
    ///
    /// # Panics
    /// If something isn't as it must be, or if another thread has it entered just now.
    pub fn check_invariants(&self) {
        let checked = self.inner().check_invariants();
        checked.expect("check_invariants needs the arena for itself");
    }
}

impl Clone for Arena {
    fn clone(&self) -> Arena {
        self.inner().handles.fetch_add(1, Ordering::Relaxed);
        Arena { inner: self.inner }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // All that other threads did while they owned it happens before.
        if self.inner().handles.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // SAFETY: that was the last handle, so no guard is left either.
        unsafe { Inner::end(self.inner) };
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena").field("name", &self.name()).field("stats", &self.stats()).finish()
    }
}

/// While it lives, this thread allocates in an arena. See [`Arena::enter`].
///
/// Guards should be dropped in reverse order. In another order nothing breaks: where the arena before is no longer
/// entered, the process-wide one becomes current.
#[derive(Debug)]
#[must_use = "the arena is current only while the guard lives"]
pub struct Entered {
    arena: Arena,
    before: Option<Arena>,
    here: PhantomData<*mut ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.arena.leave(self.before.take());
    }
}

/// The one arena that is never entered by a thread alone.
#[inline]
pub(crate) fn process_wide() -> &'static Arena {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    ARENA.get_or_init(|| {
        let config = ArenaConfig { name: "the process-wide arena".into(), ..ArenaConfig::default() };
        Arena::build(config, true)
    })
}
