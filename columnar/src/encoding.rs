//! How a column of integers lies: plain, stride, or narrow.
//!
//! ```text
//!   plain    v0 v1 v2 …            8n bytes for u64
//!   stride   base, step, len       key(i) = base + i·step; a constant has step 0; no bytes
//!   narrow   base; d0 d1 d2 …      key(i) = base + d(i), d of 8, 16 or 32 bits, none above span
//! ```
//! `seal` takes the smallest; on a tie the plain one. A stride never wraps and never descends, so on it and on
//! narrow ones searching needs no decoding. Choosing (file `choice`) costs one pass, narrowing another; decoding one.
use crate::gallop::gallop;
use crate::int::Int;
use crate::traits::{Packed, append_bits};
use kpg_arena::Buffer;

/// Which encoding a column has, as shown to whoever accounts for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EncodingKind {
    /// Values as they are.
    Plain,
    /// One value, repeated.
    Constant,
    /// `base + i·step`.
    Stride,
    /// A base and 8-bit differences.
    Narrow8,
    /// A base and 16-bit differences.
    Narrow16,
    /// A base and 32-bit differences.
    Narrow32,
}

/// The encodings; see the head of the file.
#[derive(Debug)]
pub(crate) enum Encoding<T: Int> {
    Plain(Buffer<T>),
    Stride { base: u64, step: u64, len: usize },
    Narrow8 { base: u64, span: u64, deltas: Buffer<u8> },
    Narrow16 { base: u64, span: u64, deltas: Buffer<u16> },
    Narrow32 { base: u64, span: u64, deltas: Buffer<u32> },
}

impl<T: Int> Encoding<T> {
    /// The values `lower..upper`, appended to `out`.
    pub(crate) fn decode_into(&self, lower: usize, upper: usize, out: &mut Buffer<T>) {
        assert!(lower <= upper && upper <= self.len(), "range {lower}..{upper} of a column of {}", self.len());
        match self {
            Encoding::Plain(values) => out.extend_from_slice(&values[lower..upper]),
            Encoding::Stride { base, step, .. } => {
                extend_with(out, upper - lower, move |i| T::from_key(base + step * (lower + i) as u64));
            }
            Encoding::Narrow8 { base, deltas, .. } => {
                let (base, deltas) = (*base, &deltas[lower..upper]);
                extend_with(out, deltas.len(), move |i| T::from_key(base + u64::from(deltas[i])));
            }
            Encoding::Narrow16 { base, deltas, .. } => {
                let (base, deltas) = (*base, &deltas[lower..upper]);
                extend_with(out, deltas.len(), move |i| T::from_key(base + u64::from(deltas[i])));
            }
            Encoding::Narrow32 { base, deltas, .. } => {
                let (base, deltas) = (*base, &deltas[lower..upper]);
                extend_with(out, deltas.len(), move |i| T::from_key(base + u64::from(deltas[i])));
            }
        }
    }

    /// The values from `lower` on, as many as fill `out`.
    pub(crate) fn decode_to(&self, lower: usize, out: &mut [T]) {
        fn narrow<T: Int, D: Copy + Into<u64>>(base: u64, deltas: &[D], out: &mut [T]) {
            out.iter_mut().zip(deltas).for_each(|(slot, delta)| *slot = T::from_key(base + (*delta).into()));
        }
        let upper = lower + out.len();
        match self {
            Encoding::Plain(values) => out.copy_from_slice(&values[lower..upper]),
            Encoding::Stride { base, step, len } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                out.iter_mut().zip(lower as u64..).for_each(|(slot, i)| *slot = T::from_key(base + step * i));
            }
            Encoding::Narrow8 { base, deltas, .. } => narrow(*base, &deltas[lower..upper], out),
            Encoding::Narrow16 { base, deltas, .. } => narrow(*base, &deltas[lower..upper], out),
            Encoding::Narrow32 { base, deltas, .. } => narrow(*base, &deltas[lower..upper], out),
        }
    }

    /// The keys from `lower` on, as many as fill `out`.
    pub(crate) fn keys_to(&self, lower: usize, out: &mut [u64]) {
        fn each<V: Copy>(values: &[V], out: &mut [u64], key: impl Fn(V) -> u64) {
            out.iter_mut().zip(values).for_each(|(slot, value)| *slot = key(*value));
        }
        let upper = lower + out.len();
        match self {
            Encoding::Plain(values) => each(&values[lower..upper], out, T::key),
            Encoding::Stride { base, step, len } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                out.iter_mut().zip(lower as u64..).for_each(|(slot, i)| *slot = base + step * i);
            }
            Encoding::Narrow8 { base, deltas, .. } => each(&deltas[lower..upper], out, |delta| base + u64::from(delta)),
            Encoding::Narrow16 { base, deltas, .. } => {
                each(&deltas[lower..upper], out, |delta| base + u64::from(delta))
            }
            Encoding::Narrow32 { base, deltas, .. } => {
                each(&deltas[lower..upper], out, |delta| base + u64::from(delta))
            }
        }
    }

    /// Some values from `lower` on, at most as many as `block` holds; none only at the end.
    pub(crate) fn block<'a>(&'a self, lower: usize, block: &'a mut [T]) -> &'a [T] {
        let count = (self.len() - lower).min(block.len());
        match self {
            Encoding::Plain(values) => &values[lower..lower + count],
            _ => {
                self.decode_to(lower, &mut block[..count]);
                &block[..count]
            }
        }
    }

    /// Bounds of the keys, if they are known without looking.
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Encoding::Plain(_) => None,
            Encoding::Stride { base, step, len } => Some((*base, base + step * (*len as u64 - 1))),
            Encoding::Narrow8 { base, span, .. }
            | Encoding::Narrow16 { base, span, .. }
            | Encoding::Narrow32 { base, span, .. } => Some((*base, base + span)),
        }
    }

    /// An empty narrow column for keys of `least..=greatest`, with room for `room`; none if that is no narrower.
    pub(crate) fn narrow(least: u64, greatest: u64, room: usize) -> Option<Self> {
        let (base, span) = (least, greatest - least);
        if T::BITS > 8 && span <= u64::from(u8::MAX) {
            Some(Encoding::Narrow8 { base, span, deltas: Buffer::with_capacity(room) })
        } else if T::BITS > 16 && span <= u64::from(u16::MAX) {
            Some(Encoding::Narrow16 { base, span, deltas: Buffer::with_capacity(room) })
        } else if T::BITS > 32 && span <= u64::from(u32::MAX) {
            Some(Encoding::Narrow32 { base, span, deltas: Buffer::with_capacity(room) })
        } else {
            None
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Encoding::Plain(values) => values.len(),
            Encoding::Stride { len, .. } => *len,
            Encoding::Narrow8 { deltas, .. } => deltas.len(),
            Encoding::Narrow16 { deltas, .. } => deltas.len(),
            Encoding::Narrow32 { deltas, .. } => deltas.len(),
        }
    }

    // Always, so that loops over one column choose the encoding once.
    #[inline(always)]
    pub(crate) fn get(&self, index: usize) -> T {
        match self {
            Encoding::Plain(values) => values[index],
            Encoding::Stride { base, step, len } => {
                assert!(index < *len, "index {index} of a column of {len}");
                T::from_key(base + step * index as u64)
            }
            Encoding::Narrow8 { base, deltas, .. } => T::from_key(base + u64::from(deltas[index])),
            Encoding::Narrow16 { base, deltas, .. } => T::from_key(base + u64::from(deltas[index])),
            Encoding::Narrow32 { base, deltas, .. } => T::from_key(base + u64::from(deltas[index])),
        }
    }

    /// See [`Column::seek`](crate::Column::seek).
    pub(crate) fn seek(&self, lower: usize, upper: usize, target: T) -> usize {
        let key = target.key();
        match self {
            Encoding::Plain(values) => gallop(upper, lower, |i| values[i] < target),
            Encoding::Stride { base, step, len } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                let Some(distance) = key.checked_sub(*base) else {
                    return lower.min(upper);
                };
                // A constant below the target is passed whole, one at the target not at all.
                let index = match step {
                    0 => (distance > 0) as u64 * upper as u64,
                    _ => distance.div_ceil(*step),
                };
                usize::try_from(index).unwrap_or(upper).max(lower).min(upper)
            }
            Encoding::Narrow8 { base, deltas, .. } => seek_narrow(deltas, *base, key, lower, upper),
            Encoding::Narrow16 { base, deltas, .. } => seek_narrow(deltas, *base, key, lower, upper),
            Encoding::Narrow32 { base, deltas, .. } => seek_narrow(deltas, *base, key, lower, upper),
        }
    }

    /// See [`Column::seek_windows`](crate::Column::seek_windows).
    pub(crate) fn seek_windows(&self, starts: &mut [usize], width: usize, targets: &[T]) {
        match self {
            Encoding::Plain(values) => seek_windows(starts, width, targets, |i, target| values[i] < *target),
            Encoding::Stride { .. } => {
                for (start, target) in starts.iter_mut().zip(targets) {
                    *start = self.seek(*start, *start + width, *target);
                }
            }
            Encoding::Narrow8 { base, deltas, .. } => {
                seek_windows(starts, width, targets, |i, target| base + u64::from(deltas[i]) < target.key());
            }
            Encoding::Narrow16 { base, deltas, .. } => {
                seek_windows(starts, width, targets, |i, target| base + u64::from(deltas[i]) < target.key());
            }
            Encoding::Narrow32 { base, deltas, .. } => {
                seek_windows(starts, width, targets, |i, target| base + u64::from(deltas[i]) < target.key());
            }
        }
    }

    /// See [`Column::ascends`](crate::Column::ascends).
    pub(crate) fn ascends(&self, lower: usize, upper: usize) -> bool {
        match self {
            Encoding::Plain(values) => slice_ascends(&values[lower..upper]),
            Encoding::Stride { step, len, .. } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                *step > 0 || upper - lower < 2
            }
            Encoding::Narrow8 { deltas, .. } => slice_ascends(&deltas[lower..upper]),
            Encoding::Narrow16 { deltas, .. } => slice_ascends(&deltas[lower..upper]),
            Encoding::Narrow32 { deltas, .. } => slice_ascends(&deltas[lower..upper]),
        }
    }

    /// See [`Column::pack`](crate::Column::pack).
    pub(crate) fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
        match self {
            Encoding::Plain(values) => pack_slice(&values[lower..upper], room, keys, T::key),
            Encoding::Stride { step, len, .. } => {
                assert!(upper <= *len, "index {upper} of a column of {len}");
                let last = (upper - lower).saturating_sub(1) as u64;
                append_bits(keys, 0, step * last, room, |i| step * i as u64)
            }
            Encoding::Narrow8 { deltas, .. } => pack_slice(&deltas[lower..upper], room, keys, u64::from),
            Encoding::Narrow16 { deltas, .. } => pack_slice(&deltas[lower..upper], room, keys, u64::from),
            Encoding::Narrow32 { deltas, .. } => pack_slice(&deltas[lower..upper], room, keys, u64::from),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        match self {
            Encoding::Plain(values) => values.capacity() * size_of::<T>(),
            Encoding::Stride { .. } => 0,
            Encoding::Narrow8 { deltas, .. } => deltas.capacity(),
            Encoding::Narrow16 { deltas, .. } => deltas.capacity() * 2,
            Encoding::Narrow32 { deltas, .. } => deltas.capacity() * 4,
        }
    }

    pub(crate) fn kind(&self) -> EncodingKind {
        match self {
            Encoding::Plain(_) => EncodingKind::Plain,
            Encoding::Stride { step: 0, .. } => EncodingKind::Constant,
            Encoding::Stride { .. } => EncodingKind::Stride,
            Encoding::Narrow8 { .. } => EncodingKind::Narrow8,
            Encoding::Narrow16 { .. } => EncodingKind::Narrow16,
            Encoding::Narrow32 { .. } => EncodingKind::Narrow32,
        }
    }

    /// Keys stay below `2^BITS`: the greatest a stride reaches, and each narrow one.
    pub(crate) fn check_invariants(&self) {
        let fits = |base: u64, span: u64| {
            let top = base.checked_add(span);
            assert!(
                top.is_some_and(|top| T::BITS == 64 || top >> T::BITS == 0),
                "base {base} + {span} exceeds {} bits",
                T::BITS
            );
        };
        let narrow = |base: u64, span: u64, greatest: u64| {
            assert!(greatest <= span, "{greatest} above {span}");
            fits(base, span);
        };
        match self {
            Encoding::Plain(_) => {}
            Encoding::Stride { base, step, len } => {
                assert!(*len > 0, "an empty column is plain");
                let span = (*len as u64 - 1).checked_mul(*step);
                fits(*base, span.expect("a stride never wraps"));
            }
            Encoding::Narrow8 { base, span, deltas } => narrow(*base, *span, greatest(deltas)),
            Encoding::Narrow16 { base, span, deltas } => narrow(*base, *span, greatest(deltas)),
            Encoding::Narrow32 { base, span, deltas } => narrow(*base, *span, greatest(deltas)),
        }
    }
}

/// In pieces, each without a way out, so that it is compiled to vectors.
fn slice_ascends<V: Copy + Ord>(values: &[V]) -> bool {
    const PIECE: usize = 256;
    (0..values.len().saturating_sub(1)).step_by(PIECE).all(|start| {
        let piece = &values[start..values.len().min(start + PIECE + 1)];
        piece.iter().zip(&piece[1..]).fold(true, |ascends, (a, b)| ascends & (a < b))
    })
}

/// Searches eight windows in lockstep: the loads of one round do not depend on each other.
fn seek_windows<T>(starts: &mut [usize], width: usize, targets: &[T], is_below: impl Fn(usize, &T) -> bool) {
    debug_assert!(width.is_power_of_two() && starts.len() == targets.len());
    for (starts, targets) in starts.chunks_mut(8).zip(targets.chunks(8)) {
        let mut half = width / 2;
        while half > 0 {
            for (start, target) in starts.iter_mut().zip(targets) {
                *start += half * usize::from(is_below(*start + half - 1, target));
            }
            half /= 2;
        }
        for (start, target) in starts.iter_mut().zip(targets) {
            *start += usize::from(is_below(*start, target));
        }
    }
}

fn greatest<D: Copy + Into<u64>>(deltas: &[D]) -> u64 {
    deltas.iter().map(|&d| d.into()).max().unwrap_or(0)
}

fn seek_narrow<D: Copy + Into<u64>>(deltas: &[D], base: u64, key: u64, lower: usize, upper: usize) -> usize {
    let Some(target) = key.checked_sub(base) else {
        return lower.min(upper);
    };
    gallop(upper, lower, |i| deltas[i].into() < target)
}

fn pack_slice<V: Copy>(values: &[V], room: u32, keys: &mut [u64], key: impl Fn(V) -> u64) -> Packed {
    debug_assert_eq!(values.len(), keys.len());
    let values = &values[..keys.len()];
    let (least, greatest) = values
        .iter()
        .fold((u64::MAX, 0), |(least, greatest), &value| (key(value).min(least), key(value).max(greatest)));
    append_bits(keys, least, greatest, room, |i| key(values[i]))
}

/// Appends `f(0) .. f(count - 1)`.
#[inline]
pub(crate) fn extend_with<V: Copy + 'static>(out: &mut Buffer<V>, count: usize, f: impl Fn(usize) -> V) {
    out.extend_with(count, f);
}
