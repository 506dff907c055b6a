//! `#[derive(Persistent)]` and `#[derive(PersistentEnum)]`, which `nearpm` exports: use them from
//! there.

#![warn(missing_docs)]

mod variants;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DataStruct, DeriveInput, Error, Field, Member, Result, parse_macro_input, parse_quote};

/// Makes a struct one that may lie in a pool.
///
/// The struct must be `Copy` and `#[repr(C)]` (or `#[repr(transparent)]`), all its fields must be
/// `Persistent`, and nothing may lie between or behind them; what does not fit is an error of the
/// compiler. A `Ptr` to it gets a method for each field, of the field's name and visibility, that
/// gives the pointer to the field; of a tuple struct they are `_0`, `_1` and so on.
///
/// A value owns what its fields own. One that owns more says how that is freed:
/// `#[persistent(release = path)]` names a function
/// `fn<S: Store>(value: Self, tx: &mut S) -> Result<(),
/// Error>`, which then answers for the fields as well.
#[proc_macro_derive(Persistent, attributes(persistent))]
pub fn persistent(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// Makes an enum one that may lie in a pool, as a `PEnum`: the fields of its variant, then its
/// number.
///
/// The enum must be `Copy` and have no parameters, and all fields of its variants must be
/// `Persistent`. Variants are numbered in the order in which they are written, from 0 on, whatever
/// numbers the enum gives them.
#[proc_macro_derive(PersistentEnum)]
pub fn persistent_enum(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    variants::expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A field, as what is generated names it.
struct Part<'a> {
    /// The method of pointers that leads to it.
    method: Ident,
    member: Member,
    field: &'a Field,
}

/// A name that the program sees, and of which lints say nothing: it counts as this macro's,
/// wherever an editor shows it. Allowing lints by attributes would not do, because a crate may
/// forbid that.
fn quiet(name: &Ident) -> Ident {
    let mut quiet = name.clone();
    quiet.set_span(Span::mixed_site().located_at(name.span()));
    quiet
}

/// The fields of a struct.
fn parts_of(input: &DeriveInput) -> Result<Vec<Part<'_>>> {
    let refuse = |what| Err(Error::new(input.ident.span(), what));
    let fields = match &input.data {
        Data::Struct(DataStruct { fields, .. }) => fields,
        Data::Enum(_) => {
            return refuse(
                "only a struct can be Persistent, and this is an enum, of which not every byte is a value: derive `PersistentEnum` instead, and \
                 keep a `PEnum` of it in the pool",
            );
        }
        Data::Union(_) => {
            return refuse(
                "only a struct can be Persistent, and a union does not say which field counts: use a struct with a field for each",
            );
        }
    };
    if fields.is_empty() {
        return refuse("a struct without fields has no bytes that could persist: give it a field, or leave it out");
    }
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let what = "a Persistent struct has no lifetime: a reference points into this process; use `Option<Ptr<T>>`, an offset in the pool";
        return Err(Error::new(lifetime.span(), what));
    }
    let parts = fields.members().zip(fields).map(|(member, field)| {
        let method = match &member {
            Member::Named(name) => quiet(name),
            Member::Unnamed(index) => {
                format_ident!("_{}", index.index, span = Span::mixed_site().located_at(field.span()))
            }
        };
        Part { method, member, field }
    });
    Ok(parts.collect())
}

/// Refuses layouts that another compiler might choose otherwise.
fn check_representation(input: &DeriveInput) -> Result<()> {
    let mut stable = false;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            stable |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.path.is_ident("packed") {
                let what = "a Persistent struct cannot be packed, because its fields would have no alignment: leave `packed` away, and add \
                            fields that fill the gaps";
                return Err(meta.error(what));
            }
            if meta.input.peek(syn::token::Paren) {
                let ignored;
                syn::parenthesized!(ignored in meta.input);
                ignored.parse::<TokenStream>()?;
            }
            Ok(())
        })?;
    }
    if stable {
        return Ok(());
    }
    let what = "a Persistent struct needs #[repr(C)]: write that above it; without it each compiler orders the fields as it likes";
    Err(Error::new(input.ident.span(), what))
}

/// The function of `#[persistent(release = path)]`.
fn release_function(input: &DeriveInput) -> Result<Option<syn::Path>> {
    let mut function = None;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("persistent")) {
        attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("release") {
                return Err(meta.error("the only option is `release = path`"));
            }
            function = Some(meta.value()?.parse()?);
            Ok(())
        })?;
    }
    Ok(function)
}

fn documentation(field: &Field) -> impl Iterator<Item = &Attribute> {
    field.attrs.iter().filter(|attribute| attribute.path().is_ident("doc"))
}

/// The tokens of a field's type where `Self` is something else.
fn without_self(tokens: TokenStream, this: &TokenStream) -> TokenStream {
    let mut tokens = tokens.into_iter().peekable();
    let mut without = TokenStream::new();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(name) if name == "Self" => {
                // As in `[u8; Self::LENGTH]`.
                let is_path = matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
                without.extend(if is_path { quote!(<#this>) } else { this.clone() });
            }
            TokenTree::Group(group) => {
                let mut inner = Group::new(group.delimiter(), without_self(group.stream(), this));
                inner.set_span(group.span());
                without.extend([TokenTree::Group(inner)]);
            }
            other => without.extend([other]),
        }
    }
    without
}

/// The type that stands for fields, by their indices: a tree of pairs.
fn tree(of: &TokenStream, indices: std::ops::Range<usize>) -> TokenStream {
    if indices.len() == 1 {
        let index = indices.start;
        return quote!(::nearpm::typed::derived::At<Fields #of, #index>);
    }
    let middle = indices.start + indices.len() / 2;
    let (first, second) = (tree(of, indices.start..middle), tree(of, middle..indices.end));
    quote!((#first, #second))
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let parts = parts_of(input)?;
    check_representation(input)?;
    let release = release_function(input)?;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let name = &parameter.ident;
        generics.make_where_clause().predicates.push(parse_quote!(#name: ::nearpm::Persistent));
    }
    let (with, of, wherein) = generics.split_for_impl();
    let (name, visibility) = (&input.ident, &input.vis);
    let this = quote!(#name #of);
    let projection = format_ident!("{}Fields", name, span = quiet(name).span());
    let fields = parts.iter().enumerate().map(|(index, Part { method, member, field })| {
        let ty = without_self(field.ty.to_token_stream(), &this);
        quote! {
            impl #with ::nearpm::typed::derived::Part<#index> for Fields #of #wherein {
                type Of = #this;
                type Type = #ty;
                const NAME: &'static str = stringify!(#method);
                const OFFSET: usize = ::nearpm::typed::derived::offset_of!(#this, #member);
                #[inline]
                fn take(value: #this) -> #ty {
                    value.#member
                }
            }
        }
    });
    let methods = parts.iter().map(|Part { method, member, field }| {
        let (visibility, docs) = (&field.vis, documentation(field));
        let ty = without_self(field.ty.to_token_stream(), &this);
        quote! {
            #(#docs)*
            #[inline]
            #visibility fn #method(&self) -> ::nearpm::Ptr<#ty> {
                ::nearpm::Ptr::field(self.0, ::nearpm::typed::derived::offset_of!(#this, #member))
            }
        }
    });
    let tree = tree(&of.to_token_stream(), 0..parts.len());
    let (owns, release) = match release {
        Some(function) => (quote!(true), quote!(#function(self, tx))),
        None => (
            quote!(<#tree as ::nearpm::typed::derived::Parts<Self>>::OWNS),
            quote!(<#tree as ::nearpm::typed::derived::Parts<Self>>::release(self, tx)),
        ),
    };
    // A type without parameters is checked where it is defined, another one where it is used.
    let at_definition =
        generics.params.is_empty().then(|| quote!(const _: () = <#name as ::nearpm::Persistent>::CHECKED;));
    Ok(quote! {
        const _: () = {
            /// The fields of a value, from a pointer to it.
            #[derive(Clone, Copy, Debug)]
            #[repr(transparent)]
            #visibility struct #projection #with (::nearpm::Ptr<#this>) #wherein;

            impl #with #projection #of #wherein {
                #(#methods)*
            }

            struct Fields #with (::core::marker::PhantomData<#this>) #wherein;

            #(#fields)*

            #at_definition

            // SAFETY: the fields are persistent and lie side by side, which is checked; the
            // projection is transparent over the pointer.
            unsafe impl #with ::nearpm::Persistent for #this #wherein {
                type Fields = #projection #of;
                const CHECKED: () = ::nearpm::typed::derived::check::<Self, #tree>();
                const OWNS: bool = #owns;
                fn describe(to: &mut ::nearpm::typed::Description) {
                    ::nearpm::typed::derived::describe::<Self, #tree>(stringify!(#name), to);
                }
                #[inline]
                fn release<__S: ::nearpm::Store>(self, tx: &mut __S) -> ::core::result::Result<(), ::nearpm::Error> {
                    #release
                }
            }
        };
    })
}
