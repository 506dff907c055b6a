//! Driver of a NearPM card: what stands between a PCI function and the library.
//!
//! | module | holds |
//! |---|---|
//! | [`pci`] | the seam: configuration space, BARs, DMA, interrupts, reset |
//! | [`registers`] | the register block, typed |
//! | [`options`] | how a card is opened: how commands are posted, and their ends waited for |
//! | [`page`] | a command page: posting, credits, completions |
//! | [`card::parked`] | commands that wait for other cards |
//! | [`card::sharing`] | a card that several processes share: claims of pools, and what a broker needs to post for others |
//! | [`card`] | a card that was opened: state machine, firmware, PM window |
//! | `vfio` | a card in this machine, through Linux VFIO (feature `vfio`; Linux on x86-64) |
//! | `vfio_user` | a card in another process, such as a simulated one, over a socket (feature `vfio`, too) |
//! | [`cache`] | cache-line instructions, for memory that is mapped |
//! | [`error`] | what can go wrong, and whether it had side effects |
//!
//! Everything here works on any [`pci::PciFunction`]: a real card, or a simulated one in this
//! process or another.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod cache;
pub mod card;
pub mod error;
mod lost_stores;
#[cfg(any(test, feature = "mock"))]
pub mod mock;
pub mod options;
pub mod page;
pub mod pci;
pub mod registers;
#[cfg(all(feature = "vfio", target_os = "linux", target_arch = "x86_64"))]
pub mod vfio;
#[cfg(all(feature = "vfio", target_os = "linux", target_arch = "x86_64"))]
pub mod vfio_user;

pub use card::parked::Parked;
pub use card::{Card, sharing};
pub use error::{CardError, CommandError, CommandFailure, FirmwareError};
pub use options::{CardOptions, Posting, Waiting};
pub use page::{Ended, Latched, Ticket};
