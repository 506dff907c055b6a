//! The GPU: its memories, and launches on it.

use crate::{Choice, Crash, CrashError, Entry, Images, Launch, LaunchError, Module, Outcome, PendingStore, Run};

/// The size of the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bytes of volatile device memory (HBM) that may be allocated.
    pub device_memory: u64,
    /// Blocks that run at the same time; a block starts when an earlier one has ended. Blocks that wait for blocks
    /// that cannot start do not end, as on a card.
    pub resident_blocks: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self { device_memory: 4 << 30, resident_blocks: 132 }
    }
}

/// Persistent memory mapped into the GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmRange {
    /// Its address on the GPU, a multiple of 4096.
    pub address: u64,
    /// Its bytes.
    pub len: u64,
}

/// Memory that cannot be had, or an address that is not mapped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// The device memory is used up.
    #[error("{bytes} bytes of device memory were asked for, {free} of {total} are free")]
    Full { bytes: u64, free: u64, total: u64 },
    /// No allocation or PM range holds all of it.
    #[error("{bytes} bytes at {address:#x} are in no allocation or persistent range")]
    NotMapped { address: u64, bytes: u64 },
    /// The address is not the start of an allocation.
    #[error("{address:#x} is not the start of an allocation")]
    NotAllocated { address: u64 },
    /// The module has no variable of that name.
    #[error("the module has no variable {name}")]
    NoSymbol { name: String },
    /// A launch is stopped on the GPU; resume or crash it first.
    #[error("a launch is stopped on the GPU: resume it, abandon it or crash it first")]
    Busy,
}

/// An interpreted GPU with volatile device memory, and persistent memory that survives [`Gpu::crash`]. A clone is an
/// independent GPU in the same state, a stopped launch included.
#[derive(Clone, Debug)]
pub struct Gpu {
    config: Config,
}

impl Gpu {
    /// A GPU without any allocation.
    pub fn new(config: Config) -> Self {
        Self { config }
    }

    /// Allocates volatile device memory, zeroed, aligned to 256 bytes. Gone after a crash.
    ///
    /// # Errors
    /// [`MemoryError::Full`] beyond [`Config::device_memory`].
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, MemoryError> {
        let _ = (bytes, self.config);
        todo!()
    }

    /// Gives an allocation back. Later accesses to it are faults.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`], [`MemoryError::Busy`].
    pub fn free(&mut self, address: u64) -> Result<(), MemoryError> {
        let _ = address;
        todo!()
    }

    /// Maps persistent memory that holds `image`. It stays mapped, at the same address, over crashes.
    pub fn map_persistent(&mut self, image: Vec<u8>) -> PmRange {
        let _ = image;
        todo!()
    }

    /// What threads (and the CPU) see in a PM range: every store done, persisted or not.
    ///
    /// # Panics
    /// `range` is not of this GPU.
    pub fn persistent(&self, range: &PmRange) -> &[u8] {
        let _ = range;
        todo!()
    }

    /// The same for the CPU to write while no kernel runs. What the CPU writes counts as persisted.
    ///
    /// # Errors
    /// [`MemoryError::Busy`] while a launch is stopped, [`MemoryError::NotMapped`] for a range of another GPU.
    pub fn persistent_mut(&mut self, range: &PmRange) -> Result<&mut [u8], MemoryError> {
        let _ = range;
        todo!()
    }

    /// Copies from device or persistent memory to the CPU, as a DMA does.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`].
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), MemoryError> {
        let _ = (address, into);
        todo!()
    }

    /// Copies to device or persistent memory from the CPU, as a DMA does. What goes to PM counts as persisted.
    ///
    /// # Errors
    /// [`MemoryError::NotMapped`], [`MemoryError::Busy`].
    pub fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let _ = (address, from);
        todo!()
    }

    /// Address of a module's `.global` variable, which is made and initialised when first asked for or launched, and
    /// again after a crash.
    ///
    /// # Errors
    /// [`MemoryError::NoSymbol`], [`MemoryError::Full`].
    pub fn symbol(&mut self, module: &Module, name: &str) -> Result<u64, MemoryError> {
        let _ = (module, name);
        todo!()
    }

    /// Runs a kernel to its end, or to [`Run::stop_at`]. A launch that is stopped when the next begins is abandoned:
    /// its threads are gone and all that they stored persists.
    ///
    /// # Errors
    /// Arguments or a shape that do not fit, or the kernel's fault, after which the launch counts as stopped there:
    /// it may be crashed, not resumed.
    pub fn launch(&mut self, entry: &Entry, launch: &Launch, run: &mut Run) -> Result<Outcome, LaunchError> {
        let _ = (entry, launch, run);
        todo!()
    }

    /// Goes on with a stopped launch. `run`'s schedule and persistence are those it was launched with; only
    /// `stop_at`, `budget` and `trace` are looked at.
    ///
    /// # Errors
    /// [`LaunchError::NotStopped`], or the kernel's fault.
    pub fn resume(&mut self, run: &mut Run) -> Result<Outcome, LaunchError> {
        let _ = run;
        todo!()
    }

    /// The stores that a crash now may lose, oldest first.
    ///
    /// # Errors
    /// [`CrashError::NotTracked`] while a launch is stopped that does not track them.
    pub fn pending(&self) -> Result<Vec<PendingStore>, CrashError> {
        todo!()
    }

    /// The power fails: device memory and all threads are gone, each PM range holds what had persisted and what of
    /// the pending stores `choice` lets through.
    ///
    /// # Errors
    /// [`CrashError::NotTracked`] while a launch is stopped that does not track them.
    pub fn crash(&mut self, choice: Choice) -> Result<Crash, CrashError> {
        let _ = choice;
        todo!()
    }

    /// As [`Gpu::crash`], with the stores that reached PM chosen by the caller.
    ///
    /// # Errors
    /// As [`Gpu::crash`].
    pub fn crash_with(&mut self, reached: impl FnMut(&PendingStore) -> bool) -> Result<Crash, CrashError> {
        let _ = reached;
        todo!()
    }

    /// What [`Gpu::crash`] would leave in each PM range, in the order of their mapping; the GPU itself goes on.
    ///
    /// # Errors
    /// As [`Gpu::crash`].
    pub fn crash_image(&self, choice: Choice) -> Result<Vec<Vec<u8>>, CrashError> {
        let _ = choice;
        todo!()
    }

    /// All distinct images that a crash now may leave.
    ///
    /// # Errors
    /// [`CrashError::TooMany`] beyond `limit`, [`CrashError::NotTracked`].
    pub fn images(&self, limit: u128) -> Result<Images, CrashError> {
        let _ = limit;
        todo!()
    }
}
