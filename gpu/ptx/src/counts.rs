//! What a launch did to persistent memory, and the time that a card would take for it.

/// Transactions of one kind by size, after the lanes of a warp are coalesced: the 32-byte sectors
/// touched in one 128-byte line are one transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransactionCounts {
    /// Of one sector.
    pub up_to_32: u64,
    /// Of two sectors.
    pub up_to_64: u64,
    /// Of three or four sectors.
    pub up_to_128: u64,
}

impl TransactionCounts {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.up_to_32 + self.up_to_64 + self.up_to_128
    }

    /// Counts one of so many sectors.
    pub(crate) fn count(&mut self, sectors: u32) {
        match sectors {
            1 => self.up_to_32 += 1,
            2 => self.up_to_64 += 1,
            _ => self.up_to_128 += 1,
        }
    }

    /// Adds others.
    pub fn add(&mut self, others: &TransactionCounts) {
        self.up_to_32 += others.up_to_32;
        self.up_to_64 += others.up_to_64;
        self.up_to_128 += others.up_to_128;
    }
}

/// Fences by scope, one a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FenceCounts {
    /// `membar.cta`, `fence.*.cta`
    pub block: u64,
    /// `membar.gl`, `fence.*.gpu`, `fence.*.cluster`
    pub device: u64,
    /// `membar.sys`, `fence.*.sys`
    pub system: u64,
}

/// What was done from the start of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions that a warp, or a part of a diverged warp, executed: the steps.
    pub warp_instructions: u64,
    /// Instructions that lanes executed.
    pub lane_instructions: u64,
    /// Loads of persistent memory.
    pub pm_loads: TransactionCounts,
    /// Stores to persistent memory.
    pub pm_stores: TransactionCounts,
    /// Atomics on persistent memory (`atom`, `red`), one for each distinct address of a warp's
    /// instruction.
    pub pm_atomics: u64,
    /// Bytes that threads stored to persistent memory.
    pub pm_bytes_stored: u64,
    /// Bytes that threads loaded from persistent memory.
    pub pm_bytes_loaded: u64,
    /// Transactions to a page of 2 MiB that the last 512 MiB of pages did not hold.
    pub translation_misses: u64,
    /// Of these, those whose page was not among the last 1 GiB of them either.
    pub walk_misses: u64,
    /// Fences.
    pub fences: FenceCounts,
    /// Block barriers, one a thread.
    pub barriers: u64,
    /// Steps that stored to persistent memory or fenced at system scope: what
    /// [`crate::Stop::PersistEvent`] numbers.
    pub persist_events: u64,
}

/// Nanoseconds that a card takes per transaction with persistent memory when enough threads run for
/// throughput to be the limit. The default is what was measured on one H200 and one H100 with host
/// memory behind PCIe 5.0 x16 (medians of 1-5 repeats); it predicts streams, logs, random persists,
/// and hash search and insert on those cards within 10 %. What is not modelled: kernels whose limit
/// is the card's own memory, few threads, and launches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CostModel {
    /// A load or store of one sector.
    pub up_to_32: f64,
    /// A load or store of two sectors.
    pub up_to_64: f64,
    /// A load or store of three or four sectors.
    pub up_to_128: f64,
    /// An atomic.
    pub atomic: f64,
    /// A transaction whose page the translation cache does not hold: such requests wait in one
    /// queue.
    pub translation_miss: f64,
    /// So much more where the look-up is not held either.
    pub walk_miss: f64,
}

impl Default for CostModel {
    fn default() -> Self {
        Self { up_to_32: 1.27, up_to_64: 1.4, up_to_128: 2.45, atomic: 2.5, translation_miss: 19.5, walk_miss: 6.2 }
    }
}

impl CostModel {
    /// Nanoseconds for these transactions: the sum over them, or the translation queue where that
    /// is longer.
    pub fn nanoseconds(&self, counts: &Counts) -> f64 {
        let sized = |t: &TransactionCounts| {
            t.up_to_32 as f64 * self.up_to_32 + t.up_to_64 as f64 * self.up_to_64 + t.up_to_128 as f64 * self.up_to_128
        };
        let link = sized(&counts.pm_loads) + sized(&counts.pm_stores) + counts.pm_atomics as f64 * self.atomic;
        let translation =
            counts.translation_misses as f64 * self.translation_miss + counts.walk_misses as f64 * self.walk_miss;
        link.max(translation)
    }
}
