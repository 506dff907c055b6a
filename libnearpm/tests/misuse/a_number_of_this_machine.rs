//! `usize` cannot lie in a pool

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Place {
    address: usize,
}

fn main() {}
