//! `Box<u64>` cannot lie in a pool

use nearpm::prelude::*;

#[derive(Clone, Persistent)]
#[repr(C)]
struct Person {
    name: Box<u64>,
}

fn main() {}
