//! What persistent memory may hold after a crash.

use crate::{PmRange, ThreadId};

/// One store that a crash may lose: what of one thread's store lies in one aligned word of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingStore {
    /// Address of the word of 8 bytes.
    pub word: u64,
    /// The bytes of the word that it writes, one bit a byte.
    pub bytes: u8,
    /// The word's content, where `bytes` says so.
    pub value: u64,
    /// Who stored.
    pub thread: ThreadId,
    /// When, in steps of the launch.
    pub step: u64,
    /// Line in the PTX text.
    pub line: u32,
}

/// Which of the pending stores reached persistent memory. Whatever is chosen is closed under coherence: a store that
/// has persisted brings the earlier stores to the same bytes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// All.
    All,
    /// None.
    None,
    /// A random subset.
    Seeded(u64),
    /// Those of one thread (by [`ThreadId::linear`]), and what coherence brings with them.
    OnlyThread(u64),
    /// Those of all threads but one, and what coherence brings with them.
    AllButThread(u64),
}

/// What a crash did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// Step of the launch after which it happened (0 when no launch was running).
    pub step: u64,
    /// Stores that were pending.
    pub pending: u64,
    /// Those of them that persisted.
    pub persisted: u64,
    /// What replays it: kernel, schedule, step and choice.
    pub replay: String,
}

/// A crash that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CrashError {
    /// The launch does not track what persists.
    #[error("what persists is not tracked: launch with Persistence::Tracked to crash")]
    NotTracked,
    /// More images than the caller wants to go through.
    #[error("the pending stores allow {images} images, more than the limit of {limit}")]
    TooMany { images: u128, limit: u128 },
}

/// Every distinct content that the PM ranges may have after a crash here: each item is the image of each range, in
/// the order of their mapping.
#[derive(Clone, Debug)]
pub struct Images {
    pub(crate) ranges: Vec<(PmRange, Vec<u8>)>,
}

impl Images {
    /// How many there are.
    pub fn count_all(&self) -> u128 {
        todo!()
    }
}

impl Iterator for Images {
    type Item = Vec<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let _ = &self.ranges;
        todo!()
    }
}
