//! The card as a PCI function.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_BAR_BYTES, PM_BAR, REGISTER_BAR, REGISTER_BAR_BYTES};

use super::MockCard;
use super::window::{Buffer, Window};
use crate::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction, check_range};

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
        0
    }

    fn wait_interrupt(&self, _: usize, _: u64) -> Result<bool, PciError> {
        Err(PciError::Unsupported { what: "an interrupt" })
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
        state.now_ns += ns;
        if !state.gone {
            state.deliver_one();
            state.execute_one();
        }
    }
}
