//! By what a card is reached, and how it is opened there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nearpm::{CardPool, cards};
use nearpm_address::{Address, WAYS, named};
use nearpm_driver::{Card, Posting, Waiting};
use nearpm_interface::geometry::{PCI_DEVICE, PCI_VENDOR};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::host::Parameters;

use nearpm_cards::{Rig, SimulatedCard};

/// Persistent memory of a card that is simulated in this process.
const POOL_BYTES: u64 = 16 << 20;

/// A way to a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Simulated in this process.
    Simulated(SimulatedCard),
    /// Of another process, or of this machine.
    At(Address),
}

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Transport, String> {
        if text.starts_with("vfio:") || text.starts_with("vfio-user:") {
            return text.parse().map(Transport::At).map_err(|why| match why.strip_prefix("use ") {
                Some(_) => others(),
                None => why,
            });
        }
        SimulatedCard::from_str(text, false).map(Transport::Simulated).map_err(|_| others())
    }
}

/// How the ways are written.
fn others() -> String {
    format!("use model, rtl, {WAYS}")
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Simulated(SimulatedCard::Model) => f.write_str("model"),
            Transport::Simulated(SimulatedCard::Rtl) => f.write_str("rtl"),
            Transport::At(address) => address.fmt(f),
        }
    }
}

/// An open card, which the library knows by a name for as long as this lives.
pub struct Opened {
    /// The card.
    pub card: Arc<Card>,
    /// What it is, for people.
    pub what: String,
    /// What its times are, for people.
    pub clock: &'static str,
    name: String,
    _rig: Option<Rig>,
}

impl Opened {
    /// Pools that lie on it.
    pub fn pools(&self) -> Result<Vec<CardPool>> {
        Ok(nearpm::list(&self.name)?)
    }

    /// Where a pool lies.
    pub fn location(&self, pool: &str) -> String {
        format!("card:{}/{pool}", self.name)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        cards::unregister(&self.name);
    }
}

impl Transport {
    /// A card of another process, for whose completions is polled.
    pub fn vfio_user(socket: PathBuf) -> Transport {
        Transport::At(Address::VfioUser { socket, waiting: Waiting::default() })
    }

    /// Cards that can be simulated in this process.
    pub fn simulated() -> Vec<Transport> {
        SimulatedCard::value_variants().iter().copied().map(Transport::Simulated).collect()
    }

    /// Opens the card and makes it known to the library.
    ///
    /// # Errors
    /// If it is not there, or does not open.
    pub fn open(&self, name: &str) -> Result<Opened> {
        let address = match self {
            Transport::Simulated(kind) => return simulate(*kind, name),
            Transport::At(address) => address,
        };
        let card = Arc::new(address.open()?);
        cards::register(name, card.clone());
        let (what, clock) = match address {
            Address::Vfio { address, .. } if is_virtual_machine() => {
                (format!("card at {address}"), "measured in a virtual machine, whose card may be simulated")
            }
            Address::Vfio { address, .. } => (format!("card at {address}"), "measured on this machine"),
            Address::VfioUser { .. } => (
                format!("card of another process, {self}"),
                "wall clock of an emulation: says how fast two processes talk, and nothing about a card",
            ),
        };
        Ok(Opened { card, what, clock, name: name.to_owned(), _rig: None })
    }
}

fn simulate(kind: SimulatedCard, name: &str) -> Result<Opened> {
    let rig = Rig::new(kind.cards(MemoryPorts::One)?, name, Parameters::default(), Posting::default(), POOL_BYTES);
    let card = rig.open_card().context("the simulated card does not open")?;
    Ok(Opened { card, what: kind.name().into(), clock: "simulated time", name: name.to_owned(), _rig: Some(rig) })
}

/// Whether the processor says that it is a virtual one, whose devices may be, too (Intel SDM volume
/// 2, CPUID leaf 1: ECX bit 31).
pub fn is_virtual_machine() -> bool {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processors.lines().any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"))
}

/// Cards in this machine, with the driver that they are bound to.
pub fn in_this_machine() -> Vec<(String, String)> {
    let number = |path: PathBuf| {
        let text = std::fs::read_to_string(path).ok()?;
        u16::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok()
    };
    let devices = std::fs::read_dir("/sys/bus/pci/devices").into_iter().flatten().flatten();
    let cards = devices.filter(|device| {
        let path = device.path();
        number(path.join("vendor")) == Some(PCI_VENDOR) && number(path.join("device")) == Some(PCI_DEVICE)
    });
    let driver = |path: &Path| {
        let link = std::fs::read_link(path.join("driver")).ok();
        let name = link.as_deref().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        name.map_or_else(|| "bound to no driver".to_owned(), |name| format!("bound to {name}"))
    };
    let mut found: Vec<_> =
        cards.map(|d| (format!("vfio:{}", d.file_name().to_string_lossy()), driver(&d.path()))).collect();
    found.sort();
    found
}

/// `NAME=CARD`: a card that pools are named on, as in `card:NAME/POOL`.
#[derive(Clone, Debug)]
pub struct Attachment {
    name: String,
    card: Transport,
}

impl FromStr for Attachment {
    type Err = String;

    fn from_str(text: &str) -> Result<Attachment, String> {
        let (name, card) = named(text)?;
        Ok(Attachment { name: name.into(), card: card.parse()? })
    }
}

impl Attachment {
    /// Opens the card under its name.
    ///
    /// # Errors
    /// See [`Transport::open`].
    pub fn open(&self) -> Result<Opened> {
        self.card.open(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_is_printed_as_it_is_written() {
        for text in ["model", "rtl", "vfio-user:/tmp/a,b,wait=interrupts", "vfio:01:00.0,window=wc"] {
            assert_eq!(text.parse::<Transport>().unwrap().to_string(), text);
        }
        for text in ["", "modell", "vfio-user:", "vfio:", "pci:1"] {
            let why = text.parse::<Transport>().unwrap_err();
            assert!(why.contains("vfio-user:SOCKET") && why.contains("model, rtl"), "{text}: {why}");
        }
        assert!("vfio:01:00.0,window=fast".parse::<Transport>().unwrap_err().starts_with("window=fast"));
        assert_eq!("a=rtl".parse::<Attachment>().unwrap().name, "a");
        for text in ["model", "=model", "a/b=model", "a=cardboard"] {
            assert!(text.parse::<Attachment>().is_err(), "{text}");
        }
    }
}
