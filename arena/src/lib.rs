//! Where bytes live: per-worker memory in which blocks may be dropped on any thread.
//!
//! A worker enters its [`Arena`]; each [`Buffer`] made meanwhile lies in it. Threads that entered none share the
//! process-wide one. [`Tag`]s say whose the bytes are. Caps turn into [`OutOfMemory`], never into an abort.
//!
//! ```
//! use kpg_arena::{Arena, ArenaConfig, Buffer};
//!
//! let arena = Arena::new(ArenaConfig { cap_bytes: Some(1 << 20), ..ArenaConfig::default() });
//! let entered = arena.enter();
//! let mut buffer = Buffer::new();
//! buffer.extend_from_slice(&[1u64, 2, 3]);
//! drop(entered);
//! assert_eq!(arena.stats().live_bytes, 64);
//! std::thread::spawn(move || drop(buffer)).join().expect("the thread ends well");
//! assert_eq!(arena.stats().live_bytes, 0);
//! ```
//!
//! The tour, from the ground up:
//!
//! - `layout`: address arithmetic, without `unsafe`: size classes, chunks, alignment
//! - `runs`: the free slices of a chunk, a bitmap
//! - `map`: memory from the system
//! - `remote`: the lock-free list of blocks freed by other threads, and its loom models
//! - `chunk`: what lies where in mapped memory
//! - `store`, `store_free`: one arena's memory, the way out and the way back; `invariants` checks it
//! - `tag`: owner tags
//! - `current`: what this thread has entered
//! - `inner`: ownership, accounting, caps; allocate and free
//! - `arena`: the handle
//! - `buffer`: the owned block that everyone else uses
//! - `error`: what is refused, and why
//! - `check`: operations and a model, for quickcheck and fuzzing

mod arena;
mod buffer;
#[cfg(any(test, feature = "check"))]
#[doc(hidden)]
pub mod check;
mod chunk;
mod current;
mod error;
mod foreign;
mod inner;
mod invariants;
mod layout;
mod map;
mod remote;
mod runs;
mod store;
mod store_free;
mod tag;

#[cfg(all(test, loom))]
mod remote_loom;
#[cfg(all(test, not(loom)))]
mod tests;

pub use arena::{Arena, ArenaConfig, Entered, Stats};
pub use buffer::Buffer;
pub use error::{Busy, Cause, OutOfMemory};
pub use foreign::Foreign;
pub use tag::{EnteredTag, Tag};
