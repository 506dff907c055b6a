//! The locks of a pool.
//!
//! A lock in a pool is a name: its place. Who holds it is known in this process alone, in a table,
//! so that a lock is free when the pool is opened, whatever the last process held when it died; and
//! so that storing over a lock, or an abort, does not touch its state.
//!
//! All locks of a transaction are taken at its beginning, in rising order of their places, and no
//! transaction begins inside of another one: nobody holds a lock that somebody needs who holds one
//! that he needs.

use super::sync::{Condvar, Mutex, MutexGuard};

/// Parts of the table, so that threads seldom meet.
const SHARDS: usize = 16;

/// How a transaction holds its locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// With others who read.
    Shared,
    /// Alone.
    Alone,
}

/// A lock that somebody holds or waits for.
struct Entry {
    place: u64,
    readers: u32,
    writer: bool,
    /// Threads that wait to hold it alone: no more readers enter.
    writers_waiting: u32,
}

impl Entry {
    fn admits(&self, hold: Hold) -> bool {
        match hold {
            Hold::Shared => !self.writer && self.writers_waiting == 0,
            Hold::Alone => !self.writer && self.readers == 0,
        }
    }

    fn is_idle(&self) -> bool {
        !self.writer && self.readers == 0 && self.writers_waiting == 0
    }
}

#[derive(Default)]
struct Shard {
    entries: Mutex<Vec<Entry>>,
    released: Condvar,
}

/// Who holds which locks.
pub struct LockTable {
    shards: [Shard; SHARDS],
}

impl Default for LockTable {
    fn default() -> LockTable {
        LockTable { shards: std::array::from_fn(|_| Shard::default()) }
    }
}

fn entry(entries: &mut Vec<Entry>, place: u64) -> usize {
    entries.iter().position(|entry| entry.place == place).unwrap_or_else(|| {
        entries.push(Entry { place, readers: 0, writer: false, writers_waiting: 0 });
        entries.len() - 1
    })
}

impl LockTable {
    fn shard(&self, place: u64) -> &Shard {
        // Multiplicative hashing (Knuth, 6.4): neighbours go to different parts.
        &self.shards[(place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize % SHARDS]
    }

    fn lock(shard: &Shard) -> MutexGuard<'_, Vec<Entry>> {
        shard.entries.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self, place: u64, hold: Hold) {
        let shard = self.shard(place);
        let mut entries = Self::lock(shard);
        let mut at = entry(&mut entries, place);
        while !entries[at].admits(hold) {
            entries[at].writers_waiting += u32::from(hold == Hold::Alone);
            entries = shard.released.wait(entries).unwrap_or_else(|poisoned| poisoned.into_inner());
            at = entry(&mut entries, place);
            entries[at].writers_waiting -= u32::from(hold == Hold::Alone);
        }
        match hold {
            Hold::Shared => entries[at].readers += 1,
            Hold::Alone => entries[at].writer = true,
        }
    }

    fn give_back(&self, place: u64, hold: Hold) {
        let shard = self.shard(place);
        let mut entries = Self::lock(shard);
        let at = entry(&mut entries, place);
        match hold {
            Hold::Shared => entries[at].readers -= 1,
            Hold::Alone => entries[at].writer = false,
        }
        if entries[at].is_idle() {
            entries.swap_remove(at);
        }
        drop(entries);
        shard.released.notify_all();
    }

    /// Takes all locks at these places, waiting if need be; they are given back when the guard is
    /// dropped.
    pub fn take_all(&self, mut places: Vec<u64>, hold: Hold) -> Held<'_> {
        places.sort_unstable();
        places.dedup();
        let mut held = Held { table: self, places: Vec::with_capacity(places.len()), hold };
        for place in places {
            self.take(place, hold);
            held.places.push(place);
        }
        held
    }
}

/// Locks that are held.
pub struct Held<'t> {
    table: &'t LockTable,
    places: Vec<u64>,
    hold: Hold,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        for &place in &self.places {
            self.table.give_back(place, self.hold);
        }
    }
}
