//! The PCI function that vfio-user serves: routes accesses to configuration space, MSI-X table and card.

use std::fs::File;
use std::io::{Error, ErrorKind};
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use vfio_bindings::bindings::vfio::{
    VFIO_IRQ_SET_ACTION_TRIGGER, VFIO_IRQ_SET_DATA_EVENTFD, VFIO_PCI_CONFIG_REGION_INDEX, VFIO_PCI_MSIX_IRQ_INDEX,
};
use vfio_user::{DmaMapFlags, DmaUnmapFlags, ServerBackend};

use crate::engine::Engine;
use nearpm_interface::geometry::{MSIX_BAR, MSIX_BAR_BYTES, PM_BAR};
use nearpm_sim::host::config_space::{ConfigSpace, Effect};

/// Cycles that the card runs by itself under one hold of the lock.
const RUN_CYCLES: u64 = 512;
/// How long an idle card waits before it is looked at again, in case somebody forgot to say so.
const IDLE: Duration = Duration::from_millis(50);

/// What test benches do to the link, beside the card.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// Nothing is answered.
    pub frozen: bool,
    /// The card was pulled out.
    pub unplugged: bool,
}

/// The card, shared by those who serve it.
pub struct Shared {
    engine: Mutex<Engine>,
    work: Condvar,
    link: Mutex<Link>,
    thawed: Condvar,
}

impl Shared {
    /// Shares a card.
    pub fn new(engine: Engine) -> Arc<Shared> {
        let (work, thawed) = Default::default();
        Arc::new(Shared { engine: Mutex::new(engine), work, link: Mutex::default(), thawed })
    }

    /// The card; who has it lets it run on afterwards.
    pub fn engine(&self) -> MutexGuard<'_, Engine> {
        // A panic in an access is a simulator's bug, and was printed.
        let engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
        self.work.notify_one();
        engine
    }

    /// Changes the link.
    pub fn set_link(&self, change: impl FnOnce(&mut Link)) {
        change(&mut self.link.lock().unwrap_or_else(PoisonError::into_inner));
        self.thawed.notify_all();
    }

    /// Waits while nothing is answered; gives the link.
    fn link(&self) -> Link {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner);
        *self.thawed.wait_while(link, |link| link.frozen).unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the card work while nobody accesses it. Never returns.
    pub fn run(&self) -> ! {
        loop {
            let mut engine = self.engine.lock().unwrap_or_else(PoisonError::into_inner);
            if engine.is_idle() {
                drop(self.work.wait_timeout(engine, IDLE));
            } else {
                engine.advance(RUN_CYCLES);
                drop(engine);
                std::thread::yield_now();
            }
        }
    }
}

/// The function as one client sees it, for as long as it is connected.
pub struct Function {
    shared: Arc<Shared>,
    config: ConfigSpace,
    msix: Vec<u8>,
    /// Life of the card in which the client came.
    life: u64,
}

impl Function {
    /// For a client that comes now.
    pub fn new(shared: Arc<Shared>) -> Function {
        let mut engine = shared.engine();
        engine.bus.forget_host();
        let (life, memory) = (engine.life, engine.bar_bytes(PM_BAR));
        drop(engine);
        Function {
            shared,
            config: ConfigSpace::with_vectors(memory, crate::bus::VECTORS as u16),
            msix: vec![0; MSIX_BAR_BYTES],
            life,
        }
    }

    /// The card, if it is there for this client: what was connected before a power cut stays dead.
    fn with_card<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        let link = self.shared.link();
        let mut engine = self.shared.engine();
        (!link.unplugged && engine.is_powered() && engine.life == self.life).then(|| f(&mut engine))
    }

    fn reset_function(&mut self) {
        let memory = self.with_card(|engine| {
            engine.reset();
            engine.bar_bytes(PM_BAR)
        });
        if let Some(memory) = memory {
            self.config = ConfigSpace::with_vectors(memory, crate::bus::VECTORS as u16);
            self.msix.fill(0);
        }
    }

    fn write_config(&mut self, offset: u64, data: &[u8]) {
        if self.with_card(|_| ()).is_none() {
            return;
        }
        if self.config.write(offset, data) == Effect::Reset {
            return self.reset_function();
        }
        let master = self.config.bus_master();
        self.with_card(|engine| engine.bus.master = master);
    }

    /// The part of the MSI-X table that an access reaches.
    fn msix(&mut self, offset: u64, bytes: usize) -> Option<&mut [u8]> {
        let start = usize::try_from(offset).ok()?;
        self.msix.get_mut(start..start.checked_add(bytes)?)
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        let mut engine = self.shared.engine();
        if engine.life == self.life {
            engine.bus.forget_host();
        }
    }
}

/// Splits off the two regions that are no part of the card.
fn kind(region: u32) -> ControlFlow<usize, u32> {
    match region {
        VFIO_PCI_CONFIG_REGION_INDEX => ControlFlow::Continue(region),
        bar => ControlFlow::Break(bar as usize),
    }
}

impl ServerBackend for Function {
    fn region_read(&mut self, region: u32, offset: u64, data: &mut [u8]) -> Result<(), Error> {
        data.fill(0xff);
        match kind(region) {
            ControlFlow::Continue(_) => {
                if self.with_card(|_| ()).is_some() {
                    self.config.read(offset, data);
                }
            }
            ControlFlow::Break(MSIX_BAR) => {
                if self.with_card(|_| ()).is_some()
                    && let Some(table) = self.msix(offset, data.len())
                {
                    data.copy_from_slice(table);
                }
            }
            ControlFlow::Break(bar) if self.config.memory_enabled() => {
                self.with_card(|engine| engine.load(bar, offset, data));
            }
            ControlFlow::Break(_) => drop(self.shared.link()),
        }
        Ok(())
    }

    fn region_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<(), Error> {
        match kind(region) {
            ControlFlow::Continue(_) => self.write_config(offset, data),
            ControlFlow::Break(MSIX_BAR) => {
                if self.with_card(|_| ()).is_some()
                    && let Some(table) = self.msix(offset, data.len())
                {
                    table.copy_from_slice(data);
                }
            }
            ControlFlow::Break(bar) if self.config.memory_enabled() => {
                self.with_card(|engine| engine.store(bar, offset, data));
            }
            ControlFlow::Break(_) => drop(self.shared.link()),
        }
        Ok(())
    }

    fn dma_map(&mut self, _: DmaMapFlags, offset: u64, address: u64, size: u64, fd: Option<File>) -> Result<(), Error> {
        // Memory without a descriptor could only be reached by messages, which the served library does not have.
        let Some(file) = fd else { return Ok(()) };
        self.shared.engine().bus.map(address, size, file, offset)
    }

    fn dma_unmap(&mut self, flags: DmaUnmapFlags, address: u64, size: u64) -> Result<(), Error> {
        let mut engine = self.shared.engine();
        match flags.contains(DmaUnmapFlags::UNMAP_ALL) {
            true => engine.bus.revoke(),
            false => engine.bus.unmap(address, size),
        }
        Ok(())
    }

    fn reset(&mut self) -> Result<(), Error> {
        self.reset_function();
        Ok(())
    }

    fn set_irqs(&mut self, index: u32, flags: u32, start: u32, count: u32, fds: Vec<File>) -> Result<(), Error> {
        if index != VFIO_PCI_MSIX_IRQ_INDEX || flags & VFIO_IRQ_SET_ACTION_TRIGGER == 0 {
            return Ok(());
        }
        let mut engine = self.shared.engine();
        if flags & VFIO_IRQ_SET_DATA_EVENTFD == 0 {
            // Without data and with a count of zero: all of them off.
            (0..crate::bus::VECTORS).filter(|_| count == 0).for_each(|vector| engine.bus.set_vector(vector, None));
            return Ok(());
        }
        if start as usize + fds.len() > crate::bus::VECTORS {
            return Err(ErrorKind::InvalidInput.into());
        }
        for (vector, event) in (start as usize..).zip(fds) {
            engine.bus.set_vector(vector, Some(event));
        }
        Ok(())
    }
}
