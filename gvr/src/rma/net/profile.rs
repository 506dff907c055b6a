//! What networks and memories cost, by profile.
//!
//! A link's rate follows from its standard. Times of adapters and of MPI's calls differ from
//! machine to machine by a factor of two and more: those here are assumptions of their order, said
//! to be so, and every one can be replaced by an option of `nearpm gvr figures`.

use clap::ValueEnum;

/// Picoseconds, the unit of virtual time.
pub type Picos = u64;

/// Picoseconds of a nanosecond.
pub const NANO: Picos = 1000;

/// Networks by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// The paper's: InfiniBand FDR-10 between nodes with Xeon E5-2670
    Fdr10,
    /// Of today: InfiniBand NDR, 400 Gbit/s
    Ndr,
}

/// Parameters of the model, after LogGP (Alexandrov and others, SPAA 1995): latency, overhead, gap,
/// gap per byte, and what an atomic costs where it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// From one node to another: adapters, cables, a switch.
    pub latency: Picos,
    /// Processor time of one call of MPI.
    pub overhead: Picos,
    /// Between two messages of one adapter.
    pub gap: Picos,
    /// Each byte on a link, in 1/1000 of a picosecond.
    pub byte_millis: u64,
    /// An atomic operation at its target, which does one at a time.
    pub atomic: Picos,
    /// Each further word of one that has several.
    pub atomic_word: Picos,
    /// A call whose target is this rank itself, without its bytes.
    pub own: Picos,
    /// Each byte that a processor copies in memory, in 1/1000 of a picosecond.
    pub copy_millis: u64,
    /// Until a thread that waited for a message runs: it tests for it in a loop (IV-A1).
    pub wake: Picos,
    /// How much slower than memory the storage of old versions is: 1, 10 (NVRAM) or 100 (SSD) in
    /// the paper (IV-A3).
    pub storage: u64,
}

impl Network {
    /// The profile, with old versions in memory.
    ///
    /// | | FDR-10 | NDR | source |
    /// |---|---|---|---|
    /// | link | 4.85 GB/s | 48.5 GB/s | 4 lanes of 10.3125 and 106.25 Gbit/s with their coding: 40 and 400 Gbit/s; 3 % for heads of packets |
    /// | latency | 1000 ns | 600 ns | assumed: half a round trip of small messages was about 1.2 us with MPI in 2013, and is about 1 us |
    /// | overhead | 200 ns | 150 ns | assumed |
    /// | gap | 30 ns | 5 ns | makers' message rates: some 30 and 200 million a second |
    /// | atomic | 400 ns | 100 ns | adapters of 2013 did some 2.5 million a second (Kalia and others, ATC 2016); of today assumed |
    /// | copy | 5 GB/s | 12 GB/s | one thread: assumed for 2013; measured on this project's machine, within a third |
    pub fn profile(self) -> Profile {
        match self {
            Network::Fdr10 => Profile {
                latency: 1000 * NANO,
                overhead: 200 * NANO,
                gap: 30 * NANO,
                byte_millis: 206_000,
                atomic: 400 * NANO,
                atomic_word: 2 * NANO,
                own: 60 * NANO,
                copy_millis: 200_000,
                wake: 300 * NANO,
                storage: 1,
            },
            Network::Ndr => Profile {
                latency: 600 * NANO,
                overhead: 150 * NANO,
                gap: 5 * NANO,
                byte_millis: 20_600,
                atomic: 100 * NANO,
                atomic_word: NANO,
                own: 40 * NANO,
                copy_millis: 83_000,
                wake: 200 * NANO,
                storage: 1,
            },
        }
    }
}

impl Profile {
    /// Bytes on a link.
    pub fn bytes(&self, bytes: usize) -> Picos {
        bytes as u64 * self.byte_millis / 1000
    }

    /// Bytes that a processor copies.
    pub fn copy(&self, bytes: u64) -> Picos {
        bytes * self.copy_millis / 1000
    }

    /// An atomic operation on so many words.
    pub fn atomics(&self, words: usize) -> Picos {
        self.atomic + self.atomic_word * words.saturating_sub(1) as u64
    }

    /// A meeting of all ranks in which each gives so many bytes: messages of doubling size, to
    /// ranks at doubling distances.
    pub fn meeting(&self, ranks: usize, bytes: usize) -> Picos {
        let rounds = ranks.next_power_of_two().trailing_zeros();
        (0..rounds).map(|round| self.latency + 2 * self.overhead + self.bytes(bytes << round)).sum()
    }
}
