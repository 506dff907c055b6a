//! Profiles: every timing parameter of host, link and card in one TOML file, each with the source
//! of its value.
//!
//! ```toml
//! base = "vcu118-300"           # optional: what is not said here is as there
//! title = "one line for people"
//! [host]
//! load_miss_ns = { value = 436.0, source = "paper, section 7" }
//! ```
//!
//! Keys that do not exist, values outside of what can be and values without a source are refused: a
//! profile is read as it is meant, or not at all.

use std::path::Path;

use nearpm_driver::pci::Caching;
use nearpm_interface::geometry::LINE_U64;
use serde::Deserialize;

use crate::host::{Parameters, Peers};
use crate::model::{self, MOST_UNITS, Timing};

nearpm_interface::debug_as_display!(ProfileError);

/// Profiles that are part of this program, by name.
pub const EMBEDDED: [(&str, &str); 10] = [
    ("paper-vcu118", include_str!("../profiles/paper-vcu118.toml")),
    ("vcu118-300", include_str!("../profiles/vcu118-300.toml")),
    ("vcu118-300-wc", include_str!("../profiles/vcu118-300-wc.toml")),
    ("vcu118-300-uc", include_str!("../profiles/vcu118-300-uc.toml")),
    ("vcu118-250", include_str!("../profiles/vcu118-250.toml")),
    ("vcu118-200", include_str!("../profiles/vcu118-200.toml")),
    ("cxl-type3", include_str!("../profiles/cxl-type3.toml")),
    ("optane-ddr", include_str!("../profiles/optane-ddr.toml")),
    ("pcie5", include_str!("../profiles/pcie5.toml")),
    ("two-sockets", include_str!("../profiles/two-sockets.toml")),
];

/// Longest chain of bases.
const MOST_BASES: usize = 4;

/// Why a profile is refused.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// There is no such profile.
    #[error("there is no profile {name:?}: use one of {}, or the path of a TOML file", names())]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The file cannot be read.
    #[error("the profile {path} cannot be read: {error}")]
    Unreadable {
        /// Its path.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// It is not TOML, or has other keys or types than a profile.
    #[error("the profile {name} is wrong: {error}")]
    Malformed {
        /// Name or path.
        name: String,
        /// Where, and what.
        error: Box<toml::de::Error>,
    },
    /// Profiles rest on each other in a circle, or in too long a chain.
    #[error("the profile {name} rests on more than {MOST_BASES} others, one behind the other")]
    Bases {
        /// Name or path.
        name: String,
    },
    /// A value cannot be.
    #[error("the profile {name}: {key} is {value}, and must be {must}")]
    Nonsense {
        /// Name or path.
        name: String,
        /// Which value.
        key: String,
        /// What it is.
        value: String,
        /// What it may be.
        must: String,
    },
}

fn names() -> String {
    EMBEDDED.map(|(name, _)| name).join(", ")
}

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sourced {
    /// The value, in the unit that its key names.
    pub value: f64,
    /// Publication, standard, or "estimate" with its reason.
    pub source: String,
}

/// A value of a profile with its name and what it may be.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'p> {
    /// Section: `host`, `link` or `device`.
    pub section: &'static str,
    /// Name, with the unit.
    pub key: &'static str,
    /// The value.
    pub sourced: &'p Sourced,
    /// Least possible value.
    pub low: f64,
    /// Greatest possible value.
    pub high: f64,
}

/// Makes a section of a profile, the names of its values, and what each of them may be.
macro_rules! section {
    ($(#[$doc:meta])* $section:ident, $name:literal { $($(#[$key_doc:meta])* $key:ident: $low:literal..=$high:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $section {
            $($(#[$key_doc])* pub $key: Sourced,)+
        }

        impl $section {
            fn entries(&self) -> Vec<Entry<'_>> {
                vec![$(Entry {
                    section: $name,
                    key: stringify!($key),
                    sourced: &self.$key,
                    low: $low as f64,
                    high: $high as f64,
                },)+]
            }
        }
    };
}

section! {
    /// Processor and caches; what the values mean is said at [`Parameters`].
    Host, "host" {
        /// A load that misses.
        load_miss_ns: 10..=100_000,
        /// Misses in flight, on average.
        load_parallelism: 1..=64,
        /// Lines that a load asks for ahead of the one that it waits for.
        look_ahead_lines: 0..=64,
        /// A load or store that hits.
        hit_ns: 0..=1_000,
        /// CRC-32C of eight bytes.
        checksum_word_ns: 0..=100,
        /// CRC-32C of eight bytes of a long run.
        checksum_long_word_ns: 0..=100,
        /// A store of up to eight bytes.
        store_ns: 0..=1_000,
        /// A line write-back.
        write_back_ns: 0..=10_000,
        /// A fence that waits for nothing.
        fence_ns: 0..=10_000,
        /// From the departure of the last posted write to the end of a fence.
        fence_drain_ns: 0..=100_000,
        /// From a core to the root port.
        leave_ns: 0..=10_000,
        /// Posted writes of a core before it stalls.
        core_posted: 1..=1_024,
        /// Write-combining buffers.
        combine_buffers: 1..=64,
        /// Cache for the card's memory, in KiB.
        cache_kib: 4..=1_048_576,
        /// A load from host memory that hits.
        poll_hit_ns: 0..=1_000,
        /// A load from host memory that the card has written.
        poll_miss_ns: 0..=10_000,
        /// From an interrupt to the waiting thread.
        interrupt_ns: 0..=1_000_000,
        /// Between two looks at a lock that another core holds.
        lock_ns: 1..=10_000,
        /// A write-protection fault that a first touch is found by, where one is.
        fault_ns: 0..=1_000_000,
        /// How the processor maps the card's memory: 0 write-back, 1 write-combining, 2 uncached.
        window: 0..=2,
        /// A load from the processor's own memory that misses its caches.
        memory_ns: 0..=10_000,
    }
}

section! {
    /// The link to a card, and those between cards.
    Link, "link" {
        /// Bytes a nanosecond and direction, after encoding.
        gb_per_s: 0.1..=1_000,
        /// Bytes around the payload of a packet.
        packet_overhead: 0..=1_024,
        /// Posted writes that the card has room for.
        posted_credits: 1..=65_536,
        /// 1 where all cards lie behind one link, 0 where each has its own.
        shared: 0..=1,
        /// From a card's port to that of another one.
        peer_ns: 1..=1_000_000,
    }
}

section! {
    /// The card.
    Device, "device" {
        /// Clock of the card.
        clock_mhz: 10..=5_000,
        /// NearPM units.
        units: 1..=8,
        /// Written bytes a nanosecond between units and memory.
        bus_gb_per_s: 0.1..=1_000,
        /// Cycles that every command takes besides what the stages of this project's RTL do.
        extra_issue_cycles: 0..=100_000,
        /// Part of a load that an idle card takes.
        read_ns: 1..=100_000,
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Whole {
    title: String,
    host: Host,
    link: Link,
    device: Device,
}

/// A profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Name, or path of the file.
    pub name: String,
    /// One line for people.
    pub title: String,
    /// Processor and caches.
    pub host: Host,
    /// Links.
    pub link: Link,
    /// The card.
    pub device: Device,
}

/// The table of a profile over that of its base. Values are replaced with their sources, never one
/// without the other.
fn over(base: toml::Table, own: toml::Table) -> toml::Table {
    let mut merged = base;
    for (key, value) in own {
        let is_section = |table: &toml::Table| !table.contains_key("value") && !table.contains_key("source");
        let value = match (merged.remove(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) if is_section(&above) => {
                toml::Value::Table(over(below, above))
            }
            (_, value) => value,
        };
        merged.insert(key, value);
    }
    merged
}

fn table(name: &str, text: &str, depth: usize) -> Result<toml::Table, ProfileError> {
    let malformed = |error| ProfileError::Malformed { name: name.into(), error: Box::new(error) };
    let mut own: toml::Table = text.parse().map_err(malformed)?;
    let Some(base) = own.remove("base") else { return Ok(own) };
    if depth == MOST_BASES {
        return Err(ProfileError::Bases { name: name.into() });
    }
    let base = base.as_str().unwrap_or_default();
    let found = EMBEDDED.iter().find(|(known, _)| *known == base);
    let (base, text) = found.ok_or_else(|| ProfileError::Unknown { name: base.into() })?;
    Ok(over(table(base, text, depth + 1)?, own))
}

impl Profile {
    /// The profile of a name, or in the file at a path.
    ///
    /// # Errors
    /// If there is none, or it is wrong.
    pub fn load(name: &str) -> Result<Profile, ProfileError> {
        if let Some((name, text)) = EMBEDDED.iter().find(|(known, _)| *known == name) {
            return Profile::parse(name, text);
        }
        let path = Path::new(name);
        if !name.contains(['/', '.']) && !path.exists() {
            return Err(ProfileError::Unknown { name: name.into() });
        }
        let text =
            std::fs::read_to_string(path).map_err(|error| ProfileError::Unreadable { path: name.into(), error })?;
        Profile::parse(name, &text)
    }

    /// The profile in a text.
    ///
    /// # Errors
    /// If it is wrong.
    pub fn parse(name: &str, text: &str) -> Result<Profile, ProfileError> {
        let malformed = |error| ProfileError::Malformed { name: name.into(), error: Box::new(error) };
        let whole: Whole = toml::Value::Table(table(name, text, 0)?).try_into().map_err(malformed)?;
        let Whole { title, host, link, device } = whole;
        let profile = Profile { name: name.into(), title, host, link, device };
        profile.check()?;
        Ok(profile)
    }

    /// Every value.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        [self.host.entries(), self.link.entries(), self.device.entries()].concat()
    }

    fn nonsense(&self, key: &str, value: f64, must: impl ToString) -> ProfileError {
        let (name, key, value) = (self.name.clone(), key.to_owned(), value.to_string());
        ProfileError::Nonsense { name, key, value, must: must.to_string() }
    }

    fn check(&self) -> Result<(), ProfileError> {
        for Entry { section, key, sourced: Sourced { value, source }, low, high } in self.entries() {
            let key = format!("{section}.{key}");
            if !(low..=high).contains(value) {
                return Err(self.nonsense(&key, *value, format!("{low} to {high}")));
            }
            if source.trim().is_empty() {
                return Err(self.nonsense(&key, *value, "given with its source"));
            }
        }
        let (read_ns, miss_ns) = (self.device.read_ns.value, self.host.load_miss_ns.value);
        if read_ns >= miss_ns {
            return Err(self.nonsense("device.read_ns", read_ns, format!("less than host.load_miss_ns, {miss_ns}")));
        }
        if self.host.window.value.fract() != 0.0 {
            return Err(self.nonsense("host.window", self.host.window.value, "0, 1 or 2"));
        }
        if self.link.shared.value.fract() != 0.0 {
            return Err(self.nonsense("link.shared", self.link.shared.value, "0 or 1"));
        }
        let (bus, own) = (self.device.bus_gb_per_s.value, self.line_rate());
        if bus > own * 1.001 {
            let must = format!("at most {own:.1}, a line of {LINE_U64} bytes a cycle");
            return Err(self.nonsense("device.bus_gb_per_s", bus, must));
        }
        Ok(())
    }

    /// Bytes a nanosecond of a line a cycle.
    fn line_rate(&self) -> f64 {
        LINE_U64 as f64 * self.device.clock_mhz.value / 1000.0
    }

    /// The simulated host with its link.
    pub fn parameters(&self) -> Parameters {
        let ps = |value: &Sourced| (value.value * 1000.0).round() as u64;
        let (host, link) = (&self.host, &self.link);
        Parameters {
            load_miss_ps: ps(&host.load_miss_ns),
            card_read_ps: ps(&self.device.read_ns),
            load_parallelism_percent: (host.load_parallelism.value * 100.0).round() as u64,
            look_ahead_lines: host.look_ahead_lines.value as u64,
            hit_ps: ps(&host.hit_ns),
            checksum_word_ps: ps(&host.checksum_word_ns),
            checksum_long_word_ps: ps(&host.checksum_long_word_ns),
            store_ps: ps(&host.store_ns),
            write_back_ps: ps(&host.write_back_ns),
            fence_ps: ps(&host.fence_ns),
            fence_drain_ps: ps(&host.fence_drain_ns),
            leave_ps: ps(&host.leave_ns),
            core_posted: host.core_posted.value as u64,
            combine_buffers: host.combine_buffers.value as usize,
            cache_lines: (host.cache_kib.value * 1024.0) as usize / LINE_U64 as usize,
            link_bytes_per_us: (link.gb_per_s.value * 1000.0).round() as u64,
            packet_overhead: link.packet_overhead.value as u64,
            posted_credits: link.posted_credits.value as usize,
            shared_link: link.shared.value == 1.0,
            poll_hit_ps: ps(&host.poll_hit_ns),
            poll_miss_ps: ps(&host.poll_miss_ns),
            interrupt_ps: ps(&host.interrupt_ns),
            lock_ps: ps(&host.lock_ns),
            ..Parameters::default()
        }
    }

    /// How the processor maps the card's memory.
    pub fn window(&self) -> Caching {
        match self.host.window.value as u64 {
            0 => Caching::WriteBack,
            1 => Caching::WriteCombining,
            _ => Caching::Uncached,
        }
    }

    /// The links between cards.
    pub fn peers(&self) -> Peers {
        Peers { latency_ps: (self.link.peer_ns.value * 1000.0).round() as u64, ..Peers::default() }
    }

    /// The transaction-level card with so many units.
    ///
    /// # Panics
    /// If the model has not so many, or none.
    pub fn card(&self, units: usize) -> model::Config {
        assert!((1..=MOST_UNITS).contains(&units), "a card with {units} units, not 1 to {MOST_UNITS}");
        let device = &self.device;
        let timing = Timing { issue: Timing::CARD.issue + device.extra_issue_cycles.value as u64, ..Timing::CARD };
        model::Config {
            card_mhz: device.clock_mhz.value as u64,
            timing,
            units,
            line_percent: (100.0 * self.line_rate() / device.bus_gb_per_s.value).round().max(100.0) as u64,
            ..model::Config::default()
        }
    }

    /// Units of its card.
    pub fn units(&self) -> usize {
        self.device.units.value as usize
    }
}
