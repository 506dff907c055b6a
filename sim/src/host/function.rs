//! The function apart from its BARs: configuration space, reset, host memory, interrupts.

use nearpm_driver::pci::{Caching, PciError};
use nearpm_interface::config_space::{ConfigSpace, Effect};
use nearpm_interface::registers;
use nearpm_interface::registers::state::{BOOTING, REPLAYING};

use super::cpu::{Host, Window};
use super::{Bar, Region};

/// Polls for the end of a function-level reset: more than the longest work that a card can have
/// accepted takes.
const RESET_POLLS: u32 = 50_000;

impl Host {
    /// Reads host memory that a card may write.
    pub fn load_host(&mut self, core: usize, card: usize, bus: u64, offset: usize, data: &mut [u8]) {
        self.begin(core);
        self.catch_up(core);
        let written = self.fabric.slots[card].statistics.dma_writes;
        let parameters = &self.fabric.parameters;
        let cost =
            if self.cores[core].dma_seen[card] == written { parameters.poll_hit_ps } else { parameters.poll_miss_ps };
        if self.fabric.is_powered() {
            self.cores[core].dma_seen[card] = written;
            self.cores[core].now_ps += cost;
        }
        self.fabric.memory.read(bus, offset, data);
    }

    /// Waits for an interrupt of a card, at most `timeout_ps`.
    pub fn wait_interrupt(&mut self, core: usize, card: usize, timeout_ps: u64) -> bool {
        self.begin(core);
        let end_ps = self.cores[core].now_ps + timeout_ps;
        let step_ps = self.fabric.parameters.one_way_ps().max(1);
        loop {
            self.catch_up(core);
            let core = &mut self.cores[core];
            if std::mem::take(&mut self.fabric.slots[card].interrupt) {
                core.now_ps += self.fabric.parameters.interrupt_ps;
                return true;
            }
            if core.now_ps >= end_ps || !self.fabric.is_powered() {
                return false;
            }
            let next_ps = self.fabric.next_arrival(card).unwrap_or(core.now_ps + step_ps);
            core.now_ps = next_ps.max(core.now_ps + 1).min(end_ps);
        }
    }

    /// Reads configuration space; all ones where nothing answers.
    pub fn read_config(&mut self, core: usize, card: usize, offset: u16, data: &mut [u8]) {
        self.begin(core);
        match self.fabric.slots[card].is_there {
            true => self.config[card].read(offset.into(), data),
            false => data.fill(0xff),
        }
    }

    /// Writes configuration space.
    pub fn write_config(&mut self, core: usize, card: usize, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.begin(core);
        if !self.fabric.slots[card].is_there {
            return Ok(());
        }
        if self.config[card].write(offset.into(), data) == Effect::Reset {
            return self.reset(core, card);
        }
        self.fabric.slots[card].bus_master = self.config[card].bus_master();
        Ok(())
    }

    /// Function-level reset: asks the card for it, and waits until it has drained and forgotten its
    /// mappings.
    pub fn reset(&mut self, core: usize, card: usize) -> Result<(), PciError> {
        let region = Region { card, bar: Bar::Registers };
        let window = Window { region, caching: Caching::Uncached };
        self.config[card] = ConfigSpace::enabled(self.memory_bytes(card));
        let reset = registers::control::FUNCTION_RESET.to_le_bytes();
        self.at_once(|host, progress| host.store(core, window, registers::CONTROL as u64, &reset, progress));
        let done = (0..RESET_POLLS).any(|_| {
            let mut state = [0; 4];
            self.at_once(|host, progress| host.load(core, window, registers::STATE as u64, &mut state, progress));
            !matches!(u32::from_le_bytes(state), BOOTING | REPLAYING)
        });
        self.config[card] = ConfigSpace::new(self.memory_bytes(card));
        self.fabric.slots[card].bus_master = false;
        match done {
            _ if !self.fabric.is_powered() => Err(PciError::Gone),
            true => Ok(()),
            false => Err(PciError::System {
                what: "function-level reset: the card does not drain".into(),
                source: std::io::ErrorKind::TimedOut.into(),
            }),
        }
    }
}
