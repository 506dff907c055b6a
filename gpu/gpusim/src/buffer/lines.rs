//! Entries by the line that they are of.

use super::{Buffer, Entry};
use crate::coalesce::granules;

impl Buffer {
    /// Which bytes an entry has.
    pub fn bytes(&self, entry: u64) -> u128 {
        let index = entry.checked_sub(self.first).and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| self.entries.get(index)?.dirty.as_ref()).map_or(0, |dirty| dirty.bytes)
    }

    /// Whether an older version of a line than an entry's is still here.
    pub fn has_older(&self, line: u64, number: u64) -> bool {
        let before = number.saturating_sub(self.first) as usize;
        let earlier = self.entries.range(..before.min(self.entries.len()));
        earlier.filter_map(|entry| entry.dirty.as_ref()).any(|dirty| dirty.line == line)
    }

    /// The newest entry of a line but for one, of those that have a byte of these granules.
    pub fn older_with(&self, line: u64, wanted: u128, granule: u32, but: Option<u64>) -> Option<u64> {
        let has = |&number: &u64| Some(number) != but && granules(self.bytes(number), granule) & wanted != 0;
        self.of_line(line).into_iter().rev().find(has)
    }

    /// All entries of a line, the oldest first.
    pub fn of_line(&self, line: u64) -> Vec<u64> {
        let numbered = self.entries.iter().zip(self.first..);
        let of = |entry: &Entry| entry.dirty.as_ref().is_some_and(|dirty| dirty.line == line);
        numbered.filter(|(entry, _)| of(entry)).map(|(_, number)| number).collect()
    }

    /// What an entry has of these bytes is not to be sent any more.
    pub fn forget(&mut self, number: u64, bytes: u128) {
        if let Some(dirty) = self.entry_mut(number).and_then(|entry| entry.dirty.as_mut()) {
            dirty.bytes &= !bytes;
        }
    }

    /// An entry's stores are an older version now, in a place of L1 of their own.
    pub fn pin(&mut self, number: u64, place: u32) {
        if let Some(dirty) = self.entry_mut(number).and_then(|entry| entry.dirty.as_mut()) {
            dirty.pinned = Some(place);
        }
    }
}
