//! Comparing and searching stored values. Galloping costs the logarithm of the distance moved.
#![forbid(unsafe_code)]

use super::Ref;
use kpg_columnar::{Column, Columnar};
use std::cmp::Ordering;

/// Compares two stored values that live for different times.
#[inline]
pub(crate) fn compare<C: Columnar>(a: Ref<'_, C>, b: Ref<'_, C>) -> Ordering {
    C::reborrow(a).cmp(&C::reborrow(b))
}

/// The first index in `low..high` whose value is at or after `target`, or `high`. The values must ascend.
pub(crate) fn gallop<C: Columnar>(column: &C::Column, low: usize, high: usize, target: Ref<'_, C>) -> usize {
    gallop_by(low, high, |index| compare::<C>(column.get(index), target).is_lt())
}

/// The first index in `low..high` for which `before` is false, or `high`. It must hold up to there and not after.
#[inline]
pub(crate) fn gallop_by(mut low: usize, high: usize, before: impl Fn(usize) -> bool) -> usize {
    if low >= high || !before(low) {
        return low;
    }
    // From here on, `before(low)` holds.
    let mut step = 1;
    while low + step < high && before(low + step) {
        low += step;
        step <<= 1;
    }
    let mut end = high.min(low + step);
    low += 1;
    while low < end {
        let middle = low + (end - low) / 2;
        if before(middle) { low = middle + 1 } else { end = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use quickcheck::quickcheck;

    quickcheck! {
        fn gallop_finds_the_partition_point(values: Vec<u64>, target: u64, from: usize) -> bool {
            let mut values: Vec<u64> = values.into_iter().map(|x| x % 64).collect();
            values.sort_unstable();
            let target = target % 66;
            let from = from % (values.len() + 1);
            let mut column = <u64 as Columnar>::Column::default();
            values.iter().for_each(|v| column.push(*v));
            let naive = (from..values.len()).find(|i| values[*i] >= target).unwrap_or(values.len());
            gallop::<u64>(&column, from, values.len(), target) == naive
        }
    }
}
