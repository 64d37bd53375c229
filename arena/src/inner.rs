//! The inside of an arena: who may use it, accounting, caps, and the paths of allocate and free.
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
//! Next stop: `arena.rs`, the handle.

use crate::arena::{Stats, process_wide};
use crate::chunk::{self, Head};
use crate::current::{self, NOBODY};
use crate::error::{Busy, Cause, OutOfMemory};
use crate::layout::{self, SMALL_CLASSES};
use crate::map;
use crate::remote::{Pushed, RemoteList};
use crate::store::{Store, StoreOptions};
use crate::store_free::unmap_large;
use crate::tag::{self, TagInner};
use std::cell::{Cell, UnsafeCell};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
    /// Handles, guards included. The blocks are not counted here: see `end`.
    pub(crate) handles: AtomicUsize,
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

impl Inner {
    /// An arena with one handle.
    pub(crate) fn leak(name: String, cap_bytes: Option<usize>, options: StoreOptions, shared: bool) -> NonNull<Inner> {
        let cap = cap_bytes.unwrap_or(usize::MAX);
        let inner = Box::new(Inner {
            name,
            per_block: options.per_block,
            shared: shared.then(|| Mutex::new(())),
            owner: AtomicU64::new(NOBODY),
            depth: Cell::new(0),
            store: UnsafeCell::new(Store::new(options)),
            live: AtomicUsize::new(0),
            peak: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            limit: AtomicUsize::new(cap),
            cap: AtomicUsize::new(cap),
            fail_in: AtomicU64::new(0),
            handles: AtomicUsize::new(1),
            remote: Remote { list: RemoteList::new(), pending: AtomicUsize::new(0) },
        });
        let inner = NonNull::from(Box::leak(inner));
        // SAFETY: nobody else knows the arena yet.
        unsafe { (*inner.as_ref().store.get()).arena = inner.as_ptr() };
        inner
    }

    /// The end of the handles: gives back what is idle, and all if no block is out; else the last block does.
    ///
    /// # Safety
    /// `this` has no handle any more, and the caller saw the last go.
    pub(crate) unsafe fn end(this: NonNull<Inner>) {
        // SAFETY: without handles there are no guards: nobody owns the arena and nobody will. Blocks keep it alive
        // until `close`; if that returns true there are none, else the last of them frees it and we don't touch it.
        unsafe {
            let inner = this.as_ref();
            let store = &mut *inner.store.get();
            inner.collect(store);
            store.trim();
            let out = store.out;
            let free = |link| store.free(NonNull::new_unchecked(link).cast());
            if inner.remote.list.close(out, free) {
                drop(Box::from_raw(this.as_ptr()));
            }
        }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is the process-wide one.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Its accounts.
    pub(crate) fn stats(&self) -> Stats {
        let pending = self.remote.pending.load(Ordering::Relaxed);
        Stats {
            reserved_bytes: self.reserved.load(Ordering::Relaxed),
            live_bytes: self.live.load(Ordering::Relaxed).saturating_sub(pending),
            peak_bytes: self.peak.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn set_cap(&self, cap_bytes: Option<usize>) {
        self.cap.store(cap_bytes.unwrap_or(usize::MAX), Ordering::Relaxed);
        self.set_limit();
    }

    pub(crate) fn fail_after(&self, n: u64) {
        self.fail_in.store(n, Ordering::Relaxed);
        self.set_limit();
    }

    pub(crate) fn fails_in(&self) -> u64 {
        self.fail_in.load(Ordering::Relaxed)
    }

    pub(crate) fn trim(&self) -> Result<usize, Busy> {
        self.exclusively(|inner, store| {
            inner.collect(store);
            let bytes = store.trim();
            inner.publish_reserved(store);
            bytes
        })
    }

    pub(crate) fn check_invariants(&self) -> Result<(), Busy> {
        self.exclusively(|inner, store| {
            inner.collect(store);
            store.check_invariants(inner.live.load(Ordering::Relaxed));
            let reserved = inner.reserved.load(Ordering::Relaxed);
            assert_eq!(reserved, store.reserved, "reserved bytes");
        })
    }

    /// Whether this thread owns it. Relaxed suffices: only this thread writes this thread's number.
    #[inline]
    pub(crate) fn is_owned(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == current::thread()
    }

    pub(crate) fn acquire(&self) -> Result<(), Busy> {
        if self.is_owned() {
            self.depth.set(self.depth.get() + 1);
            return Ok(());
        }
        let me = current::named_thread();
        match self.owner.compare_exchange(NOBODY, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                self.depth.set(1);
                Ok(())
            }
            Err(_) => Err(Busy { who: self.name.clone() }),
        }
    }

    pub(crate) fn release(&self) {
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
        self.limit.store(if armed { 0 } else { self.cap.load(Ordering::Relaxed) }, Ordering::Relaxed);
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
            self.live.store(self.live.load(Ordering::Relaxed) - bytes, Ordering::Relaxed);
            self.remote.pending.fetch_sub(bytes, Ordering::Relaxed);
            self.publish_reserved(store);
        }
    }

    /// The size of the block that `bytes` get, and its class.
    #[inline]
    fn size_for(&self, bytes: usize) -> Option<(usize, usize)> {
        let class = layout::class_of(bytes)?;
        let size = match class < SMALL_CLASSES {
            _ if self.per_block => layout::units_bytes(bytes)?,
            true => layout::class_bytes(class),
            // Mapped alone, in whole pages.
            false => bytes.next_multiple_of(map::page_bytes()),
        };
        Some((size, class))
    }

    /// A block of `size` bytes.
    #[inline]
    fn take(&self, store: &mut Store, size: usize, class: usize) -> Result<NonNull<u8>, OutOfMemory> {
        if self.live.load(Ordering::Relaxed).saturating_add(size) > self.limit.load(Ordering::Relaxed) {
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
            self.peak.store(live.max(self.peak.load(Ordering::Relaxed)), Ordering::Relaxed);
        }
        Ok(block)
    }

    #[cold]
    fn take_slow(&self, store: &mut Store, size: usize, class: usize) -> Result<NonNull<u8>, OutOfMemory> {
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
        taken.map_err(|error: io::Error| self.refuse(size, Cause::System(error.raw_os_error().unwrap_or(libc::ENOMEM))))
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
        self.live.store(self.live.load(Ordering::Relaxed) - bytes, Ordering::Relaxed);
        self.publish_reserved(store);
    }
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
        inner.exclusively(|inner, store| inner.take(store, size, class)).expect("the process-wide arena is never busy")
    } else {
        // SAFETY: this thread owns the arena, and is nowhere inside the store.
        inner.take(unsafe { &mut *inner.store.get() }, size, class)
    };
    match start {
        Ok(start) => Ok(Block { start, bytes: size, tag }),
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
