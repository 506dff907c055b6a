//! only a struct can be Persistent, and this is an enum
//! derive `PersistentEnum` instead, and keep a `PEnum` of it in the pool

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(u8)]
enum Choice {
    One,
    Two,
}

fn main() {}
