//! Errors.

/// What a log, batch or checkpoint refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device or the region refused.
    #[error(transparent)]
    Device(#[from] nearpm_gpu::Error),
    /// Kernels found no room for entries, which were not written.
    #[error(
        "the log {log:?} is full: it has room for {room}; nothing of the entries that did not fit was written. Clear it, or create it deeper"
    )]
    Full {
        /// The log.
        log: String,
        /// What it has room for.
        room: String,
    },
    /// An entry of another size.
    #[error(
        "a kernel used the log {log:?} with entries of another size than its {bytes} bytes; nothing of them was written"
    )]
    EntrySize {
        /// The log.
        log: String,
        /// Bytes of its entries.
        bytes: u64,
    },
    /// A launch of another shape.
    #[error(
        "a kernel that used the log {log:?} was launched with another shape than the {blocks} blocks of {threads} threads that it \
         was created for; nothing was written. Launch it so, or create another log"
    )]
    LaunchShape {
        /// The log.
        log: String,
        /// Its blocks.
        blocks: u32,
        /// Its threads a block.
        threads: u32,
    },
    /// A partition that there is not.
    #[error("a kernel used a partition of the log {log:?}, which has {partitions}, numbered from 0")]
    Partition {
        /// The log.
        log: String,
        /// Its partitions.
        partitions: u32,
    },
    /// A batch that a crash left active.
    #[error("the batch {batch:?} was active when its process ended: recover it first")]
    NotRecovered {
        /// The batch.
        batch: String,
    },
    /// A batch over several regions was used with the logs of others.
    #[error(
        "the batch {batch:?} spans the regions {members:08x?}; the logs that were given lie in {there:08x?}: open all of its regions, and no other"
    )]
    OtherRegions {
        /// The batch.
        batch: String,
        /// Identifiers of its regions.
        members: Vec<u32>,
        /// Identifiers of the logs' regions.
        there: Vec<u32>,
    },
    /// A group, element or slot of checkpoints that there is not.
    #[error("checkpoint {checkpoint:?}: {why}")]
    Checkpoint {
        /// The checkpoint's name.
        checkpoint: String,
        /// What is wrong.
        why: String,
    },
    /// Arguments that make no sense.
    #[error("{0}")]
    Invalid(String),
}

/// Result of this library.
pub type Result<T> = std::result::Result<T, Error>;
