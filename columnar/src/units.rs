//! A column of units is a count.
use crate::frame::{Fields, Frame};
use crate::seal::Sealer;
use crate::traits::{Column, Columnar, Packed};
use crate::weave::{Step, woven};

/// A column of `()`.
#[derive(Clone, Default, Debug)]
pub struct Units(usize);

impl Units {
    /// A column of `len` units.
    #[must_use]
    pub fn of(len: usize) -> Self {
        Units(len)
    }
}

impl Columnar for () {
    type Ref<'a> = ();
    type Column = Units;
    #[inline]
    fn borrow(&self) {}
    #[inline]
    fn to_owned(_: ()) {}
    #[inline]
    fn reborrow<'b, 'a: 'b>(_: ()) {}
    #[inline]
    fn hash(_: ()) -> u64 {
        0
    }
}

impl Column for Units {
    type Owned = ();
    const PREFIX_EXACT: bool = true;
    const PREFIX_BITS: u32 = 0;
    #[inline]
    fn len(&self) -> usize {
        self.0
    }
    #[inline]
    fn get(&self, index: usize) {
        assert!(index < self.0, "index {index} of a column of {}", self.0);
    }
    #[inline]
    fn push(&mut self, (): ()) {
        self.0 += 1;
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        assert!(lower <= upper && upper <= other.0, "range {lower}..{upper} of a column of {}", other.0);
        self.0 += upper - lower;
    }
    fn clear(&mut self) {
        self.0 = 0;
    }
    fn reserve(&mut self, _: usize) {}
    fn seal_in(&mut self, _: &mut Sealer) -> bool {
        true
    }
    fn bytes(&self) -> usize {
        0
    }
    #[inline]
    fn prefix(&self, _: usize) -> u64 {
        0
    }
    fn pack(&self, _: usize, _: usize, _: u32, _: &mut [u64]) -> Packed {
        Packed { bits: 0, exact: true }
    }
    fn frame(&self, _: usize, _: usize, _: &mut Frame) -> bool {
        true
    }
    fn encode(&self, _: usize, _: &mut Fields<'_>, _: &mut [u64]) {}
    fn decode(&mut self, _: &mut Fields<'_>, words: &[u64]) {
        self.0 += words.len();
    }
    fn gather(&mut self, _: &Self, indices: &[u32]) {
        self.0 += indices.len();
    }
    fn push_many(&mut self, (): (), count: usize) {
        self.0 += count;
    }
    fn constant(&self) -> Option<()> {
        (self.0 > 0).then_some(())
    }
    fn weave(&mut self, _: (&Self, usize), _: (&Self, usize), _: &Self, steps: &[Step]) {
        self.0 += woven(steps);
    }
    fn ascends(&self, lower: usize, upper: usize) -> bool {
        upper - lower < 2
    }
    /// Units are all equal.
    fn seek(&self, lower: usize, upper: usize, (): ()) -> usize {
        lower.min(upper)
    }
}
