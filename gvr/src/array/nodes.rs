//! Nodes of the trees that hold old versions: how many blocks need, and which of them are free.

use std::collections::VecDeque;

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
    pub fn take(&mut self, capacity: u64) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.fresh = self.fresh.checked_sub(1).expect("a version's tree has the nodes that were looked for");
            capacity - 1 - self.fresh
        })
    }

    /// The version that is being made does not use this node of the one before.
    pub fn leave(&mut self, node: u64) {
        self.leaving.push(node);
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
        nodes.leave(first);
        nodes.close();
        assert_ne!(first, second);
        assert_eq!(nodes.available(), 2);
        nodes.drop_oldest();
        assert_eq!(nodes.available(), 3);
        assert_eq!(nodes.take(4), first);
    }
}
