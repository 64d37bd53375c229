//! A column of tuples is a tuple of columns.
//!
//! Prefixes: the first field's, and while it is exact and bits are left, the next field's after it, so that
//! `(u32, u32)` has an exact 64-bit prefix. A tuple of plain values is plain.
use crate::frame::{Fields, Frame};
use crate::hash::{combine, mix};
use crate::seal::Sealer;
use crate::traits::{Column, Columnar, Packed, fit};
use crate::weave::{BLOCK, Step};

/// Bits and exactness of a tuple's prefix, field by field; the sum is evaluated by the compiler.
#[derive(Clone, Copy)]
struct Layout {
    bits: u32,
    exact: bool,
}

impl Layout {
    const EMPTY: Layout = Layout { bits: 0, exact: true };

    /// Bits the next field gets.
    const fn room(self, field_bits: u32) -> u32 {
        if !self.exact {
            0
        } else if field_bits < u64::BITS - self.bits {
            field_bits
        } else {
            u64::BITS - self.bits
        }
    }

    const fn then(self, field_bits: u32, field_exact: bool) -> Layout {
        let room = self.room(field_bits);
        Layout { bits: self.bits + room, exact: self.exact && field_exact && room == field_bits }
    }
}

#[inline]
const fn shift_in(prefix: u64, field: u64, bits: u32, room: u32) -> u64 {
    if room == 0 {
        prefix
    } else if room == u64::BITS {
        fit(field, bits, room)
    } else {
        prefix << room | fit(field, bits, room)
    }
}

macro_rules! tuple {
    ($name:ident: $($field:ident $index:tt),*) => {
        /// A column of tuples: a column for each field.
        #[derive(Debug, Default)]
        pub struct $name<$($field),*>($(pub $field),*);

        impl<$($field: Columnar),*> Columnar for ($($field,)*) {
            type Ref<'a> = ($($field::Ref<'a>,)*);
            type Column = $name<$($field::Column),*>;
            #[inline]
            fn borrow(&self) -> Self::Ref<'_> {
                ($(self.$index.borrow(),)*)
            }
            #[inline]
            fn to_owned(value: Self::Ref<'_>) -> Self {
                ($($field::to_owned(value.$index),)*)
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: Self::Ref<'a>) -> Self::Ref<'b> {
                ($($field::reborrow(value.$index),)*)
            }
            #[inline]
            fn hash(value: Self::Ref<'_>) -> u64 {
                let mut state = mix(0);
                $(state = combine(state, $field::hash(value.$index));)*
                state
            }
        }

        impl<$($field: Column),*> Column for $name<$($field),*> {
            type Owned = ($($field::Owned,)*);
            const PREFIX_EXACT: bool =
                Layout::EMPTY$(.then($field::PREFIX_BITS, $field::PREFIX_EXACT))*.exact;
            const PREFIX_BITS: u32 =
                Layout::EMPTY$(.then($field::PREFIX_BITS, $field::PREFIX_EXACT))*.bits;

            #[inline]
            fn len(&self) -> usize {
                self.0.len()
            }
            #[inline]
            fn get(&self, index: usize) -> <Self::Owned as Columnar>::Ref<'_> {
                ($(self.$index.get(index),)*)
            }
            #[inline]
            fn push(&mut self, value: <Self::Owned as Columnar>::Ref<'_>) {
                $(self.$index.push(value.$index);)*
            }
            fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
                $(self.$index.extend_from(&other.$index, lower, upper);)*
            }
            fn clear(&mut self) {
                $(self.$index.clear();)*
            }
            fn reserve(&mut self, additional: usize) {
                $(self.$index.reserve(additional);)*
            }
            fn seal_in(&mut self, sealer: &mut Sealer) -> bool {
                true $(&& self.$index.seal_in(sealer))*
            }
            fn bytes(&self) -> usize {
                0 $(+ self.$index.bytes())*
            }
            #[inline]
            #[allow(unused_assignments)]
            fn prefix(&self, index: usize) -> u64 {
                let (mut prefix, mut layout) = (0, Layout::EMPTY);
                $(
                    let room = layout.room($field::PREFIX_BITS);
                    if room > 0 {
                        let field = self.$index.prefix(index);
                        prefix = shift_in(prefix, field, $field::PREFIX_BITS, room);
                    }
                    layout = layout.then($field::PREFIX_BITS, $field::PREFIX_EXACT);
                )*
                prefix
            }
            fn prefixes(&self, lower: usize, out: &mut [u64]) {
                let mut block = [0; BLOCK];
                for (start, out) in (lower..).step_by(BLOCK).zip(out.chunks_mut(BLOCK)) {
                    let (fields, mut layout) = (&mut block[..out.len()], Layout::EMPTY);
                    out.fill(0);
                    $(
                        let room = layout.room($field::PREFIX_BITS);
                        if room > 0 {
                            self.$index.prefixes(start, fields);
                            out.iter_mut()
                                .zip(fields.iter())
                                .for_each(|(slot, field)| *slot = shift_in(*slot, *field, $field::PREFIX_BITS, room));
                        }
                        layout = layout.then($field::PREFIX_BITS, $field::PREFIX_EXACT);
                    )*
                    let _ = layout;
                }
            }
            fn pack(&self, lower: usize, upper: usize, room: u32, keys: &mut [u64]) -> Packed {
                let mut packed = Packed { bits: 0, exact: true };
                $(
                    if packed.exact {
                        let field = self.$index.pack(lower, upper, room - packed.bits, keys);
                        packed = Packed { bits: packed.bits + field.bits, exact: field.exact };
                    }
                )*
                packed
            }
            fn frame(&self, lower: usize, upper: usize, frame: &mut Frame) -> bool {
                true $(&& self.$index.frame(lower, upper, frame))*
            }
            fn encode(&self, lower: usize, fields: &mut Fields<'_>, words: &mut [u64]) {
                $(self.$index.encode(lower, fields, words);)*
            }
            fn decode(&mut self, fields: &mut Fields<'_>, words: &[u64]) {
                $(self.$index.decode(fields, words);)*
            }
            fn gather(&mut self, other: &Self, indices: &[u32]) {
                $(self.$index.gather(&other.$index, indices);)*
            }
            fn push_many(&mut self, value: <Self::Owned as Columnar>::Ref<'_>, count: usize) {
                $(self.$index.push_many(value.$index, count);)*
            }
            fn constant(&self) -> Option<<Self::Owned as Columnar>::Ref<'_>> {
                Some(($(self.$index.constant()?,)*))
            }
            fn prepare_merge(&mut self, inputs: &[&Self], sums: bool) {
                $(self.$index.prepare_merge(&inputs.iter().map(|input| &input.$index).collect::<Vec<_>>(), sums);)*
            }
            fn weave(&mut self, a: (&Self, usize), b: (&Self, usize), third: &Self, steps: &[Step]) {
                $(self.$index.weave((&a.0.$index, a.1), (&b.0.$index, b.1), &third.$index, steps);)*
            }
            fn check_invariants(&self) {
                $(
                    assert_eq!(self.$index.len(), self.0.len(), "columns of one tuple");
                    self.$index.check_invariants();
                )*
            }
        }
    };
}

tuple!(Tuple1: A 0);
tuple!(Tuple2: A 0, B 1);
tuple!(Tuple3: A 0, B 1, C 2);
tuple!(Tuple4: A 0, B 1, C 2, D 3);
tuple!(Tuple5: A 0, B 1, C 2, D 3, E 4);
tuple!(Tuple6: A 0, B 1, C 2, D 3, E 4, F 5);
tuple!(Tuple7: A 0, B 1, C 2, D 3, E 4, F 5, G 6);
tuple!(Tuple8: A 0, B 1, C 2, D 3, E 4, F 5, G 6, H 7);

#[cfg(test)]
mod tests {
    use super::*;

    fn layout<T: Columnar>() -> (u32, bool) {
        (T::Column::PREFIX_BITS, T::Column::PREFIX_EXACT)
    }

    #[test]
    fn prefixes_pack_what_fits() {
        assert_eq!(layout::<(u32, u32)>(), (64, true));
        assert_eq!(layout::<(u32, (u16, i16))>(), (64, true));
        assert_eq!(layout::<((), u64, ())>(), (64, true));
        assert_eq!(layout::<(u64, u8)>(), (64, false));
        assert_eq!(layout::<(bool, u8, String, u8)>(), (64, false));
        assert_eq!(layout::<(u8, i8)>(), (16, true));
        assert_eq!(layout::<()>(), (0, true));
    }
}
