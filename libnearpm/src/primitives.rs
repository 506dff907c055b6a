//! The primitives of the NearPM interface (Seneviratne et al., EuroSys '23, table 2), for programs that order their own stores.
//!
//! Each thread number has a log of its own. A log is opened by its first primitive and ended by `commit_log`; when
//! power fails before that, the next open of the pool takes everything back that it covers. Threads must not
//! log overlapping ranges at the same time: whose old value is restored would be a matter of luck.

use std::collections::BTreeSet;

use nearpm_interface::media::{EntryKind, PAGE_BYTES};

use crate::error::{Error, Problem};
use crate::executor::{Publication, Word};
use crate::lane::{Entry, Lane};
use crate::memory::Medium;
use crate::options::Durability;
use crate::pool::Pool;
use crate::statistics::count;
use crate::transaction::Inner;

/// What the log of a thread is at the moment.
enum Log {
    /// Nothing.
    Closed,
    /// Old values: undo entries and checkpoints.
    Old { txid: u64, entries: Vec<Entry>, pages: BTreeSet<u64> },
    /// New values that nobody applies yet.
    New { txid: u64, entries: Vec<Entry>, values: Vec<u8> },
    /// New values that are committed and being applied.
    Applied { entries: Vec<Entry> },
    /// A primitive failed half-way.
    Broken,
}

/// The lane of a thread number.
pub(crate) struct ThreadLane {
    lane: Lane,
    log: Log,
}

impl ThreadLane {
    pub fn new(lane: Lane) -> ThreadLane {
        ThreadLane { lane, log: Log::Closed }
    }

    /// Waits for every command of the thread, and makes sure that no log of the pool has failed.
    pub fn verify(&mut self) -> Result<(), Error> {
        self.lane.executor.verify(true)
    }

    /// Settles what was applied; a log that was not committed is left to the recovery of the next open.
    pub fn close(&mut self, medium: &Medium) -> Result<(), Error> {
        let settled = match self.log {
            Log::Applied { .. } => self.lane.executor.settle(medium),
            _ => Ok(()),
        };
        let closed = self.lane.executor.close();
        settled.and(closed)
    }

    /// Marks the log as broken if a step failed half-way.
    fn step<T>(&mut self, result: Result<T, Error>) -> Result<T, Error> {
        result.inspect_err(|_| self.log = Log::Broken)
    }

    fn old_log(&mut self) -> Result<(u64, &mut Vec<Entry>, &mut BTreeSet<u64>), Error> {
        if matches!(self.log, Log::Closed) {
            let txid = self.lane.next_txid();
            self.log = Log::Old { txid, entries: Vec::new(), pages: BTreeSet::new() };
        }
        match &mut self.log {
            Log::Old { txid, entries, pages } => Ok((*txid, entries, pages)),
            Log::Broken => Err(Error::Poisoned),
            _ => Err(Error::LogInUse { thread: self.lane.thread, holds: "new values", wanted: "old ones" }),
        }
    }

    fn log_old(&mut self, medium: &Medium, kind: EntryKind, ranges: &[(u64, u64)]) -> Result<(), Error> {
        self.old_log()?;
        let mut reserved = Vec::new();
        self.lane.reserve(medium, ranges.iter().copied(), &mut reserved)?;
        let (txid, entries, _) = self.old_log()?;
        entries.extend_from_slice(&reserved);
        // The program stores as it likes, so that any line may be dirty.
        let logged = self.lane.log(medium, kind, txid, &reserved, true);
        self.step(logged)
    }

    fn commit(&mut self, medium: &Medium) -> Result<(), Error> {
        if matches!(self.log, Log::New { .. }) {
            self.publish(medium)?;
        }
        match std::mem::replace(&mut self.log, Log::Closed) {
            Log::Old { txid, entries, .. } => {
                // Whatever the program has not written back itself.
                for entry in &entries {
                    medium.write_back(entry.offset, entry.length.into());
                }
                let word = Word::alone(self.lane.epoch_word(), txid);
                let committed =
                    medium.fence().and_then(|()| self.lane.executor.commit(medium, word, Durability::Durable));
                self.step(committed)?;
            }
            Log::Applied { .. } => {
                let settled = self.lane.executor.settle(medium);
                self.step(settled)?;
            }
            Log::Broken => {
                self.log = Log::Broken;
                return Err(Error::Poisoned);
            }
            Log::New { .. } | Log::Closed => {}
        }
        self.lane.release(self.lane.mark());
        Ok(())
    }

    fn abort(&mut self, medium: &Medium) -> Result<(), Error> {
        match std::mem::replace(&mut self.log, Log::Closed) {
            Log::Old { txid, entries, .. } => {
                for entry in &entries {
                    medium.invalidate(entry.offset, entry.length.into());
                }
                let word = Word::alone(self.lane.epoch_word(), txid);
                let restored = medium
                    .fence()
                    .and_then(|()| self.lane.executor.restore(medium, &entries, txid))
                    .and_then(|()| self.lane.executor.commit(medium, word, Durability::Durable));
                self.step(restored)?;
            }
            // New values that were not applied have touched nothing.
            Log::New { .. } | Log::Closed => {}
            log @ Log::Applied { .. } => {
                self.log = log;
                let (holds, wanted) = ("new values that are committed", "something to take back");
                return Err(Error::LogInUse { thread: self.lane.thread, holds, wanted });
            }
            Log::Broken => {
                self.log = Log::Broken;
                return Err(Error::Poisoned);
            }
        }
        self.lane.release(self.lane.mark());
        Ok(())
    }

    fn add_new(&mut self, medium: &Medium, offset: u64, value: &[u8]) -> Result<u64, Error> {
        if matches!(self.log, Log::Closed) {
            let txid = self.lane.next_txid();
            self.log = Log::New { txid, entries: Vec::new(), values: Vec::new() };
        }
        let thread = self.lane.thread;
        let Log::New { txid, entries, values } = &mut self.log else {
            if matches!(self.log, Log::Broken) {
                return Err(Error::Poisoned);
            }
            return Err(Error::LogInUse {
                thread,
                holds: "old values, or new ones that are committed",
                wanted: "new ones",
            });
        };
        let mut reserved = Vec::new();
        self.lane.reserve(medium, [(offset, value.len() as u64)].into_iter(), &mut reserved)?;
        self.lane.log_new(medium, *txid, &reserved, value);
        entries.extend_from_slice(&reserved);
        values.extend_from_slice(value);
        Ok(reserved[0].slot)
    }

    /// Commits the new values and applies them.
    fn publish(&mut self, medium: &Medium) -> Result<(), Error> {
        let Log::New { txid, entries, values } = std::mem::replace(&mut self.log, Log::Broken) else {
            return Ok(());
        };
        medium.fence()?;
        let publication = Publication {
            committed: Word::alone(self.lane.committed_word(), txid),
            applied: Word::alone(self.lane.applied_word(), txid),
            entries: &entries,
            values: &values,
            switches: false,
            dirty: true,
        };
        self.lane.executor.publish(medium, publication, Durability::Durable)?;
        self.log = Log::Applied { entries };
        Ok(())
    }

    fn apply(&mut self, medium: &Medium, slot: u64, bytes: u64) -> Result<(), Error> {
        let (Log::New { entries, .. } | Log::Applied { entries }) = &self.log else {
            return Err(Error::NotALog { offset: slot });
        };
        let first = entries.iter().position(|e| e.slot == slot).ok_or(Error::NotALog { offset: slot })?;
        // A value above the longest command has several entries; the first one names it.
        let whole = entries[first..].iter().scan(0, |sum, e| {
            *sum += u64::from(e.length);
            Some(*sum)
        });
        if !whole.into_iter().any(|sum| sum == bytes) {
            return Err(Error::NotALog { offset: slot });
        }
        if matches!(self.log, Log::New { .. }) { self.publish(medium) } else { Ok(()) }
    }
}

impl Pool {
    /// Logs the old value of `bytes` bytes at `offset`. On return the program may store to them; they are taken back unless
    /// [`Pool::commit_log`] follows.
    pub fn undolog_create(&self, thread: u16, offset: u64, bytes: u64) -> Result<(), Error> {
        self.on_thread(thread, "an undo log", offset, bytes, |thread, inner| {
            thread.log_old(&inner.cx.medium, EntryKind::Undo, &[(offset, bytes)])
        })
    }

    /// Copies the 4 KiB pages that `bytes` bytes at `offset` touch to the log, as far as the open log has not got them. On
    /// return the program may store to them; they are taken back unless [`Pool::commit_log`] follows.
    pub fn ckpoint_create(&self, thread: u16, offset: u64, bytes: u64) -> Result<(), Error> {
        self.on_thread(thread, "a checkpoint", offset, bytes, |thread, inner| {
            let (_, _, saved) = thread.old_log()?;
            let pages = (offset / PAGE_BYTES..(offset + bytes).div_ceil(PAGE_BYTES)).map(|p| p * PAGE_BYTES);
            let ranges: Vec<_> = pages.filter(|p| !saved.contains(p)).map(|p| (p, PAGE_BYTES)).collect();
            thread.log_old(&inner.cx.medium, EntryKind::Checkpoint, &ranges)?;
            let (_, _, saved) = thread.old_log()?;
            saved.extend(ranges.iter().map(|&(page, _)| page));
            Ok(())
        })
    }

    /// Puts a new value for the bytes at `offset` into the log and gives the offset of the log entry. Nothing happens to the bytes before
    /// [`Pool::applylog`].
    pub fn redolog_create(&self, thread: u16, offset: u64, value: &[u8]) -> Result<u64, Error> {
        self.on_thread(thread, "a redo log", offset, value.len() as u64, |thread, inner| {
            thread.add_new(&inner.cx.medium, offset, value)
        })
    }

    /// Applies new values from the log. The first call commits everything that the log holds: from then on
    /// all of it survives a power cut, and further calls only name entries that are being applied already. Until
    /// [`Pool::commit_log`] the bytes must not be touched.
    pub fn applylog(&self, thread: u16, entry: u64, bytes: u64) -> Result<(), Error> {
        self.with_thread(thread, |thread, inner| thread.apply(&inner.cx.medium, entry, bytes))
    }

    /// Ends the log of a thread, durably: old values are forgotten, new ones are in place.
    pub fn commit_log(&self, thread: u16) -> Result<(), Error> {
        self.with_thread(thread, |thread, inner| thread.commit(&inner.cx.medium))
    }

    /// Takes everything back that the open log of a thread covers, and ends it.
    pub fn abort_log(&self, thread: u16) -> Result<(), Error> {
        self.with_thread(thread, |thread, inner| thread.abort(&inner.cx.medium))
    }

    /// Copies whole pages to a new object and gives its offset. The program stores to the copy, persists it, and then makes its reference
    /// name it: [`Pool::switch_page`] does that and frees the old pages at once. A copy that nothing refers
    /// to when power fails stays allocated.
    pub fn shadowcpy(&self, thread: u16, offset: u64, bytes: u64) -> Result<u64, Error> {
        if !offset.is_multiple_of(PAGE_BYTES) || !bytes.is_multiple_of(PAGE_BYTES) {
            let wrong = if !offset.is_multiple_of(PAGE_BYTES) { offset } else { bytes };
            return Err(Error::Misaligned { offset: wrong, alignment: PAGE_BYTES });
        }
        self.on_thread(thread, "a shadow copy", offset, bytes, |_, _| Ok(()))?;
        let copy = self.tx_with(Durability::Durable, |tx| tx.alloc(bytes))?;
        self.with_thread(thread, |thread, inner| {
            let medium = &inner.cx.medium;
            for at in (0..bytes).step_by(PAGE_BYTES as usize) {
                thread.lane.executor.shadow_copy(medium, offset + at, copy + at, true)?;
                count(&medium.counters.shadow_pages, 1);
            }
            Ok(copy)
        })
    }

    /// Makes the 8-byte word at `reference` hold the offset of `copy` and frees what it named before, both or neither.
    pub fn switch_page(&self, reference: u64, copy: u64) -> Result<(), Error> {
        self.tx_with(Durability::Durable, |tx| {
            let old = tx.read_u64(reference)?;
            tx.write_u64(reference, copy)?;
            if old == 0 { Ok(()) } else { tx.free(old) }
        })
    }

    /// Loads, outside transactions.
    pub fn load(&self, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        self.with_raw("a load", offset, data.len() as u64, |inner| inner.cx.medium.load_checked(offset, data))
    }

    /// Stores, outside transactions: durable only after [`Pool::flush`], and atomic only under a log.
    pub fn store(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.with_raw("a store", offset, data.len() as u64, |inner| {
            inner.unflushed = true;
            inner.cx.medium.store(offset, data);
            Ok(())
        })
    }

    /// Makes stores to a range durable that were made by [`Pool::store`] or through [`Pool::address`].
    pub fn flush(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.with_raw("a flush", offset, bytes, |inner| {
            inner.cx.medium.write_back(offset, bytes);
            inner.cx.medium.drain()
        })
    }

    /// Address of offset 0 where the pool is mapped into the process (pools in files). It is valid
    /// until the pool is closed, and stores through it follow the rules of the primitives.
    pub fn address(&self) -> Option<*mut u8> {
        let inner = self.lock().ok()?.0;
        inner.check_writable().ok()?;
        inner.cx.medium.address()
    }

    fn on_thread<T>(
        &self,
        thread: u16,
        what: &'static str,
        offset: u64,
        bytes: u64,
        call: impl FnOnce(&mut ThreadLane, &mut Inner) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.with_thread(thread, |thread, inner| {
            check_raw(inner, what, offset, bytes)?;
            call(thread, inner)
        })
    }

    fn with_raw<T>(
        &self,
        what: &'static str,
        offset: u64,
        bytes: u64,
        call: impl FnOnce(&mut Inner) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut inner, _owner) = self.lock()?;
        inner.check_writable()?;
        self.refuse_moved(&inner)?;
        check_raw(&inner, what, offset, bytes)?;
        inner.share()?;
        let result = call(&mut inner);
        inner.poison_after(&result);
        result
    }

    fn with_thread<T>(
        &self,
        thread: u16,
        call: impl FnOnce(&mut ThreadLane, &mut Inner) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (mut inner, _owner) = self.lock()?;
        inner.check_writable()?;
        self.refuse_moved(&inner)?;
        let lanes = self.thread_lanes();
        if thread >= lanes {
            return Err(Error::NoLane { thread, lanes });
        }
        inner.share()?;
        let mut lane = match inner.threads.remove(&thread) {
            Some(lane) => lane,
            None => self.open_thread(&inner, thread)?,
        };
        let result = call(&mut lane, &mut inner);
        inner.threads.insert(thread, lane);
        inner.poison_after(&result);
        result
    }

    /// Offsets and places are the same only while every page is at home.
    fn refuse_moved(&self, inner: &Inner) -> Result<(), Error> {
        if self.is_striped() {
            let what = "the primitives work on pools on one card or in one memory; use transactions";
            return Err(Problem::BadOption { what }.at(self.location()));
        }
        if inner.cx.pages.is_identity() && !self.mechanism().has_epochs() {
            return Ok(());
        }
        let what = "the primitives work on pools that were never used with shadow paging and are opened with undo or redo \
                    logging; use transactions, or copy the contents to a new pool";
        Err(Problem::BadOption { what }.at(self.location()))
    }
}

fn check_raw(inner: &Inner, what: &'static str, offset: u64, bytes: u64) -> Result<(), Error> {
    let heap = inner.allocator.range();
    if bytes == 0 {
        return Err(Error::ZeroSize { what });
    }
    let end = offset.checked_add(bytes);
    if offset < heap.start || end.is_none_or(|end| end > heap.end) {
        return Err(Error::OutOfRange { offset, length: bytes, heap });
    }
    Ok(())
}
