//! By what a card is reached, and how it is opened there.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::ValueEnum;
use nearpm::{CardPool, cards};
use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::{Card, CardOptions, Posting, Waiting, vfio, vfio_user};
use nearpm_interface::geometry::{PCI_DEVICE, PCI_VENDOR};
use nearpm_interface::memory_ports::MemoryPorts;
use nearpm_sim::host::Parameters;

use nearpm_cards::{Rig, SimulatedCard};

/// Persistent memory of a card that is simulated in this process.
const POOL_BYTES: u64 = 16 << 20;
/// How long a card of another process may take for what its driver waits for: processes wait for
/// each other on a busy machine.
const TIMEOUT_NS: u64 = 20_000_000_000;

/// A way to a card.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Simulated in this process.
    Simulated(SimulatedCard),
    /// In another process.
    VfioUser {
        /// Its socket.
        socket: PathBuf,
        /// How completions are waited for.
        waiting: Waiting,
    },
    /// In this machine.
    Vfio {
        /// PCI address.
        address: String,
        /// How the PM window is mapped.
        window: Caching,
        /// How completions are waited for.
        waiting: Waiting,
    },
}

/// How the ways are written.
const WAYS: &str = "model, rtl, vfio-user:SOCKET[,wait=polling|interrupts] or vfio:ADDRESS[,window=uncached|wc|wb][,wait=polling|interrupts]";
/// What the way to the PM window is written behind.
const WINDOW: &str = "window=";
/// What the way to wait is written behind.
const WAIT: &str = "wait=";

impl FromStr for Transport {
    type Err = String;

    fn from_str(text: &str) -> Result<Transport, String> {
        match text.split_once(':') {
            Some(("vfio-user", rest)) if !rest.is_empty() => vfio_user_of(rest),
            Some(("vfio", rest)) if !rest.is_empty() => vfio_of(rest),
            _ => SimulatedCard::from_str(text, false).map(Transport::Simulated).map_err(|_| format!("use {WAYS}")),
        }
    }
}

/// `SOCKET[,wait=HOW]`. What else follows a comma is the path's own.
fn vfio_user_of(text: &str) -> Result<Transport, String> {
    let (socket, waiting) = match text.rsplit_once(',') {
        Some((socket, option)) if option.starts_with(WAIT) => (socket, value_of(option, WAIT)?),
        _ => (text, Waiting::default()),
    };
    if socket.is_empty() {
        return Err("the card's socket is missing".into());
    }
    if socket.rsplit_once(',').is_some_and(|(_, option)| option.starts_with(WAIT)) {
        return Err(format!("{WAIT} is given twice"));
    }
    Ok(Transport::VfioUser { socket: socket.into(), waiting })
}

/// `ADDRESS[,window=MODE][,wait=HOW]`.
fn vfio_of(text: &str) -> Result<Transport, String> {
    let mut parts = text.split(',');
    let address = parts.next().unwrap_or_default().to_owned();
    if address.is_empty() {
        return Err("the card's address is missing".into());
    }
    let (mut window, mut waiting) = (None, None);
    for option in parts {
        let twice = if option.starts_with(WINDOW) {
            window.replace(value_of(option, WINDOW)?).is_some()
        } else if option.starts_with(WAIT) {
            waiting.replace(value_of(option, WAIT)?).is_some()
        } else {
            return Err(format!("{option:?} is no option of a card: use {WINDOW}MODE or {WAIT}HOW"));
        };
        if twice {
            return Err(format!("{option}: an option is given twice"));
        }
    }
    let (window, waiting) = (window.unwrap_or(Caching::Uncached), waiting.unwrap_or_default());
    Ok(Transport::Vfio { address, window, waiting })
}

/// The value of an option that is written behind `name`.
fn value_of<T: FromStr<Err = &'static str>>(option: &str, name: &str) -> Result<T, String> {
    option[name.len()..].parse().map_err(|why| format!("{option}: {why}"))
}

/// An option as it is written, where it is not the default.
fn option<T: fmt::Display + PartialEq>(name: &str, value: T, default: T) -> String {
    if value == default { String::new() } else { format!(",{name}{value}") }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Transport::Simulated(SimulatedCard::Model) => f.write_str("model"),
            Transport::Simulated(SimulatedCard::Rtl) => f.write_str("rtl"),
            Transport::VfioUser { socket, waiting } => {
                write!(f, "vfio-user:{}{}", socket.display(), option(WAIT, *waiting, Waiting::default()))
            }
            Transport::Vfio { address, window, waiting } => {
                write!(
                    f,
                    "vfio:{address}{}{}",
                    option(WINDOW, *window, Caching::Uncached),
                    option(WAIT, *waiting, Waiting::default())
                )
            }
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
        Transport::VfioUser { socket, waiting: Waiting::default() }
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
        let (function, waiting): (Arc<dyn PciFunction>, _) = match self {
            Transport::Simulated(kind) => return simulate(*kind, name),
            Transport::VfioUser { socket, waiting } => {
                (Arc::new(vfio_user::open(socket, vfio_user::TIMEOUT)?), *waiting)
            }
            Transport::Vfio { address, window, waiting } => (Arc::new(vfio::open_with(address, *window)?), *waiting),
        };
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let options = CardOptions { firmware, waiting, timeout_ns: TIMEOUT_NS, ..CardOptions::default() };
        let card = Card::open(function, options).with_context(|| format!("the card {self} does not open"))?;
        let card = Arc::new(card);
        cards::register(name, card.clone());
        let (what, clock) = match self {
            Transport::Vfio { address, .. } if is_virtual_machine() => {
                (format!("card at {address}"), "measured in a virtual machine, whose card may be simulated")
            }
            Transport::Vfio { address, .. } => (format!("card at {address}"), "measured on this machine"),
            _ => (
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
        let (name, card) = text.split_once('=').ok_or("use NAME=CARD, as in sim=vfio-user:/tmp/card.socket")?;
        if name.is_empty() || name.contains('/') {
            return Err(format!("{name:?} is no name of a card"));
        }
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
        for text in [
            "model",
            "rtl",
            "vfio-user:/tmp/a:b",
            "vfio-user:/tmp/a,b",
            "vfio-user:/tmp/a,b,wait=interrupts",
            "vfio:0000:01:00.0",
            "vfio:01:00.0,window=wc",
            "vfio:x,window=wb",
            "vfio:x,wait=interrupts",
            "vfio:x,window=wc,wait=interrupts",
        ] {
            assert_eq!(text.parse::<Transport>().unwrap().to_string(), text);
        }
        for text in ["", "modell", "vfio-user:", "vfio:", "pci:1"] {
            assert!(text.parse::<Transport>().unwrap_err().contains("vfio-user:SOCKET"), "{text}");
        }
        let plain = "vfio:01:00.0,window=uncached,wait=polling".parse::<Transport>().unwrap();
        assert_eq!(plain.to_string(), "vfio:01:00.0", "it is the default");
        for text in [
            "vfio:01:00.0,window=fast",
            "vfio:01:00.0,wc",
            "vfio:,window=wc",
            "vfio:01:00.0,window=wc,",
            "vfio:x,wait=long",
            "vfio-user:/tmp/a,wait=long",
            "vfio-user:,wait=polling",
            "vfio-user:/tmp/a,wait=interrupts,wait=polling",
            "vfio:x,wait=polling,wait=polling",
            "vfio:x,window=wc,wait=polling,window=wb",
        ] {
            assert!(text.parse::<Transport>().is_err(), "{text}");
        }
        assert_eq!("a=rtl".parse::<Attachment>().unwrap().name, "a");
        for text in ["model", "=model", "a/b=model", "a=cardboard"] {
            assert!(text.parse::<Attachment>().is_err(), "{text}");
        }
    }
}
