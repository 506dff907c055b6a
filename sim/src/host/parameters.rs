//! What things cost on the host, in picoseconds, with sources.
//!
//! Sources: *paper* is NearPM (EuroSys '23); *SDM* is Intel's Software Developer's Manual; *PCIe*
//! is the PCI Express Base Specification 3.0. Where no published figure exists the comment says
//! "estimate".

/// Bytes from which a checksum is worth splitting into chains.
const LONG_CHECKSUM_BYTES: u64 = 1024;

/// How caches and buffers behave where the processor's contract leaves them free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// As processors mostly do: least recently used lines are evicted, full buffers drain at once,
    /// write-backs start at once.
    Ordinary,
    /// By seed, the worst that is permitted.
    Adversarial {
        /// An unasked-for eviction, prefetch or drain happens at one in this many accesses.
        one_in: u64,
        /// Seed of the choices.
        seed: u64,
    },
}

/// Costs and sizes of host and link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// A load that misses, from an idle card: 436 ns (paper, section 7).
    pub load_miss_ps: u64,
    /// Part of [`Parameters::load_miss_ps`] that an idle card takes, port to port. The link takes
    /// the rest. It is the time of the card's own idle read on the RTL and the fitted model: 27
    /// cycles of memory, 12 of host port and queue, at 300 MHz.
    pub card_read_ps: u64,
    /// Misses in flight on average, in hundredths: 4.2, from the fit of the paper's figure 17.
    pub load_parallelism_percent: u64,
    /// Lines that a load of several asks for ahead of the one that it waits for.
    pub look_ahead_lines: u64,
    /// A load or store that hits: L1 and L2 mixed, estimate.
    pub hit_ps: u64,
    /// CRC-32C of eight bytes: one instruction of three cycles at 3 GHz, each waiting for the one
    /// before (Intel optimization manual; the latency is the same since Nehalem).
    pub checksum_word_ps: u64,
    /// CRC-32C of eight bytes of a long run: three interleaved chains.
    pub checksum_long_word_ps: u64,
    /// Issue of a store of up to eight bytes: estimate, one per two cycles at 3 GHz.
    pub store_ps: u64,
    /// Issue of a line write-back (clwb): estimate, Optane studies give one per 10 to 20 cycles.
    pub write_back_ps: u64,
    /// Fence that has nothing to wait for: estimate, 30 cycles at 3 GHz.
    pub fence_ps: u64,
    /// From the departure of the last posted write to the end of a fence behind it. 0 on a link
    /// with posted writes, whose root port takes them; the trip to the memory controller where
    /// writes are acknowledged (DDR, CXL).
    pub fence_drain_ps: u64,
    /// A posted write from the core to the root port: estimate, a mesh crossing of about 60 cycles.
    pub leave_ps: u64,
    /// Posted writes that a core has under way to the root port before it stalls: 12 line fill
    /// buffers (SDM).
    pub core_posted: u64,
    /// Write-combining buffers of a core: 10 line fill buffers that may be used so (SDM).
    pub combine_buffers: usize,
    /// Lines that the caches hold: 1 MiB, a core's L2.
    pub cache_lines: usize,
    /// Link rate after encoding, in bytes per microsecond: PCIe 3.0 x8, 8 x 8 GT/s x
    /// 128/130 = 7877.
    pub link_bytes_per_us: u64,
    /// Bytes around the payload of a packet: header 16, framing and LCRC 8, share of DLLPs 2 (PCIe;
    /// 64-byte payloads on x16 then run at 11.2 GB/s).
    pub packet_overhead: u64,
    /// Posted writes that the card's port has room for before it returns credits: 64 headers,
    /// estimate.
    pub posted_credits: usize,
    /// All cards lie behind one link, as several on one board do; otherwise each has its own.
    pub shared_link: bool,
    /// A load from host memory that the card has not written since: a hit.
    pub poll_hit_ps: u64,
    /// A load from host memory that the card has written: last-level cache, estimate 60 ns.
    pub poll_miss_ps: u64,
    /// From the interrupt message to the waiting thread: estimate, 2 us.
    pub interrupt_ps: u64,
    /// Between two looks at a lock that another core holds: `pause`, and the lock's line, which
    /// moves between caches; estimate, 20 ns.
    pub lock_ps: u64,
    /// Cycles of the card that the save energy lasts for at a power cut.
    pub save_cycles: u64,
    /// What programs say they will use is fetched ahead; otherwise that is ignored, as if they did
    /// not say it.
    pub fetches_ahead: bool,
    /// What caches and buffers do.
    pub behaviour: Behaviour,
}

impl Default for Parameters {
    /// A server core and a card on PCIe 3.0 x8.
    fn default() -> Self {
        Parameters {
            load_miss_ps: 436_000,
            card_read_ps: 130_000,
            load_parallelism_percent: 420,
            look_ahead_lines: 8,
            hit_ps: 2_000,
            checksum_word_ps: 1_000,
            checksum_long_word_ps: 333,
            store_ps: 700,
            write_back_ps: 5_000,
            fence_ps: 10_000,
            fence_drain_ps: 0,
            leave_ps: 20_000,
            core_posted: 12,
            combine_buffers: 10,
            cache_lines: 16_384,
            link_bytes_per_us: 7_877,
            packet_overhead: 26,
            posted_credits: 64,
            shared_link: false,
            poll_hit_ps: 2_000,
            poll_miss_ps: 60_000,
            interrupt_ps: 2_000_000,
            lock_ps: 20_000,
            save_cycles: 30_000,
            fetches_ahead: true,
            behaviour: Behaviour::Ordinary,
        }
    }
}

impl Parameters {
    /// The same host on a PCIe 3.0 x16 link.
    pub fn x16(self) -> Self {
        Parameters { link_bytes_per_us: 15_754, ..self }
    }

    /// The same host with adversarial caches and buffers.
    pub fn adversarial(self, seed: u64) -> Self {
        Parameters { behaviour: Behaviour::Adversarial { one_in: 4, seed }, ..self }
    }

    /// Time that the checksum of so many bytes takes.
    pub fn checksum_ps(&self, bytes: u64) -> u64 {
        let word_ps = if bytes < LONG_CHECKSUM_BYTES { self.checksum_word_ps } else { self.checksum_long_word_ps };
        bytes.div_ceil(8) * word_ps
    }

    /// Time that a packet with that payload occupies the link.
    pub fn packet_ps(&self, payload: u64) -> u64 {
        (payload + self.packet_overhead) * 1_000_000 / self.link_bytes_per_us
    }

    /// From the end of a packet on one side of the link to its arrival on the other.
    pub fn one_way_ps(&self) -> u64 {
        let packets = self.packet_ps(0) + self.packet_ps(64);
        self.load_miss_ps.saturating_sub(self.card_read_ps + packets) / 2
    }

    /// Time that each further load miss adds where many are in flight.
    pub fn load_spacing_ps(&self) -> u64 {
        self.load_miss_ps * 100 / self.load_parallelism_percent
    }
}
