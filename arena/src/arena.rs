//! An arena: its handle, who may use it, accounting, caps, and the paths of allocate and free.
//!
//! ```text
//! allocate ─ current arena ─┬─ this thread's: bin ─ else collect remote frees ─ else span, chunk, region, mapping
//!                           └─ none: the process-wide arena, under its mutex
//! free ──── block's header ─┬─ its arena is owned by this thread: back on its span
//!                           ├─ it is the process-wide one: the same, under the mutex
//!                           └─ otherwise: remote-free list (remote.rs)
//! ```
//!
//! **Ownership.** An arena serves one thread at a time: the one that has entered it, once or several times nested. A
//! host may enter on another thread each time, and one thread may have many arenas entered (a simulation). Entering
//! is a compare-and-swap on `owner`, Acquire against the Release of the leaver; so `store` passes from thread to
//! thread. The hot path compares two numbers: no read-modify-write, no lock.
//!
//! **Accounting** is exact: `live` counts what the owner has handed out and not got back, `pending` what lies on the
//! remote-free list; their difference is live. The owner alone writes `live`, `peak` and `reserved`.
//!
//! **The end.** Blocks keep their arena alive; see `remote.rs` for who frees it.
//! Next stop: `buffer.rs`.

use crate::chunk::{self, Head};
use crate::current::{self, NOBODY};
use crate::error::{Busy, Cause, OutOfMemory};
use crate::layout::{self, CHUNK};
use crate::map::MapOptions;
use crate::remote::{Pushed, RemoteList};
use crate::store::{Store, StoreOptions};
use crate::store_free::unmap_large;
use crate::tag::{self, TagInner};
use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Mutex, OnceLock, PoisonError};

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
    /// Idle bytes that are kept for reuse; more are given back to the system at once. 32 MiB by default.
    pub slack_bytes: usize,
    /// Ask the system for huge pages. On by default.
    pub huge_pages: bool,
    /// A mode for tests: each block has a mapping of its own, ends at a page that can't be touched, and is unmapped
    /// when freed, so that overruns and uses after the free are seen. Slow; many maps. Off by default.
    pub per_block: bool,
    /// Back all memory by unnamed files in this directory, so that the system can write it out. None by default.
    pub backing_directory: Option<PathBuf>,
}

impl Default for ArenaConfig {
    fn default() -> ArenaConfig {
        ArenaConfig {
            name: "arena".into(),
            cap_bytes: None,
            region_bytes: 4 * CHUNK,
            slack_bytes: 16 * CHUNK,
            huge_pages: true,
            per_block: false,
            backing_directory: None,
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

/// What handles and blocks share.
#[derive(Debug)]
pub(crate) struct Inner {
    name: String,
    per_block: bool,
    /// Set in the process-wide arena, which is never owned; guards `store`.
    shared: Option<Mutex<()>>,
    /// The thread that has entered it, or NOBODY. Only that thread sets it back.
    owner: AtomicU64,
    /// How many times the owner has entered it; the owner's.
    depth: Cell<usize>,
    /// The owner's.
    store: UnsafeCell<Store>,
    /// Bytes handed out and not got back; written by the owner.
    live: AtomicUsize,
    peak: AtomicUsize,
    /// Bytes mapped, as of the last change; written by the owner.
    reserved: AtomicUsize,
    /// Beyond this `live` needs a closer look: the cap, or 0 while `fail_in` is set.
    limit: AtomicUsize,
    cap: AtomicUsize,
    /// The allocation, counted from 1, that is to fail; 0 for none.
    fail_in: AtomicU64,
    handles: AtomicUsize,
    remote: Remote,
}

/// What foreign threads write, on cache lines of its own.
#[derive(Debug)]
#[repr(align(128))]
struct Remote {
    list: RemoteList,
    /// Bytes on the list; added before the push, taken away after the collection.
    pending: AtomicUsize,
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
        Arena::build(config, None)
    }

    /// The arena of threads that have entered none. Thread-safe; slower, by a mutex.
    pub fn process_wide() -> Arena {
        process_wide().clone()
    }

    fn build(config: ArenaConfig, shared: Option<Mutex<()>>) -> Arena {
        let ArenaConfig {
            name,
            cap_bytes,
            region_bytes,
            slack_bytes,
            huge_pages,
            per_block,
            backing_directory,
        } = config;
        let cap = cap_bytes.unwrap_or(usize::MAX);
        let store = Store::new(StoreOptions {
            map: MapOptions {
                huge_pages,
                directory: backing_directory,
            },
            region_chunks: region_bytes.div_ceil(CHUNK).max(1),
            slack: slack_bytes,
            per_block,
        });
        let inner = Box::new(Inner {
            name,
            per_block,
            shared,
            owner: AtomicU64::new(NOBODY),
            depth: Cell::new(0),
            store: UnsafeCell::new(store),
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            limit: AtomicUsize::new(cap),
            cap: AtomicUsize::new(cap),
            fail_in: AtomicU64::new(0),
            handles: AtomicUsize::new(1),
            remote: Remote {
                list: RemoteList::new(),
                pending: AtomicUsize::new(0),
            },
        });
        let inner = NonNull::from(Box::leak(inner));
        // SAFETY: nobody else knows the arena yet.
        unsafe { (*inner.as_ref().store.get()).arena = inner.as_ptr() };
        Arena { inner }
    }

    fn inner(&self) -> &Inner {
        // SAFETY: handles keep it alive.
        unsafe { self.inner.as_ref() }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner().name
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
        let inner = self.inner();
        let current: *const Inner = if inner.shared.is_some() {
            ptr::null()
        } else {
            inner.acquire()?;
            self.inner.as_ptr()
        };
        let before = current::swap_arena(current);
        // SAFETY: the current arena of a thread is one that it owns, and its guards hold handles.
        let before = (!before.is_null()).then(|| unsafe { Arena::from_current(before) });
        Ok(Entered {
            arena: self.clone(),
            before,
            here: PhantomData,
        })
    }

    /// A handle to an arena that is kept alive by another handle.
    ///
    /// # Safety
    /// There is such a handle.
    unsafe fn from_current(inner: *const Inner) -> Arena {
        // SAFETY: the caller says that it is alive, so it isn't null.
        unsafe {
            (*inner).handles.fetch_add(1, Ordering::Relaxed);
            Arena {
                inner: NonNull::new_unchecked(inner.cast_mut()),
            }
        }
    }

    /// Its accounts. From any thread.
    pub fn stats(&self) -> Stats {
        let inner = self.inner();
        let pending = inner.remote.pending.load(Ordering::Relaxed);
        Stats {
            reserved_bytes: inner.reserved.load(Ordering::Relaxed),
            live_bytes: inner.live.load(Ordering::Relaxed).saturating_sub(pending),
            peak_bytes: inner.peak.load(Ordering::Relaxed),
        }
    }

    /// Changes the cap. One below what is live refuses what comes and takes nothing away.
    pub fn set_cap(&self, cap_bytes: Option<usize>) {
        self.inner()
            .cap
            .store(cap_bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.inner().set_limit();
    }

    /// For tests: the `n`-th allocation from now, counted from 1, fails with [`Cause::Injected`]; 0 takes that back.
    pub fn fail_after(&self, n: u64) {
        self.inner().fail_in.store(n, Ordering::Relaxed);
        self.inner().set_limit();
    }

    /// Collects what other threads freed and gives all that is idle back to the system; how many bytes.
    ///
    /// # Errors
    /// If another thread has it entered just now.
    pub fn trim(&self) -> Result<usize, Busy> {
        self.inner().exclusively(|inner, store| {
            inner.collect(store);
            let bytes = store.trim();
            inner.publish_reserved(store);
            bytes
        })
    }

    /// Walks everything. For tests and fuzzers; cost: all spans and all free blocks.
    ///
    /// # Panics
    /// If something isn't as it must be, or if another thread has it entered just now.
    pub fn check_invariants(&self) {
        let checked = self.inner().exclusively(|inner, store| {
            inner.collect(store);
            store.check_invariants(inner.live.load(Ordering::Relaxed));
            assert_eq!(
                inner.reserved.load(Ordering::Relaxed),
                store.reserved,
                "reserved bytes"
            );
        });
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
        if self.inner().handles.fetch_sub(1, Ordering::Release) != 1 {
            return;
        }
        // All that other threads did while they owned it happens before.
        fence(Ordering::Acquire);
        // SAFETY: no handle is left, so no guard: nobody owns the arena and nobody will. Blocks keep `inner` alive
        // until `close`; if that returns true there are none, else the last of them frees it and we don't touch it.
        unsafe {
            let inner = self.inner();
            let store = &mut *inner.store.get();
            inner.collect(store);
            store.trim();
            let out = store.out;
            if inner
                .remote
                .list
                .close(out, |link| store.free(NonNull::new_unchecked(link).cast()))
            {
                drop(Box::from_raw(self.inner.as_ptr()));
            }
        }
    }
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arena")
            .field("name", &self.name())
            .field("stats", &self.stats())
            .finish()
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
        let inner = self.arena.inner();
        let mut current: *const Inner = ptr::null();
        if inner.shared.is_none() {
            current = self.arena.inner.as_ptr();
            inner.release();
        }
        let now = current::swap_arena(ptr::null());
        let next = if now == current {
            // Only an arena that this thread still owns may become current again.
            let owned = self
                .before
                .as_ref()
                .filter(|before| before.inner().is_owned());
            owned.map_or(ptr::null(), |before| before.inner.as_ptr().cast_const())
        } else {
            now
        };
        current::swap_arena(next);
    }
}

impl Inner {
    /// Whether this thread owns it. Relaxed suffices: only this thread writes this thread's number.
    #[inline]
    fn is_owned(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == current::thread()
    }

    fn acquire(&self) -> Result<(), Busy> {
        if self.is_owned() {
            self.depth.set(self.depth.get() + 1);
            return Ok(());
        }
        let me = current::named_thread();
        match self
            .owner
            .compare_exchange(NOBODY, me, Ordering::Acquire, Ordering::Relaxed)
        {
            Ok(_) => {
                self.depth.set(1);
                Ok(())
            }
            Err(_) => Err(Busy {
                who: self.name.clone(),
            }),
        }
    }

    fn release(&self) {
        debug_assert!(self.is_owned());
        let depth = self.depth.get() - 1;
        self.depth.set(depth);
        if depth == 0 {
            // SAFETY: this thread owns it until the store below, and no reference to the store exists.
            self.collect(unsafe { &mut *self.store.get() });
            self.owner.store(NOBODY, Ordering::Release);
        }
    }

    /// Runs `f` with the store, as its owner or under the mutex.
    fn exclusively<R>(&self, f: impl FnOnce(&Inner, &mut Store) -> R) -> Result<R, Busy> {
        /// Gives the arena back also when `f` panics.
        struct Owned<'a>(&'a Inner);
        impl Drop for Owned<'_> {
            fn drop(&mut self) {
                self.0.release();
            }
        }
        if let Some(mutex) = &self.shared {
            let _guard = mutex.lock().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: the mutex is held.
            return Ok(f(self, unsafe { &mut *self.store.get() }));
        }
        self.acquire()?;
        let _owned = Owned(self);
        // SAFETY: this thread owns the arena, and is nowhere inside the store: the store calls nothing of ours.
        Ok(f(self, unsafe { &mut *self.store.get() }))
    }

    fn set_limit(&self) {
        let armed = self.fail_in.load(Ordering::Relaxed) != 0;
        self.limit.store(
            if armed {
                0
            } else {
                self.cap.load(Ordering::Relaxed)
            },
            Ordering::Relaxed,
        );
    }

    fn publish_reserved(&self, store: &Store) {
        self.reserved.store(store.reserved, Ordering::Relaxed);
    }

    /// Takes back what other threads freed.
    fn collect(&self, store: &mut Store) {
        let mut bytes = 0;
        self.remote.list.take(|link| {
            // SAFETY: what is on the list are blocks of this arena that were out and were given up.
            unsafe {
                let block = NonNull::new_unchecked(link).cast();
                bytes += chunk::block_bytes(block);
                store.free(block);
            }
        });
        if bytes > 0 {
            self.live
                .store(self.live.load(Ordering::Relaxed) - bytes, Ordering::Relaxed);
            self.remote.pending.fetch_sub(bytes, Ordering::Relaxed);
            self.publish_reserved(store);
        }
    }

    /// The size of the block that `bytes` get, and its class.
    #[inline]
    fn size_for(&self, bytes: usize) -> Option<(usize, usize)> {
        let class = layout::class_of(bytes)?;
        let size = if self.per_block {
            layout::units_bytes(bytes)?
        } else {
            layout::class_bytes(class)
        };
        Some((size, class))
    }

    /// A block of `size` bytes.
    #[inline]
    fn take(
        &self,
        store: &mut Store,
        size: usize,
        class: usize,
    ) -> Result<NonNull<u8>, OutOfMemory> {
        if self.live.load(Ordering::Relaxed).saturating_add(size)
            > self.limit.load(Ordering::Relaxed)
        {
            self.beyond_limit(store, size)?;
        }
        let block = match store.take_from_bin(class) {
            Some(block) => block,
            None => self.take_slow(store, size, class)?,
        };
        let live = self.live.load(Ordering::Relaxed) + size;
        self.live.store(live, Ordering::Relaxed);
        if live > self.peak.load(Ordering::Relaxed) {
            let live = live.saturating_sub(self.remote.pending.load(Ordering::Relaxed));
            self.peak.store(
                live.max(self.peak.load(Ordering::Relaxed)),
                Ordering::Relaxed,
            );
        }
        Ok(block)
    }

    #[cold]
    fn take_slow(
        &self,
        store: &mut Store,
        size: usize,
        class: usize,
    ) -> Result<NonNull<u8>, OutOfMemory> {
        if !self.remote.list.is_empty() {
            self.collect(store);
            if let Some(block) = store.take_from_bin(class) {
                return Ok(block);
            }
        }
        let taken = store.allocate_slow(size).or_else(|_| {
            store.trim();
            store.allocate_slow(size)
        });
        self.publish_reserved(store);
        taken.map_err(|error: io::Error| {
            self.refuse(
                size,
                Cause::System(error.raw_os_error().unwrap_or(libc::ENOMEM)),
            )
        })
    }

    #[cold]
    fn beyond_limit(&self, store: &mut Store, size: usize) -> Result<(), OutOfMemory> {
        let fail_in = self.fail_in.load(Ordering::Relaxed);
        if fail_in != 0 {
            self.fail_in.store(fail_in - 1, Ordering::Relaxed);
            self.set_limit();
            if fail_in == 1 {
                return Err(self.refuse(size, Cause::Injected));
            }
        }
        self.collect(store);
        let live = self.live.load(Ordering::Relaxed);
        if live.saturating_add(size) > self.cap.load(Ordering::Relaxed) {
            return Err(self.refuse(size, Cause::ArenaCap));
        }
        Ok(())
    }

    #[cold]
    fn refuse(&self, requested: usize, cause: Cause) -> OutOfMemory {
        let cap = self.cap.load(Ordering::Relaxed);
        let pending = self.remote.pending.load(Ordering::Relaxed);
        OutOfMemory {
            requested,
            live: self.live.load(Ordering::Relaxed).saturating_sub(pending),
            cap: Some(cap).filter(|&cap| cap != usize::MAX),
            who: self.name.clone(),
            cause,
        }
    }

    /// Puts back a block of `bytes`.
    ///
    /// # Safety
    /// The block is this arena's, was out, and is given up.
    #[inline]
    unsafe fn put(&self, store: &mut Store, block: NonNull<u8>, bytes: usize) {
        // SAFETY: the same contract.
        unsafe { store.free(block) };
        self.live
            .store(self.live.load(Ordering::Relaxed) - bytes, Ordering::Relaxed);
        self.publish_reserved(store);
    }
}

fn process_wide() -> &'static Arena {
    static ARENA: OnceLock<Arena> = OnceLock::new();
    ARENA.get_or_init(|| {
        let config = ArenaConfig {
            name: "the process-wide arena".into(),
            ..ArenaConfig::default()
        };
        Arena::build(config, Some(Mutex::new(())))
    })
}

/// A block just allocated.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) start: NonNull<u8>,
    /// Its size: a multiple of 64, at least what was asked for.
    pub(crate) bytes: usize,
    /// The tag that was charged, or null.
    pub(crate) tag: *mut TagInner,
}

/// Allocates at least `bytes`, aligned to 64, in the current arena and for the current tag.
///
/// # Errors
/// Where a cap, the system, or a test refuses. Nothing has changed then.
#[inline]
pub(crate) fn allocate(bytes: usize) -> Result<Block, OutOfMemory> {
    let (current, tag) = current::get();
    // SAFETY: the current arena, unless null, is owned by this thread, and alive by the handle in its guard.
    let inner = unsafe { current.as_ref() }.unwrap_or_else(|| process_wide().inner());
    let Some((size, class)) = inner.size_for(bytes) else {
        return Err(inner.refuse(bytes, Cause::TooLarge));
    };
    // SAFETY: the current tag, unless null, is a leaked handle of this thread.
    if let Some(tag) = unsafe { tag.as_ref() } {
        tag.charge(size)?;
    }
    let start = if current.is_null() {
        inner
            .exclusively(|inner, store| inner.take(store, size, class))
            .expect("the process-wide arena is never busy")
    } else {
        // SAFETY: this thread owns the arena, and is nowhere inside the store.
        inner.take(unsafe { &mut *inner.store.get() }, size, class)
    };
    match start {
        Ok(start) => Ok(Block {
            start,
            bytes: size,
            tag,
        }),
        Err(refused) => {
            if let Some(tag) = NonNull::new(tag) {
                // SAFETY: charged above, for a block that never came to be.
                unsafe { tag::discharge(tag, size) };
            }
            Err(refused)
        }
    }
}

/// Frees a block, from any thread.
///
/// # Safety
/// `start` and `tag` are those of a [`Block`] from [`allocate`], given up by the caller.
#[inline]
pub(crate) unsafe fn free(start: NonNull<u8>, tag: *mut TagInner) {
    // SAFETY: the block is out until it is put or pushed, so its header is mapped and its arena alive. The tag was
    // charged the block's bytes.
    unsafe {
        let bytes = chunk::block_bytes(start);
        let inner = (*chunk::head_of(start)).arena;
        if (*inner).is_owned() {
            (*inner).put(&mut *(*inner).store.get(), start, bytes);
        } else {
            free_foreign(inner, start, bytes);
        }
        if let Some(tag) = NonNull::new(tag) {
            tag::discharge(tag, bytes);
        }
    }
}

/// Frees a block of an arena that this thread doesn't own.
///
/// # Safety
/// `start` is a block of `bytes` of the arena `inner`, out, given up by the caller.
#[cold]
unsafe fn free_foreign(inner: *const Inner, start: NonNull<u8>, bytes: usize) {
    // SAFETY: `inner` is alive until the block is put, pushed or settled, and isn't touched after that. Every block
    // is large enough for a link, and aligned. Once the list is closed a large block is its holder's alone, header
    // and mapping included, for the store only knows those that were put.
    unsafe {
        if (*inner).shared.is_some() {
            let put = (*inner).exclusively(|inner, store| inner.put(store, start, bytes));
            return put.expect("the process-wide arena is never busy");
        }
        (*inner).remote.pending.fetch_add(bytes, Ordering::Relaxed);
        if (*inner).remote.list.push(start.as_ptr().cast()) == Pushed::Queued {
            return;
        }
        let head: *mut Head = chunk::head_of(start);
        if (*head).large != 0 {
            unmap_large(NonNull::new_unchecked(head.cast()));
        }
        if (*inner).remote.list.settle() {
            drop(Box::from_raw(inner.cast_mut()));
        }
    }
}
