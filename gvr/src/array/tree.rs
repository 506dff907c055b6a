//! Entries of old versions: a tree of nodes of 64 words for each version, which shares with the
//! version before what did not change.
//!
//! A word of a leaf is a block's entry; of another node it is the number of a node plus 1. 0 is a
//! subtree without entries. A version costs the nodes on the ways to what changed. Only the owner
//! writes nodes; others read them.

use super::geometry::Geometry;
use super::nodes::{FANOUT, Node, Nodes, word};
use crate::error::Result;
use crate::rma::{Place, Rma};

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

    /// Makes the root of a version from that of the one before and what changed: blocks, rising,
    /// and their entries.
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
            nodes.leave(old - 1);
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
            // Nodes are written by their owner alone, in `version_inc`.
            node = self.rma.load_still(at)?;
        }
        let leaf = |node: u64| self.base.plus(self.geometry.node(node - 1) + 8 * word(block, 0) as u64);
        Ok((node != 0).then(|| leaf(node)))
    }
}
