//! Undo logging: old values to the log, new values in place.
//!
//! Invariant: no byte is stored to unless an entry of the open transaction covers it whose durability comes before
//! the store's, or the transaction allocated it.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::EntryKind;

use super::{Acknowledged, Context, Protocol};
use crate::error::Error;
use crate::executor::Word;
use crate::interval::IntervalSet;
use crate::lane::Entry;
use crate::options::Durability;

/// State of undo logging.
#[derive(Default)]
pub(crate) struct Undo {
    /// Identifier of the open transaction, once it has logged something.
    txid: Option<u64>,
    /// Ranges that need no entry any more: logged, or allocated by the transaction.
    covered: IntervalSet,
    /// Lines that were stored to.
    stored: IntervalSet,
    entries: Vec<Entry>,
    /// Parts of the running write that need entries; kept for its memory.
    gaps: Vec<Range<u64>>,
    /// Logging failed half-way, so that only a recovery can tell which entries are whole.
    broken: bool,
    /// Slots belong to transactions whose commit is not known to be durable.
    unreleased: bool,
}

fn lines(start: u64, end: u64) -> Range<u64> {
    start / LINE_U64 * LINE_U64..end.next_multiple_of(LINE_U64)
}

impl Undo {
    /// Logs the gaps.
    fn log(&mut self, cx: &mut Context) -> Result<(), Error> {
        let first = self.entries.len();
        let ranges = self.gaps.iter().map(|g| (g.start, g.end - g.start));
        match cx.lane.reserve(ranges.clone(), &mut self.entries) {
            Err(Error::TooLarge { .. }) if self.unreleased && self.txid.is_none() => {
                Self::release(cx, &mut self.unreleased)?;
                cx.lane.reserve(ranges, &mut self.entries)?;
            }
            other => other?,
        }
        let txid = match self.txid {
            Some(txid) => txid,
            None => *self.txid.insert(cx.lane.next_txid()),
        };
        let dirty = self.gaps.iter().any(|g| self.stored.overlaps(&lines(g.start, g.end)));
        let logged = cx.lane.log(&cx.medium, EntryKind::Undo, txid, &self.entries[first..], dirty);
        logged.inspect_err(|_| self.broken = true)
    }

    /// Makes asynchronous commits durable and gives their slots back.
    fn release(cx: &mut Context, unreleased: &mut bool) -> Result<(), Error> {
        if std::mem::take(unreleased) {
            cx.lane.executor.persist(&cx.medium)?;
            cx.lane.release(cx.lane.mark());
        }
        Ok(())
    }

    fn forget(&mut self) {
        self.txid = None;
        self.covered.clear();
        self.stored.clear();
        self.entries.clear();
    }
}

impl Protocol for Undo {
    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        // Log everything before anything is stored, so that a full log leaves nothing half written.
        self.gaps.clear();
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            self.covered.gaps(&(place..place + part.len() as u64), &mut self.gaps);
        }
        if !self.gaps.is_empty() {
            self.log(cx)?;
            for gap in &self.gaps {
                self.covered.insert(gap.clone());
            }
        }
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            self.stored.insert(lines(place, place + part.len() as u64));
            cx.medium.store(place, &data[part]);
        }
        Ok(())
    }

    /// A rollback makes the range free again, so its old contents need no entry. They are not those of a live object
    /// either: a free takes effect for the allocator only after its commit, and every commit is ordered before what follows.
    fn fresh(&mut self, cx: &mut Context, offset: u64, bytes: u64) {
        for (place, part) in cx.pages.pieces(offset, bytes) {
            self.covered.insert(place..place + part.len() as u64);
        }
    }

    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.stored.is_empty() {
            return Ok(());
        }
        for range in self.stored.iter() {
            cx.medium.write_back(range.start, range.end - range.start);
        }
        cx.medium.fence()
    }

    fn commit(&mut self, cx: &mut Context, durability: Durability) -> Result<Acknowledged, Error> {
        if let Some(txid) = self.txid {
            let word = Word { offset: cx.lane.epoch_word(), txid };
            cx.lane.executor.commit(&cx.medium, word, durability)?;
        } else if durability == Durability::Durable && self.unreleased {
            // A durable commit covers what it depends on, also when it wrote nothing itself.
            cx.lane.executor.persist(&cx.medium)?;
        }
        self.forget();
        match durability {
            Durability::Durable => {
                self.unreleased = false;
                cx.lane.release(cx.lane.mark());
                Ok(Acknowledged::All)
            }
            Durability::Asynchronous if self.unreleased || cx.lane.used() > 0 => {
                self.unreleased = true;
                Ok(Acknowledged::Nothing)
            }
            Durability::Asynchronous => Ok(Acknowledged::All),
        }
    }

    fn abort(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.broken {
            return Err(Error::Poisoned);
        }
        if let Some(txid) = self.txid {
            // Dirty lines first: evicted later, they would overwrite what was restored.
            for range in self.stored.iter() {
                cx.medium.invalidate(range.start, range.end - range.start);
            }
            cx.medium.fence()?;
            cx.lane.executor.restore(&cx.medium, &self.entries, txid)?;
            // The old values are durable: from now on the entries must not count, and the identifier is spent.
            let word = Word { offset: cx.lane.epoch_word(), txid };
            cx.lane.executor.commit(&cx.medium, word, Durability::Durable)?;
            self.unreleased = false;
            cx.lane.release(cx.lane.mark());
        }
        self.forget();
        Ok(())
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        Self::release(cx, &mut self.unreleased)
    }
}
