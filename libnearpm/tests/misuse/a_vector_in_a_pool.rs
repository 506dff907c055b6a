//! `Vec<u64>` cannot lie in a pool
//! instead of `String` use `PString`, of `Vec<T>` `PVec<T>`
//! `&T`, `Box<T>` and `Rc<T>` `Option<Ptr<T>>`

use nearpm::prelude::*;

#[derive(Clone, Persistent)]
#[repr(C)]
struct Row {
    cells: Vec<u64>,
}

fn main() {}
