//! Values for the checks: pseudo-random, in shapes that lead to each encoding.
use crate::traits::Columnar;
use crate::{F32, F64, HeapSize, Opaque, mix};

/// A stream of values of one shape.
#[derive(Clone, Debug)]
pub struct Values {
    shape: u8,
    seed: u64,
    count: u64,
}

impl Values {
    /// A stream, by shape and seed.
    #[must_use]
    pub fn new(shape: u8, seed: u8) -> Self {
        Values { shape, seed: u64::from(seed), count: 0 }
    }

    /// Any word.
    pub fn any(&mut self) -> u64 {
        self.count += 1;
        mix(self.seed << 32 | self.count)
    }

    /// A word of the stream's shape.
    pub fn word(&mut self) -> u64 {
        let base = mix(self.seed);
        match self.shape % 10 {
            0 => base,
            1 => {
                self.count += 1;
                (base >> 8).wrapping_add(self.count * (self.seed % 5))
            }
            2 => {
                self.count += 1;
                self.count.wrapping_mul(self.seed)
            }
            3 => self.any() % 4,
            4 => base.wrapping_add(self.any() % 256),
            5 => (base >> 1) + self.any() % 65536,
            6 => (base >> 1) + self.any() % (1 << 32),
            7 => self.any(),
            8 => [0, u64::MAX, 1 << 63, (1 << 63) - 1, 1, u64::MAX - 1][self.any() as usize % 6],
            _ => {
                self.count += 1;
                u64::MAX - self.count
            }
        }
    }

    /// A short length.
    pub fn length(&mut self) -> usize {
        match self.shape % 3 {
            0 => 2,
            1 => self.any() as usize % 3,
            _ => self.any() as usize % 12,
        }
    }
}

/// A type that the checks can draw.
pub trait Sample: Columnar {
    /// The next value of the stream.
    fn sample(values: &mut Values) -> Self;
}

macro_rules! ints {
    ($($int:ty),*) => { $(
        impl Sample for $int {
            fn sample(values: &mut Values) -> Self {
                values.word() as $int
            }
        }
    )* };
}
ints!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

impl Sample for u128 {
    fn sample(values: &mut Values) -> Self {
        let high = if values.shape.is_multiple_of(2) { 7 } else { values.word() };
        u128::from(high) << 64 | u128::from(values.word())
    }
}
impl Sample for i128 {
    fn sample(values: &mut Values) -> Self {
        u128::sample(values) as i128
    }
}
impl Sample for F64 {
    fn sample(values: &mut Values) -> Self {
        F64(f64::from_bits(values.word()))
    }
}
impl Sample for F32 {
    fn sample(values: &mut Values) -> Self {
        F32(f32::from_bits(values.word() as u32))
    }
}
impl Sample for char {
    fn sample(values: &mut Values) -> Self {
        let code = values.word() as u32;
        char::from_u32(code).or(char::from_u32(code % 0xD800)).unwrap_or('\0')
    }
}
impl Sample for bool {
    fn sample(values: &mut Values) -> Self {
        values.word() % 2 == 1
    }
}
impl Sample for () {
    fn sample(_: &mut Values) -> Self {}
}
impl Sample for String {
    fn sample(values: &mut Values) -> Self {
        let alphabet = ["a", "b", "\0", "ab", "é", "日", "\u{10FFFF}", "long enough to exceed a word"];
        let length = values.length();
        (0..length).map(|_| alphabet[values.word() as usize % alphabet.len()]).collect()
    }
}
impl<T: Sample> Sample for Vec<T> {
    fn sample(values: &mut Values) -> Self {
        let length = values.length();
        (0..length).map(|_| T::sample(values)).collect()
    }
}
impl<T: Sample> Sample for Option<T> {
    fn sample(values: &mut Values) -> Self {
        (!values.word().is_multiple_of(3)).then(|| T::sample(values))
    }
}
impl<T: Sample, E: Sample> Sample for Result<T, E> {
    fn sample(values: &mut Values) -> Self {
        if values.word().is_multiple_of(3) { Err(E::sample(values)) } else { Ok(T::sample(values)) }
    }
}
impl<T> Sample for Opaque<T>
where
    T: Sample + std::hash::Hash + HeapSize,
{
    fn sample(values: &mut Values) -> Self {
        Opaque(T::sample(values))
    }
}

macro_rules! tuples {
    ($($($field:ident)*;)*) => { $(
        impl<$($field: Sample),*> Sample for ($($field,)*) {
            fn sample(values: &mut Values) -> Self {
                ($($field::sample(values),)*)
            }
        }
    )* };
}
tuples! { A; A B; A B C; A B C D; A B C D E; A B C D E F; A B C D E F G; A B C D E F G H; }
