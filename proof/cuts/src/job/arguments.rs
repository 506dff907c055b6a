//! What a run is told.

use std::fmt;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nearpm::{Durability, Engine, Mechanism, Options, size};
use nearpm_driver::Posting;
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::host::Parameters;
use nearpm_workloads::ops::{self, Mix, Op};

use crate::cut::PowerCuts;

/// Structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// A B+tree
    Btree,
    /// A hash map that grows
    Hashmap,
}

/// What stands behind the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CardChoice {
    /// No card: the processor makes the copies, on simulated memory of its own
    None,
    /// The transaction-level card
    Model,
    /// The Verilated RTL
    Rtl,
}

/// What the operations are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MixChoice {
    /// Each inserts a random key
    Inserts,
    /// Inserts, updates, removals and look-ups on few keys
    Churn,
}

/// How the host's caches and buffers behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum HostChoice {
    /// As processors mostly do
    Ordinary,
    /// The worst that a processor may do, by seed: lines are evicted and prefetched and buffers
    /// drained at any time
    Adversarial,
}

/// How the driver posts commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PostingChoice {
    /// One 64-byte store that is never split
    Line,
    /// Write-combining stores
    Combining,
    /// Eight uncached stores
    Uncached,
}

impl From<PostingChoice> for Posting {
    fn from(choice: PostingChoice) -> Posting {
        match choice {
            PostingChoice::Line => Posting::Line,
            PostingChoice::Combining => Posting::WriteCombining,
            PostingChoice::Uncached => Posting::Uncached,
        }
    }
}

/// What the commits of transactions wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CommitChoice {
    /// Each is durable when it returns
    Durable,
    /// They are ordered only, and made durable together after every epoch (undo and redo; elsewhere
    /// it makes no difference)
    Asynchronous,
}

/// Arguments of `nearpm run`.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct RunArguments {
    /// Structure to work on
    #[arg(long, value_enum, default_value = "btree")]
    pub workload: Workload,
    /// Mechanism: undo, redo, checkpoint or shadow
    #[arg(long, default_value = "undo")]
    pub mechanism: Mechanism,
    /// Card
    #[arg(long, value_enum, default_value = "model")]
    pub card: CardChoice,
    /// Memory ports of the card, each with a DDR4 channel behind it: 1, or 2 (RTL)
    #[arg(long, default_value_t)]
    pub memory_ports: MemoryPorts,
    /// Operations, each a transaction
    #[arg(long, default_value_t = 10_000)]
    pub ops: usize,
    /// What the operations are
    #[arg(long, value_enum, default_value = "inserts")]
    pub mix: MixChoice,
    /// When the power fails: never, op:K, cycle:K, access:K or random. Further cuts, each after the
    /// next power-up, follow with commas; @E behind a cut leaves the save E cycles of energy
    #[arg(long, default_value = "random")]
    pub power_cut: PowerCuts,
    /// Seed of keys, values and of what the power cut leaves
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What commits wait for
    #[arg(long, value_enum, default_value = "durable")]
    pub commits: CommitChoice,
    /// Operations of an epoch (checkpoint and shadow paging), and between two calls that make
    /// asynchronous commits durable
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..))]
    pub epoch: u64,
    /// Bytes of the pool's log ring, which recovery reads whole: 16 KiB to 64 MiB in pages of 4 KiB
    #[arg(long, default_value_t = RING_BYTES, value_parser = ring)]
    pub ring: u32,
    /// Bytes of the pool; without it, enough for the operations
    #[arg(long, value_parser = size::parse)]
    pub pool: Option<u64>,
    /// Caches and buffers of the simulated host
    #[arg(long, value_enum, default_value = "ordinary")]
    pub host: HostChoice,
    /// How commands are posted
    #[arg(long, value_enum, default_value = "line")]
    pub posting: PostingChoice,
    /// Write every signal of the RTL to this file: FST with a GTKWave file that groups the signals
    /// of interest where it ends in .fst, VCD otherwise. VCD, which comes first, takes about 200
    /// bytes a cycle, so with few operations and a short ring. Power-ups behind the first are in
    /// FILE.1.fst and so on
    #[arg(long, value_name = "FILE")]
    pub waves: Option<PathBuf>,
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
}

/// A size of a log ring.
fn ring(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map_err(|_| "a log ring has 64M at most".to_owned())
}

/// Bytes of the log ring where nothing else is asked for: the pages of an epoch fit.
pub const RING_BYTES: u32 = 4 << 20;
/// Pools are multiples of this where their size is not asked for.
const GRAIN: u64 = 2 << 20;

impl RunArguments {
    /// The operations.
    pub fn operations(&self) -> Vec<Op> {
        let mix = match self.mix {
            MixChoice::Inserts => Mix::Inserts,
            MixChoice::Churn => Mix::Churn,
        };
        ops::generate(mix, self.seed, self.ops)
    }

    /// Bytes of the pool: key, value, their share of nodes and of the allocator, shadow pages, and
    /// the ring.
    pub fn pool_bytes(&self) -> u64 {
        self.pool.unwrap_or_else(|| (3 * u64::from(self.ring) + 320 * self.ops as u64).next_multiple_of(GRAIN))
    }

    /// Options of the pool. Epochs are cut by the run.
    pub fn pool_options(&self, engine: Engine) -> Options {
        let options = Options::new().mechanism(self.mechanism).engine(engine).lanes(1).ring_bytes(self.ring);
        options.epoch_ops(0).id(1).durability(self.durability())
    }

    /// What commits wait for. Epochs are cut whatever was asked for.
    pub fn durability(&self) -> Durability {
        match self.commits {
            CommitChoice::Asynchronous if !self.mechanism.has_epochs() => Durability::Asynchronous,
            CommitChoice::Asynchronous | CommitChoice::Durable => Durability::Durable,
        }
    }

    /// The simulated host.
    pub fn parameters(&self) -> Parameters {
        match self.host {
            HostChoice::Ordinary => Parameters::default(),
            HostChoice::Adversarial => Parameters::default().adversarial(self.seed),
        }
    }
}

/// The command line that repeats the run.
impl fmt::Display for RunArguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn name(value: impl ValueEnum) -> String {
            value.to_possible_value().expect("no value is skipped").get_name().to_owned()
        }
        let RunArguments { ops, power_cut, seed, epoch, ring, .. } = self;
        write!(f, "nearpm run --workload {} --mechanism {}", name(self.workload), self.mechanism.name())?;
        write!(f, " --card {} --ops {ops} --mix {}", name(self.card), name(self.mix))?;
        write!(f, " --power-cut {power_cut} --seed {seed} --epoch {epoch} --ring {ring}")?;
        if self.memory_ports != MemoryPorts::default() {
            write!(f, " --memory-ports {}", self.memory_ports)?;
        }
        if self.commits != CommitChoice::Durable {
            write!(f, " --commits {}", name(self.commits))?;
        }
        if let Some(bytes) = self.pool {
            write!(f, " --pool {bytes}")?;
        }
        write!(f, " --host {} --posting {}", name(self.host), name(self.posting))
    }
}
