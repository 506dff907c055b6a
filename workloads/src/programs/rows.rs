//! Tables: rows of a fixed size, one behind the other in one object.

use std::cell::Cell;

use nearpm::Error;

use super::Rows;
use crate::store::{Store, Transaction};

/// Bytes that are filled in a transaction.
const PIECE: usize = 64 << 10;

/// A table's rows: how many, how long, and what is in them at the beginning.
pub struct Table {
    /// Upper bits of its rows' keys in [`Rows`].
    pub number: u64,
    /// Bytes of a row.
    pub row_bytes: usize,
    /// Rows.
    pub rows: usize,
    /// Rows hold something at the beginning; otherwise zeros.
    pub populated: bool,
}

impl Table {
    /// Bytes of the table.
    pub fn bytes(&self) -> u64 {
        (self.row_bytes * self.rows) as u64
    }

    /// Key of a row.
    pub fn key(&self, row: usize) -> u64 {
        self.number << 48 | row as u64
    }

    /// Offset of a row of the table at `base`.
    pub fn at(&self, base: u64, row: usize) -> u64 {
        base + (row * self.row_bytes) as u64
    }

    /// A row at the beginning: its number, a zeroed word for what transactions count, and words
    /// that tell rows apart.
    pub fn first(&self, row: usize) -> Vec<u8> {
        let mut bytes = vec![0; self.row_bytes];
        if self.populated {
            for (i, word) in bytes.chunks_exact_mut(8).enumerate() {
                let value = if i == 1 { 0 } else { self.key(row).rotate_left(7 * i as u32) };
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
        bytes
    }

    /// Makes the table; gives its offset.
    pub fn create(&self, store: &dyn Store) -> Result<u64, Error> {
        let base = Cell::new(0);
        store.transaction(&mut |tx| {
            base.set(tx.alloc(self.bytes().next_multiple_of(64))?);
            Ok(())
        })?;
        let together = (PIECE / self.row_bytes).max(1);
        for from in (0..self.rows).step_by(together) {
            let rows = from..(from + together).min(self.rows);
            let bytes: Vec<u8> = rows.flat_map(|row| self.first(row)).collect();
            store.transaction(&mut |tx| tx.write(self.at(base.get(), from), &bytes))?;
        }
        Ok(base.get())
    }

    /// Adds the rows at the beginning.
    pub fn initial(&self, rows: &mut Rows) {
        rows.extend((0..self.rows).map(|row| (self.key(row), self.first(row))));
    }

    /// Reads all rows.
    pub fn contents(&self, tx: &mut dyn Transaction, base: u64, rows: &mut Rows) -> Result<(), Error> {
        for row in 0..self.rows {
            let mut bytes = vec![0; self.row_bytes];
            tx.read(self.at(base, row), &mut bytes)?;
            rows.insert(self.key(row), bytes);
        }
        Ok(())
    }
}

/// A word of a row.
pub fn word(row: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(row[at..at + 8].try_into().expect("eight bytes"))
}

/// Sets a word of a row.
pub fn set_word(row: &mut [u8], at: usize, value: u64) {
    row[at..at + 8].copy_from_slice(&value.to_le_bytes());
}
