//! Redo logging: new values are collected, logged at commit, and then applied.
//!
//! What the transaction has allocated itself has no log: it is stored at once, in lines that nobody
//! refers to before the commit.
//!
//! Invariant: nothing of an open transaction is in persistent memory outside the log and what it
//! has allocated.

use std::ops::Range;

use nearpm_interface::geometry::LINE_U64;

use super::batch::Part;
use super::redo_log::{RedoLog, Values};
use super::{Acknowledged, Batch, Context, Protocol};
use crate::error::Error;
use crate::interval::IntervalSet;
use crate::memory::{Medium, View};
use crate::options::Durability;
use crate::page_cache::{Cached, PageCache};
use crate::write_set::WriteSet;

/// State of redo logging.
#[derive(Default)]
pub(crate) struct Redo {
    /// New values that will be logged.
    writes: WriteSet,
    /// Ranges that are logged as one where something in them is.
    declared: Vec<Range<u64>>,
    /// Old values of one of them, or bytes of a view on their way; kept for its memory.
    bytes: Vec<u8>,
    /// Whole lines that the open transaction has allocated.
    fresh: IntervalSet,
    /// Lines of those that were stored to and have to be written back.
    stored: IntervalSet,
    /// Memory as it will be when the logs are applied, where the card applies them.
    cache: PageCache,
    log: RedoLog,
    /// A commit was asynchronous, and no durable one followed.
    unacknowledged: bool,
}

/// The whole lines of a range, or else nothing at its end.
fn whole_lines(range: &Range<u64>) -> Range<u64> {
    let whole = range.start.next_multiple_of(LINE_U64)..range.end / LINE_U64 * LINE_U64;
    if whole.is_empty() { range.end..range.end } else { whole }
}

impl Redo {
    /// Loads what the open transaction sees.
    fn load(&mut self, cx: &mut Context, place: u64, data: &mut [u8]) -> Result<(), Error> {
        self.load_old(cx, place, data)?;
        self.writes.patch(&cx.medium, place, data);
        Ok(())
    }

    /// Loads from memory as it is when every committed log is applied.
    fn load_old(&mut self, cx: &mut Context, place: u64, data: &mut [u8]) -> Result<(), Error> {
        if cx.lane.executor.writes_around_the_cache() {
            let Context { medium, lane, .. } = cx;
            Cached { cache: &mut self.cache, medium, executor: &mut *lane.executor }.load(place, data)
        } else {
            cx.medium.load_checked(place, data)
        }
    }

    /// Stores whole lines that need no log. What becomes of the copies of memory is `update`'s.
    fn store_fresh(
        &mut self,
        cx: &mut Context,
        place: u64,
        data: &[u8],
        update: impl Fn(&mut PageCache, &Medium, u64, &[u8]),
    ) -> Result<(), Error> {
        let Context { medium, lane, .. } = cx;
        let lines = place..place + data.len() as u64;
        if lane.executor.writes_around_the_cache() {
            lane.executor.stores(medium, lines)?;
            medium.stream(place, data);
            update(&mut self.cache, medium, place, data);
        } else {
            medium.store(place, data);
            self.stored.insert(lines);
        }
        Ok(())
    }

    /// Adds what lies between the new values of each declared range.
    fn join_declared(&mut self, cx: &mut Context) -> Result<(), Error> {
        let (declared, mut old) = (std::mem::take(&mut self.declared), std::mem::take(&mut self.bytes));
        for range in &declared {
            let Some(hull) = self.writes.hull(range) else { continue };
            old.clear();
            old.resize((hull.end - hull.start) as usize, 0);
            self.load_old(cx, hull.start, &mut old)?;
            self.writes.complete(&cx.medium, hull.start, &old);
        }
        (self.declared, self.bytes) = (declared, old);
        self.declared.clear();
        Ok(())
    }

    /// Stores the lines of a piece of a batch that are fresh as a whole, and adds the rest to the
    /// values of the log.
    fn bring_piece(
        &mut self,
        cx: &mut Context,
        (part, view): (&Part, &View),
        first: u64,
        places: Range<u64>,
        values: &mut Values,
    ) -> Result<(), Error> {
        let offsets = |range: &Range<u64>| first + range.start - places.start..first + range.end - places.start;
        let lines = whole_lines(&places);
        let is_free = part.fresh && self.needs_no_log(cx, &places, &lines);
        let whole = if is_free { lines } else { places.end..places.end };
        for logged in [places.start..whole.start, whole.end..places.end] {
            values.push_with(&logged, |bytes| part.append(view, &offsets(&logged), bytes))?;
        }
        let mut bytes = std::mem::take(&mut self.bytes);
        part.each_piece(view, offsets(&whole), &mut bytes, |offset, data| {
            self.store_fresh(cx, places.start + offset - first, data, PageCache::refresh)
        })?;
        self.bytes = bytes;
        Ok(())
    }

    /// Whether whole lines of a place that the transaction has allocated can be stored to at once.
    fn needs_no_log(&self, cx: &Context, place: &Range<u64>, lines: &Range<u64>) -> bool {
        cx.lane.executor.comes_behind_commits(place.start, place.end - place.start) && !self.log.counts_in(lines)
    }

    /// Starts the write-back of what was stored to.
    fn write_back(&self, cx: &Context) {
        for range in self.stored.iter() {
            cx.medium.write_back(range.start, range.end - range.start);
        }
    }

    /// Logs new values, durably. What becomes of the copies of memory is `update`'s.
    fn send(
        &mut self,
        cx: &mut Context,
        values: Values,
        update: impl Fn(&mut PageCache, &Medium, u64, &[u8]),
    ) -> Result<(), Error> {
        if values.ranges.is_empty() {
            return Ok(());
        }
        self.log.prepare(cx, values)?;
        if cx.lane.executor.writes_around_the_cache() {
            // While the entries leave. Nobody reads before the transaction has ended, one way or
            // the other.
            let values = self.log.values().into_iter().flat_map(Values::iter);
            values.for_each(|(place, value)| update(&mut self.cache, &cx.medium, place, value));
        }
        cx.lane.executor.barrier(&cx.medium)
    }

    fn forget(&mut self) {
        self.writes.clear();
        self.declared.clear();
        self.fresh.clear();
        self.stored.clear();
    }
}

impl Protocol for Redo {
    fn read(&mut self, cx: &mut Context, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < data.len() {
            let (place, bytes) = cx.pages.locate(offset + done as u64, (data.len() - done) as u64);
            self.load(cx, place, &mut data[done..done + bytes as usize])?;
            done += bytes as usize;
        }
        Ok(())
    }

    fn write(&mut self, cx: &mut Context, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < data.len() {
            let (place, bytes) = cx.pages.locate(offset + done as u64, (data.len() - done) as u64);
            let data = &data[done..done + bytes as usize];
            done += bytes as usize;
            // Whole lines of what is fresh, and the parts before and behind them.
            let end = place + bytes;
            let mut whole = whole_lines(&(place..end));
            if whole.is_empty() || !self.fresh.covers(&whole) {
                whole = end..end;
            }
            let part = |range: Range<u64>| &data[(range.start - place) as usize..(range.end - place) as usize];
            self.writes.insert(&cx.medium, place, part(place..whole.start));
            self.writes.insert(&cx.medium, whole.end, part(whole.end..end));
            if !whole.is_empty() {
                self.writes.remove(&whole);
                self.store_fresh(cx, whole.start, part(whole.clone()), PageCache::update)?;
            }
        }
        Ok(())
    }

    fn declare(&mut self, cx: &mut Context, offset: u64, bytes: u64) -> Result<(), Error> {
        let pieces = cx.pages.pieces(offset, bytes);
        self.declared.extend(pieces.map(|(place, part)| place..place + part.len() as u64));
        Ok(())
    }

    fn fresh(&mut self, cx: &mut Context, offset: u64, bytes: u64) {
        for (place, part) in cx.pages.pieces(offset, bytes) {
            let lines = place.next_multiple_of(LINE_U64)..(place + part.len() as u64) / LINE_U64 * LINE_U64;
            // What was written before it was allocated stays in the log.
            let free = self.needs_no_log(cx, &(place..place + part.len() as u64), &lines);
            if free && lines.start < lines.end && self.writes.hull(&lines).is_none() {
                self.fresh.insert(lines);
            }
        }
    }

    fn prepare(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.write_back(cx);
        self.join_declared(cx)?;
        let mut values = self.log.no_values();
        for (place, bytes) in self.writes.runs() {
            values.push(place, bytes);
        }
        self.send(cx, values, PageCache::update)
    }

    /// What is logged goes from the view straight to the log's values.
    fn bring(&mut self, cx: &mut Context, batch: &mut Batch, view: &View) -> Result<(), Error> {
        batch.reserve(&mut self.bytes)?;
        batch.read_words(cx, |cx, offset, word| self.read(cx, offset, word))?;
        let mut values = self.log.no_values();
        for part in batch.parts() {
            let mut at = part.range.start;
            while at < part.range.end {
                let (place, bytes) = cx.pages.locate(at, part.range.end - at);
                self.bring_piece(cx, (part, view), at, place..place + bytes, &mut values)?;
                at += bytes;
            }
        }
        self.write_back(cx);
        // Programs read what they see, and of memory words of the tables alone are read here.
        self.send(cx, values, PageCache::refresh)
    }

    fn commit(&mut self, cx: &mut Context, durability: Durability) -> Result<Acknowledged, Error> {
        let wrote = self.log.values().is_some();
        self.log.publish(cx, false, durability)?;
        self.forget();
        match durability {
            Durability::Durable => {
                if !wrote && self.unacknowledged {
                    cx.lane.executor.persist(&cx.medium)?;
                }
                self.unacknowledged = false;
                Ok(Acknowledged::All)
            }
            Durability::Asynchronous => {
                self.unacknowledged |= wrote;
                Ok(if self.unacknowledged { Acknowledged::Nothing } else { Acknowledged::All })
            }
        }
    }

    /// What was stored to becomes free again.
    fn abort(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.write_back(cx);
        self.forget();
        // A log that could not be sent may be there or not, and the copies have its values already.
        if self.log.values().is_some() { Err(Error::Poisoned) } else { Ok(()) }
    }

    fn acknowledged(&mut self, _cx: &mut Context) {
        self.unacknowledged = false;
    }

    fn persist(&mut self, cx: &mut Context) -> Result<(), Error> {
        if std::mem::take(&mut self.unacknowledged) { cx.lane.executor.persist(&cx.medium) } else { Ok(()) }
    }

    fn share(&mut self, cx: &mut Context) -> Result<(), Error> {
        if !cx.lane.executor.writes_around_the_cache() {
            return Ok(());
        }
        self.log.shared = true;
        self.cache.clear();
        self.log.settle(cx)
    }

    fn finish(&mut self, cx: &mut Context) -> Result<(), Error> {
        self.persist(cx)?;
        self.log.settle(cx)
    }
}
