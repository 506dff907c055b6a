//! The GPU: its memories, and launches on it.

use std::sync::Arc;

use crate::code::Variables;
use crate::crash::{self, Made};
use crate::machine::Running;
use crate::memory::{Kind, Memory, MemoryError, PmRange};
use crate::start::{Loaded, start};
use crate::{
    Choice, Crash, CrashError, Ended, Entry, Images, Launch, LaunchError, Module, Outcome, PendingStore, Run, Stop,
    spare,
};

/// The size of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of volatile device memory (HBM) that may be allocated.
    pub device_memory: u64,
    /// Blocks that run at the same time; a block starts when an earlier one has ended. Blocks that
    /// wait for blocks that cannot start do not end, as on a card.
    pub resident_blocks: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { device_memory: 4 << 30, resident_blocks: 132 }
    }
}

/// An interpreted GPU with volatile device memory, and persistent memory that survives
/// [`Gpu::crash`]. A clone is an independent GPU in the same state, a stopped launch included.
#[derive(Clone, Debug)]
pub struct Gpu {
    config: Config,
    memory: Memory,
    loaded: Vec<Loaded>,
    running: Option<Box<Running>>,
    launches: u64,
}

impl Gpu {
    /// A GPU without any allocation.
    pub fn new(config: Config) -> Self {
        Self { config, memory: Memory::new(config.device_memory), loaded: Vec::new(), running: None, launches: 0 }
    }

    /// Allocates volatile device memory, zeroed, aligned to 256 bytes. Gone after a crash.
    ///
    /// # Errors
    /// [`MemoryError::Full`] beyond [`Config::device_memory`].
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        self.memory.allocate(bytes, Kind::Device)
    }

    /// Gives an allocation back. Later accesses to it are faults.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`], [`MemoryError::Busy`].
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        self.idle()?;
        self.memory.free(address)
    }

    /// Maps persistent memory that holds `image`. It stays mapped, at the same address, over
    /// crashes.
    pub fn map_persistent(&mut self, image: Vec<u8>) -> PmRange {
        self.memory.map(image)
    }

    /// What threads (and the CPU) see in a PM range: every store done, persisted or not. Empty for
    /// a range that is not of this GPU.
    pub fn persistent(&self, range: &PmRange) -> &[u8] {
        self.memory.slice(range.address, range.len).unwrap_or_default()
    }

    /// The same for the CPU to write while no kernel runs. What the CPU writes counts as persisted.
    ///
    /// # Errors
    /// [`MemoryError::Busy`] while a launch is stopped, [`MemoryError::NotMapped`] for a range of
    /// another GPU.
    pub fn persistent_mut(&mut self, range: &PmRange) -> Result<&mut [u8], MemoryError> {
        self.idle()?;
        let PmRange { address, len } = *range;
        if !self.memory.is_persistent(address) {
            return Err(MemoryError::NotMapped { address, bytes: len });
        }
        self.memory.slice_mut(address, len).ok_or(MemoryError::NotMapped { address, bytes: len })
    }

    /// Copies from device or persistent memory to the CPU, as a DMA does.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`].
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let bytes = into.len() as u64;
        into.copy_from_slice(self.memory.slice(address, bytes).ok_or(MemoryError::NotMapped { address, bytes })?);
        Ok(())
    }

    /// Copies to device or persistent memory from the CPU, as a DMA does. What goes to PM counts as
    /// persisted.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`], [`MemoryError::Busy`].
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        self.idle()?;
        let bytes = from.len() as u64;
        let to = self.memory.slice_mut(address, bytes).ok_or(MemoryError::NotMapped { address, bytes })?;
        to.copy_from_slice(from);
        Ok(())
    }

    /// Address of a module's `.global` variable, which is made and initialised when first asked for
    /// or launched, and again after a crash.
    ///
    /// # Errors
    /// [`MemoryError::NoSymbol`], [`MemoryError::Full`].
    pub fn symbol(&mut self, module: &Module, name: &str) -> Result<u64, MemoryError> {
        let none = || MemoryError::NoSymbol { name: name.to_string() };
        let variables = module.variables().ok_or_else(none)?.clone();
        let (_, base, offset, _) = variables.names.iter().find(|(known, ..)| known == name).ok_or_else(none)?;
        Ok(self.load(&variables)?.base(*base) + offset)
    }

    /// Runs a kernel to its end, or to [`Run::stop_at`]. A launch that is stopped when the next
    /// begins is abandoned: its threads are gone and all that they stored persists.
    ///
    /// # Errors
    /// Arguments or a shape that do not fit, or the kernel's fault, after which the launch counts
    /// as stopped there: it may be crashed, not resumed.
    pub fn launch(&mut self, entry: &Entry, launch: &Launch, run: &mut Run) -> Result<Outcome, LaunchError> {
        let kernel = &entry.code.name;
        self.running = None;
        let loaded = self
            .load(&entry.code.variables)
            .map_err(|error| LaunchError::Memory { kernel: kernel.clone(), reason: error.to_string() })?;
        let number = self.launches + 1;
        let running = start(&entry.code, launch, run, &loaded, self.config.resident_blocks, number)?;
        self.launches = number;
        self.running = Some(Box::new(running));
        self.go_on(run)
    }

    /// Goes on with a stopped launch. `run`'s schedule and persistence are those it was launched
    /// with; only `stop_at`, `budget` and `trace` are looked at.
    ///
    /// # Errors
    /// [`LaunchError::NotStopped`], or the kernel's fault.
    pub fn resume(&mut self, run: &mut Run) -> Result<Outcome, LaunchError> {
        match &self.running {
            Some(running)
                if running.persistence == crate::Persistence::Off && matches!(run.stop_at, Stop::PersistEvent(_)) =>
            {
                let reason = "stopping at a persist event needs Persistence::Counted or Persistence::Tracked".into();
                Err(LaunchError::Shape { kernel: running.shape.code.name.clone(), reason })
            }
            Some(running) if !running.faulted => self.go_on(run),
            _ => Err(LaunchError::NotStopped),
        }
    }

    /// The stores that a crash now may lose, oldest first.
    ///
    /// # Errors
    /// [`CrashError::NotTracked`] while a launch is stopped that does not track them.
    pub fn pending(&self) -> Result<Vec<PendingStore>, CrashError> {
        crash::pending(self.running.as_deref())
    }

    /// The power fails: device memory and all threads are gone, each PM range holds what had
    /// persisted and what of the pending stores `choice` lets through.
    ///
    /// # Errors
    /// [`CrashError::NotTracked`] while a launch is stopped that does not track them.
    pub fn crash(&mut self, choice: Choice) -> Result<Crash, CrashError> {
        let made = crash::make_choice(&self.memory, self.running.as_deref(), choice)?;
        Ok(self.power_fails(made, &format!("{choice:?}")))
    }

    /// As [`Gpu::crash`], with the stores that reached PM chosen by the caller.
    ///
    /// # Errors
    /// As [`Gpu::crash`].
    pub fn crash_with(&mut self, reached: impl FnMut(&PendingStore) -> bool) -> Result<Crash, CrashError> {
        let made = crash::make_with(&self.memory, self.running.as_deref(), reached)?;
        Ok(self.power_fails(made, "chosen by the caller"))
    }

    /// What [`Gpu::crash`] would leave in each PM range, in the order of their mapping; the GPU
    /// itself goes on.
    ///
    /// # Errors
    /// As [`Gpu::crash`].
    pub fn crash_image(&self, choice: Choice) -> Result<Vec<Vec<u8>>, CrashError> {
        Ok(crash::make_choice(&self.memory, self.running.as_deref(), choice)?.images)
    }

    /// All distinct images that a crash now may leave.
    ///
    /// # Errors
    /// [`CrashError::TooMany`] beyond `limit`, [`CrashError::NotTracked`].
    pub fn images(&self, limit: u128) -> Result<Images, CrashError> {
        crash::images(&self.memory, self.running.as_deref(), limit)
    }

    /// Begins a launch that the caller drives, one warp instruction at a time. What it stores
    /// counts as persisted: a caller that keeps time keeps what has persisted, too.
    ///
    /// # Errors
    /// Arguments or a shape that do not fit.
    pub fn begin(&mut self, entry: &Entry, launch: &Launch) -> Result<crate::Stepped, LaunchError> {
        let kernel = &entry.code.name;
        self.running = None;
        let loaded = self
            .load(&entry.code.variables)
            .map_err(|error| LaunchError::Memory { kernel: kernel.clone(), reason: error.to_string() })?;
        self.launches += 1;
        let resident = self.config.resident_blocks;
        let running = start(&entry.code, launch, &Run::default(), &loaded, resident, self.launches)?;
        Ok(crate::Stepped::new(running))
    }

    /// The launch under way, and the memory that it works on.
    pub(crate) fn under_way(&mut self) -> (&mut Option<Box<Running>>, &mut Memory) {
        (&mut self.running, &mut self.memory)
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn memory_mut(&mut self) -> &mut Memory {
        &mut self.memory
    }

    fn idle(&self) -> Result<(), MemoryError> {
        if self.running.is_some() { Err(MemoryError::Busy) } else { Ok(()) }
    }

    /// The module's variables, loaded when they are not yet.
    fn load(&mut self, variables: &Arc<Variables>) -> Result<Loaded, MemoryError> {
        if let Some(loaded) = self.loaded.iter().find(|loaded| Arc::ptr_eq(&loaded.variables, variables)) {
            return Ok(loaded.clone());
        }
        let loaded = Loaded::new(&mut self.memory, variables)?;
        self.loaded.push(loaded.clone());
        Ok(loaded)
    }

    /// The launch is over; the memory of its blocks is kept for others.
    fn end_launch(&mut self) {
        if let Some(running) = self.running.take() {
            running.blocks.into_iter().for_each(spare::keep);
        }
    }

    fn go_on(&mut self, run: &mut Run) -> Result<Outcome, LaunchError> {
        let Some(running) = &mut self.running else { return Err(LaunchError::NotStopped) };
        let ended = crate::drive::drive(running, &mut self.memory, run);
        if matches!(running.picker.schedule, crate::Schedule::Replay(_)) {
            run.schedule = running.picker.schedule.clone();
        }
        let counts = running.counts;
        match ended {
            Ok(ended) => {
                if ended == Ended::Done {
                    self.end_launch();
                }
                Ok(Outcome { ended, counts })
            }
            Err(fault) => {
                running.faulted = true;
                Err(LaunchError::Fault(fault))
            }
        }
    }

    fn power_fails(&mut self, made: Made, choice: &str) -> Crash {
        let (step, launch) = match &self.running {
            Some(running) => (
                running.counts.warp_instructions,
                format!("kernel {}, {}", running.shape.code.name, running.picker.schedule),
            ),
            None => (0, "no kernel".to_string()),
        };
        self.end_launch();
        self.loaded.clear();
        self.memory.lose_device_memory();
        self.memory.restore(made.images);
        let replay = format!("{launch}, step {step}, stores that persisted: {choice}");
        Crash { step, pending: made.pending, persisted: made.persisted, replay }
    }
}
