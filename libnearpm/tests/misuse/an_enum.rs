//! only a struct can be Persistent

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
enum Choice {
    One,
    Two,
}

fn main() {}
