//! What a server is told when it is started.
//!
//! | file | holds |
//! |---|---|
//! | `network.rs` | addresses, clients, TLS |
//! | `access.rs` | passwords, users, commands that are renamed or disabled |

mod access;
mod network;

pub use access::{AccessOptions, Renamed};
use nearpm::memory::PowerCut;
use nearpm::{Durability, Survives, size};
pub use network::{NetworkOptions, resolve};

/// What a reply waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// Each command is a transaction of its own, and is durable before its reply leaves: nothing
    /// that was answered is lost
    Durable,
    /// As durable, but what clients ask for meanwhile shares a transaction and a synchronisation:
    /// nothing that was answered is lost
    #[default]
    Group,
    /// The reply waits for nothing, and the pool is synchronised every so often: a power cut takes
    /// back the last changes, in their order; the end of the process alone takes back nothing
    Async,
}

/// What a pool in a file survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Survival {
    /// Power cuts: on an ordinary file by synchronising it, on a DAX file system by write-backs
    #[default]
    PowerCut,
    /// The end of the process, and no more
    ProcessCrash,
    /// Power cuts, if the file lies in persistent memory although the system does not say so
    /// (tmpfs, for measurements)
    AsPersistentMemory,
}

impl From<Survival> for Survives {
    fn from(survival: Survival) -> Survives {
        match survival {
            Survival::PowerCut => Survives::PowerCut,
            Survival::ProcessCrash => Survives::ProcessCrash,
            Survival::AsPersistentMemory => Survives::AsPersistentMemory,
        }
    }
}

/// What happens when memory is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Eviction {
    /// Of a few keys drawn at random the one that was used longest ago goes
    Lru,
    /// Commands that need memory are refused
    None,
}

/// What a server is told when it is started.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Pool to serve: a file, or card:NAME/POOL. It is created if it does not exist
    #[arg(long)]
    pub pool: String,
    /// Bytes of the pool if it is created, as in 64M or 1.5G
    #[arg(long, value_parser = size::parse, default_value = "1G")]
    pub bytes: u64,
    /// Addresses and clients.
    #[command(flatten)]
    pub network: NetworkOptions,
    /// Passwords and users.
    #[command(flatten)]
    pub access: AccessOptions,
    /// Threads that serve clients
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub threads: u64,
    /// Bytes that keys and values may take; the pool's own size bounds them anyway
    #[arg(long, value_parser = size::parse)]
    pub memory_limit: Option<u64>,
    /// What happens when memory is used up [default: lru for memcached, none for redis]
    #[arg(long, value_enum)]
    pub eviction: Option<Eviction>,
    /// What a reply waits for
    #[arg(long, value_enum, default_value_t)]
    pub durability: Level,
    /// With --durability async: milliseconds between synchronisations
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    pub sync_ms: u64,
    /// What a pool in a file survives
    #[arg(long, value_enum, default_value_t)]
    pub survives: Survival,
    /// Bytes of the largest value, at most 64M
    #[arg(long, value_parser = value_bytes, default_value = "1M")]
    pub max_value: u64,
    /// Address and port at which Prometheus fetches metrics, by HTTP at /metrics; a port alone is
    /// one of 127.0.0.1
    #[arg(long)]
    pub metrics: Option<String>,
    /// What is told on standard error, each level with those before it
    #[arg(long, default_value = "warn")]
    pub log_level: log::LevelFilter,
    /// For tests: cut the power of the pool's memory (fence=N,event=N,seed=N,evict=N,torn=1)
    #[arg(long, hide = true)]
    pub power_cut: Option<PowerCut>,
}

/// Bytes of a value.
fn value_bytes(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text).map_err(|error| error.to_string())?;
    if bytes <= 64 << 20 { Ok(bytes) } else { Err("a value has 64M at most".to_owned()) }
}

impl Options {
    /// How the pool is opened.
    pub(crate) fn direct(&self) -> nearpm::Options {
        let durability = match self.durability {
            Level::Durable => Durability::Durable,
            // Waiting is a step of its own, which threads share.
            Level::Group | Level::Async => Durability::Asynchronous,
        };
        nearpm::Options::new().survives(self.survives.into()).durability(durability).power_cut(self.power_cut)
    }
}

#[cfg(test)]
mod tests {
    use super::value_bytes;

    #[test]
    fn values_have_a_largest_size() {
        assert_eq!(value_bytes("64m"), Ok(64 << 20));
        assert_eq!(value_bytes("1.5K"), Ok(1536));
        for bad in ["64.1M", "0", "-1", ""] {
            assert!(value_bytes(bad).is_err(), "{bad}");
        }
    }
}
