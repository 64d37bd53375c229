//! `#[derive(Columnar)]`: columns for structs and enums.
#![forbid(unsafe_code)]
use proc_macro::TokenStream;
/// x
#[proc_macro_derive(Columnar, attributes(columnar))]
pub fn columnar(_: TokenStream) -> TokenStream { TokenStream::new() }
