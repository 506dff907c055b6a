//! Relations among few things.

/// Most things of a relation.
pub const MOST: usize = 320;

/// A relation: a row of bits for each thing.
#[derive(Clone)]
pub struct Matrix {
    rows: Vec<[u64; MOST / 64]>,
}

impl Matrix {
    /// The empty relation among `size` things, at most [`MOST`].
    pub fn new(size: usize) -> Matrix {
        Matrix { rows: vec![[0; MOST / 64]; size] }
    }

    pub fn add(&mut self, from: usize, to: usize) {
        self.rows[from][to / 64] |= 1 << (to % 64);
    }

    pub fn has(&self, from: usize, to: usize) -> bool {
        self.rows[from][to / 64] >> (to % 64) & 1 == 1
    }

    /// Adds what follows by transitivity.
    pub fn close(&mut self) {
        for through in 0..self.rows.len() {
            let row = self.rows[through];
            for from in 0..self.rows.len() {
                if self.has(from, through) {
                    self.rows[from].iter_mut().zip(row).for_each(|(word, more)| *word |= more);
                }
            }
        }
    }

    /// Whether nothing is related to itself: call it of a closed relation.
    pub fn is_irreflexive(&self) -> bool {
        (0..self.rows.len()).all(|thing| !self.has(thing, thing))
    }
}
