//! `#[derive(Persistent)]`, which `nearpm` exports: use it from there.

#![warn(missing_docs)]

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Attribute, Data, DataStruct, DeriveInput, Error, Field, Result, parse_macro_input, parse_quote};

/// Makes a struct one that may lie in a pool.
///
/// The struct must be `Copy` and `#[repr(C)]` (or `#[repr(transparent)]`), all its fields must be `Persistent`, and nothing may lie
/// between or behind them; what does not fit is an error of the compiler. A `Ptr` to it gets a method for each field, of the field's name
/// and visibility, that gives the pointer to the field; of a tuple struct they are `_0`, `_1` and so on.
///
/// A value owns what its fields own. One that owns more says how that is freed: `#[persistent(release = path)]` names a function
/// `fn<S: Store>(value: Self, tx: &mut S) -> Result<(), Error>`, which then answers for the fields as well.
#[proc_macro_derive(Persistent, attributes(persistent))]
pub fn persistent(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// The fields of a struct.
fn fields_of(input: &DeriveInput) -> Result<Vec<(Ident, syn::Member, &Field)>> {
    let Data::Struct(DataStruct { fields, .. }) = &input.data else {
        let what = "only a struct can be Persistent: not every byte is a value of an enum, and a union does not say which field counts";
        return Err(Error::new(input.ident.span(), what));
    };
    if fields.is_empty() {
        return Err(Error::new(input.ident.span(), "a struct without fields has no bytes that could persist"));
    }
    let named = fields.members().zip(fields).map(|(member, field)| {
        let method = match &member {
            syn::Member::Named(name) => name.clone(),
            syn::Member::Unnamed(index) => format_ident!("_{}", index.index, span = field.span()),
        };
        (method, member, field)
    });
    Ok(named.collect())
}

/// Refuses layouts that another compiler might choose otherwise.
fn check_representation(input: &DeriveInput) -> Result<()> {
    let mut stable = false;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            stable |= meta.path.is_ident("C") || meta.path.is_ident("transparent");
            if meta.path.is_ident("packed") {
                return Err(meta.error("a Persistent struct cannot be packed: its fields would have no alignment"));
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
    let what = "a Persistent struct needs #[repr(C)]: without it each compiler orders the fields as it likes";
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

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    check_representation(input)?;
    let fields = fields_of(input)?;
    let mut generics = input.generics.clone();
    for parameter in input.generics.type_params() {
        let name = &parameter.ident;
        generics.make_where_clause().predicates.push(parse_quote!(#name: ::nearpm::Persistent));
    }
    let (with, of, wherein) = generics.split_for_impl();
    let (name, visibility) = (&input.ident, &input.vis);
    let projection = format_ident!("{}Fields", name);
    let types: Vec<_> = fields.iter().map(|(_, _, field)| &field.ty).collect();
    let checks = quote! {
        ::nearpm::typed::derived::is_aligned::<Self>();
        #(::nearpm::typed::derived::is_field::<#types>();)*
        assert!(
            ::nearpm::typed::derived::sum(&[#(::nearpm::typed::derived::size_of::<#types>()),*])
                == ::nearpm::typed::derived::size_of::<Self>(),
            "a Persistent struct has no padding: order its fields by size, or add fields that fill the gaps"
        );
    };
    let methods = fields.iter().map(|(method, member, field)| {
        let (visibility, ty, docs) = (&field.vis, &field.ty, documentation(field));
        quote! {
            #(#docs)*
            #[inline]
            #visibility fn #method(&self) -> ::nearpm::Ptr<#ty> {
                ::nearpm::Ptr::field(self.0, ::nearpm::typed::derived::offset_of!(#name #of, #member))
            }
        }
    });
    let descriptions = fields.iter().map(|(method, member, field)| {
        let ty = &field.ty;
        quote!(to.field::<#ty>(stringify!(#method), ::nearpm::typed::derived::offset_of!(Self, #member));)
    });
    let members = fields.iter().map(|(_, member, _)| member);
    let (owns, release) = match release_function(input)? {
        Some(function) => (quote!(true), quote!(#function(self, tx))),
        None => {
            let releases = quote! {
                #(if <#types as ::nearpm::Persistent>::OWNS {
                    ::nearpm::Persistent::release(self.#members, tx)?;
                })*
                Ok(())
            };
            (quote!(false #(|| <#types as ::nearpm::Persistent>::OWNS)*), releases)
        }
    };
    // A type without parameters is checked where it is defined, another one where it is used.
    let at_definition =
        generics.params.is_empty().then(|| quote!(const _: () = <#name as ::nearpm::Persistent>::CHECKED;));
    Ok(quote! {
        const _: () = {
            /// The fields of a value, from a pointer to it.
            #[derive(Clone, Copy)]
            #[repr(transparent)]
            #visibility struct #projection #with (::nearpm::Ptr<#name #of>) #wherein;

            #[allow(dead_code, reason = "not every program needs a pointer to every field")]
            impl #with #projection #of #wherein {
                #(#methods)*
            }

            #at_definition

            // SAFETY: the fields are persistent and lie side by side, which is checked; the projection is transparent over the pointer.
            #[allow(unsafe_code)]
            unsafe impl #with ::nearpm::Persistent for #name #of #wherein {
                type Fields = #projection #of;
                const CHECKED: () = { #checks };
                const OWNS: bool = #owns;
                fn describe(to: &mut ::nearpm::typed::Description) {
                    to.structure(stringify!(#name), ::nearpm::typed::derived::size_of::<Self>());
                    #(#descriptions)*
                }
                #[inline]
                fn release<__S: ::nearpm::Store>(self, tx: &mut __S) -> ::core::result::Result<(), ::nearpm::Error> {
                    #release
                }
            }
        };
    })
}
