//! Macros for hardware's units: ports by name ([`Ports`](macro@Ports)), records that ports carry
//! ([`PortValue`](macro@PortValue)), and kernels in steps ([`macro@steps`]).
//!
//! The derives are for structs with named fields, and implement the traits of the same names of the
//! crate `nearpm-hdl`.

mod steps;

use proc_macro::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Field, Fields, GenericParam, ItemImpl, Visibility, parse_macro_input, parse_quote,
};

/// The fields of a struct with named fields.
fn fields(input: &DeriveInput) -> syn::Result<Vec<&Field>> {
    match &input.data {
        Data::Struct(data) if matches!(data.fields, Fields::Named(_)) => Ok(data.fields.iter().collect()),
        _ => Err(Error::new(input.span(), "only a struct with named fields has ports")),
    }
}

/// Ports of a rust-hdl unit or signals of a bundle, by name: the public fields, in their order.
/// Type parameters must be values that ports can carry.
#[proc_macro_derive(Ports)]
pub fn ports(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    ports_of(input).unwrap_or_else(Error::into_compile_error).into()
}

fn ports_of(mut input: DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    for parameter in &mut input.generics.params {
        if let GenericParam::Type(parameter) = parameter {
            parameter.bounds.push(parse_quote!(::nearpm_hdl::dut::PortValue));
        }
    }
    let public = |field: &&Field| matches!(field.vis, Visibility::Public(_));
    let ports: Vec<&Field> = fields(&input)?.into_iter().filter(public).collect();
    let list = ports.iter().enumerate().map(|(index, field)| {
        let name = &field.ident;
        quote_spanned!(field.span() => ::nearpm_hdl::dut::Ports::list(&self.#name, &row.child(stringify!(#name), #index), rows);)
    });
    let at = ports.iter().enumerate().map(|(index, field)| {
        let (name, index) = (&field.ident, u16::try_from(index).expect("fewer than 65536 fields"));
        quote_spanned!(field.span() => #index => ::nearpm_hdl::dut::Ports::at(&mut self.#name, &path[1..]),)
    });
    let (name, (generics, parameters, conditions)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #generics ::nearpm_hdl::dut::Ports for #name #parameters #conditions {
            fn list(&self, row: &::nearpm_hdl::dut::PortRow, rows: &mut ::std::vec::Vec<::nearpm_hdl::dut::PortRow>) {
                #(#list)*
            }
            fn at(&mut self, path: &[u16]) -> &mut dyn ::nearpm_hdl::dut::PortSignal {
                match path[0] {
                    #(#at)*
                    other => unreachable!("port {other} is not in the list"),
                }
            }
        }
    })
}

/// A `LogicStruct` as a value that ports carry: one vector, the first field lowest, as in the
/// Verilog.
#[proc_macro_derive(PortValue)]
pub fn port_value(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    port_value_of(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn port_value_of(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let names: Vec<_> = fields(input)?.into_iter().map(|field| &field.ident).collect();
    let (name, (generics, parameters, conditions)) = (&input.ident, input.generics.split_for_impl());
    Ok(quote! {
        impl #generics ::nearpm_hdl::dut::PortValue for #name #parameters #conditions {
            fn to_value(self) -> ::nearpm_hdl::dut::Value {
                let (mut value, mut low) = (::nearpm_hdl::dut::Value::ZERO, 0);
                #(low = ::nearpm_hdl::dut::put_field(&mut value, low, self.#names);)*
                let _ = low;
                value
            }
            fn from_value(value: ::nearpm_hdl::dut::Value) -> Self {
                let (mut record, mut low) = (Self::default(), 0);
                #(low = ::nearpm_hdl::dut::take_field(&mut record.#names, value, low);)*
                let _ = low;
                record
            }
        }
    })
}

/// Lets the kernel of a unit be written as methods. rust-hdl makes Verilog of one function,
/// `update`, and knows no calls in it; so every `self.step();`, and every `self.step()` behind the
/// arrow of a `match`, becomes what the step's body says. Put it on the `impl Logic`, in place of
/// `#[hdl_gen]` on `update`.
///
/// Steps are the other methods of `&mut self` alone there. They may take further ones; one that
/// nobody takes, or that takes itself, is an error.
#[proc_macro_attribute]
pub fn steps(_: TokenStream, item: TokenStream) -> TokenStream {
    let item = parse_macro_input!(item as ItemImpl);
    steps::joined(item).unwrap_or_else(Error::into_compile_error).into()
}
