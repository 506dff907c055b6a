//! Host memory that the card writes, through the IOMMU.

#![allow(unsafe_code)]

use std::collections::BTreeMap;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use memmap2::{Advice, MmapMut, MmapRaw};
use pci_driver::backends::vfio::VfioPciDevice;
use pci_driver::device::PciDevice;
use pci_driver::regions::Permissions;
use volatile_register::RO;

use crate::pci::DmaBuffer;

/// Bus addresses that the IOMMU lets the card use, and those that are taken.
pub(crate) struct BusSpace {
    valid: Vec<Range<u64>>,
    /// What addresses and sizes must be multiples of, in bytes.
    alignment: u64,
    /// Start to end.
    taken: BTreeMap<u64, u64>,
}

impl BusSpace {
    pub(crate) fn new(valid: &[Range<u64>], alignment: u64) -> BusSpace {
        BusSpace { valid: valid.to_vec(), alignment, taken: BTreeMap::new() }
    }

    /// Bytes that a buffer takes up.
    fn rounded(&self, bytes: usize) -> Option<u64> {
        (bytes.max(1) as u64).checked_next_multiple_of(self.alignment)
    }

    /// Takes the lowest free range.
    fn take(&mut self, bytes: u64) -> Option<u64> {
        let start = self.valid.iter().find_map(|range| {
            let mut start = range.start.checked_next_multiple_of(self.alignment)?;
            for (&taken, &end) in &self.taken {
                if start.checked_add(bytes)? > taken && start < end {
                    start = end;
                }
            }
            (start.checked_add(bytes)? <= range.end).then_some(start)
        })?;
        self.taken.insert(start, start + bytes);
        Some(start)
    }

    fn give_back(&mut self, start: u64) {
        self.taken.remove(&start);
    }
}

/// How memory is made that a card reaches, and taken away from it.
pub(crate) trait Reach: Send + Sync {
    /// Makes memory of zeros, page aligned, and lets the card, and only the card, write it at a bus address.
    fn allocate(&self, address: u64, bytes: usize) -> std::io::Result<MmapRaw>;
    /// Takes the memory away from the card; false where the card may still write it.
    fn release(&self, address: u64, bytes: usize) -> bool;
}

impl Reach for VfioPciDevice {
    fn allocate(&self, address: u64, bytes: usize) -> std::io::Result<MmapRaw> {
        let memory = anonymous(bytes)?;
        // SAFETY: the memory is this process's own, is read only through volatile cells, and is
        // freed only after the mapping is gone (see `Buffer::drop`).
        unsafe { self.iommu().map(address, bytes, memory.as_ptr(), Permissions::ReadWrite) }.map(|()| memory)
    }

    fn release(&self, address: u64, bytes: usize) -> bool {
        self.iommu().unmap(address, bytes).is_ok()
    }
}

fn anonymous(bytes: usize) -> std::io::Result<MmapRaw> {
    let map = MmapMut::map_anon(bytes)?;
    // A fork would leave the card writing to pages that only the child sees.
    // Miri knows neither the call nor a fork.
    if !cfg!(miri) {
        map.advise(Advice::DontFork)?;
    }
    Ok(MmapRaw::from(map))
}

/// Memory, page aligned, that somebody else may write at any moment.
struct HostMemory {
    map: MmapRaw,
}

impl HostMemory {
    /// The memory in words that this side only reads.
    fn words(&self) -> &[RO<u64>] {
        // SAFETY: the mapping is page aligned, valid for its length and lives as long as `self`. A cell makes no claim
        // that its content stays the same, so the card may write it meanwhile.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / 8) }
    }

    fn load(&self, offset: usize, data: &mut [u8]) {
        let words = self.words();
        let mut done = 0;
        while done < data.len() {
            let (word, inside) = ((offset + done) / 8, (offset + done) % 8);
            let bytes = (8 - inside).min(data.len() - done);
            let value = words[word].read().to_ne_bytes();
            data[done..done + bytes].copy_from_slice(&value[inside..inside + bytes]);
            done += bytes;
        }
    }
}

/// A buffer that the card reaches.
pub(crate) struct Buffer<R: Reach> {
    reach: Arc<R>,
    space: Arc<Mutex<BusSpace>>,
    memory: ManuallyDrop<HostMemory>,
    address: u64,
    bytes: usize,
}

impl<R: Reach> Buffer<R> {
    /// Allocates memory and lets the card, and only the card, write it.
    pub(crate) fn new(reach: Arc<R>, space: Arc<Mutex<BusSpace>>, bytes: usize) -> std::io::Result<Buffer<R>> {
        let full = || std::io::Error::new(std::io::ErrorKind::OutOfMemory, "no bus addresses are left");
        let (mapped, address) = {
            let mut space = space.lock().unwrap_or_else(PoisonError::into_inner);
            let mapped = space.rounded(bytes).ok_or_else(full)?;
            (mapped, space.take(mapped).ok_or_else(full)?)
        };
        match reach.allocate(address, mapped as usize) {
            Ok(map) => Ok(Buffer { reach, space, memory: ManuallyDrop::new(HostMemory { map }), address, bytes }),
            Err(error) => {
                space.lock().unwrap_or_else(PoisonError::into_inner).give_back(address);
                Err(error)
            }
        }
    }
}

impl<R: Reach> DmaBuffer for Buffer<R> {
    fn bus_address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn load(&self, offset: usize, data: &mut [u8]) {
        let inside = offset.checked_add(data.len()).is_some_and(|end| end <= self.bytes);
        assert!(inside, "a load of {} bytes at {offset:#x} leaves a buffer of {:#x} bytes", data.len(), self.bytes);
        self.memory.load(offset, data);
    }
}

impl<R: Reach> Drop for Buffer<R> {
    fn drop(&mut self) {
        // Memory that the card can still reach must never be used for something else: where the
        // mapping cannot be taken away, memory and address are left as they are.
        if self.reach.release(self.address, self.memory.map.len()) {
            self.space.lock().unwrap_or_else(PoisonError::into_inner).give_back(self.address);
            // SAFETY: the field is not used again.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bus_addresses_are_aligned_distinct_valid_and_used_again() {
        let valid = [0x1800..0x4000, 0x10_0000..0x10_3000];
        let mut space = BusSpace::new(&valid, 0x1000);
        assert_eq!((space.rounded(0), space.rounded(0x1001)), (Some(0x1000), Some(0x2000)));
        assert_eq!(space.rounded(usize::MAX), None);
        assert_eq!(space.take(0x1000), Some(0x2000));
        assert_eq!(space.take(0x2000), Some(0x10_0000), "the first range has one page left");
        assert_eq!(space.take(0x1000), Some(0x3000));
        assert_eq!(space.take(0x1000), Some(0x10_2000));
        assert_eq!(space.take(0x1000), None);
        space.give_back(0x10_0000);
        assert_eq!(space.take(0x3000), None);
        assert_eq!(space.take(0x1000), Some(0x10_0000));
        assert_eq!(space.take(0x1000), Some(0x10_1000));
        assert_eq!(space.take(u64::MAX), None);
    }

    #[test]
    fn what_another_writes_to_the_memory_is_loaded_at_every_alignment() {
        let memory = HostMemory { map: anonymous(4096).unwrap() };
        let mut zeroed = [1; 4096];
        memory.load(0, &mut zeroed);
        assert_eq!(zeroed, [0; 4096]);
        let written: Vec<u8> = (0..64).collect();
        // SAFETY: inside the mapping, and nobody else uses it.
        unsafe { std::ptr::copy_nonoverlapping(written.as_ptr(), memory.map.as_mut_ptr(), written.len()) };
        for start in 0..16 {
            for bytes in 0..40 {
                let mut read = vec![0; bytes];
                memory.load(start, &mut read);
                assert_eq!(read, written[start..start + bytes]);
            }
        }
    }
}
