//! Accesses of the host to the BARs of a card in trapping mode, and to registers and command pages
//! in both.

use nearpm_endpoint::lines::{lines, load_registers, register_stores, stores};
use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, COMMAND_PAGE_BYTES, PM_BAR, REGISTER_BAR, REGISTER_BAR_BYTES,
};
use nearpm_interface::registers::{self as reg, capability};
use nearpm_sim::core::Access;

use crate::engine::{Engine, WindowMode};

impl Engine {
    /// Bytes of a BAR that has something behind it.
    pub fn bar_bytes(&self, bar: usize) -> u64 {
        match bar {
            REGISTER_BAR => REGISTER_BAR_BYTES as u64,
            COMMAND_BAR => COMMAND_BAR_BYTES as u64,
            PM_BAR => self.store.bytes(),
            _ => 0,
        }
    }

    fn is_inside(&self, bar: usize, offset: u64, bytes: usize) -> bool {
        offset.checked_add(bytes as u64).is_some_and(|end| end <= self.bar_bytes(bar))
    }

    /// Loads. What does not exist, or is not answered, reads all ones.
    pub fn load(&mut self, bar: usize, offset: u64, data: &mut [u8]) {
        if self.card.is_none() || !self.is_inside(bar, offset, data.len()) {
            return data.fill(0xff);
        }
        match bar {
            REGISTER_BAR => self.load_registers(offset, data),
            COMMAND_BAR => self.load_status(offset, data),
            _ if self.mode == WindowMode::Mapped => self.load_window(offset, data),
            _ => self.load_memory(offset, data),
        }
    }

    /// Stores. What does not exist takes nothing.
    pub fn store(&mut self, bar: usize, offset: u64, data: &[u8]) {
        if self.card.is_none() || !self.is_inside(bar, offset, data.len()) {
            return;
        }
        match bar {
            REGISTER_BAR => self.store_registers(offset, data),
            COMMAND_BAR => self.store_commands(offset, data),
            _ if self.mode == WindowMode::Mapped => self.store_window(offset, data),
            _ => self.store_memory(offset, data),
        }
    }

    fn load_registers(&mut self, offset: u64, data: &mut [u8]) {
        load_registers(offset, data, |register| {
            let value = self.register(register).unwrap_or(u32::MAX);
            // No other card is at the card's port for them, and a window that is mapped passes the
            // ordering point by.
            let lacks = match self.mode {
                WindowMode::Trapping => capability::PEERS,
                WindowMode::Mapped => capability::PEERS | capability::HOST_ORDERED,
            };
            if register == reg::CAPABILITIES && self.card.is_some() { value & !lacks } else { value }
        });
    }

    fn store_registers(&mut self, offset: u64, data: &[u8]) {
        for (offset, value) in register_stores(offset, data) {
            let access = Access::RegisterWrite { offset, value };
            match self.mode {
                WindowMode::Trapping => self.accept(access),
                WindowMode::Mapped => self.set_mapped_register(access),
            }
        }
    }

    fn load_status(&mut self, offset: u64, data: &mut [u8]) {
        let mut done = 0;
        for (line, first, part) in lines(offset, data.len()) {
            let page = line as usize / COMMAND_PAGE_BYTES;
            let answer = self.answers(vec![Access::CommandRead { page }]).pop().flatten();
            let data = &mut data[done..done + part];
            match answer.filter(|answer| !answer.error) {
                Some(answer) => data.copy_from_slice(&answer.data[first..first + part]),
                None => data.fill(0xff),
            }
            done += part;
        }
    }

    fn store_commands(&mut self, offset: u64, data: &[u8]) {
        for (line, bytes, strobes) in stores(offset, data) {
            let access = Access::CommandWrite { offset: line, data: bytes, strobes };
            match self.mode {
                WindowMode::Trapping => self.accept(access),
                WindowMode::Mapped => self.run_mapped_command(access),
            }
        }
    }

    fn load_memory(&mut self, offset: u64, data: &mut [u8]) {
        let parts: Vec<_> = lines(offset, data.len()).collect();
        let reads = parts.iter().map(|&(address, ..)| Access::PmRead { address }).collect();
        let mut done = 0;
        for (answer, (_, first, part)) in self.answers(reads).into_iter().zip(parts) {
            let data = &mut data[done..done + part];
            match answer.filter(|answer| !answer.error) {
                Some(answer) => data.copy_from_slice(&answer.data[first..first + part]),
                None => data.fill(0xff),
            }
            done += part;
        }
    }

    fn store_memory(&mut self, offset: u64, data: &[u8]) {
        for (address, bytes, strobes) in stores(offset, data) {
            self.accept(Access::PmWrite { address, data: bytes, strobes });
        }
    }
}
