//! method `length` is private

mod list {
    use nearpm::prelude::*;

    #[derive(Clone, Copy, Persistent)]
    #[repr(C)]
    pub struct List {
        length: u64,
    }
}

fn forge(tx: &mut impl nearpm::Store, list: nearpm::Ptr<list::List>) -> Result<(), nearpm::Error> {
    tx.set(list.length(), 7)
}

fn main() {}
