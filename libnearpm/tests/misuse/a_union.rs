//! a union does not say which field counts: use a struct

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
union Both {
    number: u64,
    bytes: [u8; 8],
}

fn main() {}
