//! An open transaction.

use std::ops::Range;

use crate::damage::Class;
use crate::error::Error;
use crate::mechanism::Acknowledged;
use crate::options::Durability;

mod allocator;
mod inner;
mod typed;

pub(crate) use allocator::Allocator;
pub(crate) use inner::Inner;
pub use typed::TypedTx;

/// An open transaction: reads see its own writes, and nothing of it remains when it is aborted.
///
/// Offsets count from the start of the pool, as [`OffsetTx::alloc`] and [`crate::Pool::root`] give
/// them; 0 is never an object. A range that leaves the heap is refused with [`Error::OutOfRange`]
/// and has no effect.
pub struct OffsetTx<'p> {
    inner: &'p mut Inner,
    /// Offsets that programs may use.
    heap: Range<u64>,
    /// A call failed half-way, so that the transaction can only be aborted.
    doomed: bool,
    /// Committed or rolled back.
    ended: bool,
}

impl<'p> OffsetTx<'p> {
    pub(crate) fn begin(inner: &'p mut Inner) -> OffsetTx<'p> {
        let heap = inner.allocator.range();
        OffsetTx { inner, heap, doomed: false, ended: false }
    }

    pub(crate) fn commit(mut self, durability: Durability) -> Result<Acknowledged, Error> {
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
        match inner.protocol.commit(&mut inner.cx, durability) {
            Ok(acknowledged) => {
                inner.allocator.commit();
                Ok(acknowledged)
            }
            Err(error) => {
                // Whether the commit word is durable only a recovery can tell.
                inner.poisoned = true;
                Err(error)
            }
        }
    }

    pub(crate) fn rollback(&mut self) -> Result<(), Error> {
        self.ended = true;
        let inner = &mut *self.inner;
        let result = inner.protocol.abort(&mut inner.cx);
        inner.poisoned |= result.is_err();
        inner.allocator.abort();
        result
    }

    fn check(&self, offset: u64, length: u64) -> Result<(), Error> {
        let end = offset.checked_add(length);
        if offset < self.heap.start || end.is_none_or(|end| end > self.heap.end) {
            return Err(Error::OutOfRange { offset, length, heap: self.heap.clone() });
        }
        Ok(())
    }

    /// From now on the transaction can only be aborted.
    pub(crate) fn abandon(&mut self) {
        self.doomed = true;
    }

    /// Notes that a call failed in a way that may have left part of its work.
    fn doom<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        let harmless =
            |error: &Error| matches!(error, Error::ZeroSize { .. } | Error::Full { .. } | Error::NotAllocated { .. });
        self.doomed |= result.as_ref().is_err_and(|e| !harmless(e));
        result
    }

    /// Reads `data.len()` bytes at `offset`.
    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.check(offset, data.len() as u64)?;
        self.inner.protocol.read(&mut self.inner.cx, offset, data)
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when log or spare pages are full: then this call wrote nothing, and the
    /// transaction may go on.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.check(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        self.inner.check_writable()?;
        let result = self.inner.protocol.write(&mut self.inner.cx, offset, data);
        match result {
            Err(Error::TooLarge { .. }) => result,
            _ => self.doom(result),
        }
    }

    /// Says that this transaction is about to change parts of a range, so that the log may hold the
    /// range as one. Nothing depends on it but speed; it pays where several writes go to one
    /// object.
    ///
    /// The whole range must belong to what the transaction changes: a rollback restores all of it.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the log has no room for it; the transaction may go on.
    pub fn declare(&mut self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.check(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.inner.check_writable()?;
        self.inner.protocol.declare(&mut self.inner.cx, offset, bytes)
    }

    /// Reads a little-endian 8-byte word.
    #[inline]
    pub fn read_u64(&mut self, offset: u64) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Writes a little-endian 8-byte word.
    #[inline]
    pub fn write_u64(&mut self, offset: u64, value: u64) -> Result<(), Error> {
        self.write(offset, &value.to_le_bytes())
    }

    /// Reads `bytes` bytes.
    pub fn read_vec(&mut self, offset: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        self.check(offset, bytes as u64)?;
        let mut data = vec![0; bytes];
        self.read(offset, &mut data)?;
        Ok(data)
    }

    /// Allocates `bytes` bytes, whose contents are undefined, and gives their offset: a multiple of
    /// 16; of 64 where `bytes` is one, and of 4096 where `bytes` is one.
    ///
    /// # Errors
    /// [`Error::Full`] when nothing is free that is large enough; the transaction may go on.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        self.inner.check_writable()?;
        let Inner { cx, protocol, allocator, .. } = &mut *self.inner;
        let result = allocator.alloc(cx, &mut **protocol, bytes);
        let reserved = self.doom(result)?;
        self.inner.protocol.fresh(&mut self.inner.cx, reserved.offset, reserved.bytes);
        Ok(reserved.offset)
    }

    /// Allocates zeroed bytes; otherwise like [`OffsetTx::alloc`].
    pub fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        const PIECE: u64 = 4096;
        let offset = self.alloc(bytes)?;
        let mut done = 0;
        while done < bytes {
            let length = PIECE.min(bytes - done);
            let result =
                self.inner.protocol.write(&mut self.inner.cx, offset + done, &[0; PIECE as usize][..length as usize]);
            self.doom(result)?;
            done += length;
        }
        Ok(offset)
    }

    /// Frees an object. Its space is used again only after the commit.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] for anything but the start of an allocated object; the transaction
    /// may go on.
    pub fn free(&mut self, offset: u64) -> Result<(), Error> {
        self.inner.check_writable()?;
        let Inner { cx, protocol, allocator, .. } = &mut *self.inner;
        let result = allocator.free(cx, &mut **protocol, offset);
        self.doom(result)
    }

    /// Usable bytes of an object: at least what was asked for.
    pub fn size_of(&self, offset: u64) -> Result<u64, Error> {
        self.inner.allocator.size_of(offset)
    }

    /// Offset of the root, 0 where none was set.
    pub fn root(&mut self) -> Result<u64, Error> {
        let layout = self.inner.allocator.layout();
        let mut bytes = [0; 8];
        self.inner.protocol.read(&mut self.inner.cx, layout.root(), &mut bytes)?;
        layout.form.decode(u64::from_le_bytes(bytes)).ok_or_else(|| Class::RootWord.at(layout.root()))
    }

    /// Makes an offset the root, from which a program finds everything else; 0 for none.
    pub fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        if offset != 0 {
            self.check(offset, 1)?;
        }
        self.inner.check_writable()?;
        let layout = self.inner.allocator.layout();
        let word = layout.form.encode(offset);
        let result = self.inner.protocol.write(&mut self.inner.cx, layout.root(), &word.to_le_bytes());
        match result {
            Err(Error::TooLarge { .. }) => result,
            _ => self.doom(result),
        }
    }
}

impl Drop for OffsetTx<'_> {
    /// A transaction that was neither committed nor rolled back is unwinding: its writes are taken
    /// back.
    fn drop(&mut self) {
        if !self.ended {
            // A rollback that fails poisons the pool; there is nobody to tell while unwinding.
            let _ = self.rollback();
        }
    }
}
