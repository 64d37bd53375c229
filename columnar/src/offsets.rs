//! Where lists end: the offsets between the layers of a batch, and inside strings and vectors.
//!
//! ```text
//!   items   a b c | d | | e f      list i = items[end(i - 1) .. end(i)], end(-1) = 0
//!   ends        3   4 4     6
//! ```
//! Ends never descend. A straight line (each list as long as the first) costs nothing once sealed; else ends
//! are as narrow as their spread allows.
use crate::encoding::EncodingKind;
use crate::gallop::gallop;
use crate::ints::Ints;
use crate::seal::Sealer;
use crate::traits::Column;

/// Ends of consecutive lists.
#[derive(Debug, Default)]
pub struct Offsets {
    ends: Ints<u64>,
    /// The last end, so that pushing needs no decoding.
    last: u64,
}

impl Offsets {
    /// The ends of `count` lists of `each` items.
    #[must_use]
    pub fn of_lists(count: usize, each: usize) -> Self {
        let mut offsets = Self::default();
        offsets.push_lists(count, each);
        offsets
    }

    /// Ends the next list at item `end`.
    ///
    /// # Panics
    /// If `end` is before the last one.
    #[inline]
    pub fn push(&mut self, end: usize) {
        let end = end as u64;
        assert!(end >= self.last, "end {end} is before the last, {}", self.last);
        self.ends.append(end);
        self.last = end;
    }

    /// Ends `count` lists of `each` items.
    pub fn push_lists(&mut self, count: usize, each: usize) {
        self.ends.append_line(self.last + each as u64, each as u64, count);
        self.last += (count * each) as u64;
    }

    /// Ends lists of these many items each. Cost: linear; what is in `lengths` afterwards is of no use.
    pub fn push_lengths(&mut self, lengths: &mut [u64]) {
        for length in lengths.iter_mut() {
            self.last += *length;
            *length = self.last;
        }
        self.ends.push_values(lengths);
    }

    /// The items of list `index`: from the first (`.0`) to before the second (`.1`). O(1).
    ///
    /// # Panics
    /// If `index` is not below `len`.
    #[inline]
    #[must_use]
    pub fn bounds(&self, index: usize) -> (usize, usize) {
        let upper = self.ends.at(index) as usize;
        let lower = if index == 0 { 0 } else { self.ends.at(index - 1) as usize };
        (lower, upper)
    }

    /// Puts where the lists from `from` on start into `out`, as many as it holds; of one more than there are lists, where the
    /// last ends.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn starts(&self, from: usize, out: &mut [u64]) {
        match out {
            [first, rest @ ..] if from == 0 => {
                *first = 0;
                self.ends.prefixes(0, rest);
            }
            out => self.ends.prefixes(from - 1, out),
        }
    }

    /// The first item of list `index`, or the number of items if `index` is `len`.
    ///
    /// # Panics
    /// If `index` is above `len`.
    #[inline]
    #[must_use]
    pub fn start(&self, index: usize) -> usize {
        if index == 0 { 0 } else { self.ends.at(index - 1) as usize }
    }

    /// The items of the lists `lower..upper` taken together.
    ///
    /// # Panics
    /// If `upper` is above `len` or `lower` above `upper`.
    #[inline]
    #[must_use]
    pub fn span(&self, lower: usize, upper: usize) -> (usize, usize) {
        assert!(lower <= upper, "lists {lower}..{upper}");
        (self.start(lower), self.start(upper))
    }

    /// Appends the lists `lower..upper` of `other`, as those of the items from the last end on.
    ///
    /// # Panics
    /// If the range does not lie in `other`.
    pub fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let (first, end) = other.span(lower, upper);
        let (first, last) = (first as u64, self.last);
        match (other.ends.as_plain(), other.ends.as_stride()) {
            // A range behind the last list is empty.
            (_, Some((base, step))) if lower < upper => {
                self.ends.append_line(base + step * lower as u64 - first + last, step, upper - lower);
            }
            (_, Some(_)) => {}
            (Some(plain), _) => {
                let plain = &plain[lower..upper];
                crate::encoding::extend_with(self.ends.plain_mut(), plain.len(), |i| plain[i] - first + last);
            }
            _ => {
                let end = |i| other.ends.at(lower + i) - first + last;
                crate::encoding::extend_with(self.ends.plain_mut(), upper - lower, end);
            }
        }
        self.last += end as u64 - first;
    }

    /// The list that holds item `item`: the first that ends after it. Gallops from list `start`.
    #[must_use]
    pub fn list_of(&self, item: usize, start: usize) -> usize {
        gallop(self.len(), start, |index| self.ends.at(index) <= item as u64)
    }

    /// The last end: the number of items.
    #[inline]
    #[must_use]
    pub fn last(&self) -> usize {
        self.last as usize
    }

    /// Number of lists.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.count()
    }

    /// True iff there is no list.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes room for `additional` more lists.
    pub fn reserve(&mut self, additional: usize) {
        self.ends.reserve(additional);
    }

    /// Forgets all lists.
    pub fn clear(&mut self) {
        self.ends.clear();
        self.last = 0;
    }

    /// Takes the smallest encoding; a push afterwards first decodes.
    pub fn seal(&mut self) {
        self.ends.seal();
    }

    /// The same in slices, see [`Column::seal_in`].
    pub fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.ends.seal_in(sealer)
    }

    /// Arena bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.ends.bytes()
    }

    /// Which encoding the ends have now.
    #[must_use]
    pub fn kind(&self) -> EncodingKind {
        self.ends.kind()
    }

    /// If each list is known to be `n` items long: `n`.
    #[must_use]
    pub fn uniform(&self) -> Option<usize> {
        match self.ends.as_stride()? {
            (first, _) if self.len() == 1 => Some(first as usize),
            (first, step) if first == step => Some(step as usize),
            _ => None,
        }
    }

    /// Checks that ends never descend.
    ///
    /// # Panics
    /// If they do.
    pub fn check_invariants(&self) {
        self.ends.check_invariants();
        let mut before = 0;
        for index in 0..self.len() {
            let end = self.ends.at(index);
            assert!(before <= end, "end {index} is {end}, the one before {before}");
            before = end;
        }
        assert_eq!(before, self.last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    quickcheck::quickcheck! {
        fn as_a_vec_of_lengths(lengths: Vec<u8>, more: Vec<u8>, cut: (usize, usize)) -> bool {
            let mut model = lengths.clone();
            let (mut offsets, mut other) = (Offsets::default(), Offsets::default());
            for &length in &lengths {
                offsets.push(offsets.last() + usize::from(length));
            }
            for &length in &more {
                other.push(other.last() + usize::from(length));
            }
            offsets.seal();
            offsets.check_invariants();
            other.seal();
            let (a, b) = (cut.0 % (more.len() + 1), cut.1 % (more.len() + 1));
            offsets.extend_from(&other, a.min(b), a.max(b));
            model.extend_from_slice(&more[a.min(b)..a.max(b)]);
            offsets.check_invariants();
            offsets.seal();
            let mut start = 0;
            for (list, &length) in model.iter().enumerate() {
                let bounds = offsets.bounds(list);
                assert_eq!(bounds, (start, start + usize::from(length)));
                for item in bounds.0..bounds.1 {
                    assert_eq!(offsets.list_of(item, 0), list);
                }
                start = bounds.1;
            }
            offsets.len() == model.len() && offsets.last() == start
        }
    }

    #[test]
    fn straight_lines_cost_nothing() {
        let mut offsets = Offsets::default();
        for list in 1..=1000 {
            offsets.push(3 * list);
        }
        assert_eq!((offsets.bytes(), offsets.uniform()), (0, Some(3)));
        assert_eq!(Offsets::of_lists(1000, 3).bounds(999), offsets.bounds(999));
        offsets.seal();
        assert_eq!((offsets.bytes(), offsets.uniform()), (0, Some(3)));
        offsets.extend_from(&Offsets::of_lists(20, 3), 3, 7);
        assert_eq!((offsets.bytes(), offsets.len(), offsets.last()), (0, 1004, 3012));
        offsets = Offsets::of_lists(1000, 3);
        offsets.push(3000);
        offsets.seal();
        assert_eq!(offsets.kind(), EncodingKind::Narrow16);
        assert_eq!(offsets.bounds(1000), (3000, 3000));
    }

    #[test]
    #[should_panic(expected = "before the last")]
    fn ends_never_descend() {
        let mut offsets = Offsets::default();
        offsets.push(2);
        offsets.push(1);
    }
}
