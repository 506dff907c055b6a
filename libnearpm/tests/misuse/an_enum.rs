//! only a struct can be Persistent, and this is an enum
//! keep a number in the pool, such as `u8` for `#[repr(u8)]`

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(u8)]
enum Choice {
    One,
    Two,
}

fn main() {}
