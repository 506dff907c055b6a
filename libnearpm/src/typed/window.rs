//! Memory of this process that holds objects, by checked offsets.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

use super::{Persistent, Ptr};
use crate::error::Error;
use crate::memory::words::{self, Neighbours, WORD};

/// The heap of a pool as memory. Plain data, so that its fields stay in registers.
#[derive(Clone, Copy)]
pub(crate) struct Window<'p> {
    /// Address of the pool's offset 0.
    base: *mut u8,
    /// Offset of the first byte.
    start: u64,
    bytes: u64,
    pool: PhantomData<&'p ()>,
}

/// Whether an aligned value lies in one word, and leaves some of it to others.
const fn is_part_of_a_word<T>() -> bool {
    size_of::<T>() == align_of::<T>() && size_of::<T>() < WORD
}

impl<'p> Window<'p> {
    /// The range of a pool's view.
    ///
    /// # Safety
    /// The range begins and ends at multiples of 8 and is mapped for `'p` from a base that is aligned to 16 on; all who store there meanwhile, and all
    /// in this process who load, do so by [`words`].
    pub unsafe fn new(base: *mut u8, range: Range<u64>) -> Window<'p> {
        assert!(base.addr().is_multiple_of(16) && range.start.is_multiple_of(8) && range.end.is_multiple_of(8));
        Window { base, start: range.start, bytes: range.end - range.start, pool: PhantomData }
    }

    /// The address of a range.
    #[inline(always)]
    fn address(&self, offset: u64, bytes: u64, alignment: u64) -> Result<*mut u8, Error> {
        let at = offset.wrapping_sub(self.start);
        let inside = at <= self.bytes && self.bytes - at >= bytes;
        if inside && offset.is_multiple_of(alignment) {
            return Ok(self.base.wrapping_add(offset as usize));
        }
        Err(self.refusal(offset, bytes, alignment))
    }

    #[cold]
    #[inline(never)]
    pub fn refusal(&self, offset: u64, length: u64, alignment: u64) -> Error {
        let heap = self.start..self.start + self.bytes;
        if offset.is_multiple_of(alignment) {
            Error::OutOfRange { offset, length, heap }
        } else {
            Error::Misaligned { offset, alignment }
        }
    }

    /// Refuses what no object has.
    #[inline(always)]
    pub fn check<T: Persistent>(&self, at: Ptr<T>) -> Result<(), Error> {
        self.address(Ptr::offset(at), size_of::<T>() as u64, align_of::<T>() as u64).map(drop)
    }

    /// Loads a value.
    #[inline(always)]
    pub fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        let from = self.address(Ptr::offset(at), size_of::<T>() as u64, align_of::<T>() as u64)?;
        let () = T::CHECKED;
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr().cast::<u8>();
        // SAFETY: the range was checked, and the window's words are accessed as `words` wants it. Every byte of the value is written, and every
        // bit pattern is a value.
        unsafe {
            if align_of::<T>() >= WORD {
                for at in (0..size_of::<T>()).step_by(WORD) {
                    to.add(at).cast::<u64>().write(words::load_word(from.add(at)));
                }
            } else if is_part_of_a_word::<T>() {
                let first = from.addr() % WORD;
                let bytes = (words::load_word(from.sub(first)).to_le() >> (8 * first)).to_le_bytes();
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, size_of::<T>());
            } else {
                words::load(from, to, size_of::<T>());
            }
            Ok(value.assume_init())
        }
    }

    /// Stores a value.
    #[inline(always)]
    pub fn set<T: Persistent>(&self, at: Ptr<T>, value: T, neighbours: Neighbours) -> Result<(), Error> {
        let to = self.address(Ptr::offset(at), size_of::<T>() as u64, align_of::<T>() as u64)?;
        let () = T::CHECKED;
        let from = std::ptr::from_ref(&value).cast::<u8>();
        // SAFETY: as for `get`; every byte of a value is initialised.
        unsafe {
            if align_of::<T>() >= WORD {
                for at in (0..size_of::<T>()).step_by(WORD) {
                    words::store_word(to.add(at), from.add(at).cast::<u64>().read());
                }
            } else if is_part_of_a_word::<T>() {
                let mut bytes = [0; WORD];
                std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), size_of::<T>());
                let first = to.addr() % WORD;
                let mask = u64::MAX >> (8 * (WORD - size_of::<T>()));
                let place = |bits: u64| u64::from_le(bits << (8 * first));
                words::merge(to.sub(first), place(mask), place(u64::from_le_bytes(bytes)), neighbours);
            } else {
                words::store(to, std::slice::from_raw_parts(from, size_of::<T>()), neighbours);
            }
        }
        Ok(())
    }

    /// Copies bytes out.
    #[inline]
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        let from = self.address(offset, data.len() as u64, 1)?;
        // SAFETY: as for `get`; the slice is memory of its own.
        unsafe { words::load(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// Copies bytes in.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8], neighbours: Neighbours) -> Result<(), Error> {
        let to = self.address(offset, data.len() as u64, 1)?;
        // SAFETY: as for `read`.
        unsafe { words::store(to, data, neighbours) };
        Ok(())
    }
}
