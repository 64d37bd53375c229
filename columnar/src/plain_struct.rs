//! A column for a plain struct of the caller's, with little code.

/// Makes a `Copy` struct with up to eight named fields columnar, with itself as its reference: a column for
/// each field, ordered by them in the order given (as a derived `Ord`).
///
/// The struct must be `Clone + Copy + Ord + Debug` when its fields are. Each type parameter of the struct gets
/// the bound [`Plain`](crate::Plain); more go in a `where` clause. The first line names and documents the
/// column type that is made.
///
/// ```
/// #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
/// pub struct Product<A, B> {
///     outer: A,
///     inner: B,
/// }
/// kpg_columnar::plain_struct_column! {
///     /// A column of products.
///     pub struct ProductColumn for Product<A, B> { outer: A, inner: B }
/// }
///
/// use kpg_columnar::Column;
/// let mut column = ProductColumn::<u64, u32>::default();
/// column.push(Product { outer: 3, inner: 4 });
/// assert_eq!(column.get(0), Product { outer: 3, inner: 4 });
/// ```
#[macro_export]
macro_rules! plain_struct_column {
    (
        $(#[$meta:meta])*
        $vis:vis struct $column:ident for $name:ident $(<$($param:ident),+ $(,)?>)?
        { $($field:ident: $type:ty),+ $(,)? }
        $(where $($bounds:tt)+)?
    ) => {
        $(#[$meta])*
        $vis struct $column $(<$($param),+>)? (
            <($($type,)+) as $crate::Columnar>::Column
        )
        where
            $($($param: $crate::Plain,)+)?
            $($($bounds)+)?;

        impl $(<$($param),+>)? ::core::default::Default for $column $(<$($param),+>)?
        where
            $($($param: $crate::Plain,)+)?
            $($($bounds)+)?
        {
            fn default() -> Self {
                $column(::core::default::Default::default())
            }
        }

        impl $(<$($param),+>)? $crate::Columnar for $name $(<$($param),+>)?
        where
            $($($param: $crate::Plain,)+)?
            $($($bounds)+)?
        {
            type Ref<'a> = Self;
            type Column = $column $(<$($param),+>)?;
            #[inline]
            fn borrow(&self) -> Self {
                *self
            }
            #[inline]
            fn to_owned(value: Self) -> Self {
                value
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: Self) -> Self {
                value
            }
            #[inline]
            fn hash(value: Self) -> u64 {
                <($($type,)+) as $crate::Columnar>::hash(($(value.$field,)+))
            }
        }

        impl $(<$($param),+>)? $crate::Column for $column $(<$($param),+>)?
        where
            $($($param: $crate::Plain,)+)?
            $($($bounds)+)?
        {
            type Owned = $name $(<$($param),+>)?;
            const PREFIX_EXACT: bool = <<($($type,)+) as $crate::Columnar>::Column
                as $crate::Column>::PREFIX_EXACT;
            const PREFIX_BITS: u32 = <<($($type,)+) as $crate::Columnar>::Column
                as $crate::Column>::PREFIX_BITS;
            #[inline]
            fn len(&self) -> usize {
                $crate::Column::len(&self.0)
            }
            #[inline]
            fn get(&self, index: usize) -> Self::Owned {
                let ($($field,)+) = $crate::Column::get(&self.0, index);
                $name { $($field),+ }
            }
            #[inline]
            fn push(&mut self, value: Self::Owned) {
                $crate::Column::push(&mut self.0, ($(value.$field,)+));
            }
            fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
                $crate::Column::extend_from(&mut self.0, &other.0, lower, upper);
            }
            fn clear(&mut self) {
                $crate::Column::clear(&mut self.0);
            }
            fn reserve(&mut self, additional: usize) {
                $crate::Column::reserve(&mut self.0, additional);
            }
            fn seal_in(&mut self, sealer: &mut $crate::Sealer) -> bool {
                $crate::Column::seal_in(&mut self.0, sealer)
            }
            fn bytes(&self) -> usize {
                $crate::Column::bytes(&self.0)
            }
            #[inline]
            fn prefix(&self, index: usize) -> u64 {
                $crate::Column::prefix(&self.0, index)
            }
            fn pack(
                &self,
                lower: usize,
                upper: usize,
                room: u32,
                keys: &mut [u64],
            ) -> $crate::Packed {
                $crate::Column::pack(&self.0, lower, upper, room, keys)
            }
            fn prefixes(&self, lower: usize, out: &mut [u64]) {
                $crate::Column::prefixes(&self.0, lower, out);
            }
            fn frame(&self, lower: usize, upper: usize, frame: &mut $crate::Frame) -> bool {
                $crate::Column::frame(&self.0, lower, upper, frame)
            }
            fn encode(&self, lower: usize, fields: &mut $crate::Fields<'_>, words: &mut [u64]) {
                $crate::Column::encode(&self.0, lower, fields, words);
            }
            fn decode(&mut self, fields: &mut $crate::Fields<'_>, words: &[u64]) {
                $crate::Column::decode(&mut self.0, fields, words);
            }
            fn gather(&mut self, other: &Self, indices: &[u32]) {
                $crate::Column::gather(&mut self.0, &other.0, indices);
            }
            #[inline]
            fn seek(&self, lower: usize, upper: usize, target: Self::Owned) -> usize {
                $crate::Column::seek(&self.0, lower, upper, ($(target.$field,)+))
            }
            fn push_many(&mut self, value: Self::Owned, count: usize) {
                $crate::Column::push_many(&mut self.0, ($(value.$field,)+), count);
            }
            fn constant(&self) -> Option<Self::Owned> {
                let ($($field,)+) = $crate::Column::constant(&self.0)?;
                Some($name { $($field),+ })
            }
            fn prepare_merge(&mut self, inputs: &[&Self], sums: bool) {
                let inputs: Vec<_> = inputs.iter().map(|input| &input.0).collect();
                $crate::Column::prepare_merge(&mut self.0, &inputs, sums);
            }
            fn weave(&mut self, a: (&Self, usize), b: (&Self, usize), third: &Self, steps: &[$crate::Step]) {
                $crate::Column::weave(&mut self.0, (&a.0.0, a.1), (&b.0.0, b.1), &third.0, steps);
            }
            fn check_invariants(&self) {
                $crate::Column::check_invariants(&self.0);
            }
        }
    };
}
