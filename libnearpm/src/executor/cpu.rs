//! The processor makes the copies.

use std::ops::Range;

use nearpm_interface::media::{EntryHead, PAGE_BYTES, entry_bytes, entry_data, lines_of};
use nearpm_interface::seal;

use super::{Entry, Executor, Posted, Publication, Word};
use crate::error::Error;
use crate::memory::{Medium, Work};
use crate::options::Durability;
use crate::statistics::count;

/// Copies by loads and stores.
#[derive(Default)]
pub(crate) struct CpuExecutor {
    /// A redo log was applied, but neither are its stores fenced nor does its word say so.
    unapplied: Option<Word>,
    /// A commit was fenced and not drained.
    asynchronous: bool,
    /// A log entry that is being made.
    buffer: Vec<u8>,
}

impl Executor for CpuExecutor {
    fn log(&mut self, medium: &Medium, entries: &[Entry], head: &EntryHead, _dirty: bool) -> Result<(), Error> {
        for entry in entries {
            entry.head(head).encode_into(&mut self.buffer, |old| medium.load(entry.offset, old));
            let bytes = self.buffer.len() as u64;
            medium.charge(Work::Checksum(bytes));
            medium.stream(entry.slot, &self.buffer);
            count(&medium.counters.bytes_by_cpu, bytes);
        }
        // The entry certifies itself, so that one fence is enough: durable entry, then stores.
        medium.fence()
    }

    fn commit(&mut self, medium: &Medium, word: Word, durability: Durability) -> Result<(), Error> {
        medium.put_word(word.offset, seal::seal_word(word.txid));
        match durability {
            Durability::Durable => {
                self.asynchronous = false;
                medium.drain()
            }
            Durability::Asynchronous => {
                self.asynchronous = true;
                medium.fence()
            }
        }
    }

    fn persist(&mut self, medium: &Medium) -> Result<(), Error> {
        if std::mem::take(&mut self.asynchronous) { medium.drain() } else { Ok(()) }
    }

    fn sync(&mut self, medium: &Medium) -> Result<(), Error> {
        self.asynchronous = false;
        medium.drain()
    }

    fn waits(&self) -> bool {
        false
    }

    fn publish(&mut self, medium: &Medium, publication: Publication<'_>, durability: Durability) -> Result<(), Error> {
        self.commit(medium, publication.committed, durability)?;
        let mut at = 0;
        for entry in publication.entries {
            let value = &publication.values[at..at + entry.length as usize];
            medium.charge(Work::CachedLines(lines_of(entry.offset, entry.length)));
            medium.put(entry.offset, value);
            count(&medium.counters.bytes_by_cpu, entry.length.into());
            at += entry.length as usize;
        }
        // The next fence makes these stores durable. Only then may the applied word say so, and
        // nobody needs it to before the slots run out or the pool is closed: the next commit makes
        // this log worthless too. The pool may be in another thread by then, whose fence orders
        // what this one wrote back where handing it over was a locked instruction (x86), and not
        // elsewhere.
        if cfg!(not(target_arch = "x86_64")) {
            medium.fence()?;
        }
        self.unapplied = Some(publication.applied);
        Ok(())
    }

    fn send(&mut self, _: &Medium) -> Result<(), Error> {
        Ok(())
    }

    fn barrier(&mut self, medium: &Medium) -> Result<(), Error> {
        medium.fence()
    }

    fn writes_around_the_cache(&self) -> bool {
        false
    }

    fn stores(&mut self, _: &Medium, _: Range<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn settle(&mut self, medium: &Medium) -> Result<(), Error> {
        if let Some(word) = self.unapplied.take() {
            medium.fence()?;
            medium.put_word(word.offset, seal::seal_word(word.txid));
            medium.drain()?;
            self.asynchronous = false;
        }
        Ok(())
    }

    fn shadow_copy(&mut self, medium: &Medium, from: u64, to: u64, _dirty: bool) -> Result<(), Error> {
        medium.put(to, &medium.load_vec(from, PAGE_BYTES));
        count(&medium.counters.bytes_by_cpu, PAGE_BYTES);
        Ok(())
    }

    fn begin_shadow_copy(&mut self, medium: &Medium, from: u64, to: u64) -> Result<(), Error> {
        self.shadow_copy(medium, from, to, false)
    }

    fn restore(&mut self, medium: &Medium, entries: &[Entry], _txid: u64) -> Result<(), Error> {
        // Slots are stored to around the cache.
        for entry in entries {
            medium.invalidate(entry.slot, entry_bytes(entry.offset, entry.length));
        }
        medium.fence()?;
        for entry in entries.iter().rev() {
            let old = medium.load_vec(entry.slot + entry_data(entry.offset), entry.length.into());
            medium.put(entry.offset, &old);
            count(&medium.counters.bytes_by_cpu, entry.length.into());
        }
        medium.fence()
    }

    /// The processor's logs do not fail apart from it.
    fn verify(&mut self, _drain: bool) -> Result<(), Error> {
        Ok(())
    }

    fn verifications(&self) -> u64 {
        0
    }

    fn posts(&self, medium: &Medium) -> bool {
        medium.backing().is_read_back()
    }

    fn posted(&self) -> Option<Posted> {
        self.asynchronous.then_some(Posted::Stores)
    }

    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }
}
