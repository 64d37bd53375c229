//! One check for tests, fuzz target and the replay of saved inputs: a column against a `Vec`. Built with the feature
//! `check` only, which tests and fuzz targets ask for.
//!
//! Bytes are read as operations on two columns of a type and on two vectors; after each operation the columns
//! must hold what the vectors hold, and at the end every kernel (file `check/kernels.rs`) must agree with its
//! naive form.
mod faulty;
mod kernels;
#[cfg(test)]
mod mutants;
mod values;

pub use values::{Sample, Values};

use crate::seal::Sealer;
use crate::traits::{Column, Columnar};
use kpg_arena::{Arena, ArenaConfig};

/// Lengths stay below this, so that the naive forms stay fast.
const LONGEST: usize = 400;

/// Reads operations from bytes; zeros after the end.
struct Source<'a>(&'a [u8]);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((&first, rest)) => {
                self.0 = rest;
                first
            }
            None => 0,
        }
    }

    /// A number in `0..=bound`.
    fn up_to(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) * 257 % (bound + 1)
    }

    fn values(&mut self) -> Values {
        Values::new(self.byte(), self.byte())
    }
}

/// A column and what it must hold.
struct Pair<T: Columnar> {
    column: T::Column,
    model: Vec<T>,
}

impl<T: Columnar> Pair<T> {
    fn new() -> Self {
        Pair { column: T::Column::default(), model: Vec::new() }
    }

    /// The column holds the model, and reads in every way agree.
    fn check(&self) {
        let Pair { column, model } = self;
        column.check_invariants();
        assert_eq!(column.len(), model.len());
        assert_eq!(column.is_empty(), model.is_empty());
        for (index, value) in model.iter().enumerate() {
            let stored = column.get(index);
            let borrowed = value.borrow();
            assert_eq!(T::reborrow(stored), T::reborrow(borrowed), "value {index}");
            assert_eq!(&<T as Columnar>::to_owned(stored), value);
            assert_eq!(T::hash(stored), T::hash(borrowed), "hash of {value:?}");
            assert_eq!(format!("{stored:?}").is_empty(), format!("{borrowed:?}").is_empty());
        }
    }
}

/// Runs the operations that `bytes` spell on columns of `T`.
///
/// # Panics
/// If a column disagrees with its model.
pub fn check<T: Sample>(bytes: &[u8]) {
    let mut source = Source(bytes);
    let mut pairs = [Pair::<T>::new(), Pair::<T>::new()];
    while !source.0.is_empty() {
        step(&mut source, &mut pairs);
        pairs[0].check();
    }
    pairs[1].check();
    kernels::check(&pairs[0].column, &pairs[0].model);
    kernels::check_merges::<T>(&pairs[0].model, &pairs[1].model);
}

fn step<T: Sample>(source: &mut Source<'_>, pairs: &mut [Pair<T>; 2]) {
    let [this, that] = pairs;
    match source.byte() % 16 {
        0..=5 => {
            let count = source.up_to(70);
            let mut values = source.values();
            for _ in 0..count.min(LONGEST - this.model.len().min(LONGEST)) {
                let value = T::sample(&mut values);
                this.column.push(value.borrow());
                this.model.push(value);
            }
        }
        6 => {
            let mut values = source.values();
            let owned: Vec<T> = (0..3).map(|_| T::sample(&mut values)).collect();
            this.column.push_values(&owned);
            this.model.extend(owned);
        }
        7 | 8 => {
            let lower = source.up_to(that.model.len());
            let upper = lower + source.up_to(that.model.len() - lower);
            this.column.extend_from(&that.column, lower, upper);
            this.model.extend_from_slice(&that.model[lower..upper]);
        }
        9 if !that.model.is_empty() => {
            let count = source.up_to(80);
            let mut values = source.values();
            let len = that.model.len() as u64;
            let indices: Vec<u32> = (0..count).map(|_| (values.any() % len) as u32).collect();
            this.column.gather(&that.column, &indices);
            this.model.extend(indices.iter().map(|&i| that.model[i as usize].clone()));
        }
        10 => {
            this.column.clear();
            this.model.clear();
        }
        11 => this.column.reserve(source.up_to(100)),
        12 => this.column.seal(),
        13 => seal_in_slices(source, this),
        _ => pairs.swap(0, 1),
    }
}

/// Seals with little fuel at a time, and may give up; the column can be read in between.
fn seal_in_slices<T: Sample>(source: &mut Source<'_>, this: &mut Pair<T>) {
    let (slice, patience) = (1 + source.up_to(60), source.up_to(100));
    let mut sealer = Sealer::new();
    for round in 0..=2 * patience {
        let mut fuel = slice;
        if sealer.slice(&mut fuel, |sealer| this.column.seal_in(sealer)) {
            let before = this.column.bytes();
            this.column.seal();
            assert_eq!(this.column.bytes(), before, "no encoding is smaller");
            return;
        }
        assert!(fuel == 0, "a slice that is not the last uses up its fuel");
        if round % 8 == 0 {
            this.check();
        }
    }
}

macro_rules! kinds {
    ($($name:ident: $type:ty),* $(,)?) => {
        /// Chooses a type by the first byte and runs [`check`] on the others; from 128 on, with a mapping of its own
        /// for each block, so that overruns are seen. A planted fault is for canaries: one of the types has a column
        /// that loses values.
        ///
        /// # Panics
        /// If a column disagrees with its model.
        // Inline, so that only who calls it pays for compiling all these types.
        #[inline]
        pub fn check_bytes(bytes: &[u8], planted: bool) {
            const KINDS: &[fn(&[u8])] = &[$(check::<$type>),*];
            let Some((&first, rest)) = bytes.split_first() else { return };
            let config = ArenaConfig { per_block: first >= 128, huge_pages: false, ..ArenaConfig::default() };
            let arena = Arena::new(config);
            let entered = arena.enter();
            match usize::from(first % 128) % KINDS.len() {
                0 if planted => faulty::check_faulty(rest),
                kind => KINDS[kind](rest),
            }
            arena.check_invariants();
            assert_eq!(arena.stats().live_bytes, 0, "columns are gone");
            drop(entered);
        }

        /// Each type by name, and [`check`] of it.
        // Inline for the same reason.
        #[inline]
        pub fn kinds() -> Vec<(&'static str, fn(Vec<u8>))> {
            vec![$((stringify!($name), |bytes| check::<$type>(&bytes))),*]
        }
    };
}

kinds! {
    u8s: u8, u16s: u16, u32s: u32, u64s: u64, usizes: usize, u128s: u128,
    i8s: i8, i16s: i16, i32s: i32, i64s: i64, isizes: isize, i128s: i128,
    f32s: crate::F32, f64s: crate::F64, chars: char, bools: bool, units: (),
    strings: String, byte_vecs: Vec<u8>, u16_vecs: Vec<u16>, i64_vecs: Vec<i64>,
    string_vecs: Vec<String>, vec_vecs: Vec<Vec<u8>>, bool_vecs: Vec<bool>, unit_vecs: Vec<()>,
    options: Option<u32>, wide_options: Option<u64>, nested_options: Option<Option<String>>,
    results: Result<u8, String>, exact_results: Result<u8, u32>, wide_results: Result<u64, ()>,
    opaques: crate::Opaque<String>, opaque_pairs: (crate::Opaque<u8>, u8),
    ones: (u64,), pairs: (u32, i32), wide_pairs: (u64, u64), mixed: (u8, String, Vec<u32>),
    fours: (bool, (), i16, u32), fives: (u8, u8, u8, u8, u8), sixes: (i8, u8, i8, u8, i8, (u8, u8)),
    sevens: (u8, u16, u32, u64, i64, char, bool),
    eights: (i64, i64, u8, String, Option<u8>, (), (u8, i8), u128),
    units_first: ((), (String, u8)),
}
