//! Cleaning of a rank's log, by its owner, while all ranks wait in `version_inc`.
//!
//! The log is a ring: blocks from `head` on may be live, and `tail` is where the next one goes.
//! Cleaning moves the head: a block that no version refers to is skipped; one that is live is
//! copied to the tail, and every entry that names it is changed. A logical number is never used
//! twice, so that what other ranks remember of it is found to be old by a comparison with the head.
//! A version does about as much cleaning as it has added blocks, so that its cost stays that of
//! what changed.

use super::close::Changed;
use super::core::Core;
use super::geometry::{PRESSURE, RESERVE};
use super::tree::Tree;
use crate::error::{Error, Result};
use crate::rma::Place;

/// Blocks that are looked at in a version beside those that it added.
const LEAST: u64 = 64;

impl Core {
    /// Makes room, when less is free than one rewrite of the whole part needs.
    pub(super) fn clean(&self, added: u64) -> Result<()> {
        let me = self.me();
        let (mut tail, mut head) = {
            let state = self.state.borrow();
            (state.peers[me].tail, state.peers[me].head)
        };
        let capacity = self.geometry.capacity;
        let free = |head: u64, tail: u64| (head + capacity - RESERVE).saturating_sub(tail);
        let pressure = self.rma.load(self.place(me, PRESSURE))? != 0;
        if pressure {
            self.rma.replace_many(self.place(me, PRESSURE), &[0])?;
        }
        let (mut looked, most) = (0, if pressure { u64::MAX } else { 2 * added + LEAST });
        let oldest = tail;
        while head < oldest && free(head, tail) < self.geometry.blocks {
            // What the last version needed is made free in any case, if it can be.
            if looked >= most && free(head, tail) > added {
                break;
            }
            tail += u64::from(self.move_block(head, tail)?);
            head += 1;
            looked += 1;
        }
        self.rma.replace_many(self.place(me, 0), &[tail])?;
        let mut state = self.state.borrow_mut();
        (state.peers[me].tail, state.peers[me].head) = (tail, head);
        Ok(())
    }

    /// Entries that name a block of the log, in the current version and in old ones.
    fn references(&self, block: u64, logical: u64) -> Result<Vec<Place>> {
        let me = self.me();
        let mut found = Vec::new();
        let current = self.place(me, self.geometry.entry(block));
        if self.rma.load_still(current)? == logical {
            found.push(current);
        }
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(me, 0) };
        let state = self.state.borrow();
        let mut roots: Vec<u64> = state.versions.iter().map(|version| version.roots[me]).chain([state.root]).collect();
        roots.dedup();
        for root in roots {
            let Some(place) = tree.find(root, block)? else { continue };
            if self.rma.load_still(place)? == logical && !found.contains(&place) {
                found.push(place);
            }
        }
        Ok(found)
    }

    /// Moves a block to the tail if it is live. Tells whether it did.
    fn move_block(&self, logical: u64, tail: u64) -> Result<bool> {
        let me = self.me();
        let owner = self.rma.load_still(self.place(me, self.geometry.owner(logical)))?;
        self.rma.replace_many(self.place(me, self.geometry.owner(logical)), &[0])?;
        self.rma.flush(me)?;
        if owner == 0 {
            return Ok(false);
        }
        let references = self.references(owner - 1, logical)?;
        if references.is_empty() {
            return Ok(false);
        }
        let mut data = vec![0; self.geometry.block as usize];
        self.rma.get(self.place(me, self.geometry.data(logical)), &mut data)?;
        self.rma.put(self.place(me, self.geometry.data(tail)), &data)?;
        self.rma.replace_many(self.place(me, self.geometry.owner(tail)), &[owner])?;
        for place in references {
            self.rma.replace_many(place, &[tail])?;
        }
        self.rma.flush(me)?;
        let state = &mut *self.state.borrow_mut();
        state.counters.blocks_moved += 1;
        if !state.sums.is_empty() {
            // With its checksum, not a new one: damage must not be moved and called sound.
            let sum = state.sums[self.geometry.place(logical) as usize];
            state.sums[self.geometry.place(tail) as usize] = sum;
        }
        Ok(true)
    }

    /// Notes the checksums of blocks that are changed no more.
    pub(super) fn note_sums(&self, changed: &[Changed]) -> Result<()> {
        if self.state.borrow().sums.is_empty() {
            return Ok(());
        }
        let mut data = vec![0; self.geometry.block as usize];
        for changed in changed {
            self.rma.get(self.place(self.me(), self.geometry.data(changed.logical)), &mut data)?;
            self.state.borrow_mut().sums[self.geometry.place(changed.logical) as usize] = crc32c::crc32c(&data);
        }
        Ok(())
    }

    /// Looks at every block of a closed version in this rank's log, and mends what is damaged by
    /// `other`, which gives a block's bytes as of a version, from another copy. Gives how many
    /// blocks were looked at and how many mended. Only between a `version_inc` and the next put of
    /// any rank.
    ///
    /// # Errors
    /// [`Error::Damaged`] where no copy is whole.
    pub(crate) fn scrub(&self, name: &str, other: &dyn Fn(u64, u64) -> Result<Option<Vec<u8>>>) -> Result<(u64, u64)> {
        let me = self.me();
        let versions = self.versions();
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(me, 0) };
        let (mut looked, mut mended) = (0, 0);
        if self.state.borrow().sums.is_empty() {
            return Ok((0, 0));
        }
        let mut data = vec![0; self.geometry.block as usize];
        let mut done = std::collections::BTreeSet::new();
        for version in versions.iter().rev() {
            for block in 0..self.geometry.blocks {
                let place = tree.find(version.roots[me], block)?;
                let logical = place.map_or(Ok(0), |place| self.rma.load(place))?;
                if logical == 0 || !done.insert(logical) {
                    continue;
                }
                looked += 1;
                let at = self.place(me, self.geometry.data(logical));
                self.rma.get(at, &mut data)?;
                let sum = self.state.borrow().sums[self.geometry.place(logical) as usize];
                if crc32c::crc32c(&data) == sum {
                    continue;
                }
                let copy = other(version.number, block)?.filter(|copy| crc32c::crc32c(copy) == sum);
                let Some(copy) = copy else {
                    return Err(Error::Damaged {
                        array: name.to_owned(),
                        rank: me,
                        block,
                        version: version.number,
                        place: "memory",
                    });
                };
                self.rma.put(at, &copy)?;
                self.rma.flush(me)?;
                mended += 1;
            }
        }
        Ok((looked, mended))
    }

    /// A block of a rank as of a version, if that is kept.
    pub(crate) fn block_of(&self, rank: usize, version: u64, block: u64) -> Result<Option<Vec<u8>>> {
        let root = {
            let state = self.state.borrow();
            let Some(version) = state.versions.iter().find(|known| known.number == version) else { return Ok(None) };
            version.roots[rank]
        };
        let mut data = vec![0; self.geometry.block as usize];
        self.stored().read_below(&*self.rma, rank, root, block, &mut data)?;
        Ok(Some(data))
    }

    /// Writes what a block of a version was over what is damaged, if it fits the checksum. Tells
    /// whether it did.
    pub(crate) fn mend(&self, version: u64, block: u64, data: &[u8]) -> Result<bool> {
        let me = self.me();
        let root = self.versions().into_iter().find(|known| known.number == version).map_or(0, |v| v.roots[me]);
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(me, 0) };
        let logical = tree.find(root, block)?.map_or(Ok(0), |place| self.rma.load(place))?;
        let sum = self.state.borrow().sums.get(self.geometry.place(logical) as usize).copied();
        if logical == 0 || sum != Some(crc32c::crc32c(data)) {
            return Ok(false);
        }
        self.rma.put(self.place(me, self.geometry.data(logical)), data)?;
        self.rma.flush(me)?;
        Ok(true)
    }

    /// Changes a byte of a block that this rank holds, behind the array's back: damage for tests of
    /// scrubs.
    #[doc(hidden)]
    pub fn damage(&self, version: u64, block: u64, byte: u64, bits: u8) -> Result<bool> {
        let me = self.me();
        let Some(version) = self.versions().into_iter().find(|known| known.number == version) else { return Ok(false) };
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(me, 0) };
        let place = tree.find(version.roots[me], block)?;
        let logical = place.map_or(Ok(0), |place| self.rma.load(place))?;
        if logical == 0 {
            return Ok(false);
        }
        let at = self.place(me, self.geometry.data(logical) + byte % self.geometry.block);
        let mut data = [0];
        self.rma.get(at, &mut data)?;
        self.rma.put(at, &[data[0] ^ bits])?;
        self.rma.flush(me)?;
        Ok(true)
    }

    /// Bytes that old versions take beside the current one on this rank: blocks that the current
    /// version does not use, and nodes. Of flat arrays and of our log: the paper's protocol does
    /// not note which versions use a block, and gives 0.
    pub fn version_bytes(&self) -> Result<u64> {
        let me = self.me();
        if !self.is_log() {
            return Ok(self.versions().len() as u64 * self.shape.part_bytes());
        }
        let (tail, head) = {
            let state = self.state.borrow();
            (state.peers[me].tail, state.peers[me].head)
        };
        let mut blocks = 0;
        for logical in head..tail {
            let owner = self.rma.load_still(self.place(me, self.geometry.owner(logical)))?;
            if owner == 0 {
                continue;
            }
            let current = self.place(me, self.geometry.entry(owner - 1));
            let references = self.references(owner - 1, logical)?;
            blocks += u64::from(!references.is_empty() && !references.contains(&current));
        }
        let nodes = self.geometry.nodes - self.state.borrow().nodes.available();
        Ok(blocks * self.geometry.block + nodes * 8 * super::nodes::FANOUT as u64)
    }
}
