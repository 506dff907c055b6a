//! How a direct pool is created and opened.

use super::lint::Lint;
use crate::memory::{PowerCut, Survives};
use crate::options::{Durability, Engine, Mechanism};

/// What the program's stores go to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Persistent memory itself. A line may be evicted at any time, so that each snapshot is durable before the store.
    InPlace,
    /// A volatile copy of the pool. What a commit names is logged, durable with one fence, and written home later.
    #[default]
    WorkingCopy,
}

/// How a direct pool is created and opened. The default: a working copy, durable commits that survive power cuts.
#[derive(Clone, Debug, Default)]
pub struct DirectOptions {
    /// What the program's stores go to.
    pub mode: Mode,
    /// How a commit of a working copy goes home. `None`: its new bytes are packed into one record of a log, which the processor writes; that is
    /// the least work for a processor. With a mechanism it goes home by the log ring of that mechanism, which the card makes where the pool is on
    /// one; what the ring has no room for goes by records all the same. Not [`Mechanism::Shadow`]: it moves pages. A pool may be opened with
    /// another one each time.
    pub mechanism: Option<Mechanism>,
    /// Who makes the copies that the mechanism needs; without one it is the processor, whatever this says.
    pub engine: Engine,
    /// What a pool on an ordinary file survives.
    pub survives: Survives,
    /// What a commit waits for. Only a working copy of an ordinary file, and one with a mechanism, has asynchronous commits: elsewhere a fence
    /// is cheap, and belongs to one processor. Durable commits under [`Mechanism::Checkpoint`] end an epoch each, asynchronous ones share them.
    pub durability: Durability,
    /// On an ordinary file new objects of at least so many bytes go to their place at once, with their checksum in the log, and shorter ones to the log
    /// first; by default 2 KiB, and never less than 512 B. More suits devices that write many small places slowly.
    pub write_once_from: Option<u64>,
    /// Gives every page its memory at open, so that no transaction pays for a page fault. In a working copy that takes as
    /// much memory as the pool has bytes.
    pub prefault: bool,
    /// Looks for faults of the program: stores that are not made durable, not added, or made durable twice. It takes twice the memory of the heap and
    /// reads the heap at each transaction.
    pub lint: Lint,
    /// For tests of programs: the pool's file is worked on as persistent memory whose power fails, or as a file of an ordinary file system
    /// ([`PowerCut::torn`]).
    pub power_cut: Option<PowerCut>,
    /// Opens a pool in a file for reading: together with other processes that do, and without changing a byte, as a log that waits is read
    /// into the memory of this process. Calls that would change something fail with [`crate::Error::ReadOnly`]; a store by pointer ends
    /// the process, as one to read-only memory does.
    pub read_only: bool,
    /// Opens a pool in a file for changes that nobody else sees, and that are forgotten when it is closed: they go to memory of this process, which
    /// takes as much as they need, and what is durable is so until then. In place, whatever the mode; others may read the file meanwhile, and
    /// none may write it. Not for new pools.
    pub copy_on_write: bool,
    /// Permission bits of the pool's file at creation; by default 0666 less those of the umask.
    pub permissions: Option<u32>,
    /// Identifier of the pool at creation, not 0; by default it is drawn at random.
    pub id: Option<u32>,
}
