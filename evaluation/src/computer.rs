//! A simulated computer of a profile, with its cards open and known to the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use nearpm::{Caching, cards};
use nearpm_driver::{Card, CardOptions};
use nearpm_interface::geometry::POOLS_BASE;
use nearpm_sim::core::Medium;
use nearpm_sim::host::Parameters;
use nearpm_sim::machine::Machine;
use nearpm_sim::model::Busy;
use nearpm_sim::profile::Profile;

use crate::case::Case;
use crate::device::{self, Cards, Device, MakeRtl};
use crate::meter::{Kind, Meter, Metered};

/// Media end at multiples of this.
const GRAIN: u64 = 2 << 20;
/// Names of cards differ in the whole process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The computer.
pub struct Computer {
    pub machine: Machine,
    pub meter: Arc<Meter>,
    pub cards: Vec<Arc<Card>>,
    /// What makes its cards, each time the power comes.
    pub power: Cards,
    /// When the cards work on commands, all together, where they say so.
    busy: Option<Arc<Busy>>,
    names: Vec<String>,
    /// No other computer of the process has it.
    number: u64,
    period_ps: u64,
    /// How the processor maps the cards' memory.
    window: Caching,
}

impl Computer {
    /// A computer with so many transaction-level cards of the profile, each with room for `bytes`
    /// of pools. The host is the profile's, or like it.
    pub fn new(profile: &Profile, devices: usize, units: usize, host: Parameters, bytes: u64) -> Result<Computer> {
        let busy = Arc::new(Busy::default());
        let power = device::model(profile, units, &busy);
        Computer::with(profile, devices, power, Some(busy), host, bytes)
    }

    /// A computer with the cards of a case.
    pub fn of(
        case: &Case,
        profile: &Profile,
        rtl: Option<&MakeRtl<'_>>,
        host: Parameters,
        bytes: u64,
    ) -> Result<Computer> {
        match case.device {
            Device::Model => Computer::new(profile, case.devices, case.units, host, bytes),
            Device::Rtl => {
                let power = device::rtl(profile, case.units, rtl)?;
                Computer::with(profile, case.devices, power, None, host, bytes)
            }
        }
    }

    fn with(
        profile: &Profile,
        devices: usize,
        power: Cards,
        busy: Option<Arc<Busy>>,
        host: Parameters,
        bytes: u64,
    ) -> Result<Computer> {
        let medium = Medium::blank(((POOLS_BASE + bytes).next_multiple_of(GRAIN) + GRAIN) as usize);
        let machine = Machine::with_cards(host, profile.peers(), &*power, vec![medium; devices]);
        let meter = Meter::new(machine.clone(), host.load_miss_ps);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut computer = Computer {
            period_ps: 1_000_000 / profile.device.clock_mhz.value as u64,
            machine,
            meter,
            cards: Vec::new(),
            power,
            busy,
            names: (0..devices).map(|device| format!("evaluation-{number}-{device}")).collect(),
            number,
            window: profile.window(),
        };
        computer.open_cards()?;
        Ok(computer)
    }

    /// Opens the cards and makes them known to the library, in the place of those of before a power
    /// cut.
    pub fn open_cards(&mut self) -> Result<()> {
        self.cards.clear();
        for (device, name) in self.names.iter().enumerate() {
            let firmware = Some(nearpm_firmware::standard().bytes().to_vec());
            let function = Metered::new(self.machine.function_of(device), self.meter.clone(), self.window);
            let card = Card::open(Arc::new(function), CardOptions { firmware, ..CardOptions::default() });
            let card = Arc::new(card.context("a simulated card does not open")?);
            cards::unregister(name);
            cards::register(name, card.clone());
            self.cards.push(card);
        }
        Ok(())
    }

    /// Charges this thread's core with instructions.
    pub fn compute(&self, ns: f64) {
        self.meter.note(Kind::Compute, || self.machine.compute(ns as u64));
    }

    /// Charges this thread's core with ordinary memory that is not in its cache.
    pub fn miss(&self, ns: f64) {
        self.meter.note(Kind::Library, || self.machine.compute(ns as u64));
    }

    /// Where a pool with a name lies: on all cards.
    pub fn location(&self, pool: &str) -> String {
        format!("card:{}/{pool}", self.names.join("+"))
    }

    /// An identifier for a pool that no pool of another computer of the process has: cards wait for
    /// each other only where the identifier of the pool is the only one of its kind.
    pub fn pool_id(&self, pool: u32) -> u32 {
        1 + pool + (self.number as u32 & 0x00ff_ffff) * 64
    }

    /// Spans in which cards worked on commands since the last call, in picoseconds, the earliest
    /// first. (Cards that work at once make one span together, from the first that begins to the
    /// last that ends.) `None` of cards that do not say when they work.
    pub fn take_busy(&self) -> Option<Vec<(u64, u64)>> {
        let spans = self.busy.as_ref()?.take();
        Some(spans.into_iter().map(|(from, to)| (from * self.period_ps, to * self.period_ps)).collect())
    }
}

impl Drop for Computer {
    fn drop(&mut self) {
        for name in &self.names {
            cards::unregister(name);
        }
    }
}
