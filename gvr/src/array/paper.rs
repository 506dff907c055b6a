//! The protocol as the paper prints it (III-D1b), for comparison.
//!
//! Where the paper is silent: a rank that loses the compare-and-swap of an entry writes where the
//! winner's points to, and its own block of the log stays unused. At most 32 operations go without
//! a flush (IV-A1). For accumulates the paper prints nothing; the block is owned first, then
//! elements are combined where they are.

use std::ops::Range;

use super::core::{Change, Core};
use crate::error::{Error, Result};

/// Operations between flushes.
const WINDOW: usize = 32;

impl Core {
    pub(super) fn put_paper(&self, rank: usize, at: u64, data: &[u8], change: Change) -> Result<()> {
        let blocks = self.blocks_of(at, data.len());
        if let Some(offset) = self.together(rank, &blocks, |counters| counters.put_hits += 1) {
            return self.send(rank, offset + at - blocks.start * self.geometry.block, data, change);
        }
        if self.known(rank, &blocks) {
            self.state.borrow_mut().counters.put_hits += 1;
            self.note_extent(rank, &blocks);
            return self.change_in_place(rank, at, data, change, |_| true);
        }
        self.state.borrow_mut().counters.put_firsts += 1;
        let copied = |block: u64| {
            self.piece(block, at, data.len()).bytes.len() < self.geometry.block as usize
                || matches!(change, Change::Combine(..))
        };
        self.own(rank, &blocks, copied)?;
        self.change_in_place(rank, at, data, change, |_| true)?;
        self.rma.flush(rank)
    }

    pub(super) fn own_paper(&self, rank: usize, blocks: &Range<u64>) -> Result<()> {
        self.own(rank, blocks, |_| true)
    }

    /// Steps 1 to 3: takes space, copies what is not overwritten, and updates entries one by one.
    fn own(&self, rank: usize, blocks: &Range<u64>, copied: impl Fn(u64) -> bool) -> Result<()> {
        let needed = blocks.end - blocks.start;
        let (limit, tail) = {
            let state = self.state.borrow();
            (self.limit(&state.peers[rank]), state.peers[rank].tail)
        };
        let start = self.rma.fetch_add(self.place(rank, 0), needed)?;
        if start + needed > limit {
            let free = limit.saturating_sub(start);
            return Err(Error::LogFull { rank, needed, free, capacity: self.geometry.capacity });
        }
        self.state.borrow_mut().counters.blocks_claimed += needed;
        let mut entries = vec![0; needed as usize];
        self.rma.load_many(self.place(rank, self.geometry.entry(blocks.start)), &mut entries)?;
        let mut buffer = vec![0; self.geometry.block as usize];
        for (block, (old, new)) in blocks.clone().zip(entries.iter().zip(start..)) {
            if *old < tail && copied(block) && *old != 0 {
                self.rma.get(self.place(rank, self.geometry.data(*old)), &mut buffer)?;
                self.rma.put(self.place(rank, self.geometry.data(new)), &buffer)?;
            }
        }
        self.rma.flush(rank)?;
        for (index, (block, new)) in blocks.clone().zip(start..).enumerate() {
            let old = entries[index];
            if old < tail {
                let seen = self.rma.cas(self.place(rank, self.geometry.entry(block)), old, new)?;
                entries[index] = if seen == old { new } else { seen };
            }
            if index % WINDOW == WINDOW - 1 {
                self.rma.flush(rank)?;
            }
        }
        self.note(rank, blocks.start, &entries);
        Ok(())
    }
}
