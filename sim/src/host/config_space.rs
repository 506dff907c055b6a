//! The function's configuration space: a type 0 header and the PCI Express capability.
//!
//! There is no MSI-X capability: the in-process transport delivers its one vector without a table.

use nearpm_interface::geometry::{COMMAND_BAR_BYTES, PCI_DEVICE, PCI_VENDOR, REGISTER_BAR_BYTES};

const BYTES: usize = 256;
const COMMAND: usize = 0x04;
const CLASS: usize = 0x09;
const FIRST_BAR: usize = 0x10;
const CAPABILITIES: usize = 0x34;
const EXPRESS: usize = 0x40;
/// Device Capabilities and Device Control of the PCI Express capability.
const DEVICE_CAPABILITIES: usize = EXPRESS + 4;
const DEVICE_CONTROL: usize = EXPRESS + 8;

const MEMORY_ENABLE: u8 = 1 << 1;
const BUS_MASTER: u8 = 1 << 2;
/// A memory BAR of 64 bits, prefetchable.
const BAR_64_PREFETCHABLE: u32 = 0b1100;

/// What a write asks the card to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing beyond the configuration space.
    None,
    /// Function-level reset.
    Reset,
}

/// The 256 bytes and which of them software may change.
pub struct ConfigSpace {
    bytes: [u8; BYTES],
    writable: [u8; BYTES],
}

impl ConfigSpace {
    /// The space after power-up; `memory_bytes` is a power of two.
    pub fn new(memory_bytes: u64) -> Self {
        let mut space = ConfigSpace { bytes: [0; BYTES], writable: [0; BYTES] };
        space.put(0x00, &PCI_VENDOR.to_le_bytes());
        space.put(0x02, &PCI_DEVICE.to_le_bytes());
        space.writable[COMMAND] = MEMORY_ENABLE | BUS_MASTER;
        // Status: capability list. Class: memory controller, other.
        space.put(0x06, &[0x10]);
        space.put(CLASS, &[0x00, 0x80, 0x05]);
        space.bar(0, REGISTER_BAR_BYTES as u64, 0);
        space.bar(2, COMMAND_BAR_BYTES as u64, BAR_64_PREFETCHABLE);
        space.bar(4, memory_bytes.next_power_of_two(), BAR_64_PREFETCHABLE);
        space.put(CAPABILITIES, &[EXPRESS as u8]);
        // PCI Express capability, version 2, endpoint, the last one.
        space.put(EXPRESS, &[0x10, 0x00, 0x02, 0x00]);
        let function_level_reset = 1u32 << 28;
        space.put(DEVICE_CAPABILITIES, &function_level_reset.to_le_bytes());
        space
    }

    /// The space of a function that answers memory accesses.
    pub fn enabled(memory_bytes: u64) -> Self {
        let mut space = ConfigSpace::new(memory_bytes);
        space.bytes[COMMAND] = MEMORY_ENABLE;
        space
    }

    /// A BAR reads back with its size's low bits zero, so that software finds the size by writing ones.
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

    /// Reads; zeros beyond the 256 bytes.
    pub fn read(&self, offset: u16, data: &mut [u8]) {
        for (at, byte) in (offset as usize..).zip(data) {
            *byte = self.bytes.get(at).copied().unwrap_or(0);
        }
    }

    /// Writes what is writable.
    pub fn write(&mut self, offset: u16, data: &[u8]) -> Effect {
        let mut effect = Effect::None;
        for (at, byte) in (offset as usize..).zip(data) {
            if at == DEVICE_CONTROL + 1 && byte & 0x80 != 0 {
                effect = Effect::Reset;
            }
            if at < BYTES {
                let mask = self.writable[at];
                self.bytes[at] = self.bytes[at] & !mask | byte & mask;
            }
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

    #[test]
    fn bars_tell_their_size_and_reset_is_seen() {
        let mut space = ConfigSpace::new(256 << 20);
        let mut word = [0; 4];
        space.read(0, &mut word);
        assert_eq!(u32::from_le_bytes(word), (PCI_DEVICE as u32) << 16 | PCI_VENDOR as u32);
        let size = |space: &mut ConfigSpace, at: u16| {
            space.write(at, &[0xff; 4]);
            let mut word = [0; 4];
            space.read(at, &mut word);
            u32::from_le_bytes(word)
        };
        assert_eq!(size(&mut space, 0x10), !(REGISTER_BAR_BYTES as u32 - 1));
        assert_eq!(size(&mut space, 0x20), !((256 << 20) - 1) | BAR_64_PREFETCHABLE);
        assert!(!space.memory_enabled());
        space.write(4, &[0xff, 0xff]);
        assert!(space.memory_enabled() && space.bus_master());
        assert_eq!(space.write(DEVICE_CONTROL as u16, &[0, 0x80]), Effect::Reset);
    }
}
