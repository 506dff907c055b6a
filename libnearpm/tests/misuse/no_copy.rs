//! the trait bound `Person: Copy` is not satisfied

use nearpm::prelude::*;

#[derive(Persistent)]
#[repr(C)]
struct Person {
    age: u64,
}

fn main() {}
