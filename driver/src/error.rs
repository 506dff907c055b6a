//! What can go wrong with a card, and what it has done or not done by then.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::status::Status;

use crate::lost_stores::LostStores;
use crate::pci::PciError;

nearpm_interface::debug_as_display!(CommandError, CommandFailure, FirmwareError, CardError);

macro_rules! command_errors {
    ($( $name:ident = $text:literal, $remedy:literal; )*) => {
        /// Why the card did not carry a command out: one variant per status code.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
        #[non_exhaustive]
        pub enum CommandError {
            $( #[doc = $text] #[error($text)] $name, )*
            /// The slot was filled, but its checksum did not hold: the link or the driver damaged
            /// the command.
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

            /// The status code; `None` for a command that was dropped, which has none.
            pub fn code(self) -> Option<u8> {
                match self {
                    $( CommandError::$name => Some(Status::$name.code()), )*
                    CommandError::Dropped => None,
                    CommandError::Unknown(code) => Some(code),
                }
            }

            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self {
                    $( CommandError::$name => $remedy, )*
                    CommandError::Dropped => "post it again; if it happens again, check the link",
                    CommandError::Unknown(_) => "use the driver of the card's release",
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
        "load firmware that has one (Card::load_firmware), or let the CPU do it";
    BadLength = "the length is zero or above the longest command",
        "split it into commands of at most 256 KiB";
    OutOfRange = "a range wraps, or leaves its pool or its log ring",
        "give ranges inside what was mapped";
    Unmapped = "the card has no mapping for this pool and thread",
        "map them first (Card::map_pool)";
    Misaligned = "an address is not aligned as its operand needs",
        "align it (docs/interface.md has the operands)";
    Overlap = "two ranges of the command overlap",
        "give ranges that have no 64-byte line in common";
    NotPrivileged = "the command needs the privileged page",
        "post it on page 0 (Card::map_pool and Card::unmap_pool do)";
    MapFull = "the card's mapping table is full",
        "unmap a pool and thread that is idle (Card::unmap_pool), or let the CPU do it";
    MapExists = "this pool and thread are mapped already",
        "use that mapping, or unmap it first (Card::unmap_pool)";
    StaleTransaction = "the transaction identifier is not above the last committed one",
        "take the next identifier; after a restart, recover the pool and map it with the last one";
    Latched = "an earlier log of this pool and thread failed; the card refuses its commits and logs until it is unmapped",
        "unmap the pool and thread (Card::unmap_pool), and recover the pool";
    BadParticipants = "the participants mask leaves this card out, or names one that it cannot reach",
        "give a mask with this card in it, of cards that exist, and give each card its number first";
    ParkedFull = "as many commands as the card can keep wait for other devices",
        "post fewer commits before the earlier ones have retired";
    Discarded = "it waited for other devices, and a recovery took it away",
        "nothing: its transaction was undone on every device";
    MemoryError = "the card's memory answered with an error after the command had begun",
        "restore the range from a copy, and test the card's memory";
    FirmwareFault = "the firmware of the card met an instruction that it must not execute",
        "load the firmware of the card's release (Card::load_firmware), and recover the pool";
}

/// A command that was not carried out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct CommandFailure {
    /// The command as it was posted.
    pub command: Command,
    /// Why.
    pub error: CommandError,
}

impl CommandFailure {
    /// Whether it was a log that failed when it had begun: the card holds what the log covers.
    pub fn is_failed_log(&self) -> bool {
        let logs =
            [Opcode::UndoLog, Opcode::Checkpoint, Opcode::UndoRedo, Opcode::MirrorLog].map(|opcode| opcode as u8);
        self.error.had_side_effects() && logs.contains(&self.command.opcode)
    }

    /// Whether it was a failed log, or what the card refuses because of one.
    pub fn tells_of_a_failed_log(&self) -> bool {
        self.error == CommandError::Latched || self.is_failed_log()
    }
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
        f.write_str(if self.error.had_side_effects() { "what it writes is undefined" } else { "it had no effect" })?;
        write!(f, ": {}", self.error.remedy())
    }
}

/// Why a firmware image was not put in force. The image that was in force before still is.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FirmwareError {
    /// The bytes are not an image's number.
    #[error("an image has {expected} bytes, this one has {found}: give the whole file that the assembler made")]
    BadSize {
        /// Bytes of an image.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// See [`nearpm_interface::firmware::IMAGE_MAGIC`].
    #[error("this is not a firmware image (wrong magic): give a file that the assembler made")]
    BadMagic,
    /// The format or instruction version is not the card's.
    #[error("the image is for another version of the card: assemble it anew with the tools of the card's release")]
    BadVersion,
    /// The checksum does not hold.
    #[error("the image is damaged (wrong checksum): assemble or copy it anew")]
    BadCrc,
    /// Commands or accesses to the card's memory were in flight all the time.
    #[error(
        "the card was not idle for {waited_ns} ns, because commands or accesses to its memory were in flight: drain every command page (Card::drain), leave \
         its pools alone, and load it again"
    )]
    NotIdle {
        /// How long it was asked again, in nanoseconds.
        waited_ns: u64,
    },
    /// Several processes share the card.
    #[error(
        "several processes share the card, and none of them may change its firmware: end the broker, and load it without one"
    )]
    Shared,
    /// The card's memory failed.
    #[error("the card's memory answered with an error: load it again; if it fails again, test the card's memory")]
    MemoryError,
    /// A status that this driver does not know.
    #[error(
        "the card answered firmware status {0}, which this driver does not know: use the driver of the card's release"
    )]
    Unknown(u32),
}

/// What can go wrong with a card.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum CardError {
    /// The transport failed.
    #[error(transparent)]
    Pci(#[from] PciError),
    /// Another device.
    #[error("PCI device {vendor:04x}:{device:04x} is not a NearPM card: give the address of one (`lspci -D`)")]
    NotACard {
        /// Vendor that was found.
        vendor: u16,
        /// Device that was found.
        device: u16,
    },
    /// The identity register does not hold the magic.
    #[error(
        "the identity register reads {found:#010x}: not a NearPM card, or its bitstream is not loaded; load it, and rescan the bus"
    )]
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
    /// The last power-fail save did not complete, or memory refused what was to be replayed.
    #[error(
        "the card lost accepted work at its last power cut (a torn save, or memory that refused a write): check the pools against a backup, then \
         acknowledge the loss (Card::acknowledge_loss) to open the card"
    )]
    Loss,
    /// Memory refused stores that the card had accepted.
    #[error(
        "the card's memory refused {} of the stores that the card had accepted, between the lines at device addresses {:#x} and {:#x}: what these hold is old; \
         restore them from a copy, test the card's memory, then acknowledge the loss (Card::acknowledge_loss)",
        .0.count, .0.first, .0.last
    )]
    StoresLost(LostStores),
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
    #[error(
        "the card did not {what} within {waited_ns} ns: give it more time (CardOptions::timeout_ns), or reset it and open it again"
    )]
    Timeout {
        /// What was waited for.
        what: &'static str,
        /// How long, in nanoseconds.
        waited_ns: u64,
    },
    /// The card has gone.
    #[error(
        "the card has gone (all ones read), because it lost power or was removed: bring it back, and open card and pools again, which recovers them"
    )]
    Gone,
    /// A command was refused or failed.
    #[error(transparent)]
    Command(#[from] CommandFailure),
    /// A log of a pool has failed.
    #[error(
        "a log of pool {pool:#x} has failed ({}), and the card holds back what it covers: {lost} loads or stores of the card's memory had no effect since it \
         was powered up; unmap the pool's threads (Card::unmap_pool), and recover the pool",
        log.map_or_else(|| "the card does not say which".to_owned(), |log| log.to_string())
    )]
    LogFailed {
        /// The pool.
        pool: u32,
        /// The log, or what was refused because of it; `None` where the card has no completion
        /// records that say it.
        log: Option<CommandFailure>,
        /// Loads that were answered with an error and stores that were dropped, of the whole card.
        lost: u32,
    },
    /// Several processes share the card, and what was asked for would be for all of them.
    #[error("several processes share the card: none of them may {what}; end the broker, and do it without one")]
    Shared {
        /// What was asked for.
        what: &'static str,
    },
    /// A page number, a range or an option outside what the card has.
    #[error("{what} {value:#x} is above the card's limit of {limit:#x}: nothing was done; stay within it")]
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
                Some(error) => {
                    assert_eq!(error.had_side_effects(), status.had_side_effects(), "{status:?}");
                    assert_eq!(error.code(), Some(status.code()));
                }
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

    /// What the text of each error must advise; a new variant does not compile before it is here
    /// and in [`each`].
    fn advice(error: &CardError) -> &'static str {
        match error {
            CardError::Pci(PciError::NoBar { .. }) => "use those of one release",
            CardError::Pci(PciError::OutOfBar { .. }) => "give a range inside it",
            CardError::Pci(PciError::Unsupported { .. }) => "use one that does",
            CardError::Pci(PciError::Gone) | CardError::Gone => "open card and pools again",
            CardError::Pci(PciError::System { .. }) => "mend what the system reports",
            CardError::NotACard { .. } => "give the address of one",
            CardError::BadIdentity { .. } => "load it",
            CardError::WrongVersion { .. } => "use the driver",
            CardError::Loss => "acknowledge the loss",
            CardError::StoresLost(_) => "restore them from a copy",
            CardError::NoFirmware => "give an image",
            CardError::FirmwareMissing => "restore the firmware slot",
            CardError::ShutDown { .. } => "power-cycle or reset it",
            CardError::Timeout { .. } => "give it more time",
            CardError::BeyondCard { .. } => "stay within it",
            CardError::Shared { .. } => "end the broker",
            CardError::Command(failure) => failure.error.remedy(),
            CardError::LogFailed { .. } => "recover the pool",
            CardError::Firmware(error) => match error {
                FirmwareError::BadSize { .. } => "give the whole file",
                FirmwareError::BadMagic => "give a file",
                FirmwareError::BadVersion => "assemble it anew",
                FirmwareError::BadCrc => "assemble or copy it anew",
                FirmwareError::NotIdle { .. } => "drain every command page",
                FirmwareError::Shared => "end the broker",
                FirmwareError::MemoryError => "load it again",
                FirmwareError::Unknown(_) => "use the driver",
            },
        }
    }

    /// One error of each kind.
    fn each() -> Vec<CardError> {
        let pci = [
            PciError::NoBar { bar: 3 },
            PciError::OutOfBar { bar: 0, range: 4096..8192, bytes: 4096 },
            PciError::Unsupported { what: "an interrupt" },
            PciError::Gone,
            PciError::System { what: "map a BAR".into(), source: std::io::ErrorKind::PermissionDenied.into() },
        ];
        let firmware = [
            FirmwareError::BadSize { expected: 4096, found: 1 },
            FirmwareError::BadMagic,
            FirmwareError::BadVersion,
            FirmwareError::BadCrc,
            FirmwareError::NotIdle { waited_ns: 1 },
            FirmwareError::Shared,
            FirmwareError::MemoryError,
            FirmwareError::Unknown(9),
        ];
        let commands = Status::ALL
            .iter()
            .filter_map(|&(status, _)| CommandError::from_code(status.code()))
            .chain([CommandError::Dropped, CommandError::Unknown(0x7f)])
            .map(|error| CommandFailure { command: Command::default(), error });
        let card = [
            CardError::NotACard { vendor: 1, device: 2 },
            CardError::BadIdentity { found: 1 },
            CardError::WrongVersion { found: 1, supported: 2 },
            CardError::Loss,
            CardError::StoresLost(LostStores { count: 1, first: 64, last: 64 }),
            CardError::NoFirmware,
            CardError::FirmwareMissing,
            CardError::ShutDown { state: 7 },
            CardError::Timeout { what: "boot", waited_ns: 1 },
            CardError::Gone,
            CardError::BeyondCard { what: "address", value: 2, limit: 1 },
            CardError::Shared { what: "shut it down" },
            CardError::LogFailed { pool: 1, log: None, lost: 0 },
        ];
        let pci = pci.into_iter().map(CardError::from);
        pci.chain(firmware.map(CardError::from)).chain(commands.map(CardError::from)).chain(card).collect()
    }

    #[test]
    fn each_error_says_what_to_do() {
        for error in each() {
            let (text, advice) = (error.to_string(), advice(&error));
            assert!(!advice.is_empty() && text.contains(advice), "{text:?} lacks {advice:?}");
        }
    }
}
