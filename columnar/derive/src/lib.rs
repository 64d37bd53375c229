//! `#[derive(Columnar)]`: columns for structs and enums.
//!
//! A struct `Foo` gets a reference `FooRef<'a>`, with each field by its reference, and a column `FooColumn`, a
//! tuple of the fields' columns. An enum's column says of each value which variant it is and at which row of
//! that variant's tuple of columns its fields lie. Order, hash and `Debug` are those that `#[derive(..)]` gives
//! the owned type, so the owned type must derive its `Ord`.
//!
//! | module | what it does |
//! |--------|--------------|
//! | `parse` | reads the item: names, shapes, the `#[columnar(..)]` attribute; refuses what has no column |
//! | `fields` | a list of fields as a (nested) tuple, and the patterns that take it apart |
//! | `reference` | generates `FooRef`, its traits, and `Columnar for Foo` |
//! | `column` | generates `FooColumn` |
#![forbid(unsafe_code)]

mod column;
mod fields;
mod parse;
mod reference;

use proc_macro::TokenStream;
use quote::quote;

/// Derives `Columnar` for a struct or an enum, with a reference type `FooRef` and a column `FooColumn`.
///
/// The type must also derive `Clone, PartialEq, Eq, PartialOrd, Ord, Debug`, and each field must be columnar.
/// Type parameters get the bound `Columnar`. Lifetimes, const parameters, unions, explicit discriminants and
/// more than 256 variants are refused. A type without any field gets a `FooRef` without a lifetime.
///
/// The generated code names its traits through `::kpg::columnar`; `#[columnar(crate = some::path)]` says where
/// else they are, for instance `#[columnar(crate = kpg_columnar)]`.
#[proc_macro_derive(Columnar, attributes(columnar))]
pub fn columnar(input: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    match parse::Item::new(&input) {
        Ok(item) => {
            let (reference, column) = (reference::generate(&item), column::generate(&item));
            quote! { #reference #column }
        }
        Err(error) => error.to_compile_error(),
    }
    .into()
}
