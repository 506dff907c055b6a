//! The seam over transactions with a mechanism: undo or redo log, checkpoint, shadow paging, by
//! processor or card.

use std::cell::RefCell;
use std::ops::Range;

use super::OffsetTx;
use crate::error::Error;
use crate::typed::persistent::{bytes_of, value_of};
use crate::typed::{Later, Load, Persistent, Ptr, Store};

/// A transaction of a [`crate::Pool`], for typed objects; from [`OffsetTx::typed`].
pub struct TypedTx<'t, 'p> {
    tx: RefCell<&'t mut OffsetTx<'p>>,
    changes: u64,
    later: Later<Self>,
}

impl<'p> OffsetTx<'p> {
    /// The transaction as [`Load`] and [`Store`], so that typed objects and collections can be used
    /// in it.
    pub fn typed(&mut self) -> TypedTx<'_, 'p> {
        TypedTx { tx: RefCell::new(self), changes: 0, later: Later::default() }
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
        self.tx.borrow_mut().read(offset, data)
    }

    fn root_object(&self) -> Result<u64, Error> {
        self.tx.borrow_mut().root()
    }
}

impl TypedTx<'_, '_> {
    fn count<T>(&mut self, done: Result<T, Error>) -> Result<T, Error> {
        self.changes += u64::from(done.is_ok());
        done
    }
}

impl Store for TypedTx<'_, '_> {
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error> {
        let done = self.tx.get_mut().write(check(at)?, bytes_of(&[value]));
        self.count(done)
    }

    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let done = self.tx.get_mut().write(offset, data);
        self.count(done)
    }

    /// A range for which the log has no room is logged by the parts that are stored to.
    fn declare(&mut self, range: Range<u64>) -> Result<(), Error> {
        match self.tx.get_mut().declare(range.start, range.end.saturating_sub(range.start)) {
            Err(Error::TooLarge { .. }) => Ok(()),
            done => done,
        }
    }

    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error> {
        let done = self.tx.get_mut().alloc(bytes);
        self.count(done)
    }

    fn free_object(&mut self, object: u64) -> Result<(), Error> {
        let done = self.tx.get_mut().free(object);
        self.count(done)
    }

    fn set_root_object(&mut self, object: u64) -> Result<(), Error> {
        let done = self.tx.get_mut().set_root(object);
        self.count(done)
    }

    fn changes(&self) -> u64 {
        self.changes
    }

    fn doom(&mut self) {
        self.tx.get_mut().abandon();
    }

    fn later(&mut self) -> &mut Later<Self> {
        &mut self.later
    }
}
