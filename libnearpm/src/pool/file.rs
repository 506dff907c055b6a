//! Pools in files: creation without leftovers, the lock, and what a file may be like.

use std::fs::{File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nearpm_interface::media::PAGE_BYTES;
use nearpm_interface::record::POOL_APPLIED;
use nearpm_interface::seal;
use nearpm_newfile::{Durability, NewFile};

use super::backup;
use crate::error::{Error, Problem};
use crate::memory::{MappedMemory, PrivateMemory, Survives, fill, is_full};

/// The file of a pool that is being made. Dropping it leaves nothing behind.
pub(crate) struct Unnamed {
    new: NewFile,
    path: PathBuf,
    durability: Durability,
}

impl Unnamed {
    /// Permission bits of the file.
    pub fn permit(&self, bits: u32) -> Result<(), Error> {
        permit(&self.path, self.new.file(), bits)
    }

    /// The pool is whole: the file gets its name.
    pub fn name(self) -> Result<(), Error> {
        let Unnamed { new, path, durability } = self;
        new.publish(durability).map(drop).map_err(|error| refuse(&path, error))
    }
}

/// Makes a file of `bytes` bytes for a path, all of them reserved on the medium, locked and mapped.
/// It has no name yet. It may grow to `most` bytes.
pub(crate) fn create(path: &Path, bytes: u64, survives: Survives, most: u64) -> Result<(MappedMemory, Unnamed), Error> {
    refuse_left_backup(path)?;
    let new = begin(path, bytes)?;
    let file = new.file().try_clone().map_err(|e| Error::system(format!("create {}", path.display()), e))?;
    let durability = match survives {
        Survives::ProcessCrash => Durability::ProcessCrash,
        Survives::PowerCut | Survives::AsPersistentMemory | Survives::AsPersistentCaches => Durability::Durable,
    };
    let memory = MappedMemory::map_up_to(file, path, survives, most)?;
    Ok((memory, Unnamed { new, path: path.to_owned(), durability }))
}

/// Begins a file of `bytes` bytes for a path, all of them reserved on the medium.
pub(crate) fn begin(path: &Path, bytes: u64) -> Result<NewFile, Error> {
    let new = NewFile::create(path).map_err(|error| match is_full(&error) {
        true => Problem::NoSpace { needed: bytes }.at(path.display()),
        false => refuse(path, error),
    })?;
    reserve(path, new.file(), bytes)?;
    Ok(new)
}

fn permit(path: &Path, file: &File, bits: u32) -> Result<(), Error> {
    file.set_permissions(Permissions::from_mode(bits))
        .map_err(|error| Error::system(format!("set the permissions of {}", path.display()), error))
}

/// Refuses to make a pool where the backup of another one's repair lies, which would be taken for
/// its own.
pub(crate) fn refuse_left_backup(path: &Path) -> Result<(), Error> {
    let what =
        "beside it lies the backup of a pool whose repair was interrupted (the name with .repair): move that away";
    if backup::path_of(path).exists() { Err(Problem::BadOption { what }.at(path.display())) } else { Ok(()) }
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
    open_up_to(path, survives, 0)
}

/// The same for one that may grow to `most` bytes.
pub(crate) fn open_up_to(path: &Path, survives: Survives, most: u64) -> Result<MappedMemory, Error> {
    let (file, _) = open_filled(path, Access::Exclusive)?;
    MappedMemory::map_up_to(file, path, survives, most)
}

/// Opens and locks an existing file; gives its size.
pub(crate) fn open_exclusive(path: &Path) -> Result<(File, u64), Error> {
    open_filled(path, Access::Exclusive)
}

/// Opens a file for reading, together with others that do. What is stored to the memory stays in
/// this process.
pub(crate) fn open_shared(path: &Path) -> Result<PrivateMemory, Error> {
    let (file, bytes) = open_filled(path, Access::Shared)?;
    let view = crate::memory::private_view(&file, path, bytes)?;
    Ok(PrivateMemory::new(view, bytes, file))
}

/// Opens and locks a file for a repair, also one that was interrupted; gives its size.
pub(crate) fn open_for_repair(path: &Path) -> Result<(File, u64), Error> {
    open_locked(path, Access::Exclusive)
}

/// Locks and maps an existing file whose first page is blank, so that a pool may be made of it. It
/// must have `minimum` bytes. A refusal leaves its contents as they are.
pub(crate) fn adopt(
    path: &Path,
    minimum: u64,
    survives: Survives,
    permissions: Option<u32>,
    most: u64,
) -> Result<MappedMemory, Error> {
    let (file, bytes) = open_existing(path, Access::Exclusive)?;
    if bytes < minimum {
        return Err(Problem::TooSmall { bytes, minimum }.at(path.display()));
    }
    let mut page = vec![0; PAGE_BYTES.min(bytes) as usize];
    file.read_exact_at(&mut page, 0).map_err(|e| Error::system(format!("read {}", path.display()), e))?;
    if !is_blank(&mut page) {
        return Err(Problem::Exists.at(path.display()));
    }
    if let Some(bits) = permissions {
        permit(path, &file, bits)?;
    }
    MappedMemory::map_up_to(file, path, survives, most)
}

/// Whether the first page is blank, or as a creation leaves it that was interrupted: the head comes
/// last.
fn is_blank(page: &mut [u8]) -> bool {
    let applied = &mut page[POOL_APPLIED as usize..][..8];
    if seal::open_word(u64::from_le_bytes((&*applied).try_into().expect("eight bytes"))).is_some() {
        applied.fill(0);
    }
    page.iter().all(|&byte| byte == 0)
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

/// The process that has the lock of a file, where the system has a table of locks (proc(5),
/// `/proc/locks`).
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

/// Reserves the bytes, so that a store to the mapping never finds the medium full.
pub(crate) fn reserve(path: &Path, file: &File, bytes: u64) -> Result<(), Error> {
    fill(file, bytes, crate::memory::allocate).map_err(|error| {
        if is_full(&error) {
            Problem::NoSpace { needed: bytes }.at(path.display())
        } else {
            Error::system(format!("reserve {bytes} bytes for {}", path.display()), error)
        }
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
