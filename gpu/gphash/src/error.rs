//! Errors.

use crate::found::Found;
use crate::key::Key;

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
    #[error("the key {key} is reserved: {why}. Nothing was done for it")]
    Reserved {
        /// The key.
        key: Key,
        /// Which keys are.
        why: &'static str,
    },
    /// A key for which there is no room; the keys before and behind it in the batch were done.
    #[error(
        "the table has no free slot for the key {key}: its buckets and the stash are full. {failed} keys of the batch were not put in; \
         all others were. Let it grow, or create a larger table and copy"
    )]
    Full {
        /// The first such key of the batch.
        key: Key,
        /// How many there are.
        failed: usize,
    },
    /// More updates than there are spare cells, even in a batch of their own.
    #[error(
        "{failed} updates found no spare cell for their values; the first is of the key {key}. Give the table more spare cells"
    )]
    NoCells {
        /// The first such key.
        key: Key,
        /// How many there are.
        failed: usize,
    },
    /// Wide keys: another key has the same 64 bits; the keys before and behind it in the batch were
    /// done.
    #[error(
        "the key {key} has the same 64 bits as another one that is there. {failed} such keys were not put in; all others were"
    )]
    Collides {
        /// The first such key of the batch.
        key: Key,
        /// How many there are.
        failed: usize,
    },
    /// A table that has grown as far as its object has room.
    #[error("the table has doubled {growths} times, and has no room to grow: create a larger one and copy")]
    NoRoom {
        /// How often it could double.
        growths: u32,
    },
    /// A table that did not grow, because pairs found no place in what it was to grow by. Nothing
    /// was changed.
    #[error(
        "{unmoved} pairs find no slot in what the table was to grow by. It is what it was: create a larger one and copy"
    )]
    Unmoved {
        /// How many.
        unmoved: u32,
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
