//! a struct without fields has no bytes that could persist

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Nothing;

fn main() {}
