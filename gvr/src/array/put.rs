//! Puts into a log.
//!
//! The first put of a block in a version (`docs/gvr.md`, protocol):
//!
//! 1. one atomic *or* on the claim words of the range: bits that were not set before are this rank's;
//! 2. one atomic addition to the tail for all of them: neighbours in the log;
//! 3. what the put does not cover of the first and the last block is read from the version before; data and owners are put; flush;
//! 4. all entries are published; flush.
//!
//! Data comes before pointers, so that whoever sees an entry sees its data. Blocks that others have claimed are waited for and written
//! where they are, as are those that have their data already.

use std::ops::Range;

use super::core::{Change, Core, Counters, EXTENTS, Extent};
use super::geometry::PRESSURE;
use super::options::Fault;
use crate::error::{Error, Result};

/// The part of a run that lies in a block: where in the block, and which bytes of the run.
pub(super) struct Piece {
    pub inside: u64,
    pub bytes: Range<usize>,
}

impl Core {
    /// The blocks of bytes of a part.
    pub(super) fn blocks_of(&self, at: u64, bytes: usize) -> Range<u64> {
        self.geometry.block_of(at)..self.geometry.block_of(at + bytes as u64 + self.geometry.block - 1)
    }

    pub(super) fn piece(&self, block: u64, at: u64, bytes: usize) -> Piece {
        let start = (block * self.geometry.block).max(at);
        let end = ((block + 1) * self.geometry.block).min(at + bytes as u64);
        Piece { inside: start - block * self.geometry.block, bytes: (start - at) as usize..(end - at) as usize }
    }

    /// Whether this rank knows where all of the blocks are in this version.
    pub(super) fn known(&self, rank: usize, blocks: &Range<u64>) -> bool {
        let state = self.state.borrow();
        let peer = &state.peers[rank];
        let cached = peer.cache.get(blocks.start as usize..blocks.end as usize);
        cached.is_some_and(|entries| entries.iter().all(|entry| *entry >= peer.tail))
    }

    /// Notes entries of neighbouring blocks.
    pub(super) fn note(&self, rank: usize, first: u64, entries: &[u64]) {
        let blocks = self.geometry.blocks as usize;
        let cache = &mut self.state.borrow_mut().peers[rank].cache;
        if cache.is_empty() {
            cache.resize(blocks, 0);
        }
        cache[first as usize..][..entries.len()].copy_from_slice(entries);
    }

    /// Where blocks of this version begin, if it is known that they lie together. Counts by `count` if they do.
    #[inline]
    pub(super) fn together(&self, rank: usize, blocks: &Range<u64>, count: fn(&mut Counters)) -> Option<u64> {
        let state = &mut *self.state.borrow_mut();
        let peer = &state.peers[rank];
        let extent = peer.extents.get(slot(blocks.start))?;
        let known =
            extent.block == blocks.start && extent.count >= blocks.end - blocks.start && extent.entry >= peer.tail;
        known.then(|| {
            count(&mut state.counters);
            extent.offset
        })
    }

    /// Remembers that blocks of this version lie together, if they do.
    pub(super) fn note_extent(&self, rank: usize, blocks: &Range<u64>) {
        let state = &mut *self.state.borrow_mut();
        let peer = &mut state.peers[rank];
        let Some(cached) = peer.cache.get(blocks.start as usize..blocks.end as usize) else { return };
        let (first, count) = (cached[0], cached.len() as u64);
        let together = first >= peer.tail && cached.iter().zip(first..).all(|(entry, wanted)| *entry == wanted);
        if !together || self.geometry.place(first) + count > self.geometry.capacity {
            return;
        }
        peer.extents.resize(EXTENTS, Extent::default());
        let (block, offset) = (blocks.start, self.geometry.data(first));
        peer.extents[slot(block)] = Extent { block, count, entry: first, offset };
    }

    pub(super) fn put_log(&self, rank: usize, at: u64, data: &[u8], change: Change) -> Result<()> {
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
        let mine = self.claim(rank, &blocks)?;
        if !mine.is_empty() {
            self.write_first(rank, &mine, at, data, change)?;
            if mine.len() as u64 == blocks.end - blocks.start {
                self.note_extent(rank, &blocks);
                return Ok(());
            }
        }
        self.await_published(rank, &blocks)?;
        self.change_in_place(rank, at, data, change, |block| mine.binary_search(&block).is_err())
    }

    /// Claims the blocks of a range that nobody has claimed in this version.
    fn claim(&self, rank: usize, blocks: &Range<u64>) -> Result<Vec<u64>> {
        let words = blocks.start / 64..blocks.end.div_ceil(64);
        let bits: Vec<u64> = words.clone().map(|word| mask(blocks, word)).collect();
        let mut before = vec![0; bits.len()];
        self.rma.bor_many(self.place(rank, self.geometry.claims(words.start)), &bits, &mut before)?;
        let mut mine = Vec::with_capacity((blocks.end - blocks.start) as usize);
        for ((word, bits), before) in words.zip(bits).zip(before) {
            let mut won = bits & !before;
            while won != 0 {
                mine.push(64 * word + u64::from(won.trailing_zeros()));
                won &= won - 1;
            }
        }
        Ok(mine)
    }

    /// Takes claims back.
    fn unclaim(&self, rank: usize, mine: &[u64]) -> Result<()> {
        for block in mine {
            // The bit is set, and by this rank: taking it away by a subtraction changes no other one.
            let bit = 1_u64 << (block % 64);
            self.rma.fetch_add(self.place(rank, self.geometry.claims(block / 64)), bit.wrapping_neg())?;
        }
        Ok(())
    }

    /// Takes space in a log for blocks that were claimed; the claims are taken back where there is none.
    fn take_space(&self, rank: usize, mine: &[u64]) -> Result<u64> {
        let needed = mine.len() as u64;
        let limit = self.limit(&self.state.borrow().peers[rank]);
        let tail = self.place(rank, 0);
        // So that a log that is full stays so for those who need less, too.
        let start = if self.rma.load(tail)? + needed > limit { limit } else { self.rma.fetch_add(tail, needed)? };
        if start + needed <= limit {
            return Ok(start);
        }
        self.unclaim(rank, mine)?;
        // The owner cleans as much as it can at the next version.
        self.send(rank, PRESSURE, &1_u64.to_le_bytes(), Change::Put)?;
        let free = limit.saturating_sub(start);
        Err(Error::LogFull { rank, needed, free, capacity: self.geometry.capacity })
    }

    fn write_first(&self, rank: usize, mine: &[u64], at: u64, data: &[u8], change: Change) -> Result<()> {
        let start = self.take_space(rank, mine)?;
        self.state.borrow_mut().counters.blocks_claimed += mine.len() as u64;
        let entries: Vec<u64> = (start..start + mine.len() as u64).collect();
        if self.options.planted(Fault::PointerBeforeData) {
            self.publish(rank, mine, &entries)?;
        }
        let block = self.geometry.block;
        let covered = mine[0] * block >= at
            && (mine[mine.len() - 1] + 1) * block <= at + data.len() as u64
            && mine[mine.len() - 1] - mine[0] + 1 == mine.len() as u64
            && matches!(change, Change::Put);
        if covered {
            let first = (mine[0] * block - at) as usize;
            self.put_blocks(rank, start, &data[first..][..mine.len() * block as usize])?;
        } else {
            let image = self.first_image(rank, mine, at, data, change)?;
            self.put_blocks(rank, start, &image)?;
        }
        self.put_owners(rank, start, mine)?;
        if !self.options.planted(Fault::NoFlush) {
            self.rma.flush(rank)?;
        }
        self.publish(rank, mine, &entries)
    }

    /// What blocks hold after their first put: the version before, changed by the data.
    fn first_image(&self, rank: usize, mine: &[u64], at: u64, data: &[u8], change: Change) -> Result<Vec<u8>> {
        let size = self.geometry.block as usize;
        let mut image = vec![0; mine.len() * size];
        for (image, block) in image.chunks_exact_mut(size).zip(mine) {
            let piece = self.piece(*block, at, data.len());
            let partly = piece.bytes.len() < size || matches!(change, Change::Combine(..));
            if partly && !self.options.planted(Fault::NoEdges) {
                // Nobody else changes this entry, as the block is claimed.
                let entry = self.rma.load(self.place(rank, self.geometry.entry(*block)))?;
                if entry != 0 {
                    self.rma.get(self.place(rank, self.geometry.data(entry)), image)?;
                }
            }
            let to = &mut image[piece.inside as usize..][..piece.bytes.len()];
            match change {
                Change::Put => to.copy_from_slice(&data[piece.bytes]),
                Change::Combine(kind, op) => kind.combine_bytes(op, to, &data[piece.bytes]),
            }
        }
        Ok(image)
    }

    /// Puts neighbouring blocks into a log, which may wrap around its end.
    pub(super) fn put_blocks(&self, rank: usize, start: u64, data: &[u8]) -> Result<()> {
        let here = (self.geometry.capacity - self.geometry.place(start)) * self.geometry.block;
        let (first, rest) = data.split_at(data.len().min(here as usize));
        self.send(rank, self.geometry.data(start), first, Change::Put)?;
        if rest.is_empty() { Ok(()) } else { self.send(rank, self.geometry.data(0), rest, Change::Put) }
    }

    fn put_owners(&self, rank: usize, start: u64, mine: &[u64]) -> Result<()> {
        let owners: Vec<u64> = mine.iter().map(|block| block + 1).collect();
        let here = (self.geometry.capacity - self.geometry.place(start)).min(owners.len() as u64) as usize;
        self.rma.replace_many(self.place(rank, self.geometry.owner(start)), &owners[..here])?;
        if here < owners.len() {
            self.rma.replace_many(self.place(rank, self.geometry.owner(0)), &owners[here..])?;
        }
        Ok(())
    }

    fn publish(&self, rank: usize, mine: &[u64], entries: &[u64]) -> Result<()> {
        let mut done = 0;
        for run in mine.chunk_by(|a, b| a + 1 == *b) {
            let entries = &entries[done..][..run.len()];
            self.rma.replace_many(self.place(rank, self.geometry.entry(run[0])), entries)?;
            done += run.len();
        }
        self.rma.flush(rank)?;
        done = 0;
        for run in mine.chunk_by(|a, b| a + 1 == *b) {
            self.note(rank, run[0], &entries[done..][..run.len()]);
            done += run.len();
        }
        Ok(())
    }

    /// Waits until all blocks of a range have their data of this version. Where somebody has given a claim back, as the log was full, it
    /// is full for this rank as well.
    fn await_published(&self, rank: usize, blocks: &Range<u64>) -> Result<()> {
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

    /// Writes those blocks of a run that `concerned` names where they are in this version.
    pub(super) fn change_in_place(
        &self,
        rank: usize,
        at: u64,
        data: &[u8],
        change: Change,
        concerned: impl Fn(u64) -> bool,
    ) -> Result<()> {
        let mut pending: Option<(u64, Range<usize>)> = None;
        for block in self.blocks_of(at, data.len()).filter(|block| concerned(*block)) {
            let entry = self.state.borrow().peers[rank].cache[block as usize];
            let piece = self.piece(block, at, data.len());
            let offset = self.geometry.data(entry) + piece.inside;
            pending = Some(match pending {
                Some((to, bytes)) if to + bytes.len() as u64 == offset && bytes.end == piece.bytes.start => {
                    (to, bytes.start..piece.bytes.end)
                }
                Some((to, bytes)) => {
                    self.send(rank, to, &data[bytes], change)?;
                    (offset, piece.bytes)
                }
                None => (offset, piece.bytes),
            });
        }
        pending.map_or(Ok(()), |(to, bytes)| self.send(rank, to, &data[bytes], change))
    }

    /// Makes sure that a block has its data of this version, and gives where the byte `at` of the part lies.
    pub(super) fn own_block(&self, rank: usize, at: u64) -> Result<u64> {
        let blocks = self.blocks_of(at, 1);
        if !self.known(rank, &blocks) {
            if self.is_paper() {
                self.own_paper(rank, &blocks)?;
            } else {
                let mine = self.claim(rank, &blocks)?;
                if mine.is_empty() {
                    self.await_published(rank, &blocks)?;
                } else {
                    // Nothing is changed: the block is what it was.
                    self.write_first(rank, &mine, at, &[], Change::Put)?;
                }
            }
        }
        let entry = self.state.borrow().peers[rank].cache[blocks.start as usize];
        Ok(self.geometry.data(entry) + at % self.geometry.block)
    }
}

/// Where the extent of a block is remembered: those of equal steps do not meet.
fn slot(block: u64) -> usize {
    (block ^ block / EXTENTS as u64) as usize % EXTENTS
}

/// The bits of claim word `word` that stand for blocks of a range.
fn mask(blocks: &Range<u64>, word: u64) -> u64 {
    let first = blocks.start.saturating_sub(64 * word).min(64);
    let end = (blocks.end - 64 * word).min(64);
    (u64::MAX >> (64 - (end - first))) << first
}

#[cfg(test)]
mod tests {
    #[test]
    fn masks_cover_the_range() {
        for (blocks, words) in [
            (0..64_u64, vec![u64::MAX]),
            (3..5, vec![0b11000]),
            (63..66, vec![1 << 63, 0b11]),
            (0..128, vec![u64::MAX; 2]),
        ] {
            let word = blocks.start / 64;
            let got: Vec<u64> = (word..blocks.end.div_ceil(64)).map(|word| super::mask(&blocks, word)).collect();
            assert_eq!(got, words, "{blocks:?}");
        }
    }
}
