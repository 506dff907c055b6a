//! `&'static u64` cannot lie in a pool

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Person {
    name: &'static u64,
}

fn main() {}
