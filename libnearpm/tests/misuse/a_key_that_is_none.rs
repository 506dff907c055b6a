//! `Id` cannot be the key of a map in a pool
//! `#[derive(PartialEq, Eq, PartialOrd, Ord)]` and `impl PlainKey for Id {}`

use nearpm::prelude::*;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Persistent)]
#[repr(C)]
struct Id {
    number: u64,
}

fn find(from: &impl Load, names: Ptr<PHashMap<Id, PString>>) -> bool {
    names.get(from, &Id { number: 1 }).is_ok()
}

fn main() {}
