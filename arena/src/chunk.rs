//! What lies in mapped memory: chunk headers, span records, the headers of large blocks.
//!
//! ```text
//! region ── chunk 0 ─┬─ Head { arena, large: 0 }        any address in the chunk finds this by a mask
//!                    ├─ free slices, bucket links       the owner's
//!                    ├─ first[slice] → span record      fixed while a block of the span is out
//!                    ├─ spans[256]: free list, counts   the owner's, except `class`
//!                    └─ slices 2..256: blocks
//! large ──────────── Head { arena, large: bytes }, Mapping | block
//! ```
//!
//! Invariant: a thread that holds a block but isn't the owner reads only `head`, `first` and a span's `class`. They
//! were written before the block was handed out and stay until it comes back. All else is read and written by the
//! owner, through raw places: no reference to a whole header is ever made, for it would cover foreign reads.
//! Next stop: `store.rs`, which hands out what lies here.

use crate::inner::Inner;
use crate::layout::{self, SLICES};
use crate::map::Mapping;
use crate::remote::Link;
use crate::runs::Runs;
use std::ptr::NonNull;

/// What any address in a chunk, and the address of any large block, leads to.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Head {
    /// Whose block it is.
    pub(crate) arena: *const Inner,
    /// The size of the large block behind this header; 0 for a chunk.
    pub(crate) large: usize,
}

/// The header of a block mapped alone.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Large {
    pub(crate) head: Head,
    /// Where the block begins.
    pub(crate) offset: usize,
    /// The memory in which this header itself lies.
    pub(crate) mapping: Mapping,
}

/// A free block.
#[derive(Debug)]
pub(crate) struct Free {
    pub(crate) next: *mut Free,
}

/// A run of slices with blocks of one class.
#[derive(Debug)]
pub(crate) struct Span {
    /// Blocks that came back.
    pub(crate) free: *mut Free,
    /// Neighbours in the bin of its class, if `linked`.
    pub(crate) next: *mut Span,
    pub(crate) prev: *mut Span,
    /// Blocks from this index on have never been handed out; 0..=blocks.
    pub(crate) fresh: u16,
    /// Blocks that are out; 0..=blocks.
    pub(crate) used: u16,
    /// Blocks that it holds; 1..=512.
    pub(crate) blocks: u16,
    /// Its first slice; 2..256. Slices in it: by class.
    pub(crate) first: u16,
    pub(crate) class: u8,
    /// In its bin. It is exactly while a block can be had.
    pub(crate) linked: bool,
}

/// A region: one mapping, cut in chunks.
#[derive(Debug)]
pub(crate) struct Region {
    pub(crate) mapping: Mapping,
    /// How many chunks it holds.
    pub(crate) chunks: usize,
    /// Chunks from this index on have no header yet.
    pub(crate) fresh: usize,
    /// Chunks with no block out, those without a header included.
    pub(crate) idle: usize,
    /// Its index in the store's list.
    pub(crate) index: usize,
}

impl Region {
    /// Whether no block of it is out.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle == self.chunks
    }
}

/// The header of a chunk.
#[repr(C)]
pub(crate) struct Chunk {
    pub(crate) head: Head,
    pub(crate) region: NonNull<Region>,
    /// Neighbours in its bucket.
    pub(crate) next: *mut Chunk,
    pub(crate) prev: *mut Chunk,
    /// Slices not in a span.
    pub(crate) runs: Runs,
    /// The longest run in `runs`. The bucket is its logarithm; 0 means in no bucket.
    pub(crate) longest: usize,
    /// Spans with a block out.
    pub(crate) busy: usize,
    /// For each slice of a span the span's first slice.
    pub(crate) first: [u8; SLICES],
    /// By first slice.
    pub(crate) spans: [Span; SLICES],
}

const _: () = assert!(size_of::<Chunk>() <= layout::HEADER_SLICES * layout::SLICE);
const _: () = assert!(size_of::<Span>() == 40);
const _: () = assert!(size_of::<Large>() <= 4096 && size_of::<Link>() <= layout::UNIT);

/// The header that `block` belongs to.
#[inline]
pub(crate) fn head_of(block: NonNull<u8>) -> *mut Head {
    let address = block.as_ptr();
    // The mask keeps provenance: it is pointer arithmetic within one mapping.
    address.wrapping_sub(layout::offset_in_chunk(address.addr())).cast()
}

/// The span that a small block belongs to.
///
/// # Safety
/// `block` is out, and lies in a chunk.
#[inline]
pub(crate) unsafe fn span_of(block: NonNull<u8>) -> *mut Span {
    let chunk: *mut Chunk = head_of(block).cast();
    let slice = layout::slice_of(layout::offset_in_chunk(block.addr().get()));
    // SAFETY: the chunk's header is mapped while a block of it is out, and `first` is fixed for this slice. The
    // slice is below SLICES, as the offset is below CHUNK; the record's address is taken, no reference made.
    unsafe {
        let first = (*chunk).first[slice];
        &raw mut (*chunk).spans[usize::from(first)]
    }
}

/// The size of a block.
///
/// # Safety
/// `block` is out.
#[inline]
pub(crate) unsafe fn block_bytes(block: NonNull<u8>) -> usize {
    // SAFETY: the header is mapped while the block is out; `large` and `class` are fixed for as long.
    unsafe {
        match (*head_of(block)).large {
            0 => layout::class_bytes(usize::from((*span_of(block)).class)),
            bytes => bytes,
        }
    }
}

/// Where the blocks of a span begin.
///
/// # Safety
/// `span` is a span record in a chunk's header.
#[inline]
pub(crate) unsafe fn span_base(span: *mut Span) -> *mut u8 {
    // A record lies in the header, hence in the chunk: the same mask finds the chunk's start.
    let start = span.cast::<u8>().wrapping_sub(layout::offset_in_chunk(span.addr()));
    // SAFETY: the caller's record is readable; `first` is below SLICES, so the result lies in the chunk.
    unsafe { start.add(usize::from((*span).first) * layout::SLICE) }
}

/// The chunk in whose header the record `span` lies.
pub(crate) fn chunk_of(span: *mut Span) -> *mut Chunk {
    span.cast::<u8>().wrapping_sub(layout::offset_in_chunk(span.addr())).cast()
}
