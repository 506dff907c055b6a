//! Volatile copies of pages that commands write behind the processor's cache.
//!
//! The link is not coherent (C9), so that a line which a command wrote is not loaded from the processor's cache. Where commands write
//! the heap, programs read from these copies instead, and what they store is sent around the cache.
//!
//! Why a copy is right, with nobody waiting for a command:
//! - a line comes here by a load from the card: first a barrier, after which every earlier command and store is in the link;
//!   then the processor's copy is dropped. The card lets the load wait for each command that writes the line (C1);
//! - from then on the copy follows what the program does: whoever posts a command or store that changes the line changes the copy;
//! - so a copy may be dropped at any time, unless it holds what has not been sent yet: such pages are *pinned*.
//!
//! Memory: [`PAGES`] pages, and as many more as are pinned (at most the pages of an epoch). It is ordinary memory of the
//! processor; each access is charged like one to a cached line.

use std::collections::BTreeMap;
use std::ops::Range;

use nearpm_interface::geometry::{LINE, LINE_U64};
use nearpm_interface::media::PAGE_BYTES;

use crate::error::Error;
use crate::executor::Executor;
use crate::memory::{Medium, Work};

/// Pages that are kept: 1 MiB.
pub(crate) const PAGES: usize = 256;

struct Page {
    bytes: Box<[u8; PAGE_BYTES as usize]>,
    /// Lines that are here, one bit each.
    valid: u64,
    /// Where the other lines are: the page itself, or the one that is being copied to it.
    source: u64,
    pinned: bool,
    used: u64,
}

/// Copies, by the offset of their page in the pool.
#[derive(Default)]
pub(crate) struct PageCache {
    pages: BTreeMap<u64, Page>,
    clock: u64,
}

fn page_of(place: u64) -> u64 {
    place / PAGE_BYTES * PAGE_BYTES
}

/// The parts of a range by page: the page, where it starts in it, the part of the range.
fn by_page(place: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        (done < bytes).then(|| {
            let at = place + done as u64;
            let inside = (at - page_of(at)) as usize;
            let part = done..bytes.min(done + PAGE_BYTES as usize - inside);
            done = part.end;
            (page_of(at), inside, part)
        })
    })
}

fn lines(inside: usize, bytes: usize) -> Range<usize> {
    inside / LINE..(inside + bytes).div_ceil(LINE)
}

impl PageCache {
    /// The copy of a page, made if need be in the place of the least recently used one.
    fn page(&mut self, page: u64) -> &mut Page {
        self.clock += 1;
        if !self.pages.contains_key(&page) && self.pages.len() >= PAGES {
            let oldest = self.pages.iter().filter(|(_, p)| !p.pinned).min_by_key(|(_, p)| p.used);
            if let Some((&oldest, _)) = oldest {
                self.pages.remove(&oldest);
            }
        }
        let used = self.clock;
        let copy = self.pages.entry(page).or_insert_with(|| Page {
            bytes: Box::new([0; PAGE_BYTES as usize]),
            valid: 0,
            source: page,
            pinned: false,
            used,
        });
        copy.used = used;
        copy
    }

    /// The bytes of whole lines of a pinned page, in runs: where they belong, and their contents.
    pub fn pinned_lines(&self, page: u64, mask: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let copy = &self.pages[&page];
        assert!(copy.pinned && copy.valid & mask == mask, "what was stored is here");
        let line = move |n: usize| (page + n as u64 * LINE_U64, &copy.bytes[n * LINE..(n + 1) * LINE]);
        (0..u64::BITS as usize).filter(move |n| mask >> n & 1 == 1).map(line)
    }

    /// A page is about to be copied to another one, which takes its place for the program. It is pinned.
    pub fn moves(&mut self, from: u64, to: u64) {
        let copy = self.pages.remove(&from).filter(|copy| copy.source == from);
        self.pages.remove(&to);
        if let Some(copy) = copy {
            self.pages.insert(to, copy);
        }
        let copy = self.page(to);
        copy.source = from;
        copy.pinned = true;
    }

    /// Everything was sent: pages are loaded from where they are.
    pub fn unpin(&mut self) {
        for (&page, copy) in &mut self.pages {
            copy.source = page;
            copy.pinned = false;
        }
    }

    /// Puts new bytes into the copies: whole lines, and parts of lines that are here. Other lines will be loaded.
    pub fn update(&mut self, medium: &Medium, place: u64, data: &[u8]) {
        for (page, inside, part) in by_page(place, data.len()) {
            let copy = self.page(page);
            for line in lines(inside, part.len()) {
                let start = inside.max(line * LINE);
                let end = (inside + part.len()).min((line + 1) * LINE);
                if end - start == LINE || copy.valid >> line & 1 == 1 {
                    copy.valid |= 1 << line;
                    copy.bytes[start..end].copy_from_slice(&data[part.start + start - inside..][..end - start]);
                    medium.charge(Work::CachedLines(1));
                }
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        assert!(self.pages.values().all(|p| !p.pinned), "nothing is forgotten that was not sent");
        self.pages.clear();
    }
}

/// Copies with what is behind them.
pub(crate) struct Cached<'a> {
    pub cache: &'a mut PageCache,
    pub medium: &'a Medium,
    pub executor: &'a mut dyn Executor,
}

impl Cached<'_> {
    /// Makes lines of a page be here.
    fn fill(&mut self, page: u64, wanted: Range<usize>) -> Result<(), Error> {
        let copy = self.cache.page(page);
        let mut at = wanted.start;
        while at < wanted.end {
            let missing = !copy.valid >> at;
            let start = at + missing.trailing_zeros() as usize;
            if start >= wanted.end {
                break;
            }
            let end = wanted.end.min(start + (missing >> (start - at)).trailing_ones() as usize);
            let bytes = &mut copy.bytes[start * LINE..end * LINE];
            let source = copy.source + (start * LINE) as u64;
            // In this order: a line that was dropped before the commands are in the link may come back before them.
            self.executor.barrier(self.medium)?;
            self.medium.invalidate(source, bytes.len() as u64);
            self.medium.fence()?;
            self.medium.load_checked(source, bytes)?;
            copy.valid |= (u64::MAX >> (u64::BITS as usize - (end - start))) << start;
            at = end;
        }
        Ok(())
    }

    /// Loads.
    pub fn load(&mut self, place: u64, data: &mut [u8]) -> Result<(), Error> {
        for (page, inside, part) in by_page(place, data.len()) {
            let wanted = lines(inside, part.len());
            self.medium.charge(Work::CachedLines(wanted.len() as u64));
            self.fill(page, wanted)?;
            let bytes = part.len();
            data[part].copy_from_slice(&self.cache.page(page).bytes[inside..inside + bytes]);
        }
        Ok(())
    }

    /// Stores in the copies alone, whole lines of which are here afterwards.
    pub fn store(&mut self, place: u64, data: &[u8]) -> Result<(), Error> {
        for (page, inside, part) in by_page(place, data.len()) {
            // A line that is only written in part needs its other bytes.
            let end = inside + part.len();
            if !inside.is_multiple_of(LINE) {
                self.fill(page, lines(inside, 1))?;
            }
            if !end.is_multiple_of(LINE) {
                self.fill(page, lines(end - 1, 1))?;
            }
        }
        self.cache.update(self.medium, place, data);
        Ok(())
    }

    /// Stores whole lines in memory, around the cache, and in the copies.
    pub fn stream(&mut self, place: u64, data: &[u8]) -> Result<(), Error> {
        self.executor.stores(self.medium, place..place + data.len() as u64)?;
        self.medium.stream(place, data);
        self.cache.update(self.medium, place, data);
        Ok(())
    }
}
