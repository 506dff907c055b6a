//! What each process has of the card: mapping entries, pools, the lock of the table of pools.
//!
//! Invariants: no (pool, thread) has two owners, and no byte of the card's memory lies in pools or
//! mappings of two processes.

use std::ops::Range;

use nearpm_driver::card::PoolMapping;
use nearpm_interface::geometry::{COMMAND_PAGES, MAP_ENTRIES, POOLS_BASE};
use nearpm_interface::sharing::outcome;
use nearpm_interface::status::Status;

/// Mapping entries that a process can have, so that nobody takes another one's.
pub const ENTRIES: usize = MAP_ENTRIES / (COMMAND_PAGES - 1);

/// Number of a process among those that share the card, from 1. Its commands go to the card's page
/// of that number.
pub type Seat = u8;

struct Pool {
    seat: Seat,
    pool: u32,
    range: Range<u64>,
}

/// A mapping in the card's table.
struct Entry {
    seat: Seat,
    pool: u32,
    thread: u16,
    range: Range<u64>,
    /// Its bit in the card's masks of entries.
    bit: u16,
}

/// See the module.
#[derive(Default)]
pub struct Claims {
    pools: Vec<Pool>,
    entries: Vec<Entry>,
    table: Option<Seat>,
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// A range of the memory that pools may have, or `None`.
fn in_memory(start: u64, bytes: u64, memory: u64) -> Option<Range<u64>> {
    let end = start.checked_add(bytes)?;
    (POOLS_BASE <= start && start < end && end <= memory).then_some(start..end)
}

impl Claims {
    /// What others have: identifier and range.
    fn of_others(&self, seat: Seat) -> impl Iterator<Item = (u32, &Range<u64>)> {
        let pools = self.pools.iter().map(|pool| (pool.seat, pool.pool, &pool.range));
        let entries = self.entries.iter().map(|entry| (entry.seat, entry.pool, &entry.range));
        pools.chain(entries).filter(move |of| of.0 != seat).map(|(_, pool, range)| (pool, range))
    }

    /// Claims a pool for a process; an outcome of [`nearpm_interface::sharing`].
    pub fn claim(&mut self, seat: Seat, pool: u32, base: u64, bytes: u64, memory: u64) -> u32 {
        let Some(range) = in_memory(base, bytes, memory) else { return outcome::REFUSED };
        if self.of_others(seat).any(|(other, there)| other == pool || overlap(there, &range)) {
            return outcome::TAKEN;
        }
        if self.pools.len() >= MOST_POOLS {
            return outcome::REFUSED;
        }
        self.give_back(seat, pool);
        self.pools.push(Pool { seat, pool, range });
        outcome::DONE
    }

    /// Gives a pool back.
    pub fn give_back(&mut self, seat: Seat, pool: u32) {
        self.pools.retain(|claimed| (claimed.seat, claimed.pool) != (seat, pool));
    }

    /// Takes the lock of the table of pools; an outcome of [`nearpm_interface::sharing`].
    pub fn lock(&mut self, seat: Seat) -> u32 {
        if *self.table.get_or_insert(seat) == seat { outcome::DONE } else { outcome::TAKEN }
    }

    /// Gives the lock back, if the process has it.
    pub fn unlock(&mut self, seat: Seat) {
        self.table.take_if(|holder| *holder == seat);
    }

    /// Whether a process may have a mapping.
    ///
    /// # Errors
    /// The status of the refusal.
    pub fn may_map(&self, seat: Seat, mapping: &PoolMapping, memory: u64) -> Result<(), Status> {
        let range = in_memory(mapping.base, mapping.bytes, memory).ok_or(Status::OutOfRange)?;
        if self.entries.iter().any(|entry| (entry.pool, entry.thread) == (mapping.pool, mapping.thread)) {
            return Err(Status::MapExists);
        }
        if self.of_others(seat).any(|(pool, there)| pool == mapping.pool || overlap(there, &range)) {
            return Err(Status::OutOfRange);
        }
        let own = self.entries.iter().filter(|entry| entry.seat == seat).count();
        if own < ENTRIES { Ok(()) } else { Err(Status::MapFull) }
    }

    /// Notes a mapping that the card has made, with its bit in the card's masks.
    pub fn mapped(&mut self, seat: Seat, mapping: &PoolMapping, bit: u16) {
        let range = mapping.base..mapping.base + mapping.bytes;
        self.entries.push(Entry { seat, pool: mapping.pool, thread: mapping.thread, range, bit });
    }

    /// Notes that the card has removed a mapping.
    pub fn unmapped(&mut self, pool: u32, thread: u16) {
        self.entries.retain(|entry| (entry.pool, entry.thread) != (pool, thread));
    }

    /// Whether a (pool, thread) is mapped by a process.
    pub fn has(&self, seat: Seat, pool: u32, thread: u16) -> bool {
        self.entries.iter().any(|entry| (entry.seat, entry.pool, entry.thread) == (seat, pool, thread))
    }

    /// The mappings of a process.
    pub fn mappings(&self, seat: Seat) -> Vec<(u32, u16)> {
        self.entries.iter().filter(|entry| entry.seat == seat).map(|entry| (entry.pool, entry.thread)).collect()
    }

    /// Bits of a process in the card's masks of mapping entries.
    pub fn mask(&self, seat: Seat) -> u16 {
        self.entries.iter().filter(|entry| entry.seat == seat).fold(0, |mask, entry| mask | entry.bit)
    }

    /// Takes pools and lock from a process whose mappings are gone.
    pub fn leave(&mut self, seat: Seat) {
        debug_assert!(self.mappings(seat).is_empty(), "its mappings have gone");
        self.pools.retain(|pool| pool.seat != seat);
        self.unlock(seat);
    }
}

/// Pools that can be claimed at a time: more than a card has.
const MOST_POOLS: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = POOLS_BASE + (16 << 20);

    fn mapping(pool: u32, thread: u16, base: u64, bytes: u64) -> PoolMapping {
        PoolMapping { pool, thread, base: POOLS_BASE + base, bytes, ring: 0, ring_bytes: 4096, committed: 0 }
    }

    #[test]
    fn what_one_process_has_another_cannot_map_or_claim() {
        let mut claims = Claims::default();
        assert_eq!(claims.claim(1, 7, POOLS_BASE, 8192, MEMORY), outcome::DONE);
        assert_eq!(claims.claim(1, 7, POOLS_BASE, 8192, MEMORY), outcome::DONE, "its own again");
        assert_eq!(claims.claim(2, 7, POOLS_BASE + 8192, 4096, MEMORY), outcome::TAKEN, "the identifier");
        assert_eq!(claims.claim(2, 8, POOLS_BASE + 4096, 8192, MEMORY), outcome::TAKEN, "a part of the range");
        let may = |claims: &Claims, seat, mapping| claims.may_map(seat, &mapping, MEMORY);
        assert_eq!(may(&claims, 2, mapping(9, 0, 8191, 2)), Err(Status::OutOfRange));
        assert_eq!(may(&claims, 2, mapping(7, 0, 1 << 20, 64)), Err(Status::OutOfRange));
        assert_eq!(may(&claims, 2, mapping(9, 0, 8192, 64)), Ok(()));
        claims.mapped(2, &mapping(9, 0, 8192, 64), 4);
        assert_eq!(claims.claim(1, 9, POOLS_BASE + (1 << 20), 64, MEMORY), outcome::TAKEN, "mapped and not claimed");
        assert_eq!(may(&claims, 1, mapping(9, 0, 1 << 20, 64)), Err(Status::MapExists));
        assert!(claims.has(2, 9, 0) && !claims.has(1, 9, 0) && !claims.has(2, 9, 1));
        assert_eq!((claims.mask(1), claims.mask(2)), (0, 4));
        claims.unmapped(9, 0);
        claims.leave(2);
        claims.give_back(1, 7);
        assert_eq!(claims.claim(2, 7, POOLS_BASE, 8192, MEMORY), outcome::DONE);
    }

    #[test]
    fn ranges_outside_the_pools_of_the_card_are_refused() {
        let mut claims = Claims::default();
        for (base, bytes) in
            [(0, 4096), (POOLS_BASE - 64, 128), (MEMORY - 64, 128), (u64::MAX, 2), (POOLS_BASE, 0), (MEMORY, 64)]
        {
            assert_eq!(claims.claim(1, 1, base, bytes, MEMORY), outcome::REFUSED, "{base:#x}");
            let mapping = PoolMapping { base, bytes, ..mapping(1, 0, 0, 0) };
            assert_eq!(claims.may_map(1, &mapping, MEMORY), Err(Status::OutOfRange), "{base:#x}");
        }
    }

    #[test]
    fn entries_are_shared_out_and_the_lock_has_one_holder() {
        let mut claims = Claims::default();
        for thread in 0..ENTRIES as u16 {
            let mapping = mapping(1, thread, 0, 4096);
            claims.may_map(1, &mapping, MEMORY).unwrap();
            claims.mapped(1, &mapping, 1 << thread);
        }
        assert_eq!(claims.may_map(1, &mapping(1, 99, 0, 4096), MEMORY), Err(Status::MapFull));
        assert_eq!(claims.may_map(2, &mapping(2, 0, 4096, 4096), MEMORY), Ok(()));
        assert_eq!((claims.lock(1), claims.lock(1), claims.lock(2)), (outcome::DONE, outcome::DONE, outcome::TAKEN));
        claims.unlock(2);
        assert_eq!(claims.lock(2), outcome::TAKEN);
        claims.unlock(1);
        assert_eq!(claims.lock(2), outcome::DONE);
    }
}
