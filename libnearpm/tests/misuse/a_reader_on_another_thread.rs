//! cannot be shared between threads safely

use nearpm::prelude::*;

fn send(pool: &DirectPool, at: Ptr<u64>) -> Result<(), Error> {
    pool.read(|from| {
        std::thread::scope(|scope| {
            scope.spawn(|| from.get(at));
        });
        Ok(())
    })
}

fn main() {}
