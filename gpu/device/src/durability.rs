//! What "durable" means, by name, and the copy to a disk file.

use std::path::Path;
use std::time::{Duration, Instant};

use nearpm_newfile::{Durability as NewFileDurability, NewFile};

use crate::error::Error;

/// How far a store of a kernel has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// A system fence lies behind it (`gpm_persist`): no later store of the thread is seen without
    /// it. PCIe writes are posted, so that the fence alone does not say that it has arrived: when
    /// power fails (or the GPU, or the link), stores of the last microsecond may be lost, in order.
    /// Nothing is lost when the process is killed.
    Ordered,
    /// It was read back behind the fence (`gpm_persist_arrived`): PCIe gives an answer only behind
    /// the writes before it. On persistent memory, with the link's writes not caught by caches
    /// ([`link_state`]), nothing is lost when power fails. On tmpfs all of it is.
    Arrived,
    /// It was copied to a disk file ([`crate::PmRegion::drain_to`]), which was synchronised: what
    /// was there before that call began is not lost when power fails, whatever PM is made of.
    Drained,
}

impl Durability {
    /// What may be lost, in a sentence.
    pub const fn may_lose(self) -> &'static str {
        match self {
            Durability::Ordered => {
                "a power failure may lose the stores of the last microsecond, in order; a kill loses nothing"
            }
            Durability::Arrived => "a power failure loses nothing on persistent memory, and everything on tmpfs",
            Durability::Drained => "a power failure loses what was stored after the drain began",
        }
    }
}

/// Whether writes of the GPU go past the processor's caches: what the paper's `gpm_persist_begin`
/// and `_end` switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// PM is tmpfs, a memfd or hugetlb: no power failure is survived whatever the caches do, and a
    /// killed process loses nothing of them.
    NotNeeded,
    /// The caches may catch the writes (Intel's DDIO, on by default), and this library does not
    /// switch that: it is a register of the root port, for the whole machine, which needs root and
    /// outlives a crash. Switch it by the firmware's set-up, or use a processor whose power supply
    /// saves the caches (eADR).
    NotSwitchable,
    /// The power supply saves the caches (eADR), as the system says of all its persistent memory.
    SavedByPower,
}

impl LinkState {
    /// What it is, in a sentence.
    pub const fn describe(self) -> &'static str {
        match self {
            LinkState::NotNeeded => {
                "not needed: this memory does not survive a power failure, and a killed process loses nothing"
            }
            LinkState::NotSwitchable => {
                "not switchable from here: writes of the GPU may wait in the processor's caches (DDIO)"
            }
            LinkState::SavedByPower => "not needed: the power supply saves the processor's caches (eADR)",
        }
    }
}

/// The state for PM on a medium, by what the system tells.
pub fn link_state(medium: &crate::Medium) -> LinkState {
    match medium.pinnable() {
        crate::Pinnable::Yes("devdax") if nearpm::memory::includes_caches() => LinkState::SavedByPower,
        crate::Pinnable::Yes("devdax") => LinkState::NotSwitchable,
        _ => LinkState::NotNeeded,
    }
}

/// A drain that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drained {
    /// Bytes that were written.
    pub bytes: u64,
    /// The time it took, synchronisation included.
    pub time: Duration,
}

/// Bytes that one thread writes at a time.
const PIECE: usize = 8 << 20;

/// Writes `bytes` to a file that takes the place of the one at `path`, by several threads, and
/// synchronises it.
pub(crate) fn drain(bytes: &[u8], path: &Path) -> Result<Drained, Error> {
    use std::os::unix::fs::FileExt;
    let started = Instant::now();
    let refuse = |error| Error::system("drain to", path, error);
    let new = NewFile::replace(path).map_err(refuse)?;
    new.file().set_len(bytes.len() as u64).map_err(refuse)?;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let write = || -> std::io::Result<()> {
        loop {
            let start = next.fetch_add(PIECE, std::sync::atomic::Ordering::Relaxed);
            if start >= bytes.len() {
                return Ok(());
            }
            new.file().write_all_at(&bytes[start..(start + PIECE).min(bytes.len())], start as u64)?;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let written: std::io::Result<()> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(write)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    written.map_err(refuse)?;
    new.publish(NewFileDurability::Durable).map_err(refuse)?;
    Ok(Drained { bytes: bytes.len() as u64, time: started.elapsed() })
}
