//! `#[derive(PersistentEnum)]`.

use proc_macro2::TokenStream;
use quote::{ToTokens, format_ident, quote};
use syn::{Data, DeriveInput, Error, Member, Result, Type, Variant};

use crate::without_self;

/// What is generated of a variant.
struct Parts {
    /// `Self::Name { 0: value0, .. }`, as a pattern and an expression.
    form: TokenStream,
    values: Vec<proc_macro2::Ident>,
    types: Vec<TokenStream>,
    names: Vec<String>,
    name: String,
}

fn parts(variant: &Variant, this: &TokenStream) -> Parts {
    let name = &variant.ident;
    let members: Vec<Member> = variant.fields.members().collect();
    let values: Vec<_> = (0..members.len()).map(|index| format_ident!("value{index}")).collect();
    let type_of = |ty: &Type| without_self(ty.to_token_stream(), this);
    Parts {
        form: quote!(#this::#name { #(#members: #values),* }),
        types: variant.fields.iter().map(|field| type_of(&field.ty)).collect(),
        names: members.iter().map(|member| member.to_token_stream().to_string()).collect(),
        name: name.to_string(),
        values,
    }
}

pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let this = input.ident.to_token_stream();
    let Data::Enum(data) = &input.data else {
        let what = "only an enum can be a PersistentEnum: a struct gets `#[derive(Persistent)]` and `#[repr(C)]`";
        return Err(Error::new(input.ident.span(), what));
    };
    if !input.generics.params.is_empty() {
        let what = "a PersistentEnum has no parameters: a pool holds as many bytes as its longest variant has, which must be known";
        return Err(Error::new_spanned(&input.generics, what));
    }
    if data.variants.is_empty() {
        return Err(Error::new(input.ident.span(), "an enum without variants has no values that could persist"));
    }
    let variants: Vec<Parts> = data.variants.iter().map(|variant| parts(variant, &this)).collect();
    let numbers: Vec<u64> = (0..variants.len() as u64).collect();
    let forms: Vec<_> = variants.iter().map(|variant| &variant.form).collect();
    let sizes = variants.iter().map(|Parts { types, .. }| quote!(0 #(+ ::core::mem::size_of::<#types>())*));
    let owns = variants.iter().flat_map(|variant| &variant.types);
    let puts = variants.iter().map(|Parts { values, types, .. }| quote!(#(fields.put::<#types>(#values);)*));
    let takes = variants.iter().map(|Parts { values, types, .. }| quote!(#(let #values = fields.take::<#types>();)*));
    let frees = variants
        .iter()
        .map(|Parts { values, types, .. }| quote!(#(<#types as ::nearpm::Persistent>::release(#values, tx)?;)*));
    let describes = variants.iter().map(|Parts { name, names, types, .. }| {
        let fields = types.len();
        quote!(to.structure(#name, #fields); #(to.field::<#types>(#names, 0);)*)
    });
    Ok(quote! {
        const _: () = {
            /// Words of the longest variant, by a name that no field's type will have.
            const __NEARPM_WORDS: usize = {
                let sizes: &[usize] = &[#(#sizes),*];
                let (mut longest, mut at) = (0usize, 0usize);
                while at < sizes.len() {
                    if sizes[at] > longest {
                        longest = sizes[at];
                    }
                    at += 1;
                }
                longest.div_ceil(8)
            };

            impl ::nearpm::typed::PersistentEnum for #this {
                type Room = [u64; __NEARPM_WORDS];
                const OWNS: bool = false #(|| <#owns as ::nearpm::Persistent>::OWNS)*;

                fn describe(to: &mut ::nearpm::typed::Description) {
                    #(#describes)*
                }

                fn put(self, fields: &mut ::nearpm::typed::derived::FieldBytes<'_>) -> u64 {
                    let _ = &fields;
                    match self {
                        #(#forms => {
                            #puts
                            #numbers
                        })*
                    }
                }

                fn take(
                    variant: u64,
                    fields: &mut ::nearpm::typed::derived::FieldBytes<'_>,
                ) -> ::core::option::Option<Self> {
                    let _ = &fields;
                    match variant {
                        #(#numbers => {
                            #takes
                            ::core::option::Option::Some(#forms)
                        })*
                        _ => ::core::option::Option::None,
                    }
                }

                fn free<__S: ::nearpm::Store>(
                    self,
                    tx: &mut __S,
                ) -> ::core::result::Result<(), ::nearpm::Error> {
                    let _ = &tx;
                    match self {
                        #(#forms => {
                            #frees
                        })*
                    }
                    ::core::result::Result::Ok(())
                }
            }
        };
    })
}
