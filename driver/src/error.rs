//! What can go wrong with a card, and what it has done or not done by then.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::status::Status;

use crate::pci::PciError;

macro_rules! command_errors {
    ($( $name:ident = $text:literal ),* $(,)?) => {
        /// Why the card did not carry a command out: one variant per status code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
        pub enum CommandError {
            $( #[doc = $text] #[error($text)] $name, )*
            /// The slot was filled, but its checksum did not hold: the link or the driver damaged the command.
            #[error("the command arrived with a wrong checksum and was dropped")]
            Dropped,
            /// A code that this driver does not know.
            #[error("unknown status code {0:#04x}: the card is newer than the driver")]
            Unknown(u8),
        }

        impl CommandError {
            /// The error of a status code; `None` for success.
            pub fn from_code(code: u8) -> Option<CommandError> {
                match Status::from_code(code) {
                    Some(Status::Ok) => None,
                    $( Some(Status::$name) => Some(CommandError::$name), )*
                    None => Some(CommandError::Unknown(code)),
                }
            }

            /// Whether the command may have written something before it failed. Where this is
            /// false the card did nothing.
            pub fn had_side_effects(self) -> bool {
                match self {
                    $( CommandError::$name => Status::$name.had_side_effects(), )*
                    CommandError::Dropped => false,
                    CommandError::Unknown(code) => code >= 0x80,
                }
            }
        }
    };
}

command_errors! {
    BadOpcode = "the firmware in force has no program for the opcode",
    BadLength = "the length is zero or above the longest command",
    OutOfRange = "a range wraps, or leaves its pool or its log ring",
    Unmapped = "the card has no mapping for this pool and thread",
    Misaligned = "an address is not aligned as its operand needs",
    Overlap = "two ranges of the command overlap",
    NotPrivileged = "the command needs the privileged page",
    MapFull = "the card's mapping table is full",
    MapExists = "this pool and thread are mapped already",
    StaleTransaction = "the transaction identifier is not above the last committed one",
    Latched = "an earlier log of this pool and thread failed; the card refuses its commits and logs until it is unmapped",
    BadParticipants = "the participants mask names a device that the card cannot reach",
    MemoryError = "the card's memory answered with an error after the command had begun",
    FirmwareFault = "the firmware of the card met an instruction that it must not execute",
}

/// A command that was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandFailure {
    /// The command as it was posted.
    pub command: Command,
    /// Why.
    pub error: CommandError,
}

impl std::error::Error for CommandFailure {}

impl std::fmt::Display for CommandFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Command { opcode, pool, thread, txid, source, destination, length, .. } = self.command;
        match Opcode::from_code(opcode) {
            Some(name) => write!(f, "{name:?}")?,
            None => write!(f, "command {opcode:#04x}")?,
        }
        write!(
            f,
            " (pool {pool:#x}, thread {thread}, transaction {txid}, source {source:#x}, destination {destination:#x}, \
             {length} bytes): {}; ",
            self.error
        )?;
        f.write_str(if self.error.had_side_effects() { "what it writes is undefined" } else { "it had no effect" })
    }
}

/// Why a firmware image was not put in force. The image that was in force before still is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FirmwareError {
    /// The bytes are not an image's number.
    #[error("an image has {expected} bytes, this one has {found}")]
    BadSize {
        /// Bytes of an image.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// See [`nearpm_interface::firmware::IMAGE_MAGIC`].
    #[error("this is not a firmware image (wrong magic)")]
    BadMagic,
    /// The format or instruction version is not the card's.
    #[error("the image is for another version of the card")]
    BadVersion,
    /// The checksum does not hold.
    #[error("the image is damaged (wrong checksum)")]
    BadCrc,
    /// Commands are in flight.
    #[error("commands are in flight; firmware can be changed only when the card is idle")]
    NotIdle,
    /// The card's memory failed.
    #[error("the card's memory answered with an error")]
    MemoryError,
    /// A status that this driver does not know.
    #[error("the card answered firmware status {0}")]
    Unknown(u32),
}

/// What can go wrong with a card.
#[derive(Debug, thiserror::Error)]
pub enum CardError {
    /// The transport failed.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// Another device.
    #[error("PCI device {vendor:04x}:{device:04x} is not a NearPM card")]
    NotACard {
        /// Vendor that was found.
        vendor: u16,
        /// Device that was found.
        device: u16,
    },
    /// The identity register does not hold the magic.
    #[error("the identity register reads {found:#010x}: not a NearPM card, or its bitstream is not loaded")]
    BadIdentity {
        /// What it reads.
        found: u32,
    },
    /// The card speaks another version of the interface.
    #[error(
        "the card has interface version {found}, this driver has {supported}: use the driver of the card's release"
    )]
    WrongVersion {
        /// Version of the card.
        found: u32,
        /// Version of this driver.
        supported: u32,
    },
    /// The last power-fail save did not complete.
    #[error(
        "the card lost accepted work at its last power cut (torn save): check the pools against a backup, then \
         acknowledge the loss (Card::acknowledge_loss) to open the card"
    )]
    Loss,
    /// No firmware, and none was given.
    #[error("the card has no firmware in force: give an image to the driver when opening it")]
    NoFirmware,
    /// A saved image waits for firmware that is not there.
    #[error(
        "the card holds saved work of a firmware that is not there any more; its memory stays closed so that nothing \
         is lost: restore the firmware slot from a backup of the card's memory"
    )]
    FirmwareMissing,
    /// The card is saving, or has saved and waits for its power to go.
    #[error("the card is shut down (state {state}): power-cycle or reset it")]
    ShutDown {
        /// Value of the state register.
        state: u32,
    },
    /// An image was refused.
    #[error("firmware was not loaded: {0}")]
    Firmware(#[from] FirmwareError),
    /// The card did not do something in time.
    #[error("the card did not {what} within {waited_ns} ns")]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long, in nanoseconds.
        waited_ns: u64,
    },
    /// The card has gone.
    #[error("the card has gone (all ones read): it lost power or was removed")]
    Gone,
    /// A command was refused or failed.
    #[error(transparent)]
    Command(#[from] CommandFailure),
    /// A page number, a range or an option outside what the card has.
    #[error("{what} {value:#x} is above the card's limit of {limit:#x}")]
    BeyondCard {
        /// What was asked for.
        what: &'static str,
        /// The value.
        value: u64,
        /// The largest that the card takes.
        limit: u64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_code_has_an_error_that_tells_its_side_effects() {
        for &(status, _) in Status::ALL {
            match CommandError::from_code(status.code()) {
                None => assert_eq!(status, Status::Ok),
                Some(error) => assert_eq!(error.had_side_effects(), status.had_side_effects(), "{status:?}"),
            }
        }
        assert_eq!(CommandError::from_code(0x7f), Some(CommandError::Unknown(0x7f)));
        assert!(CommandError::Unknown(0x90).had_side_effects());
    }

    #[test]
    fn a_failure_names_the_command_and_says_whether_it_had_effects() {
        let command = Command { opcode: Opcode::UndoLog as u8, pool: 7, length: 64, ..Command::default() };
        let text = CommandFailure { command, error: CommandError::OutOfRange }.to_string();
        assert!(text.contains("UndoLog") && text.contains("no effect"), "{text}");
        let text = CommandFailure { command, error: CommandError::MemoryError }.to_string();
        assert!(text.contains("undefined"), "{text}");
    }
}
