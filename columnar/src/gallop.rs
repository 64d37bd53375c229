//! Searching forward in sorted data: exponential, then binary (Bentley, Yao, 1976).
//!
//! ```text
//!   start  +1  +3    +7          +15        answer is 10 away: probes 0, 1, 3, 7, 15,
//!     x x x  x x x x x  x x x . . .          then halves 8..15
//! ```
//! O(log distance) calls, so a merge pays for how often it changes sides rather than for how much it skips.
use crate::traits::Column;

/// The first index in `start..len` for which `less` is false, else `len`; `less` must be true, then false.
#[inline]
pub fn gallop(len: usize, start: usize, mut less: impl FnMut(usize) -> bool) -> usize {
    if start >= len || !less(start) {
        return start.min(len);
    }
    // less(low) is true, and the answer lies in low + 1 ..= high.
    let (mut low, mut step) = (start, 1);
    let mut high = loop {
        if step >= len - low {
            break len;
        }
        let probe = low + step;
        if !less(probe) {
            break probe;
        }
        low = probe;
        step *= 2;
    };
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if less(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The end of the run of values equal to the one at `lower`, within `lower..upper`; the range must be sorted.
///
/// # Panics
/// If `lower < upper` and the range does not lie in the column.
#[inline]
pub fn run_end<C: Column>(column: &C, lower: usize, upper: usize) -> usize {
    if lower >= upper {
        return upper;
    }
    let value = column.get(lower);
    gallop(upper, lower + 1, |index| column.get(index) == value)
}

#[cfg(test)]
mod tests {
    use super::*;

    quickcheck::quickcheck! {
        fn as_partition_point(len: u16, start: u16, answer: u16) -> bool {
            let len = usize::from(len % 600);
            let start = usize::from(start) % (len + 1);
            let answer = start + usize::from(answer) % (len - start + 1);
            gallop(len, start, |i| { assert!(i >= start && i < len); i < answer }) == answer
        }
    }

    #[test]
    fn few_probes() {
        let mut probes = 0;
        assert_eq!(
            gallop(1 << 30, 5, |i| {
                probes += 1;
                i < 1000
            }),
            1000
        );
        assert!(probes <= 22, "{probes}");
        assert_eq!(gallop(3, 7, |_| true), 3);
        assert_eq!(gallop(usize::MAX, 0, |_| true), usize::MAX);
    }
}
