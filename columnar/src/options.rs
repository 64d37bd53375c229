//! Columns of `Option` and `Result`: which variant, and the values of each.
//!
//! `None < Some(_)` and `Ok(_) < Err(_)`, as the standard library orders them.
use crate::hash::{combine, mix};
use crate::seal::Sealer;
use crate::traits::{Column, Columnar};
use crate::variants::{EnumLayout, Variants};

/// A column of `Option<T>`, over the column of `T`.
#[derive(Debug, Default)]
pub struct Options<C> {
    variants: Variants,
    nones: usize,
    somes: C,
}

impl<T: Columnar> Columnar for Option<T> {
    type Ref<'a> = Option<T::Ref<'a>>;
    type Column = Options<T::Column>;
    #[inline]
    fn borrow(&self) -> Self::Ref<'_> {
        self.as_ref().map(T::borrow)
    }
    #[inline]
    fn to_owned(value: Self::Ref<'_>) -> Self {
        value.map(T::to_owned)
    }
    #[inline]
    fn reborrow<'b, 'a: 'b>(value: Self::Ref<'a>) -> Self::Ref<'b> {
        value.map(T::reborrow)
    }
    #[inline]
    fn hash(value: Self::Ref<'_>) -> u64 {
        value.map_or(mix(0), |value| combine(mix(1), T::hash(value)))
    }
}

impl<C: Column> Options<C> {
    const LAYOUT: EnumLayout = EnumLayout::new(1, &[(0, true), (C::PREFIX_BITS, C::PREFIX_EXACT)]);
}

impl<C: Column> Column for Options<C> {
    type Owned = Option<C::Owned>;
    const PREFIX_EXACT: bool = Self::LAYOUT.exact;
    const PREFIX_BITS: u32 = Self::LAYOUT.bits;

    #[inline]
    fn len(&self) -> usize {
        self.variants.len()
    }
    #[inline]
    fn get(&self, index: usize) -> <Self::Owned as Columnar>::Ref<'_> {
        match self.variants.get(index) {
            (0, _) => None,
            (_, slot) => Some(self.somes.get(slot)),
        }
    }
    #[inline]
    fn push(&mut self, value: <Self::Owned as Columnar>::Ref<'_>) {
        match value {
            None => {
                self.variants.push(0, self.nones);
                self.nones += 1;
            }
            Some(value) => {
                self.variants.push(1, self.somes.len());
                self.somes.push(value);
            }
        }
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let rows = [self.nones, self.somes.len()];
        let [none, some] = self.variants.extend_from(&other.variants, lower, upper, rows);
        self.nones += none.1 - none.0;
        self.somes.extend_from(&other.somes, some.0, some.1);
    }
    fn clear(&mut self) {
        self.variants.clear();
        self.nones = 0;
        self.somes.clear();
    }
    fn reserve(&mut self, additional: usize) {
        self.variants.reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.variants.seal_in(sealer) && self.somes.seal_in(sealer)
    }
    fn bytes(&self) -> usize {
        self.variants.bytes() + self.somes.bytes()
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        match self.variants.get(index) {
            (0, _) => Self::LAYOUT.prefix(0, 0, 0),
            (_, slot) => Self::LAYOUT.prefix(1, self.somes.prefix(slot), C::PREFIX_BITS),
        }
    }
    fn check_invariants(&self) {
        self.variants.check_invariants([self.nones, self.somes.len()]);
        self.somes.check_invariants();
    }
}

/// A column of `Result<T, E>`, over the columns of `T` and `E`.
#[derive(Debug, Default)]
pub struct Results<C, D> {
    variants: Variants,
    oks: C,
    errs: D,
}

impl<T: Columnar, E: Columnar> Columnar for Result<T, E> {
    type Ref<'a> = Result<T::Ref<'a>, E::Ref<'a>>;
    type Column = Results<T::Column, E::Column>;
    #[inline]
    fn borrow(&self) -> Self::Ref<'_> {
        self.as_ref().map(T::borrow).map_err(E::borrow)
    }
    #[inline]
    fn to_owned(value: Self::Ref<'_>) -> Self {
        value.map(T::to_owned).map_err(E::to_owned)
    }
    #[inline]
    fn reborrow<'b, 'a: 'b>(value: Self::Ref<'a>) -> Self::Ref<'b> {
        value.map(T::reborrow).map_err(E::reborrow)
    }
    #[inline]
    fn hash(value: Self::Ref<'_>) -> u64 {
        match value {
            Ok(value) => combine(mix(0), T::hash(value)),
            Err(error) => combine(mix(1), E::hash(error)),
        }
    }
}

impl<C: Column, D: Column> Results<C, D> {
    const LAYOUT: EnumLayout =
        EnumLayout::new(1, &[(C::PREFIX_BITS, C::PREFIX_EXACT), (D::PREFIX_BITS, D::PREFIX_EXACT)]);
}

impl<C: Column, D: Column> Column for Results<C, D> {
    type Owned = Result<C::Owned, D::Owned>;
    const PREFIX_EXACT: bool = Self::LAYOUT.exact;
    const PREFIX_BITS: u32 = Self::LAYOUT.bits;

    #[inline]
    fn len(&self) -> usize {
        self.variants.len()
    }
    #[inline]
    fn get(&self, index: usize) -> <Self::Owned as Columnar>::Ref<'_> {
        match self.variants.get(index) {
            (0, slot) => Ok(self.oks.get(slot)),
            (_, slot) => Err(self.errs.get(slot)),
        }
    }
    #[inline]
    fn push(&mut self, value: <Self::Owned as Columnar>::Ref<'_>) {
        match value {
            Ok(value) => {
                self.variants.push(0, self.oks.len());
                self.oks.push(value);
            }
            Err(error) => {
                self.variants.push(1, self.errs.len());
                self.errs.push(error);
            }
        }
    }
    fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
        let rows = [self.oks.len(), self.errs.len()];
        let [ok, err] = self.variants.extend_from(&other.variants, lower, upper, rows);
        self.oks.extend_from(&other.oks, ok.0, ok.1);
        self.errs.extend_from(&other.errs, err.0, err.1);
    }
    fn clear(&mut self) {
        self.variants.clear();
        self.oks.clear();
        self.errs.clear();
    }
    fn reserve(&mut self, additional: usize) {
        self.variants.reserve(additional);
    }
    fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
        self.variants.seal_in(sealer) && self.oks.seal_in(sealer) && self.errs.seal_in(sealer)
    }
    fn bytes(&self) -> usize {
        self.variants.bytes() + self.oks.bytes() + self.errs.bytes()
    }
    #[inline]
    fn prefix(&self, index: usize) -> u64 {
        match self.variants.get(index) {
            (0, slot) => Self::LAYOUT.prefix(0, self.oks.prefix(slot), C::PREFIX_BITS),
            (_, slot) => Self::LAYOUT.prefix(1, self.errs.prefix(slot), D::PREFIX_BITS),
        }
    }
    fn check_invariants(&self) {
        self.variants.check_invariants([self.oks.len(), self.errs.len()]);
        self.oks.check_invariants();
        self.errs.check_invariants();
    }
}
