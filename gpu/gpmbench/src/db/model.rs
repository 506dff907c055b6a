//! gpDB's table as a processor has it: the oracle.

use super::{ROW, WORDS};

/// The table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    groups: u32,
    /// Of all rows that there are.
    balances: Vec<u64>,
}

/// A row's word before any update: `value_of` of `db.cu`.
pub fn value_of(row: u64, column: u32, groups: u32) -> u32 {
    if column == 0 {
        return row as u32;
    }
    let h = (row as u32).wrapping_mul(WORDS).wrapping_add(column).wrapping_mul(0x85eb_ca6b);
    let h = (h ^ h >> 13).wrapping_mul(0xc2b2_ae35);
    let h = h ^ h >> 16;
    if column == 1 { h % groups } else { h }
}

/// What an update makes of a balance: `updated` of `db.cu`.
pub fn updated(balance: u64, by: u32) -> u64 {
    (balance ^ u64::from(by)).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(by.into())
}

impl Model {
    /// An empty table.
    pub fn new(groups: u32) -> Model {
        Model { groups, balances: Vec::new() }
    }

    /// Rows.
    pub fn rows(&self) -> u64 {
        self.balances.len() as u64
    }

    /// Inserts `n` rows.
    pub fn insert(&mut self, n: u64) {
        let balance = |row| u64::from(value_of(row, 3, self.groups)) << 32 | u64::from(value_of(row, 2, self.groups));
        self.balances.extend((self.rows()..self.rows() + n).map(balance));
    }

    /// Updates a group's balances. Gives how many there are.
    pub fn update(&mut self, group: u32, by: u32) -> u32 {
        let mut count = 0;
        for (row, balance) in (0..).zip(&mut self.balances) {
            if value_of(row, 1, self.groups) == group {
                *balance = updated(*balance, by);
                count += 1;
            }
        }
        count
    }

    /// Whether a table of `count` rows in PM, whose bytes these are, is this one, byte by byte.
    pub fn equals(&self, count: u64, table: &[u8]) -> bool {
        let rows = table.as_chunks::<{ ROW as usize }>().0;
        let same = |(number, bytes): (u64, &[u8; ROW as usize])| {
            let words = bytes.as_chunks::<4>().0.iter().map(|&word| u32::from_le_bytes(word));
            let balance = self.balances[number as usize];
            (0..).zip(words).all(|(column, word)| match column {
                2 => word == balance as u32,
                3 => word == (balance >> 32) as u32,
                _ => word == value_of(number, column, self.groups),
            })
        };
        count == self.rows() && rows.len() as u64 >= count && (0..count).zip(rows).all(same)
    }
}
