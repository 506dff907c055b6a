//! What a driver sees of a card: its PCI function, mappings of its BARs, and host memory that it
//! may write.

use std::ops::Range;

use nearpm_driver::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction, Work, check_range};
use nearpm_interface::geometry::{COMMAND_BAR, COMMAND_BAR_BYTES, PM_BAR, REGISTER_BAR, REGISTER_BAR_BYTES};

use super::Shared;
use crate::host::{Bar, Blocked, Host, Progress, Region, Window};

/// The PCI function of one of the machine's cards.
#[derive(Clone)]
pub struct Function {
    pub(super) shared: Shared,
    pub(super) card: usize,
}

impl PciFunction for Function {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.shared.access(|host, core| host.read_config(core, self.card, offset, data));
        Ok(())
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.shared.access(|host, core| host.write_config(core, self.card, offset, data))
    }

    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.shared.look(|host, _| bar_of(host, self.card, bar).map(|(_, bytes)| bytes))
    }

    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let (found, generation) = self.shared.look(|host, _| (bar_of(host, self.card, bar), host.generation));
        let (which, bytes) = found.ok_or(PciError::NoBar { bar })?;
        check_range(bar, &range, bytes)?;
        if caching == Caching::WriteBack && which != Bar::Memory {
            return Err(PciError::Unsupported { what: "a write-back mapping of registers or command pages" });
        }
        let window = Window { region: Region { card: self.card, bar: which }, caching };
        Ok(Box::new(View { shared: self.shared.clone(), window, range, generation }))
    }

    /// One: it fires when the card has written to host memory.
    fn interrupt_vectors(&self) -> usize {
        1
    }

    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        if vector != 0 {
            return Err(PciError::Unsupported { what: "an interrupt vector other than 0" });
        }
        self.shared.access(|host, core| {
            let fired = host.wait_interrupt(core, self.card, timeout_ns.saturating_mul(1000));
            if host.fabric.is_powered() { Ok(fired) } else { Err(PciError::Gone) }
        })
    }

    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        self.shared.access(|host, core| {
            if !host.begin(core) {
                return Err(PciError::Gone);
            }
            let bus = host.fabric.memory.allocate(bytes);
            let shared = self.shared.clone();
            Ok(Box::new(Buffer { shared, card: self.card, bus, bytes }) as Box<dyn DmaBuffer>)
        })
    }

    fn reset(&self) -> Result<(), PciError> {
        self.shared.access(|host, core| host.reset(core, self.card))
    }

    fn host_boot(&self) -> Option<u64> {
        Some(self.shared.look(|host, _| host.generation.into()))
    }

    fn now_ns(&self) -> u64 {
        self.shared.look(|host, core| host.now_ps(core) / 1000)
    }

    fn relax(&self, ns: u64) {
        self.shared.access(|host, core| {
            host.pass(core, ns * 1000);
            host.begin(core);
            host.catch_up(core);
        });
    }

    fn contended(&self) -> bool {
        let takes_turns = self.shared.takes_turns();
        if takes_turns {
            self.shared.access(|host, core| {
                host.pass(core, host.fabric.parameters.lock_ps);
                host.begin(core);
            });
        }
        takes_turns
    }
}

fn bar_of(host: &Host, card: usize, bar: usize) -> Option<(Bar, u64)> {
    match bar {
        _ if host.fabric.is_powered() && !host.fabric.slots[card].is_there => None,
        REGISTER_BAR => Some((Bar::Registers, REGISTER_BAR_BYTES as u64)),
        COMMAND_BAR => Some((Bar::Commands, COMMAND_BAR_BYTES as u64)),
        PM_BAR => Some((Bar::Memory, host.memory_bytes(card))),
        _ => None,
    }
}

struct View {
    shared: Shared,
    window: Window,
    range: Range<u64>,
    /// Power-up in which it was made.
    generation: u32,
}

impl View {
    /// Offset in the BAR of a range of the window.
    ///
    /// # Panics
    /// If the range leaves the window, as with a slice.
    fn offset(&self, offset: u64, bytes: u64) -> u64 {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        assert!(inside, "{bytes} bytes at {offset:#x} leave a window of {:#x} bytes", self.bytes());
        self.range.start + offset
    }

    /// An access, unless the mapping died with an earlier power cut.
    fn access(&self, f: impl FnOnce(&mut Host, usize)) -> bool {
        self.shared.access(|host, core| {
            let alive = host.generation == self.generation;
            if alive {
                f(host, core);
            }
            alive
        })
    }

    /// Writes lines back, and drops them where told.
    fn flush(&self, range: Range<u64>, drop: bool) {
        self.access_resumable(|host, core, progress| host.write_back(core, self.window, range.clone(), drop, progress));
    }

    /// The same for one that may have to wait for the card.
    fn access_resumable(&self, mut step: impl FnMut(&mut Host, usize, &mut Progress) -> Result<(), Blocked>) -> bool {
        let mut progress = Progress::default();
        self.shared.access_resumable(|host, core| {
            let alive = host.generation == self.generation;
            if alive {
                step(host, core, &mut progress)?;
            }
            Ok(alive)
        })
    }
}

impl Mapping for View {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let at = self.offset(offset, data.len() as u64);
        let alive = self.access_resumable(|host, core, progress| host.load(core, self.window, at, data, progress));
        if !alive {
            data.fill(0xff);
        }
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let at = self.offset(offset, data.len() as u64);
        self.access_resumable(|host, core, progress| host.store(core, self.window, at, data, progress));
    }

    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        let at = self.offset(offset, 64);
        self.access(|host, core| host.store_line(core, self.window, at, line));
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        let at = self.offset(offset, bytes);
        self.flush(at..at + bytes, false);
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        let at = self.offset(offset, bytes);
        self.flush(at..at + bytes, true);
    }

    fn fence(&self) {
        self.access(|host, core| host.fence(core));
    }

    fn prefetch(&self, offset: u64, bytes: u64) {
        let at = self.offset(offset, bytes);
        self.access_resumable(|host, core, progress| host.fetch_ahead(core, self.window, at..at + bytes, progress));
    }

    fn charge(&self, work: Work) {
        self.shared.look(|host, core| host.charge(core, work));
    }
}

struct Buffer {
    shared: Shared,
    card: usize,
    bus: u64,
    bytes: usize,
}

impl DmaBuffer for Buffer {
    fn bus_address(&self) -> u64 {
        self.bus
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn load(&self, offset: usize, data: &mut [u8]) {
        assert!(offset + data.len() <= self.bytes, "{} bytes at {offset:#x} leave the buffer", data.len());
        self.shared.access(|host, core| host.load_host(core, self.card, self.bus, offset, data));
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.shared.look(|host, _| host.fabric.memory.free(self.bus));
    }
}
