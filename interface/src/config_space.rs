//! The function's configuration space: a type 0 header, and the capabilities power management, PCI
//! Express and, on a transport that has a table of vectors, MSI-X. The in-process transport
//! delivers its one vector without a table.
//!
//! Offsets and layouts are those of the PCI Express base specification, chapter 7.5 and 7.7.

use crate::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, MSIX_BAR, MSIX_BAR_BYTES, MSIX_PENDING_OFFSET, PCI_DEVICE, PCI_VENDOR, PM_BAR,
    REGISTER_BAR, REGISTER_BAR_BYTES,
};

/// Bytes of the space that are kept; the rest of the 4 KiB reads zero.
const BYTES: usize = 256;
/// Bytes that configuration space has.
pub const SPACE_BYTES: u64 = 4096;

const COMMAND: usize = 0x04;
const STATUS: usize = 0x06;
const CLASS: usize = 0x09;
const FIRST_BAR: usize = 0x10;
const CAPABILITIES: usize = 0x34;
const POWER: usize = 0x40;
const EXPRESS: usize = 0x50;
const DEVICE_CAPABILITIES: usize = EXPRESS + 4;
const DEVICE_CONTROL: usize = EXPRESS + 8;
const MSIX: usize = 0x90;

const MEMORY_ENABLE: u8 = 1 << 1;
const BUS_MASTER: u8 = 1 << 2;
/// A memory BAR of 64 bits, prefetchable.
const PREFETCHABLE_64: u32 = 0b1100;

/// What a write asks the card to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing beyond the configuration space.
    None,
    /// Function-level reset.
    Reset,
}

/// The bytes, and which bits of them software may change.
pub struct ConfigSpace {
    bytes: [u8; BYTES],
    writable: [u8; BYTES],
}

impl ConfigSpace {
    /// The space after a reset, of a function with so much persistent memory.
    pub fn new(memory_bytes: u64) -> ConfigSpace {
        let mut space = ConfigSpace { bytes: [0; BYTES], writable: [0; BYTES] };
        space.put(0, &PCI_VENDOR.to_le_bytes());
        space.put(2, &PCI_DEVICE.to_le_bytes());
        space.writable[COMMAND] = MEMORY_ENABLE | BUS_MASTER;
        // It has capabilities.
        space.put(STATUS, &[0x10]);
        // Memory controller, other.
        space.put(CLASS, &[0x00, 0x80, 0x05]);
        space.bar(REGISTER_BAR, REGISTER_BAR_BYTES as u64, 0);
        space.bar(COMMAND_BAR, COMMAND_BAR_BYTES as u64, PREFETCHABLE_64);
        space.bar(PM_BAR, memory_bytes.next_power_of_two(), PREFETCHABLE_64);
        space.put(CAPABILITIES, &[POWER as u8]);
        // Version 3, no power states but D0 and D3; a return from D3 keeps the function as it is.
        space.put(POWER, &[0x01, EXPRESS as u8, 0x03, 0x00, 0x08, 0x00]);
        space.writable[POWER + 4] = 0x03;
        // Version 2, endpoint, the last one.
        space.put(EXPRESS, &[0x10, 0x00, 0x02, 0x00]);
        let function_level_reset = 1u32 << 28;
        space.put(DEVICE_CAPABILITIES, &function_level_reset.to_le_bytes());
        space
    }

    /// The same of a function with a table of so many vectors, 1 to 2048.
    pub fn with_vectors(memory_bytes: u64, vectors: u16) -> ConfigSpace {
        let mut space = ConfigSpace::new(memory_bytes);
        space.bar(MSIX_BAR, MSIX_BAR_BYTES as u64, 0);
        space.put(EXPRESS + 1, &[MSIX as u8]);
        space.put(MSIX, &[0x11, 0x00]);
        space.put(MSIX + 2, &(vectors - 1).to_le_bytes());
        space.put(MSIX + 4, &(MSIX_BAR as u32).to_le_bytes());
        space.put(MSIX + 8, &((MSIX_PENDING_OFFSET | MSIX_BAR) as u32).to_le_bytes());
        // Enable, and mask of the whole function.
        space.writable[MSIX + 3] = 0xc0;
        space
    }

    /// The space of a function that answers memory accesses.
    pub fn enabled(memory_bytes: u64) -> ConfigSpace {
        let mut space = ConfigSpace::new(memory_bytes);
        space.bytes[COMMAND] = MEMORY_ENABLE;
        space
    }

    /// A BAR reads back with its size's low bits zero, so that software finds the size by writing
    /// ones.
    fn bar(&mut self, bar: usize, bytes: u64, kind: u32) {
        let at = FIRST_BAR + 4 * bar;
        self.put(at, &kind.to_le_bytes());
        let mask = (!(bytes - 1) & !0xf).to_le_bytes();
        let size = if kind == 0 { 4 } else { 8 };
        self.writable[at..at + size].copy_from_slice(&mask[..size]);
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Reads.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (at, byte) in (offset as usize..).zip(data) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
    }

    /// Writes what is writable.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> Effect {
        let mut effect = Effect::None;
        for (at, byte) in (offset as usize..).zip(data).take_while(|&(at, _)| at < BYTES) {
            if at == DEVICE_CONTROL + 1 && byte & 0x80 != 0 {
                effect = Effect::Reset;
            }
            let mask = self.writable[at];
            self.bytes[at] = self.bytes[at] & !mask | byte & mask;
        }
        effect
    }

    /// Whether the BARs answer.
    pub fn memory_enabled(&self) -> bool {
        self.bytes[COMMAND] & MEMORY_ENABLE != 0
    }

    /// Whether the function may write host memory.
    pub fn bus_master(&self) -> bool {
        self.bytes[COMMAND] & BUS_MASTER != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(space: &ConfigSpace, at: usize) -> u32 {
        let mut word = [0; 4];
        space.read(at as u64, &mut word);
        u32::from_le_bytes(word)
    }

    #[test]
    fn bars_tell_their_size() {
        let sizes = |mut space: ConfigSpace| {
            [0, 1, 2, 4].map(|bar| {
                space.write((FIRST_BAR + 4 * bar) as u64, &[0xff; 4]);
                word(&space, FIRST_BAR + 4 * bar)
            })
        };
        assert_eq!(sizes(ConfigSpace::with_vectors(48 << 20, 4)), [0xffff_f000, 0xffff_f000, 0xffff_c00c, 0xfc00_000c]);
        assert_eq!(sizes(ConfigSpace::new(256 << 20)), [0xffff_f000, 0, 0xffff_c00c, 0xf000_000c]);
    }

    #[test]
    fn capabilities_can_be_walked() {
        let walk = |space: &ConfigSpace| {
            let mut found = Vec::new();
            let mut at = word(space, CAPABILITIES) as usize & 0xff;
            while at != 0 {
                found.push(word(space, at) as u8);
                at = word(space, at) as usize >> 8 & 0xff;
            }
            found
        };
        assert_eq!(walk(&ConfigSpace::new(2 << 20)), [0x01, 0x10]);
        let space = ConfigSpace::with_vectors(2 << 20, 33);
        assert_eq!(walk(&space), [0x01, 0x10, 0x11]);
        assert_eq!(word(&space, MSIX) >> 16 & 0x7ff, 32);
    }

    #[test]
    fn a_reset_is_seen_and_accesses_are_enabled() {
        let mut space = ConfigSpace::new(2 << 20);
        assert_eq!(word(&space, 0), u32::from(PCI_DEVICE) << 16 | u32::from(PCI_VENDOR));
        assert!(!space.memory_enabled() && !space.bus_master() && ConfigSpace::enabled(2 << 20).memory_enabled());
        assert_eq!(space.write(COMMAND as u64, &[0xff, 0xff]), Effect::None);
        assert!(space.bus_master() && space.memory_enabled());
        assert_eq!(space.write(DEVICE_CONTROL as u64, &[0, 0x80]), Effect::Reset);
        assert_eq!(word(&space, DEVICE_CONTROL) >> 15 & 1, 0, "it reads zero");
    }
}
