//! The way back to the system: empty spans, idle regions, large blocks; and the end of a store.
//!
//! Cost: a span that gets empty is given back in the time of a bitmap search; `trim` visits each region once, and
//! the slices of those that it unmaps or thins out. Next stop: `inner.rs`.

use crate::chunk::{self, Chunk, Head, Large, Region, Span};
use crate::layout::{CHUNK, HEADER_SLICES, SLICE, SLICES, SMALL_CLASSES, span_slices};
use crate::store::{Store, bucket_of};
use std::ptr::{self, NonNull};

/// The bytes of large blocks in use, divided by this, may be kept idle besides.
const SLACK_SHARE: usize = 4;

impl Store {
    /// Takes a block back.
    ///
    /// # Safety
    /// `block` is a block of this store that was out and is given up.
    #[inline]
    pub(crate) unsafe fn free(&mut self, block: NonNull<u8>) {
        // SAFETY: the caller's block is out, so its header is live.
        unsafe {
            let head: *mut Head = chunk::head_of(block);
            if (*head).large == 0 {
                self.free_small(block);
            } else {
                self.free_large(NonNull::new_unchecked(head.cast()));
            }
        }
    }

    /// # Safety
    /// `large` is the header of a large block of this store that was out and is given up.
    #[cold]
    unsafe fn free_large(&mut self, large: NonNull<Large>) {
        // SAFETY: the header is live and ours.
        let (size, bytes) = unsafe { (large.as_ref().head.large, large.as_ref().mapping.bytes()) };
        self.out -= 1;
        self.large_out -= 1;
        self.large_bytes -= size;
        let large = self.join_cached(large);
        self.cached.push(large);
        self.idle += bytes;
        self.shed();
    }

    /// Gives back what is cached beyond what is kept, the oldest first; of a long block only its end.
    fn shed(&mut self) {
        while let Some(over) = self.idle.checked_sub(self.keep()).filter(|over| *over > 0)
            && let Some(mut oldest) = self.cached.first().copied()
        {
            // SAFETY: it is cached, so nobody has the block or its header.
            let header = unsafe { oldest.as_mut() };
            let whole = header.mapping.bytes();
            let left = whole.saturating_sub(over) / CHUNK * CHUNK;
            match if left > 0 { header.mapping.split(left) } else { None } {
                Some(end) => {
                    header.head.large = left - header.offset;
                    self.idle -= end.bytes();
                    self.reserved -= end.bytes();
                }
                None => self.uncache(0),
            }
        }
    }

    /// Joins a block that is to be cached with the cached ones that touch it, so that longer ones can be cut of it.
    fn join_cached(&mut self, mut large: NonNull<Large>) -> NonNull<Large> {
        let mut index = 0;
        while index < self.cached.len() {
            let mut other = self.cached[index];
            // SAFETY: nobody has the blocks or their headers: one is being freed, the others are cached. They are apart.
            let (this, that) = unsafe { (large.as_mut(), other.as_mut()) };
            let (lower, upper) = if large < other { (this, that) } else { (that, this) };
            if lower.mapping.touches(&upper.mapping) {
                // SAFETY: the header is moved out of memory that stays mapped, and not used again.
                let upper = unsafe { std::ptr::read(upper) };
                lower.mapping.join(upper.mapping);
                lower.head.large = lower.mapping.bytes() - lower.offset;
                large = large.min(other);
                self.cached.remove(index);
                // What is longer now may touch one that was passed.
                index = 0;
            } else {
                index += 1;
            }
        }
        large
    }

    /// Idle bytes that are kept when a large block is freed. Who has large blocks comes back for more, as each merge does,
    /// and to clear new pages for them costs more than to fill them.
    fn keep(&self) -> usize {
        // In the test mode nothing is reused, so that a use after the free is seen.
        if self.options.per_block || self.options.slack == 0 {
            return 0;
        }
        self.options.slack.max(self.large_bytes / SLACK_SHARE)
    }

    /// Gives the cached large block `index` back to the system.
    fn uncache(&mut self, index: usize) {
        let large = self.cached.remove(index);
        // SAFETY: it is cached, so nobody has the block or its header.
        let bytes = unsafe { unmap_large(large) };
        self.idle -= bytes;
        self.reserved -= bytes;
    }

    /// Gives the slices of a span back to its chunk.
    ///
    /// # Safety
    /// `span` is a live record of ours, linked, with `used` 0. It is dead afterwards.
    unsafe fn dissolve(&mut self, span: *mut Span) {
        let chunk: *mut Chunk = chunk::chunk_of(span);
        // SAFETY: the caller's record, and the live header that it lies in.
        unsafe {
            self.unlink_span(span);
            let mut runs = (*chunk).runs;
            runs.give(usize::from((*span).first), span_slices(usize::from((*span).class)));
            self.set_runs(chunk, runs);
        }
    }

    /// A span has no block out any more: gives it back, unless it is the last with room of its class.
    ///
    /// # Safety
    /// `span` is a live record of ours, linked, with `used` 0. It may be dead afterwards.
    pub(crate) unsafe fn span_is_empty(&mut self, span: *mut Span) {
        let chunk: *mut Chunk = chunk::chunk_of(span);
        // SAFETY: the caller's record, and the live header that it lies in.
        unsafe {
            if !((*span).prev.is_null() && (*span).next.is_null()) {
                self.dissolve(span);
            }
            (*chunk).busy -= 1;
            if (*chunk).busy == 0 {
                self.enter_idle((*chunk).region);
            }
        }
    }

    /// A chunk of `region` has no block out any more.
    fn enter_idle(&mut self, mut region: NonNull<Region>) {
        // SAFETY: regions that chunks point to are live and only ours; no other reference exists.
        let region_mut = unsafe { region.as_mut() };
        region_mut.idle += 1;
        if !region_mut.is_idle() {
            return;
        }
        self.idle += region_mut.mapping.bytes();
        if self.idle > self.options.slack {
            self.release_region(region);
        }
    }

    /// Gives an idle region back to the system.
    fn release_region(&mut self, region: NonNull<Region>) {
        // SAFETY: the region was leaked from a box when it was mapped, and is released once: its chunks leave
        // their buckets here and hold no span, so nothing leads to it afterwards.
        let region = unsafe { Box::from_raw(region.as_ptr()) };
        assert_eq!(region.idle, region.chunks, "a region with blocks out can't be released");
        for index in 0..region.fresh {
            // SAFETY: the first `fresh` chunks have live headers.
            unsafe { self.forget_chunk(region.mapping.base().as_ptr().add(index * CHUNK).cast()) };
        }
        if ptr::eq(self.fresh, &raw const *region) {
            self.fresh = ptr::null_mut();
        }
        self.regions.swap_remove(region.index);
        if let Some(moved) = self.regions.get_mut(region.index) {
            // SAFETY: listed regions are live and only ours.
            unsafe { moved.as_mut() }.index = region.index;
        }
        self.idle -= region.mapping.bytes();
        self.reserved -= region.mapping.bytes();
    }

    /// Takes a chunk that isn't busy out of its bucket, and what spans it has out of their bins.
    ///
    /// # Safety
    /// `chunk` is a live header of ours with no block out.
    unsafe fn forget_chunk(&mut self, chunk: *mut Chunk) {
        // SAFETY: slices that are not free belong to the span that `first` names. It has no block out, so it has
        // room, so it is linked. A chunk with free slices is in the bucket of its longest run.
        unsafe {
            let runs = (*chunk).runs;
            let mut slice = HEADER_SLICES;
            while slice < SLICES {
                if runs.has(slice) {
                    slice += 1;
                    continue;
                }
                let span = &raw mut (*chunk).spans[slice];
                slice += span_slices(usize::from((*span).class));
                self.unlink_span(span);
            }
            match bucket_of((*chunk).longest) {
                0 => {}
                bucket => self.unlink_chunk(chunk, bucket),
            }
        }
    }

    /// Gives everything idle back to the system, whatever the slack; how many bytes. Of regions that are not idle the pages of
    /// slices in which no block is out, though they stay mapped.
    pub(crate) fn trim(&mut self) -> usize {
        let before = self.reserved;
        while !self.cached.is_empty() {
            self.uncache(self.cached.len() - 1);
        }
        for index in (0..self.regions.len()).rev() {
            let region = self.regions[index];
            // SAFETY: listed regions are live. Going down, `swap_remove` moves only regions already looked at.
            if unsafe { region.as_ref() }.is_idle() {
                self.release_region(region);
            }
        }
        for class in 0..SMALL_CLASSES {
            let mut span = self.bins[class];
            while !span.is_null() {
                // SAFETY: linked spans are live records; one without a block out that was kept is not counted as busy.
                unsafe {
                    let next = (*span).next;
                    if (*span).used == 0 {
                        self.dissolve(span);
                    }
                    span = next;
                }
            }
        }
        for region in &self.regions {
            // SAFETY: as before.
            let region = unsafe { region.as_ref() };
            for index in 0..region.fresh {
                let chunk: *mut Chunk = region.mapping.base().as_ptr().wrapping_add(index * CHUNK).cast();
                // SAFETY: chunks up to `fresh` have headers, and a copy of the field makes no reference to one.
                let runs = unsafe { (*chunk).runs };
                for (start, count) in runs.iter() {
                    // SAFETY: slices that are in no span hold nothing.
                    unsafe { region.mapping.discard(index * CHUNK + start * SLICE, count * SLICE) };
                }
            }
        }
        before - self.reserved
    }
}

impl Drop for Store {
    /// Unmaps everything. Whoever drops the store knows that no block is out.
    fn drop(&mut self) {
        for large in self.cached.drain(..) {
            // SAFETY: it is cached, so nobody has the block or its header.
            unsafe { unmap_large(large) };
        }
        for region in self.regions.drain(..) {
            // SAFETY: leaked from a box when it was mapped; no block of it is out.
            drop(unsafe { Box::from_raw(region.as_ptr()) });
        }
    }
}

/// Unmaps a large block, its header included; how many bytes that were.
///
/// # Safety
/// Nobody else has the block or its header.
pub(crate) unsafe fn unmap_large(large: NonNull<Large>) -> usize {
    // SAFETY: the header is ours, and moved out of the memory that dropping it unmaps.
    let header = unsafe { large.read() };
    header.mapping.bytes()
}
