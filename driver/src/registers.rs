//! The register block, typed. Offsets and values come from [`nearpm_interface::registers`].

use bitflags::bitflags;
use nearpm_interface::geometry::{REGISTER_BAR, REGISTER_BAR_BYTES};
use nearpm_interface::registers::{self as reg, capability, control};

use crate::error::CardError;
pub use crate::lost_stores::LostStores;
use crate::pci::{Caching, Mapping, PciFunction};

bitflags! {
    /// What a card can do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Capabilities: u32 {
        /// Host accesses pass the ordering point; without it the library waits for each command.
        const HOST_ORDERED = capability::HOST_ORDERED;
        /// The card writes completion records by DMA.
        const COMPLETION_RECORDS = capability::COMPLETION_RECORDS;
        /// What was acknowledged survives a power cut of the card.
        const POWER_FAIL_SAFE = capability::POWER_FAIL_SAFE;
        /// The card has a port to other cards, and its commands can wait for theirs.
        const PEERS = capability::PEERS;
        /// Several processes share the card.
        const SHARED = capability::SHARED;
    }

    /// Actions of the control register.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Control: u32 {
        /// Finish everything accepted, mark the domain clean and stop taking work.
        const SHUT_DOWN = control::SHUT_DOWN;
        /// Accept what was lost, and open.
        const ACKNOWLEDGE_LOSS = control::ACKNOWLEDGE_LOSS;
        /// Drain accepted work, then forget mappings and completion rings.
        const FUNCTION_RESET = control::FUNCTION_RESET;
    }
}

/// State of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Reading the save area.
    Booting,
    /// Replaying a saved image.
    Replaying,
    /// Takes commands and host accesses.
    Open,
    /// The power-fail save did not complete.
    Loss,
    /// No firmware in force.
    NoFirmware,
    /// A saved image waits for firmware that is not there.
    FirmwareMissing,
    /// Power-fail save under way.
    Saving,
    /// Drained and saved.
    Saved,
    /// A value that this driver does not know.
    Unknown(u32),
}

impl State {
    fn from_value(value: u32) -> State {
        match value {
            reg::state::BOOTING => State::Booting,
            reg::state::REPLAYING => State::Replaying,
            reg::state::OPEN => State::Open,
            reg::state::LOSS => State::Loss,
            reg::state::NO_FIRMWARE => State::NoFirmware,
            reg::state::FIRMWARE_MISSING => State::FirmwareMissing,
            reg::state::SAVING => State::Saving,
            reg::state::SAVED => State::Saved,
            other => State::Unknown(other),
        }
    }
}

/// The register block of a card.
pub struct Registers {
    window: Box<dyn Mapping>,
}

/// What an absent card reads as.
const ALL_ONES: u32 = u32::MAX;

impl Registers {
    /// Maps the register block.
    pub fn map(function: &dyn PciFunction) -> Result<Registers, CardError> {
        let window = function.map(REGISTER_BAR, 0..REGISTER_BAR_BYTES as u64, Caching::Uncached)?;
        Ok(Registers { window })
    }

    /// Reads a register by its offset ([`nearpm_interface::registers`]). A card that has gone reads
    /// all ones.
    pub fn read(&self, offset: u32) -> u32 {
        let mut bytes = [0; 4];
        self.window.load(offset.into(), &mut bytes);
        u32::from_le_bytes(bytes)
    }

    /// Writes a register by its offset.
    pub fn write(&self, offset: u32, value: u32) {
        self.window.store(offset.into(), &value.to_le_bytes());
    }

    /// Whether the card still answers: the identity register never reads all ones.
    pub fn is_present(&self) -> bool {
        self.read(reg::ID) != ALL_ONES
    }

    /// State of the card, or that it has gone.
    pub fn state(&self) -> Result<State, CardError> {
        match self.read(reg::STATE) {
            ALL_ONES => Err(CardError::Gone),
            value => Ok(State::from_value(value)),
        }
    }

    /// Capability bits; bits that this driver does not know are dropped.
    pub fn capabilities(&self) -> Capabilities {
        Capabilities::from_bits_truncate(self.read(reg::CAPABILITIES))
    }

    /// Acts.
    pub fn control(&self, action: Control) {
        self.write(reg::CONTROL, action.bits());
    }

    /// Slot of the firmware in force.
    pub fn firmware_slot(&self) -> usize {
        (self.read(reg::FIRMWARE_STATUS) >> 8 & 0xff) as usize
    }

    /// Bytes of persistent memory.
    pub fn pm_bytes(&self) -> u64 {
        u64::from(self.read(reg::PM_BYTES_LO)) | u64::from(self.read(reg::PM_BYTES_HI)) << 32
    }

    /// Stores that memory refused after the card had accepted them; `None` where there are none
    /// since that was acknowledged.
    pub fn lost_stores(&self) -> Option<LostStores> {
        let address = |low, high| u64::from(self.read(low)) | u64::from(self.read(high)) << 32;
        let count = self.read(reg::STORES_LOST);
        // What is lost meanwhile widens the range, and is in the count of the next look.
        (count != 0 && count != ALL_ONES).then(|| LostStores {
            count,
            first: address(reg::LOST_FIRST_LO, reg::LOST_FIRST_HI),
            last: address(reg::LOST_LAST_LO, reg::LOST_LAST_HI),
        })
    }

    /// Enables the completion ring of a page: bus address and log2 of its records.
    pub fn set_completion_ring(&self, page: usize, bus_address: u64, records_log2: u32) {
        let base = reg::completion_ring(page);
        self.write(base, bus_address as u32);
        self.write(base + 4, (bus_address >> 32) as u32);
        self.write(base + 8, records_log2);
    }
}
