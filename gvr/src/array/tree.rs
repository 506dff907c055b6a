//! Entries of old versions: a tree of nodes of 64 words for each version, which shares with the version before what did not change.
//!
//! A word of a leaf is a block's entry; of another node it is the number of a node plus 1. 0 is a subtree without entries. A version
//! costs the nodes on the ways to what changed. Only the owner writes nodes; others read them.

use std::collections::VecDeque;

use super::geometry::Geometry;
use crate::error::Result;
use crate::rma::{Place, Rma};

/// Words of a node.
pub const FANOUT: usize = 64;

/// A node.
pub type Node = [u64; FANOUT];

/// Levels that so many blocks need.
pub fn levels(blocks: u64) -> u32 {
    let mut levels = 1;
    let mut reach = FANOUT as u64;
    while reach < blocks {
        reach = reach.saturating_mul(FANOUT as u64);
        levels += 1;
    }
    levels
}

/// Nodes of a tree that is full.
pub fn nodes(blocks: u64) -> u64 {
    let (mut all, mut level) = (0, blocks);
    for _ in 0..levels(blocks) {
        level = level.div_ceil(FANOUT as u64);
        all += level;
    }
    all
}

/// The word of a node at `level` (leaves: 0) on the way to a block.
pub fn word(block: u64, level: u32) -> usize {
    (block >> (6 * level)) as usize % FANOUT
}

/// The owner's side.
#[derive(Debug, Default)]
pub struct Nodes {
    free: Vec<u64>,
    /// Nodes that were never used.
    fresh: u64,
    /// For each version that is kept, the nodes that the next one does not use.
    superseded: VecDeque<Vec<u64>>,
    leaving: Vec<u64>,
}

impl Nodes {
    pub fn new(capacity: u64) -> Nodes {
        Nodes { fresh: capacity, ..Nodes::default() }
    }

    /// Nodes that can be taken.
    pub fn available(&self) -> u64 {
        self.free.len() as u64 + self.fresh
    }

    /// # Panics
    /// If none is left: callers see to it that there are enough.
    fn take(&mut self, capacity: u64) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.fresh = self.fresh.checked_sub(1).expect("a version's tree has the nodes that were looked for");
            capacity - 1 - self.fresh
        })
    }

    /// A version was closed: what it left of the one before goes when that does.
    pub fn close(&mut self) {
        self.superseded.push_back(std::mem::take(&mut self.leaving));
    }

    /// The oldest version is dropped: nodes go that its successor does not use.
    pub fn drop_oldest(&mut self) {
        // The first list is that of what the oldest version replaced, which nobody has any more.
        self.superseded.pop_front();
        if let Some(next) = self.superseded.front_mut() {
            self.free.append(next);
        }
    }
}

/// A tree in the window of its owner.
pub struct Tree<'a> {
    pub rma: &'a dyn Rma,
    pub geometry: &'a Geometry,
    /// The array's place in the window of its owner.
    pub base: Place,
}

impl Tree<'_> {
    /// Reads a node; that of no number is empty.
    pub fn read(&self, number: u64) -> Result<Node> {
        let mut node = [0; FANOUT];
        if number != 0 {
            self.rma.load_many(self.base.plus(self.geometry.node(number - 1)), &mut node)?;
        }
        Ok(node)
    }

    /// Makes the root of a version from that of the one before and what changed: blocks, rising, and their entries.
    pub fn update(&self, nodes: &mut Nodes, root: u64, changed: &[(u64, u64)]) -> Result<u64> {
        if changed.is_empty() {
            return Ok(root);
        }
        let root = self.copy(nodes, root, self.geometry.levels - 1, changed)?;
        // New nodes are read next; none was while they were made.
        self.rma.flush(self.base.rank)?;
        Ok(root)
    }

    fn copy(&self, nodes: &mut Nodes, old: u64, level: u32, changed: &[(u64, u64)]) -> Result<u64> {
        let mut node = self.read(old)?;
        if level == 0 {
            for (block, entry) in changed {
                node[word(*block, 0)] = *entry;
            }
        } else {
            for group in changed.chunk_by(|a, b| word(a.0, level) == word(b.0, level)) {
                let child = &mut node[word(group[0].0, level)];
                *child = self.copy(nodes, *child, level - 1, group)?;
            }
        }
        let new = nodes.take(self.geometry.nodes);
        if old != 0 {
            nodes.leaving.push(old - 1);
        }
        self.rma.replace_many(self.base.plus(self.geometry.node(new)), &node)?;
        Ok(new + 1)
    }

    /// Place of a block's entry in a version's leaf, if it has one.
    pub fn find(&self, root: u64, block: u64) -> Result<Option<Place>> {
        let mut node = root;
        for level in (1..self.geometry.levels).rev() {
            if node == 0 {
                return Ok(None);
            }
            let at = self.base.plus(self.geometry.node(node - 1) + 8 * word(block, level) as u64);
            node = self.rma.load(at)?;
        }
        let leaf = |node: u64| self.base.plus(self.geometry.node(node - 1) + 8 * word(block, 0) as u64);
        Ok((node != 0).then(|| leaf(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_are_as_high_as_their_blocks_need() {
        assert_eq!((levels(1), nodes(1)), (1, 1));
        assert_eq!((levels(64), nodes(64)), (1, 1));
        assert_eq!((levels(65), nodes(65)), (2, 3));
        assert_eq!((levels(4097), nodes(4097)), (3, 65 + 2 + 1));
    }

    #[test]
    fn nodes_of_dropped_versions_are_taken_again() {
        let mut nodes = Nodes::new(4);
        let first = nodes.take(4);
        nodes.close();
        let second = nodes.take(4);
        nodes.leaving.push(first);
        nodes.close();
        assert_ne!(first, second);
        assert_eq!(nodes.available(), 2);
        nodes.drop_oldest();
        assert_eq!(nodes.available(), 3);
        assert_eq!(nodes.take(4), first);
    }
}
