//! How an array is made.

use crate::error::{Error, Result};

/// How an array lies in the memory of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// One buffer; a version is a copy of it. What everything is compared to.
    Flat,
    /// A log of blocks of so many bytes, a multiple of 8 (paper, III-B). A version costs what
    /// changed.
    Log {
        /// Bytes of a block.
        block: u64,
    },
}

/// How blocks of a log are first written in a version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// One atomic for the claims of up to 64 blocks, one for their space; data first, then all
    /// entries at once.
    #[default]
    Batched,
    /// As the paper prints it (III-D1b): entries by one compare-and-swap each, the data last. A
    /// version copies all entries, and nothing is cleaned. It is the baseline of measurements: a
    /// crash or reader in between sees blocks without data.
    Paper,
}

/// How ranks reach each other's parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// By one-sided operations alone (paper, III-D1).
    #[default]
    Rma,
    /// By messages to a server, a thread of each rank that does everything (III-D2). For
    /// comparison: each access is a round trip, and wakes a thread.
    Message,
}

/// How many versions can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// The newest ones; at least 1.
    Last(u64),
}

/// A fault that is planted, for the tests that must find it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The entry is published before the block has its data (the paper's order).
    PointerBeforeData,
    /// The data is not flushed before the entry is published.
    NoFlush,
    /// Space is used again while a cursor of another rank reads it.
    NoEpochs,
    /// A cut is called committed before all ranks have sealed it.
    CommitBeforeAllreduce,
    /// The edges of a block are not copied from the version before.
    NoEdges,
    /// Claims of a version are not taken back in the next.
    StaleClaims,
    /// A cut that is sealed in the background is called durable before all ranks have sealed it.
    AgreeBeforeSealed,
    /// What a cut that is sealed in the background is made of is not held until then.
    ReuseBeforeSealed,
}

/// How an array is made.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How it lies in memory.
    pub layout: Layout,
    /// How blocks are written.
    pub protocol: Protocol,
    /// How ranks reach each other.
    pub access: Access,
    /// How many versions can be read.
    pub keep: Keep,
    /// Blocks of each rank's log; 0 for enough that every kept version and two more may differ in
    /// all blocks.
    pub log_blocks: u64,
    /// Whether blocks of closed versions get a checksum, by which [`crate::Array::scrub`] finds
    /// damage.
    pub check: bool,
    /// Whether blocks of durable versions are compressed.
    pub compress: bool,
    #[doc(hidden)]
    pub fault: Option<Fault>,
}

impl Default for Options {
    /// A log of blocks of 512 bytes, eight versions, with checksums.
    fn default() -> Options {
        Options {
            layout: Layout::Log { block: 512 },
            protocol: Protocol::Batched,
            access: Access::Rma,
            keep: Keep::Last(8),
            log_blocks: 0,
            check: true,
            compress: false,
            fault: None,
        }
    }
}

impl Options {
    /// A flat array that is otherwise as by default.
    pub fn flat() -> Options {
        Options { layout: Layout::Flat, ..Options::default() }
    }

    /// A log of blocks of so many bytes that is otherwise as by default.
    pub fn log(block: u64) -> Options {
        Options { layout: Layout::Log { block }, ..Options::default() }
    }

    /// Versions that can be read.
    pub fn kept(&self) -> u64 {
        let Keep::Last(versions) = self.keep;
        versions
    }

    /// Bytes of a block; of a flat array 0.
    pub fn block(&self) -> u64 {
        match self.layout {
            Layout::Flat => 0,
            Layout::Log { block } => block,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        let block = self.block();
        if self.layout != Layout::Flat && (block == 0 || !block.is_multiple_of(8) || block > 1 << 24) {
            return Err(Error::option(format!(
                "a block of {block} bytes makes no log: give a multiple of 8 up to 16 MiB"
            )));
        }
        if self.kept() == 0 || self.kept() > 1 << 16 {
            return Err(Error::option(format!("{} versions cannot be kept: give 1 to 65536", self.kept())));
        }
        Ok(())
    }

    pub(crate) fn planted(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }
}
