//! Generates `FooColumn`.
//!
//! A struct's column is that of the tuple of its fields, and that of an enum without fields is one of tags:
//! both wrap another column and convert references. Any other enum has its variants and, for each, the column
//! of the tuple of its fields.
use crate::parse::Item;
use crate::reference::tag_of;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

pub(crate) fn generate(item: &Item) -> TokenStream {
    let reference = &item.reference;
    if !item.is_enum {
        let fields = &item.shapes[0].fields;
        let (braces, tuple) = (fields.braces("f"), fields.tuple("f"));
        let inward = quote! { { let #reference #braces = value; #tuple } };
        let outward = quote! { { let #tuple = value; #reference #braces } };
        return wrapper(item, &fields.tuple_type(), &inward, &outward);
    }
    if !item.borrows() {
        let arms = item.shapes.iter().enumerate().map(|(tag, shape)| {
            let (suffix, tag, braces) = (&shape.suffix, tag as u8, shape.fields.braces("f"));
            quote! { #tag => #reference #suffix #braces }
        });
        let outward = quote! {
            match value { #(#arms,)* _ => ::core::unreachable!("no such tag was pushed") }
        };
        return wrapper(item, &quote! { u8 }, &tag_of(item, &quote! { value }), &outward);
    }
    enumeration(item)
}

/// A column that wraps the column of type `inner`; `inward` and `outward` convert the reference `value`.
fn wrapper(item: &Item, inner: &TokenStream, inward: &TokenStream, outward: &TokenStream) -> TokenStream {
    let Item { name, vis, column, krate, .. } = item;
    let (arguments, clause) = (item.arguments(), item.clause());
    let doc = format!("A column of [`{name}`].");
    let stored = quote! { <#inner as #krate::Columnar>::Column };
    quote! {
        #[doc = #doc]
        #vis struct #column #arguments (#stored) #clause;

        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::default::Default for #column #arguments #clause {
            fn default() -> Self {
                #column(::core::default::Default::default())
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments #krate::Column for #column #arguments #clause {
            type Owned = #name #arguments;
            const PREFIX_EXACT: bool = <#stored as #krate::Column>::PREFIX_EXACT;
            const PREFIX_BITS: u32 = <#stored as #krate::Column>::PREFIX_BITS;
            #[inline]
            fn len(&self) -> usize {
                #krate::Column::len(&self.0)
            }
            #[inline]
            fn get(&self, index: usize) -> <Self::Owned as #krate::Columnar>::Ref<'_> {
                let value = #krate::Column::get(&self.0, index);
                #outward
            }
            #[inline]
            fn push(&mut self, value: <Self::Owned as #krate::Columnar>::Ref<'_>) {
                #krate::Column::push(&mut self.0, #inward);
            }
            fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
                #krate::Column::extend_from(&mut self.0, &other.0, lower, upper);
            }
            fn clear(&mut self) {
                #krate::Column::clear(&mut self.0);
            }
            fn reserve(&mut self, additional: usize) {
                #krate::Column::reserve(&mut self.0, additional);
            }
            fn seal_in(&mut self, sealer: &mut #krate::Sealer) -> bool {
                #krate::Column::seal_in(&mut self.0, sealer)
            }
            fn bytes(&self) -> usize {
                #krate::Column::bytes(&self.0)
            }
            #[inline]
            fn prefix(&self, index: usize) -> u64 {
                #krate::Column::prefix(&self.0, index)
            }
            fn pack(
                &self,
                lower: usize,
                upper: usize,
                room: u32,
                keys: &mut [u64],
            ) -> #krate::Packed {
                #krate::Column::pack(&self.0, lower, upper, room, keys)
            }
            fn frame(&self, lower: usize, upper: usize, frame: &mut #krate::Frame) -> bool {
                #krate::Column::frame(&self.0, lower, upper, frame)
            }
            fn encode(&self, lower: usize, fields: &mut #krate::Fields<'_>, words: &mut [u64]) {
                #krate::Column::encode(&self.0, lower, fields, words);
            }
            fn decode(&mut self, fields: &mut #krate::Fields<'_>, words: &[u64]) {
                #krate::Column::decode(&mut self.0, fields, words);
            }
            fn gather(&mut self, other: &Self, indices: &[u32]) {
                #krate::Column::gather(&mut self.0, &other.0, indices);
            }
            fn seek(
                &self,
                lower: usize,
                upper: usize,
                value: <Self::Owned as #krate::Columnar>::Ref<'_>,
            ) -> usize {
                #krate::Column::seek(&self.0, lower, upper, #inward)
            }
            fn check_invariants(&self) {
                #krate::Column::check_invariants(&self.0);
            }
        }
    }
}

/// The names that the arms of an enum's column use.
struct Parts {
    /// The field of the column for each variant.
    columns: Vec<Ident>,
    /// Its type.
    types: Vec<TokenStream>,
    /// Its tag.
    tags: Vec<u8>,
}

fn enumeration(item: &Item) -> TokenStream {
    let Item { name, vis, column, krate, .. } = item;
    let (arguments, clause) = (item.arguments(), item.clause());
    let doc = format!("A column of [`{name}`].");
    let count = item.shapes.len();
    let types = item.shapes.iter().map(|shape| {
        let tuple = shape.fields.tuple_type();
        quote! { <#tuple as #krate::Columnar>::Column }
    });
    let parts = Parts {
        columns: (0..count).map(|tag| format_ident!("v{tag}")).collect(),
        types: types.collect(),
        tags: (0..count).map(|tag| tag as u8).collect(),
    };
    let values = values(item, &parts);
    let prefixes = prefixes(item, &parts);
    let Parts { columns, types, .. } = &parts;
    quote! {
        #[doc = #doc]
        #vis struct #column #arguments #clause {
            variants: #krate::Variants,
            #(#columns: #types,)*
        }

        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::default::Default for #column #arguments #clause {
            fn default() -> Self {
                #column {
                    variants: ::core::default::Default::default(),
                    #(#columns: ::core::default::Default::default(),)*
                }
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments #krate::Column for #column #arguments #clause {
            type Owned = #name #arguments;
            #values
            #prefixes
            fn clear(&mut self) {
                self.variants.clear();
                #(#krate::Column::clear(&mut self.#columns);)*
            }
            fn reserve(&mut self, additional: usize) {
                self.variants.reserve(additional);
            }
            fn seal_in(&mut self, sealer: &mut #krate::Sealer) -> bool {
                self.variants.seal_in(sealer) #(&& #krate::Column::seal_in(&mut self.#columns, sealer))*
            }
            fn bytes(&self) -> usize {
                self.variants.bytes() #(+ #krate::Column::bytes(&self.#columns))*
            }
            fn check_invariants(&self) {
                self.variants.check_invariants([#(#krate::Column::len(&self.#columns)),*]);
                #(#krate::Column::check_invariants(&self.#columns);)*
            }
        }
    }
}

/// Reading and appending.
fn values(item: &Item, parts: &Parts) -> TokenStream {
    let Item { reference, krate, .. } = item;
    let Parts { columns, tags, .. } = parts;
    let get = item.shapes.iter().zip(columns).zip(tags).map(|((shape, column), tag)| {
        let (suffix, braces) = (&shape.suffix, shape.fields.braces("f"));
        let tuple = shape.fields.tuple("f");
        quote! {
            #tag => {
                let #tuple = #krate::Column::get(&self.#column, slot);
                #reference #suffix #braces
            }
        }
    });
    let push = item.shapes.iter().zip(columns).zip(tags).map(|((shape, column), tag)| {
        let (suffix, braces) = (&shape.suffix, shape.fields.braces("f"));
        let tuple = shape.fields.tuple("f");
        quote! {
            #reference #suffix #braces => {
                self.variants.push(#tag, #krate::Column::len(&self.#column));
                #krate::Column::push(&mut self.#column, #tuple);
            }
        }
    });
    quote! {
        #[inline]
        fn len(&self) -> usize {
            self.variants.len()
        }
        #[inline]
        fn get(&self, index: usize) -> <Self::Owned as #krate::Columnar>::Ref<'_> {
            let (tag, slot) = self.variants.get(index);
            match tag {
                #(#get,)*
                _ => ::core::unreachable!("no such tag was pushed"),
            }
        }
        fn push(&mut self, value: <Self::Owned as #krate::Columnar>::Ref<'_>) {
            match value { #(#push)* }
        }
        fn extend_from(&mut self, other: &Self, lower: usize, upper: usize) {
            let rows = [#(#krate::Column::len(&self.#columns)),*];
            let [#(#columns),*] = self.variants.extend_from(&other.variants, lower, upper, rows);
            #(
                #krate::Column::extend_from(
                    &mut self.#columns,
                    &other.#columns,
                    #columns.0,
                    #columns.1,
                );
            )*
        }
    }
}

/// The tag in the high bits, the prefix of the fields below.
fn prefixes(item: &Item, parts: &Parts) -> TokenStream {
    let krate = &item.krate;
    let Parts { columns, types, tags } = parts;
    let tag_bits = usize::BITS - (item.shapes.len() - 1).leading_zeros();
    let layout = quote! {
        #krate::generated::EnumLayout::new(
            #tag_bits,
            &[#((
                <#types as #krate::Column>::PREFIX_BITS,
                <#types as #krate::Column>::PREFIX_EXACT,
            )),*],
        )
    };
    quote! {
        const PREFIX_EXACT: bool = #layout.exact;
        const PREFIX_BITS: u32 = #layout.bits;
        fn prefix(&self, index: usize) -> u64 {
            let (tag, slot) = self.variants.get(index);
            let (prefix, bits) = match tag {
                #(#tags => (
                    #krate::Column::prefix(&self.#columns, slot),
                    <#types as #krate::Column>::PREFIX_BITS,
                ),)*
                _ => ::core::unreachable!("no such tag was pushed"),
            };
            const { #layout }.prefix(tag, prefix, bits)
        }
    }
}
