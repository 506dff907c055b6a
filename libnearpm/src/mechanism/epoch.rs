//! What checkpointing and shadow paging share: pages that an epoch has touched, and the old
//! bytes of the open transaction.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::PAGE_BYTES;

use super::Context;
use super::batch::Part;
use crate::blocks::{Blocks, Position};
use crate::error::Error;
use crate::interval::IntervalSet;
use crate::memory::{Medium, View};
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

/// A page that an epoch has touched.
#[derive(Clone, Copy)]
struct Touched {
    /// Its offset in the pool.
    page: u64,
    /// As many were touched before.
    number: usize,
    /// Dirty lines, one bit each.
    dirty: u64,
}

/// Lines of a page that an abort leaves to the mechanism: they are to be as they were saved.
pub(crate) struct Saved {
    pub page: u64,
    /// As many pages were touched before it in the epoch.
    pub number: usize,
    /// One bit each.
    pub lines: u64,
}

/// An epoch: the transactions that become durable together.
#[derive(Default)]
pub(crate) struct Epoch {
    /// By their offsets.
    pages: Blocks<Touched>,
    /// How many there are.
    count: usize,
    /// Where the page was that was looked for or stored to last: mostly it is the next one, too.
    last: Position,
    /// Transactions that committed in it and wrote something.
    transactions: u64,
    /// Pages that the open transaction has stored to, each with its lines that were dirty before.
    /// The old bytes of the others are where the mechanism has saved the page, so that nobody need
    /// load them from a card only because the transaction could be aborted.
    open: Blocks<(u64, u64)>,
    /// Places and lengths of the open transaction's writes to lines that were dirty before, with
    /// their old bytes one after the other. Volatile: a crash takes the whole epoch back.
    before: Vec<(u64, usize)>,
    before_bytes: Vec<u8>,
    /// Places that the open transaction has allocated: nobody wants their old bytes back.
    fresh: IntervalSet,
    /// The open transaction has written.
    wrote: bool,
}

/// Of every page that a transaction has to do with.
const SAVED: &str = "a page is saved before it is stored to";

const LINES_PER_PAGE: u64 = PAGE_BYTES / LINE_U64;
const _: () = assert!(LINES_PER_PAGE == 64);

/// The lines of a page that hold bytes of a range inside of it, one bit each.
#[inline]
fn lines_of(range: &Range<u64>) -> u64 {
    let (first, last) = (range.start % PAGE_BYTES / LINE_U64, (range.end - 1) % PAGE_BYTES / LINE_U64);
    u64::MAX >> (LINES_PER_PAGE - 1 - (last - first)) << first
}

/// Runs of lines of a page, one bit each, as ranges of bytes of the page.
pub(crate) fn runs(lines: u64) -> impl Iterator<Item = Range<u64>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        (at < LINES_PER_PAGE && lines >> at != 0).then(|| {
            let start = at + u64::from((lines >> at).trailing_zeros());
            at = start + u64::from((lines >> start).trailing_ones());
            start * LINE_U64..at * LINE_U64
        })
    })
}

impl Epoch {
    /// Offset of the page that holds an offset of the pool.
    pub fn page_of(place: u64) -> u64 {
        place / PAGE_BYTES * PAGE_BYTES
    }

    /// Where a page is, or would be.
    #[inline]
    fn position(&self, page: u64) -> Position {
        self.pages.seek(|touched| touched.page < page)
    }

    /// A page that was touched, and where it is.
    #[inline]
    fn touched(&self, page: u64) -> Option<(Position, Touched)> {
        let at = |position| {
            let touched = self.pages.get(position).filter(|touched| touched.page == page);
            touched.map(|&touched| (position, touched))
        };
        at(self.last).or_else(|| at(self.position(page)))
    }

    /// Whether the page at an offset was touched in this epoch. It is the next to be stored to.
    #[inline]
    pub fn has(&mut self, page: u64) -> bool {
        let touched = self.touched(page);
        self.last = touched.map_or(self.last, |(position, _)| position);
        touched.is_some()
    }

    /// Touches a page for the first time. The mechanism has saved it: an abort asks for it.
    pub fn touch(&mut self, page: u64) {
        let position = self.position(page);
        self.pages.put(position, Touched { page, number: self.count, dirty: 0 });
        self.count += 1;
    }

    /// Lines of a touched page need not be written back.
    pub fn clean(&mut self, page: u64, lines: u64) {
        let (position, touched) = self.touched(page).expect(SAVED);
        self.pages.set(position, Touched { dirty: touched.dirty & !lines, ..touched });
    }

    /// The open transaction has allocated a range.
    pub fn fresh(&mut self, place: u64, bytes: u64) {
        self.fresh.insert(place..place + bytes);
    }

    /// Whether nothing was touched.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Stores inside one touched page, keeping the old bytes until the transaction ends where
    /// nobody else has them.
    pub fn store(&mut self, memory: &mut impl Memory, place: u64, data: &[u8]) -> Result<(), Error> {
        let (page, stored) = (Self::page_of(place), place..place + data.len() as u64);
        let dirty = self.mark(&stored);
        let at = self.open.seek(|&(other, _)| other < page);
        let dirty_before = match self.open.get(at) {
            Some(&(other, dirty_before)) if other == page => dirty_before,
            _ => {
                self.open.put(at, (page, dirty));
                dirty
            }
        };
        let overwritten = lines_of(&stored) & dirty_before;
        if overwritten != 0 && !self.fresh.covers(&stored) {
            for run in runs(overwritten) {
                self.keep(memory, stored.start.max(page + run.start)..stored.end.min(page + run.end))?;
            }
        }
        memory.store(place, data)
    }

    /// Stores inside one touched page what no abort takes back.
    pub fn store_for_good(&mut self, memory: &mut impl Memory, place: u64, data: &[u8]) -> Result<(), Error> {
        self.mark(&(place..place + data.len() as u64));
        memory.store(place, data)
    }

    /// The open transaction stores inside one touched page. Gives the lines of it that were dirty.
    #[inline(always)]
    fn mark(&mut self, stored: &Range<u64>) -> u64 {
        let (position, touched) = self.touched(Self::page_of(stored.start)).expect(SAVED);
        self.pages.set(position, Touched { dirty: touched.dirty | lines_of(stored), ..touched });
        (self.last, self.wrote) = (position, true);
        touched.dirty
    }

    /// Keeps bytes that the open transaction is about to store over.
    fn keep(&mut self, memory: &mut impl Memory, range: Range<u64>) -> Result<(), Error> {
        let (start, length) = (self.before_bytes.len(), (range.end - range.start) as usize);
        self.before_bytes.resize(start + length, 0);
        memory.load(range.start, &mut self.before_bytes[start..]).inspect_err(|_| self.before_bytes.truncate(start))?;
        self.before.push((range.start, length));
        Ok(())
    }

    /// The open transaction commits into the epoch. Returns the transactions in it.
    pub fn commit(&mut self) -> u64 {
        self.transactions += u64::from(self.wrote);
        self.end();
        self.transactions
    }

    /// The open transaction's writes are taken back, newest first, but for those to lines that were
    /// not dirty before: these are returned, by page, for the mechanism to put back what it has
    /// saved.
    pub fn abort(&mut self, memory: &mut impl Memory) -> Result<Vec<Saved>, Error> {
        while let Some((place, length)) = self.before.pop() {
            let start = self.before_bytes.len() - length;
            memory.store(place, &self.before_bytes[start..])?;
            self.before_bytes.truncate(start);
        }
        let saved = |(page, dirty_before): (u64, u64)| {
            let (_, Touched { number, dirty, .. }) = self.touched(page).expect(SAVED);
            Saved { page, number, lines: dirty & !dirty_before }
        };
        let saved = self.open.from((0, 0)).map(saved).filter(|saved| saved.lines != 0).collect();
        self.end();
        Ok(saved)
    }

    fn end(&mut self) {
        self.wrote = false;
        self.open.clear();
        self.before.clear();
        self.before_bytes.clear();
        self.fresh.clear();
    }

    /// Starts the write-back of every dirty line.
    #[cfg_attr(test, track_caller)]
    pub fn write_back(&self, medium: &Medium) {
        for Touched { page, dirty, .. } in self.pages.from((0, 0)) {
            for run in runs(dirty) {
                medium.write_back(page + run.start, run.end - run.start);
            }
        }
    }

    /// Sends every dirty line from the copies, around the cache.
    pub fn stream(&self, medium: &Medium, cache: &PageCache) {
        for Touched { page, dirty, .. } in self.pages.from((0, 0)) {
            let bytes = cache.pinned(page, dirty);
            for run in runs(dirty) {
                medium.stream(page + run.start, &bytes[run.start as usize..run.end as usize]);
            }
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
        (self.count, self.transactions) = (0, 0);
    }
}

/// Hands on the new bytes of a part of a batch by page, each with its place, in the memory of
/// `buffer`.
///
/// # Errors
/// Those of `store`.
pub(crate) fn by_page(
    cx: &mut Context,
    (part, view): (&Part, &View),
    buffer: &mut Vec<u8>,
    mut store: impl FnMut(&mut Context, u64, &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut at = part.range.start;
    while at < part.range.end {
        let in_page = (PAGE_BYTES - at % PAGE_BYTES).min(part.range.end - at);
        let (place, bytes) = cx.pages.locate(at, in_page);
        buffer.clear();
        part.append(view, &(at..at + bytes), buffer);
        store(cx, place, buffer)?;
        at += bytes;
    }
    Ok(())
}
