//! Traces: shared, indexed, multiversioned sets of updates.
//!
//! ```text
//! updates ─▶ Batcher ─ seal ─▶ batch_from_sorted ─▶ OrdBatch ─▶ TraceWriter ─▶ Spine ─▶ TraceHandle ─▶ Cursor
//!                                                                    └─▶ Published ─▶ Snapshot, import
//! ```
//! In the order of reading: `traits` (what operators know), `layers`, `cursor`, `builder`, `rows`, `consolidate`, `runs`, `batcher`, `merge`, `queue`,
//! `published_list`, `spine`, `handle`, `writer`, `published`, `snapshot`, and `wrap`, the views that copy nothing. Knows no
//! operators.
#![forbid(unsafe_code)]

mod batcher;
mod builder;
#[cfg(any(test, feature = "check"))]
#[doc(hidden)]
pub mod check;
mod compare;
mod consolidate;
mod cursor;
mod handle;
mod hold;
mod later;
mod layers;
mod list;
mod merge;
mod policy;
mod published;
mod published_list;
mod queue;
mod readers;
mod rows;
mod runs;
mod snapshot;
mod spine;
mod traits;
mod wrap;
mod writer;

pub use batcher::Batcher;
pub use builder::{Builder, batch_from_sorted, empty_batch};
pub use consolidate::{consolidate_times, sort_and_consolidate, sort_and_consolidate_with};
pub use cursor::LayersCursor;
pub use handle::{TraceHandle, WeakTrace};
pub use hold::{Hold, ImportHold, SnapshotError};
pub use layers::{Layers, OrdBatch, start};
pub use list::CursorList;
pub use merge::{Merge, MergeBatch, Merger, SealBatch};
pub use policy::MergePolicy;
pub use published::{Published, Shard, WeakPublished, shard_of};
pub use published_list::BatchList;
pub use snapshot::Snapshot;
pub use spine::{Spine, TraceStats};
pub use traits::{Batch, Cursor, Delivery, Ref, Trace};
pub use wrap::{
    AsOfBatch, AsOfCursor, AsOfTrace, EnterBatch, EnterCursor, EnterTrace, FilterBatch, FilterCursor, FilterTrace,
    NegateBatch, NegateCursor, NegateTrace,
};
pub use writer::TraceWriter;
