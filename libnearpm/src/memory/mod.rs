//! The seam through which every access to persistent memory goes.
//!
//! No reference into mutable persistent memory leaves an implementation: bytes are copied in and
//! out by calls, so that the same library code runs on a mapped file at full speed, on a
//! simulated card where each access traps, and on a test memory that enumerates what could have
//! persisted.

pub use nearpm_driver::pci::Work;

use crate::error::Error;

mod card;
#[cfg(target_os = "linux")]
mod dax;
mod durable_image;
mod extents;
mod guard;
mod length;
mod mapped;
mod medium;
mod persistence_domain;
#[cfg(test)]
pub(crate) mod planted;
mod private;
mod space;
#[cfg(test)]
mod step_tests;
mod striped;
mod synchronising;
mod test;
mod torn_file;
mod unbuffered;
mod view;
mod volatile;
#[doc(hidden)]
pub mod words;
mod writes;

pub use card::CardMemory;
pub(crate) use durable_image::DurableImage;
pub use durable_image::{CUT_STATUS, PowerCut, not_cut, not_cut_in};
pub(crate) use length::{extend, fill};
pub use mapped::{Flush, MappedMemory, Survives};
pub(crate) use mapped::{allocate, allocate_range, free_bytes, private_view, reserve_populated};
pub(crate) use medium::{Backing, Medium};
#[doc(hidden)]
pub use persistence_domain::includes_caches;
pub(crate) use private::PrivateMemory;
pub(crate) use space::is_full;
pub(crate) use striped::{Member, Striped};
pub use test::{Event, Image, TestMemory, run_on_processor};
pub(crate) use torn_file::TornFile;
pub(crate) use view::View;
pub use volatile::VolatileMemory;

/// Persistent memory of a fixed size. Offsets and sizes are in bytes from its start.
///
/// A store becomes durable when its line was written back after it and a [`Memory::drain`]
/// followed; it may become durable at any earlier moment, because a cache evicts lines as it likes.
///
/// # Panics
/// Every call panics when its range leaves the memory: callers check ranges that come from outside.
pub trait Memory: Send + Sync {
    /// Bytes of the memory.
    fn bytes(&self) -> u64;
    /// Loads `data.len()` bytes.
    fn load(&self, offset: u64, data: &mut [u8]);
    /// Stores; eight bytes at a multiple of 8 are never torn.
    fn store(&self, offset: u64, data: &[u8]);
    /// Starts the write-back of the lines in the range; complete after [`Memory::fence`].
    fn write_back(&self, offset: u64, bytes: u64);
    /// What was written back before becomes durable before anything that is stored later.
    ///
    /// # Errors
    /// The medium refused (a failed `msync`, a card that has gone): nothing can be claimed about
    /// what was not yet durable.
    fn fence(&self) -> Result<(), Error>;
    /// Like [`Memory::fence`], and returns only when what was written back is durable. On memory
    /// of the processor itself both are the same; behind a link a fence gives order alone.
    fn drain(&self) -> Result<(), Error> {
        self.fence()
    }
    /// Whether a drain makes durable what other threads wrote back, too. A fence is that of one
    /// processor; `msync` is not.
    fn drains_for_all(&self) -> bool {
        false
    }
    /// Whether a fence orders what a thread wrote back ahead of everything that any thread stores
    /// later, and a drain, by whatever thread, waits for all that was fenced before: so it is
    /// behind the link to a card, which is read back.
    fn is_read_back(&self) -> bool {
        false
    }
    /// Whether only write-backs, fences and evictions of lines decide what becomes durable. On an
    /// ordinary file the system writes whole pages when it likes.
    fn keeps_order(&self) -> bool {
        true
    }
    /// Drops the lines in the range from the cache, so that the next load sees what another agent
    /// wrote; complete after [`Memory::fence`]. Dirty ones are written back first where the cache
    /// can hold others' lines stale; where it cannot, nothing is done.
    fn invalidate(&self, offset: u64, bytes: u64);
    /// Stores whole lines around the cache (MOVDIR64B, non-temporal stores), from a buffer that was
    /// just made: a copy of them that the cache holds is dropped. Starts their write-back; complete
    /// after [`Memory::fence`].
    fn stream(&self, offset: u64, lines: &[u8]) {
        self.store(offset, lines);
        self.write_back(offset, lines.len() as u64);
    }
    /// As [`Memory::stream`], of bytes that a drain follows at once, to a place behind which
    /// nothing counts: up to the next multiple of 4096 it may become zeros.
    fn append(&self, offset: u64, lines: &[u8]) {
        self.stream(offset, lines);
    }
    /// Whether this memory is behind a link: then [`prefetch`](Memory::prefetch) and
    /// [`contended`](Memory::contended) may do something, and are called. What finds out when to
    /// call them takes a tenth of a short transaction's instructions.
    fn is_behind_a_link(&self) -> bool {
        false
    }
    /// Says that the lines in the range will be loaded or stored to in part. Memory behind a link
    /// begins to fetch them; a processor sees ahead far enough in its own.
    fn prefetch(&self, _offset: u64, _bytes: u64) {}
    /// Says that the bytes of a range will be written soon, and in order. What of a file was never
    /// written it gives its blocks at once: else a later synchronisation would write tables of the
    /// file system as well. A mapping gets its pages by one call, not by a fault for each. No byte
    /// changes, and nothing depends on it but speed.
    fn write_ahead(&self, _offset: u64, _bytes: u64) {}
    /// Accounts for work that this memory does not see, where time is simulated.
    fn charge(&self, _work: Work) {}
    /// Another thread holds a lock that this one wants. Where threads go on by turns in simulated
    /// time a little of it passes, so that the other's turn comes, and the caller tries again:
    /// true. Elsewhere the caller sleeps until the lock is free: false.
    fn contended(&self) -> bool {
        false
    }
    /// Whether the memory still answers. One that has gone, or that holds a line back, may read as
    /// all ones, so that this is asked when such a value was loaded.
    ///
    /// # Errors
    /// The memory has gone, or [`Error::LogFailed`].
    fn alive(&self) -> Result<(), Error> {
        Ok(())
    }
    /// Makes the memory larger, at its end: what comes is zeros. One that has as many bytes stays
    /// as it is.
    ///
    /// # Errors
    /// [`crate::Problem::BadOption`] for one that has a fixed size; [`crate::Problem::NoSpace`];
    /// what the system refuses.
    fn grow(&self, bytes: u64) -> Result<(), Error> {
        let what = "its memory has a fixed size, so that the pool cannot grow";
        if bytes <= self.bytes() { Ok(()) } else { Err(crate::Problem::BadOption { what }.at("in memory")) }
    }
    /// Address of the first byte where the memory is mapped into this process.
    ///
    /// Only the C interface hands it on, whose callers store through pointers.
    fn address(&self) -> Option<*mut u8> {
        None
    }
    /// Whether it is mapped into this process: who asks for no more than that stores through no
    /// pointer.
    fn is_mapped(&self) -> bool {
        self.address().is_some()
    }
}

/// Checks a range against a memory's size.
///
/// # Panics
/// If the range leaves it.
pub(crate) fn check_range(memory_bytes: u64, offset: u64, bytes: u64) {
    assert!(
        offset.checked_add(bytes).is_some_and(|end| end <= memory_bytes),
        "range of {bytes:#x} bytes at {offset:#x} leaves a memory of {memory_bytes:#x} bytes"
    );
}
