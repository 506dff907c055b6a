//! Undo logging: old values to the log, new values in place.
//!
//! New values wait in volatile memory until the transaction ends, so that all ranges that need an
//! entry are known before the first of them is logged: ranges that touch have one entry, and all
//! entries share one fence. What the transaction has allocated itself needs no entry and is stored
//! at once.
//!
//! Invariant: no byte is stored to unless an entry of the open transaction covers it whose
//! durability comes before the store's, or the transaction allocated it.

use std::convert::Infallible;
use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{EntryKind, lines_of};

use super::{Acknowledged, Batch, Context, Protocol};
use crate::error::Error;
use crate::executor::{Entry, Word};
use crate::interval::IntervalSet;
use crate::lane::LogBytes;
use crate::memory::{View, Work};
use crate::options::Durability;
use crate::write_set::WriteSet;

/// State of undo logging.
#[derive(Default)]
pub(crate) struct Undo {
    /// Ranges that the open transaction has allocated.
    fresh: IntervalSet,
    /// Ranges that will be logged.
    logged: IntervalSet,
    /// Log bytes that they need at most.
    needed: LogBytes,
    /// New values of logged ranges.
    writes: WriteSet,
    /// Lines that were stored to in memory.
    stored: IntervalSet,
    /// Parts of the running write that are not fresh, and of one of these those that are not
    /// logged; kept for their memory.
    gaps: Vec<Range<u64>>,
    unlogged: Vec<Range<u64>>,
    /// Bytes of a view on their way; kept for their memory.
    bytes: Vec<u8>,
    /// Identifier of the open transaction, once it has logged something.
    txid: Option<u64>,
    entries: Vec<Entry>,
    /// Logging failed half-way, so that only a recovery can tell which entries are whole.
    broken: bool,
    /// Slots belong to transactions whose commit is not known to be durable.
    unreleased: bool,
}

fn lines(start: u64, end: u64) -> Range<u64> {
    start / LINE_U64 * LINE_U64..end.next_multiple_of(LINE_U64)
}

impl Undo {
    /// Notes that a range must be logged.
    ///
    /// # Errors
    /// [`Error::TooLarge`] when the log has no room for it; then nothing is noted.
    fn note(&mut self, cx: &Context, range: Range<u64>) -> Result<(), Error> {
        if self.logged.covers(&range) {
            return Ok(());
        }
        let mut gaps = std::mem::take(&mut self.unlogged);
        gaps.clear();
        self.logged.gaps(&range, &mut gaps);
        let mut needed = self.needed;
        for gap in &gaps {
            cx.lane.add_log_bytes(&mut needed, gap);
            if !cx.lane.executor.writes_around_the_cache() {
                // The processor loads what it logs.
                cx.medium.prefetch(gap.start, gap.end - gap.start);
            }
        }
        self.unlogged = gaps;
        if cx.lane.check_room(&needed).is_err() {
            // Neighbours need less together than each by itself.
            let mut all = self.logged.clone();
            all.insert(range.clone());
            needed = LogBytes::default();
            all.iter().for_each(|range| cx.lane.add_log_bytes(&mut needed, &range));
            cx.lane.check_room(&needed)?;
        }
        self.needed = needed;
        self.logged.insert(range);
        Ok(())
    }

    /// The parts of a range that the transaction has not allocated, in the memory of `gaps`.
    fn not_fresh(&mut self, cx: &Context, offset: u64, bytes: u64) -> Vec<Range<u64>> {
        let mut gaps = std::mem::take(&mut self.gaps);
        gaps.clear();
        for (place, part) in cx.pages.pieces(offset, bytes) {
            self.fresh.gaps(&(place..place + part.len() as u64), &mut gaps);
        }
        gaps
    }

    /// Logs what will be stored to, all entries under one fence.
    fn log(&mut self, cx: &mut Context) -> Result<(), Error> {
        let ranges = || self.logged.iter().map(|r| (r.start, r.end - r.start));
        match cx.lane.reserve(&cx.medium, ranges(), &mut self.entries) {
            Err(Error::TooLarge { .. }) if self.unreleased => {
                Self::release(cx, &mut self.unreleased)?;
                cx.lane.reserve(&cx.medium, ranges(), &mut self.entries)?;
            }
            other => other?,
        }
        let txid = *self.txid.insert(cx.lane.next_txid());
        // Every byte that is logged was written back when the transaction that stored it committed.
        let logged = cx.lane.log(&cx.medium, EntryKind::Undo, txid, &self.entries, false);
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
        self.fresh.clear();
        self.logged.clear();
        self.needed = LogBytes::default();
        self.writes.clear();
        self.stored.clear();
        self.txid = None;
        self.entries.clear();
    }

    /// Keeps the new values of what is logged, and stores the others.
    fn put(&mut self, cx: &Context, offset: u64, data: &[u8], logged: &[Range<u64>]) {
        let mut logged = logged.iter().peekable();
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            let data = &data[part];
            let part = |range: Range<u64>| &data[(range.start - place) as usize..(range.end - place) as usize];
            let end = place + data.len() as u64;
            let mut at = place;
            while at < end {
                let next = logged.next_if(|r| place <= r.start && r.end <= end).cloned().unwrap_or(end..end);
                if at < next.start {
                    self.store(cx, at, part(at..next.start));
                }
                self.writes.insert(&cx.medium, next.start, part(next.clone()));
                at = next.end;
            }
        }
    }

    /// Stores in memory.
    fn store(&mut self, cx: &Context, place: u64, data: &[u8]) {
        self.stored.insert(lines(place, place + data.len() as u64));
        cx.medium.store(place, data);
    }

    /// Starts the write-back of everything that was stored to, and fences.
    fn write_back(&self, cx: &Context) -> Result<(), Error> {
        if self.stored.is_empty() {
            return Ok(());
        }
        for range in self.stored.iter() {
            cx.medium.write_back(range.start, range.end - range.start);
        }
        cx.medium.fence()
    }
}

impl Protocol for Undo {
    fn read(&mut self, cx: &mut Context, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        for (place, part) in cx.pages.pieces(offset, data.len() as u64) {
            cx.medium.load_checked(place, &mut data[part.clone()])?;
            self.writes.patch(&cx.medium, place, &mut data[part]);
        }
        Ok(())
    }

    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        // Find room for everything before anything is written, so that a full log leaves nothing
        // half done.
        let gaps = self.not_fresh(cx, offset, data.len() as u64);
        let noted = gaps.iter().try_for_each(|gap| self.note(cx, gap.clone()));
        if noted.is_ok() {
            if cx.lane.executor.writes_around_the_cache() {
                // Nobody loads what the card logs, and a store to a part of a line waits for the
                // rest of it.
                gaps.iter().for_each(|gap| cx.medium.prefetch_parts(gap));
            }
            self.put(cx, offset, data, &gaps);
        }
        self.gaps = gaps;
        noted
    }

    /// The declared ranges are logged whole, each by one entry.
    fn declare(&mut self, cx: &mut Context, offset: u64, bytes: u64) -> Result<(), Error> {
        let gaps = self.not_fresh(cx, offset, bytes);
        let noted = gaps.iter().try_for_each(|gap| self.note(cx, gap.clone()));
        self.gaps = gaps;
        noted
    }

    /// A rollback makes the range free again, so its old contents need no entry. They are not those
    /// of a live object either: a free takes effect for the allocator only after its commit, and a
    /// commit that is not ordered before stores to the range makes an entry necessary.
    fn fresh(&mut self, cx: &mut Context, offset: u64, bytes: u64) {
        for (place, part) in cx.pages.pieces(offset, bytes) {
            let range = place..place + part.len() as u64;
            let free = cx.lane.executor.comes_behind_commits(place, part.len() as u64);
            if free && !self.logged.overlaps(&range) {
                self.fresh.insert(range);
            }
        }
    }

    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error> {
        if !self.logged.is_empty() {
            self.log(cx)?;
            let writes = std::mem::take(&mut self.writes);
            for (place, data) in writes.runs() {
                cx.medium.charge(Work::CachedLines(lines_of(place, data.len() as u32)));
                self.store(cx, place, data);
            }
            self.writes = writes;
        }
        self.write_back(cx).inspect_err(|_| self.broken = self.txid.is_some())
    }

    /// All ranges that need an entry are logged before anything is stored to, straight from the
    /// view.
    fn bring(&mut self, cx: &mut Context, batch: &mut Batch, view: &View) -> Result<(), Error> {
        batch.reserve(&mut self.bytes)?;
        let by_card = cx.lane.executor.writes_around_the_cache();
        for part in batch.parts() {
            for (place, offsets) in part.places(&cx.pages) {
                let bytes = offsets.end - offsets.start;
                let places = place..place + bytes;
                let is_logged = !(part.fresh && cx.lane.executor.comes_behind_commits(place, bytes));
                if is_logged && !by_card {
                    // The processor loads what it logs.
                    cx.medium.prefetch(place, bytes);
                } else {
                    // A store to a part of a line waits for the rest of it.
                    cx.medium.prefetch_parts(&places);
                }
                if is_logged {
                    self.logged.insert(places);
                }
            }
        }
        batch.read_words(cx, |cx, offset, word| self.read(cx, offset, word))?;
        if !self.logged.is_empty() {
            self.log(cx)?;
        }
        for part in batch.parts() {
            for (place, offsets) in part.places(&cx.pages) {
                self.stored.insert(lines(place, place + offsets.end - offsets.start));
                let first = offsets.start;
                let Ok(()) = part.each_piece(view, offsets, &mut self.bytes, |offset, data| {
                    cx.medium.store(place + offset - first, data);
                    Ok::<(), Infallible>(())
                });
            }
        }
        self.write_back(cx).inspect_err(|_| self.broken = self.txid.is_some())
    }

    fn commit(&mut self, cx: &mut Context, durability: Durability) -> Result<Acknowledged, Error> {
        if let Some(txid) = self.txid {
            let word = Word::alone(cx.lane.epoch_word(), txid);
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

    /// Nothing was stored but to what becomes free again, unless the commit had begun.
    fn abort(&mut self, cx: &mut Context) -> Result<(), Error> {
        if self.broken || self.txid.is_some() {
            return Err(Error::Poisoned);
        }
        // No line stays dirty: evicted later, it would overwrite what a command wrote.
        for range in self.stored.iter() {
            cx.medium.write_back(range.start, range.end - range.start);
        }
        self.forget();
        Ok(())
    }

    fn acknowledged(&mut self, cx: &mut Context) {
        if std::mem::take(&mut self.unreleased) {
            cx.lane.release(cx.lane.mark());
        }
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        Self::release(cx, &mut self.unreleased)
    }
}
