//! The seam over transactions with a mechanism: undo or redo log, checkpoint, shadow paging, by processor or card.

use std::cell::RefCell;
use std::ops::Range;

use super::persistent::{bytes_of, value_of};
use super::{Load, Persistent, Ptr, Store};
use crate::error::Error;
use crate::transaction::Tx;

/// A transaction of a [`crate::Pool`], for typed objects; from [`Tx::typed`].
pub struct TypedTx<'t, 'p>(RefCell<&'t mut Tx<'p>>);

impl<'p> Tx<'p> {
    /// The transaction as [`Load`] and [`Store`], so that typed objects and collections can be used in it.
    pub fn typed(&mut self) -> TypedTx<'_, 'p> {
        TypedTx(RefCell::new(self))
    }
}

/// Refuses what no object has.
fn check<T: Persistent>(at: Ptr<T>) -> Result<u64, Error> {
    let (offset, alignment) = (Ptr::offset(at), align_of::<T>() as u64);
    if offset.is_multiple_of(alignment) { Ok(offset) } else { Err(Error::Misaligned { offset, alignment }) }
}

impl Load for TypedTx<'_, '_> {
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        let offset = check(at)?;
        value_of(|bytes| self.read(offset, bytes))
    }

    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        // No call of the transaction comes back here, so that it is never borrowed twice.
        self.0.borrow_mut().read(offset, data)
    }

    fn root_object(&self) -> Result<u64, Error> {
        self.0.borrow_mut().root()
    }
}

impl Store for TypedTx<'_, '_> {
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        self.0.get_mut().write(check(at)?, bytes_of(&[value]))
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.0.get_mut().write(offset, data)
    }

    fn declare(&mut self, range: Range<u64>) -> Result<(), Error> {
        self.0.get_mut().declare(range.start, range.end.saturating_sub(range.start))
    }

    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error> {
        self.0.get_mut().alloc(bytes)
    }

    fn free_object(&mut self, object: u64) -> Result<(), Error> {
        self.0.get_mut().free(object)
    }

    fn set_root_object(&mut self, object: u64) -> Result<(), Error> {
        self.0.get_mut().set_root(object)
    }
}
