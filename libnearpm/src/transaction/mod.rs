//! Open transactions, which take the pool as it is or collect what they change.
//!
//! | file | holds |
//! |---|---|
//! | `allocator.rs` | what a transaction does to the heap |
//! | `inner.rs` | what is behind the lock of a pool |
//! | `exclusive.rs` | a transaction that has the pool for itself, which is the default |
//! | `collected.rs` | what one collects that is open beside others |
//! | `shared.rs` | what they share: the lock, and waiting for the card together |
//! | `buffered.rs` | a transaction that is open beside others |
//! | `typed.rs` | typed objects in either |

use std::ops::Range;

use crate::damage::Class;
use crate::error::Error;
use crate::heap::HeapLayout;
use crate::options::Durability;

use buffered::Buffered;
use exclusive::Exclusive;

mod allocator;
mod buffered;
mod collected;
mod exclusive;
mod inner;
mod shared;
#[cfg(test)]
mod tests;
mod typed;

pub(crate) use allocator::Allocator;
pub(crate) use inner::Inner;
pub(crate) use shared::Shared;
pub use typed::TypedTx;

/// An open transaction: reads see its own writes, and nothing of it remains when it is aborted.
///
/// Offsets count from the start of the pool, as [`OffsetTx::alloc`] and [`crate::Pool::root`] give
/// them; 0 is never an object. A range that leaves the heap is refused with [`Error::OutOfRange`]
/// and has no effect.
pub struct OffsetTx<'p> {
    kind: Kind<'p>,
    /// Offsets that programs may use.
    heap: Range<u64>,
}

enum Kind<'p> {
    Exclusive(Exclusive<'p>),
    Buffered(Box<Buffered<'p>>),
}

/// Makes a call of a transaction of either kind.
macro_rules! each {
    ($kind:expr, $tx:ident => $call:expr) => {
        match $kind {
            Kind::Exclusive($tx) => $call,
            Kind::Buffered($tx) => $call,
        }
    };
}

impl<'p> OffsetTx<'p> {
    /// One that has the pool for itself.
    pub(crate) fn exclusive(inner: &'p mut Inner) -> OffsetTx<'p> {
        let heap = inner.allocator.range();
        OffsetTx { kind: Kind::Exclusive(Exclusive::begin(inner)), heap }
    }

    /// One that is open beside others.
    pub(crate) fn buffered(shared: &'p Shared) -> OffsetTx<'p> {
        OffsetTx { kind: Kind::Buffered(Box::new(Buffered::begin(shared))), heap: shared.layout.range() }
    }

    /// Commits where the body is done, and takes everything back where it has failed.
    pub(crate) fn end<T>(self, done: Result<T, Error>, durability: Durability) -> Result<T, Error> {
        each!(self.kind, tx => tx.end(done, durability))
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
        each!(&mut self.kind, tx => tx.abandon());
    }

    fn layout(&self) -> HeapLayout {
        each!(&self.kind, tx => tx.layout())
    }

    /// Reads `data.len()` bytes at `offset`.
    #[inline]
    pub fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.check(offset, data.len() as u64)?;
        each!(&mut self.kind, tx => tx.read(offset, data))
    }

    /// Writes `data` at `offset`.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when log or spare pages are full: then this call wrote nothing, and the
    /// transaction may go on. With [`Options::concurrent`](crate::Options::concurrent) the commit
    /// says so, for the whole transaction.
    #[inline]
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.check(offset, data.len() as u64)?;
        if data.is_empty() {
            return Ok(());
        }
        each!(&mut self.kind, tx => tx.write(offset, data))
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
        each!(&mut self.kind, tx => tx.declare(offset, bytes))
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
    /// [`Error::Full`] when nothing is free that is large enough; the transaction may go on. What
    /// transactions beside it have allocated or are to free is not free.
    pub fn alloc(&mut self, bytes: u64) -> Result<u64, Error> {
        each!(&mut self.kind, tx => tx.alloc(bytes))
    }

    /// Allocates zeroed bytes; otherwise like [`OffsetTx::alloc`].
    pub fn alloc_zeroed(&mut self, bytes: u64) -> Result<u64, Error> {
        const PIECE: u64 = 4096;
        let offset = self.alloc(bytes)?;
        let mut done = 0;
        while done < bytes {
            let length = PIECE.min(bytes - done);
            let zeros = &[0; PIECE as usize][..length as usize];
            let written = each!(&mut self.kind, tx => tx.write(offset + done, zeros));
            written.inspect_err(|_| self.abandon())?;
            done += length;
        }
        Ok(offset)
    }

    /// Frees an object. Its space is used again only after the commit.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] for anything but the start of an allocated object, and for one that
    /// a transaction beside this one is to free; the transaction may go on.
    pub fn free(&mut self, offset: u64) -> Result<(), Error> {
        each!(&mut self.kind, tx => tx.free(offset))
    }

    /// Usable bytes of an object: at least what was asked for.
    pub fn size_of(&self, offset: u64) -> Result<u64, Error> {
        each!(&self.kind, tx => tx.size_of(offset))
    }

    /// Offset of the root, 0 where none was set.
    pub fn root(&mut self) -> Result<u64, Error> {
        let layout = self.layout();
        let mut bytes = [0; 8];
        each!(&mut self.kind, tx => tx.read(layout.root(), &mut bytes))?;
        layout.form.decode(u64::from_le_bytes(bytes)).ok_or_else(|| Class::RootWord.at(layout.root()))
    }

    /// Makes an offset the root, from which a program finds everything else; 0 for none.
    pub fn set_root(&mut self, offset: u64) -> Result<(), Error> {
        if offset != 0 {
            self.check(offset, 1)?;
        }
        let layout = self.layout();
        let word = layout.form.encode(offset);
        each!(&mut self.kind, tx => tx.write(layout.root(), &word.to_le_bytes()))
    }
}
