//! A column of booleans: a bitmap, or nothing when all are the same.
//!
//! Bit `i % 64` of word `i / 64` is value `i`; bits past the length are zero.
use crate::frame::{Fields, Frame};
use crate::hash::mix;
use crate::seal::Sealer;
use crate::traits::{Column, Columnar};
use kpg_arena::Buffer;

/// A column of `bool`.
#[derive(Debug, Default)]
pub struct Bools {
    words: Buffer<u64>,
    len: usize,
    /// The one value, when sealed and all are the same; `words` is empty then.
    constant: Option<bool>,
}

impl Bools {
    #[cold]
    fn decode(&mut self, value: bool) {
        self.constant = None;
        let len = std::mem::take(&mut self.len);
        self.words.reserve(len / 64 + 1);
        self.push_many(value, len);
    }

    fn push_many(&mut self, value: bool, count: usize) {
        let mut left = count;
        while left > 0 {
            let bits = left.min(64 - self.len % 64);
            let mask = u64::MAX >> (64 - bits);
            self.push_bits(if value { mask } else { 0 }, bits);
            left -= bits;
        }
    }

    /// Appends the low `bits` (1 to 64) of `word`; the others are zero.
    fn push_bits(&mut self, word: u64, bits: usize) {
        let used = self.len % 64;
        if used == 0 {
            self.words.push(word);
        } else {
            let last = self.words.len() - 1;
            self.words[last] |= word << used;
            if used + bits > 64 {
                self.words.push(word >> (64 - used));
            }
        }
        self.len += bits;
    }

    /// The `bits` (1 to 64) values from `index` on, of a bitmap.
    fn bits_at(&self, index: usize, bits: usize) -> u64 {
        let (word, shift) = (index / 64, index % 64);
        let mut value = self.words[word] >> shift;
        if shift + bits > 64 {
            value |= self.words[word + 1] << (64 - shift);
        }
        value & (u64::MAX >> (64 - bits))
    }
}

impl Columnar for bool {
    type Ref<'a> = bool;
    type Column = Bools;
    #[inline]
    fn borrow(&self) -> bool {
        *self
    }
    #[inline]
    fn to_owned(value: bool) -> bool {
        value
    }
    #[inline]
    fn reborrow<'b, 'a: 'b>(value: bool) -> bool {
        value
    }
    #[inline]
    fn hash(value: bool) -> u64 {
        mix(u64::from(value))
    }
}

impl Column for Bools {
    type Owned = bool;
    const PREFIX_EXACT: bool = true;
    const PREFIX_BITS: u32 = 1;

    #[inline]
    fn len(&self) -> usize {
        self.len
    }
    #[inline]
    fn get(&self, index: usize) -> bool {
        assert!(index < self.len, "index {index} of a column of {}", self.len);
        match self.constant {
            Some(value) => value,
            None => self.words[index / 64] >> (index % 64) & 1 == 1,
        }
    }
    #[inline]
    fn push(&mut self, value: bool) {
        if let Some(constant) = self.constant {
            self.decode(constant);
        }
        self.push_bits(u64::from(value), 1);
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        assert!(lower <= upper && upper <= other.len, "range {lower}..{upper} of a column of {}", other.len);
        if let Some(constant) = self.constant {
            self.decode(constant);
        }
        if let Some(constant) = other.constant {
            return self.push_many(constant, upper - lower);
        }
        let mut index = lower;
        while index < upper {
            let bits = (upper - index).min(64);
            self.push_bits(other.bits_at(index, bits), bits);
            index += bits;
        }
    }
    fn clear(&mut self) {
        self.words.clear();
        self.len = 0;
        self.constant = None;
    }
    fn reserve(&mut self, additional: usize) {
        self.words.reserve(additional.div_ceil(64));
    }
    /// In one step: a bitmap of ten million values is a megabyte.
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        sealer.part(|fuel, _| {
            if self.len == 0 || self.constant.is_some() {
                return true;
            }
            let ones: usize = self.words.iter().map(|word| word.count_ones() as usize).sum();
            *fuel = fuel.saturating_sub(self.words.len());
            if ones == 0 || ones == self.len {
                self.constant = Some(ones > 0);
                self.words = Buffer::new();
            } else {
                self.words.shrink_to_fit();
            }
            true
        })
    }
    fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
        let (first, last) = (u64::from(self.get(lower)), u64::from(self.get(upper - 1)));
        let all = if self.constant.is_some() { (first, last) } else { (0, 1) };
        frame.push(all.0, all.1)
    }
    fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
        let field = fields.next().expect("a field of the frame");
        words.iter_mut().zip(lower..).for_each(|(word, index)| *word |= field.code(u64::from(self.get(index))));
    }
    fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
        let field = fields.next().expect("a field of the frame");
        let value = |word: u64| if field.bits() > 0 { field.delta(word) != 0 } else { field.least != 0 };
        words.iter().for_each(|word| self.push(value(*word)));
    }
    fn bytes(&self) -> usize {
        self.words.capacity() * 8
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        u64::from(self.get(index))
    }
    fn check_invariants(&self) {
        if self.constant.is_some() {
            assert!(self.words.is_empty() && self.len > 0);
            return;
        }
        assert_eq!(self.words.len(), self.len.div_ceil(64));
        if !self.len.is_multiple_of(64) {
            assert_eq!(self.words[self.len / 64] >> (self.len % 64), 0, "bits past the end");
        }
    }
}
