//! Errors.

use std::path::PathBuf;

/// What a device or a region refuses, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The CUDA driver is not installed.
    #[error("no CUDA driver (libcuda.so) on this machine: install NVIDIA's driver, or use the interpreter")]
    NoDriver,
    /// The driver is there and has no such GPU.
    #[error("the CUDA driver has {count} GPUs, number {ordinal} was asked for (they are numbered from 0)")]
    NoCard {
        /// What was asked for.
        ordinal: usize,
        /// GPUs there are.
        count: usize,
    },
    /// The driver refused a call.
    #[error("the CUDA driver refused to {what}: {why}")]
    Driver {
        /// The call's purpose.
        what: String,
        /// The driver's name and text of the error.
        why: String,
    },
    /// The device's memory does not suffice.
    #[error("{device} has {free} bytes of free memory of {total}, {needed} are needed: choose smaller sizes")]
    OutOfMemory {
        /// Name of the device.
        device: String,
        /// Bytes asked for.
        needed: u64,
        /// Free bytes.
        free: u64,
        /// All bytes.
        total: u64,
    },
    /// A file that the kernel of the operating system does not let a device write to.
    #[error(
        "{path} lies on {filesystem}: Linux forbids long-term write pins of the pages of files on disk file systems (they may \
         be written back or moved at any time), so that a GPU cannot store there. Use a file on tmpfs (/dev/shm), hugetlbfs, \
         or a devdax device, and drain it to the disk"
    )]
    NotPinnable {
        /// The file.
        path: PathBuf,
        /// Name of the file system.
        filesystem: String,
    },
    /// The operating system refused something.
    #[error("cannot {what} {path}: {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// Another process, or another region of this one, has the file.
    #[error("{path} is in use by another process")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// There is something at the path already.
    #[error("{path} exists already")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file that is no region.
    #[error("{path} is no PM region of a GPU: {why}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        why: String,
    },
    /// A region of a later version.
    #[error(
        "{path} has version {found} of the region format, this program knows up to {supported}: use a newer program"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The highest version known.
        supported: u32,
    },
    /// A file that is shorter than its head says.
    #[error("{path} has {found} bytes, its head says {expected}: it was truncated")]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Bytes that it should have.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// Damage.
    #[error(
        "{path} is damaged at offset {offset:#x}: {what}. `nearpm pool check --repair` tells whether it can be put right"
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// Where.
        offset: u64,
    },
    /// The region has no room for one more object, or no directory entry.
    #[error("the region has no room for {name:?} of {bytes} bytes: {why}")]
    NoRoom {
        /// The object's name.
        name: String,
        /// Its bytes.
        bytes: u64,
        /// What there is.
        why: String,
    },
    /// An object that the region does not have, or has with another kind or size.
    #[error("the region has no {what}: {why}")]
    NoObject {
        /// What was asked for.
        what: String,
        /// What there is.
        why: String,
    },
    /// Arguments that make no sense.
    #[error("{0}")]
    Invalid(String),
    /// PTX that the device does not take.
    #[error("module {module} does not load: {why}")]
    Module {
        /// Its name.
        module: String,
        /// The device's reason.
        why: String,
    },
    /// A launch that was refused, or a kernel that was ended for what it did.
    #[error("{0}")]
    Kernel(String),
    /// The crash that was planned has happened.
    #[error("the device crashed as planned: {0}")]
    Crashed(String),
}

impl Error {
    pub(crate) fn system(what: &'static str, path: &std::path::Path, source: std::io::Error) -> Error {
        Error::System { what, path: path.to_owned(), why: source }
    }
}
