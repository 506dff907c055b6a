//! What is simulated: sizes, latencies, the persistency model, and the named configurations of the
//! paper and of its artifact.

use serde::{Deserialize, Serialize};

use crate::{LINE, named};

/// Which persistency model the hardware has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// Unbuffered epochs: each order flushes and empties the L1 of persistent data (the paper's
    /// "epoch"; GPM's model).
    Epoch,
    /// Scoped buffered release persistency.
    Sbrp,
}

/// Where persistent memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the board.
    Near,
    /// Behind PCIe.
    Far,
}

/// When the persist buffer is flushed (section 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// As soon as the order allows.
    Eager,
    /// When something waits for it.
    Lazy,
    /// With so many persists under way ([`Config::window`]).
    Window,
    /// The window is adapted, between 2 and 12, to the latency of acknowledgements.
    Adaptive,
}

/// A rule of the buffer that can be taken away, to see who notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A store to a buffered line waits when its warp has ordered since (6.1, persist).
    Coalesce,
    /// A persist waits while a warp of its is in the FSM.
    Flush,
    /// An oFence sets the FSM.
    Fence,
    /// An acquire sets the FSM.
    Acquire,
    /// A release of block scope sets the FSM.
    Release,
    /// A release of device scope waits until all is durable.
    DeviceRelease,
    /// A dFence waits until all is durable.
    Durability,
    /// A line that an order precedes is not evicted (6.1, eviction).
    Eviction,
    /// An evicted line is held against the FSM.
    EvictionFlush,
    /// Entries leave in their order.
    Fifo,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 10] = [
        Rule::Coalesce,
        Rule::Flush,
        Rule::Fence,
        Rule::Acquire,
        Rule::Release,
        Rule::DeviceRelease,
        Rule::Durability,
        Rule::Eviction,
        Rule::EvictionFlush,
        Rule::Fifo,
    ];
}

macro_rules! settings {
    ($( $(#[doc = $doc:literal])* $name:ident: $type:ty, )*) => {
        /// A simulated GPU. Times are core cycles; bandwidths are bytes a core cycle, of the whole
        /// GPU.
        #[derive(Clone, Debug, PartialEq, Serialize)]
        pub struct Config { $( $(#[doc = $doc])* pub $name: $type, )* }

        /// Settings that differ from a named configuration's.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Changes { $( $(#[doc = $doc])* pub $name: Option<$type>, )* }

        impl Config {
            /// With the changes made.
            pub fn with(mut self, changes: &Changes) -> Self {
                $( if let Some(value) = &changes.$name { self.$name = value.clone(); } )*
                self
            }
        }
    };
}

settings! {
    /// Streaming multiprocessors.
    sms: u32,
    /// Warps that an SM holds: 32 at most, as the masks have 32 bits.
    warps: u32,
    /// Warp schedulers of an SM.
    schedulers: u32,
    /// Bytes of shared memory of an SM.
    shared_bytes: u64,
    /// Lines of 128 bytes of an SM's L1, fully associative.
    l1_lines: u32,
    /// Latency of a hit in L1, and of shared memory.
    l1_latency: u64,
    /// Bytes of L2.
    l2_bytes: u64,
    /// Slices of L2, and half as many memory channels.
    l2_slices: u32,
    /// Latency of a hit in L2, both ways of the crossbar included.
    l2_latency: u64,
    /// Bytes of a flit: what an SM's port of the crossbar passes in a cycle, each way.
    flit_bytes: f64,
    /// Volatile memory.
    gddr_latency: u64,
    /// Its bandwidth.
    gddr_bytes: f64,
    /// Where persistent memory is.
    place: Place,
    /// What a read of persistent memory takes behind L2.
    pm_latency: u64,
    /// What a persist takes from L2 to the persistence domain: to the queue of a memory controller
    /// (ADR), whose medium nobody waits for.
    persist_latency: u64,
    /// Read bandwidth of persistent memory, or of PCIe before it.
    pm_read_bytes: f64,
    /// Write bandwidth of the same.
    pm_write_bytes: f64,
    /// Bytes in the write queues of persistent memory's controllers, all together: they are durable
    /// (ADR). None where PCIe, before the controller, is the narrowest place.
    pm_queue_bytes: u64,
    /// What a launch of a kernel takes before its first instruction.
    launch_cycles: u64,
    /// The persistency model.
    model: Model,
    /// Entries of an SM's persist buffer.
    buffer_entries: u32,
    /// When the buffer is flushed.
    policy: Policy,
    /// Persists under way of an SM, where the policy is a window.
    window: u32,
    /// Whether a full buffer, and an eviction that an order forbids, let entries leave beyond the
    /// window (section 7.3, on the buffer's size; the artifact's code).
    drains_when_full: bool,
    /// Orders of block scope are executed as of device scope (Fig. 7).
    scopes_off: bool,
    /// Flush counters of an SM, each of a group of warps: 1 in the paper, at most 8.
    counters: u32,
    /// Marks of the FSM wait for the flushes that were under way when they were set, and not for
    /// later ones: two counters by turns, and a bit of each flush's acknowledgement that says
    /// which. Only with one counter otherwise.
    generations: bool,
    /// Entries behind a marked head that are looked at for one that no order holds, which leaves
    /// before its turn, as an evicted line does.
    bypass: u32,
    /// A store to a buffered line whose warp has ordered since opens a second version instead of
    /// waiting.
    versions: bool,
    /// Bytes of the parts of a line that an entry tells apart, 0 for none: a store to a buffered
    /// line whose warp has ordered since gets an entry of its own, without waiting, where no entry
    /// of the line has any of its parts.
    granule: u32,
    /// A write to a sector that is in a controller's queue takes its place there.
    queue_merges: bool,
    /// A store that has to wait keeps other warps from L1, and one that waits for a line does so
    /// until nothing is under way: as the artifact's simulator, and not the paper's text.
    artifact_waits: bool,
    /// A dFence lets its warp go on until what it does next can be noticed outside.
    lazy_durability: bool,
    /// Whether what the buffer still holds when all threads have ended counts in the cycles of a
    /// launch. It is flushed in any case.
    final_flush: bool,
    /// Rules of the buffer that are taken away: for tests.
    without: Vec<Rule>,
    /// Cycles after which a launch is said not to end.
    budget: u64,
}

/// A configuration that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{setting}: {reason}")]
pub struct ConfigError {
    /// The setting's name.
    pub setting: &'static str,
    /// What is wrong.
    pub reason: String,
}

impl Config {
    /// A named configuration: see [`named::names`].
    pub fn named(name: &str) -> Option<Config> {
        named::find(name)
    }

    /// Whether a rule holds.
    pub fn has(&self, rule: Rule) -> bool {
        !self.without.contains(&rule)
    }

    /// Whether it can be simulated.
    ///
    /// # Errors
    /// The first setting that is out of bounds.
    pub fn check(&self) -> Result<(), ConfigError> {
        let range = |setting, value: u64, low: u64, high: u64| {
            let reason = format!("{value} is not between {low} and {high}");
            if (low..=high).contains(&value) { Ok(()) } else { Err(ConfigError { setting, reason }) }
        };
        range("sms", self.sms.into(), 1, 1024)?;
        range("warps", self.warps.into(), 1, 32)?;
        range("schedulers", self.schedulers.into(), 1, self.warps.into())?;
        range("shared_bytes", self.shared_bytes, 0, 1 << 20)?;
        range("l1_lines", self.l1_lines.into(), 64, 1 << 16)?;
        range("l1_latency", self.l1_latency, 1, 1 << 20)?;
        range("l2_slices", self.l2_slices.into(), 2, 1024)?;
        range("l2_bytes", self.l2_bytes, u64::from(self.l2_slices) * 16 * 128, 1 << 32)?;
        range("l2_latency", self.l2_latency, 4, 1 << 20)?;
        range("gddr_latency", self.gddr_latency, 1, 1 << 20)?;
        range("pm_latency", self.pm_latency, 1, 1 << 20)?;
        range("persist_latency", self.persist_latency, 0, 1 << 20)?;
        range("launch_cycles", self.launch_cycles, 0, 1 << 30)?;
        // One warp's store may touch 32 lines, each of which needs an entry, and its order one
        // more.
        range("buffer_entries", self.buffer_entries.into(), 32, self.l1_lines.into())?;
        range("window", self.window.into(), 1, 255)?;
        range("counters", self.counters.into(), 1, if self.generations { 1 } else { 8 })?;
        range("bypass", self.bypass.into(), 0, self.buffer_entries.into())?;
        if ![0, 4, 8, 16, 32].contains(&self.granule) || (self.granule > 0 && self.versions) {
            let reason = "0, 4, 8, 16 or 32, and 0 with versions".to_string();
            return Err(ConfigError { setting: "granule", reason });
        }
        for (setting, value) in [
            ("flit_bytes", self.flit_bytes),
            ("gddr_bytes", self.gddr_bytes),
            ("pm_read_bytes", self.pm_read_bytes),
            ("pm_write_bytes", self.pm_write_bytes),
        ] {
            if !(value.is_finite() && (0.01..=1e6).contains(&value)) {
                return Err(ConfigError { setting, reason: format!("{value} is no bandwidth in bytes a cycle") });
            }
        }
        Ok(())
    }

    /// Bits that the persist buffer and its masks and counters add to an SM (section 6).
    pub fn storage_bits(&self) -> u64 {
        let (entries, lines, warps) = (u64::from(self.buffer_entries), u64::from(self.l1_lines), u64::from(self.warps));
        let bits = |most: u64| u64::from(u64::BITS - most.saturating_sub(1).leading_zeros());
        let parts = LINE.checked_div(u64::from(self.granule)).unwrap_or(0);
        let entry = 3 + warps + bits(lines) + parts;
        // A bit that says persistent, the entry's index; with versions one bit that says that this
        // is the older one.
        let line = 1 + bits(entries) + u64::from(self.versions);
        // With several counters an acquire's bits are apart, as they wait for all of them.
        let apart = u64::from(self.counters > 1) + u64::from(self.generations) + u64::from(self.lazy_durability);
        let masks = (3 + apart) * warps;
        let adaptive = if self.policy == Policy::Adaptive { 4 + 2 * 16 } else { 0 };
        // Of two generations one has a counter more, and a bit that says which is the current one.
        let counters = 8 * u64::from(self.counters) + 9 * u64::from(self.generations);
        entries * entry + lines * line + masks + counters + adaptive
    }
}
