//! Reads a struct or an enum into a list of shapes, and refuses what has no column.
use crate::fields::FieldList;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::parse::{Parse, ParseStream};
use syn::{Data, DataEnum, DeriveInput, Error, GenericParam, Path, Result, Token, Visibility};

/// What the generated code is made from.
pub(crate) struct Item {
    /// The type that derives.
    pub(crate) name: Ident,
    pub(crate) vis: Visibility,
    /// `FooRef` and `FooColumn`.
    pub(crate) reference: Ident,
    pub(crate) column: Ident,
    /// Where the traits are.
    pub(crate) krate: TokenStream,
    /// Type parameters, without bounds.
    params: Vec<Ident>,
    /// Where-predicates: the declared bounds and `Columnar` for each parameter.
    bounds: Vec<TokenStream>,
    pub(crate) is_enum: bool,
    /// The one shape of a struct, or the variants of an enum.
    pub(crate) shapes: Vec<Shape>,
}

/// A struct, or one variant.
pub(crate) struct Shape {
    /// What follows the type's name: nothing, or `::Variant`.
    pub(crate) suffix: TokenStream,
    pub(crate) name: Ident,
    pub(crate) fields: FieldList,
}

impl Item {
    pub(crate) fn new(input: &DeriveInput) -> Result<Self> {
        let krate = crate_path(input)?;
        let (params, bounds) = generics(input, &krate)?;
        let shapes = match &input.data {
            Data::Struct(data) => vec![Shape {
                suffix: TokenStream::new(),
                name: input.ident.clone(),
                fields: FieldList::new(&data.fields),
            }],
            Data::Enum(data) => variants(&input.ident, data)?,
            Data::Union(_) => {
                let reason = "a union has no order and so no column";
                return Err(Error::new_spanned(&input.ident, reason));
            }
        };
        Ok(Item {
            name: input.ident.clone(),
            vis: input.vis.clone(),
            reference: format_ident!("{}Ref", input.ident),
            column: format_ident!("{}Column", input.ident),
            krate,
            params,
            bounds,
            is_enum: matches!(input.data, Data::Enum(_)),
            shapes,
        })
    }

    /// True iff there is a field, and so something to borrow.
    pub(crate) fn borrows(&self) -> bool {
        self.shapes.iter().any(|shape| !shape.fields.is_empty())
    }

    /// The parameters of the type and of its column: `<A, B>`, or nothing.
    pub(crate) fn arguments(&self) -> TokenStream {
        let params = &self.params;
        if params.is_empty() {
            TokenStream::new()
        } else {
            quote! { <#(#params),*> }
        }
    }

    /// The parameters of the reference: `<'a, A, B>`, or nothing.
    pub(crate) fn reference_arguments(&self, lifetime: &TokenStream) -> TokenStream {
        let params = &self.params;
        if self.borrows() {
            quote! { <#lifetime, #(#params),*> }
        } else {
            TokenStream::new()
        }
    }

    /// `where A: Columnar, …`, or nothing.
    pub(crate) fn clause(&self) -> TokenStream {
        let bounds = &self.bounds;
        if bounds.is_empty() {
            TokenStream::new()
        } else {
            quote! { where #(#bounds),* }
        }
    }
}

fn generics(input: &DeriveInput, krate: &TokenStream) -> Result<(Vec<Ident>, Vec<TokenStream>)> {
    let (mut params, mut bounds) = (Vec::new(), Vec::new());
    for param in &input.generics.params {
        match param {
            GenericParam::Type(param) => {
                let (ident, declared) = (&param.ident, param.bounds.iter());
                bounds.push(quote! { #ident: #krate::Columnar #(+ #declared)* });
                params.push(ident.clone());
            }
            GenericParam::Lifetime(param) => {
                let reason = "a columnar type owns its data: it has no lifetime parameters";
                return Err(Error::new_spanned(param, reason));
            }
            GenericParam::Const(param) => {
                let reason = "derive(Columnar) does not support const parameters";
                return Err(Error::new_spanned(param, reason));
            }
        }
    }
    if let Some(clause) = &input.generics.where_clause {
        bounds.extend(clause.predicates.iter().map(|predicate| quote! { #predicate }));
    }
    Ok((params, bounds))
}

fn variants(name: &Ident, data: &DataEnum) -> Result<Vec<Shape>> {
    if data.variants.is_empty() {
        return Err(Error::new_spanned(name, "an enum without variants has no values to store"));
    }
    if data.variants.len() > 256 {
        return Err(Error::new_spanned(name, "at most 256 variants: the tag is one byte"));
    }
    let mut shapes = Vec::new();
    for variant in &data.variants {
        if let Some((_, discriminant)) = &variant.discriminant {
            let reason = "derive(Columnar) orders variants as declared, so it takes no discriminants";
            return Err(Error::new_spanned(discriminant, reason));
        }
        let name = &variant.ident;
        shapes.push(Shape { suffix: quote! { ::#name }, name: name.clone(), fields: FieldList::new(&variant.fields) });
    }
    Ok(shapes)
}

/// The path in `#[columnar(crate = path)]`, else `::kpg::columnar`.
fn crate_path(input: &DeriveInput) -> Result<TokenStream> {
    let mut krate = quote! { ::kpg::columnar };
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("columnar")) {
        let CratePath(path) = attribute.parse_args()?;
        krate = quote! { #path };
    }
    Ok(krate)
}

struct CratePath(Path);

impl Parse for CratePath {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if !input.peek(Token![crate]) {
            return Err(input.error("expected `crate = path`"));
        }
        input.parse::<Token![crate]>()?;
        input.parse::<Token![=]>()?;
        Ok(CratePath(input.call(Path::parse_mod_style)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refusal(input: DeriveInput) -> String {
        Item::new(&input).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_has_no_column_is_refused() {
        assert!(refusal(parse_quote! { struct A<'a>(&'a u8); }).contains("lifetime"));
        assert!(refusal(parse_quote! { struct A<const N: usize>(u8); }).contains("const"));
        assert!(refusal(parse_quote! { union A { a: u8 } }).contains("union"));
        assert!(refusal(parse_quote! { enum A {} }).contains("without variants"));
        assert!(refusal(parse_quote! { enum A { B = 3, C = 1 } }).contains("discriminants"));
        assert!(refusal(parse_quote! { #[columnar(krate = x)] struct A; }).contains("crate = path"));
        let variants = (0..257).map(|index| format_ident!("V{index}"));
        assert!(refusal(parse_quote! { enum A { #(#variants),* } }).contains("256"));
    }

    #[test]
    fn the_crate_path_is_found() {
        let path = |input: DeriveInput| crate_path(&input).map(|path| path.to_string());
        assert_eq!(path(parse_quote! { struct A; }).ok(), Some(":: kpg :: columnar".into()));
        let given = path(parse_quote! { #[columnar(crate = kpg::columnar)] struct A; });
        assert_eq!(given.ok(), Some("kpg :: columnar".into()));
        let here = path(parse_quote! { #[columnar(crate = crate)] struct A; });
        assert_eq!(here.ok(), Some("crate".into()));
    }
}
