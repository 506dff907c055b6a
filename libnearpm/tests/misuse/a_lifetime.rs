//! a Persistent struct has no lifetime
//! use `Option<Ptr<T>>`, an offset in the pool

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Borrowed<'a> {
    number: std::marker::PhantomData<&'a u64>,
    other: u64,
}

fn main() {}
