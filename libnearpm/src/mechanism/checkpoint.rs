//! Checkpointing: a page is copied to the log before its first store in an epoch.
//!
//! Invariant: no page is stored to in an epoch unless its checkpoint is durable before the store.

use nearpm_interface::media::{EntryKind, PAGE_BYTES, entry_bytes};

use super::epoch::{Epoch, Saved, by_page, runs};
use super::{Acknowledged, Batch, Context, Protocol};
use crate::error::Error;
use crate::executor::{Entry, Word};
use crate::lane::Mark;
use crate::memory::View;
use crate::options::Durability;
use crate::statistics::count;

/// State of checkpointing.
pub(crate) struct Checkpoint {
    epoch: Epoch,
    /// Identifier of the epoch, once it has saved a page.
    txid: Option<u64>,
    /// Entries of the pages that the epoch has touched, in that order.
    saved: Vec<Entry>,
    /// Pages that are about to be stored to for the first time, and bytes of a view on their way;
    /// kept for their memory.
    pages: Vec<u64>,
    bytes: Vec<u8>,
    /// Slots of epochs that were posted and are not acknowledged: those below.
    unreleased: Option<Mark>,
    epoch_ops: u64,
}

impl Checkpoint {
    pub fn new(epoch_ops: u64) -> Checkpoint {
        let (epoch, txid, saved, pages, bytes, unreleased) = Default::default();
        Checkpoint { epoch, txid, saved, pages, bytes, unreleased, epoch_ops }
    }

    /// Pages of a place are about to be stored to.
    fn need(&mut self, place: u64, bytes: u64) {
        let mut page = Epoch::page_of(place);
        while page < place + bytes {
            if self.pages.last() != Some(&page) && !self.epoch.has(page) {
                self.pages.push(page);
            }
            page += PAGE_BYTES;
        }
    }

    /// Saves the pages that are about to be stored to, all of them or none.
    #[inline]
    fn save(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.pages.is_empty() {
            return Ok(());
        }
        let mut pages = std::mem::take(&mut self.pages);
        let saved = self.save_pages(cx, &mut pages);
        pages.clear();
        self.pages = pages;
        saved
    }

    #[inline(never)]
    fn save_pages(&mut self, cx: &mut Context, pages: &mut Vec<u64>) -> Result<(), Error> {
        // Ranges of a batch may share pages that have moved.
        pages.sort_unstable();
        pages.dedup();
        let before = self.saved.len();
        let ranges = || pages.iter().map(|&page| (page, PAGE_BYTES));
        match cx.lane.reserve(&cx.medium, ranges(), &mut self.saved) {
            Err(Error::TooLarge { .. }) if self.unreleased.is_some() => {
                self.persist_posted(cx)?;
                cx.lane.reserve(&cx.medium, ranges(), &mut self.saved)?;
            }
            other => other?,
        }
        let txid = match self.txid {
            Some(txid) => txid,
            None => *self.txid.insert(cx.lane.next_txid()),
        };
        let entries = &self.saved[before..];
        assert_eq!(pages.len(), entries.len(), "a page has one entry");
        // Every line was written back when the last epoch was cut, and the page not stored to
        // since.
        let logged = cx.lane.log(&cx.medium, EntryKind::Checkpoint, txid, entries, false);
        logged.inspect_err(|_| self.saved.truncate(before))?;
        pages.iter().for_each(|&page| self.epoch.touch(page));
        Ok(())
    }

    /// Ends the epoch: everything in it survives a power cut from now on, or, if it is posted
    /// alone, when it was waited for.
    fn cut(&mut self, cx: &mut Context, durability: Durability) -> Result<(), Error> {
        let Some(txid) = self.txid else { return Ok(()) };
        self.epoch.write_back(&cx.medium);
        cx.medium.fence()?;
        let word = Word::alone(cx.lane.epoch_word(), txid);
        cx.lane.executor.commit(&cx.medium, word, durability)?;
        count(&cx.medium.counters.epochs, 1);
        self.txid = None;
        self.epoch.clear();
        self.saved.clear();
        self.unreleased = Some(cx.lane.mark());
        if durability == Durability::Durable {
            self.release(cx);
        }
        Ok(())
    }

    /// Gives the slots of epochs back that are durable.
    fn release(&mut self, cx: &mut Context) {
        if let Some(mark) = self.unreleased.take() {
            cx.lane.release(mark);
        }
    }

    /// Makes epochs durable that were posted.
    fn persist_posted(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.unreleased.is_some() {
            cx.lane.executor.persist(&cx.medium)?;
            self.release(cx);
        }
        Ok(())
    }
}

impl Protocol for Checkpoint {
    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            self.need(place, part.len() as u64);
        }
        self.save(cx)?;
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            let mut at = part.start;
            while at < part.end {
                let here = place + (at - part.start) as u64;
                let bytes = ((PAGE_BYTES - here % PAGE_BYTES) as usize).min(part.end - at);
                self.epoch.store(&mut &*cx.medium, here, &data[at..at + bytes])?;
                at += bytes;
            }
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

    /// All pages are saved before the first of them is stored to.
    fn bring(&mut self, cx: &mut Context, batch: &mut Batch, view: &View) -> Result<(), Error> {
        batch.reserve(&mut self.bytes)?;
        let by_card = cx.lane.executor.writes_around_the_cache();
        for part in batch.parts() {
            for (place, offsets) in part.places(&cx.pages) {
                let bytes = offsets.end - offsets.start;
                if by_card {
                    // A store to a part of a line waits for the rest of it, and a load for the
                    // copies of pages that were posted before.
                    cx.medium.prefetch_parts(&(place..place + bytes));
                }
                self.need(place, bytes);
            }
        }
        self.save(cx)?;
        batch.read_words(cx, |cx, offset, word| self.read(cx, offset, word))?;
        let Checkpoint { epoch, bytes, .. } = self;
        batch.parts().iter().try_for_each(|part| {
            by_page(cx, (part, view), bytes, |cx, place, data| epoch.store_for_good(&mut &*cx.medium, place, data))
        })
    }

    /// Cuts the epoch when it has its number of transactions, or when less than half of the ring is
    /// left: every transaction finds that half free.
    fn commit(&mut self, cx: &mut Context, _durability: Durability) -> Result<Acknowledged, Error> {
        let transactions = self.epoch.commit();
        let full = cx.lane.used() + entry_bytes(0, PAGE_BYTES as u32) > cx.lane.capacity() / 2;
        if self.txid.is_some() && (full || (self.epoch_ops > 0 && transactions >= self.epoch_ops)) {
            self.cut(cx, Durability::Durable)?;
        }
        Ok(if self.txid.is_none() { Acknowledged::All } else { Acknowledged::Nothing })
    }

    /// Lines that the transaction was the first to store to are put back from the log.
    fn abort(&mut self, cx: &mut Context) -> Result<(), Error> {
        let pages = self.epoch.abort(&mut &*cx.medium)?;
        if pages.is_empty() {
            return Ok(());
        }
        // An entry that was never made must not be put back: its slot holds something else.
        cx.lane.executor.verify(true)?;
        for Saved { page, number, lines } in pages {
            for run in runs(lines) {
                let old = cx.lane.logged(&cx.medium, &self.saved[number], run.clone())?;
                cx.medium.store(page + run.start, &old);
            }
        }
        Ok(())
    }

    fn post(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.cut(cx, Durability::Asynchronous)
    }

    fn acknowledged(&mut self, cx: &mut Context) {
        self.release(cx);
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.cut(cx, Durability::Durable)?;
        self.persist_posted(cx)
    }
}
