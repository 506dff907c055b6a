//! The PCI function seam: what the driver needs of a card, whatever reaches it.
//!
//! A transport implements [`PciFunction`]; the rest of the driver is written against the trait.
//! Accesses go through [`Mapping`] calls instead of references into device memory, because the
//! same code must run where every access traps (an in-process simulated card) and where the BAR
//! is mapped into the address space (a real card).

use std::ops::Range;

nearpm_interface::debug_as_display!(PciError);

/// How the processor may treat the lines of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// Each access goes to the link as it is, in program order.
    Uncached,
    /// Stores gather in write-combining buffers, which drain late, in pieces and in any order
    /// until a fence; loads are uncached.
    WriteCombining,
    /// Lines are cached and written back at any time. The link is not coherent: the card does
    /// not see a dirty line, and the processor does not see what the card writes.
    WriteBack,
}

/// What has to stand between stores to a mapping and what is posted behind them, so that the card
/// has the stores first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Persist {
    /// The stored lines have to be written back ([`Mapping::write_back`]).
    pub write_back: bool,
    /// A fence has to follow ([`Mapping::fence`]).
    pub fence: bool,
}

impl Caching {
    /// What a persist needs: uncached nothing, write-combining a fence, write-back the write-back
    /// of each line and a fence. Who calls [`Mapping::write_back`] and [`Mapping::fence`] is right
    /// in each mode.
    pub const fn persist(self) -> Persist {
        match self {
            Caching::Uncached => Persist { write_back: false, fence: false },
            Caching::WriteCombining => Persist { write_back: false, fence: true },
            Caching::WriteBack => Persist { write_back: true, fence: true },
        }
    }

    /// Whether loads may be answered with what the card does not hold any more, so that lines that
    /// it has written have to be dropped.
    pub const fn loads_stale(self) -> bool {
        matches!(self, Caching::WriteBack)
    }
}

/// Names, as users write them.
const CACHINGS: [(Caching, &str); 3] =
    [(Caching::Uncached, "uncached"), (Caching::WriteCombining, "wc"), (Caching::WriteBack, "wb")];

impl std::fmt::Display for Caching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(CACHINGS.iter().find(|(caching, _)| caching == self).map_or("", |(_, name)| name))
    }
}

impl std::str::FromStr for Caching {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Caching, &'static str> {
        let found = CACHINGS.iter().find(|(_, name)| *name == text);
        found.map(|&(caching, _)| caching).ok_or("use uncached, wc or wb")
    }
}

/// Work of the processor beside its accesses to the card. It takes time by itself on a real host; a
/// simulated one is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So many accesses to a line of ordinary memory that is in the processor's cache.
    CachedLines(u64),
    /// CRC-32C of so many bytes.
    Checksum(u64),
}

/// A window on a BAR. Offsets count from the start of the window.
///
/// An access to a card that has gone (surprise removal, power cut) reads all ones and writes
/// nothing; it never blocks.
pub trait Mapping: Send + Sync {
    /// Bytes of the window.
    fn bytes(&self) -> u64;
    /// Loads; any alignment, any size inside the window.
    fn load(&self, offset: u64, data: &mut [u8]);
    /// Stores in program order of this thread, at the granularity of aligned 8-byte words.
    fn store(&self, offset: u64, data: &[u8]);
    /// One 64-byte store that is never split (MOVDIR64B); `offset` is 64-byte aligned. Where the
    /// processor has no such instruction it is eight aligned words in order, which a command page
    /// takes as well (C3).
    fn store_line(&self, offset: u64, line: &[u8; 64]);
    /// Starts the write-back of the lines in the range (`clwb`); complete after [`Mapping::fence`].
    fn write_back(&self, offset: u64, bytes: u64);
    /// Writes the lines in the range back and drops them from the cache (`clflush`), so that the
    /// next load sees the card's memory; complete after [`Mapping::fence`].
    fn invalidate(&self, offset: u64, bytes: u64);
    /// Earlier stores and write-backs of this thread enter the link before later ones (`sfence`).
    /// Posted writes may still be on their way to the card: a fence gives order, not durability.
    fn fence(&self);
    /// Says that the lines in the range will be loaded or stored to in part: where they can be
    /// cached they may be fetched meanwhile. Nothing depends on it but speed.
    fn prefetch(&self, _offset: u64, _bytes: u64) {}
    /// Accounts for work that the mapping does not see, in the time of a simulated host.
    fn charge(&self, _work: Work) {}
}

/// Host memory that the card may write by DMA.
pub trait DmaBuffer: Send + Sync {
    /// Address by which the card reaches the buffer.
    fn bus_address(&self) -> u64;
    /// Bytes of the buffer.
    fn bytes(&self) -> usize;
    /// Reads what the card wrote, `data.len()` bytes at `offset`; aligned 8-byte words are read
    /// whole.
    fn load(&self, offset: usize, data: &mut [u8]);
}

/// What memory for DMA is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaPages {
    /// Pages of 2 MiB.
    Large,
    /// Pages of the processor's usual size.
    Ordinary,
}

/// What went wrong below the driver.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum PciError {
    /// The function has no such BAR.
    #[error(
        "BAR {bar} does not exist: this is no NearPM card, or its bitstream is for another driver; use those of one release"
    )]
    NoBar {
        /// Number of the BAR.
        bar: usize,
    },
    /// A range leaves its BAR.
    #[error("range {start:#x}..{end:#x} leaves BAR {bar} of {bytes:#x} bytes: give a range inside it", start = range.start, end = range.end)]
    OutOfBar {
        /// Number of the BAR.
        bar: usize,
        /// The range that was asked for.
        range: Range<u64>,
        /// Bytes of the BAR.
        bytes: u64,
    },
    /// The transport cannot do this.
    #[error("this transport does not support {what}: use one that does, or do without")]
    Unsupported {
        /// What was asked for.
        what: &'static str,
    },
    /// The card does not answer any more.
    #[error(
        "the card has gone (all ones read), because it lost power or was removed: bring it back, and open card and pools again, which recovers them"
    )]
    Gone,
    /// The operating system refused.
    #[error("{what}: {source}; mend what the system reports (`dmesg` may say more), then open the card again")]
    System {
        /// What was tried, and on what.
        what: String,
        /// Why it failed.
        source: std::io::Error,
    },
}

/// Refuses a range that is not one, or leaves its BAR of so many bytes.
pub fn check_range(bar: usize, range: &Range<u64>, bytes: u64) -> Result<(), PciError> {
    if range.start <= range.end && range.end <= bytes {
        return Ok(());
    }
    Err(PciError::OutOfBar { bar, range: range.clone(), bytes })
}

/// Refuses a vector that the function does not have.
pub fn check_vector(vector: usize, vectors: usize) -> Result<(), PciError> {
    if vector < vectors {
        return Ok(());
    }
    Err(PciError::Unsupported { what: "an interrupt vector of this number" })
}

/// Part of a BAR that another process may map as this one does.
#[derive(Debug)]
pub struct HandedOn {
    /// The file that it is mapped from.
    pub file: std::fs::File,
    /// Where in the file the BAR begins.
    pub offset: u64,
    /// Parts of the BAR that may be mapped.
    pub areas: Vec<Range<u64>>,
}

/// A PCI function: configuration space, BARs, interrupts, DMA and reset.
pub trait PciFunction: Send + Sync {
    /// Reads configuration space; 1, 2 or 4 bytes, aligned.
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError>;
    /// Writes configuration space; 1, 2 or 4 bytes, aligned.
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError>;
    /// Bytes of a BAR, or `None` where there is none.
    fn bar_bytes(&self, bar: usize) -> Option<u64>;
    /// Maps part of a BAR.
    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError>;
    /// What of a BAR another process may map, as a broker hands it on; `None` where the transport
    /// has no file of it.
    fn hand_on(&self, _bar: usize) -> Option<HandedOn> {
        None
    }
    /// Number of MSI-X vectors; 0 where the transport has none.
    fn interrupt_vectors(&self) -> usize;
    /// Waits for a vector, at most `timeout_ns` (simulated time on a simulated card); false on
    /// timeout.
    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError>;
    /// Allocates host memory, zeroed and 64-byte aligned, that the card may write.
    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError>;
    /// What the memory of [`PciFunction::allocate_dma`] is made of, where that is known and there
    /// is some.
    fn dma_pages(&self) -> Option<DmaPages> {
        None
    }
    /// Function-level reset. The card drains accepted work first and never drops it.
    fn reset(&self) -> Result<(), PciError>;
    /// A number of 48 bits that is another one after each boot of the host: equal numbers say that
    /// the processor's caches may hold what they held then. `None` where it is not known.
    fn host_boot(&self) -> Option<u64>;
    /// Nanoseconds since an arbitrary start: wall-clock time, or simulated time on a simulated
    /// card.
    fn now_ns(&self) -> u64;
    /// Lets about this much time pass while the caller polls (`pause`; simulated time on a
    /// simulated card).
    fn relax(&self, ns: u64);
    /// Another thread holds a lock that this one wants. Where threads go on by turns in simulated
    /// time a little of it passes, so that the other's turn comes, and the caller tries again:
    /// true. Elsewhere the caller sleeps until the lock is free: false.
    fn contended(&self) -> bool;
}
