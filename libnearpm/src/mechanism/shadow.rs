//! Shadow paging: a page is copied aside at its first store in an epoch, and all pages switch at
//! once when it is cut.
//!
//! Invariant: no page that the durable page table names is stored to.

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::PAGE_BYTES;

use super::epoch::{Epoch, Saved, by_page, runs};
use super::redo_log::RedoLog;
use super::{Acknowledged, Batch, Context, Protocol};
use crate::blocks::Blocks;
use crate::error::Error;
use crate::memory::View;
use crate::options::Durability;
use crate::page_cache::{Cached, PageCache};
use crate::pages::HOME_AT_A_TIME;
use crate::statistics::count;

/// Most log bytes that the switch of one page needs: an entry of one word.
const SWITCH_BYTES: u64 = 2 * LINE_U64;

/// State of shadow paging.
pub(crate) struct Shadow {
    epoch: Epoch,
    /// Logical pages that moved in this epoch, rising, with the pages that the durable table names.
    moved: Blocks<(u64, u64)>,
    log: RedoLog,
    epoch_ops: u64,
    /// Pages as the program sees them, where the card copies them.
    cache: PageCache,
    /// Places that the pages of the epoch were copied from, in the order of the copies.
    saved: Vec<u64>,
    /// Logical pages that are about to move, and bytes of a view on their way; kept for their
    /// memory.
    pages: Vec<u64>,
    bytes: Vec<u8>,
}

impl Shadow {
    pub fn new(epoch_ops: u64) -> Shadow {
        let (epoch, moved, log, cache, saved, pages, bytes) = Default::default();
        Shadow { epoch, moved, log, epoch_ops, cache, saved, pages, bytes }
    }

    /// Pages of a range are about to be stored to.
    fn need(&mut self, cx: &Context, offset: u64, bytes: u64) {
        for logical in cx.pages.logical(offset)..cx.pages.logical(offset + bytes - 1) + 1 {
            if self.pages.last() != Some(&logical) && !self.has_moved(cx, logical) {
                self.pages.push(logical);
            }
        }
    }

    /// Whether a page has moved in this epoch: then it is where nothing but the epoch stores.
    fn has_moved(&mut self, cx: &Context, logical: u64) -> bool {
        self.epoch.has(cx.pages.offset(cx.pages.page(logical)))
    }

    /// Refuses to move the pages that are about to be stored to where there is no room for them.
    ///
    /// # Errors
    /// [`Error::TooLarge`]: there are too few spare pages, or the log ring is too short.
    fn check_room(&self, cx: &Context) -> Result<(), Error> {
        cx.pages.check_room(&self.pages)?;
        let needed = self.log_bytes(self.pages.len() as u64);
        if needed > cx.lane.capacity() {
            return Err(Error::TooLarge {
                what: "the log ring",
                needed,
                available: cx.lane.capacity(),
                remedy: "Options::ring_bytes",
            });
        }
        Ok(())
    }

    /// Moves the pages that are about to be stored to, for which there is room.
    fn move_pages(&mut self, cx: &mut Context) -> Result<(), Error> {
        let mut pages = std::mem::take(&mut self.pages);
        let moved = pages.iter().try_for_each(|&logical| {
            let page = cx.pages.take(logical).expect("the free pages were counted");
            self.shadow(cx, logical, page)
        });
        pages.clear();
        self.pages = pages;
        moved
    }

    /// Moves a logical page to a page of this epoch, which was taken for it.
    fn shadow(&mut self, cx: &mut Context, logical: u64, page: u64) -> Result<(), Error> {
        let (from, to) = (cx.pages.offset(cx.pages.page(logical)), cx.pages.offset(page));
        // Every line was written back when the last epoch was cut, and the page not stored to
        // since.
        let copied = cx.lane.executor.begin_shadow_copy(&cx.medium, from, to);
        if copied.is_err() {
            cx.pages.give(page);
        }
        copied?;
        count(&cx.medium.counters.shadow_pages, 1);
        let old = cx.pages.set(logical, page);
        let position = self.moved.seek(|&(other, _)| other < logical);
        self.moved.put(position, (logical, old));
        self.epoch.moves(from, to);
        self.epoch.touch(to);
        self.saved.push(from);
        if cx.lane.executor.writes_around_the_cache() {
            self.cache.moves(from, to);
        }
        Ok(())
    }

    /// The copies of pages, with what is behind them.
    fn cached<'a>(cache: &'a mut PageCache, cx: &'a mut Context) -> Cached<'a> {
        Cached { cache, medium: &cx.medium, executor: &mut *cx.lane.executor }
    }

    #[inline]
    fn store(&mut self, cx: &mut Context, place: u64, data: &[u8]) -> Result<(), Error> {
        if cx.lane.executor.writes_around_the_cache() {
            self.epoch.store(&mut Self::cached(&mut self.cache, cx), place, data)
        } else {
            self.epoch.store(&mut &*cx.medium, place, data)
        }
    }

    /// Stores what no abort takes back.
    fn store_for_good(&mut self, cx: &mut Context, place: u64, data: &[u8]) -> Result<(), Error> {
        if cx.lane.executor.writes_around_the_cache() {
            self.epoch.store_for_good(&mut Self::cached(&mut self.cache, cx), place, data)
        } else {
            self.epoch.store_for_good(&mut &*cx.medium, place, data)
        }
    }

    /// Ends the epoch: all its pages switch at once, and survive a power cut from now on, or, if it
    /// is posted alone, when it was waited for. What the pages were copied from is free: whoever
    /// stores there comes behind the switch.
    fn cut(&mut self, cx: &mut Context, durability: Durability) -> Result<(), Error> {
        if self.moved.is_empty() {
            return Ok(());
        }
        if cx.lane.executor.writes_around_the_cache() {
            // The copies of the pages go first: they write the same lines.
            cx.lane.executor.barrier(&cx.medium)?;
            self.epoch.stream(&cx.medium, &self.cache);
        } else {
            self.epoch.write_back(&cx.medium);
        }
        // The fence of the log's entries covers these lines too.
        let mut values = self.log.no_values();
        for (logical, _) in self.moved.from((0, 0)) {
            let (offset, word) = cx.pages.word(logical);
            values.push(offset, &word.to_le_bytes());
        }
        self.log.prepare(cx, values)?;
        cx.lane.executor.barrier(&cx.medium)?;
        self.log.publish(cx, true, durability)?;
        self.cache.unpin();
        count(&cx.medium.counters.epochs, 1);
        self.moved.from((0, 0)).for_each(|(_, old)| cx.pages.give(old));
        self.moved.clear();
        self.epoch.clear();
        self.saved.clear();
        Ok(())
    }

    /// Log bytes that the cut will need if `more` pages move.
    fn log_bytes(&self, more: u64) -> u64 {
        (self.moved.len() as u64 + more) * SWITCH_BYTES
    }
}

impl Protocol for Shadow {
    fn read(&mut self, cx: &mut Context, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < data.len() {
            let (place, bytes) = cx.pages.locate(offset + done as u64, (data.len() - done) as u64);
            let data = &mut data[done..done + bytes as usize];
            done += bytes as usize;
            if cx.lane.executor.writes_around_the_cache() {
                Self::cached(&mut self.cache, cx).load(place, data)?;
            } else {
                cx.medium.load_checked(place, data)?;
            }
        }
        Ok(())
    }

    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        let length = data.len() as u64;
        let (place, _) = cx.pages.locate(offset, length);
        if offset % PAGE_BYTES + length <= PAGE_BYTES && self.epoch.has(Epoch::page_of(place)) {
            return self.store(cx, place, data);
        }
        self.need(cx, offset, length);
        if !self.pages.is_empty() {
            let room = self.check_room(cx);
            room.inspect_err(|_| self.pages.clear())?;
            self.move_pages(cx)?;
        }
        let mut at = 0;
        while at < data.len() {
            let here = offset + at as u64;
            let in_page = (PAGE_BYTES - here % PAGE_BYTES).min((data.len() - at) as u64);
            let (place, bytes) = cx.pages.locate(here, in_page);
            self.store(cx, place, &data[at..at + bytes as usize])?;
            at += bytes as usize;
        }
        Ok(())
    }

    fn fresh(&mut self, cx: &mut Context, offset: u64, bytes: u64) {
        for (place, part) in cx.pages.pieces(offset, bytes) {
            self.epoch.fresh(place, part.len() as u64);
        }
    }

    fn prepare(&mut self, _cx: &mut Context) -> Result<(), Error> {
        Ok(())
    }

    /// There is room for all pages before the first of them moves; each is stored to when it has
    /// moved, while the next is being copied. Words of the tables come last: they are read.
    fn bring(&mut self, cx: &mut Context, batch: &mut Batch, view: &View) -> Result<(), Error> {
        batch.reserve(&mut self.bytes)?;
        for part in batch.parts() {
            self.need(cx, part.range.start, part.range.end - part.range.start);
        }
        let room = self.check_room(cx);
        self.pages.clear();
        room?;
        let mut bytes = std::mem::take(&mut self.bytes);
        for words in [false, true] {
            if words {
                batch.read_words(cx, |cx, offset, word| self.read(cx, offset, word))?;
            }
            for part in batch.parts().iter().filter(|part| part.is_word() == words) {
                self.need(cx, part.range.start, part.range.end - part.range.start);
                self.move_pages(cx)?;
                by_page(cx, (part, view), &mut bytes, |cx, place, data| self.store_for_good(cx, place, data))?;
            }
        }
        self.bytes = bytes;
        Ok(())
    }

    /// Cuts the epoch when it has its number of transactions, or when less than half of the spare
    /// pages or of the ring is left: every transaction finds those halves free.
    fn commit(&mut self, cx: &mut Context, _durability: Durability) -> Result<Acknowledged, Error> {
        let transactions = self.epoch.commit();
        let full = cx.pages.half_taken() || self.log_bytes(0) * 2 > cx.lane.capacity();
        if !self.moved.is_empty() && (full || (self.epoch_ops > 0 && transactions >= self.epoch_ops)) {
            self.cut(cx, Durability::Durable)?;
        }
        Ok(if self.epoch.is_empty() { Acknowledged::All } else { Acknowledged::Nothing })
    }

    /// Lines that the transaction was the first to store to are what they are in the page that
    /// theirs was copied from, to which nobody stores.
    fn abort(&mut self, cx: &mut Context) -> Result<(), Error> {
        if cx.lane.executor.writes_around_the_cache() {
            for Saved { page, lines, .. } in self.epoch.abort(&mut Self::cached(&mut self.cache, cx))? {
                // Nothing of them was sent: the card's copy has them as they were.
                self.cache.forget(page, lines);
                self.epoch.clean(page, lines);
            }
        } else {
            for Saved { page, number, lines } in self.epoch.abort(&mut &*cx.medium)? {
                for run in runs(lines) {
                    let old = cx.medium.load_vec(self.saved[number] + run.start, run.end - run.start);
                    cx.medium.store(page + run.start, &old);
                }
            }
        }
        Ok(())
    }

    fn post(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.cut(cx, Durability::Asynchronous)
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.cut(cx, Durability::Durable)?;
        // Epochs that were posted.
        cx.lane.executor.persist(&cx.medium)
    }

    /// Page by page to where it belongs, so many at a time as an epoch has room for, each epoch at
    /// once or not at all.
    fn bring_home(&mut self, cx: &mut Context) -> Result<(), Error> {
        let at_a_time = (cx.lane.capacity() / SWITCH_BYTES).clamp(1, HOME_AT_A_TIME as u64) as usize;
        loop {
            let moves = cx.pages.take_towards_home(at_a_time);
            if moves.is_empty() {
                break;
            }
            for (logical, page) in moves {
                self.shadow(cx, logical, page)?;
            }
            self.cut(cx, Durability::Durable)?;
        }
        self.log.settle(cx)?;
        // Who uses the memory now changes what the copies are of.
        self.cache.clear();
        Ok(())
    }

    fn finish(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.persist(cx)?;
        self.log.settle(cx)
    }
}
