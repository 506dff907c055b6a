//! Errors.

use crate::recovery::Found;

/// What a table refuses.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The device or the region refused.
    #[error(transparent)]
    Device(#[from] nearpm_gpu::Error),
    /// The sorter or an object's head.
    #[error(transparent)]
    Gpm(#[from] nearpm_gpm::Error),
    /// Parameters that make no table.
    #[error("no table has {what}: {why}")]
    Layout {
        /// What was asked for.
        what: String,
        /// Why not.
        why: String,
    },
    /// A key that stands for something else in the table.
    #[error("the key {key:#018x} is reserved: {why}. Nothing was done for it")]
    Reserved {
        /// The key.
        key: u64,
        /// Which keys are.
        why: &'static str,
    },
    /// A key for which there is no room; the keys before and behind it in the batch were done.
    #[error(
        "the table has no free slot for the key {key:#018x}: its buckets and the stash are full. {failed} keys of the batch were not put in; \
         all others were. Create a larger table and copy"
    )]
    Full {
        /// The first such key of the batch.
        key: u64,
        /// How many there are.
        failed: usize,
    },
    /// More updates than there are spare cells, even in a batch of their own.
    #[error(
        "{failed} updates found no spare cell for their values; the first is of the key {key:#018x}. Give the table more spare cells"
    )]
    NoCells {
        /// The first such key.
        key: u64,
        /// How many there are.
        failed: usize,
    },
    /// Recovery found slots that no run of this library leaves. Nothing was changed.
    #[error("the table {table:?} is damaged: {found}.")]
    Damaged {
        /// Its name.
        table: String,
        /// What was found.
        found: Found,
    },
    /// A batch that cannot be.
    #[error("{0}")]
    Invalid(String),
}

/// Result of this library.
pub type Result<T> = std::result::Result<T, Error>;
