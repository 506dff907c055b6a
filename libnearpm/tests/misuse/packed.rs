//! leave `packed` away, and add fields that fill the gaps

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C, packed)]
struct Tight {
    small: u32,
    large: u64,
}

fn main() {}
