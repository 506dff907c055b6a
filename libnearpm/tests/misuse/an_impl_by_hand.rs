//! the trait `nearpm::Persistent` requires an `unsafe impl` declaration

use nearpm::prelude::*;

#[derive(Clone, Copy)]
#[repr(C)]
struct Truth {
    value: bool,
}

impl Persistent for Truth {
    type Fields = ();
    fn describe(_: &mut nearpm::typed::Description) {}
}

fn main() {}
