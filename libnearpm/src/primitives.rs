//! The primitives of the NearPM interface (Seneviratne et al., EuroSys '23, table 2), for programs
//! that order their own stores.
//!
//! Each thread number has a log of its own. A log is opened by its first primitive and ended by
//! `commit_log`; when power fails before that, the next open of the pool takes everything back that
//! it covers. Threads must not log overlapping ranges at the same time: whose old value is restored
//! would be a matter of luck.

use nearpm_interface::media::{EntryKind, PAGE_BYTES};

use crate::error::{Error, Problem};
use crate::options::Durability;
use crate::pool::Pool;
use crate::statistics::count;
use crate::thread_lane::ThreadLane;
use crate::transaction::Inner;

impl Pool {
    /// Logs the old value of `bytes` bytes at `offset`. On return the program may store to them;
    /// they are taken back unless [`Pool::commit_log`] follows.
    pub fn undolog_create(&self, thread: u16, offset: u64, bytes: u64) -> Result<(), Error> {
        self.on_thread(thread, "an undo log", offset, bytes, |thread, inner| {
            thread.log_old(&inner.cx.medium, EntryKind::Undo, &[(offset, bytes)])
        })
    }

    /// Copies the 4 KiB pages that `bytes` bytes at `offset` touch to the log, as far as the open
    /// log has not got them. On return the program may store to them; they are taken back unless
    /// [`Pool::commit_log`] follows.
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

    /// Puts a new value for the bytes at `offset` into the log and gives the offset of the log
    /// entry. Nothing happens to the bytes before [`Pool::applylog`].
    pub fn redolog_create(&self, thread: u16, offset: u64, value: &[u8]) -> Result<u64, Error> {
        self.on_thread(thread, "a redo log", offset, value.len() as u64, |thread, inner| {
            thread.add_new(&inner.cx.medium, offset, value)
        })
    }

    /// Applies new values from the log. The first call commits everything that the log holds: from
    /// then on all of it survives a power cut, and further calls only name entries that are being
    /// applied already. Until [`Pool::commit_log`] the bytes must not be touched.
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

    /// Copies whole pages to a new object and gives its offset. The program stores to the copy,
    /// persists it, and then makes its reference name it: [`Pool::switch_page`] does that and frees
    /// the old pages at once. A copy that nothing refers to when power fails stays allocated.
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

    /// Makes the 8-byte word at `reference` hold the offset of `copy` and frees what it named
    /// before, both or neither.
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

    /// Stores, outside transactions: durable only after [`Pool::flush`], and atomic only under a
    /// log.
    pub fn store(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.with_raw("a store", offset, data.len() as u64, |inner| {
            inner.unflushed = true;
            inner.cx.medium.store(offset, data);
            Ok(())
        })
    }

    /// Makes stores to a range durable that were made by [`Pool::store`] or through
    /// [`Pool::address`].
    pub fn flush(&self, offset: u64, bytes: u64) -> Result<(), Error> {
        self.with_raw("a flush", offset, bytes, |inner| {
            inner.cx.medium.write_back(offset, bytes);
            inner.cx.medium.drain()
        })
    }

    /// Address of offset 0 where the pool is mapped into the process (pools in files). It is valid
    /// until the pool is closed, and stores through it follow the rules of the primitives.
    pub fn address(&self) -> Option<*mut u8> {
        let inner = self.lock().ok()?;
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
        let mut inner = self.lock()?;
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
        let mut inner = self.lock()?;
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
