//! Who makes the copies: the processor or the card. Both keep one contract, so that the mechanisms
//! do not know which.

use std::ops::Range;

use nearpm_interface::media::EntryHead;

use crate::error::Error;
use crate::memory::Medium;
use crate::options::Durability;

mod card;
mod cpu;
mod read_back;
mod striped;

pub(crate) use card::CardExecutor;
pub(crate) use cpu::CpuExecutor;
pub(crate) use read_back::{Posted, ReadBack};
pub(crate) use striped::StripedExecutor;

/// One log entry that was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Member of the pool, in which the offsets are.
    pub member: usize,
    /// Its identifier.
    pub pool: u32,
    /// Offset of its slot.
    pub slot: u64,
    /// Offset of what it logs.
    pub offset: u64,
    /// Bytes that it logs.
    pub length: u32,
    /// Its sequence.
    pub sequence: u64,
}

impl Entry {
    /// The head of this entry.
    pub fn head(&self, common: &EntryHead) -> EntryHead {
        EntryHead { sequence: self.sequence, offset: self.offset, length: self.length, pool: self.pool, ..*common }
    }
}

/// A word that makes something so by one atomic store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Offset in the pool.
    pub offset: u64,
    /// Identifier that it takes, sealed when it is written.
    pub txid: u64,
    /// Mask of the cards that wait for each other with this word; 0 where nobody waits.
    pub participants: u32,
}

impl Word {
    /// A word that waits for nobody.
    pub fn alone(offset: u64, txid: u64) -> Word {
        Word { offset, txid, participants: 0 }
    }
}

/// A redo log whose entries are durable and that is now to become so.
pub(crate) struct Publication<'a> {
    /// The commit point.
    pub committed: Word,
    /// Written when everything is applied.
    pub applied: Word,
    /// Entries, in order.
    pub entries: &'a [Entry],
    /// Their new values, one after the other.
    pub values: &'a [u8],
    /// Whether the entries are words of the page table.
    pub switches: bool,
    /// Whether lines that the entries cover may be dirty in the processor's cache.
    pub dirty: bool,
}

/// Executes the primitives of one lane.
pub(crate) trait Executor: Send {
    /// Copies the old contents of `entries` into their slots and heads them with what `head` has
    /// for all. On return the caller may store to what they cover: no such store becomes durable
    /// before the entry that covers it. `dirty` says that lines of the sources may be dirty in the
    /// cache.
    fn log(&mut self, medium: &Medium, entries: &[Entry], head: &EntryHead, dirty: bool) -> Result<(), Error>;

    /// Writes a commit word after everything that was logged, written back and fenced. On return it
    /// is ordered before every later store and command, and durable if that was asked for.
    fn commit(&mut self, medium: &Medium, word: Word, durability: Durability) -> Result<(), Error>;

    /// Makes everything that was committed asynchronously durable.
    fn persist(&mut self, medium: &Medium) -> Result<(), Error>;

    /// Whether a store to this range comes behind every commit of before, also one that was not
    /// waited for: what that has freed may be stored to.
    fn comes_behind_commits(&self, _offset: u64, _bytes: u64) -> bool {
        true
    }

    /// Makes everything durable that was stored, written back, fenced and logged before, and makes
    /// sure that no log of the pool has failed.
    fn sync(&mut self, medium: &Medium) -> Result<(), Error>;

    /// Whether something waits to be sent.
    fn waits(&self) -> bool;

    /// Sends what waits to be sent; the caller lets a barrier follow before it waits or returns to
    /// the program.
    fn send(&mut self, medium: &Medium) -> Result<(), Error>;

    /// Sends what waits to be sent, and fences: commands, stores and write-backs of before come
    /// ahead of everything later.
    fn barrier(&mut self, medium: &Medium) -> Result<(), Error>;

    /// Commits a redo log and begins to apply it, at the latest with the next barrier. Until
    /// [`Executor::settle`] nobody may touch what it writes through the processor's cache, unless
    /// [`Executor::writes_around_the_cache`] says that this is safe.
    fn publish(&mut self, medium: &Medium, publication: Publication<'_>, durability: Durability) -> Result<(), Error>;

    /// Whether applied logs and copied pages are written behind the processor's cache, so that
    /// programs read them by a [`crate::page_cache::PageCache`].
    fn writes_around_the_cache(&self) -> bool;

    /// The caller is about to store to these lines around the cache: what waits to be sent and
    /// writes them goes first.
    fn stores(&mut self, medium: &Medium, lines: Range<u64>) -> Result<(), Error>;

    /// Waits until every published log is applied, durably, and all that was written around the
    /// cache can be loaded and stored through it. Slots of the logs are free then.
    fn settle(&mut self, medium: &Medium) -> Result<(), Error>;

    /// Copies a page, so that on return it can be loaded and stored at `to`.
    fn shadow_copy(&mut self, medium: &Medium, from: u64, to: u64, dirty: bool) -> Result<(), Error>;

    /// Begins to copy a page of which no line is dirty in the cache. After the next barrier its
    /// lines can be stored to, around the cache where [`Executor::writes_around_the_cache`] says
    /// so; until then `from` stays as it is.
    fn begin_shadow_copy(&mut self, medium: &Medium, from: u64, to: u64) -> Result<(), Error>;

    /// Puts back what `entries` hold, newest first, durably. The caller has written back and
    /// dropped every line that they cover; on return these lines can be loaded and stored again.
    fn restore(&mut self, medium: &Medium, entries: &[Entry], txid: u64) -> Result<(), Error>;

    /// Makes sure that no log of the pool has failed on the card, of whatever thread; with `drain`,
    /// also none of this executor's commands that are on their way.
    ///
    /// # Errors
    /// [`Error::LogFailed`] where one has.
    fn verify(&mut self, drain: bool) -> Result<(), Error>;

    /// How often that was made sure of, by [`Executor::verify`] or with the read-back of a commit.
    fn verifications(&self) -> u64;

    /// Whether commits are posted to a card that orders everything behind them, so that several
    /// threads may wait for theirs together while the next posts.
    fn posts(&self, _medium: &Medium) -> bool {
        false
    }

    /// The newest commit that was posted and not acknowledged, where [`Executor::posts`].
    fn posted(&self) -> Option<Posted> {
        None
    }

    /// Gives up what the executor holds on the card.
    fn close(&mut self) -> Result<(), Error>;
}
