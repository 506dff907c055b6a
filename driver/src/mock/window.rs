//! Windows on the BARs, and host memory that the card writes.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_PAGE_BYTES, LINE, LINE_U64, PM_BAR, REGISTER_BAR};

use super::{MockCard, State, Store, lines};
use crate::pci::{Caching, DmaBuffer, Mapping};

pub(super) struct Window {
    pub(super) card: MockCard,
    pub(super) bar: usize,
    pub(super) range: Range<u64>,
    pub(super) caching: Caching,
}

impl Window {
    fn address(&self, offset: u64, bytes: usize) -> u64 {
        assert!(offset + bytes as u64 <= self.range.end - self.range.start, "an access leaves its window");
        self.range.start + offset
    }

    /// In front of a command is the worst moment for it: the card orders no load behind a command
    /// that it has not got.
    fn load_ahead_of_commands(&self, state: &mut State) {
        if self.bar == COMMAND_BAR && state.options.evict_one_in > 0 && state.chance(4) {
            state.fetch_recent();
        }
    }
}

impl Mapping for Window {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let address = self.address(offset, data.len());
        let mut state = self.card.lock();
        if !state.tick() {
            return data.fill(0xff);
        }
        match self.bar {
            REGISTER_BAR => data.copy_from_slice(&state.register(address as u32).to_le_bytes()),
            COMMAND_BAR => {
                state.push();
                state.empty_slots();
                let status = state.page_status(address as usize / COMMAND_PAGE_BYTES).to_bytes();
                data.copy_from_slice(&status[..data.len()]);
            }
            _ if self.caching == Caching::WriteBack => {
                let mut done = 0;
                while done < data.len() {
                    let at = address + done as u64;
                    let inside = (at % LINE_U64) as usize;
                    let bytes = (LINE - inside).min(data.len() - done);
                    let line = state.fetch(at - inside as u64);
                    data[done..done + bytes].copy_from_slice(&line.0[inside..inside + bytes]);
                    done += bytes;
                }
            }
            _ => state.pm_load(address, data),
        }
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let address = self.address(offset, data.len());
        let mut state = self.card.lock();
        if !state.tick() {
            return;
        }
        if self.bar == REGISTER_BAR {
            let value = u32::from_le_bytes(data.try_into().expect("registers have four bytes"));
            return state.set_register(address as u32, value);
        }
        self.load_ahead_of_commands(&mut state);
        let mut done = 0;
        while done < data.len() {
            let at = address + done as u64;
            let inside = (at % LINE_U64) as usize;
            let cached = self.bar == PM_BAR && self.caching == Caching::WriteBack;
            // Words travel by themselves where they are not cached.
            let piece = if cached { LINE - inside } else { 8 - inside % 8 };
            let bytes = piece.min(data.len() - done);
            let part = &data[done..done + bytes];
            done += bytes;
            if cached {
                let line = state.fetch(at - inside as u64);
                line.0[inside..inside + bytes].copy_from_slice(part);
                line.1 = true;
                continue;
            }
            let store = match self.bar {
                COMMAND_BAR => Store::Command { offset: at, bytes: part.to_vec() },
                _ => Store::Pm { address: at, bytes: part.to_vec() },
            };
            if self.caching == Caching::WriteCombining {
                state.travelling.push(store);
            } else {
                state.link.push_back(store);
            }
        }
    }

    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        let address = self.address(offset, line.len());
        let mut state = self.card.lock();
        if state.tick() {
            self.load_ahead_of_commands(&mut state);
            let store = match self.bar {
                COMMAND_BAR => Store::Command { offset: address, bytes: line.to_vec() },
                _ => Store::Pm { address, bytes: line.to_vec() },
            };
            state.travelling.push(store);
        }
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        let address = self.address(offset, bytes as usize);
        let mut state = self.card.lock();
        if !state.tick() || self.caching != Caching::WriteBack {
            return;
        }
        for line in lines(address..address + bytes).step_by(LINE) {
            if let Some((bytes, dirty @ true)) = state.cache.get_mut(&line) {
                *dirty = false;
                let bytes = bytes.to_vec();
                state.travelling.push(Store::Pm { address: line, bytes });
            }
        }
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        // A window that is not cached drops nothing, also of lines that another one has left in the
        // cache.
        if self.caching != Caching::WriteBack {
            return;
        }
        self.write_back(offset, bytes);
        let address = self.address(offset, bytes as usize);
        let mut state = self.card.lock();
        if !state.gone {
            state.dropping.extend(lines(address..address + bytes).step_by(LINE));
        }
    }

    fn fence(&self) {
        let mut state = self.card.lock();
        if state.tick() {
            while state.drop_one() {}
            while state.travel_one() {}
        }
    }
}

pub(super) struct Buffer {
    pub(super) address: u64,
    pub(super) bytes: Arc<Mutex<Vec<u8>>>,
}

impl DmaBuffer for Buffer {
    fn bus_address(&self) -> u64 {
        self.address
    }
    fn bytes(&self) -> usize {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
    fn load(&self, offset: usize, data: &mut [u8]) {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        data.copy_from_slice(&bytes[offset..offset + data.len()]);
    }
}
