//! Gets from a log.
//!
//! An entry of the current version never changes again in it, so that one that is known is good
//! without a look. For others the data is read where it was last while the entries are read (paper,
//! III-D1c): if they are what was known, the data is right, as blocks of older versions do not
//! change and are not used again before all ranks have met.

use std::ops::Range;

use super::core::Core;
use crate::error::Result;

impl Core {
    pub(super) fn get_log(&self, rank: usize, at: u64, data: &mut [u8]) -> Result<()> {
        let blocks = self.blocks_of(at, data.len());
        if let Some(offset) = self.together(rank, &blocks, |counters| counters.get_hits += 1) {
            return self.rma.get(self.place(rank, offset + at - blocks.start * self.geometry.block), data);
        }
        if self.known(rank, &blocks) {
            self.state.borrow_mut().counters.get_hits += 1;
            self.note_extent(rank, &blocks);
            let state = self.state.borrow();
            let entries = &state.peers[rank].cache[blocks.start as usize..blocks.end as usize];
            return self.read_blocks(rank, at, data, entries);
        }
        let mut entries = std::mem::take(&mut self.state.borrow_mut().entries);
        entries.resize((blocks.end - blocks.start) as usize, 0);
        let done = self.get_looked_up(rank, at, data, &blocks, &mut entries);
        self.state.borrow_mut().entries = entries;
        done
    }

    /// Gets by entries that are read, into `entries`, and at the same time by those that were
    /// known.
    fn get_looked_up(
        &self,
        rank: usize,
        at: u64,
        data: &mut [u8],
        blocks: &Range<u64>,
        entries: &mut [u64],
    ) -> Result<()> {
        self.state.borrow_mut().counters.get_misses += 1;
        let place = self.place(rank, self.geometry.entry(blocks.start));
        if let Some(offset) = self.guess(rank, at, blocks) {
            let get = self.rma.begin_get(self.place(rank, offset), data.len())?;
            self.rma.load_many(place, entries)?;
            if self.state.borrow().peers[rank].cache[blocks.start as usize..blocks.end as usize] == *entries {
                return self.rma.end_get(get, data);
            }
            self.rma.drop_get(get)?;
        } else {
            self.rma.load_many(place, entries)?;
        }
        self.note(rank, blocks.start, entries);
        match self.offset_of_run(entries) {
            Some(offset) => self.rma.get(self.place(rank, offset + self.inside(at)), data),
            None => self.read_blocks(rank, at, data, entries),
        }
    }

    /// Where a run lay when its entries were last seen, if it lay in one piece and its place was
    /// not used again since.
    fn guess(&self, rank: usize, at: u64, blocks: &Range<u64>) -> Option<u64> {
        if !self.rma.reads_ahead() {
            return None;
        }
        let state = self.state.borrow();
        let peer = &state.peers[rank];
        let cached = peer.cache.get(blocks.start as usize..blocks.end as usize)?;
        let is_live = *cached.first()? >= peer.head;
        if is_live { self.offset_of_run(cached).map(|offset| offset + self.inside(at)) } else { None }
    }

    /// Where the first of blocks lies that were written and lie in one piece, by their entries.
    fn offset_of_run(&self, entries: &[u64]) -> Option<u64> {
        let first = *entries.first().filter(|first| **first != 0)?;
        // Without a branch for each.
        let differences = entries.iter().zip(first..).fold(0, |all, (entry, wanted)| all | (entry ^ wanted));
        let whole = self.geometry.place(first) + entries.len() as u64 <= self.geometry.capacity;
        (differences == 0 && whole).then(|| self.geometry.data(first))
    }

    /// Reads bytes whose blocks are where entries say, the first of which is that of the first
    /// byte's block; blocks that were never written are zeros.
    pub(super) fn read_blocks(&self, rank: usize, at: u64, data: &mut [u8], entries: &[u64]) -> Result<()> {
        let mut pieces = self.pieces(at, data.len(), entries, |_| true);
        let Some((offset, bytes)) = pieces.next() else { return Ok(()) };
        let begin = |offset: Option<u64>, bytes: usize| {
            offset.map(|offset| self.rma.begin_get(self.place(rank, offset), bytes)).transpose()
        };
        let first = (begin(offset, bytes.len())?, bytes);
        let mut rest = Vec::new();
        for (offset, bytes) in pieces {
            rest.push((begin(offset, bytes.len())?, bytes));
        }
        for (get, bytes) in std::iter::once(first).chain(rest) {
            match get {
                Some(get) => self.rma.end_get(get, &mut data[bytes])?,
                None => data[bytes].fill(0),
            }
        }
        Ok(())
    }
}
