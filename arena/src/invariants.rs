//! What must be true of a store at any moment between two calls. For tests and fuzzers.
//!
//! Each span is found twice, from its chunk and from its bin; each free block must lie in its span, once, among those
//! handed out before. Blocks can't overlap, as spans are disjoint by the bitmap, and places in a span are numbered.

use crate::chunk::{self, Chunk, Span};
use crate::layout::{self, CHUNK, HEADER_SLICES, SLICES};
use crate::store::{Store, bucket_of};
use std::collections::HashSet;
use std::ptr;

impl Store {
    /// Panics unless everything is as it must be.
    pub(crate) fn check_invariants(&self, live: usize) {
        let mut spans = HashSet::new();
        let mut chunks = HashSet::new();
        let (mut used, mut used_bytes, mut reserved, mut idle) = (0, 0, 0, 0);
        for (index, region) in self.regions.iter().enumerate() {
            // SAFETY: listed regions are live and only ours.
            let region = unsafe { region.as_ref() };
            assert_eq!(region.index, index);
            assert_eq!(region.mapping.bytes(), region.chunks * CHUNK);
            assert!(region.fresh == region.chunks || ptr::eq(region, self.fresh), "headers missing in an old region");
            let mut quiet = region.chunks - region.fresh;
            for at in 0..region.fresh {
                let chunk: *mut Chunk = region.mapping.base().as_ptr().wrapping_add(at * CHUNK).cast();
                // SAFETY: the first `fresh` chunks have live headers.
                unsafe {
                    assert!(ptr::eq((*chunk).region.as_ptr(), region));
                    let busy = check_chunk(self, chunk, &mut spans, &mut used, &mut used_bytes);
                    assert_eq!((*chunk).busy, busy, "busy spans of a chunk");
                    quiet += usize::from(busy == 0);
                }
                chunks.insert(chunk.addr());
            }
            assert_eq!(region.idle, quiet, "idle chunks of a region");
            reserved += region.mapping.bytes();
            idle += if region.is_idle() { region.mapping.bytes() } else { 0 };
        }
        let cached: usize = self
            .cached
            .iter()
            // SAFETY: cached headers are live and only ours.
            .map(|large| unsafe { large.as_ref() }.mapping.bytes())
            .sum();
        assert_eq!(self.idle, idle + cached, "idle bytes");
        assert!(self.reserved >= reserved + cached + self.large_bytes, "reserved bytes");
        assert!(self.large_out > 0 || self.reserved == reserved + cached, "reserved bytes without large blocks");
        assert_eq!(self.out, used + self.large_out, "blocks out");
        assert_eq!(live, used_bytes + self.large_bytes, "live bytes");
        self.check_bins(spans);
        self.check_buckets(chunks);
    }

    /// The bins link exactly the spans with room, and at most one of a bin is empty.
    fn check_bins(&self, mut spans: HashSet<usize>) {
        for (class, &bin) in self.bins.iter().enumerate() {
            let (mut prev, mut span, mut empty) = (ptr::null_mut::<Span>(), bin, 0);
            while !span.is_null() {
                assert!(spans.remove(&span.addr()), "a bin links something that is no span with room");
                // SAFETY: it was among the live spans.
                unsafe {
                    assert_eq!(usize::from((*span).class), class);
                    assert_eq!((*span).prev, prev);
                    empty += usize::from((*span).used == 0);
                    (prev, span) = (span, (*span).next);
                }
            }
            assert!(empty <= 1, "{empty} empty spans of class {class}");
        }
        assert!(spans.is_empty(), "{} spans with room in no bin", spans.len());
    }

    /// The buckets link exactly the chunks with free slices.
    fn check_buckets(&self, mut chunks: HashSet<usize>) {
        for (bucket, &first) in self.buckets.iter().enumerate() {
            let (mut prev, mut chunk) = (ptr::null_mut::<Chunk>(), first);
            while !chunk.is_null() {
                assert!(chunks.remove(&chunk.addr()), "a bucket links something that is no chunk");
                // SAFETY: it was among the live chunks.
                unsafe {
                    assert_eq!(bucket_of((*chunk).longest), bucket);
                    assert_eq!((*chunk).prev, prev);
                    (prev, chunk) = (chunk, (*chunk).next);
                }
            }
        }
        for chunk in chunks {
            let chunk: *mut Chunk = ptr::with_exposed_provenance_mut(chunk);
            // SAFETY: it was among the live chunks.
            let longest = unsafe { (*chunk).longest };
            assert_eq!(longest, 0, "a chunk with free slices is in no bucket");
        }
    }
}

/// Checks a chunk and its spans; the number of busy ones.
///
/// # Safety
/// `chunk` is a live header of the store.
unsafe fn check_chunk(
    store: &Store,
    chunk: *mut Chunk,
    spans: &mut HashSet<usize>,
    used: &mut usize,
    used_bytes: &mut usize,
) -> usize {
    chunk.expose_provenance();
    let mut busy = 0;
    // SAFETY: the header is live; a slice that isn't free is in the span that `first` names.
    unsafe {
        assert_eq!((*chunk).head.arena, store.arena);
        assert_eq!((*chunk).head.large, 0);
        let runs = (*chunk).runs;
        assert_eq!((*chunk).longest, runs.longest());
        assert!((0..HEADER_SLICES).all(|slice| !runs.has(slice)), "the header's slices are free");
        let mut slice = HEADER_SLICES;
        while slice < SLICES {
            if runs.has(slice) {
                slice += 1;
                continue;
            }
            let span = &raw mut (*chunk).spans[slice];
            let class = usize::from((*span).class);
            let end = slice + layout::span_slices(class);
            assert_eq!(usize::from((*span).first), slice);
            assert!(end <= SLICES);
            assert!((slice..end).all(|at| !runs.has(at) && usize::from((*chunk).first[at]) == slice));
            check_span(span);
            assert_eq!((*span).linked, (*span).used < (*span).blocks);
            if (*span).linked {
                spans.insert(span.expose_provenance());
            }
            *used += usize::from((*span).used);
            *used_bytes += usize::from((*span).used) * layout::class_bytes(class);
            busy += usize::from((*span).used > 0);
            slice = end;
        }
    }
    busy
}

/// Checks the free list of a span.
///
/// # Safety
/// `span` is a live record of the store.
unsafe fn check_span(span: *mut Span) {
    // SAFETY: the record is live; what is on its list are free blocks, each checked to lie in the span before its
    // link is followed.
    unsafe {
        let class = usize::from((*span).class);
        assert_eq!(usize::from((*span).blocks), layout::span_blocks(class));
        let base = chunk::span_base(span).addr();
        let mut seen = HashSet::new();
        let mut free = (*span).free;
        while !free.is_null() {
            let offset = free.addr().checked_sub(base).expect("a free block lies before its span");
            let place = offset / layout::class_bytes(class);
            assert_eq!(offset % layout::class_bytes(class), 0, "a free block between two places");
            assert!(place < usize::from((*span).fresh), "a free block that was never handed out");
            assert!(seen.insert(place), "a block is free twice");
            free = (*free).next;
        }
        assert_eq!(seen.len() + usize::from((*span).used), usize::from((*span).fresh), "a block was lost");
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::chunk::{Free, span_of};
    use crate::map::MapOptions;
    use crate::store::{Store, StoreOptions};
    use std::ptr::NonNull;

    fn store() -> Store {
        Store::new(StoreOptions { map: MapOptions::default(), region_chunks: 1, slack: 0, per_block: false })
    }

    /// Allocates two blocks of 64 bytes and frees the second.
    fn one_out_one_free(store: &mut Store) -> NonNull<u8> {
        let first = store.allocate_slow(64).expect("there is as much memory");
        let second = store.take_from_bin(0).expect("there is as much memory");
        // SAFETY: the block was just handed out.
        unsafe { store.free(second) };
        store.check_invariants(64);
        first
    }

    #[test]
    #[should_panic(expected = "a block is free twice")]
    fn a_cycle_of_free_blocks_is_seen() {
        let mut store = store();
        let first = one_out_one_free(&mut store);
        // SAFETY: the span is live; its list has the block freed before.
        unsafe { (*(*span_of(first)).free).next = (*span_of(first)).free };
        store.check_invariants(64);
    }

    #[test]
    #[should_panic(expected = "a block was lost")]
    fn a_block_that_is_out_and_free_is_seen() {
        let mut store = store();
        let first = one_out_one_free(&mut store);
        // SAFETY: the block is large enough for a link, and its span is live.
        unsafe {
            let free = first.as_ptr().cast::<Free>();
            (*free).next = (*span_of(first)).free;
            (*span_of(first)).free = free;
        }
        store.check_invariants(64);
    }

    #[test]
    #[should_panic(expected = "live bytes")]
    fn wrong_accounts_are_seen() {
        let mut store = store();
        one_out_one_free(&mut store);
        store.check_invariants(128);
    }
}
