//! Where the time of a simulated processor goes: a PCI function that notes what every access takes.

use std::cell::Cell;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nearpm_driver::pci::{Caching, DmaBuffer, Mapping, PciError, PciFunction, Work};
use nearpm_interface::geometry::PM_BAR;
use nearpm_sim::machine::{Function, Machine};

/// What an access is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Loads from the card's memory, hits and misses.
    Load,
    /// Stores to it.
    Store,
    /// Write-backs of lines, and drops.
    WriteBack,
    /// Fences.
    Fence,
    /// Commands that are posted.
    Post,
    /// Waits for the card: status lines, registers, completion records.
    Wait,
    /// Ordinary memory of the library, and checksums.
    Library,
    /// What the program computes, and the library's instructions.
    Compute,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 8] =
        [Kind::Load, Kind::Store, Kind::WriteBack, Kind::Fence, Kind::Post, Kind::Wait, Kind::Library, Kind::Compute];

    /// Name in results.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Load => "load",
            Kind::Store => "store",
            Kind::WriteBack => "write-back",
            Kind::Fence => "fence",
            Kind::Post => "post",
            Kind::Wait => "wait",
            Kind::Library => "library",
            Kind::Compute => "compute",
        }
    }
}

/// What was noted.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// Picoseconds of each kind, in the order of [`Kind::ALL`].
    pub ps: [u64; Kind::ALL.len()],
    /// Spans of waits, the earliest first; those of several cores that overlap are one.
    pub waits: Vec<(u64, u64)>,
}

impl Noted {
    /// Picoseconds of a kind.
    pub fn of(&self, kind: Kind) -> u64 {
        self.ps[kind as usize]
    }
}

thread_local! {
    static IDLE_WAITS_PS: Cell<u64> = const { Cell::new(0) };
}

/// A meter, shared by all cards of a computer.
pub struct Meter {
    machine: Machine,
    idle_load_ps: u64,
    noted: Mutex<Noted>,
}

impl Meter {
    /// For a machine, of which a load from an idle card takes so long.
    pub fn new(machine: Machine, idle_load_ps: u64) -> Arc<Meter> {
        Arc::new(Meter { machine, idle_load_ps, noted: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs an access and notes what it takes.
    pub fn note<T>(&self, kind: Kind, access: impl FnOnce() -> T) -> T {
        let start = self.machine.now_ps();
        let result = access();
        let end = self.machine.now_ps();
        let mut noted = self.lock();
        noted.ps[kind as usize] += end - start;
        if kind == Kind::Wait && end > start {
            IDLE_WAITS_PS.set(IDLE_WAITS_PS.get() + (end - start).min(self.idle_load_ps));
            noted.waits.push((start, end));
        }
        result
    }

    /// Time of waits of this thread since it began, each for no longer than a load from an idle
    /// card takes.
    pub fn idle_waits_ps(&self) -> u64 {
        IDLE_WAITS_PS.get()
    }

    /// What was noted since the last call, with the spans in which some core waited.
    pub fn take(&self) -> Noted {
        let mut noted = std::mem::take(&mut *self.lock());
        noted.waits.sort_unstable();
        noted.waits.dedup_by(|next, before| {
            let meets = next.0 <= before.1;
            if meets {
                before.1 = before.1.max(next.1);
            }
            meets
        });
        noted
    }
}

/// A function with a meter.
pub struct Metered {
    function: Function,
    meter: Arc<Meter>,
    /// What the system grants who asks for a cached window on the card's memory.
    window: Caching,
}

impl Metered {
    /// The function of a card.
    pub fn new(function: Function, meter: Arc<Meter>, window: Caching) -> Metered {
        Metered { function, meter, window }
    }
}

struct View {
    inner: Box<dyn Mapping>,
    meter: Arc<Meter>,
    memory: bool,
}

impl View {
    fn kind(&self, of_memory: Kind, else_kind: Kind) -> Kind {
        if self.memory { of_memory } else { else_kind }
    }
}

impl Mapping for View {
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
    fn load(&self, offset: u64, data: &mut [u8]) {
        self.meter.note(self.kind(Kind::Load, Kind::Wait), || self.inner.load(offset, data));
    }
    fn store(&self, offset: u64, data: &[u8]) {
        self.meter.note(self.kind(Kind::Store, Kind::Post), || self.inner.store(offset, data));
    }
    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        self.meter.note(self.kind(Kind::Store, Kind::Post), || self.inner.store_line(offset, line));
    }
    fn write_back(&self, offset: u64, bytes: u64) {
        self.meter.note(Kind::WriteBack, || self.inner.write_back(offset, bytes));
    }
    fn invalidate(&self, offset: u64, bytes: u64) {
        self.meter.note(Kind::WriteBack, || self.inner.invalidate(offset, bytes));
    }
    fn fence(&self) {
        self.meter.note(Kind::Fence, || self.inner.fence());
    }
    fn prefetch(&self, offset: u64, bytes: u64) {
        self.meter.note(self.kind(Kind::Load, Kind::Wait), || self.inner.prefetch(offset, bytes));
    }
    fn charge(&self, work: Work) {
        self.meter.note(Kind::Library, || self.inner.charge(work));
    }
}

struct Records {
    inner: Box<dyn DmaBuffer>,
    meter: Arc<Meter>,
}

impl DmaBuffer for Records {
    fn bus_address(&self) -> u64 {
        self.inner.bus_address()
    }
    fn bytes(&self) -> usize {
        self.inner.bytes()
    }
    fn load(&self, offset: usize, data: &mut [u8]) {
        self.meter.note(Kind::Wait, || self.inner.load(offset, data));
    }
}

impl PciFunction for Metered {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.function.config_read(offset, data)
    }
    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        self.function.config_write(offset, data)
    }
    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.function.bar_bytes(bar)
    }
    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let is_cached = bar == PM_BAR && caching == Caching::WriteBack;
        let inner = self.function.map(bar, range, if is_cached { self.window } else { caching })?;
        Ok(Box::new(View { inner, meter: self.meter.clone(), memory: bar == PM_BAR }))
    }
    fn interrupt_vectors(&self) -> usize {
        self.function.interrupt_vectors()
    }
    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        self.meter.note(Kind::Wait, || self.function.wait_interrupt(vector, timeout_ns))
    }
    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let inner = self.function.allocate_dma(bytes)?;
        Ok(Box::new(Records { inner, meter: self.meter.clone() }))
    }
    fn reset(&self) -> Result<(), PciError> {
        self.function.reset()
    }
    fn host_boot(&self) -> Option<u64> {
        self.function.host_boot()
    }
    fn now_ns(&self) -> u64 {
        self.function.now_ns()
    }
    fn relax(&self, ns: u64) {
        self.meter.note(Kind::Wait, || self.function.relax(ns));
    }
    fn contended(&self) -> bool {
        self.meter.note(Kind::Post, || self.function.contended())
    }
}
