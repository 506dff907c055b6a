//! `nearpm::Ptr<u64>` cannot lie in a pool
//! of `Ptr<T>` `Option<Ptr<T>>` (zeros are no pointer)

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Node {
    next: Ptr<u64>,
}

fn main() {}
