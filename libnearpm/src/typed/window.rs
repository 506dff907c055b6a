//! Memory of this process that holds objects, by checked offsets.

#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use super::{Persistent, Ptr};
use crate::error::Error;
use crate::memory::words::{self, Neighbours, WORD};
use crate::memory::{View, check_range};

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

impl View {
    /// A part of it that holds typed objects, from a multiple of 8 to one.
    pub fn window(&self, range: Range<u64>) -> Window<'_> {
        check_range(self.bytes(), range.start, range.end.saturating_sub(range.start));
        // SAFETY: the range lies in the view, whose base is that of a page. The library accesses it
        // by words, here and in the window. A C program that stores there by itself is code outside
        // of Rust, and answers for what it does.
        unsafe { Window::new(self.base(), range) }
    }
}

impl<'p> Window<'p> {
    /// The range of a pool's view.
    ///
    /// # Safety
    /// The range begins and ends at multiples of 8 and is mapped for `'p` from a base that is
    /// aligned to 16 on; all who store there meanwhile, and all in this process who load, do so by
    /// [`words`].
    pub unsafe fn new(base: *mut u8, range: Range<u64>) -> Window<'p> {
        assert!(base.addr().is_multiple_of(16) && range.start.is_multiple_of(8) && range.end.is_multiple_of(8));
        Window { base, start: range.start, bytes: range.end - range.start, pool: PhantomData }
    }

    /// A part of it; nothing at all where it would leave the window.
    #[inline]
    pub fn part(&self, range: Range<u64>) -> Window<'p> {
        let bytes = range.end.saturating_sub(range.start);
        let bytes = if self.holds(range.start, bytes) { bytes } else { 0 };
        Window { start: range.start, bytes, ..*self }
    }

    /// Whether bytes lie in the window; not those of no value, so that one comparison tells.
    #[inline(always)]
    pub fn holds(&self, offset: u64, bytes: u64) -> bool {
        offset.wrapping_sub(self.start) < self.bytes.saturating_sub(bytes.saturating_sub(1))
    }

    /// Whether a value lies in the window.
    #[inline(always)]
    pub fn has<T: Persistent>(&self, at: Ptr<T>) -> bool {
        self.holds(Ptr::offset(at), size_of::<T>() as u64) && Ptr::offset(at).is_multiple_of(align_of::<T>() as u64)
    }

    /// The address of bytes.
    #[inline(always)]
    fn address(&self, offset: u64, bytes: u64) -> Result<*mut u8, Error> {
        if self.holds(offset, bytes) {
            return Ok(self.base.wrapping_add(offset as usize));
        }
        Err(self.refusal(offset, bytes, 1))
    }

    /// The address of a value.
    #[inline(always)]
    fn place<T: Persistent>(&self, at: Ptr<T>) -> Result<*mut u8, Error> {
        if self.has(at) {
            return Ok(self.base.wrapping_add(Ptr::offset(at) as usize));
        }
        Err(self.refusal(Ptr::offset(at), size_of::<T>() as u64, align_of::<T>() as u64))
    }

    #[cold]
    #[inline(never)]
    fn refusal(&self, offset: u64, length: u64, alignment: u64) -> Error {
        let heap = self.start..self.start + self.bytes;
        if offset.is_multiple_of(alignment) {
            Error::OutOfRange { offset, length, heap }
        } else {
            Error::Misaligned { offset, alignment }
        }
    }

    /// Refuses what no object has.
    #[inline]
    pub fn check<T: Persistent>(&self, at: Ptr<T>) -> Result<(), Error> {
        self.place(at).map(drop)
    }

    /// Refuses bytes that no object has.
    pub fn check_bytes(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.address(offset, bytes).map(drop)
    }

    /// Loads a value.
    #[inline(always)]
    pub fn get<T: Persistent>(&self, at: Ptr<T>) -> Result<T, Error> {
        let from = self.place(at)?;
        let () = T::CHECKED;
        let mut value = MaybeUninit::<T>::uninit();
        let to = value.as_mut_ptr().cast::<u8>();
        // SAFETY: the range was checked, and the window's words are accessed as `words` wants it.
        // Every byte of the value is written, and every bit pattern is a value.
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
        let to = self.place(at)?;
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

    /// Neighbouring words.
    pub fn words(&self, offset: u64, count: u64) -> Result<&'p [AtomicU64], Error> {
        let bytes = count.saturating_mul(WORD as u64);
        if count == 0 {
            return Ok(&[]);
        }
        if !offset.is_multiple_of(WORD as u64) || !self.holds(offset, bytes) {
            return Err(self.refusal(offset, bytes, WORD as u64));
        }
        let first = self.base.wrapping_add(offset as usize).cast::<AtomicU64>();
        // SAFETY: the range was checked, is aligned as the base is, and is mapped for `'p`; `words`
        // accesses it by atomic words, too.
        Ok(unsafe { std::slice::from_raw_parts(first, count as usize) })
    }

    /// Copies bytes out.
    #[inline]
    pub fn read(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        let from = self.address(offset, data.len() as u64)?;
        // SAFETY: as for `get`; the slice is memory of its own.
        unsafe { words::load(from, data.as_mut_ptr(), data.len()) };
        Ok(())
    }

    /// Copies bytes in.
    #[inline]
    pub fn write(&self, offset: u64, data: &[u8], neighbours: Neighbours) -> Result<(), Error> {
        if data.is_empty() {
            return Ok(());
        }
        let to = self.address(offset, data.len() as u64)?;
        // SAFETY: as for `read`.
        unsafe { words::store(to, data, neighbours) };
        Ok(())
    }
}
