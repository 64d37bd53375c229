//! Loom models of the remote-free list, each with mutants that it must reject.
//!
//! `RUSTFLAGS="--cfg loom" cargo test --profile loom -p kpg-arena --lib loom`
//!
//! A block is a `Link` and a payload in a loom cell: who frees writes the payload last, who collects reads it, so a
//! missing edge shows as a race (but not the one that the acquiring load in `push_with` makes: loom always lets a
//! subtraction see the newest value, so that load rests on the argument given there). The arena is a cell that everyone
//! reads while using it and the last one writes.

use crate::remote::{Link, Orders, Pushed, RemoteList};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use loom::thread;

const RIGHT: Orders = Orders { push: Release, take: Acquire, close: Release, closed: Acquire, settle: AcqRel };

/// A block; the link comes first.
#[repr(C)]
struct Block {
    link: Link,
    payload: UnsafeCell<u32>,
}

fn block(payload: u32) -> Sent {
    Sent(Box::into_raw(Box::new(Block { link: Link::new(), payload: UnsafeCell::new(payload) })))
}

/// A block on its way to another thread.
struct Sent(*mut Block);
// SAFETY: a block has one holder.
unsafe impl Send for Sent {}

impl Sent {
    /// Writes the payload, as its holder.
    fn write(&self) {
        // SAFETY: the block is alive and loom checks that nobody else uses the payload.
        unsafe { (*self.0).payload.with_mut(|payload| *payload += 100) };
    }
}

/// Frees a collected block; its payload.
fn collect(link: *mut Link) -> u32 {
    // SAFETY: the block was given up by its pusher; the link is its first field.
    let block = unsafe { Box::from_raw(link.cast::<Block>()) };
    // SAFETY: loom checks that nobody else uses the payload.
    block.payload.with_mut(|payload| unsafe { *payload })
}

struct Shared {
    list: RemoteList,
    arena: UnsafeCell<bool>,
}

// SAFETY: loom checks the cell; the list is made for it.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

fn shared() -> Arc<Shared> {
    Arc::new(Shared { list: RemoteList::new(), arena: UnsafeCell::new(true) })
}

impl Shared {
    /// Uses the arena, as everyone does up to the last touch of the list.
    fn touch(&self) {
        // SAFETY: loom checks that nobody frees it at the same time.
        self.arena.with(|alive| assert!(unsafe { *alive }));
    }

    /// Frees the arena.
    fn end(&self) {
        // SAFETY: loom checks that nobody uses it at the same time.
        self.arena.with_mut(|alive| assert!(unsafe { std::mem::replace(&mut *alive, false) }, "freed twice"));
    }

    fn free(&self, block: Sent, orders: Orders) {
        block.write();
        self.touch();
        // SAFETY: the block is this thread's, and given up.
        if unsafe { self.list.push_with(block.0.cast(), orders) } == Pushed::Closed {
            // The memory goes with the arena; here it must not leak.
            collect(block.0.cast());
            self.touch();
            if self.list.settle_with(orders) {
                self.end();
            }
        }
    }
}

/// Two threads push; the owner takes meanwhile and afterwards; every block arrives once, with what was written.
fn pushes_arrive(push: fn(&RemoteList, Sent, Orders), orders: Orders) {
    loom::model(move || {
        let shared = shared();
        let pushers: Vec<_> = [1, 2]
            .map(|payload| {
                let (shared, block) = (shared.clone(), block(payload));
                thread::spawn(move || {
                    block.write();
                    push(&shared.list, block, orders);
                })
            })
            .into();
        let mut sum = 0;
        shared.list.take_with(orders, |link| sum += collect(link));
        for pusher in pushers {
            pusher.join().expect("the thread ends well");
        }
        shared.list.take_with(orders, |link| sum += collect(link));
        assert_eq!(sum, 203, "a block was lost");
    });
}

/// One thread frees two blocks in turn while the owner takes.
fn one_pusher(orders: Orders) {
    loom::model(move || {
        let shared = shared();
        let blocks = [block(1), block(2)];
        let pusher = {
            let shared = shared.clone();
            thread::spawn(move || blocks.map(|block| shared.free(block, orders)))
        };
        let mut sum = 0;
        shared.list.take_with(orders, |link| sum += collect(link));
        pusher.join().expect("the thread ends well");
        shared.list.take_with(orders, |link| sum += collect(link));
        assert_eq!(sum, 203);
    });
}

/// The owner closes while two threads free a block each: the arena ends exactly once, after everyone's last use.
fn closes(orders: Orders) {
    loom::model(move || {
        let shared = shared();
        let freers: Vec<_> = [1, 2]
            .map(|payload| {
                let (shared, block) = (shared.clone(), block(payload));
                thread::spawn(move || shared.free(block, orders))
            })
            .into();
        shared.touch();
        if shared.list.close_with(orders, 2, |link| assert!(collect(link) > 100)) {
            shared.end();
        }
        for freer in freers {
            freer.join().expect("the thread ends well");
        }
        shared.arena.with(|alive| {
            // SAFETY: all others have ended.
            assert!(!unsafe { *alive }, "the arena was never freed");
        });
    });
}

fn push(list: &RemoteList, block: Sent, orders: Orders) {
    // SAFETY: the block is this thread's, and given up; the list is never closed here.
    assert_eq!(unsafe { list.push_with(block.0.cast(), orders) }, Pushed::Queued);
}

/// The mutant that stores instead of comparing: it loses what came in between.
fn push_by_store(list: &RemoteList, block: Sent, _: Orders) {
    // SAFETY: the block is this thread's, and given up.
    unsafe { list.push_by_store(block.0.cast()) };
}

#[test]
fn loom_pushes_arrive() {
    pushes_arrive(push, RIGHT);
}

#[test]
fn loom_one_pusher() {
    one_pusher(RIGHT);
}

#[test]
fn loom_closes() {
    closes(RIGHT);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_rejects_a_relaxed_push() {
    pushes_arrive(push, Orders { push: Relaxed, ..RIGHT });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_rejects_a_relaxed_take() {
    one_pusher(Orders { take: Relaxed, ..RIGHT });
}

#[test]
#[should_panic(expected = "a block was lost")]
fn loom_rejects_a_push_by_store() {
    pushes_arrive(push_by_store, RIGHT);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_rejects_a_relaxed_close() {
    closes(Orders { close: Relaxed, ..RIGHT });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn loom_rejects_a_relaxed_settle() {
    closes(Orders { settle: Relaxed, ..RIGHT });
}
