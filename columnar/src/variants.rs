//! Which variant each value of an enum is, and where its fields lie.
//!
//! ```text
//!   values   A(x)  B(p)  A(y)  A(z)  B(q)
//!   tags      0     1     0     0     1        variant, in order of declaration
//!   slots     0     0     1     2     1        row among the values of that variant
//!   columns   A: x y z      B: p q
//! ```
//! Slots of one variant count up in the order of the values, so a range of values is one range of each
//! variant's column. Where all values are one variant, tags are constant and slots a stride: both cost
//! nothing once sealed. O(1) random access.
use crate::ints::Ints;
use crate::seal::Sealer;
use crate::traits::{Column, fit};

/// Tags and slots of a column of enums.
#[derive(Debug, Default)]
pub struct Variants {
    tags: Ints<u8>,
    slots: Ints<u64>,
}

impl Variants {
    /// Number of values.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.tags.len()
    }

    /// True iff there is no value.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tags.is_empty()
    }

    /// The variant of a value and the row of its fields in that variant's column.
    ///
    /// # Panics
    /// If `index` is not below `len`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> (u8, usize) {
        (self.tags.get(index), self.slots.get(index) as usize)
    }

    /// The variant of a value.
    ///
    /// # Panics
    /// If `index` is not below `len`.
    #[inline]
    #[must_use]
    pub fn tag(&self, index: usize) -> u8 {
        self.tags.get(index)
    }

    /// Appends a value of variant `tag` whose fields are at row `slot`: the number of such values before it.
    #[inline]
    pub fn push(&mut self, tag: u8, slot: usize) {
        self.tags.push(tag);
        self.slots.push(slot as u64);
    }

    /// Appends the values `lower..upper` of `other`, given how many rows the column of each variant has here,
    /// and returns the rows of each variant's column to append to it.
    ///
    /// # Panics
    /// If the range does not lie in `other`.
    pub fn extend_from<const K: usize>(
        &mut self,
        other: &Self,
        lower: usize,
        upper: usize,
        rows: [usize; K],
    ) -> [(usize, usize); K] {
        assert!(lower <= upper && upper <= other.len(), "range {lower}..{upper} of a column of {}", other.len());
        self.tags.extend_from(&other.tags, lower, upper);
        self.slots.reserve(upper - lower);
        let mut ranges = [(0, 0); K];
        for index in lower..upper {
            let (tag, slot) = other.get(index);
            let range = &mut ranges[usize::from(tag)];
            if range.0 == range.1 {
                *range = (slot, slot);
            }
            debug_assert_eq!(slot, range.1, "slots of one variant count up");
            range.1 += 1;
            self.slots.push((slot - range.0 + rows[usize::from(tag)]) as u64);
        }
        ranges
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.tags.clear();
        self.slots.clear();
    }

    /// Makes room for `additional` more values.
    pub fn reserve(&mut self, additional: usize) {
        self.tags.reserve(additional);
        self.slots.reserve(additional);
    }

    /// Takes the smallest encoding.
    pub fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.tags.seal_in(sealer) && self.slots.seal_in(sealer)
    }

    /// Arena bytes held.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tags.bytes() + self.slots.bytes()
    }

    /// Checks tags and slots against the rows of each variant's column.
    ///
    /// # Panics
    /// If a tag is out of range or slots do not count up.
    pub fn check_invariants<const K: usize>(&self, rows: [usize; K]) {
        assert_eq!(self.tags.len(), self.slots.len());
        let mut seen = [0; K];
        for index in 0..self.len() {
            let (tag, slot) = self.get(index);
            assert_eq!(slot, seen[usize::from(tag)], "slot of value {index}, variant {tag}");
            seen[usize::from(tag)] += 1;
        }
        assert_eq!(seen, rows, "rows of each variant");
        self.tags.check_invariants();
        self.slots.check_invariants();
    }
}

/// How the prefix of an enum is laid out: the tag above, the prefix of the variant's fields below.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct EnumLayout {
    /// Bits of the whole prefix.
    pub bits: u32,
    /// True iff equal prefixes mean equal values.
    pub exact: bool,
    /// Bits below the tag.
    room: u32,
}

impl EnumLayout {
    /// From the bits of a tag and, for each variant, the bits and the exactness of its fields' prefix.
    #[must_use]
    pub const fn new(tag_bits: u32, variants: &[(u32, bool)]) -> Self {
        let (mut room, mut exact, mut index) = (0, true, 0);
        while index < variants.len() {
            let (bits, fields_exact) = variants[index];
            if bits > room {
                room = bits;
            }
            exact = exact && fields_exact && bits <= u64::BITS - tag_bits;
            index += 1;
        }
        if room > u64::BITS - tag_bits {
            room = u64::BITS - tag_bits;
        }
        EnumLayout { bits: tag_bits + room, exact, room }
    }

    /// The prefix of a value, from that of its fields, which has `bits`.
    #[inline]
    #[must_use]
    pub const fn prefix(self, tag: u8, fields: u64, bits: u32) -> u64 {
        let fields = fit(fields, bits, self.room);
        // A tag of no bits leaves room for 64, and is 0.
        if self.room == u64::BITS { fields } else { (tag as u64) << self.room | fields }
    }
}
