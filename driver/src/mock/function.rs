//! The card as a PCI function.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_BAR_BYTES, PM_BAR, REGISTER_BAR, REGISTER_BAR_BYTES};

use super::window::{Buffer, Window};
use super::{MockCard, State};
use crate::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction, check_range, check_vector};

/// In how much time at most something happens on the card.
const STEP_NS: u64 = 1000;

impl PciFunction for MockCard {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        let state = self.lock();
        if state.gone {
            data.fill(0xff);
        } else {
            data.copy_from_slice(&state.config[offset as usize..][..data.len()]);
        }
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.lock().config[offset as usize..][..data.len()].copy_from_slice(data);
        Ok(())
    }

    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        match bar {
            REGISTER_BAR => Some(REGISTER_BAR_BYTES as u64),
            COMMAND_BAR => Some(COMMAND_BAR_BYTES as u64),
            PM_BAR => Some(self.lock().options.pm_bytes as u64),
            _ => None,
        }
    }

    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let bytes = self.bar_bytes(bar).ok_or(PciError::NoBar { bar })?;
        check_range(bar, &range, bytes)?;
        Ok(Box::new(Window { card: self.clone(), bar, range, caching }))
    }

    fn interrupt_vectors(&self) -> usize {
        self.lock().options.vectors
    }

    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        check_vector(vector, self.interrupt_vectors())?;
        let mut state = self.lock();
        let end_ns = state.now_ns + timeout_ns;
        loop {
            if std::mem::take(&mut state.signalled[vector]) {
                return Ok(true);
            }
            if state.now_ns >= end_ns {
                return Ok(false);
            }
            state.pass(STEP_NS);
        }
    }

    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let mut state = self.lock();
        let address = 0x1_0000_0000 + state.dma.len() as u64 * 0x10_0000;
        let buffer = Arc::new(Mutex::new(vec![0; bytes]));
        state.dma.insert(address, buffer.clone());
        Ok(Box::new(Buffer { address, bytes: buffer }))
    }

    fn reset(&self) -> Result<(), PciError> {
        self.lock().reset();
        Ok(())
    }

    /// One boot, as long as anybody knows.
    fn host_boot(&self) -> Option<u64> {
        None
    }

    fn now_ns(&self) -> u64 {
        self.lock().now_ns
    }

    fn relax(&self, ns: u64) {
        let mut state = self.lock();
        state.polls += 1;
        state.pass(ns);
    }

    fn contended(&self) -> bool {
        false
    }
}

impl State {
    /// Lets time pass, in which something happens.
    fn pass(&mut self, ns: u64) {
        self.now_ns += ns;
        if !self.gone {
            self.deliver_one();
            self.execute_one();
        }
    }
}
