//! Generates `FooRef`, its traits, and `Columnar for Foo`.
//!
//! The traits are written out and not derived, for a derive would ask for bounds on the type parameters where
//! only their references must have the trait.
use crate::parse::Item;
use proc_macro2::TokenStream;
use quote::quote;

pub(crate) fn generate(item: &Item) -> TokenStream {
    let (declaration, traits, columnar) = (declaration(item), traits(item), columnar(item));
    quote! { #declaration #traits #columnar }
}

fn declaration(item: &Item) -> TokenStream {
    let Item { vis, reference, krate, .. } = item;
    let doc = format!("A stored [`{}`].", item.name);
    let (arguments, clause) = reference_generics(item);
    if item.is_enum {
        let variants = item.shapes.iter().map(|shape| {
            let (name, fields) = (&shape.name, shape.fields.by_reference(krate, true));
            let doc = format!("The variant `{name}`.");
            quote! { #[doc = #doc] #name #fields }
        });
        return quote! { #[doc = #doc] #vis enum #reference #arguments #clause { #(#variants),* } };
    }
    let shape = &item.shapes[0];
    let fields = shape.fields.by_reference(krate, false);
    if shape.fields.ends_in_semicolon() {
        quote! { #[doc = #doc] #vis struct #reference #arguments #fields #clause; }
    } else {
        quote! { #[doc = #doc] #vis struct #reference #arguments #clause #fields }
    }
}

/// Arguments and where clause of the reference.
fn reference_generics(item: &Item) -> (TokenStream, TokenStream) {
    let clause = if item.borrows() { item.clause() } else { TokenStream::new() };
    (item.reference_arguments(&quote! { 'a }), clause)
}

fn traits(item: &Item) -> TokenStream {
    let reference = &item.reference;
    let (arguments, clause) = reference_generics(item);
    let equal = item.shapes.iter().map(|shape| {
        let (suffix, a, b) = (&shape.suffix, shape.fields.braces("a"), shape.fields.braces("b"));
        let (left, right) = (shape.fields.locals("a"), shape.fields.locals("b"));
        quote! { (#reference #suffix #a, #reference #suffix #b) => true #(&& #left == #right)* }
    });
    let compare = item.shapes.iter().map(|shape| {
        let (suffix, a, b) = (&shape.suffix, shape.fields.braces("a"), shape.fields.braces("b"));
        let (left, right) = (shape.fields.tuple("a"), shape.fields.tuple("b"));
        quote! {
            (#reference #suffix #a, #reference #suffix #b) => ::core::cmp::Ord::cmp(&#left, &#right)
        }
    });
    let debug = item.shapes.iter().map(|shape| {
        let (suffix, fields) = (&shape.suffix, shape.fields.braces("f"));
        let body = shape.fields.debug(&shape.name, "f");
        quote! { #reference #suffix #fields => #body }
    });
    // With one shape there is no other arm to reach.
    let (unequal, by_tag) = if item.shapes.len() > 1 {
        let tag = tag_of(item, &quote! { value });
        (
            quote! { _ => false },
            quote! {
                (a, b) => {
                    let tag = |value: Self| -> u8 { #tag };
                    ::core::cmp::Ord::cmp(&tag(a), &tag(b))
                }
            },
        )
    } else {
        (TokenStream::new(), TokenStream::new())
    };
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::clone::Clone for #reference #arguments #clause {
            #[inline]
            fn clone(&self) -> Self {
                *self
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::marker::Copy for #reference #arguments #clause {}
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::cmp::PartialEq for #reference #arguments #clause {
            #[inline]
            fn eq(&self, other: &Self) -> bool {
                match (*self, *other) { #(#equal,)* #unequal }
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::cmp::Eq for #reference #arguments #clause {}
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::cmp::PartialOrd for #reference #arguments #clause {
            #[inline]
            fn partial_cmp(&self, other: &Self) -> ::core::option::Option<::core::cmp::Ordering> {
                ::core::option::Option::Some(::core::cmp::Ord::cmp(self, other))
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::cmp::Ord for #reference #arguments #clause {
            #[inline]
            fn cmp(&self, other: &Self) -> ::core::cmp::Ordering {
                match (*self, *other) { #(#compare,)* #by_tag }
            }
        }
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments ::core::fmt::Debug for #reference #arguments #clause {
            fn fmt(&self, formatter: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                match self { #(#debug,)* }
            }
        }
    }
}

/// An expression: the number of a reference's variant, in order of declaration.
pub(crate) fn tag_of(item: &Item, value: &TokenStream) -> TokenStream {
    let reference = &item.reference;
    let arms = item.shapes.iter().enumerate().map(|(tag, shape)| {
        let (suffix, tag) = (&shape.suffix, tag as u8);
        quote! { #reference #suffix { .. } => #tag }
    });
    quote! { match #value { #(#arms),* } }
}

fn columnar(item: &Item) -> TokenStream {
    let Item { name, reference, column, krate, .. } = item;
    let (arguments, clause) = (item.arguments(), item.clause());
    let stored = item.reference_arguments(&quote! { 'a });
    let map = |from: &TokenStream, to: &TokenStream, method: &str| -> Vec<TokenStream> {
        let arm = item.shapes.iter().map(|shape| {
            let (suffix, pattern) = (&shape.suffix, shape.fields.braces("f"));
            let value = shape.fields.braces_mapped("f", krate, method);
            quote! { #from #suffix #pattern => #to #suffix #value }
        });
        arm.collect()
    };
    let (owned, stored_name) = (quote! { #name }, quote! { #reference });
    let borrow = map(&owned, &stored_name, "borrow");
    let to_owned = map(&stored_name, &owned, "to_owned");
    let reborrow = map(&stored_name, &stored_name, "reborrow");
    let hash = item.shapes.iter().enumerate().map(|(tag, shape)| {
        let (suffix, pattern) = (&shape.suffix, shape.fields.braces("f"));
        let (ty, tuple) = (shape.fields.tuple_type(), shape.fields.tuple("f"));
        let fields = quote! { <#ty as #krate::Columnar>::hash(#tuple) };
        let tag = tag as u64;
        let value = if item.is_enum {
            quote! { #krate::combine(#krate::mix(#tag), #fields) }
        } else {
            fields
        };
        quote! { #reference #suffix #pattern => #value }
    });
    quote! {
        #[automatically_derived]
        #[allow(clippy::all)]
        impl #arguments #krate::Columnar for #name #arguments #clause {
            type Ref<'a> = #reference #stored;
            type Column = #column #arguments;
            #[inline]
            fn borrow(&self) -> Self::Ref<'_> {
                match self { #(#borrow),* }
            }
            #[inline]
            fn to_owned(value: Self::Ref<'_>) -> Self {
                match value { #(#to_owned),* }
            }
            #[inline]
            fn reborrow<'b, 'a: 'b>(value: Self::Ref<'a>) -> Self::Ref<'b> {
                match value { #(#reborrow),* }
            }
            #[inline]
            fn hash(value: Self::Ref<'_>) -> u64 {
                match value { #(#hash),* }
            }
        }
    }
}
