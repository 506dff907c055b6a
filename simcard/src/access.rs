//! Accesses of the host to the BARs of a card in trapping mode, and to registers and command pages in both.

use nearpm_interface::geometry::{
    COMMAND_BAR, COMMAND_BAR_BYTES, COMMAND_PAGE_BYTES, LINE, PM_BAR, REGISTER_BAR, REGISTER_BAR_BYTES,
};
use nearpm_interface::registers::{self as reg, capability};
use nearpm_sim::core::Access;

use crate::engine::{Engine, WindowMode, lines};

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
        let mut done = 0;
        while done < data.len() {
            let (register, first) = ((offset + done as u64) as u32 & !3, (offset as usize + done) % 4);
            let mut value = self.register(register).unwrap_or(u32::MAX);
            if register == reg::CAPABILITIES && self.mode == WindowMode::Mapped && self.card.is_some() {
                value &= !capability::HOST_ORDERED;
            }
            let part = (4 - first).min(data.len() - done);
            data[done..done + part].copy_from_slice(&value.to_le_bytes()[first..first + part]);
            done += part;
        }
    }

    /// Registers take aligned words; anything else has no effect, as on the card's bus.
    fn store_registers(&mut self, offset: u64, data: &[u8]) {
        let (words, rest) = data.as_chunks::<4>();
        if !offset.is_multiple_of(4) || !rest.is_empty() {
            return;
        }
        for (offset, word) in (offset as u32..).step_by(4).zip(words) {
            let access = Access::RegisterWrite { offset, value: u32::from_le_bytes(*word) };
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

/// Lines that a store changes: address, contents, and which bytes of it.
fn stores(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, [u8; LINE], u64)> {
    let mut done = 0;
    lines(offset, data.len()).map(move |(line, first, part)| {
        let mut bytes = [0; LINE];
        bytes[first..first + part].copy_from_slice(&data[done..done + part]);
        done += part;
        (line, bytes, (u64::MAX >> (LINE - part)) << first)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_cut_at_lines_and_selects_its_bytes() {
        let data: Vec<u8> = (1..=70).collect();
        let found: Vec<_> = stores(60, &data).collect();
        assert_eq!(found.iter().map(|f| (f.0, f.2)).collect::<Vec<_>>(), [(0, 0xf << 60), (64, u64::MAX), (128, 3)]);
        assert_eq!((found[0].1[60], found[1].1[0], found[2].1[..3].to_vec()), (1, 5, vec![69, 70, 0]));
        assert_eq!(stores(5, &[]).count(), 0);
    }
}
