//! gpDB on a processor: each thread has a part of the rows.

use nearpm_gpu::persist;

use super::{UndoLog, part_of, store_word, word};
use crate::db::{ROW, updated};

/// A table in memory that persists: a word {number of the update, whether it is active}, the number
/// of rows, logs of the threads, rows.
pub struct Table<'m> {
    memory: &'m mut [u8],
    threads: usize,
    /// Bytes of a thread's log.
    log: usize,
}

/// Places of the two words: a line of the processor's caches each.
const COUNT: usize = 64;
const LOGS: usize = 128;

impl<'m> Table<'m> {
    /// Bytes for `rows` rows, of which an update changes one in `share`, and a part of a thread has
    /// no more than twice that.
    pub fn bytes(rows: u64, threads: usize, share: u64) -> usize {
        LOGS + threads * Table::log_bytes(rows, threads, share) + (ROW * rows) as usize
    }

    fn log_bytes(rows: u64, threads: usize, share: u64) -> usize {
        UndoLog::bytes_for(2 * part_of(rows as usize, threads).div_ceil(share as usize) + 64)
    }

    /// A table in memory that is zero or has one of the same sizes; an update that was active is
    /// undone.
    pub fn open(memory: &'m mut [u8], rows: u64, threads: usize, share: u64) -> Table<'m> {
        let log = Table::log_bytes(rows, threads, share);
        let table = Table { memory, threads, log };
        let state = word(table.memory, 0);
        if state & 1 == 1 {
            let (logs, rows) = table.memory[LOGS..].split_at_mut(threads * log);
            for (row, old) in logs.chunks(log).flat_map(|log| UndoLog::newest_first(log, state >> 1)) {
                set_balance(&mut rows[row as usize * ROW as usize..], old[0]);
            }
            store_word(table.memory, state & !1);
        }
        table
    }

    /// Rows.
    pub fn len(&self) -> u64 {
        word(self.memory, COUNT / 8)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the rows, and of what there is room for.
    pub fn rows(&self) -> &[u8] {
        &self.memory[LOGS + self.threads * self.log..]
    }

    /// Inserts rows, all or none, durably: they count with the number of rows.
    pub fn insert(&mut self, rows: &[u8]) {
        let first = self.len();
        let to = &mut self.memory[LOGS + self.threads * self.log + (ROW * first) as usize..][..rows.len()];
        let part = part_of(rows.len() / ROW as usize, self.threads) * ROW as usize;
        std::thread::scope(|scope| {
            for (to, from) in to.chunks_mut(part).zip(rows.chunks(part)) {
                scope.spawn(move || {
                    to.copy_from_slice(from);
                    persist(to);
                });
            }
        });
        store_word(&mut self.memory[COUNT..], first + rows.len() as u64 / ROW);
    }

    /// Updates the balances of a group's rows, all or none, durably. Gives how many there are.
    pub fn update(&mut self, group: u32, by: u32) -> u32 {
        let batch = (word(self.memory, 0) >> 1) + 1;
        store_word(self.memory, batch << 1 | 1);
        let found = self.store_balances(group, by, batch);
        store_word(self.memory, batch << 1);
        found
    }

    /// The same without its end, as a crash leaves it.
    pub fn update_without_commit(&mut self, group: u32, by: u32) {
        let batch = (word(self.memory, 0) >> 1) + 1;
        store_word(self.memory, batch << 1 | 1);
        self.store_balances(group, by, batch);
    }

    fn store_balances(&mut self, group: u32, by: u32, batch: u64) -> u32 {
        let (count, threads) = (self.len() as usize, self.threads);
        let (logs, rows) = self.memory[LOGS..].split_at_mut(threads * self.log);
        let share = part_of(count, threads);
        std::thread::scope(|scope| {
            let parts = rows[..count * ROW as usize].chunks_mut(share * ROW as usize);
            let update = |number: usize, rows: &mut [u8], log: &mut [u8]| {
                let mut log = UndoLog::new(log, batch);
                let mut found = 0;
                for (row, bytes) in rows.chunks_mut(ROW as usize).enumerate() {
                    if (word(bytes, 0) >> 32) as u32 == group {
                        let old = word(bytes, 1);
                        log.insert((number * share + row) as u64, [old, 0]);
                        set_balance(bytes, updated(old, by));
                        found += 1;
                    }
                }
                found
            };
            let workers: Vec<_> = parts
                .zip(logs.chunks_mut(self.log))
                .enumerate()
                .map(|(number, (rows, log))| scope.spawn(move || update(number, rows, log)))
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p))).sum()
        })
    }
}

fn set_balance(row: &mut [u8], balance: u64) {
    row[8..16].copy_from_slice(&balance.to_le_bytes());
    persist(&row[8..16]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Model, value_of};

    fn rows_from(first: u64, n: u64) -> Vec<u8> {
        let words = (first..first + n).flat_map(|row| (0..16).map(move |column| value_of(row, column, 4)));
        words.flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn updates_are_there_or_not() {
        for threads in [1, 3] {
            let mut memory = vec![0; Table::bytes(300, threads, 4)];
            let mut model = Model::new(4);
            let mut table = Table::open(&mut memory, 300, threads, 4);
            for first in [0, 100, 200] {
                table.insert(&rows_from(first, 100));
                model.insert(100);
                assert_eq!(table.update(2, first as u32), model.update(2, first as u32));
                assert!(model.equals(table.len(), table.rows()));
            }
            table.update_without_commit(1, 7);
            assert!(!model.equals(table.len(), table.rows()));
            let table = Table::open(&mut memory, 300, threads, 4);
            assert!(model.equals(table.len(), table.rows()), "{threads} threads");
        }
    }
}
