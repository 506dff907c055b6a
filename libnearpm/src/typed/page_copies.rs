//! Copies of pages as they were at one moment, made before they change: what a snapshot sees.
//!
//! A writer copies a page before its first store there. A reader loads from the page itself, and
//! looks afterwards whether there is a copy: if there is none, nothing had been stored when it
//! loaded. Nobody waits for anybody.

#![allow(unsafe_code)]

use std::collections::TryReserveError;
use std::ops::Range;
use std::ptr;

use super::sync::{AtomicBool, AtomicPtr, AtomicU64, Ordering, TABLE, fence};

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes whose copies one table has.
const TABLE_BYTES: u64 = (TABLE * PAGE) as u64;

/// A page's bytes.
type Page = [u8; PAGE];
/// Copies of pages, null where there is none.
type Table = [AtomicPtr<Page>; TABLE];

/// The copies of one snapshot.
pub struct PageCopies {
    range: Range<u64>,
    tables: Box<[AtomicPtr<Table>]>,
    /// Pages that were copied.
    count: AtomicU64,
    /// A page has changed that there was no memory to copy.
    lost: AtomicBool,
}

/// A value in memory of its own, unless there is none.
fn boxed<T>(value: impl FnOnce() -> T) -> Option<Box<[T; 1]>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(1).ok()?;
    memory.push(value());
    Box::try_from(memory).ok()
}

/// What is there, once `make` has made it if nothing was; `None` without memory. Of two who make it
/// one is the first, and what the other has made goes; `true`: it was the caller.
fn made<T>(place: &AtomicPtr<T>, make: impl FnOnce() -> Option<Box<[T; 1]>>) -> Option<(&T, bool)> {
    let mut there = place.load(Ordering::Acquire);
    let mut first = false;
    if there.is_null() {
        let new = Box::into_raw(make()?).cast::<T>();
        match place.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => (there, first) = (new, true),
            Err(other) => {
                // SAFETY: it was made above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(new.cast::<[T; 1]>()) });
                there = other;
            }
        }
    }
    // SAFETY: what is there was made as here, and stays as long as the copies, whose `place` is
    // borrowed.
    Some((unsafe { &*there }, first))
}

/// What is there.
fn look<T>(place: &AtomicPtr<T>) -> Option<&T> {
    // SAFETY: as for `made`.
    unsafe { place.load(Ordering::Acquire).as_ref() }
}

/// Frees what is there.
fn take<T>(place: &AtomicPtr<T>) -> Option<Box<[T; 1]>> {
    let there = place.swap(ptr::null_mut(), Ordering::AcqRel);
    // SAFETY: it was made by `made`, and is nowhere any more; the caller is alone.
    (!there.is_null()).then(|| unsafe { Box::from_raw(there.cast()) })
}

impl PageCopies {
    /// For a range of a pool, of which nobody changes anything meanwhile.
    ///
    /// # Errors
    /// There is no memory for a word for each 2 MiB.
    pub fn new(range: Range<u64>) -> Result<PageCopies, TryReserveError> {
        let numbers = range.start / TABLE_BYTES..range.end.div_ceil(TABLE_BYTES);
        let mut tables = Vec::new();
        tables.try_reserve_exact((numbers.end - numbers.start) as usize)?;
        tables.extend(numbers.map(|_| AtomicPtr::new(ptr::null_mut())));
        let tables = tables.into_boxed_slice();
        Ok(PageCopies { range, tables, count: AtomicU64::new(0), lost: AtomicBool::new(false) })
    }

    /// What it sees.
    pub fn range(&self) -> Range<u64> {
        self.range.clone()
    }

    /// Pages that were copied.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The table of a page, and the page's place in it.
    fn place(&self, page: u64) -> (&AtomicPtr<Table>, usize) {
        let table = page / TABLE as u64 - self.range.start / TABLE_BYTES;
        (&self.tables[table as usize], (page % TABLE as u64) as usize)
    }

    /// Somebody is about to change a range: copies the pages that were not copied before. `copy`
    /// copies one, from its offset in the pool on.
    pub fn keep(&self, range: &Range<u64>, copy: impl Fn(u64, &mut [u8])) {
        let (start, end) = (range.start.max(self.range.start), range.end.min(self.range.end));
        if start >= end {
            return;
        }
        for page in start / PAGE as u64..end.div_ceil(PAGE as u64) {
            if self.keep_page(page, &copy).is_none() {
                self.lost.store(true, Ordering::Relaxed);
            }
        }
        // Whoever loads what is stored from here on sees the copies (and that one is lost): his
        // fence is in `changed`.
        fence(Ordering::Release);
    }

    fn keep_page(&self, page: u64, copy: impl Fn(u64, &mut [u8])) -> Option<()> {
        let (table, at) = self.place(page);
        let (table, _) = made(table, || boxed(|| std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut()))))?;
        let make = || {
            let mut new = boxed(|| [0; PAGE])?;
            copy(page * PAGE as u64, &mut new[0]);
            Some(new)
        };
        let (_, first) = made(&table[at], make)?;
        self.count.fetch_add(first.into(), Ordering::Relaxed);
        Some(())
    }

    /// The copy of a page.
    fn copy_of(&self, page: u64) -> Option<&Page> {
        let (table, at) = self.place(page);
        look(&look(table)?[at])
    }

    /// Whether what was just loaded from a range that is not empty may have changed before.
    ///
    /// # Errors
    /// [`Lost`].
    #[inline]
    pub fn changed(&self, range: &Range<u64>) -> Result<bool, Lost> {
        fence(Ordering::Acquire);
        if self.lost.load(Ordering::Relaxed) {
            return Err(Lost);
        }
        let (first, last) = (range.start / PAGE as u64, (range.end - 1) / PAGE as u64);
        Ok((first..=last).any(|page| self.copy_of(page).is_some()))
    }

    /// Reads a range of the pool as it was. `load` loads from the pool itself, from an offset on.
    ///
    /// # Errors
    /// [`Lost`].
    pub fn read(&self, offset: u64, data: &mut [u8], load: impl Fn(u64, &mut [u8])) -> Result<(), Lost> {
        let (mut offset, mut rest) = (offset, data);
        while !rest.is_empty() {
            let (page, inside) = (offset / PAGE as u64, offset as usize % PAGE);
            let length = rest.len().min(PAGE - inside);
            let (piece, behind) = rest.split_at_mut(length);
            load(offset, piece);
            if self.changed(&(offset..offset + length as u64))?
                && let Some(copy) = self.copy_of(page)
            {
                piece.copy_from_slice(&copy[inside..inside + length]);
            }
            (offset, rest) = (offset + length as u64, behind);
        }
        Ok(())
    }
}

/// There was no memory for a page that a snapshot sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost;

impl Drop for PageCopies {
    fn drop(&mut self) {
        for table in self.tables.iter().filter_map(take) {
            table[0].iter().for_each(|copy| drop(take(copy)));
        }
    }
}
