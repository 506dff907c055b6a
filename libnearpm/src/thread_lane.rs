//! The log of one thread number of the primitives: what it holds at the moment, and what may
//! follow.

use std::collections::BTreeSet;

use nearpm_interface::media::EntryKind;

use crate::error::Error;
use crate::executor::{Entry, Publication, Word};
use crate::lane::Lane;
use crate::memory::Medium;
use crate::options::Durability;

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
    pub lane: Lane,
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

    /// Settles what was applied; a log that was not committed is left to the recovery of the next
    /// open.
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

    pub fn old_log(&mut self) -> Result<(u64, &mut Vec<Entry>, &mut BTreeSet<u64>), Error> {
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

    pub fn log_old(&mut self, medium: &Medium, kind: EntryKind, ranges: &[(u64, u64)]) -> Result<(), Error> {
        self.old_log()?;
        let mut reserved = Vec::new();
        self.lane.reserve(medium, ranges.iter().copied(), &mut reserved)?;
        let (txid, entries, _) = self.old_log()?;
        entries.extend_from_slice(&reserved);
        // The program stores as it likes, so that any line may be dirty.
        let logged = self.lane.log(medium, kind, txid, &reserved, true);
        self.step(logged)
    }

    pub fn commit(&mut self, medium: &Medium) -> Result<(), Error> {
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

    pub fn abort(&mut self, medium: &Medium) -> Result<(), Error> {
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

    pub fn add_new(&mut self, medium: &Medium, offset: u64, value: &[u8]) -> Result<u64, Error> {
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

    pub fn apply(&mut self, medium: &Medium, slot: u64, bytes: u64) -> Result<(), Error> {
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
