//! What a channel counts.

/// Counters since power-up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Lines read from the DRAM.
    pub read_lines: u64,
    /// Lines written to the DRAM.
    pub write_lines: u64,
    /// Column commands beyond the first one after each activate.
    pub row_hits: u64,
    /// Rows opened.
    pub row_misses: u64,
    /// Rows closed for another row of their bank.
    pub row_conflicts: u64,
    /// Times that the data bus changed direction.
    pub switches: u64,
    /// Refreshes.
    pub refreshes: u64,
}
