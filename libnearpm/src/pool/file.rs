//! Pools in files: creation without leftovers, the lock, and what a file may be like.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use nearpm_interface::media::PAGE_BYTES;

use crate::check::backup;
use crate::error::{Error, Problem};
use crate::memory::{MappedMemory, Memory, PrivateMemory, Survives};

/// Creates a file of `bytes` bytes, all of them reserved on the medium, locks and maps it. On failure nothing is left behind.
pub(crate) fn create(path: &Path, bytes: u64, survives: Survives) -> Result<MappedMemory, Error> {
    refuse_left_backup(path)?;
    let file = match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if is_out_of_space(&error) => return Err(Problem::NoSpace { needed: bytes }.at(path.display())),
        Err(error) => return Err(refuse(path, error)),
    };
    let filled = lock(path, &file, Access::Exclusive)
        .and_then(|()| reserve(path, &file, bytes))
        .and_then(|()| MappedMemory::map(file, path, survives));
    filled.inspect_err(|_| discard(path))
}

/// Refuses to make a pool where the backup of another one's repair lies, which would be taken for its own.
pub(crate) fn refuse_left_backup(path: &Path) -> Result<(), Error> {
    let what =
        "beside it lies the backup of a pool whose repair was interrupted (the name with .repair): move that away";
    if backup::path_of(path).exists() { Err(Problem::BadOption { what }.at(path.display())) } else { Ok(()) }
}

/// Removes a file whose creation failed.
pub(crate) fn discard(path: &Path) {
    // The error that led here is the one to report.
    let _ = std::fs::remove_file(path);
}

/// Whether others may look at a pool at the same time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    /// It is changed, by one process.
    Exclusive,
    /// It is read, by any number of processes.
    Shared,
}

/// Opens and locks a file that exists; gives its size.
fn open_existing(path: &Path, access: Access) -> Result<(File, u64), Error> {
    let opened = open_locked(path, access)?;
    if backup::path_of(path).exists() {
        return Err(Problem::RepairInterrupted.at(path.display()));
    }
    Ok(opened)
}

/// The same for a file that holds something: creation has come as far.
fn open_filled(path: &Path, access: Access) -> Result<(File, u64), Error> {
    match open_existing(path, access)? {
        (_, 0) => Err(Problem::Unfinished.at(path.display())),
        opened => Ok(opened),
    }
}

fn open_locked(path: &Path, access: Access) -> Result<(File, u64), Error> {
    let unread = |error| match (access, refuse(path, error)) {
        (Access::Shared, Error::Pool { problem: Problem::ReadOnly, .. }) => Problem::Unreadable.at(path.display()),
        (_, other) => other,
    };
    // Before it is opened, because opening a device may do something.
    ordinary(path, &std::fs::metadata(path).map_err(unread)?)?;
    let write = access == Access::Exclusive;
    // A FIFO that takes the file's place meanwhile does not wait for a writer.
    let flags = libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).write(write).custom_flags(flags).open(path).map_err(unread)?;
    let metadata = file.metadata().map_err(|e| Error::system(format!("read the size of {}", path.display()), e))?;
    ordinary(path, &metadata)?;
    lock(path, &file, access)?;
    // Whoever had the lock may have changed its size.
    let metadata = file.metadata().map_err(|e| Error::system(format!("read the size of {}", path.display()), e))?;
    Ok((file, metadata.len()))
}

/// Refuses what is no ordinary file.
fn ordinary(path: &Path, metadata: &Metadata) -> Result<(), Error> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let kind = match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a FIFO",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(Problem::NotAFile { kind }.at(path.display()))
}

/// Opens, locks and maps an existing file.
pub(crate) fn open(path: &Path, survives: Survives) -> Result<MappedMemory, Error> {
    let (file, _) = open_filled(path, Access::Exclusive)?;
    MappedMemory::map(file, path, survives)
}

/// Opens a file for reading, together with others that do. What is stored to the memory stays in this process.
pub(crate) fn open_shared(path: &Path) -> Result<PrivateMemory, Error> {
    let (file, bytes) = open_filled(path, Access::Shared)?;
    let view = crate::memory::private_view(&file, path)?;
    Ok(PrivateMemory::new(view, bytes, Some(file)))
}

/// Opens and locks a file for a repair, also one that was interrupted; gives its size.
pub(crate) fn open_for_repair(path: &Path) -> Result<(File, u64), Error> {
    open_locked(path, Access::Exclusive)
}

/// Locks and maps an existing file whose first page is blank, so that a pool may be made of it. It must have `minimum` bytes. A refusal
/// leaves its contents as they are.
pub(crate) fn adopt(path: &Path, minimum: u64, survives: Survives) -> Result<MappedMemory, Error> {
    let (file, bytes) = open_existing(path, Access::Exclusive)?;
    if bytes < minimum {
        return Err(Problem::TooSmall { bytes, minimum }.at(path.display()));
    }
    reserve(path, &file, bytes)?;
    let memory = MappedMemory::map(file, path, survives)?;
    let mut page = vec![0; PAGE_BYTES.min(bytes) as usize];
    memory.load(0, &mut page);
    if page.iter().any(|&b| b != 0) {
        return Err(Problem::Exists.at(path.display()));
    }
    Ok(memory)
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
        _ => return Error::system(format!("open {}", path.display()), error),
    };
    problem.at(path.display())
}

fn lock(path: &Path, file: &File, access: Access) -> Result<(), Error> {
    let locked = match access {
        Access::Exclusive => file.try_lock(),
        Access::Shared => file.try_lock_shared(),
    };
    match locked {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(Problem::InUse { process: holder(file) }.at(path.display())),
        Err(TryLockError::Error(error)) => Err(Error::system(format!("lock {}", path.display()), error)),
    }
}

/// The process that has the lock of a file, where the system has a table of locks (proc(5), `/proc/locks`).
#[cfg(target_os = "linux")]
fn holder(file: &File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let metadata = file.metadata().ok()?;
    let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
    let place = format!("{major:02x}:{minor:02x}:{}", metadata.ino());
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, "FLOCK", _, _, process, at, ..] = fields[..] else { return None };
        (at == place).then(|| process.parse().ok()).flatten()
    })
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &File) -> Option<u32> {
    None
}

fn is_out_of_space(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

/// Reserves the bytes, so that a store to the mapping never finds the medium full.
pub(crate) fn reserve(path: &Path, file: &File, bytes: u64) -> Result<(), Error> {
    fill(file, bytes, crate::memory::allocate).map_err(|error| {
        if is_out_of_space(&error) {
            Problem::NoSpace { needed: bytes }.at(path.display())
        } else {
            Error::system(format!("reserve {bytes} bytes for {}", path.display()), error)
        }
    })
}

/// Makes a file longer by reserving, and as long as it was if that fails: where the file system cannot reserve, the
/// system writes every block, and would otherwise leave the medium full.
fn fill(file: &File, bytes: u64, allocate: impl FnOnce(&File, u64) -> std::io::Result<()>) -> std::io::Result<()> {
    let former = file.metadata()?.len();
    // What can never fit does not fill the medium first, at the cost of everybody else who writes to it.
    if crate::memory::free_bytes(file)?.is_some_and(|free| bytes.saturating_sub(former) > free) {
        return Err(ErrorKind::StorageFull.into());
    }
    allocate(file, bytes).inspect_err(|_| {
        // The error that led here is the one to report.
        let _ = file.set_len(former);
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_reservation_that_fails_half_way_gives_back_what_it_had() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[7; 5000]).unwrap();
        let failed = fill(&file, 1 << 20, |file, bytes| {
            crate::memory::allocate(file, bytes / 2)?;
            assert_eq!(file.metadata()?.len(), bytes / 2);
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 5000);
        fill(&file, 1 << 20, crate::memory::allocate).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    }

    #[test]
    fn what_can_never_fit_is_refused_before_anything_is_written() {
        let file = tempfile::tempfile().unwrap();
        let Some(free) = crate::memory::free_bytes(&file).unwrap() else { return };
        let refused = fill(&file, free.saturating_mul(2), |_, _| panic!("nothing may be reserved"));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(file.metadata().unwrap().len(), 0);
    }
}
