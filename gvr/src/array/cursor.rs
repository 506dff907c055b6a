//! Reading old versions.

use std::cell::RefCell;
use std::collections::HashMap;

use super::core::{Core, Version};
use super::nodes::{self, Node};
use super::tree::Tree;
use crate::error::{Error, Result};

/// A version that is read. Its blocks and nodes stay as long as a rank has it pinned.
pub(crate) struct Old {
    version: Version,
    nodes: RefCell<HashMap<(usize, u64), Box<Node>>>,
    /// Heads of the logs when nodes were read: cleaning changes entries.
    heads: RefCell<Vec<u64>>,
}

impl Core {
    /// Begins to read a version, and holds on to it.
    pub fn pin(&self, number: u64) -> Result<Old> {
        let state = &mut *self.state.borrow_mut();
        let Some(version) = state.versions.iter().find(|version| version.number == number).cloned() else {
            let number_of = |version: Option<&Version>| version.map(|version| version.number);
            let oldest = number_of(state.versions.front()).unwrap_or(1);
            let newest = number_of(state.versions.back()).unwrap_or(0);
            return Err(Error::NoVersion { version: number, oldest, newest });
        };
        *state.pins.entry(number).or_default() += 1;
        Ok(Old { version, nodes: RefCell::default(), heads: RefCell::default() })
    }

    /// Reads it no more.
    pub fn unpin(&self, old: &Old) {
        let pins = &mut self.state.borrow_mut().pins;
        if let Some(count) = pins.get_mut(&old.version.number) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&old.version.number);
            }
        }
    }

    /// As [`Core::read`], of an old version that the caller has pinned.
    pub fn read_old(&self, cursor: &Old, lo: &[u64], hi: &[u64], data: &mut [u8]) -> Result<()> {
        self.noted(self.runs(lo, hi, data.len()).and_then(|runs| {
            runs.iter()
                .try_for_each(|run| self.read_old_run(cursor, run.rank, run.at, &mut data[run.buffer..][..run.bytes]))
        }))
    }

    pub(super) fn read_old_run(&self, old: &Old, rank: usize, at: u64, data: &mut [u8]) -> Result<()> {
        if !self.is_log() {
            return self.rma.get(self.place(rank, self.geometry.copy(old.version.number) + at), data);
        }
        let blocks = self.blocks_of(at, data.len());
        let entries: Vec<u64> = if self.is_paper() {
            let mut entries = vec![0; (blocks.end - blocks.start) as usize];
            let slot = old.version.roots[rank] - 1;
            self.rma.load_many(self.place(rank, self.geometry.old_entry(slot, blocks.start)), &mut entries)?;
            entries
        } else {
            blocks.clone().map(|block| self.old_entry(old, rank, block)).collect::<Result<_>>()?
        };
        self.read_blocks(rank, at, data, &entries)
    }

    /// A block's entry in an old version.
    fn old_entry(&self, old: &Old, rank: usize, block: u64) -> Result<u64> {
        self.forget_moved(old);
        let tree = Tree { rma: &*self.rma, geometry: &self.geometry, base: self.place(rank, 0) };
        let mut word = old.version.roots[rank];
        let mut nodes = old.nodes.borrow_mut();
        for level in (0..self.geometry.levels).rev() {
            if word == 0 {
                return Ok(0);
            }
            let node = match nodes.entry((rank, word)) {
                std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::hash_map::Entry::Vacant(new) => new.insert(Box::new(tree.read(word)?)),
            };
            word = node[nodes::word(block, level)];
        }
        Ok(word)
    }

    /// Where a log was cleaned since, entries may have changed.
    fn forget_moved(&self, old: &Old) {
        let state = self.state.borrow();
        let now = || state.peers.iter().map(|peer| peer.head);
        let mut heads = old.heads.borrow_mut();
        if !heads.iter().copied().eq(now()) {
            *heads = now().collect();
            old.nodes.borrow_mut().clear();
        }
    }

    /// Makes this rank's part of the current version what it was in an old one, by puts of what
    /// differs.
    pub fn restore_part(&self, old: &Old) -> Result<()> {
        let me = self.me();
        let part = self.shape.part(me);
        let bytes = (part.end - part.start) * self.kind.bytes() as u64;
        let step = if self.is_log() { self.geometry.block } else { 1 << 16 };
        let (mut then, mut now) = (vec![0; step as usize], vec![0; step as usize]);
        let mut at = 0;
        while at < bytes {
            let length = step.min(bytes - at) as usize;
            self.read_old_run(old, me, at, &mut then[..length])?;
            self.read_run(me, at, &mut now[..length])?;
            if then[..length] != now[..length] {
                self.change_run(me, at, &then[..length], super::core::Change::Put)?;
            }
            at += length as u64;
        }
        self.wait()
    }
}
