//! A transaction that has the pool for itself: each call goes to the mechanism at once.

use crate::error::Error;
use crate::heap::HeapLayout;
use crate::mechanism::Acknowledged;
use crate::options::Durability;

use super::Inner;

pub(super) struct Exclusive<'p> {
    pub inner: &'p mut Inner,
    /// A call failed half-way, so that the transaction can only be aborted.
    doomed: bool,
    /// Committed or rolled back.
    ended: bool,
}

impl<'p> Exclusive<'p> {
    pub fn begin(inner: &'p mut Inner) -> Exclusive<'p> {
        Exclusive { inner, doomed: false, ended: false }
    }

    /// Commits what is done, or takes it back.
    pub fn end<T>(mut self, done: Result<T, Error>, durability: Durability) -> Result<T, Error> {
        let ended = match done {
            Ok(value) => self.commit(durability).map(|acknowledged| (value, acknowledged)),
            // The program's error is worth more than that of the rollback, which poisons the pool.
            Err(error) => {
                let _ = self.rollback();
                Err(error)
            }
        };
        self.inner.poison_after(&ended);
        match ended {
            Ok((value, acknowledged)) => {
                self.inner.count_commit(acknowledged);
                Ok(value)
            }
            Err(error) => {
                self.inner.count_abort();
                Err(error)
            }
        }
    }

    pub fn commit(&mut self, durability: Durability) -> Result<Acknowledged, Error> {
        if self.doomed {
            self.rollback()?;
            return Err(Error::half_done());
        }
        let Inner { cx, protocol, allocator, .. } = &mut *self.inner;
        let prepared = allocator.prepare(cx, &mut **protocol).and_then(|()| protocol.prepare(cx));
        if let Err(error) = prepared {
            // Why it failed is worth more than that the rollback failed too, which poisons the
            // pool.
            let _ = self.rollback();
            return Err(error);
        }
        self.ended = true;
        let inner = &mut *self.inner;
        // Whether the commit word is durable only a recovery can tell after an error, and after an
        // unwinding in the middle.
        inner.poisoned = true;
        let acknowledged = inner.protocol.commit(&mut inner.cx, durability)?;
        inner.poisoned = false;
        inner.allocator.commit();
        Ok(acknowledged)
    }

    pub fn rollback(&mut self) -> Result<(), Error> {
        self.ended = true;
        let inner = &mut *self.inner;
        let result = inner.protocol.abort(&mut inner.cx);
        inner.poisoned |= result.is_err();
        inner.allocator.abort();
        result
    }

    pub fn abandon(&mut self) {
        self.doomed = true;
    }

    /// Notes that a call failed in a way that may have left part of its work.
    fn doom<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let harmless =
            |error: &Error| matches!(error, Error::ZeroSize { .. } | Error::Full { .. } | Error::NotAllocated { .. });
        self.doomed |= result.as_ref().is_err_and(|e| !harmless(e));
        result
    }

    #[inline]
    pub fn layout(&self) -> HeapLayout {
        self.inner.allocator.layout()
    }

    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.inner.protocol.read(&mut self.inner.cx, offset, data)
    }

    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.inner.check_writable()?;
        let result = self.inner.protocol.write(&mut self.inner.cx, offset, data);
        match result {
            Err(Error::TooLarge { .. }) => result,
            _ => self.doom(result),
        }
    }

    #[inline]
    pub fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.inner.check_writable()?;
        self.inner.protocol.declare(&mut self.inner.cx, offset, bytes)
    }

    #[inline]
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.inner.check_writable()?;
        let Inner { cx, protocol, allocator, .. } = &mut *self.inner;
        let result = allocator.alloc(cx, &mut **protocol, bytes);
        let reserved = self.doom(result)?;
        self.inner.protocol.fresh(&mut self.inner.cx, reserved.offset, reserved.bytes);
        Ok(reserved.offset)
    }

    #[inline]
    pub fn free(&mut self, object: u64) -> Result<(), Error> {
        self.inner.check_writable()?;
        let Inner { cx, protocol, allocator, .. } = &mut *self.inner;
        let result = allocator.free(cx, &mut **protocol, object);
        self.doom(result)
    }

    #[inline]
    pub fn size_of(&self, object: u64) -> Result<u64, Error> {
        self.inner.allocator.size_of(object)
    }
}

impl Drop for Exclusive<'_> {
    /// A transaction that was neither committed nor rolled back is unwinding: its writes are taken
    /// back.
    fn drop(&mut self) {
        if !self.ended {
            // A rollback that fails poisons the pool; there is nobody to tell while unwinding.
            let _ = self.rollback();
        }
    }
}
