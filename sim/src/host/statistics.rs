//! What the host counts.

/// Counters since the machine was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Load calls.
    pub loads: u64,
    /// Store calls, whole-line stores included.
    pub stores: u64,
    /// Lines that loads found in the cache.
    pub load_hits: u64,
    /// Lines that loads had to wait for.
    pub load_misses: u64,
    /// Lines fetched because part of them was stored to.
    pub store_misses: u64,
    /// Lines prefetched without being asked for.
    pub prefetches: u64,
    /// Dirty lines written back on request.
    pub write_backs: u64,
    /// Dirty lines written back by eviction.
    pub evictions: u64,
    /// Fences.
    pub fences: u64,
    /// Reads sent over the link.
    pub reads_sent: u64,
    /// Posted writes sent over the link.
    pub writes_sent: u64,
    /// Posted writes to command pages among them.
    pub command_writes: u64,
    /// Time that cores stalled for posted credits, in picoseconds.
    pub credit_stall_ps: u64,
    /// Payload bytes towards the card.
    pub bytes_down: u64,
    /// Payload bytes from the card.
    pub bytes_up: u64,
    /// Writes of the card to host memory.
    pub dma_writes: u64,
    /// Writes of the card to addresses where it may not write: dropped.
    pub dma_faults: u64,
    /// Power cuts.
    pub cuts: u64,
}
