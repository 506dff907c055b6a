//! `Inner` cannot lie in a pool
//! gets `#[derive(Clone, Copy, Persistent)]` and `#[repr(C)]`

use nearpm::prelude::*;

#[derive(Clone, Copy)]
struct Inner {
    number: u64,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Outer {
    inner: Inner,
}

fn main() {}
