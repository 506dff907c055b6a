//! AddressMap: the 16 entries that (pool, thread) select.

use nearpm_interface::geometry::{MAP_ENTRIES, MAX_DEVICES};
use nearpm_interface::save::SavedMapping;

/// One entry in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Pool identifier.
    pub pool: u32,
    /// Thread.
    pub thread: u16,
    /// Device address of the pool.
    pub base: u64,
    /// Bytes of the pool.
    pub bytes: u64,
    /// Offset of the log ring in the pool.
    pub ring: u64,
    /// Bytes of the log ring.
    pub ring_bytes: u64,
    /// Last committed transaction.
    pub committed: u64,
    /// A log failed, or memory refused a store to the pool: everything but an unmap is refused.
    pub latched: bool,
    /// An unmap was accepted, or the entry is an orphan.
    pub closing: bool,
    /// A function-level reset left it to the commands that wait for other devices.
    pub orphan: bool,
    /// Last transaction of which other devices were told that it is reached.
    pub reached: u64,
    /// How far each other device has come.
    pub heard: [u64; MAX_DEVICES],
}

const IN_USE: u8 = 1;
const LATCHED: u8 = 1 << 1;
const CLOSING: u8 = 1 << 2;
const ORPHAN: u8 = 1 << 3;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct AddressMap {
    entries: [Option<Mapping>; MAP_ENTRIES],
}

impl AddressMap {
    /// The entry of (pool, thread).
    pub fn find(&self, pool: u32, thread: u16) -> Option<u8> {
        let hit = |e: &Option<Mapping>| e.is_some_and(|m| m.pool == pool && m.thread == thread);
        self.entries.iter().position(hit).map(|i| i as u8)
    }

    /// The lowest free entry.
    pub fn free(&self) -> Option<u8> {
        self.entries.iter().position(Option::is_none).map(|i| i as u8)
    }

    /// An entry, if in use.
    pub fn get(&self, entry: u8) -> Option<&Mapping> {
        self.entries[entry as usize].as_ref()
    }

    /// An entry, if in use, to change.
    pub fn get_mut(&mut self, entry: u8) -> Option<&mut Mapping> {
        self.entries[entry as usize].as_mut()
    }

    /// Fills or frees an entry.
    pub fn set(&mut self, entry: u8, mapping: Option<Mapping>) {
        self.entries[entry as usize] = mapping;
    }

    /// Latches every entry into whose pool a lost store fell.
    pub fn strike(&mut self, address: u64) {
        let holds = |m: &&mut Mapping| (m.base..m.base + m.bytes).contains(&address);
        self.entries.iter_mut().flatten().filter(holds).for_each(|m| m.latched = true);
    }

    /// Frees all entries but those of a mask, which are left to their parked commands.
    pub fn clear(&mut self, keep: u32) {
        for (entry, mapping) in self.entries.iter_mut().enumerate() {
            match mapping {
                Some(mapping) if keep >> entry & 1 == 1 => {
                    (mapping.orphan, mapping.closing, mapping.latched) = (true, true, false);
                }
                _ => *mapping = None,
            }
        }
    }

    /// One bit per entry for which `test` holds.
    pub fn mask(&self, test: impl Fn(&Mapping) -> bool) -> u32 {
        let bit = |(i, e): (usize, &Option<Mapping>)| (e.as_ref().is_some_and(&test) as u32) << i;
        self.entries.iter().enumerate().map(bit).sum()
    }

    /// The line of an entry in the power-fail save.
    pub fn saved(&self, entry: usize) -> SavedMapping {
        let Some(m) = self.entries[entry] else { return SavedMapping::default() };
        SavedMapping {
            flags: IN_USE | (LATCHED * m.latched as u8) | (CLOSING * m.closing as u8) | (ORPHAN * m.orphan as u8),
            thread: m.thread,
            pool: m.pool,
            base: m.base,
            bytes: m.bytes,
            ring: m.ring,
            ring_bytes: m.ring_bytes,
            committed: m.committed,
            reached: m.reached,
            ..SavedMapping::default()
        }
    }

    /// Restores an entry before a replay: not latched and not closing, since the failed log or the
    /// unmap is among the saved items and does it again.
    pub fn restore(&mut self, entry: usize, saved: &SavedMapping) {
        self.entries[entry] = (saved.flags & IN_USE != 0).then_some(Mapping {
            pool: saved.pool,
            thread: saved.thread,
            base: saved.base,
            bytes: saved.bytes,
            ring: saved.ring,
            ring_bytes: saved.ring_bytes,
            committed: saved.committed,
            latched: false,
            closing: saved.flags & ORPHAN != 0,
            orphan: saved.flags & ORPHAN != 0,
            reached: saved.reached,
            heard: [0; MAX_DEVICES],
        });
    }
}
