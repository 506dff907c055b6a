//! A redo log that is committed at once: for redo transactions, and for the page switches of shadow
//! paging.
//!
//! Order of what becomes durable: entries; commit word; new values in place; applied word. Slots
//! are given back when the applied word, or the commit word of the next log, makes them worthless.

use std::ops::Range;

use super::Context;
use crate::error::Error;
use crate::executor::{Entry, Publication, Word};
use crate::lane::Mark;
use crate::options::Durability;
use crate::statistics::count;

/// New values: where they go, and the bytes, one after the other.
#[derive(Default)]
pub(crate) struct Values {
    pub ranges: Vec<(u64, u64)>,
    pub bytes: Vec<u8>,
}

impl Values {
    fn clear(&mut self) {
        self.ranges.clear();
        self.bytes.clear();
    }

    /// The values: where each goes, and its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut at = 0;
        self.ranges.iter().map(move |&(offset, length)| {
            let value = &self.bytes[at..at + length as usize];
            at += length as usize;
            (offset, value)
        })
    }

    /// Adds a value; one that continues the last is joined to it.
    pub fn push(&mut self, offset: u64, value: &[u8]) {
        self.note(offset, value.len() as u64);
        self.bytes.extend_from_slice(value);
    }

    /// The same with a value that `append` appends to its buffer; nothing if the range is empty.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    #[inline]
    pub fn push_with(&mut self, range: &Range<u64>, append: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        if !range.is_empty() {
            let bytes = range.end - range.start;
            self.bytes.try_reserve(bytes as usize).map_err(Error::no_memory("what a commit writes"))?;
            self.note(range.start, bytes);
            append(&mut self.bytes);
        }
        Ok(())
    }

    /// The bytes that are added next are those of such a range.
    #[inline]
    fn note(&mut self, offset: u64, bytes: u64) {
        match self.ranges.last_mut() {
            Some((start, length)) if *start + *length == offset => *length += bytes,
            _ => self.ranges.push((offset, bytes)),
        }
    }
}

/// A log whose entries are durable and whose commit word is not written.
struct Prepared {
    txid: u64,
    entries: Vec<Entry>,
    values: Values,
    /// Slots below belong to the former log.
    former: Mark,
}

/// The redo log of a lane.
#[derive(Default)]
pub(crate) struct RedoLog {
    prepared: Option<Prepared>,
    /// Empty; kept for the memory that they had in earlier logs.
    values: Values,
    entries: Vec<Entry>,
    /// A log was published and holds its slots.
    published: bool,
    /// What published logs have written, with its member, as long as a recovery would write it
    /// again: of a striped pool, where a member's log counts until the next one on that member.
    /// Elsewhere the next log takes the place of all.
    counting: Vec<(usize, Range<u64>)>,
    /// Programs use the memory behind transactions too, through the processor's cache.
    pub shared: bool,
}

impl RedoLog {
    /// No values, in the memory of those of an earlier log.
    pub fn no_values(&mut self) -> Values {
        std::mem::take(&mut self.values)
    }

    /// Writes the entries; the caller lets a barrier follow, which makes them durable. Nothing
    /// counts before [`RedoLog::publish`].
    pub fn prepare(&mut self, cx: &mut Context, values: Values) -> Result<(), Error> {
        let former = cx.lane.mark();
        let ranges = || values.ranges.iter().copied();
        let mut entries = std::mem::take(&mut self.entries);
        let former = match cx.lane.reserve(&cx.medium, ranges(), &mut entries) {
            Err(Error::TooLarge { .. }) if self.published => {
                self.settle(cx)?;
                let former = cx.lane.mark();
                cx.lane.reserve(&cx.medium, ranges(), &mut entries)?;
                former
            }
            other => {
                other?;
                former
            }
        };
        // What the former log applies travels while the entries are made. It does not depend on
        // them, nor they on it.
        cx.lane.executor.send(&cx.medium)?;
        let txid = cx.lane.next_txid();
        cx.lane.log_new(&cx.medium, txid, &entries, &values.bytes);
        count(&cx.medium.counters.bytes_by_cpu, values.bytes.len() as u64);
        self.prepared = Some(Prepared { txid, entries, values, former });
        Ok(())
    }

    /// Passes the commit point and begins to apply.
    pub fn publish(&mut self, cx: &mut Context, switches: bool, durability: Durability) -> Result<(), Error> {
        let Some(mut log) = self.prepared.take() else { return Ok(()) };
        let publication = Publication {
            committed: Word::alone(cx.lane.committed_word(), log.txid),
            applied: Word::alone(cx.lane.applied_word(), log.txid),
            entries: &log.entries,
            values: &log.values.bytes,
            switches,
            dirty: self.shared,
        };
        cx.lane.executor.publish(&cx.medium, publication, durability)?;
        self.published = true;
        self.note_counting(cx, &log.entries);
        // A member that this log has nothing on may still be applying the former one.
        cx.lane.release_of(&log.entries, log.former);
        log.values.clear();
        log.entries.clear();
        (self.values, self.entries) = (log.values, log.entries);
        Ok(())
    }

    fn note_counting(&mut self, cx: &Context, entries: &[Entry]) {
        if cx.head.members <= 1 {
            return;
        }
        let stripes = cx.pages.stripes();
        self.counting.retain(|(member, _)| entries.iter().all(|entry| entry.member != *member));
        self.counting.extend(entries.iter().map(|entry| {
            let start = stripes.whole_offset(entry.member, entry.offset);
            (entry.member, start..start + u64::from(entry.length))
        }));
    }

    /// Whether a recovery would write parts of this range from a log that will count still when the
    /// next one is published on other members: what is stored there without a log would be lost.
    pub fn counts_in(&self, range: &Range<u64>) -> bool {
        self.counting.iter().any(|(_, written)| written.start < range.end && range.start < written.end)
    }

    /// What memory becomes if the log that was prepared is published.
    pub fn values(&self) -> Option<&Values> {
        self.prepared.as_ref().map(|log| &log.values)
    }

    /// Waits until the published log is applied, and gives its slots back. On return memory can be
    /// used through the processor's cache.
    pub fn settle(&mut self, cx: &mut Context) -> Result<(), Error> {
        cx.lane.executor.settle(&cx.medium)?;
        self.counting.clear();
        if std::mem::take(&mut self.published) {
            cx.lane.release(cx.lane.mark());
        }
        Ok(())
    }
}
