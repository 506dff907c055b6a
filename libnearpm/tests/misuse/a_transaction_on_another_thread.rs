//! cannot be sent between threads safely

use nearpm::prelude::*;

fn send(pool: &DirectPool, at: Ptr<u64>) -> Result<(), Error> {
    pool.tx(|tx| {
        std::thread::scope(|scope| {
            scope.spawn(|| tx.set(at, 1));
        });
        Ok(())
    })
}

fn main() {}
