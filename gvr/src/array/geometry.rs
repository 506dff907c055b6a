//! Where the parts of an array lie in a rank's window.
//!
//! | part | words | |
//! |---|---|---|
//! | tail | 1 | logical number of the next block of the log |
//! | pressure | 1 | not 0: a put has found the log full |
//! | opened | 2 | where the current version began in the log, and the oldest block that may be live: for the rank's server |
//! | claims | 1 for 64 blocks | bit set: somebody writes this block's first data of this version |
//! | entries | 1 a block | logical number of the block's data in the current version, 0: nothing was ever written, all zeros |
//! | owners | 1 a block of the log | number of the array's block that lies there, plus 1; 0: nothing |
//! | nodes | 64 each | entries of old versions ([`super::tree`]); with the paper's protocol a table of all entries for each version |
//! | data | | the log: block `l` lies at `l` modulo the log's blocks |
//!
//! A flat array has its data, and one copy of it for each version that is kept.

use super::nodes::{self, FANOUT};
use super::options::{Layout, Options, Protocol};
use crate::error::{Error, Result};

/// Blocks of a log that puts leave free, so that cleaning can move some.
pub const RESERVE: u64 = 8;
/// Offset of the word that a put sets which finds the log full.
pub const PRESSURE: u64 = 8;
/// Offset of the two words that a rank's server reads.
pub const OPENED: u64 = 16;
/// Bytes of a rank's data that no memory has.
const MOST_BYTES: u128 = 1 << 52;
/// Number of the first block: 0 stands for none.
pub const FIRST: u64 = 1;

/// Offsets in bytes from the beginning of the array in a window.
#[derive(Clone, Copy, Debug)]
pub struct Geometry {
    /// Bytes of a block.
    pub block: u64,
    /// Their logarithm, 64 if they are no power of 2.
    shift: u32,
    /// Blocks of a rank's part.
    pub blocks: u64,
    /// Blocks of the log.
    pub capacity: u64,
    /// Nodes that there is room for.
    pub nodes: u64,
    /// Levels of a version's tree.
    pub levels: u32,
    claims_at: u64,
    entries_at: u64,
    owners_at: u64,
    nodes_at: u64,
    data_at: u64,
    /// Bytes of everything.
    pub bytes: u64,
}

impl Geometry {
    /// For a part of `part` bytes.
    ///
    /// # Errors
    /// [`Error::BadOption`] for a log that cannot hold one version and the next.
    pub fn new(part: u64, options: &Options) -> Result<Geometry> {
        options.check()?;
        let blocks = u128::from(part.div_ceil(options.block().max(1)));
        let log = u128::from(options.log_blocks).max((blocks + 1) * u128::from(options.kept() + 2));
        // With what is noted of each block: less than a line.
        let each = if options.layout == Layout::Flat { 1 } else { u128::from(options.block()) + 64 };
        if log * each > MOST_BYTES {
            return Err(Error::option(format!(
                "{part} bytes a rank in {} versions, or a log of {} blocks, are more than any memory has: give less",
                options.kept(),
                options.log_blocks
            )));
        }
        let Layout::Log { block } = options.layout else {
            let part = part.next_multiple_of(64);
            let (capacity, bytes) = (options.kept(), part * (options.kept() + 1));
            let none = Geometry {
                block: part,
                shift: 64,
                blocks: 1,
                capacity,
                nodes: 0,
                levels: 0,
                claims_at: 0,
                entries_at: 0,
                owners_at: 0,
                nodes_at: 0,
                data_at: 0,
                bytes,
            };
            return Ok(none);
        };
        let blocks = part.div_ceil(block);
        let enough = blocks * (options.kept() + 2) + RESERVE;
        let capacity = if options.log_blocks == 0 { enough } else { options.log_blocks };
        if capacity < blocks + RESERVE + 1 {
            return Err(Error::option(format!(
                "a log of {capacity} blocks holds no array of {blocks} blocks a rank: give at least {}, or 0 for as many as are useful",
                blocks + RESERVE + 1
            )));
        }
        let levels = nodes::levels(blocks);
        let nodes = match options.protocol {
            Protocol::Batched => nodes::nodes(blocks) * (options.kept() + 2),
            Protocol::Paper => (blocks * (options.kept() + 1)).div_ceil(FANOUT as u64),
        };
        let mut end = 64;
        let mut take = |words: u64| {
            let start = end;
            end += (8 * words).next_multiple_of(64);
            start
        };
        let (claims_at, entries_at, owners_at) = (take(blocks.div_ceil(64)), take(blocks), take(capacity));
        let (nodes_at, data_at) = (take(nodes * FANOUT as u64), take(capacity * block / 8));
        let shift = if block.is_power_of_two() { block.trailing_zeros() } else { 64 };
        Ok(Geometry {
            block,
            shift,
            blocks,
            capacity,
            nodes,
            levels,
            claims_at,
            entries_at,
            owners_at,
            nodes_at,
            data_at,
            bytes: end,
        })
    }

    /// The block that a byte of a part lies in.
    #[inline]
    pub fn block_of(&self, at: u64) -> u64 {
        at.checked_shr(self.shift).unwrap_or_else(|| at / self.block)
    }

    pub fn claims(&self, word: u64) -> u64 {
        self.claims_at + 8 * word
    }

    pub fn entry(&self, block: u64) -> u64 {
        self.entries_at + 8 * block
    }

    /// Place of a block of the log in the log.
    #[inline]
    pub fn place(&self, logical: u64) -> u64 {
        logical % self.capacity
    }

    pub fn owner(&self, logical: u64) -> u64 {
        self.owners_at + 8 * self.place(logical)
    }

    pub fn node(&self, node: u64) -> u64 {
        self.nodes_at + 8 * FANOUT as u64 * node
    }

    /// With the paper's protocol: a version's entry of a block.
    pub fn old_entry(&self, slot: u64, block: u64) -> u64 {
        self.nodes_at + 8 * (slot * self.blocks + block)
    }

    #[inline]
    pub fn data(&self, logical: u64) -> u64 {
        self.data_at + self.block * self.place(logical)
    }

    /// Of a flat array: the copy that is a version's.
    pub fn copy(&self, version: u64) -> u64 {
        self.block * (1 + version % self.capacity)
    }
}
