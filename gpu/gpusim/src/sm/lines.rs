//! Lines of L1 that hold what was stored to persistent memory, and their entries of the buffer.

use super::{NEVER, Shared, Sm, bits};
use crate::buffer::Dirty;
use crate::coalesce::{Part, granules, whole_sectors};
use crate::{Config, Model, Rule};

/// What a store to a line needs.
enum Needs {
    /// Nothing: the line's entry takes it.
    Nothing,
    /// An entry.
    Entry,
    /// That this entry is durable.
    Durable(u64),
}

impl Sm {
    /// The bytes of a line that the buffer has.
    pub(super) fn buffered(&self, line: u64) -> u128 {
        let line = self.l1.peek(line);
        line.map_or(0, |line| line.older | line.entry.map_or(0, |entry| self.buffer.bytes(entry)))
    }

    /// Whether the persists of an instruction can all be taken now: no line waits for an order, and
    /// there is room.
    pub(super) fn prepare(
        &mut self,
        slot: usize,
        list: &[Part],
        ordered: bool,
        now: u64,
        shared: &mut Shared<'_>,
    ) -> bool {
        let config = shared.config;
        let mut entries = u32::from(ordered);
        for part in list.iter().filter(|part| part.persistent) {
            match self.needs(slot, part, ordered, config) {
                Needs::Nothing => {}
                Needs::Entry => entries += 1,
                Needs::Durable(entry) => {
                    self.wait_for_entry(slot, entry, shared);
                    return false;
                }
            }
        }
        if config.model == Model::Sbrp && self.buffer.room(config) < entries {
            self.wait_for_room(slot, entries, shared);
            return false;
        }
        for part in list.iter().filter(|part| part.persistent) {
            if self.l1.find(part.line).is_none() {
                if !self.make_room(slot, now, shared) {
                    return false;
                }
                self.l1.insert(part.line, true);
            }
        }
        true
    }

    /// What a store to a part of a line needs. Where its warp has ordered since the line's entry,
    /// and no granule of it is in that, the entry becomes an older one of the line, and the store
    /// gets one of its own.
    fn needs(&mut self, slot: usize, part: &Part, ordered: bool, config: &Config) -> Needs {
        let (newest, older) = self.l1.peek(part.line).map_or((None, 0), |line| (line.entry, line.older));
        let wanted = granules(part.bytes, config.granule);
        if wanted & granules(older, config.granule) != 0
            && let Some(entry) = self.buffer.older_with(part.line, wanted, config.granule, newest)
        {
            return Needs::Durable(entry);
        }
        let Some(entry) = newest else { return Needs::Entry };
        let since = ordered || self.buffer.ordered_since(entry, slot);
        if config.model == Model::Epoch || !since || !config.has(Rule::Coalesce) {
            return Needs::Nothing;
        }
        let bytes = self.buffer.bytes(entry);
        if config.granule > 0 && wanted & granules(bytes, config.granule) == 0 {
            self.l1.split(part.line, bytes);
            return Needs::Entry;
        }
        if config.versions && self.open_version(entry, part.line) { Needs::Entry } else { Needs::Durable(entry) }
    }

    /// Keeps what the buffer has of a line as an older version, in a place of L1 of its own, so
    /// that the line can be stored to again. One older version a line; false where there is one, or
    /// no place.
    fn open_version(&mut self, entry: u64, line: u64) -> bool {
        if self.buffer.has_older(line, entry) || self.l1.victim().is_some_and(|victim| victim.entry.is_some()) {
            return false;
        }
        let Some(place) = self.l1.pin() else { return false };
        self.buffer.pin(entry, place);
        self.l1.written(line, entry, 0);
        true
    }

    /// Takes what was stored to a line into the buffer.
    pub(super) fn persist(&mut self, slot: usize, dirty: Dirty, shared: &mut Shared<'_>) {
        let Some(line) = self.l1.find(dirty.line) else { return };
        line.valid |= whole_sectors(dirty.bytes);
        match line.entry.and_then(|entry| self.buffer.dirty_mut(entry, slot)) {
            Some(there) => {
                shared.statistics.coalesced += 1;
                there.merge(dirty);
            }
            None => line.entry = Some(self.buffer.persist(slot, dirty)),
        }
    }

    /// Whether another warp's store keeps this warp from L1 (`artifact_waits`).
    pub(super) fn waits_behind_a_store(&mut self, slot: usize) -> bool {
        let waits = self.blocking.is_some_and(|other| other != slot);
        if waits {
            self.warps[slot].ready_at = NEVER;
            self.behind |= 1 << slot;
        }
        waits
    }

    /// A store that kept others from L1 is done.
    pub(super) fn no_longer_blocks(&mut self, slot: usize, now: u64) {
        if self.blocking == Some(slot) {
            self.blocking = None;
            for other in bits(std::mem::take(&mut self.behind)) {
                self.warps[other].ready_at = now + 1;
            }
        }
    }
}
