//! `bool` cannot lie in a pool

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Flag {
    set: bool,
}

fn main() {}
