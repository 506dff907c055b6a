//! Stores.

use super::place::{Common, Place, consecutive};
use super::{Executed, Turn, lanes};
use crate::code::{Space, Store};
use crate::counting::{Touched, count_access};
use crate::lanes::{Lanes, WARP};
use crate::memory::Kind;
use crate::{Access, Persistence};

impl Turn<'_> {
    pub(super) fn store(&mut self, store: &Store, exec: u32, line: u32) -> Executed {
        let addresses = self.addresses(&store.at);
        let width = u64::from(store.bytes);
        let tracked = self.tracker.is_some();
        let row = exec == u32::MAX && store.elements == 1 && !tracked && consecutive(&addresses, width);
        if row && self.store_row(store, &addresses) {
            return Ok(());
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

    /// All lanes store to one row of memory. False where it is not wholly in one region that may be
    /// written.
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
}

#[inline(always)]
fn gather<const N: usize>(row: &mut [u8], from: &Lanes, bytes: impl Fn(u64) -> [u8; N]) {
    for (lane, to) in from.iter().zip(row.as_chunks_mut::<N>().0) {
        *to = bytes(*lane);
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
