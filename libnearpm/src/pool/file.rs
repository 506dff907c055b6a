//! Pools in files: creation without leftovers, the lock, and what a file may be like.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use crate::error::{Error, Problem};
use crate::memory::{MappedMemory, Survives};

/// Creates a file of `bytes` bytes, all of them reserved on the medium, locks and maps it. On failure nothing is left behind.
pub(crate) fn create(path: &Path, bytes: u64, survives: Survives) -> Result<MappedMemory, Error> {
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) => return Err(refuse(path, error)),
    };
    let filled = lock(path, &file)
        .and_then(|()| reserve(path, &file, bytes))
        .and_then(|()| MappedMemory::map(file, path, survives));
    filled.inspect_err(|_| discard(path))
}

/// Removes a file whose creation failed.
pub(crate) fn discard(path: &Path) {
    // The error that led here is the one to report.
    let _ = std::fs::remove_file(path);
}

/// Opens, locks and maps an existing file.
pub(crate) fn open(path: &Path, survives: Survives) -> Result<MappedMemory, Error> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(|e| refuse(path, e))?;
    lock(path, &file)?;
    let metadata = file.metadata().map_err(|e| Error::system(format!("read the size of {}", path.display()), e))?;
    if !metadata.is_file() {
        return Err(Problem::Foreign { found: 0 }.at(path.display()));
    }
    if metadata.len() == 0 {
        return Err(Problem::Unfinished.at(path.display()));
    }
    MappedMemory::map(file, path, survives)
}

/// Removes the file of a pool that is not open; anything that is not a pool is left alone.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    let memory = open(path, Survives::ProcessCrash)?;
    let medium = crate::memory::Medium::new(crate::memory::Backing::Mapped(memory));
    match super::format::read(&medium) {
        Ok(_) | Err(Problem::Unfinished | Problem::Truncated { .. } | Problem::Corrupt { .. }) => {}
        Err(problem) => return Err(problem.at(path.display())),
    }
    std::fs::remove_file(path).map_err(|e| Error::system(format!("remove {}", path.display()), e))
}

fn refuse(path: &Path, error: std::io::Error) -> Error {
    let problem = match error.kind() {
        ErrorKind::NotFound => Problem::NotFound,
        ErrorKind::AlreadyExists => Problem::Exists,
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Problem::ReadOnly,
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => Problem::NoSpace { needed: 0 },
        _ => return Error::system(format!("open {}", path.display()), error),
    };
    problem.at(path.display())
}

fn lock(path: &Path, file: &File) -> Result<(), Error> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Problem::InUse.at(path.display())),
        Err(TryLockError::Error(error)) => Err(Error::system(format!("lock {}", path.display()), error)),
    }
}

/// Reserves the bytes, so that a store to the mapping never finds the medium full.
fn reserve(path: &Path, file: &File, bytes: u64) -> Result<(), Error> {
    crate::memory::reserve(file, bytes).map_err(|error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Problem::NoSpace { needed: bytes }.at(path.display())
        }
        _ => Error::system(format!("reserve {bytes} bytes for {}", path.display()), error),
    })
}
