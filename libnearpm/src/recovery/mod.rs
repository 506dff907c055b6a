//! The one recovery: it runs at open, understands whatever any mechanism and executor left, and may
//! be cut and repeated at any point.
//!
//! For each lane that was ever used:
//! 1. its rings, one on each member of the pool, are read and scanned line by line, as far as they
//!    were ever used (the extent word): an entry is one whose seal holds, whose pool and thread are
//!    these, and which lies in the slot that its sequence names; anything else is a hole. Nothing
//!    is written before all are read;
//! 2. what is committed is what the word of *any* member has reached: no member writes its word
//!    before all have their part of the transaction, and of every earlier one, durably;
//! 3. if a member has a redo log that was committed and not marked as applied, its values are
//!    stored again;
//! 4. undo entries and checkpoints above the highest epoch word are restored, newest first, exactly
//!    their bytes;
//! 5. when all of this is durable on every member, the applied words are set, and the epoch words
//!    rise to the highest identifier that the rings show, so that none is used twice. From then on
//!    no entry counts that is in the rings, so that their extents begin anew. Not earlier: the word
//!    that deletes the log of what was taken back is the one that says "committed", to the other
//!    members too, after a further cut.

use nearpm_interface::geometry::LINE_U64;
use nearpm_interface::media::{
    ENTRY_MAGIC, EntryHead, EntryKind, PoolHead, RING_EPOCH, RING_EXTENT, RING_HEAD_BYTES, RING_REDO_APPLIED,
    RING_REDO_COMMITTED, entry_bytes, entry_data, sequence_parts,
};
use nearpm_interface::seal;

use crate::damage::Class;
use crate::error::Error;
use crate::lane::{INITIAL_EXTENT, LaneState};
use crate::memory::Medium;
use crate::part::Part;
use crate::planted::{Fault, planted};

mod at_home;
mod found;
mod gathered;
pub(crate) mod home;
pub(crate) mod pages;
pub(crate) mod pieces;
pub(crate) mod segments;

/// What the recovery at open found and did.
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Log entries that were rolled back, checkpoints included.
    pub undone: u64,
    /// Redo entries that were applied again, page switches included, and moved pages that were
    /// brought home.
    pub redone: u64,
    /// Bytes that both wrote.
    pub bytes: u64,
    /// Slots that looked like entries and were not whole.
    pub torn: u64,
    /// Commits that waited on a card for other cards, and went on because all of these had them,
    /// too.
    pub released: u64,
    /// Commits that waited on a card for other cards, and were taken away because one of these had
    /// not got its own.
    pub discarded: u64,
}

/// A ring, read and scanned.
#[derive(Default)]
struct Ring {
    thread: u16,
    offset: u64,
    epoch: u64,
    committed: u64,
    applied: u64,
    bytes: Vec<u8>,
    /// Whole entries with their place in the ring.
    entries: Vec<(EntryHead, usize)>,
    torn: u64,
}

/// Recovers every lane of an ordinary pool, and the log of direct pools.
pub(crate) fn recover(medium: &Medium, head: &PoolHead) -> Result<(Recovery, Vec<LaneState>), Error> {
    let mut report = Recovery::default();
    let lanes = recover_lanes(&[Part { medium, head, location: None }], &mut report)?;
    if segments::applied(medium)?.is_some() {
        pages::bring_home(medium, head, &mut report)?;
    }
    segments::recover(medium, head, &mut report)?;
    Ok((report, lanes.into_iter().flatten().collect()))
}

/// Recovers every lane; gives the state of each on each part.
pub(crate) fn recover_lanes(parts: &[Part<'_>], report: &mut Recovery) -> Result<Vec<Vec<LaneState>>, Error> {
    (0..parts[0].head.lanes).map(|thread| recover_lane(parts, thread, report)).collect()
}

fn recover_lane(parts: &[Part<'_>], thread: u16, report: &mut Recovery) -> Result<Vec<LaneState>, Error> {
    let mut rings = Vec::new();
    for part in parts {
        let ring = Ring::load(part.medium, part.head, thread).map_err(|error| part.named(error))?;
        // What could not be read looked like a ring without entries.
        part.medium.backing().file_is_whole().map_err(|error| part.named(error))?;
        rings.push(ring);
    }
    let used = || parts.iter().zip(&rings).filter_map(|(part, ring)| Some((part, ring.as_ref()?)));
    let Some(epoch) = used().map(|(_, ring)| ring.epoch).max() else {
        return Ok(vec![LaneState::default(); parts.len()]);
    };
    let committed = used().map(|(_, ring)| ring.committed).max().unwrap_or(0);
    for (part, ring) in used() {
        report.torn += ring.torn;
        let (mut committed, mut epoch) = (committed, epoch);
        if planted(Fault::JudgesMembersAlone) {
            (committed, epoch) = (ring.committed, ring.epoch);
        }
        ring.redo(part, committed, report).and_then(|()| ring.undo(part, epoch, report)).map_err(|e| part.named(e))?;
        if planted(Fault::DeletesBeforeOthersUndo) {
            part.medium.drain()?;
            ring.put_word(part.medium, RING_EPOCH, ring.epoch, ring.last_txid());
            part.medium.drain()?;
        }
    }
    drain(parts)?;
    let seen = used().map(|(_, ring)| ring.last_txid()).max().unwrap_or(0);
    // A torn entry may be of the next transaction: that identifier is spent too.
    let last_txid = seen + u64::from(used().any(|(_, ring)| ring.torn > 0));
    // What was logged and not committed must never look committed. One ring alone names the log
    // that it has committed.
    let applied = if parts.len() == 1 || planted(Fault::LeavesRedoLogs) { committed } else { last_txid };
    used().for_each(|(part, ring)| ring.put_word(part.medium, RING_REDO_APPLIED, ring.applied, applied));
    drain(parts)?;
    used().for_each(|(part, ring)| ring.put_word(part.medium, RING_EPOCH, ring.epoch, last_txid));
    drain(parts)?;
    used().for_each(|(part, ring)| ring.put_word(part.medium, RING_EXTENT, ring.bytes.len() as u64, INITIAL_EXTENT));
    drain(parts)?;
    used().for_each(|(part, ring)| part.medium.invalidate(ring.offset, RING_HEAD_BYTES));
    parts.iter().try_for_each(|part| part.medium.fence())?;
    let state = |ring: &Option<Ring>| LaneState {
        last_txid,
        entries: ring.as_ref().map_or(0, Ring::last_count),
        formatted: ring.is_some(),
    };
    Ok(rings.iter().map(state).collect())
}

/// Makes everything durable on every part.
#[cfg_attr(test, track_caller)]
fn drain(parts: &[Part<'_>]) -> Result<(), Error> {
    for part in parts {
        part.medium.drain()?;
    }
    Ok(())
}

/// Whether a ring holds a whole entry, used or not by what its words say.
pub(crate) fn has_entries(medium: &Medium, head: &PoolHead, thread: u16) -> bool {
    let bytes = medium.load_vec(head.ring(thread), head.ring_bytes.into());
    let mut ring = Ring { thread, bytes, ..Ring::default() };
    ring.scan(head.pool);
    !ring.entries.is_empty()
}

impl Ring {
    /// Reads and scans a ring; `None` where it was never used.
    fn load(medium: &Medium, head: &PoolHead, thread: u16) -> Result<Option<Ring>, Error> {
        let offset = head.ring(thread);
        // The card may have written here behind the cache.
        medium.invalidate(offset, RING_HEAD_BYTES);
        medium.fence()?;
        if medium.load_word(offset + RING_EPOCH) == 0 {
            return Ok(None);
        }
        let word = |at: u64| {
            let class = if at == RING_EXTENT { Class::RingExtent } else { Class::RingWord };
            seal::open_word(medium.load_word(offset + at)).ok_or(class.at(offset + at))
        };
        let (epoch, committed, applied) = (word(RING_EPOCH)?, word(RING_REDO_COMMITTED)?, word(RING_REDO_APPLIED)?);
        // Rings of before the extent word have 0 there.
        let extent = match medium.load_word(offset + RING_EXTENT) {
            0 => head.ring_bytes.into(),
            _ => word(RING_EXTENT)?.clamp(RING_HEAD_BYTES, head.ring_bytes.into()),
        };
        medium.invalidate(offset, extent);
        medium.fence()?;
        let bytes = medium.load_vec(offset, extent);
        let mut ring = Ring { thread, offset, epoch, committed, applied, bytes, entries: Vec::new(), torn: 0 };
        ring.scan(head.pool);
        Ok(Some(ring))
    }

    fn scan(&mut self, pool: u32) {
        let mut at = RING_HEAD_BYTES as usize;
        while at < self.bytes.len() {
            let slot = &self.bytes[at..];
            let step = match EntryHead::decode(slot) {
                Some(entry) if self.is_mine(&entry, pool, at) => {
                    self.entries.push((entry, at));
                    entry_bytes(entry.offset, entry.length)
                }
                _ => {
                    self.torn += u64::from(slot.starts_with(&ENTRY_MAGIC.to_le_bytes()));
                    LINE_U64
                }
            };
            at += step as usize;
        }
    }

    fn is_mine(&self, entry: &EntryHead, pool: u32, at: usize) -> bool {
        entry.pool == pool && entry.thread == self.thread && sequence_parts(entry.sequence).1 == at as u64
    }

    /// The highest identifier that the ring shows.
    fn last_txid(&self) -> u64 {
        let words = [self.epoch, self.committed, self.applied];
        self.entries.iter().map(|(e, _)| e.txid).chain(words).max().expect("the words are always there")
    }

    /// The highest count of a sequence.
    fn last_count(&self) -> u64 {
        self.entries.iter().map(|(e, _)| sequence_parts(e.sequence).0).max().unwrap_or(0)
    }

    #[cfg_attr(test, track_caller)]
    fn put_word(&self, medium: &Medium, at: u64, old: u64, new: u64) {
        if old != new {
            medium.put_word(self.offset + at, seal::seal_word(new));
        }
    }

    /// Applies the last redo log that is committed again, unless it is known to be applied.
    /// `committed` is the highest commit word of all members: this one's may not have come to be
    /// written.
    fn redo(&self, part: &Part<'_>, committed: u64, report: &mut Recovery) -> Result<(), Error> {
        let redo = |e: &EntryHead| e.kind == EntryKind::Redo as u8;
        let reached = self.of_kind(|e| redo(e) && e.txid > self.applied && e.txid <= committed);
        let last = reached.iter().map(|(e, _)| e.txid).fold(self.committed, u64::max);
        if last <= self.applied {
            return Ok(());
        }
        let mut log = self.of_kind(|e| redo(e) && e.txid == last);
        log.sort_by_key(|(e, _)| e.sequence);
        let counts = || log.iter().map(|(e, _)| sequence_parts(e.sequence).0);
        if log.is_empty() || counts().zip(counts().skip(1)).any(|(a, b)| b != a + 1) {
            return Err(Class::RingRedo.at(self.offset + RING_REDO_COMMITTED));
        }
        Self::drop_lines(part.medium, &log)?;
        for (entry, at) in log {
            self.put(part, &entry, at, part.head.table()..part.head.last(), report)?;
            report.redone += 1;
        }
        Ok(())
    }

    /// Restores what transactions and epochs that did not commit had overwritten. `epoch` is the
    /// highest epoch word of all members.
    fn undo(&self, part: &Part<'_>, epoch: u64, report: &mut Recovery) -> Result<(), Error> {
        let kinds = [EntryKind::Undo as u8, EntryKind::Checkpoint as u8];
        let mut log = self.of_kind(|e| kinds.contains(&e.kind) && e.txid > epoch);
        log.sort_by_key(|(e, _)| std::cmp::Reverse(e.sequence));
        Self::drop_lines(part.medium, &log)?;
        for (entry, at) in log {
            self.put(part, &entry, at, part.head.heap()..part.head.last(), report)?;
            report.undone += 1;
        }
        Ok(())
    }

    fn of_kind(&self, wanted: impl Fn(&EntryHead) -> bool) -> Vec<(EntryHead, usize)> {
        self.entries.iter().filter(|(e, _)| wanted(e)).copied().collect()
    }

    /// Drops what the cache holds of the lines that will be stored to: a process that died may have
    /// left them there from before a command wrote them, and a store would bring their neighbours'
    /// old bytes back.
    #[cfg_attr(test, track_caller)]
    fn drop_lines(medium: &Medium, log: &[(EntryHead, usize)]) -> Result<(), Error> {
        let inside = |e: &&(EntryHead, usize)| e.0.offset.saturating_add(e.0.length.into()) <= medium.bytes();
        for (entry, _) in log.iter().filter(inside) {
            medium.invalidate(entry.offset, entry.length.into());
        }
        medium.fence()
    }

    /// Stores the data of an entry to where it belongs.
    #[cfg_attr(test, track_caller)]
    fn put(
        &self,
        part: &Part<'_>,
        entry: &EntryHead,
        at: usize,
        allowed: std::ops::Range<u64>,
        report: &mut Recovery,
    ) -> Result<(), Error> {
        let end = entry.offset.checked_add(entry.length.into());
        if entry.offset < allowed.start || end.is_none_or(|end| end > allowed.end) {
            return Err(Class::RingEntry.at(self.offset + at as u64));
        }
        let start = at + entry_data(entry.offset) as usize;
        part.medium.put(entry.offset, &self.bytes[start..start + entry.length as usize]);
        report.bytes += u64::from(entry.length);
        Ok(())
    }
}
