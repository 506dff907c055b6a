//! Cards by address: `vfio-user:SOCKET` in another process, `vfio:ADDRESS` in this machine.

#![warn(missing_docs)]
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use nearpm_driver::pci::{Caching, PciFunction};
use nearpm_driver::vfio::{self, VfioError};
use nearpm_driver::vfio_user::{self, VfioUserError};
use nearpm_driver::{Card, CardError, CardOptions, Waiting};

/// How long a card of another process may take for what its driver waits for: processes wait for
/// each other on a busy machine.
const TIMEOUT_NS: u64 = 20_000_000_000;

/// How addresses are written.
pub const WAYS: &str =
    "vfio-user:SOCKET[,wait=polling|interrupts] or vfio:ADDRESS[,window=uncached|wc|wb][,wait=polling|interrupts]";
/// What the way to the PM window is written behind.
const WINDOW: &str = "window=";
/// What the way to wait is written behind.
const WAIT: &str = "wait=";

/// Where a card is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
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

/// Why a card does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is none in this machine, or it is not to be had.
    #[error(transparent)]
    Vfio(#[from] VfioError),
    /// No process serves one.
    #[error(transparent)]
    VfioUser(#[from] VfioUserError),
    /// It is there, and does not start.
    #[error("the card {0} does not open: {1}")]
    Card(String, #[source] CardError),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Address, String> {
        match text.split_once(':') {
            Some(("vfio-user", rest)) if !rest.is_empty() => vfio_user_of(rest),
            Some(("vfio", rest)) if !rest.is_empty() => vfio_of(rest),
            _ => Err(format!("use {WAYS}")),
        }
    }
}

/// `SOCKET[,wait=HOW]`. What else follows a comma is the path's own.
fn vfio_user_of(text: &str) -> Result<Address, String> {
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
    Ok(Address::VfioUser { socket: socket.into(), waiting })
}

/// `ADDRESS[,window=MODE][,wait=HOW]`.
fn vfio_of(text: &str) -> Result<Address, String> {
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
    Ok(Address::Vfio { address, window, waiting })
}

/// The value of an option that is written behind `name`.
fn value_of<T: FromStr<Err = &'static str>>(option: &str, name: &str) -> Result<T, String> {
    option[name.len()..].parse().map_err(|why| format!("{option}: {why}"))
}

/// An option as it is written, where it is not the default.
fn option<T: fmt::Display + PartialEq>(name: &str, value: T, default: T) -> String {
    if value == default { String::new() } else { format!(",{name}{value}") }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::VfioUser { socket, waiting } => {
                write!(f, "vfio-user:{}{}", socket.display(), option(WAIT, *waiting, Waiting::default()))
            }
            Address::Vfio { address, window, waiting } => {
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

impl Address {
    /// Opens the card, which gets the standard firmware if it has none in force.
    ///
    /// # Errors
    /// If it is not there, or does not open.
    pub fn open(&self) -> Result<Card, OpenError> {
        let (function, waiting): (Arc<dyn PciFunction>, _) = match self {
            Address::VfioUser { socket, waiting } => (Arc::new(vfio_user::open(socket, vfio_user::TIMEOUT)?), *waiting),
            Address::Vfio { address, window, waiting } => (Arc::new(vfio::open_with(address, *window)?), *waiting),
        };
        let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
        let options = CardOptions { firmware, waiting, timeout_ns: TIMEOUT_NS, ..CardOptions::default() };
        Card::open(function, options).map_err(|error| OpenError::Card(self.to_string(), error))
    }
}

/// `NAME=CARD`, taken apart.
///
/// # Errors
/// There is no name, or one that no pool could be named on.
pub fn named(text: &str) -> Result<(&str, &str), String> {
    let (name, card) = text.split_once('=').ok_or("use NAME=CARD, as in sim=vfio-user:/tmp/card.socket")?;
    if name.is_empty() || name.contains(['/', '+']) {
        return Err(format!("{name:?} is no name of a card"));
    }
    Ok((name, card))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_printed_as_it_is_written() {
        for text in [
            "vfio-user:/tmp/a:b",
            "vfio-user:/tmp/a,b",
            "vfio-user:/tmp/a,b,wait=interrupts",
            "vfio:0000:01:00.0",
            "vfio:01:00.0,window=wc",
            "vfio:x,window=wb",
            "vfio:x,wait=interrupts",
            "vfio:x,window=wc,wait=interrupts",
        ] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        for text in ["", "model", "vfio-user:", "vfio:", "pci:1"] {
            assert!(text.parse::<Address>().unwrap_err().contains("vfio-user:SOCKET"), "{text}");
        }
        let plain = "vfio:01:00.0,window=uncached,wait=polling".parse::<Address>().unwrap();
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
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_name_is_one_that_pools_can_be_named_on() {
        assert_eq!(named("a=vfio:x,window=wc"), Ok(("a", "vfio:x,window=wc")));
        for text in ["vfio:x", "=vfio:x", "a/b=vfio:x", "a+b=vfio:x"] {
            assert!(named(text).is_err(), "{text}");
        }
    }
}
