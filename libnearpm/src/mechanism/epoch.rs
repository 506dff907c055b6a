//! What checkpointing and shadow paging share: pages that an epoch has touched, and the old
//! bytes of the open transaction.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::PAGE_BYTES;

use crate::error::Error;
use crate::interval::IntervalSet;
use crate::memory::Medium;
use crate::page_cache::{Cached, PageCache};

/// What an epoch stores to.
pub(crate) trait Memory {
    fn load(&mut self, place: u64, data: &mut [u8]) -> Result<(), Error>;
    fn store(&mut self, place: u64, data: &[u8]) -> Result<(), Error>;
}

/// Through the processor's cache.
impl Memory for &Medium {
    fn load(&mut self, place: u64, data: &mut [u8]) -> Result<(), Error> {
        Medium::load(self, place, data);
        Ok(())
    }
    fn store(&mut self, place: u64, data: &[u8]) -> Result<(), Error> {
        Medium::store(self, place, data);
        Ok(())
    }
}

/// In volatile copies, until the epoch is cut.
impl Memory for Cached<'_> {
    fn load(&mut self, place: u64, data: &mut [u8]) -> Result<(), Error> {
        Cached::load(self, place, data)
    }
    fn store(&mut self, place: u64, data: &[u8]) -> Result<(), Error> {
        Cached::store(self, place, data)
    }
}

/// An epoch: the transactions that become durable together.
#[derive(Default)]
pub(crate) struct Epoch {
    /// Dirty lines of each touched page, one bit per line, by the page's offset in the pool.
    pages: BTreeMap<u64, u64>,
    /// Transactions that committed in it and wrote something.
    transactions: u64,
    /// Pages that the open transaction was the first to touch. Their old contents are where the mechanism has saved them, so that nobody need load
    /// them from a card only because the transaction could be aborted.
    saved: BTreeSet<u64>,
    /// Places and lengths of the open transaction's writes to other pages, with their old bytes one after the other. Volatile: a
    /// crash takes the whole epoch back.
    before: Vec<(u64, usize)>,
    before_bytes: Vec<u8>,
    /// Places that the open transaction has allocated: nobody wants their old bytes back.
    fresh: IntervalSet,
    /// The open transaction has written.
    wrote: bool,
}

const LINES_PER_PAGE: u64 = PAGE_BYTES / LINE_U64;
const _: () = assert!(LINES_PER_PAGE == 64);

impl Epoch {
    /// Offset of the page that holds an offset of the pool.
    pub fn page_of(place: u64) -> u64 {
        place / PAGE_BYTES * PAGE_BYTES
    }

    /// Whether the page at an offset was touched in this epoch.
    pub fn has(&self, page: u64) -> bool {
        self.pages.contains_key(&page)
    }

    /// Touches a page whose old contents the mechanism has saved; an abort asks for them.
    pub fn touch(&mut self, page: u64) {
        self.pages.insert(page, 0);
        self.saved.insert(page);
    }

    /// No line of a page must be written back.
    pub fn clean(&mut self, page: u64) {
        self.pages.insert(page, 0);
    }

    /// The open transaction has allocated a range.
    pub fn fresh(&mut self, place: u64, bytes: u64) {
        self.fresh.insert(place..place + bytes);
    }

    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Stores inside one touched page, keeping the old bytes until the transaction ends where nobody else has them.
    pub fn store(&mut self, memory: &mut impl Memory, place: u64, data: &[u8]) -> Result<(), Error> {
        let page = Self::page_of(place);
        assert!(self.has(page), "a page is saved before it is stored to");
        self.wrote = true;
        if !self.saved.contains(&page) && !self.fresh.covers(&(place..place + data.len() as u64)) {
            let start = self.before_bytes.len();
            self.before_bytes.resize(start + data.len(), 0);
            memory.load(place, &mut self.before_bytes[start..]).inspect_err(|_| self.before_bytes.truncate(start))?;
            self.before.push((place, data.len()));
        }
        memory.store(place, data)?;
        let first = (place - page) / LINE_U64;
        let last = (place - page + data.len() as u64 - 1) / LINE_U64;
        *self.pages.entry(page).or_default() |= u64::MAX >> (LINES_PER_PAGE - 1 - (last - first)) << first;
        Ok(())
    }

    /// The open transaction commits into the epoch. Returns the transactions in it.
    pub fn commit(&mut self) -> u64 {
        self.transactions += u64::from(self.wrote);
        self.end();
        self.transactions
    }

    /// The open transaction's writes are taken back, newest first, but for those to pages whose old contents the mechanism has: which these are, and
    /// the lines of them that were stored to.
    pub fn abort(&mut self, memory: &mut impl Memory) -> Result<Vec<(u64, u64)>, Error> {
        while let Some((place, length)) = self.before.pop() {
            let start = self.before_bytes.len() - length;
            memory.store(place, &self.before_bytes[start..])?;
            self.before_bytes.truncate(start);
        }
        let saved = self.saved.iter().map(|page| (*page, self.pages[page])).collect();
        self.end();
        Ok(saved)
    }

    fn end(&mut self) {
        self.wrote = false;
        self.saved.clear();
        self.before.clear();
        self.before_bytes.clear();
        self.fresh.clear();
    }

    /// Starts the write-back of every dirty line.
    #[cfg_attr(test, track_caller)]
    pub fn write_back(&self, medium: &Medium) {
        for (&page, &dirty) in &self.pages {
            let mut at = 0;
            while at < LINES_PER_PAGE && dirty >> at != 0 {
                let start = at + u64::from((dirty >> at).trailing_zeros());
                let run = u64::from((dirty >> start).trailing_ones());
                medium.write_back(page + start * LINE_U64, run * LINE_U64);
                at = start + run;
            }
        }
    }

    /// Sends every dirty line from the copies, around the cache.
    pub fn stream(&self, medium: &Medium, cache: &PageCache) {
        for (&page, &dirty) in &self.pages {
            cache.pinned_lines(page, dirty).for_each(|(place, line)| medium.stream(place, line));
        }
    }

    /// What was fresh in a page is so where the page moves.
    pub fn moves(&mut self, from: u64, to: u64) {
        let inside = |r: Range<u64>| r.start.max(from)..r.end.min(from + PAGE_BYTES);
        let moved: Vec<_> = self.fresh.iter().map(inside).filter(|r| r.start < r.end).collect();
        for range in moved {
            self.fresh.insert(range.start - from + to..range.end - from + to);
        }
    }

    /// Begins the next epoch.
    pub fn clear(&mut self) {
        assert!(!self.wrote, "an epoch is cut between transactions");
        self.pages.clear();
        self.transactions = 0;
    }
}
