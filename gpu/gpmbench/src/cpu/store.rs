//! gpKVS on a processor: each thread has a part of the sets.

use nearpm_gpu::persist;

use super::{UndoLog, part_of, store_word, word};
use crate::kvs::{PAIR, SET, WAYS, mix};

/// A store in memory that persists: a word {number of the batch, whether it is active}, logs of the
/// threads, sets.
pub struct Store<'m> {
    memory: &'m mut [u8],
    set_bits: u32,
    threads: usize,
    /// Bytes of a thread's log.
    log: usize,
}

const WORD: usize = 64;

impl<'m> Store<'m> {
    /// Bytes for a store of 2^`set_bits` sets, `threads` threads and batches of `batch` SETs.
    pub fn bytes(set_bits: u32, threads: usize, batch: usize) -> usize {
        // Keys may all be of one thread.
        WORD + threads * UndoLog::bytes_for(batch) + ((SET as usize) << set_bits)
    }

    /// A store in memory that is zero or has one of the same sizes; a batch that was active is
    /// undone.
    pub fn open(memory: &'m mut [u8], set_bits: u32, threads: usize, batch: usize) -> Store<'m> {
        let mut store = Store { memory, set_bits, threads, log: UndoLog::bytes_for(batch) };
        let state = word(store.memory, 0);
        if state & 1 == 1 {
            store.undo(state >> 1);
            store_word(store.memory, state & !1);
        }
        store
    }

    fn undo(&mut self, batch: u64) {
        let (logs, table) = self.memory[WORD..].split_at_mut(self.threads * self.log);
        for log in logs.chunks(self.log) {
            for (place, old) in UndoLog::newest_first(log, batch) {
                set_pair(&mut table[place as usize * PAIR as usize..], (old[0], old[1]));
            }
        }
    }

    /// The table.
    pub fn table(&self) -> &[u8] {
        &self.memory[WORD + self.threads * self.log..]
    }

    /// Sets pairs, all or none, durably.
    pub fn set(&mut self, pairs: &[(u64, u64)]) {
        let batch = self.begin();
        self.store(pairs, batch);
        store_word(self.memory, batch << 1);
    }

    fn begin(&mut self) -> u64 {
        let batch = (word(self.memory, 0) >> 1) + 1;
        store_word(self.memory, batch << 1 | 1);
        batch
    }

    /// The same without its end, as a crash leaves it.
    pub fn set_without_commit(&mut self, pairs: &[(u64, u64)]) {
        let batch = self.begin();
        self.store(pairs, batch);
    }

    fn store(&mut self, pairs: &[(u64, u64)], batch: u64) {
        let (bits, threads) = (self.set_bits, self.threads);
        let sets = 1usize << bits;
        let share = part_of(sets, threads);
        let set_of = move |key: u64| if bits == 0 { 0 } else { (mix(key) >> (64 - bits)) as usize };
        // Each thread brings a part of the batch to the threads whose sets they are, in the batch's
        // order.
        let sorted: Vec<Vec<Vec<(usize, u64, u64)>>> = std::thread::scope(|scope| {
            let sort = |part: &[(u64, u64)]| {
                let mut by_owner = vec![Vec::new(); threads];
                part.iter().for_each(|&(key, value)| {
                    let set = set_of(key);
                    by_owner[set / share].push((set % share, key, value));
                });
                by_owner
            };
            let parts = pairs.chunks(part_of(pairs.len(), threads));
            let workers: Vec<_> = parts.map(|part| scope.spawn(move || sort(part))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).collect()
        });
        let (logs, table) = self.memory[WORD..].split_at_mut(threads * self.log);
        std::thread::scope(|scope| {
            let owners = logs.chunks_mut(self.log).zip(table.chunks_mut(share * SET as usize)).enumerate();
            for (owner, (log, sets)) in owners {
                let sorted = &sorted;
                scope.spawn(move || {
                    let first = (owner * share * WAYS) as u64;
                    let mut log = UndoLog::new(log, batch);
                    for &(set, key, value) in sorted.iter().flat_map(|by_owner| &by_owner[owner]) {
                        let set_bytes = &mut sets[set * SET as usize..][..SET as usize];
                        let way = way_of(set_bytes, key);
                        let place = &mut set_bytes[way * PAIR as usize..][..PAIR as usize];
                        log.insert(first + (set * WAYS + way) as u64, [word(place, 0), word(place, 1)]);
                        set_pair(place, (key, value));
                    }
                });
            }
        });
    }
}

fn set_pair(place: &mut [u8], (key, value): (u64, u64)) {
    place[..8].copy_from_slice(&key.to_le_bytes());
    place[8..16].copy_from_slice(&value.to_le_bytes());
    persist(&place[..PAIR as usize]);
}

/// As `way_of` of `kvs.cu`.
fn way_of(set: &[u8], key: u64) -> usize {
    let find = |wanted: u64| (0..WAYS).find(|&way| word(set, 2 * way) == wanted);
    find(key).or_else(|| find(0)).unwrap_or(mix(key) as u32 as usize % WAYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kvs::{Model, batch_of};

    #[test]
    fn batches_are_there_or_not() {
        for (set_bits, threads, keys) in [(4, 1, 1 << 40), (4, 3, 1 << 40), (0, 2, 9), (2, 4, 40)] {
            let mut memory = vec![0; Store::bytes(set_bits, threads, 100)];
            let mut model = Model::new(set_bits);
            let mut store = Store::open(&mut memory, set_bits, threads, 100);
            for number in 1..4 {
                store.set(&batch_of(number, 100, keys));
                model.apply(&batch_of(number, 100, keys));
                assert!(model.equals(store.table()));
            }
            store.set_without_commit(&batch_of(4, 100, keys));
            assert!(!model.equals(store.table()));
            let store = Store::open(&mut memory, set_bits, threads, 100);
            assert!(model.equals(store.table()), "{set_bits} bits, {threads} threads");
        }
    }
}
