//! The program of the README: counts its own runs, whatever ended the last one.

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Guests {
    visits: u64,
}

fn main() -> Result<(), Error> {
    let pool = DirectPool::open_or_create("guests.pool", 1 << 20, &Options::new())?;
    let guests = pool.tx(|tx| tx.root_or_zeroed::<Guests>())?;
    let visits = pool.tx(|tx| tx.update(guests.visits(), |n| n + 1))?;
    println!("visit {visits}");
    pool.close()
}
