//! Loads and stores.

use super::{Executed, LaneFault, Turn, first, lane_fault, lanes};
use crate::code::{Address, LOCAL_WINDOW, Load, Order, PARAM_WINDOW, SHARED_WINDOW, Space, Store};
use crate::counting::{Touched, count_access};
use crate::lanes::convert::sign_extend;
use crate::lanes::{Lanes, WARP};
use crate::memory::Kind;
use crate::persist;
use crate::{Access, FaultKind, Persistence};

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
enum Common {
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
fn consecutive(addresses: &Lanes, width: u64) -> bool {
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

    pub(super) fn load(&mut self, load: &Load, exec: u32) -> Executed {
        if load.at.space == Space::Param && load.at.base.constant_index().is_some() {
            return self.load_parameter(load, exec);
        }
        let addresses = self.addresses(&load.at);
        let width = u64::from(load.bytes);
        if exec == u32::MAX && load.elements == 1 && consecutive(&addresses, width) && self.load_row(load, &addresses) {
            return Ok(());
        }
        let bytes = width * u64::from(load.elements);
        let persistent = match self.common(load.at.space, &addresses, exec, bytes) {
            Some(found) => self.load_together(load, exec, &addresses, found),
            None => self.load_apart(load, exec, &addresses, bytes)?,
        };
        self.loaded(load, exec, persistent, &addresses, bytes, false);
        self.extend(load, exec);
        Ok(())
    }

    /// Loads from one region, in bounds and aligned. Gives the lanes that loaded from persistent memory.
    fn load_together(&mut self, load: &Load, exec: u32, addresses: &Lanes, found: Common) -> u32 {
        let (data, base, persistent) = match found {
            Common::Memory(index) => {
                let region = self.memory.region(index);
                (&region.data[..], region.base, region.kind == Kind::Persistent)
            }
            Common::Shared => (&self.block.shared[..], 0, false),
        };
        for element in 0..usize::from(load.elements) {
            let to = &mut self.warp.registers[load.to[element] as usize];
            let start = base.wrapping_sub(element as u64 * u64::from(load.bytes));
            match load.bytes {
                8 => take::<8>(data, start, addresses, exec, to, |bytes| u64::from_le_bytes(*bytes)),
                4 => take::<4>(data, start, addresses, exec, to, |bytes| u64::from(u32::from_le_bytes(*bytes))),
                2 => take::<2>(data, start, addresses, exec, to, |bytes| u64::from(u16::from_le_bytes(*bytes))),
                _ => take::<1>(data, start, addresses, exec, to, |bytes| u64::from(bytes[0])),
            }
        }
        if persistent { exec } else { 0 }
    }

    /// Loads lane by lane, with the fault of the first that has one.
    fn load_apart(&mut self, load: &Load, exec: u32, addresses: &Lanes, bytes: u64) -> Result<u32, Box<LaneFault>> {
        let mut persistent = 0;
        for lane in lanes(exec) {
            let place = self.place(load.at.space, lane, addresses[lane], bytes, Access::Load)?;
            if let Place::Memory(index, _) = place {
                persistent |= u32::from(self.memory.region(index).kind == Kind::Persistent) << lane;
            }
            for element in 0..usize::from(load.elements) {
                let value = self.read_place(place, element * usize::from(load.bytes), load.bytes);
                self.warp.registers[load.to[element] as usize][lane] = value;
            }
        }
        Ok(persistent)
    }

    /// Whether all lanes' accesses lie in one region or all in shared memory, in bounds and aligned.
    #[inline(always)]
    fn common(&self, space: Space, addresses: &Lanes, exec: u32, bytes: u64) -> Option<Common> {
        let start = addresses[first(exec)?];
        let (mut differs, mut low, mut largest) = (0, 0, 0);
        for lane in 0..WARP {
            let keep = u64::from(exec >> lane & 1).wrapping_neg();
            differs |= (addresses[lane] ^ start) & keep;
            low |= addresses[lane] & keep;
            largest = largest.max(addresses[lane] & keep);
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

    /// A parameter at a fixed offset: the same for all lanes.
    fn load_parameter(&mut self, load: &Load, exec: u32) -> Executed {
        let Some(lane) = first(exec) else { return Ok(()) };
        let address = self.source(load.at.base)[0].wrapping_add(load.at.offset as u64);
        let bytes = u64::from(load.bytes) * u64::from(load.elements);
        let place = self.place(Space::Param, lane, address, bytes, Access::Load)?;
        for element in 0..usize::from(load.elements) {
            **self.scratch = [self.read_place(place, element * usize::from(load.bytes), load.bytes); WARP];
            self.put(load.to[element], exec);
        }
        self.extend(load, exec);
        Ok(())
    }

    /// All lanes load from one row of memory. False where it is not wholly in one region.
    #[inline(always)]
    fn load_row(&mut self, load: &Load, addresses: &Lanes) -> bool {
        let width = usize::from(load.bytes);
        let start = addresses[0];
        let (row, persistent) = match load.at.space {
            Space::Shared => {
                let start = start as usize;
                (self.block.shared.get(start..start.saturating_add(width * WARP)), false)
            }
            Space::Global | Space::Generic => match self.memory.find(start) {
                Some(index) => {
                    let region = self.memory.region(index);
                    let offset = (start - region.base) as usize;
                    (region.data.get(offset..offset + width * WARP), region.kind == Kind::Persistent)
                }
                None => (None, false),
            },
            Space::Local | Space::Param => (None, false),
        };
        let Some(row) = row.filter(|_| start.is_multiple_of(width as u64)) else { return false };
        let to = &mut self.warp.registers[load.to[0] as usize];
        match width {
            8 => spread::<8>(row, to, |bytes| u64::from_le_bytes(*bytes)),
            4 => spread::<4>(row, to, |bytes| u64::from(u32::from_le_bytes(*bytes))),
            2 => spread::<2>(row, to, |bytes| u64::from(u16::from_le_bytes(*bytes))),
            _ => spread::<1>(row, to, |bytes| u64::from(bytes[0])),
        }
        self.loaded(load, u32::MAX, if persistent { u32::MAX } else { 0 }, addresses, width as u64, true);
        self.extend(load, u32::MAX);
        true
    }

    #[inline(always)]
    fn extend(&mut self, load: &Load, exec: u32) {
        let Some(bits) = load.sign else { return };
        let mask = u64::MAX >> (64 - bits);
        for element in 0..usize::from(load.elements) {
            sign_extend(u32::from(load.bytes) * 8)(&self.warp.registers[load.to[element] as usize], self.scratch);
            self.scratch.iter_mut().for_each(|value| *value &= mask);
            self.put(load.to[element], exec);
        }
    }

    /// What a load means for counts and persistency.
    #[inline(always)]
    fn loaded(&mut self, load: &Load, exec: u32, persistent: u32, addresses: &Lanes, bytes: u64, row: bool) {
        if self.persistence == Persistence::Off {
            return;
        }
        if persistent != 0 {
            count_access(self.counts, self.translation, false, Touched { addresses, mask: persistent, bytes, row });
        }
        self.observe(load.at.space, load.order, exec, persistent, addresses, bytes);
    }

    /// Lanes have read these bytes: they observe the stores that wrote them, and acquire where the access is strong.
    pub(super) fn observe(
        &mut self,
        space: Space,
        order: Order,
        exec: u32,
        persistent: u32,
        addresses: &Lanes,
        bytes: u64,
    ) {
        let (thread, block) = (self.first_thread(), self.block.number);
        let Some(tracker) = &mut self.tracker else { return };
        for lane in lanes(if tracker.words.is_empty() { 0 } else { persistent }) {
            for (word, mask) in words(addresses[lane], bytes) {
                tracker.load(word, mask, thread + lane as u64);
            }
        }
        if order.strong && tracker.hands_on() {
            for lane in lanes(exec) {
                tracker.acquire(thread + lane as u64, meeting(space, block, addresses[lane]), order);
            }
        }
    }

    pub(super) fn store(&mut self, store: &Store, exec: u32, line: u32) -> Executed {
        let addresses = self.addresses(&store.at);
        let width = u64::from(store.bytes);
        let tracked = self.tracker.is_some();
        if exec == u32::MAX && store.elements == 1 && !tracked && consecutive(&addresses, width) {
            if self.store_row(store, &addresses) {
                return Ok(());
            }
        }
        let bytes = width * u64::from(store.elements);
        let found = self.common(store.at.space, &addresses, exec, bytes);
        let writable = |index: usize| self.memory.region(index).kind != Kind::Constant;
        let persistent = match found {
            Some(Common::Memory(index)) if !writable(index) => None,
            Some(Common::Memory(index)) if self.memory.region(index).kind == Kind::Persistent => Some(exec),
            Some(_) => Some(0),
            None => None,
        };
        let (Some(found), Some(persistent)) = (found, persistent) else {
            return self.store_apart(store, exec, line, &addresses, bytes);
        };
        if tracked {
            for lane in lanes(exec) {
                self.track_store(store, lane, addresses[lane], persistent != 0, line);
            }
        }
        self.store_together(store, exec, &addresses, found);
        self.stored(persistent, &addresses, bytes, false);
        Ok(())
    }

    /// One lane's store, before it is visible, for synchronisation and persistency.
    fn track_store(&mut self, store: &Store, lane: usize, address: u64, persistent: bool, line: u32) {
        self.release(store.at.space, store.order, lane, address, false);
        for element in 0..if persistent { usize::from(store.elements) } else { 0 } {
            let value = self.source(store.from[element])[lane];
            self.pend(lane, address + (element * usize::from(store.bytes)) as u64, store.bytes, value, line);
        }
    }

    /// Stores to one region, in bounds and aligned.
    fn store_together(&mut self, store: &Store, exec: u32, addresses: &Lanes, found: Common) {
        let (data, base) = match found {
            Common::Memory(index) => {
                let region = self.memory.region_mut(index);
                (&mut region.data[..], region.base)
            }
            Common::Shared => (&mut self.block.shared[..], 0),
        };
        for element in 0..usize::from(store.elements) {
            let from = store.from[element].of(&self.warp.registers, &self.shape.constants);
            let start = base.wrapping_sub(element as u64 * u64::from(store.bytes));
            match store.bytes {
                8 => place_all::<8>(data, start, addresses, exec, from),
                4 => place_all::<4>(data, start, addresses, exec, from),
                2 => place_all::<2>(data, start, addresses, exec, from),
                _ => place_all::<1>(data, start, addresses, exec, from),
            }
        }
    }

    /// Stores lane by lane, up to the first that has a fault.
    fn store_apart(&mut self, store: &Store, exec: u32, line: u32, addresses: &Lanes, bytes: u64) -> Executed {
        let mut persistent = 0;
        for lane in lanes(exec) {
            let place = self.place(store.at.space, lane, addresses[lane], bytes, Access::Store)?;
            if let Place::Memory(index, _) = place {
                persistent |= u32::from(self.memory.region(index).kind == Kind::Persistent) << lane;
            }
            if self.tracker.is_some() {
                self.track_store(store, lane, addresses[lane], persistent >> lane & 1 == 1, line);
            }
            for element in 0..usize::from(store.elements) {
                let value = self.source(store.from[element])[lane];
                self.write_place(place, element * usize::from(store.bytes), store.bytes, value);
            }
        }
        self.stored(persistent, addresses, bytes, false);
        Ok(())
    }

    /// All lanes store to one row of memory. False where it is not wholly in one region that may be written.
    #[inline(always)]
    fn store_row(&mut self, store: &Store, addresses: &Lanes) -> bool {
        let width = usize::from(store.bytes);
        let start = addresses[0];
        let from = store.from[0].of(&self.warp.registers, &self.shape.constants);
        let (row, persistent) = match store.at.space {
            Space::Shared => {
                let start = start as usize;
                (self.block.shared.get_mut(start..start.saturating_add(width * WARP)), false)
            }
            Space::Global | Space::Generic => match self.memory.find(start) {
                Some(index) => {
                    let region = self.memory.region_mut(index);
                    let offset = (start - region.base) as usize;
                    let row = region.data.get_mut(offset..offset + width * WARP);
                    (row.filter(|_| region.kind != Kind::Constant), region.kind == Kind::Persistent)
                }
                None => (None, false),
            },
            Space::Local | Space::Param => (None, false),
        };
        let Some(row) = row.filter(|_| start.is_multiple_of(width as u64)) else { return false };
        match width {
            8 => gather::<8>(row, from, u64::to_le_bytes),
            4 => gather::<4>(row, from, |value| (value as u32).to_le_bytes()),
            2 => gather::<2>(row, from, |value| (value as u16).to_le_bytes()),
            _ => gather::<1>(row, from, |value| [value as u8]),
        }
        self.stored(if persistent { u32::MAX } else { 0 }, addresses, width as u64, true);
        true
    }

    #[inline(always)]
    fn stored(&mut self, persistent: u32, addresses: &Lanes, bytes: u64, row: bool) {
        if persistent != 0 && self.persistence != Persistence::Off {
            count_access(self.counts, self.translation, true, Touched { addresses, mask: persistent, bytes, row });
            self.persist_event();
        }
    }

    /// One lane stores to persistent memory: it pends.
    pub(super) fn pend(&mut self, lane: usize, address: u64, width: u8, value: u64, line: u32) {
        let thread = self.first_thread() + lane as u64;
        let step = self.counts.warp_instructions;
        let word = address >> 3;
        let before = visible_word(self.memory, word);
        let shift = (address & 7) as u32;
        let bytes = (((1u32 << width) - 1) << shift) as u8;
        if let Some(tracker) = &mut self.tracker {
            let store = persist::Store { sequence: 0, thread, step, line, bytes, value: value << (8 * shift) };
            tracker.store(word, before, store);
        }
    }

    /// One lane's store takes part in synchronisation.
    pub(super) fn release(&mut self, space: Space, order: Order, lane: usize, address: u64, atomic: bool) {
        let (thread, block) = (self.first_thread() + lane as u64, self.block.number);
        if let Some(tracker) = &mut self.tracker
            && space != Space::Local
            && (order.strong || tracker.hands_on())
        {
            tracker.release(thread, meeting(space, block, address), order, atomic);
        }
    }
}

/// Where threads meet at an address: in global memory, or in one block's shared memory.
fn meeting(space: Space, block: u64, address: u64) -> persist::Place {
    match space {
        Space::Shared => (block + 1, address),
        Space::Generic if address & !(SHARED_WINDOW - 1) == SHARED_WINDOW => (block + 1, address - SHARED_WINDOW),
        _ => (0, address),
    }
}

/// The aligned words of 8 bytes that an access touches, each with its bytes.
pub(super) fn words(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u8)> {
    let first = address >> 3;
    let count = bytes.div_ceil(8);
    (0..count).map(move |i| {
        let mask = if bytes >= 8 { 0xff } else { (((1u32 << bytes) - 1) << (address & 7)) as u8 };
        (first + i, mask)
    })
}

/// A word of a persistent range, with zeros past its end.
fn visible_word(memory: &crate::memory::Memory, word: u64) -> u64 {
    let address = word << 3;
    match memory.slice(address, 8) {
        Some(bytes) => u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        None => (0..8).fold(0, |value, i| {
            let byte = memory.slice(address + i, 1).map_or(0, |byte| byte[0]);
            value | u64::from(byte) << (8 * i)
        }),
    }
}

#[inline(always)]
fn spread<const N: usize>(row: &[u8], to: &mut Lanes, value: impl Fn(&[u8; N]) -> u64) {
    for (lane, bytes) in to.iter_mut().zip(row.as_chunks::<N>().0) {
        *lane = value(bytes);
    }
}

#[inline(always)]
fn gather<const N: usize>(row: &mut [u8], from: &Lanes, bytes: impl Fn(u64) -> [u8; N]) {
    for (lane, to) in from.iter().zip(row.as_chunks_mut::<N>().0) {
        *to = bytes(*lane);
    }
}

/// Each lane's value from its address. All are in bounds: a caller's mistake gives zeros, not another's memory.
#[inline(always)]
fn take<const N: usize>(
    data: &[u8],
    start: u64,
    addresses: &Lanes,
    exec: u32,
    to: &mut Lanes,
    value: impl Fn(&[u8; N]) -> u64,
) {
    for lane in lanes(exec) {
        let offset = addresses[lane].wrapping_sub(start) as usize;
        to[lane] = data.get(offset..).and_then(|rest| rest.first_chunk::<N>()).map_or(0, &value);
    }
}

/// Each lane's value to its address, all in bounds.
#[inline(always)]
fn place_all<const N: usize>(data: &mut [u8], start: u64, addresses: &Lanes, exec: u32, from: &Lanes) {
    for lane in lanes(exec) {
        let offset = addresses[lane].wrapping_sub(start) as usize;
        let bytes = from[lane].to_le_bytes();
        if let (Some(to), Some(bytes)) =
            (data.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<N>()), bytes.first_chunk::<N>())
        {
            *to = *bytes;
        }
    }
}
