//! cannot borrow `*tx` as mutable because it is also borrowed as immutable

use nearpm::prelude::*;

fn double(tx: &mut Tx<'_>, list: Ptr<PVec<u64>>) -> Result<(), Error> {
    for value in list.iter(tx)? {
        list.push(tx, value?)?;
    }
    Ok(())
}

fn main() {}
