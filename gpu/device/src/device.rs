//! What a device does.

use std::time::Duration;

pub use nearpm_ptx::Counts;

use crate::error::Error;
use crate::kernel::{Kernel, Launch};
use crate::medium::Medium;

/// PM that a device has mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attached {
    /// Where kernels see it: a multiple of 4096.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
    /// The device's number for it.
    pub(crate) number: usize,
}

/// A copy that goes on beside other work.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "it has happened when it is waited for"]
pub struct Aside(pub(crate) u64);

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elapsed {
    /// The time.
    pub time: Duration,
    /// Where it is from.
    pub source: Measured,
}

/// Where a time is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measured {
    /// Measured by events on the device.
    Device,
    /// Predicted by the interpreter's cost model from counted transactions: nothing was measured.
    Predicted,
}

/// A device: its memory, PM that it maps, and launches. Work is done in the order in which it is
/// given.
///
/// Devices are shared by reference in one thread.
pub trait Device {
    /// Name of the card, or that it is interpreted.
    fn name(&self) -> String;

    /// Allocates volatile memory, aligned to 256 bytes; its contents are not defined.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`].
    fn allocate(&self, bytes: u64) -> Result<u64, Error>;

    /// Gives memory back.
    ///
    /// # Errors
    /// An address that [`Device::allocate`] has not given.
    fn free(&self, address: u64) -> Result<(), Error>;

    /// Copies to the device's memory or to PM, after the work before it; it has happened when this
    /// returns.
    ///
    /// # Errors
    /// An address outside of what is allocated, or what the driver refuses.
    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Copies from the device's memory or from PM, after the work before it.
    ///
    /// # Errors
    /// As for [`Device::upload`].
    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Copies within the device, from or to PM, by its copy engine; does not wait.
    ///
    /// # Errors
    /// As for [`Device::upload`].
    fn copy(&self, to: u64, from: u64, bytes: u64) -> Result<(), Error>;

    /// Begins a copy within the device, from or to PM, behind the work given so far; work that is
    /// given later does not wait for it. Where it comes from must not change before
    /// [`Device::wait_aside`] says that it has happened.
    ///
    /// # Errors
    /// As for [`Device::upload`].
    fn copy_aside(&self, to: u64, from: u64, bytes: u64) -> Result<Aside, Error>;

    /// Waits for a copy, which has arrived then.
    ///
    /// # Errors
    /// What the driver refuses; what a kernel before it did wrong.
    fn wait_aside(&self, copy: Aside) -> Result<(), Error>;

    /// Fills memory with a byte; does not wait.
    ///
    /// # Errors
    /// As for [`Device::upload`].
    fn fill(&self, address: u64, byte: u8, bytes: u64) -> Result<(), Error>;

    /// Maps PM for kernels to load and store.
    ///
    /// # Errors
    /// What cannot be pinned ([`Error::NotPinnable`]).
    fn attach(&self, medium: &Medium) -> Result<Attached, Error>;

    /// Unmaps PM. What kernels stored is in the medium then.
    ///
    /// # Errors
    /// What the driver refuses.
    fn detach(&self, attached: Attached, medium: &mut Medium) -> Result<(), Error>;

    /// Reads PM as the processor sees it, after the work before it.
    ///
    /// # Errors
    /// Outside of it.
    fn pm_read(&self, pm: &Attached, medium: &Medium, offset: u64, bytes: &mut [u8]) -> Result<(), Error>;

    /// Stores to PM by the processor, durably when this returns. Eight aligned bytes are stored at
    /// once.
    ///
    /// # Errors
    /// Outside of it.
    fn pm_write(&self, pm: &Attached, medium: &mut Medium, offset: u64, bytes: &[u8]) -> Result<(), Error>;

    /// Launches a kernel, which runs after the work before it.
    ///
    /// # Errors
    /// PTX that the device does not take, an impossible shape, arguments that do not fit; on the
    /// interpreter what the kernel did wrong.
    fn launch(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error>;

    /// Launches a kernel that runs behind the work given before it, and beside what is given after
    /// it, until [`Device::join`]. Devices that do one thing at a time do it at once.
    ///
    /// # Errors
    /// As for [`Device::launch`].
    fn launch_beside(&self, kernel: Kernel<'_>, launch: &Launch) -> Result<(), Error> {
        self.launch(kernel, launch)
    }

    /// What is given from now on runs behind what was launched beside.
    ///
    /// # Errors
    /// What the driver refuses.
    fn join(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Waits until all work is done.
    ///
    /// # Errors
    /// What a kernel did wrong.
    fn synchronize(&self) -> Result<(), Error>;

    /// Runs `work`, which gives the device something to do, and says how long the device took for
    /// it.
    ///
    /// # Errors
    /// Those of `work`, and as [`Device::synchronize`].
    fn time(&self, work: &mut dyn FnMut() -> Result<(), Error>) -> Result<Elapsed, Error>;

    /// What was done since the device was made; `None` where nothing counts.
    fn counts(&self) -> Option<Counts>;

    /// Free bytes of the device's memory.
    ///
    /// # Errors
    /// What the driver refuses.
    fn free_memory(&self) -> Result<u64, Error>;
}

/// Refuses what does not lie in PM.
pub(crate) fn check_range(pm: &Attached, offset: u64, bytes: usize) -> Result<(), Error> {
    match offset.checked_add(bytes as u64) {
        Some(end) if end <= pm.bytes => Ok(()),
        _ => Err(Error::Invalid(format!("{bytes} bytes at offset {offset:#x} leave PM of {} bytes", pm.bytes))),
    }
}
