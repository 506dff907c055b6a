//! `String` cannot lie in a pool
//! instead of `String` use `PString`

use nearpm::prelude::*;

#[derive(Clone, Persistent)]
#[repr(C)]
struct Person {
    name: String,
}

fn main() {}
