//! Puts into a log.
//!
//! The first put of a block in a version (`docs/gvr.md`, protocol):
//!
//! 1. one atomic *or* on the claim words of the range: bits that were not set before are this
//!    rank's;
//! 2. one atomic addition to the tail for all of them: neighbours in the log;
//! 3. what the put does not cover of the first and the last block is read from the version before;
//!    data and owners are put; flush;
//! 4. all entries are published; flush.
//!
//! Data comes before pointers, so that whoever sees an entry sees its data. Blocks that others have
//! claimed are waited for and written where they are, as are those that have their data already.

use std::ops::Range;

use super::claim::Mine;
use super::core::{Change, Core, Counters, EXTENTS, Extent};
use super::options::Fault;
use crate::error::Result;

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

    /// Where in its block a byte of a part is.
    #[inline]
    pub(super) fn inside(&self, at: u64) -> u64 {
        at - self.geometry.block_of(at) * self.geometry.block
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

    /// Where blocks of this version begin, if it is known that they lie together. Counts by `count`
    /// if they do.
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
            if mine.count() == blocks.end - blocks.start {
                self.note_extent(rank, &blocks);
                return Ok(());
            }
        }
        self.await_published(rank, &blocks)?;
        self.change_in_place(rank, at, data, change, |block| !mine.has(block))
    }

    fn write_first(&self, rank: usize, mine: &Mine, at: u64, data: &[u8], change: Change) -> Result<()> {
        let start = self.take_space(rank, mine)?;
        self.state.borrow_mut().counters.blocks_claimed += mine.count();
        let entries: Vec<u64> = (start..start + mine.count()).collect();
        if self.options.planted(Fault::PointerBeforeData) {
            self.publish(rank, mine, &entries)?;
        }
        match self.covered(mine, at, data, change) {
            Some(data) => self.put_blocks(rank, start, data)?,
            None => self.put_blocks(rank, start, &self.first_image(rank, mine, at, data, change)?)?,
        }
        self.put_owners(rank, start, mine)?;
        if !self.options.planted(Fault::NoFlush) {
            self.rma.order(rank)?;
        }
        self.publish(rank, mine, &entries)
    }

    /// The bytes of blocks that a put covers whole, if these follow each other in it.
    fn covered<'d>(&self, mine: &Mine, at: u64, data: &'d [u8], change: Change) -> Option<&'d [u8]> {
        let ([run], Change::Put) = (mine.runs(), change) else { return None };
        let first = (run.start * self.geometry.block).checked_sub(at)? as usize;
        data.get(first..)?.get(..((run.end - run.start) * self.geometry.block) as usize)
    }

    /// What blocks hold after their first put: the version before, changed by the data.
    fn first_image(&self, rank: usize, mine: &Mine, at: u64, data: &[u8], change: Change) -> Result<Vec<u8>> {
        let size = self.geometry.block as usize;
        let mut image = vec![0; mine.count() as usize * size];
        for (image, block) in image.chunks_exact_mut(size).zip(mine.blocks()) {
            let piece = self.piece(block, at, data.len());
            let partly = piece.bytes.len() < size || matches!(change, Change::Combine(..));
            if partly && !self.options.planted(Fault::NoEdges) {
                // Nobody else changes this entry, as the block is claimed.
                let entry = self.rma.load(self.place(rank, self.geometry.entry(block)))?;
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

    fn put_owners(&self, rank: usize, start: u64, mine: &Mine) -> Result<()> {
        let mut owners = Vec::with_capacity(mine.count() as usize);
        mine.runs().iter().for_each(|run| owners.extend(run.start + 1..run.end + 1));
        let here = (self.geometry.capacity - self.geometry.place(start)).min(owners.len() as u64) as usize;
        self.rma.replace_many(self.place(rank, self.geometry.owner(start)), &owners[..here])?;
        if here < owners.len() {
            self.rma.replace_many(self.place(rank, self.geometry.owner(0)), &owners[here..])?;
        }
        Ok(())
    }

    fn publish(&self, rank: usize, mine: &Mine, entries: &[u64]) -> Result<()> {
        let mut left = entries;
        for run in mine.runs() {
            let (entries, rest) = left.split_at((run.end - run.start) as usize);
            self.rma.replace_many(self.place(rank, self.geometry.entry(run.start)), entries)?;
            left = rest;
        }
        self.rma.order(rank)?;
        left = entries;
        for run in mine.runs() {
            let (entries, rest) = left.split_at((run.end - run.start) as usize);
            self.note(rank, run.start, entries);
            left = rest;
        }
        Ok(())
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
        let mut state = self.state.borrow_mut();
        state.peers[rank].touched = true;
        let blocks = self.blocks_of(at, data.len());
        let entries = &state.peers[rank].cache[blocks.start as usize..blocks.end as usize];
        for (offset, bytes) in self.pieces(at, data.len(), entries, concerned) {
            let Some(offset) = offset else { continue };
            self.change_at(self.place(rank, offset), &data[bytes], change)?;
        }
        Ok(())
    }

    /// Where bytes of a part lie in the log: pieces that lie together, and offsets of their first
    /// bytes, none for blocks without an entry. `entries` begin with that of the first byte's
    /// block; those of blocks that `concerned` does not name are left out.
    pub(super) fn pieces<'a>(
        &'a self,
        at: u64,
        bytes: usize,
        entries: &'a [u64],
        concerned: impl Fn(u64) -> bool + 'a,
    ) -> impl Iterator<Item = (Option<u64>, Range<usize>)> + 'a {
        let (first, lead) = (self.geometry.block_of(at), self.inside(at));
        let mut next = 0;
        std::iter::from_fn(move || {
            while next < entries.len() && !concerned(first + next as u64) {
                next += 1;
            }
            let (start, entry) = (next, *entries.get(next)?);
            // A division for each piece, not for each block.
            let most = if entry == 0 { u64::MAX } else { self.geometry.capacity - self.geometry.place(entry) };
            next += 1;
            while next < entries.len()
                && ((next - start) as u64) < most
                && entries[next] == if entry == 0 { 0 } else { entry + (next - start) as u64 }
                && concerned(first + next as u64)
            {
                next += 1;
            }
            let from = (start as u64 * self.geometry.block).saturating_sub(lead) as usize;
            let end = bytes.min((next as u64 * self.geometry.block - lead) as usize);
            let inside = if start == 0 { lead } else { 0 };
            Some(((entry != 0).then(|| self.geometry.data(entry) + inside), from..end))
        })
    }

    /// Makes sure that a block has its data of this version, and gives where the byte `at` of the
    /// part lies.
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
        Ok(self.geometry.data(entry) + self.inside(at))
    }
}

/// Where the extent of a block is remembered: those of equal steps do not meet.
fn slot(block: u64) -> usize {
    (block ^ (block / EXTENTS as u64)) as usize % EXTENTS
}
