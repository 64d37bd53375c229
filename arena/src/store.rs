//! The memory of one arena: bins of spans, buckets of chunks, regions, large blocks.
//!
//! To allocate:
//! 1. The bin of the class has a span with a block: take it. (The hot path: no search, no atomics.)
//! 2. Else make a span: the chunk with the shortest sufficient run of free slices, by bucket (the logarithm of a
//!    chunk's longest run); else the next chunk of the newest region; else a new region.
//! 3. Sizes beyond the small classes are mapped alone, or taken from those cached.
//!
//! To free: back on its span's list. A span that is empty gives its slices back, unless it is the last with room in
//! its bin (so that one block allocated and freed in turn costs no span). A chunk is busy while it has a block out. A
//! region with no busy chunk, and a free large block, is IDLE: kept while at most `slack` bytes are, then given back
//! to the system.
//!
//! Invariants: a span is in its bin exactly while it has a block to give; a chunk is in the bucket of its longest
//! run; at most one region has chunks without a header. One thread at a time (`inner.rs` sees to it).
//! Next stop: `store_free.rs`, the way back; then `inner.rs`.

use crate::chunk::{self, Chunk, Free, Head, Large, Region, Span};
use crate::inner::Inner;
use crate::layout::{self, CHUNK, HEADER_SLICES, SLICES, SMALL_CLASSES};
use crate::map::{self, MapOptions, Mapping};
use crate::runs::Runs;
use std::io;
use std::ptr::{self, NonNull};

/// Buckets 1..=8 hold chunks whose longest run has that logarithm plus one; bucket 0 is not used.
pub(crate) const BUCKETS: usize = 9;

/// How a store behaves.
#[derive(Clone, Debug)]
pub(crate) struct StoreOptions {
    pub(crate) map: MapOptions,
    /// Chunks in a region.
    pub(crate) region_chunks: usize,
    /// Idle bytes that are kept.
    pub(crate) slack: usize,
    /// Each block has its own mapping with a guard page, unmapped when freed.
    pub(crate) per_block: bool,
}

/// The memory of one arena. Not for two threads at once.
#[derive(Debug)]
pub(crate) struct Store {
    /// Written into headers; never followed here.
    pub(crate) arena: *const Inner,
    pub(crate) options: StoreOptions,
    /// By class, the spans with room.
    pub(crate) bins: [*mut Span; SMALL_CLASSES],
    pub(crate) buckets: [*mut Chunk; BUCKETS],
    pub(crate) regions: Vec<NonNull<Region>>,
    /// The region whose chunks don't all have headers yet, or null.
    pub(crate) fresh: *mut Region,
    /// Large blocks that are free, oldest first.
    pub(crate) cached: Vec<NonNull<Large>>,
    /// Bytes mapped.
    pub(crate) reserved: usize,
    /// Bytes mapped in idle regions and cached large blocks.
    pub(crate) idle: usize,
    /// Blocks that are out.
    pub(crate) out: usize,
    /// Of those, large ones, and their bytes.
    pub(crate) large_out: usize,
    pub(crate) large_bytes: usize,
}

impl Store {
    pub(crate) fn new(options: StoreOptions) -> Store {
        Store {
            arena: ptr::null(),
            options,
            bins: [ptr::null_mut(); SMALL_CLASSES],
            buckets: [ptr::null_mut(); BUCKETS],
            regions: Vec::new(),
            fresh: ptr::null_mut(),
            cached: Vec::new(),
            reserved: 0,
            idle: 0,
            out: 0,
            large_out: 0,
            large_bytes: 0,
        }
    }

    /// A block from the bin of its class, if it has one.
    #[inline]
    pub(crate) fn take_from_bin(&mut self, class: usize) -> Option<NonNull<u8>> {
        let span = *self.bins.get(class)?;
        if span.is_null() {
            return None;
        }
        // SAFETY: a span in a bin is a live record of ours with a block to give: one on its list, or a fresh one.
        // What is on its list lies in it and was given up; a fresh block lies in it too, as fresh < blocks.
        let block = unsafe {
            if (*span).used == 0 {
                self.span_wakes(span);
            }
            (*span).used += 1;
            let free = (*span).free;
            let block = if free.is_null() {
                let at = usize::from((*span).fresh) * layout::class_bytes(class);
                (*span).fresh += 1;
                chunk::span_base(span).add(at)
            } else {
                (*span).free = (*free).next;
                free.cast()
            };
            if (*span).used == (*span).blocks {
                self.unlink_span(span);
            }
            NonNull::new_unchecked(block)
        };
        self.out += 1;
        Some(block)
    }

    /// A block where the bin has none.
    ///
    /// # Errors
    /// What the system says when it gives no memory. Nothing has changed then.
    #[cold]
    pub(crate) fn allocate_slow(&mut self, size: usize) -> io::Result<NonNull<u8>> {
        let class = layout::class_of(size).filter(|_| !self.options.per_block);
        match class {
            Some(class) if class < SMALL_CLASSES => {
                self.make_span(class)?;
                Ok(self.take_from_bin(class).expect("the new span has blocks"))
            }
            _ => self.allocate_large(size),
        }
    }

    fn allocate_large(&mut self, size: usize) -> io::Result<NonNull<u8>> {
        let large = match self.take_cached(size) {
            Some(large) => large,
            None => self.map_large(size)?,
        };
        self.out += 1;
        self.large_out += 1;
        self.large_bytes += size;
        // SAFETY: the block lies `offset` into the mapping that begins with this header.
        Ok(unsafe { large.cast::<u8>().add(large.as_ref().offset) })
    }

    /// The least cached block that is long enough: its pages are touched already, and to clear new ones costs more than
    /// anything else here. What it has too much, in whole chunks, stays cached.
    fn take_cached(&mut self, size: usize) -> Option<NonNull<Large>> {
        let (offset, needed) = layout::alone(size, map::page_bytes(), false);
        // SAFETY: cached headers are mapped, and ours.
        let bytes_of = |large: &NonNull<Large>| unsafe { large.as_ref() }.mapping.bytes();
        let fitting = self.cached.iter().enumerate().map(|(index, large)| (bytes_of(large), std::cmp::Reverse(index)));
        let (bytes, std::cmp::Reverse(index)) = fitting.filter(|(bytes, _)| *bytes >= needed).min()?;
        let mut large = self.cached[index];
        // SAFETY: as above; no other reference to the header exists.
        let header = unsafe { large.as_mut() };
        // A block begins in the chunk of its header, so the next one can begin where the next chunk does.
        match header.mapping.split(needed.next_multiple_of(CHUNK)) {
            Some(rest) => {
                let size = rest.bytes() - offset;
                self.cached[index] = self.begin_large(rest, offset, size);
            }
            // What can't be cut would lie waste.
            None if bytes / 2 > needed => return None,
            None => drop(self.cached.remove(index)),
        }
        header.head.large = size;
        self.idle -= header.mapping.bytes();
        Some(large)
    }

    /// Writes the header of a large block.
    fn begin_large(&self, mapping: Mapping, offset: usize, size: usize) -> NonNull<Large> {
        let large = mapping.base().cast::<Large>();
        let head = Head { arena: self.arena, large: size };
        // SAFETY: nobody has anything in the mapping; its first page is aligned, and as large as a header; the block begins
        // after it (`alone`).
        unsafe { large.write(Large { head, offset, mapping }) };
        large
    }

    fn map_large(&mut self, size: usize) -> io::Result<NonNull<Large>> {
        let (offset, bytes) = layout::alone(size, map::page_bytes(), self.options.per_block);
        let mapping = Mapping::new(bytes, self.options.per_block, &self.options.map)?;
        self.reserved += mapping.bytes();
        Ok(self.begin_large(mapping, offset, size))
    }

    /// Cuts a span for `class` and links it in its bin.
    fn make_span(&mut self, class: usize) -> io::Result<()> {
        let slices = layout::span_slices(class);
        let chunk = match self.chunk_with(slices) {
            Some(chunk) => chunk,
            None => self.make_chunk()?,
        };
        // SAFETY: `chunk` is a live header of ours with a run of `slices` free slices, and no reference into it
        // outlives a line. The record written is that of a slice that was free, so nobody reads it.
        unsafe {
            let mut runs = (*chunk).runs;
            let first = runs.find(slices).expect("the bucket says that it fits");
            runs.take(first, slices);
            self.set_runs(chunk, runs);
            for slice in first..first + slices {
                (*chunk).first[slice] = first as u8;
            }
            let span = &raw mut (*chunk).spans[first];
            span.write(Span {
                free: ptr::null_mut(),
                next: ptr::null_mut(),
                prev: ptr::null_mut(),
                fresh: 0,
                used: 0,
                blocks: layout::span_blocks(class) as u16,
                first: first as u16,
                class: class as u8,
                linked: false,
            });
            self.link_span(span);
        }
        Ok(())
    }

    /// The chunk whose longest run is about the shortest that suffices.
    fn chunk_with(&self, slices: usize) -> Option<*mut Chunk> {
        /// Chunks to look at in the one bucket where some fit and some don't: a bound on the cost.
        const TRIES: usize = 8;
        let bucket = bucket_of(slices);
        let mut chunk = self.buckets[bucket];
        for _ in 0..TRIES {
            if chunk.is_null() {
                break;
            }
            // SAFETY: chunks in a bucket are live headers of ours.
            unsafe {
                if (*chunk).longest >= slices {
                    return Some(chunk);
                }
                chunk = (*chunk).next;
            }
        }
        self.buckets[bucket + 1..].iter().copied().find(|chunk| !chunk.is_null())
    }

    /// Gives the next chunk a header, in a new region if need be.
    fn make_chunk(&mut self) -> io::Result<*mut Chunk> {
        if self.fresh.is_null() {
            self.map_region()?;
        }
        let mut region = NonNull::new(self.fresh).expect("mapped just now");
        // SAFETY: the region is live and only ours. The chunk lies in its mapping, whose pages are zero and which
        // nobody has seen: zero is valid for everything in a chunk's header except `region`, and that is written
        // first, through a raw place.
        unsafe {
            let region_mut = region.as_mut();
            let chunk: *mut Chunk = region_mut.mapping.base().as_ptr().add(region_mut.fresh * CHUNK).cast();
            region_mut.fresh += 1;
            if region_mut.fresh == region_mut.chunks {
                self.fresh = ptr::null_mut();
            }
            (&raw mut (*chunk).region).write(region);
            (&raw mut (*chunk).head).write(Head { arena: self.arena, large: 0 });
            self.set_runs(chunk, Runs::all_but(HEADER_SLICES));
            Ok(chunk)
        }
    }

    fn map_region(&mut self) -> io::Result<()> {
        let chunks = self.options.region_chunks;
        let mapping = Mapping::new(chunks * CHUNK, false, &self.options.map)?;
        self.reserved += mapping.bytes();
        self.idle += mapping.bytes();
        let index = self.regions.len();
        let region = Box::new(Region { mapping, chunks, fresh: 0, idle: chunks, index });
        let region = NonNull::from(Box::leak(region));
        self.regions.push(region);
        self.fresh = region.as_ptr();
        Ok(())
    }

    /// A span is about to give its first block.
    ///
    /// # Safety
    /// `span` is a live record of ours.
    #[inline]
    unsafe fn span_wakes(&mut self, span: *mut Span) {
        let chunk: *mut Chunk = chunk::chunk_of(span);
        // SAFETY: a record lies in a live header of ours; regions that chunks point to are live and only ours, and
        // no other reference exists.
        unsafe {
            (*chunk).busy += 1;
            if (*chunk).busy == 1 {
                let region = (*chunk).region.as_mut();
                if region.is_idle() {
                    self.idle -= region.mapping.bytes();
                }
                region.idle -= 1;
            }
        }
    }

    /// Sets the free slices of a chunk and moves it to the bucket where it now belongs.
    ///
    /// # Safety
    /// `chunk` is a live header of ours.
    pub(crate) unsafe fn set_runs(&mut self, chunk: *mut Chunk, runs: Runs) {
        let longest = runs.longest();
        // SAFETY: the caller's header; its neighbours in the bucket are live headers of ours too.
        unsafe {
            (*chunk).runs = runs;
            let (old, new) = (bucket_of((*chunk).longest), bucket_of(longest));
            (*chunk).longest = longest;
            if old == new {
                return;
            }
            if old != 0 {
                self.unlink_chunk(chunk, old);
            }
            if new != 0 {
                let head = self.buckets[new];
                (*chunk).prev = ptr::null_mut();
                (*chunk).next = head;
                if !head.is_null() {
                    (*head).prev = chunk;
                }
                self.buckets[new] = chunk;
            }
        }
    }

    /// Takes a chunk out of its bucket.
    ///
    /// # Safety
    /// `chunk` is a live header of ours, in `bucket`.
    pub(crate) unsafe fn unlink_chunk(&mut self, chunk: *mut Chunk, bucket: usize) {
        // SAFETY: what is in a bucket, the neighbours included, are live headers of ours.
        unsafe {
            let (prev, next) = ((*chunk).prev, (*chunk).next);
            if prev.is_null() {
                self.buckets[bucket] = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
        }
    }

    /// Puts a span at the head of its bin.
    ///
    /// # Safety
    /// `span` is a live record of ours, not linked.
    pub(crate) unsafe fn link_span(&mut self, span: *mut Span) {
        // SAFETY: the caller's record; the head of the bin is a live record of ours.
        unsafe {
            let bin = &mut self.bins[usize::from((*span).class)];
            let head = *bin;
            (*span).linked = true;
            (*span).prev = ptr::null_mut();
            (*span).next = head;
            if !head.is_null() {
                (*head).prev = span;
            }
            *bin = span;
        }
    }

    /// Takes a span out of its bin.
    ///
    /// # Safety
    /// `span` is a live record of ours, linked.
    pub(crate) unsafe fn unlink_span(&mut self, span: *mut Span) {
        // SAFETY: the caller's record; its neighbours are live records of ours.
        unsafe {
            let (prev, next) = ((*span).prev, (*span).next);
            (*span).linked = false;
            if prev.is_null() {
                self.bins[usize::from((*span).class)] = next;
            } else {
                (*prev).next = next;
            }
            if !next.is_null() {
                (*next).prev = prev;
            }
        }
    }

    /// Adds a block that came back to the list of its span.
    ///
    /// # Safety
    /// `block` is a small block of ours that was out and is given up.
    #[inline]
    pub(crate) unsafe fn free_small(&mut self, block: NonNull<u8>) {
        // SAFETY: the block is ours alone now, aligned to 64 and large enough for a link; its span is live.
        unsafe {
            let span = chunk::span_of(block);
            let free = block.as_ptr().cast::<Free>();
            (*free).next = (*span).free;
            (*span).free = free;
            (*span).used -= 1;
            self.out -= 1;
            if !(*span).linked {
                self.link_span(span);
            }
            if (*span).used == 0 {
                self.span_is_empty(span);
            }
        }
    }
}

/// The bucket of a chunk whose longest run is `longest`.
#[inline]
pub(crate) fn bucket_of(longest: usize) -> usize {
    debug_assert!(longest < SLICES);
    match longest {
        0 => 0,
        longest => longest.ilog2() as usize + 1,
    }
}
