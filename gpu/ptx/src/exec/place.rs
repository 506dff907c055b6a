//! Where an access goes: bounds, alignment, address spaces.

use super::{LaneFault, Turn, first, lane_fault};
use crate::code::{Address, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, Space};
use crate::lanes::{Lanes, WARP};
use crate::memory::Kind;
use crate::{Access, FaultKind};

/// Where a lane's access goes.
#[derive(Clone, Copy)]
pub(super) enum Place {
    /// Region, offset in it.
    Memory(usize, usize),
    Shared(usize),
    /// Offset in the warp's local memory.
    Local(usize),
    Param(u64),
}

/// Where all lanes' accesses go.
#[derive(Clone, Copy)]
pub(super) enum Common {
    /// One region.
    Memory(usize),
    Shared,
}

fn read(bytes: &[u8], at: usize, width: u8) -> u64 {
    match width {
        1 => u64::from(bytes[at]),
        2 => u64::from(u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))),
        4 => u64::from(u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))),
        _ => u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")),
    }
}

fn write(bytes: &mut [u8], at: usize, width: u8, value: u64) {
    let width = usize::from(width);
    bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
}

/// Whether each lane's address follows the one before by `width`.
pub(super) fn consecutive(addresses: &Lanes, width: u64) -> bool {
    let start = addresses[0];
    (0..WARP).fold(0, |differs, i| differs | addresses[i] ^ start.wrapping_add(width * i as u64)) == 0
}

impl Turn<'_> {
    /// Each lane's address.
    #[inline(always)]
    pub(super) fn addresses(&self, at: &Address) -> Lanes {
        let base = self.source(at.base);
        std::array::from_fn(|lane| base[lane].wrapping_add(at.offset as u64))
    }

    /// Where an access of `bytes` bytes by one lane goes, checked for bounds and alignment.
    #[inline(always)]
    pub(super) fn place(
        &self,
        space: Space,
        lane: usize,
        address: u64,
        bytes: u64,
        access: Access,
    ) -> Result<Place, Box<LaneFault>> {
        if address & (bytes - 1) != 0 {
            return lane_fault(lane, FaultKind::Misaligned { access, address, bytes });
        }
        match space {
            Space::Global => self.in_memory(lane, address, bytes, access),
            Space::Generic => match address & !(SHARED_WINDOW - 1) {
                SHARED_WINDOW => self.in_shared(lane, address - SHARED_WINDOW, bytes, access),
                LOCAL_WINDOW => self.in_local(lane, address - LOCAL_WINDOW, bytes, access),
                PARAM_WINDOW => self.in_param(lane, address, bytes, access),
                _ => self.in_memory(lane, address, bytes, access),
            },
            Space::Shared => self.in_shared(lane, address, bytes, access),
            Space::Local => self.in_local(lane, address, bytes, access),
            Space::Param => self.in_param(lane, address, bytes, access),
        }
    }

    #[inline(always)]
    fn in_memory(&self, lane: usize, address: u64, bytes: u64, access: Access) -> Result<Place, Box<LaneFault>> {
        let Some(index) = self.memory.find(address) else { return self.outside(lane, address, bytes, access) };
        let region = self.memory.region(index);
        let offset = address - region.base;
        if offset + bytes > region.data.len() as u64 {
            return self.outside(lane, address, bytes, access);
        }
        if access != Access::Load && region.kind == Kind::Constant {
            return lane_fault(lane, FaultKind::ReadOnly { access, address });
        }
        Ok(Place::Memory(index, offset as usize))
    }

    #[cold]
    fn outside<T>(&self, lane: usize, address: u64, bytes: u64, access: Access) -> Result<T, Box<LaneFault>> {
        lane_fault(lane, FaultKind::Outside { access, address, bytes, near: self.memory.near(address) })
    }

    fn in_shared(&self, lane: usize, offset: u64, bytes: u64, access: Access) -> Result<Place, Box<LaneFault>> {
        let size = self.block.shared.len() as u64;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let near = format!("the block has {size} bytes of shared memory");
            return lane_fault(lane, FaultKind::Outside { access, address: offset, bytes, near });
        }
        Ok(Place::Shared(offset as usize))
    }

    fn in_local(&self, lane: usize, offset: u64, bytes: u64, access: Access) -> Result<Place, Box<LaneFault>> {
        let size = self.shape.code.local_bytes;
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            let near = format!("the thread has {size} bytes of local memory");
            return lane_fault(lane, FaultKind::Outside { access, address: offset, bytes, near });
        }
        Ok(Place::Local(lane * size as usize + offset as usize))
    }

    fn in_param(&self, lane: usize, address: u64, bytes: u64, access: Access) -> Result<Place, Box<LaneFault>> {
        if access != Access::Load {
            return lane_fault(lane, FaultKind::ReadOnly { access, address });
        }
        if self.shape.parameter(address, bytes).is_none() {
            let near = format!("the kernel has {} bytes of parameters", self.shape.parameters.len());
            return lane_fault(lane, FaultKind::Outside { access, address, bytes, near });
        }
        Ok(Place::Param(address))
    }

    #[inline(always)]
    pub(super) fn read_place(&self, place: Place, plus: usize, width: u8) -> u64 {
        match place {
            Place::Memory(index, offset) => read(&self.memory.region(index).data, offset + plus, width),
            Place::Shared(offset) => read(&self.block.shared, offset + plus, width),
            Place::Local(offset) => read(&self.warp.local, offset + plus, width),
            Place::Param(address) => {
                let bytes = self.shape.parameter(address + plus as u64, u64::from(width));
                read(bytes.unwrap_or(&[0; 8]), 0, width)
            }
        }
    }

    #[inline(always)]
    pub(super) fn write_place(&mut self, place: Place, plus: usize, width: u8, value: u64) {
        match place {
            Place::Memory(index, offset) => write(&mut self.memory.region_mut(index).data, offset + plus, width, value),
            Place::Shared(offset) => write(&mut self.block.shared, offset + plus, width, value),
            Place::Local(offset) => write(&mut self.warp.local, offset + plus, width, value),
            // `place` lets no store through to a parameter.
            Place::Param(_) => {}
        }
    }

    /// Whether all lanes' accesses lie in one region or all in shared memory, in bounds and
    /// aligned.
    #[inline(always)]
    pub(super) fn common(&self, space: Space, addresses: &Lanes, exec: u32, bytes: u64) -> Option<Common> {
        let start = addresses[first(exec)?];
        let (mut differs, mut low, mut largest) = (0, 0, 0);
        for (lane, address) in addresses.iter().enumerate() {
            let keep = u64::from(exec >> lane & 1).wrapping_neg();
            differs |= (address ^ start) & keep;
            low |= address & keep;
            largest = largest.max(address & keep);
        }
        if low & (bytes - 1) != 0 {
            return None;
        }
        match space {
            Space::Shared => (largest.checked_add(bytes)? <= self.block.shared.len() as u64).then_some(Common::Shared),
            // One window of 4 GiB holds all: see `Memory`.
            Space::Global | Space::Generic if differs >> 32 == 0 => {
                let index = self.memory.find(start)?;
                let region = self.memory.region(index);
                let inside = largest - region.base + bytes <= region.data.len() as u64;
                inside.then_some(Common::Memory(index))
            }
            _ => None,
        }
    }
}
