//! What was counted.

/// Counts of a launch, or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Statistics {
    /// Core cycles, from the launch until all is durable; without `final_flush` until all threads
    /// have ended and what they had flushed is acknowledged.
    pub cycles: u64,
    /// Core cycles after that until all is durable.
    pub drain_cycles: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Instructions of threads.
    pub thread_instructions: u64,
    /// Lines of persistent memory that loads found in L1, and those that they did not.
    pub pm_read_hits: u64,
    /// See above.
    pub pm_read_misses: u64,
    /// Persists that were sent to the persistence domain.
    pub persists: u64,
    /// Stores to lines that were already buffered.
    pub coalesced: u64,
    /// Times that a warp had to wait: for a buffered line that it had ordered since, for room in
    /// the buffer, for an eviction, until persists were durable.
    pub waits_for_line: u64,
    /// See above.
    pub waits_for_room: u64,
    /// See above.
    pub waits_for_eviction: u64,
    /// See above.
    pub waits_for_durability: u64,
    /// Bytes read from persistent memory.
    pub pm_read_bytes: u64,
    /// Bytes written to it.
    pub pm_written_bytes: u64,
    /// Bytes of volatile memory.
    pub gddr_bytes: u64,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.cycles += other.cycles;
        self.drain_cycles += other.drain_cycles;
        self.warp_instructions += other.warp_instructions;
        self.thread_instructions += other.thread_instructions;
        self.pm_read_hits += other.pm_read_hits;
        self.pm_read_misses += other.pm_read_misses;
        self.persists += other.persists;
        self.coalesced += other.coalesced;
        self.waits_for_line += other.waits_for_line;
        self.waits_for_room += other.waits_for_room;
        self.waits_for_eviction += other.waits_for_eviction;
        self.waits_for_durability += other.waits_for_durability;
        self.pm_read_bytes += other.pm_read_bytes;
        self.pm_written_bytes += other.pm_written_bytes;
        self.gddr_bytes += other.gddr_bytes;
    }
}
