//! a Persistent struct has no padding

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Pair<T: Persistent> {
    first: T,
    second: u64,
}

fn store(tx: &mut Tx<'_>) -> Result<(), Error> {
    tx.alloc([Pair { first: 1u32, second: 2 }; 2]).map(drop)
}

fn main() {
    let pool = DirectPool::create("pool", 1 << 20, &Options::new()).unwrap();
    pool.tx(store).unwrap();
}
