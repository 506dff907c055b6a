//! The one definition of what hardware, firmware, driver and library agree on.
//!
//! Every number that two parts of the system must share is written here and nowhere else:
//!
//! | module | defines |
//! |---|---|
//! | [`geometry`] | sizes of the card: lines, pages, queue depths, BARs, reserved PM |
//! | [`config_space`] | the configuration space of the PCI function, and what writing to it asks for |
//! | [`memory_ports`] | where a device address lies when the card has two ports to its memory |
//! | [`command`] | the 64-byte command, its opcodes and flags |
//! | [`effect`] | what the commands of the standard firmware write |
//! | [`status`] | what a command may answer, and whether it had side effects |
//! | [`completion`] | the records and status lines that the card writes for the host |
//! | [`registers`] | the AXI4-Lite register block |
//! | [`firmware`] | microinstructions, operand descriptors and the firmware image |
//! | [`save`] | what the power-fail save keeps, and where |
//! | [`media`] | pools, log rings and log entries as they lie in persistent memory |
//! | [`record`] | the log of direct pools |
//! | [`region`] | persistent memory of GPUs: regions, logs, batches, checkpoints |
//! | [`hash_table`] | hash tables of GPUs: where their parts lie, which slots a key may be in |
//! | [`peer`] | what cards tell each other |
//! | [`sharing`] | registers of a card that several processes share |
//! | [`seal`] | the checksum convention that all of them share |
//!
//! [`generate`] turns the same tables into Verilog parameters, a C header and a documentation
//! page; a test compares the checked-in files with what it makes.

// Formats are little-endian, and programs reach them by pointer.
#[cfg(not(target_endian = "little"))]
compile_error!("pools, commands and registers are little-endian, and this target is not");

pub mod command;
pub mod completion;
pub mod config_space;
pub mod effect;
pub mod firmware;
pub mod generate;
pub mod geometry;
pub mod hash_table;
mod layout;
pub mod media;
pub mod memory_ports;
pub mod peer;
pub mod record;
pub mod region;
pub mod registers;
pub mod save;
pub mod seal;
pub mod sharing;
pub mod status;

pub use layout::{Field, Layout};

/// Makes the `Debug` of errors their sentence, which is what `fn main() -> Result<(), Error>`
/// prints. Who wants the parts matches on them.
#[macro_export]
macro_rules! debug_as_display {
    ($($error:ty),* $(,)?) => {$(
        impl ::core::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                ::core::fmt::Display::fmt(self, f)
            }
        }
    )*};
}

/// Version of everything in this crate. A card whose `VERSION` register differs is refused by
/// the driver; media carry versions of their own.
pub const INTERFACE_VERSION: u32 = 2;
