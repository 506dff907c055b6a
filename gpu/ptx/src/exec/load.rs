//! Loads.

use super::place::{Common, Place, consecutive};
use super::{Executed, LaneFault, Turn, first, lanes};
use crate::code::{Load, Space};
use crate::counting::{Touched, count_access};
use crate::lanes::convert::sign_extend;
use crate::lanes::{Lanes, WARP};
use crate::memory::Kind;
use crate::{Access, Persistence};

impl Turn<'_> {
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

    /// Loads from one region, in bounds and aligned. Gives the lanes that loaded from persistent
    /// memory.
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
}

#[inline(always)]
fn spread<const N: usize>(row: &[u8], to: &mut Lanes, value: impl Fn(&[u8; N]) -> u64) {
    for (lane, bytes) in to.iter_mut().zip(row.as_chunks::<N>().0) {
        *lane = value(bytes);
    }
}

/// Each lane's value from its address. All are in bounds: a caller's mistake gives zeros, not
/// another's memory.
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
