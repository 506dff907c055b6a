//! Claims: which rank writes a block's first data of a version.

use std::ops::Range;

use super::core::{Change, Core};
use super::geometry::PRESSURE;
use crate::error::{Error, Result};

/// Claim words that are changed by one operation.
const AT_ONCE: usize = 16;

/// Blocks that this rank has claimed: runs of neighbours, rising.
#[derive(Debug, Default)]
pub(super) struct Mine {
    runs: Vec<Range<u64>>,
}

impl Mine {
    /// Adds the blocks whose bits are set in a claim word.
    fn add(&mut self, word: u64, mut bits: u64) {
        while bits != 0 {
            let first = bits.trailing_zeros();
            let length = (bits >> first).trailing_ones();
            let run = 64 * word + u64::from(first)..64 * word + u64::from(first + length);
            match self.runs.last_mut() {
                Some(last) if last.end == run.start => last.end = run.end,
                _ => self.runs.push(run),
            }
            bits &= u64::MAX.checked_shl(first + length).unwrap_or(0);
        }
    }

    pub fn runs(&self) -> &[Range<u64>] {
        &self.runs
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub fn count(&self) -> u64 {
        self.runs.iter().map(|run| run.end - run.start).sum()
    }

    pub fn blocks(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs.iter().cloned().flatten()
    }

    pub fn has(&self, block: u64) -> bool {
        self.runs.iter().any(|run| run.contains(&block))
    }
}

impl Core {
    /// Claims the blocks of a range that nobody has claimed in this version.
    pub(super) fn claim(&self, rank: usize, blocks: &Range<u64>) -> Result<Mine> {
        let words = blocks.start / 64..blocks.end.div_ceil(64);
        let mut mine = Mine::default();
        let (mut bits, mut before) = ([0; AT_ONCE], [0; AT_ONCE]);
        for first in words.clone().step_by(AT_ONCE) {
            let count = AT_ONCE.min((words.end - first) as usize);
            for (bits, word) in bits.iter_mut().zip(first..words.end) {
                *bits = mask(blocks, word);
            }
            self.rma.bor_many(self.place(rank, self.geometry.claims(first)), &bits[..count], &mut before[..count])?;
            for ((word, bits), before) in (first..words.end).zip(bits).zip(before) {
                mine.add(word, bits & !before);
            }
        }
        Ok(mine)
    }

    /// Takes claims back.
    fn unclaim(&self, rank: usize, mine: &Mine) -> Result<()> {
        for block in mine.blocks() {
            // The bit is set, and by this rank: taking it away by a subtraction changes no other
            // one.
            let bit = 1_u64 << (block % 64);
            self.rma.fetch_add(self.place(rank, self.geometry.claims(block / 64)), bit.wrapping_neg())?;
        }
        Ok(())
    }

    /// Takes space in a log for blocks that were claimed; the claims are taken back where there is
    /// none.
    pub(super) fn take_space(&self, rank: usize, mine: &Mine) -> Result<u64> {
        let needed = mine.count();
        let limit = self.limit(&self.state.borrow().peers[rank]);
        let tail = self.place(rank, 0);
        // Where it does not fit the tail stays beyond the end: the log is full for those who need
        // less, too, until the next version.
        let start = self.rma.fetch_add(tail, needed)?;
        if start + needed <= limit {
            return Ok(start);
        }
        self.unclaim(rank, mine)?;
        // The owner cleans as much as it can at the next version.
        self.send(rank, PRESSURE, &1_u64.to_le_bytes(), Change::Put)?;
        let free = limit.saturating_sub(start);
        Err(Error::LogFull { rank, needed, free, capacity: self.geometry.capacity })
    }

    /// Waits until all blocks of a range have their data of this version. Where somebody has given
    /// a claim back, as the log was full, it is full for this rank as well.
    pub(super) fn await_published(&self, rank: usize, blocks: &Range<u64>) -> Result<()> {
        let mut entries = vec![0; (blocks.end - blocks.start) as usize];
        let tail = self.state.borrow().peers[rank].tail;
        for _ in 0..self.rma.patience() {
            self.rma.load_many(self.place(rank, self.geometry.entry(blocks.start)), &mut entries)?;
            self.note(rank, blocks.start, &entries);
            let Some(missing) = entries.iter().position(|entry| *entry < tail) else { return Ok(()) };
            self.refuse_unclaimed(rank, blocks.start + missing as u64)?;
            self.rma.pause()?;
        }
        let missing = entries.iter().position(|entry| *entry < tail).unwrap_or(0) as u64;
        let seconds = crate::rma::shm::JOIN.as_secs();
        Err(Error::Unpublished { rank, block: blocks.start + missing, seconds })
    }

    fn refuse_unclaimed(&self, rank: usize, block: u64) -> Result<()> {
        let claims = self.rma.load(self.place(rank, self.geometry.claims(block / 64)))?;
        let entry = self.rma.load(self.place(rank, self.geometry.entry(block)))?;
        let tail = self.state.borrow().peers[rank].tail;
        if claims >> (block % 64) & 1 == 1 || entry >= tail {
            return Ok(());
        }
        Err(Error::LogFull { rank, needed: 1, free: 0, capacity: self.geometry.capacity })
    }
}

/// The bits of claim word `word` that stand for blocks of a range.
fn mask(blocks: &Range<u64>, word: u64) -> u64 {
    let first = blocks.start.saturating_sub(64 * word).min(64);
    let end = (blocks.end - 64 * word).min(64);
    (u64::MAX >> (64 - (end - first))) << first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_cover_the_range() {
        for (blocks, words) in [
            (0..64_u64, vec![u64::MAX]),
            (3..5, vec![0b11000]),
            (63..66, vec![1 << 63, 0b11]),
            (0..128, vec![u64::MAX; 2]),
        ] {
            let word = blocks.start / 64;
            let got: Vec<u64> = (word..blocks.end.div_ceil(64)).map(|word| mask(&blocks, word)).collect();
            assert_eq!(got, words, "{blocks:?}");
        }
    }

    #[test]
    fn claimed_blocks_are_runs() {
        let mut mine = Mine::default();
        mine.add(0, 1 << 63 | 0b1011);
        mine.add(1, u64::MAX);
        mine.add(3, 1);
        assert_eq!(mine.runs(), [0..2, 3..4, 63..128, 192..193]);
        assert_eq!((mine.count(), mine.blocks().count()), (69, 69));
        assert!(mine.has(127) && !mine.has(2) && !mine.has(128));
    }
}
