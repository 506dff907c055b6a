//! Where logical pages are.
//!
//! Invariant: every logical page has a page of its own, and the pages that none has are in `free`.

use std::ops::Range;

use nearpm_interface::media::{PAGE_BYTES, PoolHead};
use nearpm_interface::seal;

use crate::check::Class;
use crate::error::Error;
use crate::memory::Medium;

/// A logical page, and what is wrong with its word.
pub(crate) type Fault = (u64, Class);

/// The page table, as it is in memory.
pub(crate) struct Pages {
    head: PoolHead,
    /// Page of each logical page, from the first page of the pool.
    table: Vec<u64>,
    /// Pages without a logical page; the last one is taken first.
    free: Vec<u64>,
    /// Every page is at home, so that offsets need no translation.
    identity: bool,
}

impl Pages {
    /// Reads the page table.
    pub fn load(medium: &Medium, head: PoolHead) -> Result<Pages, Error> {
        let (table, faults) = Pages::read(medium, &head)?;
        if let Some(&(logical, class)) = faults.first() {
            return Err(class.at(head.table() + 8 * logical));
        }
        let all = head.pages + head.spare;
        let mut used = vec![false; all as usize];
        table.iter().for_each(|&page| used[page as usize] = true);
        let free = (0..all).rev().filter(|&p| !used[p as usize]).collect();
        let identity = table.iter().enumerate().all(|(i, &p)| i as u64 == p);
        Ok(Pages { head, table, free, identity })
    }

    /// The page of each logical page, and what is wrong with which of them; such a one counts as at home.
    pub fn read(medium: &Medium, head: &PoolHead) -> Result<(Vec<u64>, Vec<Fault>), Error> {
        let all = head.pages + head.spare;
        let mut used = vec![false; all as usize];
        let (mut table, mut faults) = (Vec::with_capacity(head.pages as usize), Vec::new());
        // A command may have written here behind the cache of a process that is gone.
        medium.invalidate(head.table(), head.pages * 8);
        medium.fence()?;
        let words = medium.load_vec(head.table(), head.pages * 8);
        for (logical, word) in words.chunks_exact(8).enumerate() {
            let (logical, word) = (logical as u64, u64::from_le_bytes(word.try_into().expect("eight bytes")));
            let page = if word == 0 { Some(logical) } else { seal::open_word(word) };
            match page.filter(|&p| p < all) {
                Some(page) => {
                    if std::mem::replace(&mut used[page as usize], true) {
                        faults.push((logical, Class::TableTwice));
                    }
                    table.push(page);
                }
                None => {
                    faults.push((logical, Class::TableWord));
                    table.push(logical);
                }
            }
        }
        Ok((table, faults))
    }

    /// Whether every logical page is at home.
    pub fn is_identity(&self) -> bool {
        self.identity
    }

    /// Offset of a page.
    pub fn offset(&self, page: u64) -> u64 {
        self.head.heap() + page * PAGE_BYTES
    }

    /// Logical page that holds an offset of the heap.
    pub fn logical(&self, offset: u64) -> u64 {
        (offset - self.head.heap()) / PAGE_BYTES
    }

    /// Page of a logical page.
    pub fn page(&self, logical: u64) -> u64 {
        self.table[logical as usize]
    }

    /// Where an offset of the heap really is, and how many of `length` bytes are there in one piece.
    #[inline]
    pub fn locate(&self, offset: u64, length: u64) -> (u64, u64) {
        if self.identity {
            return (offset, length);
        }
        let inside = (offset - self.head.heap()) % PAGE_BYTES;
        let page = self.page(self.logical(offset));
        (self.offset(page) + inside, length.min(PAGE_BYTES - inside))
    }

    /// The pieces of a range of the heap: each with its place and its part of the range.
    pub fn pieces(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, Range<usize>)> + '_ {
        let mut done = 0;
        std::iter::from_fn(move || {
            (done < length).then(|| {
                let (place, bytes) = self.locate(offset + done, length - done);
                let part = done as usize..(done + bytes) as usize;
                done += bytes;
                (place, part)
            })
        })
    }

    /// Pages that no logical page has.
    pub fn free_count(&self) -> u64 {
        self.free.len() as u64
    }

    /// Takes a free page.
    pub fn take(&mut self) -> Option<u64> {
        self.free.pop()
    }

    /// Gives a page back.
    pub fn give(&mut self, page: u64) {
        self.free.push(page);
    }

    /// Moves a logical page, here in memory only, and returns its former page.
    pub fn set(&mut self, logical: u64, page: u64) -> u64 {
        self.identity &= logical == page;
        std::mem::replace(&mut self.table[logical as usize], page)
    }

    /// Offset in the pool of the table's word for a logical page, and the word.
    pub fn word(&self, logical: u64) -> (u64, u64) {
        (self.head.table() + 8 * logical, seal::seal_word(self.page(logical)))
    }
}
