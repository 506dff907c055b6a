//! Host memory that the card may write.

use crate::core::DmaWrite;

/// First bus address that is handed out.
const FIRST_BUS_ADDRESS: u64 = 0x1_0000_0000;
/// Alignment of buffers.
const PAGE: u64 = 4096;

struct Buffer {
    bus: u64,
    bytes: Vec<u8>,
}

/// All buffers, by rising bus address.
pub struct HostMemory {
    buffers: Vec<Buffer>,
    next_bus: u64,
}

impl HostMemory {
    pub fn new() -> Self {
        HostMemory { buffers: Vec::new(), next_bus: FIRST_BUS_ADDRESS }
    }

    /// Gives zeroed memory and its bus address. Addresses are never given twice, so that a card
    /// that writes to a buffer of before a power cut is found out.
    pub fn allocate(&mut self, bytes: usize) -> u64 {
        let bus = self.next_bus;
        // A page without memory behind each buffer.
        self.next_bus += (bytes as u64).next_multiple_of(PAGE) + PAGE;
        self.buffers.push(Buffer { bus, bytes: vec![0; bytes] });
        bus
    }

    /// Returns a buffer.
    pub fn free(&mut self, bus: u64) {
        self.buffers.retain(|b| b.bus != bus);
    }

    /// Forgets all buffers, as a host does that restarts.
    pub fn clear(&mut self) {
        self.buffers.clear();
    }

    fn find(&mut self, address: u64) -> Option<&mut Buffer> {
        let i = self.buffers.partition_point(|b| b.bus <= address).checked_sub(1)?;
        let buffer = &mut self.buffers[i];
        (address < buffer.bus + buffer.bytes.len() as u64).then_some(buffer)
    }

    /// Applies a write of the card; false if a byte of it has no memory (then nothing is written).
    pub fn write(&mut self, write: &DmaWrite) -> bool {
        let Some(buffer) = self.find(write.bus_address) else { return false };
        let start = (write.bus_address - buffer.bus) as usize;
        let selected = |i: &usize| write.strobes >> i & 1 == 1;
        if (0..64).filter(selected).any(|i| start + i >= buffer.bytes.len()) {
            return false;
        }
        for i in (0..64).filter(selected) {
            buffer.bytes[start + i] = write.data[i];
        }
        true
    }

    /// Reads a buffer; all ones where there is none any more.
    pub fn read(&mut self, bus: u64, offset: usize, data: &mut [u8]) {
        match self.find(bus) {
            Some(buffer) => data.copy_from_slice(&buffer.bytes[offset..][..data.len()]),
            None => data.fill(0xff),
        }
    }
}
