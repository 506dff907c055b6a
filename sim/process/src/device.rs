//! The card as its one client has it, and who lets it run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use nearpm_endpoint::bus::Bus;
use nearpm_endpoint::server::Host;
use nearpm_endpoint::{Device, HandedOn};
use nearpm_interface::geometry::PM_BAR;
use nix::errno::Errno;

use crate::engine::{Engine, WindowMode};

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
    /// The card's time passes with accesses alone.
    paused: AtomicBool,
    has_client: AtomicBool,
}

impl Shared {
    /// Shares a card.
    pub fn new(engine: Engine) -> Arc<Shared> {
        let (work, thawed) = Default::default();
        let [paused, has_client] = [(); 2].map(|()| AtomicBool::new(false));
        Arc::new(Shared { engine: Mutex::new(engine), work, link: Mutex::default(), thawed, paused, has_client })
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

    /// Lets the card's time stand still between accesses, or not.
    pub fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
        self.work.notify_one();
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
            if engine.is_idle() || self.paused.load(Ordering::Acquire) {
                drop(self.work.wait_timeout(engine, IDLE));
            } else {
                engine.advance(RUN_CYCLES);
                drop(engine);
                std::thread::yield_now();
            }
        }
    }
}

/// The card for one client, for as long as it is connected.
pub struct SimulatedDevice {
    shared: Arc<Shared>,
    /// Life of the card in which the client came.
    life: u64,
}

/// Serves the card to one client at a time.
pub struct OneClient(pub Arc<Shared>);

impl Host for OneClient {
    type Device = SimulatedDevice;

    fn name(&self) -> &'static str {
        "nearpm-sim"
    }

    fn admit(&self) -> Result<SimulatedDevice, Errno> {
        if self.0.has_client.swap(true, Ordering::AcqRel) {
            return Err(Errno::EBUSY);
        }
        let mut engine = self.0.engine();
        engine.bus.forget_host();
        Ok(SimulatedDevice { shared: self.0.clone(), life: engine.life })
    }
}

impl SimulatedDevice {
    /// The card, if it is there for this client: what was connected before a power cut stays dead.
    fn with_card<R>(&self, f: impl FnOnce(&mut Engine) -> R) -> Option<R> {
        let link = self.shared.link();
        let mut engine = self.shared.engine();
        (!link.unplugged && engine.is_powered() && engine.life == self.life).then(|| f(&mut engine))
    }
}

impl Drop for SimulatedDevice {
    fn drop(&mut self) {
        self.with_bus(&mut Bus::forget_host);
        self.shared.has_client.store(false, Ordering::Release);
    }
}

impl Device for SimulatedDevice {
    fn bar_bytes(&self, bar: usize) -> u64 {
        self.shared.engine().bar_bytes(bar)
    }

    /// Where the window is mapped from depends on the image that is in force now.
    fn shared_bar(&self, bar: usize) -> Option<HandedOn> {
        let engine = self.shared.engine();
        if bar != PM_BAR || engine.mode() == WindowMode::Trapping {
            return None;
        }
        let (file, offset) = engine.window_file().ok()?;
        Some(HandedOn { file, offset, areas: engine.areas().to_vec() })
    }

    fn is_present(&mut self) -> bool {
        self.with_card(|_| ()).is_some()
    }

    fn load(&mut self, bar: usize, offset: u64, data: &mut [u8]) {
        self.with_card(|engine| engine.load(bar, offset, data));
    }

    fn store(&mut self, bar: usize, offset: u64, data: &[u8]) {
        self.with_card(|engine| engine.store(bar, offset, data));
    }

    fn reset(&mut self) -> bool {
        self.with_card(Engine::reset).is_some()
    }

    fn with_bus(&mut self, act: &mut dyn FnMut(&mut Bus)) {
        let mut engine = self.shared.engine();
        if engine.life == self.life {
            act(&mut engine.bus);
        }
    }
}
