//! a Persistent struct has no padding

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Pair<T: Persistent> {
    first: T,
    second: u64,
}

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Outer {
    inner: Pair<u32>,
}

fn main() {
    let _ = Outer { inner: Pair { first: 1, second: 2 } };
}
