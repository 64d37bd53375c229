//! Columns with one fault each, for `mutants` and for the fuzz target's canary.
use super::{Sample, Values, check};
use crate::seal::Sealer;
use crate::traits::{Column, Columnar};
use crate::{Fields, Frame, Ints, Packed};

/// The check of a column that loses its values when seven of them are sealed.
pub(super) fn check_faulty(bytes: &[u8]) {
    check::<Faulty<5>>(bytes);
}

/// A number whose column has the fault `F`; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Faulty<const F: u8>(u64);

#[derive(Default)]
pub(super) struct FaultyColumn<const F: u8>(Ints<u64>);

impl<const F: u8> Columnar for Faulty<F> {
    type Ref<'a> = Self;
    type Column = FaultyColumn<F>;
    fn borrow(&self) -> Self {
        *self
    }
    fn to_owned(value: Self) -> Self {
        value
    }
    fn reborrow<'b, 'a: 'b>(value: Self) -> Self {
        value
    }
    fn hash(value: Self) -> u64 {
        if F == 1 { value.0 % 2 } else { value.0 }
    }
}

impl<const F: u8> Column for FaultyColumn<F> {
    type Owned = Faulty<F>;
    const PREFIX_EXACT: bool = true;
    const PREFIX_BITS: u32 = if F == 2 { 32 } else { 64 };
    fn len(&self) -> usize {
        self.0.len()
    }
    fn get(&self, index: usize) -> Faulty<F> {
        Faulty(self.0.get(index))
    }
    fn push(&mut self, value: Faulty<F>) {
        self.0.push(value.0);
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let lower = if F == 3 { lower.saturating_sub(1) } else { lower };
        self.0.extend_from(&other.0, lower, upper);
    }
    fn clear(&mut self) {
        if F != 4 {
            self.0.clear();
        }
    }
    fn reserve(&mut self, additional: usize) {
        self.0.reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        if F == 5 && self.0.len() == 7 {
            self.0.clear();
        }
        self.0.seal_in(sealer)
    }
    fn bytes(&self) -> usize {
        self.0.bytes()
    }
    fn prefix(&self, index: usize) -> u64 {
        match F {
            6 => self.0.get(index).wrapping_add(1),
            7 => self.0.get(index) / 2,
            _ => self.0.get(index),
        }
    }
    fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
        let packed = self.0.pack(lower, upper, room, keys);
        match F {
            8 => Packed { exact: true, ..packed },
            9 => Packed { bits: packed.bits / 2, ..packed },
            _ => packed,
        }
    }
    fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
        self.0.frame(lower, upper, frame)
    }
    fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
        self.0.encode(lower, fields, words);
        if F == 14 {
            words.iter_mut().for_each(|word| *word &= !1);
        }
    }
    fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
        let words = if F == 15 { &words[..words.len() / 2] } else { words };
        self.0.decode(fields, words);
    }
    fn gather(&mut self, other: &Self, indices: &[u32]) {
        let indices = if F == 10 { &indices[indices.len() / 2..] } else { indices };
        self.0.gather(&other.0, indices);
    }
    fn push_values(&mut self, values: &[Faulty<F>]) {
        for value in values.iter().skip(usize::from(F == 11)) {
            self.push(*value);
        }
    }
    fn seek(&self, lower: usize, upper: usize, target: Faulty<F>) -> usize {
        match F {
            12 => self.0.seek(lower, upper, target.0.saturating_add(1)),
            13 => self.0.seek(0, upper, target.0),
            _ => self.0.seek(lower, upper, target.0),
        }
    }
}

impl<const F: u8> Sample for Faulty<F> {
    fn sample(values: &mut Values) -> Self {
        Faulty(u64::sample(values))
    }
}
