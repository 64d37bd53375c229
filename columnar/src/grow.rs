//! How a column of integers lies while it grows.
//!
//! ```text
//!   a stride     for as long as the values lie on a line: one value, or many equal ones, take no memory
//!   narrow       what is merged, with the bounds of its inputs; and where a long stride ends among many values
//!   plain        from then on
//! ```
//! A narrow column that gets a value out of its bounds is moved to wider ones, with room for as much again: a column is
//! moved a number of times that is logarithmic in what its values span.
use crate::encoding::{Encoding, extend_with};
use crate::int::Int;
use crate::weave::BLOCK;
use kpg_arena::Buffer;

impl<T: Int> Encoding<T> {
    /// Whether a column of these values may be a stride before it is sealed. Bytes stay bytes, since lists of them are read
    /// as slices.
    const LINES: bool = T::BITS > 8;

    /// Appends a value.
    #[inline(always)]
    pub(crate) fn push(&mut self, value: T) {
        match self {
            Encoding::Plain(values) if values.capacity() > 0 => values.push(value),
            Encoding::Stride { base, step, len } => {
                let last = *base + *step * (*len as u64 - 1);
                match value.key().checked_sub(last) {
                    Some(between) if between == *step || *len == 1 => (*step, *len) = (between, *len + 1),
                    // Others may follow one by one, which a plain column takes fastest.
                    _ => self.plain_mut(1).push(value),
                }
            }
            _ => self.push_slowly(value),
        }
    }

    #[inline(never)]
    fn push_slowly(&mut self, value: T) {
        self.push_line(value.key(), 0, 1);
    }

    /// Appends `count` values from that of key `first` on, keys `step` apart.
    pub(crate) fn push_line(&mut self, first: u64, step: u64, count: usize) {
        if count == 0 {
            return;
        }
        let line = move |index: usize| first + step * index as u64;
        match self {
            Encoding::Plain(values) if Self::LINES && values.capacity() == 0 => {
                let step = if count > 1 { step } else { 0 };
                *self = Encoding::Stride { base: first, step, len: count };
                return;
            }
            Encoding::Stride { base, step: before, len } => {
                let between = first.checked_sub(*base + *before * (*len as u64 - 1));
                let goes_on = (*len == 1 || between == Some(*before)) && (count == 1 || between == Some(step));
                if let Some(between) = between.filter(|_| goes_on) {
                    (*before, *len) = (between, *len + count);
                    return;
                }
            }
            _ => {}
        }
        if !self.push_narrow(first, line(count - 1), count, line) {
            extend_with(self.plain_mut(count), count, move |index| T::from_key(line(index)));
        }
    }

    /// Appends values, wherever they come from.
    pub(crate) fn push_all(&mut self, values: &[T]) {
        let Some(first) = values.first() else { return };
        match self {
            Encoding::Plain(plain) if plain.capacity() > 0 => return plain.extend_from_slice(values),
            Encoding::Plain(_) | Encoding::Stride { .. } => {
                let first = first.key();
                let step = values.get(1).map_or(Some(0), |second| second.key().checked_sub(first));
                let is_line =
                    |step: u64| values.windows(2).all(|two| two[1].key().checked_sub(two[0].key()) == Some(step));
                if let Some(step) = step.filter(|step| Self::LINES && is_line(*step)) {
                    return self.push_line(first, step, values.len());
                }
            }
            _ => {}
        }
        if self.push_within(values) {
            return;
        }
        let bounds = (first.key(), first.key());
        let (least, greatest) =
            values.iter().fold(bounds, |bounds, value| (bounds.0.min(value.key()), bounds.1.max(value.key())));
        if !self.push_narrow(least, greatest, values.len(), |index| values[index].key()) {
            self.plain_mut(values.len()).extend_from_slice(values);
        }
    }

    /// Appends values to a narrow column, if it is easily seen that they are within its bounds.
    fn push_within(&mut self, values: &[T]) -> bool {
        let (Encoding::Narrow8 { base, span, .. }
        | Encoding::Narrow16 { base, span, .. }
        | Encoding::Narrow32 { base, span, .. }) = self
        else {
            return false;
        };
        let (base, span) = (*base, *span);
        let delta = move |value: &T| value.key().wrapping_sub(base);
        // No delta is above all of them together.
        if values.iter().fold(0, |all, value| all | delta(value)) > span {
            return false;
        }
        match self {
            Encoding::Narrow8 { deltas, .. } => extend_with(deltas, values.len(), move |i| delta(&values[i]) as u8),
            Encoding::Narrow16 { deltas, .. } => extend_with(deltas, values.len(), move |i| delta(&values[i]) as u16),
            Encoding::Narrow32 { deltas, .. } => extend_with(deltas, values.len(), move |i| delta(&values[i]) as u32),
            Encoding::Plain(_) | Encoding::Stride { .. } => unreachable!("narrow"),
        }
        true
    }

    /// Appends `count` keys of `least..=greatest` to a column that is narrow, or can be made so; false, and nothing happens, if
    /// it is plain, or would be as wide.
    fn push_narrow(&mut self, least: u64, greatest: u64, count: usize, key: impl Fn(usize) -> u64 + Copy) -> bool {
        let within =
            |bounds: Option<(u64, u64)>| bounds.is_some_and(|bounds| bounds.0 <= least && greatest <= bounds.1);
        let is_ready = !matches!(self, Encoding::Stride { .. }) && within(self.bounds());
        if !is_ready && !self.widen(least, greatest, count) {
            return false;
        }
        match self {
            Encoding::Narrow8 { base, deltas, .. } => {
                let base = *base;
                extend_with(deltas, count, move |index| (key(index) - base) as u8);
            }
            Encoding::Narrow16 { base, deltas, .. } => {
                let base = *base;
                extend_with(deltas, count, move |index| (key(index) - base) as u16);
            }
            Encoding::Narrow32 { base, deltas, .. } => {
                let base = *base;
                extend_with(deltas, count, move |index| (key(index) - base) as u32);
            }
            Encoding::Plain(_) | Encoding::Stride { .. } => unreachable!("made narrow above"),
        }
        true
    }

    /// Makes a narrow column, or a long stride, one that is narrow and has room for `more` keys of `least..=greatest`, and to
    /// move beyond them; false, and nothing happens, if that would be as wide as a plain one. Cost: linear.
    fn widen(&mut self, least: u64, greatest: u64, more: usize) -> bool {
        if matches!(self, Encoding::Stride { len, .. } if *len < BLOCK) {
            // To decode a short one costs no more.
            return false;
        }
        let Some(bounds) = self.bounds() else { return false };
        let (least, greatest) = (least.min(bounds.0), greatest.max(bounds.1));
        let (lower, upper) = Self::surroundings(least, greatest);
        let room = self.len() + more;
        let wider = Encoding::narrow(lower, upper, room).or_else(|| Encoding::narrow(least, greatest, room));
        let Some(mut wider) = wider else { return false };
        let mut block = [T::from_key(0); BLOCK];
        for start in (0..self.len()).step_by(BLOCK) {
            let values = self.block(start, &mut block);
            let is_done = wider.push_narrow(bounds.0, bounds.1, values.len(), |index| values[index].key());
            assert!(is_done, "its own values are within");
        }
        *self = wider;
        true
    }

    /// Bounds with as much room again on both sides.
    pub(crate) fn surroundings(least: u64, greatest: u64) -> (u64, u64) {
        let span = (greatest - least).max(8);
        let top = u64::MAX >> (u64::BITS - T::BITS);
        (least.saturating_sub(span), greatest.saturating_add(span).min(top))
    }

    /// The buffer of a plain column; one that is not is decoded, with room for `more` values.
    #[inline]
    pub(crate) fn plain_mut(&mut self, more: usize) -> &mut Buffer<T> {
        if !matches!(self, Encoding::Plain(_)) {
            self.decode(more);
        }
        match self {
            Encoding::Plain(values) => values,
            _ => unreachable!("decoded above"),
        }
    }

    #[cold]
    fn decode(&mut self, more: usize) {
        let mut values = Buffer::with_capacity(self.len() + more.max(1));
        self.decode_into(0, self.len(), &mut values);
        *self = Encoding::Plain(values);
    }
}

#[cfg(test)]
mod tests {
    use crate::ints::Ints;
    use crate::traits::Column;

    /// Bytes of a column of `count` ones, then one value of `other`, then what `more` appends.
    fn bytes(other: i64, more: impl Fn(&mut Ints<i64>)) -> (usize, usize) {
        let mut ones = Ints::<i64>::default();
        ones.push_many(1, 4000);
        let mut out = Ints::<i64>::default();
        out.extend_from(&ones, 0, 4000);
        out.push_many(other, 1);
        more(&mut out);
        out.check_invariants();
        (out.bytes(), out.len())
    }

    #[test]
    fn lines_after_a_change_stay_narrow() {
        let mut ones = Ints::<i64>::default();
        ones.push_many(1, 50_000);
        for (other, width) in [(-1, 1), (300, 2), (1 << 20, 4), (i64::MIN, 8)] {
            let ways: [&dyn Fn(&mut Ints<i64>); 3] =
                [&|out| out.extend_from(&ones, 10, 40_000), &|out| out.push_many(1, 40_000), &|out| {
                    (0..4000).for_each(|value| out.push(value % 3))
                }];
            for more in ways {
                let (bytes, len) = bytes(other, more);
                assert!(bytes >= width * len && bytes <= width * len * 5 / 2, "{other}: {bytes} bytes of {len} values");
            }
        }
    }

    #[test]
    fn values_pushed_one_by_one_are_decoded_once() {
        let mut out = Ints::<i64>::default();
        out.push_many(1, 4000);
        out.push(-1);
        assert!(out.as_plain().is_some());
    }
}
