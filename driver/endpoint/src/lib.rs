//! A card that is made of software, served to other processes as a PCI function over vfio-user.
//!
//! | module | holds |
//! |---|---|
//! | [`server`] | the socket: who comes gets a function, or is told why not |
//! | [`function`] | what the protocol asks of a function: configuration space, MSI-X table, BARs, DMA |
//! | [`bus`] | host memory that the card writes, and interrupts |
//! | [`lines`], [`slots`] | accesses of any size as lines, registers and commands |
//!
//! What stands behind the BARs is a [`Device`]: the simulated card, or a client's share of a card.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod bus;
pub mod function;
pub mod lines;
pub mod server;
pub mod slots;

use bus::Bus;
pub use nearpm_driver::pci::HandedOn;

/// What stands behind the BARs of a function, as one client has it. It is dropped when the client
/// has gone.
pub trait Device: Send {
    /// Bytes of a BAR that has something behind it; 0 for the others.
    fn bar_bytes(&self, bar: usize) -> u64;
    /// What of a BAR the client may map.
    fn shared_bar(&self, bar: usize) -> Option<HandedOn>;
    /// Whether the device is there for this client. Where it is not, everything reads all ones and
    /// takes nothing.
    fn is_present(&mut self) -> bool;
    /// Loads from a BAR; leaves `data` as it is where nothing answers.
    fn load(&mut self, bar: usize, offset: u64, data: &mut [u8]);
    /// Stores to a BAR. What is outside takes nothing.
    fn store(&mut self, bar: usize, offset: u64, data: &[u8]);
    /// Function-level reset: returns when what was accepted is done; false where the device is not
    /// there.
    fn reset(&mut self) -> bool;
    /// Lets `act` change what is known of the client's memory and interrupts; not where the device
    /// of this client is gone for good.
    fn with_bus(&mut self, act: &mut dyn FnMut(&mut Bus));
}
