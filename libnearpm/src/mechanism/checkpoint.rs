//! Checkpointing: a page is copied to the log before its first store in an epoch.
//!
//! Invariant: no page is stored to in an epoch unless its checkpoint is durable before the store.

use std::collections::BTreeMap;

use nearpm_interface::media::{EntryKind, PAGE_BYTES, entry_bytes};

use super::epoch::{Epoch, runs};
use super::{Acknowledged, Context, Protocol};
use crate::error::Error;
use crate::executor::{Entry, Word};
use crate::lane::Mark;
use crate::options::Durability;
use crate::statistics::count;

/// State of checkpointing.
pub(crate) struct Checkpoint {
    epoch: Epoch,
    /// Identifier of the epoch, once it has saved a page.
    txid: Option<u64>,
    /// Entries of the pages that the epoch has touched.
    saved: BTreeMap<u64, Entry>,
    /// Slots of epochs that were posted and are not acknowledged: those below.
    unreleased: Option<Mark>,
    epoch_ops: u64,
}

impl Checkpoint {
    pub fn new(epoch_ops: u64) -> Checkpoint {
        Checkpoint { epoch: Epoch::default(), txid: None, saved: BTreeMap::new(), unreleased: None, epoch_ops }
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
        let mut pages = Vec::new();
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            let last = Epoch::page_of(place + part.len() as u64 - 1);
            let touched = (Epoch::page_of(place)..=last).step_by(PAGE_BYTES as usize);
            pages.extend(touched.filter(|&p| !self.epoch.has(p)));
        }
        if !pages.is_empty() {
            let mut entries = Vec::new();
            let ranges = || pages.iter().map(|&p| (p, PAGE_BYTES));
            match cx.lane.reserve(&cx.medium, ranges(), &mut entries) {
                Err(Error::TooLarge { .. }) if self.unreleased.is_some() => {
                    self.persist_posted(cx)?;
                    cx.lane.reserve(&cx.medium, ranges(), &mut entries)?;
                }
                other => other?,
            }
            let txid = match self.txid {
                Some(txid) => txid,
                None => *self.txid.insert(cx.lane.next_txid()),
            };
            // Every line was written back when the last epoch was cut, and the page not stored to
            // since.
            cx.lane.log(&cx.medium, EntryKind::Checkpoint, txid, &entries, false)?;
            assert_eq!(pages.len(), entries.len(), "a page has one entry");
            for (page, entry) in pages.into_iter().zip(entries) {
                self.epoch.touch(page);
                self.saved.insert(page, entry);
            }
        }
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
        for (page, lines) in pages {
            for run in runs(lines) {
                let old = cx.lane.logged(&cx.medium, &self.saved[&page], run.clone())?;
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
