//! The seam through which objects are loaded and stored.

use std::ops::Range;

use super::later::{Later, later};
use super::persistent::{bytes_of, bytes_of_mut, zero};
use super::{Persistent, Ptr};
use crate::error::Error;

mod root;

pub(crate) use root::root_type;

/// What a transaction can read. Read transactions can no more than this.
///
/// All calls refuse what does not lie in the heap ([`Error::OutOfRange`]) or at a multiple of its
/// alignment ([`Error::Misaligned`]).
pub trait Load {
    /// The value that a pointer points to.
    fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error>;

    /// Copies bytes out, from an offset in the pool on.
    fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error>;

    /// Offset of the root object, 0 for none.
    fn root_object(&self) -> Result<u64, Error>;

    /// `count` values that lie one after the other.
    fn get_all<T: Persistent>(&self, at: Ptr<T>, count: u64) -> Result<Vec<T>, Error> {
        // A damaged count is refused before it takes all memory.
        if let Some(last) = count.checked_sub(1) {
            self.get(Ptr::nth(at, last))?;
        }
        let mut values = vec![zero::<T>(); count as usize];
        self.read(Ptr::offset(at), bytes_of_mut(&mut values))?;
        Ok(values)
    }

    /// Lends bytes to a function: a copy of them, because others may change the pool meanwhile.
    fn with_bytes<R>(&self, range: Range<u64>, body: impl FnOnce(&[u8]) -> R) -> Result<R, Error> {
        let length = range.end.saturating_sub(range.start);
        // So that a damaged length does not take all memory before it is refused.
        self.read(range.end.saturating_sub(length.min(1)), &mut [0; 1][..length.min(1) as usize])?;
        let mut bytes = vec![0; length as usize];
        self.read(range.start, &mut bytes)?;
        Ok(body(&bytes))
    }

    /// The root of the pool, `None` if there is none yet.
    ///
    /// # Errors
    /// [`Error::RootType`] if the root is of another type, or its type or one that it refers to was
    /// another when it was made.
    fn root<T: Persistent>(&self) -> Result<Option<Ptr<T>>, Error>
    where
        Self: Sized,
    {
        root::find(self)
    }
}

/// What a transaction can read and store. Everything happens at commit, or nothing.
pub trait Store: Load {
    /// Stores a value.
    ///
    /// # Errors
    /// Beside those of [`Load`], those of the pool's log; the transaction may go on.
    fn set<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<(), Error>;

    /// Copies bytes in, from an offset in the pool on.
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Error>;

    /// Says that the transaction is about to change most of a range, so that the log may hold it as
    /// one. Nothing depends on it but speed.
    fn declare(&mut self, range: Range<u64>) -> Result<(), Error>;

    /// Allocates `bytes` bytes, whose contents are undefined, and gives their offset: a multiple
    /// of 16.
    ///
    /// # Errors
    /// [`Error::Full`]; the transaction may go on.
    fn alloc_bytes(&mut self, bytes: u64) -> Result<u64, Error>;

    /// Whether bytes that replace others are better a new object than stored in their place: where
    /// new objects are written once, and while there is plenty of space. Nothing depends on it but
    /// speed.
    fn prefers_new(&self, _bytes: u64) -> bool {
        false
    }

    /// Frees the object at an offset. Its space is used again only after the commit.
    ///
    /// # Errors
    /// [`Error::NotAllocated`] for anything but the start of an allocated object; the transaction
    /// may go on.
    fn free_object(&mut self, object: u64) -> Result<(), Error>;

    /// Makes an object the root; 0 for none.
    fn set_root_object(&mut self, object: u64) -> Result<(), Error>;

    /// Counts what was stored, allocated and freed: see [`whole`].
    #[doc(hidden)]
    fn changes(&self) -> u64;

    /// From now on the transaction can only be aborted.
    #[doc(hidden)]
    fn doom(&mut self);

    /// What is still to be freed.
    #[doc(hidden)]
    fn later(&mut self) -> &mut Later<Self>
    where
        Self: Sized;

    /// Stores what a function makes of the value, and gives that.
    fn update<T: Persistent>(&mut self, at: Ptr<T>, change: impl FnOnce(T) -> T) -> Result<T, Error> {
        let value = change(self.get(at)?);
        self.set(at, value)?;
        Ok(value)
    }

    /// Stores another value and gives the old one.
    fn replace<T: Persistent>(&mut self, at: Ptr<T>, value: T) -> Result<T, Error> {
        let old = self.get(at)?;
        self.set(at, value)?;
        Ok(old)
    }

    /// Stores values one after the other.
    fn set_all<T: Persistent>(&mut self, at: Ptr<T>, values: &[T]) -> Result<(), Error> {
        self.write(Ptr::offset(at), bytes_of(values))
    }

    /// Makes an object that holds a value.
    ///
    /// # Errors
    /// [`Error::Full`]; the transaction may go on.
    fn alloc<T: Persistent>(&mut self, value: T) -> Result<Ptr<T>, Error> {
        whole(self, |tx| {
            let place = pointer(tx.alloc_bytes(size_of::<T>() as u64)?)?;
            tx.set(place, value)?;
            Ok(place)
        })
    }

    /// Makes an object that holds `count` values of zeros, and gives the pointer to the first.
    ///
    /// # Errors
    /// [`Error::Full`]; the transaction may go on.
    fn alloc_zeroed<T: Persistent>(&mut self, count: u64) -> Result<Ptr<T>, Error> {
        const PIECE: u64 = 4096;
        let bytes = (size_of::<T>() as u64).saturating_mul(count);
        whole(self, |tx| {
            let object = tx.alloc_bytes(bytes)?;
            let mut done = 0;
            while done < bytes {
                let length = PIECE.min(bytes - done);
                tx.write(object + done, &[0; PIECE as usize][..length as usize])?;
                done += length;
            }
            pointer(object)
        })
    }

    /// Frees an object. What it owns is not freed: see [`Store::destroy`].
    ///
    /// # Errors
    /// [`Error::NotAllocated`] for anything but the pointer that an allocation gave; the
    /// transaction may go on.
    fn free<T: Persistent>(&mut self, object: Ptr<T>) -> Result<(), Error> {
        self.free_object(Ptr::offset(object))
    }

    /// Frees an object and what its collections hold, however deep they are nested. Called from
    /// within a release it frees later, before the outermost call returns.
    ///
    /// # Errors
    /// As [`Store::free`]; [`Error::System`] without memory to remember what is still to be freed.
    fn destroy<T: Persistent>(&mut self, object: Ptr<T>) -> Result<(), Error>
    where
        Self: Sized,
    {
        if !T::OWNS {
            return self.free(object);
        }
        whole(self, |tx| later(tx, destroy_object::<T, Self>, [Ptr::offset(object), 0, 0, 0]))
    }

    /// The root of the pool. Where there is none, it is made, of zeros: an empty collection, a null
    /// pointer, the number 0.
    ///
    /// # Errors
    /// [`Error::RootType`], see [`Load::root`]; [`Error::Full`].
    fn root_or_zeroed<T: Persistent>(&mut self) -> Result<Ptr<T>, Error>
    where
        Self: Sized,
    {
        match self.root()? {
            Some(root) => Ok(root),
            None => root::make(self, zero::<T>()),
        }
    }

    /// The root of a pool that a former version of the program may have made, with another type:
    /// then `change` makes the new value of the old one, and the old object is freed. Collections
    /// go over by their handles, and stay where they are; what is left out is to be released. A
    /// pool without a root gets one of zeros.
    ///
    /// # Errors
    /// [`Error::RootType`] where the root is of neither type; those of `change`; [`Error::Full`].
    fn migrate_root<Old: Persistent, New: Persistent>(
        &mut self,
        change: impl FnOnce(&mut Self, Old) -> Result<New, Error>,
    ) -> Result<Ptr<New>, Error>
    where
        Self: Sized,
    {
        match root::find::<New>(self) {
            Ok(Some(root)) => return Ok(root),
            Ok(None) => return self.root_or_zeroed(),
            Err(Error::RootType { .. }) => {}
            Err(other) => return Err(other),
        }
        let (old, object) = (root::find::<Old>(self)?, self.root_object()?);
        let Some(old) = old else { return self.root_or_zeroed() };
        whole(self, |tx| {
            let value = tx.get(old)?;
            let value = change(tx, value)?;
            let new = root::make(tx, value)?;
            tx.free_object(object)?;
            Ok(new)
        })
    }
}

fn destroy_object<T: Persistent, S: Store>(tx: &mut S, [object, ..]: [u64; 4]) -> Result<(), Error> {
    let object: Ptr<T> = pointer(object)?;
    let value = tx.get(object)?;
    tx.free(object)?;
    value.release(tx)
}

/// Makes a change of several steps. One that fails between them leaves it half done, so that the
/// transaction can only be aborted; one that fails at its first step has changed nothing.
pub(crate) fn whole<S: Store + ?Sized, R>(
    tx: &mut S,
    change: impl FnOnce(&mut S) -> Result<R, Error>,
) -> Result<R, Error> {
    let before = tx.changes();
    let done = change(tx);
    if done.is_err() && tx.changes() != before {
        tx.doom();
    }
    done
}

/// The pointer to an object that was allocated.
pub(crate) fn pointer<T: Persistent>(object: u64) -> Result<Ptr<T>, Error> {
    Ptr::from_offset(object).ok_or(Error::NotAllocated { offset: object })
}
