//! a Persistent struct has no padding

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Gap {
    small: u32,
    large: u64,
}

fn main() {}
