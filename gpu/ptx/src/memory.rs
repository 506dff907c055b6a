//! Device memory and persistent ranges: who owns an address.
//!
//! Each allocation starts at an address of its own that is a multiple of 4 GiB, so an access past
//! its end hits nothing else, and the owner of an address is one look-up. Addresses are never used
//! again.

/// Persistent memory mapped into the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmRange {
    /// Its address on the GPU, a multiple of 4096.
    pub address: u64,
    /// Its bytes.
    pub len: u64,
}

/// Memory that cannot be had, or an address that is not mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The device memory is used up.
    #[error("{bytes} bytes of device memory were asked for, {free} of {total} are free")]
    Full { bytes: u64, free: u64, total: u64 },
    /// No allocation or PM range holds all of it.
    #[error("{bytes} bytes at {address:#x} are in no allocation or persistent range")]
    NotMapped { address: u64, bytes: u64 },
    /// The address is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation")]
    NotAllocated { address: u64 },
    /// The module has no variable of that name.
    #[error("the module has no variable {name}")]
    NoSymbol { name: String },
    /// A launch is stopped on the GPU; resume or crash it first.
    #[error("a launch is stopped on the GPU: resume it, abandon it or crash it first")]
    Busy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Device,
    Constant,
    Persistent,
}

#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub base: u64,
    pub data: Vec<u8>,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) struct Memory {
    /// Region by address / 4 GiB; `NONE` where there is none.
    slots: Vec<u32>,
    regions: Vec<Option<Region>>,
    used: u64,
    total: u64,
}

const SLOT_SHIFT: u32 = 32;
const NONE: u32 = u32::MAX;
/// Below it lie the windows of generic addresses, and nothing that is mapped.
const FIRST_SLOT: usize = 16;

impl Memory {
    pub fn new(total: u64) -> Self {
        Self { slots: vec![NONE; FIRST_SLOT], regions: Vec::new(), used: 0, total }
    }

    fn add(&mut self, data: Vec<u8>, kind: Kind) -> u64 {
        let base = (self.slots.len() as u64) << SLOT_SHIFT;
        // One slot more than is filled: an access that runs past the end finds nothing.
        let slots = (data.len() as u64 >> SLOT_SHIFT) + 1;
        self.slots.extend(std::iter::repeat_n(self.regions.len() as u32, slots as usize));
        self.regions.push(Some(Region { base, data, kind }));
        base
    }

    pub fn allocate(&mut self, bytes: u64, kind: Kind) -> Result<u64, MemoryError> {
        let free = self.total - self.used;
        let full = MemoryError::Full { bytes, free, total: self.total };
        let Some(size) = usize::try_from(bytes).ok().filter(|_| bytes <= free) else { return Err(full) };
        let mut data = Vec::new();
        data.try_reserve_exact(size).map_err(|_| full)?;
        data.resize(size, 0);
        self.used += bytes;
        Ok(self.add(data, kind))
    }

    pub fn map(&mut self, image: Vec<u8>) -> PmRange {
        let len = image.len() as u64;
        PmRange { address: self.add(image, Kind::Persistent), len }
    }

    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        match self.find(address).filter(|&index| self.region(index).base == address) {
            Some(index) if self.region(index).kind == Kind::Device => {
                self.used -= self.region(index).data.len() as u64;
                self.regions[index] = None;
                self.forget(index);
                Ok(())
            }
            _ => Err(MemoryError::NotAllocated { address }),
        }
    }

    fn forget(&mut self, index: usize) {
        self.slots.iter_mut().filter(|slot| **slot == index as u32).for_each(|slot| *slot = NONE);
    }

    /// All that the power kept alive is gone.
    pub fn lose_device_memory(&mut self) {
        for index in 0..self.regions.len() {
            if self.regions[index].as_ref().is_some_and(|region| region.kind != Kind::Persistent) {
                self.regions[index] = None;
                self.forget(index);
            }
        }
        self.used = 0;
    }

    /// The region whose slot `address` is in.
    #[inline(always)]
    pub fn find(&self, address: u64) -> Option<usize> {
        match self.slots.get((address >> SLOT_SHIFT) as usize) {
            Some(&NONE) | None => None,
            Some(&index) => Some(index as usize),
        }
    }

    /// A region that [`Memory::find`] gave.
    #[inline(always)]
    pub fn region(&self, index: usize) -> &Region {
        self.regions[index].as_ref().expect("a slot names a region that is there")
    }

    #[inline(always)]
    pub fn region_mut(&mut self, index: usize) -> &mut Region {
        self.regions[index].as_mut().expect("a slot names a region that is there")
    }

    /// `bytes` bytes at `address`, if one region holds them all.
    pub fn slice(&self, address: u64, bytes: u64) -> Option<&[u8]> {
        let region = self.region(self.find(address)?);
        let start = address - region.base;
        region.data.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(bytes)?).ok()?)
    }

    pub fn slice_mut(&mut self, address: u64, bytes: u64) -> Option<&mut [u8]> {
        let index = self.find(address)?;
        let region = self.region_mut(index);
        let start = address - region.base;
        region.data.get_mut(usize::try_from(start).ok()?..usize::try_from(start.checked_add(bytes)?).ok()?)
    }

    pub fn is_persistent(&self, address: u64) -> bool {
        self.find(address).is_some_and(|index| self.region(index).kind == Kind::Persistent)
    }

    /// All that is there.
    pub fn regions(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().flatten()
    }

    /// Persistent ranges in the order of their mapping.
    pub fn persistent(&self) -> impl Iterator<Item = &Region> {
        self.regions.iter().flatten().filter(|region| region.kind == Kind::Persistent)
    }

    /// Gives the persistent ranges, in the order of their mapping, these contents.
    pub fn restore(&mut self, images: Vec<Vec<u8>>) {
        let persistent = self.regions.iter_mut().flatten().filter(|region| region.kind == Kind::Persistent);
        persistent.zip(images).for_each(|(region, image)| region.data = image);
    }

    /// Where an address that no region holds lies, for the message of a fault.
    pub fn near(&self, address: u64) -> String {
        if address < 4096 {
            return "it is a null pointer".into();
        }
        match self.find(address).map(|index| self.region(index)) {
            Some(region) => {
                let what = match region.kind {
                    Kind::Persistent => "persistent range",
                    Kind::Constant => "constant memory",
                    Kind::Device => "allocation",
                };
                format!("the {what} at {:#x} has {} bytes", region.base, region.data.len())
            }
            None => "no allocation is there (freed, lost in a crash, or never made)".into(),
        }
    }
}
