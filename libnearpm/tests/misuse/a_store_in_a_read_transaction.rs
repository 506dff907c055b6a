//! no method named `set` found for reference `&Reader

use nearpm::prelude::*;

fn store(pool: &DirectPool, at: Ptr<u64>) -> Result<(), Error> {
    pool.read(|from| from.set(at, 1))
}

fn main() {}
