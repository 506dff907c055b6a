//! a Persistent struct needs #[repr(C)]

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
struct Loose {
    word: u64,
}

fn main() {}
