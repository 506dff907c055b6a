//! Reading blocks of closed versions, by any handle of a rank: what a thread beside the rank's own
//! seals versions by.

use std::sync::atomic::AtomicU64;

use super::core::Core;
use super::geometry::{FIRST, Geometry};
use super::tree::Tree;
use crate::error::Result;
use crate::rma::{Place, Rma};

/// Where the blocks of an array lie.
#[derive(Clone, Copy)]
pub(crate) struct Blocks {
    geometry: Geometry,
    base: u64,
}

impl Blocks {
    /// Bytes of a block.
    pub fn size(&self) -> usize {
        self.geometry.block as usize
    }

    fn place(&self, rank: usize, offset: u64) -> Place {
        Place { rank, offset: self.base + offset }
    }

    /// Reads a block of a rank's log.
    pub fn read(&self, rma: &dyn Rma, rank: usize, logical: u64, data: &mut [u8]) -> Result<()> {
        rma.get(self.place(rank, self.geometry.data(logical)), data)
    }

    /// Reads a block of a rank's log into words.
    pub fn read_words(&self, rma: &dyn Rma, rank: usize, logical: u64, words: &[AtomicU64]) -> Result<()> {
        rma.get_words(self.place(rank, self.geometry.data(logical)), words)
    }

    /// Reads a word of a block of a rank's log.
    pub fn word(&self, rma: &dyn Rma, rank: usize, logical: u64, inside: u64) -> Result<u64> {
        rma.load(self.place(rank, self.geometry.data(logical) + inside))
    }

    /// Where a block lies in the version with a root; 0: it was never written.
    pub fn find(&self, rma: &dyn Rma, rank: usize, root: u64, block: u64) -> Result<u64> {
        let tree = Tree { rma, geometry: &self.geometry, base: self.place(rank, 0) };
        tree.find(root, block)?.map_or(Ok(0), |place| rma.load(place))
    }

    /// Reads a block as of the version with a root.
    pub fn read_below(&self, rma: &dyn Rma, rank: usize, root: u64, block: u64, data: &mut [u8]) -> Result<()> {
        match self.find(rma, rank, root, block)? {
            0 => data.fill(0),
            logical => self.read(rma, rank, logical, data)?,
        }
        Ok(())
    }
}

impl Core {
    pub(crate) fn stored(&self) -> Blocks {
        Blocks { geometry: self.geometry, base: self.base }
    }

    /// Root of a rank's tree of the newest closed version; 0: none.
    pub(crate) fn newest_root(&self, rank: usize) -> u64 {
        self.state.borrow().versions.back().map_or(0, |newest| newest.roots[rank])
    }

    /// Is told that so many blocks will soon be added to this rank's log, which is new.
    pub(crate) fn expect(&self, blocks: u64) {
        let blocks = blocks.min(self.geometry.capacity - self.geometry.place(FIRST));
        let place = self.place(self.me(), self.geometry.data(FIRST));
        self.rma.expect(place.offset, blocks * self.geometry.block);
    }

    /// Where a block that changed in the version that was just closed lies now: cleaning may have
    /// moved it.
    pub(crate) fn where_now(&self, rank: usize, changed: &mut super::Changed) -> Result<()> {
        if changed.logical < self.state.borrow().peers[rank].head {
            changed.logical = self.stored().find(&*self.rma, rank, self.newest_root(rank), changed.block)?;
        }
        Ok(())
    }

    /// Notes checksums of blocks that are changed no more, and lie where `changed` says.
    pub(crate) fn note_given_sums(&self, changed: &[super::Changed], given: &[u32]) {
        let sums = &mut self.state.borrow_mut().sums;
        if sums.is_empty() {
            return;
        }
        for (changed, sum) in changed.iter().zip(given) {
            sums[self.geometry.place(changed.logical) as usize] = *sum;
        }
    }
}
