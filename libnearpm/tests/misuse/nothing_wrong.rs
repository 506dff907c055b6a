//! compiles

use nearpm::prelude::*;

#[derive(Clone, Copy, Persistent)]
#[repr(C)]
struct Person {
    age: u64,
    friend: Option<Ptr<Person>>,
}

fn main() {
    let pool = DirectPool::create("pool", 1 << 20, &Options::new()).unwrap();
    pool.tx(|tx| tx.alloc(Person { age: 3, friend: None }).map(drop)).unwrap();
}
