//! A list of fields as a tuple, for which the columnar crate has the column.
//!
//! Tuples go to eight; a longer list nests in the last place, `(a, …, g, (h, …))`, which orders and packs
//! prefixes as the flat one would.
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Fields, Member, Type, Visibility};

/// The fields of a struct or of a variant.
pub(crate) struct FieldList {
    fields: Fields,
}

impl FieldList {
    pub(crate) fn new(fields: &Fields) -> Self {
        FieldList { fields: fields.clone() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    pub(crate) fn types(&self) -> impl Iterator<Item = &Type> {
        self.fields.iter().map(|field| &field.ty)
    }

    /// A local name for each field; different prefixes never clash.
    pub(crate) fn locals(&self, prefix: &str) -> Vec<Ident> {
        (0..self.fields.len()).map(|index| format_ident!("{prefix}{index}")).collect()
    }

    /// The tuple of the fields' types.
    pub(crate) fn tuple_type(&self) -> TokenStream {
        nest(&self.types().map(ToTokens::to_token_stream).collect::<Vec<_>>())
    }

    /// The tuple of the local names, as pattern or expression.
    pub(crate) fn tuple(&self, prefix: &str) -> TokenStream {
        nest(&self.locals(prefix).iter().map(ToTokens::to_token_stream).collect::<Vec<_>>())
    }

    /// `{ name: local, … }`, which after the name of a type or variant of any shape is a pattern or an
    /// expression.
    pub(crate) fn braces(&self, prefix: &str) -> TokenStream {
        let (members, locals) = (self.fields.members(), self.locals(prefix));
        quote! { { #(#members: #locals),* } }
    }

    /// The same with `<Type as krate::Columnar>::method(local)` for each field.
    pub(crate) fn braces_mapped(&self, prefix: &str, krate: &TokenStream, method: &str) -> TokenStream {
        let method = format_ident!("{method}");
        let (members, types, locals) = (self.fields.members(), self.types(), self.locals(prefix));
        quote! { { #(#members: <#types as #krate::Columnar>::#method(#locals)),* } }
    }

    /// The declaration of the same fields by reference: `{ … }`, `( … )` or nothing.
    pub(crate) fn by_reference(&self, krate: &TokenStream, is_variant: bool) -> TokenStream {
        let declare = self.fields.iter().zip(self.fields.members()).map(|(field, member)| {
            let vis = if is_variant { &Visibility::Inherited } else { &field.vis };
            let (ty, name) = (&field.ty, field.ident.iter());
            let doc = match member {
                Member::Named(name) => format!("The field `{name}`."),
                Member::Unnamed(index) => format!("The field {}.", index.index),
            };
            quote! { #[doc = #doc] #vis #(#name:)* <#ty as #krate::Columnar>::Ref<'a> }
        });
        match self.fields {
            Fields::Named(_) => quote! { { #(#declare),* } },
            Fields::Unnamed(_) => quote! { ( #(#declare),* ) },
            Fields::Unit => TokenStream::new(),
        }
    }

    /// An expression that formats the fields as a derived `Debug` does; the locals are references.
    pub(crate) fn debug(&self, name: &Ident, prefix: &str) -> TokenStream {
        let (name, locals) = (name.to_string(), self.locals(prefix));
        match &self.fields {
            Fields::Named(named) => {
                let names = named.named.iter().flat_map(|field| &field.ident).map(Ident::to_string);
                quote! { formatter.debug_struct(#name)#(.field(#names, #locals))*.finish() }
            }
            Fields::Unnamed(_) => {
                quote! { formatter.debug_tuple(#name)#(.field(#locals))*.finish() }
            }
            Fields::Unit => quote! { formatter.write_str(#name) },
        }
    }

    /// True iff the declaration of a struct with these fields ends in a semicolon.
    pub(crate) fn ends_in_semicolon(&self) -> bool {
        !matches!(self.fields, Fields::Named(_))
    }
}

/// At most eight parts flat, more nested in the eighth place.
fn nest(parts: &[TokenStream]) -> TokenStream {
    if parts.len() <= 8 {
        return quote! { (#(#parts,)*) };
    }
    let (head, tail) = parts.split_at(7);
    let tail = nest(tail);
    quote! { (#(#head,)* #tail,) }
}
