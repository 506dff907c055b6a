//! mismatched types

use nearpm::prelude::*;

fn store(tx: &mut impl Store, at: Ptr<u64>) -> Result<(), Error> {
    tx.set(at, 1u32)
}

fn main() {}
