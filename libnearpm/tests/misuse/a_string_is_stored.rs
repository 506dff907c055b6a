//! `String` cannot lie in a pool

use nearpm::prelude::*;

fn store(tx: &mut impl Store) -> Result<(), Error> {
    tx.alloc(String::from("text")).map(drop)
}

fn main() {}
