//! What plain arrays do: the limits that are not a call of the standard library or of a well-kept crate.
#![forbid(unsafe_code)]

/// Merges two sorted slices into the front of `out`, without a branch that depends on the keys. Equal ones stay.
///
/// # Panics
/// If `out` is shorter than both.
pub fn merge(a: &[u64], b: &[u64], out: &mut [u64]) {
    assert!(out.len() >= a.len() + b.len(), "{} places for {} and {}", out.len(), a.len(), b.len());
    let (mut i, mut j) = (0, 0);
    for slot in out.iter_mut() {
        if i >= a.len() || j >= b.len() {
            break;
        }
        let (x, y) = (a[i], b[j]);
        let first = x <= y;
        *slot = std::hint::select_unpredictable(first, x, y);
        i += usize::from(first);
        j += usize::from(!first);
    }
    let rest = &mut out[i + j..a.len() + b.len()];
    rest[..a.len() - i].copy_from_slice(&a[i..]);
    rest[a.len() - i..].copy_from_slice(&b[j..]);
}

/// Merges neighbouring runs, which end at `ends`, again and again, to and fro between the two buffers. Returns whether
/// the result is in `spare`.
pub fn merge_all(runs: &mut [u64], spare: &mut [u64], mut ends: Vec<usize>) -> bool {
    let (mut from, mut to) = (runs, spare);
    let mut swapped = false;
    while ends.len() > 1 {
        let mut start = 0;
        for pair in ends.chunks(2) {
            let end = pair[pair.len() - 1];
            merge(&from[start..pair[0]], &from[pair[0]..end], &mut to[start..end]);
            start = end;
        }
        ends = ends.chunks(2).map(|pair| pair[pair.len() - 1]).collect();
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    swapped
}

/// The first index whose key is not below `key`: interpolates while that narrows, then halves.
pub fn interpolate(keys: &[u64], key: u64) -> usize {
    let (mut low, mut high) = (0, keys.len());
    for _ in 0..16 {
        if high - low < 16 {
            break;
        }
        let (first, last) = (keys[low], keys[high - 1]);
        if key <= first {
            return low;
        }
        if key > last {
            return high;
        }
        let part = u128::from(key - first) * (high - 1 - low) as u128 / u128::from(last - first);
        let guess = low + part as usize;
        // A little to either side, so that the answer is between two guesses.
        let margin = (high - low).isqrt() / 8 + 2;
        let (left, right) = (guess.saturating_sub(margin).max(low), (guess + margin).min(high - 1));
        if keys[left] < key {
            low = left + 1;
        } else {
            high = left;
            continue;
        }
        if keys[right] >= key {
            high = right;
        } else {
            low = right + 1;
        }
    }
    low + keys[low..high].partition_point(|x| *x < key)
}

/// So many searches go on side by side.
pub const ABREAST: usize = 16;

/// For each of the probes the first index whose key is not below it: binary searches abreast, so that their cache misses
/// overlap.
///
/// # Panics
/// If the number of probes is no multiple of [`ABREAST`], or there are no keys.
pub fn search_abreast(keys: &[u64], probes: &[u64], mut found: impl FnMut(usize)) {
    assert!(!keys.is_empty() && probes.len().is_multiple_of(ABREAST));
    for group in probes.as_chunks::<ABREAST>().0 {
        let (mut base, mut len) = ([0usize; ABREAST], keys.len());
        while len > 1 {
            let half = len / 2;
            for (base, probe) in base.iter_mut().zip(group) {
                *base += usize::from(keys[*base + half - 1] < *probe) * half;
            }
            len -= half;
        }
        for (base, probe) in base.iter().zip(group) {
            found(base + usize::from(keys[*base] < *probe));
        }
    }
}

/// The least time at each place of a graph in topological order, all sources of a place before it: what a tracker comes
/// to where times are totally ordered, nothing is counted and everything is passed over.
pub struct Minima {
    ends: Vec<usize>,
    sources: Vec<usize>,
    times: Vec<u64>,
}

impl Minima {
    /// For the sources of each place.
    pub fn new(sources: &[Vec<usize>]) -> Self {
        let mut ends = vec![0];
        for list in sources {
            ends.push(ends[ends.len() - 1] + list.len());
        }
        Minima { ends, sources: sources.concat(), times: vec![0; sources.len()] }
    }
    /// Moves the first place to `time`, and all others after it; the last one's.
    pub fn advance(&mut self, time: u64) -> u64 {
        self.times[0] = time;
        for place in 1..self.times.len() {
            let sources = &self.sources[self.ends[place]..self.ends[place + 1]];
            self.times[place] = sources.iter().map(|source| self.times[*source]).min().unwrap_or(u64::MAX);
        }
        self.times[self.times.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are all over the place.
    fn numbers(seed: u64, count: u64, range: u64) -> Vec<u64> {
        let mut out: Vec<u64> =
            (0..count).map(|i| (seed + i).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23) % range).collect();
        out.sort_unstable();
        out
    }

    #[test]
    fn merges_are_sorts() {
        for (a, b) in [(0, 5), (5, 0), (1, 1), (100, 3), (333, 500)] {
            let (a, b) = (numbers(1, a, 100), numbers(2, b, 100));
            let mut out = vec![0; a.len() + b.len()];
            merge(&a, &b, &mut out);
            let mut expected = [a, b].concat();
            expected.sort_unstable();
            assert_eq!(out, expected);
        }
        for count in 1..20 {
            let runs: Vec<_> = (0..count).map(|run| numbers(run, 3 * run, 1000)).collect();
            let ends = runs.iter().scan(0, |end, run| {
                *end += run.len();
                Some(*end)
            });
            let ends = ends.collect();
            let mut from = runs.concat();
            let mut to = vec![0; from.len()];
            let mut expected = from.clone();
            expected.sort_unstable();
            let swapped = merge_all(&mut from, &mut to, ends);
            assert_eq!(if swapped { to } else { from }, expected);
        }
    }

    #[test]
    fn searches_are_partition_points() {
        for (count, range) in [(1, 10), (2, 10), (17, 40), (1000, 3000), (1000, 30), (5000, u64::MAX)] {
            let mut keys = numbers(3, count, range);
            // A few far away, which mislead who interpolates.
            keys.extend([range, range.saturating_mul(1000)]);
            let probes: Vec<u64> = (0..64 * ABREAST as u64)
                .map(|i| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) % range.saturating_add(5))
                .chain([0, 1, range, u64::MAX].repeat(4))
                .collect();
            let expected: Vec<_> = probes.iter().map(|probe| keys.partition_point(|key| key < probe)).collect();
            let interpolated: Vec<_> = probes.iter().map(|probe| interpolate(&keys, *probe)).collect();
            assert_eq!(interpolated, expected);
            let mut abreast = Vec::new();
            search_abreast(&keys, &probes, |index| abreast.push(index));
            assert_eq!(abreast, expected);
        }
    }

    #[test]
    fn minima_go_along() {
        let mut minima = Minima::new(&[vec![], vec![0], vec![0], vec![1, 2]]);
        assert_eq!((minima.advance(3), minima.advance(7)), (3, 7));
    }
}
