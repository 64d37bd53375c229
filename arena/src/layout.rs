//! Address arithmetic: size classes, the shape of a chunk, alignment. Pure functions on integers.
//!
//! **Size classes.** Sizes are counted in units of 64 bytes. Up to 8 units each number is a class; beyond,
//! every doubling is cut into 8 steps, so a block is at most 1/8 larger than what was asked for:
//!
//! ```text
//! class   0   1  …   7 |   8   9 …  15 |   16   17 …   23 | …  87          88 …
//! units   1   2  …   8 |   9  10 …  16 |   18   20 …   32 | …  8192        9216 …
//! bytes  64 128  … 512 | 576 640 … 1024| 1152 1280 … 2048 | …  512 KiB     576 KiB … (mapped alone)
//! ```
//!
//! **A chunk** is 2 MiB, aligned to 2 MiB, so that clearing the low 21 bits of any address in it finds its
//! header. It is cut in slices of 8 KiB:
//!
//! ```text
//! | header: 2 slices | span | span … | free slices … |     256 slices
//! ```
//!
//! A span is a run of slices which holds blocks of one class. Its length is chosen so that the blocks fill it
//! without a rest (every class is m·2^k with m in 8..=16, so a few slices suffice).
//!
//! **A large block** is mapped alone, in whole pages rather than classes, its header in the page before it, at an address
//! aligned to 2 MiB; so the same mask finds its header too.
//!
//! Next stop: `runs.rs`, the free slices of a chunk.
#![forbid(unsafe_code)]

/// Blocks are aligned to this, and their sizes are multiples of it.
pub(crate) const UNIT: usize = 64;
/// Size and alignment of a chunk; also a huge page.
pub(crate) const CHUNK: usize = 2 << 20;
/// Granule in which a chunk is handed to spans.
pub(crate) const SLICE: usize = 8 << 10;
/// Slices in a chunk.
pub(crate) const SLICES: usize = CHUNK / SLICE;
/// Slices at the start of a chunk that hold its header: 256 span records of 40 bytes do not fit in one.
pub(crate) const HEADER_SLICES: usize = 2;
/// Classes whose blocks lie in chunks: up to 512 KiB, of which a chunk holds three.
pub(crate) const SMALL_CLASSES: usize = 88;
/// The largest block: an address space has 47 bits, so nothing larger could be mapped.
pub(crate) const MAX_BLOCK: usize = 1 << 46;
/// Spans of blocks up to `SLICE` bytes are at least this many slices, so that span upkeep is rare.
const SMALL_SPAN_SLICES: usize = 4;

/// The smallest class that holds `bytes`; `None` beyond [`MAX_BLOCK`].
#[inline]
pub(crate) fn class_of(bytes: usize) -> Option<usize> {
    if bytes > MAX_BLOCK {
        return None;
    }
    // `last` is the index of the last unit used: 0 for 0..=64 bytes.
    let last = bytes.saturating_sub(1) / UNIT;
    if last < 8 {
        return Some(last);
    }
    let shift = (last.ilog2() - 3) as usize;
    Some(8 * shift + (last >> shift))
}

/// Bytes of a block of `class`.
#[inline]
pub(crate) fn class_bytes(class: usize) -> usize {
    if class < 8 { (class + 1) * UNIT } else { ((9 + class % 8) << (class / 8 - 1)) * UNIT }
}

/// `bytes` rounded up to whole units, at least one: the block size where classes are not used.
pub(crate) fn units_bytes(bytes: usize) -> Option<usize> {
    (bytes <= MAX_BLOCK).then(|| bytes.max(1).next_multiple_of(UNIT))
}

/// Slices in a span of the small class `class`.
pub(crate) fn span_slices(class: usize) -> usize {
    let bytes = class_bytes(class);
    let common = bytes.trailing_zeros().min(SLICE.trailing_zeros());
    let least = bytes >> common;
    if bytes > SLICE {
        return least;
    }
    let mut slices = least;
    while slices < SMALL_SPAN_SLICES {
        slices *= 2;
    }
    slices
}

/// Blocks in a span of the small class `class`.
pub(crate) fn span_blocks(class: usize) -> usize {
    span_slices(class) * SLICE / class_bytes(class)
}

/// The distance of `address` from the header it belongs to.
#[inline]
pub(crate) fn offset_in_chunk(address: usize) -> usize {
    address & (CHUNK - 1)
}

/// The slice in which an offset lies.
#[inline]
pub(crate) fn slice_of(offset: usize) -> usize {
    offset / SLICE
}

/// What to cut off at both ends of a mapping of `mapped` bytes at `address` so that `bytes` remain, aligned to
/// [`CHUNK`]. `mapped` must be [`with_room_to_align`]`(bytes)` or more.
pub(crate) fn cut_to_align(address: usize, mapped: usize, bytes: usize) -> (usize, usize) {
    let lead = address.next_multiple_of(CHUNK) - address;
    (lead, mapped - lead - bytes)
}

/// How much to map so that `bytes` fit at an aligned address; `None` where that overflows.
pub(crate) fn with_room_to_align(bytes: usize) -> Option<usize> {
    bytes.checked_add(CHUNK)
}

/// Where a block that is mapped alone lies: `(offset of the block, bytes to map without a guard page)`.
///
/// One page of header comes first. With `at_end` the block ends where the mapping ends, so that the guard page
/// behind it is hit by the first byte beyond the block.
pub(crate) fn alone(bytes: usize, page: usize, at_end: bool) -> (usize, usize) {
    let mapped = page + bytes.next_multiple_of(page);
    let offset = if at_end { mapped - bytes } else { page };
    (offset, mapped)
}

/// The capacity to grow to: double, but at least `needed`, and nothing smaller than one unit's worth.
pub(crate) fn grown_capacity(capacity: usize, needed: usize) -> usize {
    capacity.saturating_mul(2).max(needed)
}

/// Bytes of `count` values of `size` bytes; beyond what can be addressed it saturates, which no class holds.
#[inline]
pub(crate) fn array_bytes(count: usize, size: usize) -> usize {
    count.saturating_mul(size)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    /// A size whose magnitude is uniform, so that every class is met.
    fn spread(raw: u64, bits: u8) -> usize {
        (raw >> 18 >> (bits % 46)) as usize
    }

    quickcheck! {
        fn the_class_holds_and_wastes_at_most_an_eighth(raw: u64, bits: u8) -> bool {
            let bytes = spread(raw, bits);
            let block = class_bytes(class_of(bytes).expect("no more than a block may have"));
            block >= bytes && block.is_multiple_of(UNIT) && (block - bytes.max(1) < UNIT || (block - bytes) * 8 <= bytes)
        }

        fn the_class_is_the_smallest_that_holds(raw: u64, bits: u8) -> bool {
            let bytes = spread(raw, bits);
            let class = class_of(bytes).expect("no more than a block may have");
            class == 0 || class_bytes(class - 1) < bytes
        }

        fn classes_are_fixed_points(class: u16) -> bool {
            let class = usize::from(class) % 300;
            class_of(class_bytes(class)) == Some(class)
        }

        fn aligning_leaves_what_was_asked_for(page: u32, pages: u16) -> bool {
            let (address, bytes) = ((page as usize) << 12, (usize::from(pages) + 1) << 12);
            let mapped = with_room_to_align(bytes).expect("no more than a block may have");
            let (lead, tail) = cut_to_align(address, mapped, bytes);
            (address + lead) % CHUNK == 0 && lead + bytes + tail == mapped && lead % 4096 == 0
        }

        fn a_block_alone_finds_its_header(raw: u64, bits: u8, at_end: bool) -> bool {
            let bytes = units_bytes(spread(raw, bits)).expect("no more than a block may have");
            [4096, 16384, 65536].into_iter().all(|page| {
                let (offset, mapped) = alone(bytes, page, at_end);
                offset >= page && offset < CHUNK && offset % UNIT == 0 && offset + bytes <= mapped
                    && (!at_end || offset + bytes == mapped) && mapped % page == 0
                    && offset_in_chunk(5 * CHUNK + offset) == offset
            })
        }
    }

    #[test]
    fn spans_are_filled_without_a_rest() {
        for class in 0..SMALL_CLASSES {
            let (slices, blocks) = (span_slices(class), span_blocks(class));
            assert_eq!(slices * SLICE, blocks * class_bytes(class), "class {class}");
            assert!((1..=512).contains(&blocks) && slices <= 64, "class {class}");
            assert!(slices <= SLICES - HEADER_SLICES);
        }
        assert_eq!(class_bytes(SMALL_CLASSES - 1), 512 << 10);
    }

    #[test]
    fn the_ends_of_the_range() {
        assert_eq!(class_of(0), Some(0));
        assert_eq!(class_of(MAX_BLOCK).map(class_bytes), Some(MAX_BLOCK));
        assert_eq!(class_of(MAX_BLOCK + 1), None);
        assert_eq!(class_of(usize::MAX), None);
        assert_eq!(units_bytes(usize::MAX), None);
        assert_eq!(with_room_to_align(usize::MAX), None);
    }
}
