//! Files that PM is made of, and the lock on them.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use memmap2::{Mmap, MmapMut, MmapOptions};
use nearpm_newfile::{Durability, NewFile, take_room};

use crate::error::Error;

/// Whether a device other than the interpreter can store to a medium, and its file system's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pinnable {
    /// It can.
    Yes(&'static str),
    /// The operating system forbids it.
    No(String),
}

/// Bytes that outlive the process, mapped: a file on tmpfs, a memfd, a hugetlb file, a devdax
/// device. The interpreter, which copies, takes other files and plain bytes, too. A file on a disk
/// can be opened for reading alone.
pub struct Medium {
    backing: Backing,
    path: PathBuf,
}

enum Backing {
    File {
        file: File,
        map: MmapMut,
    },
    /// The file is kept for its lock.
    Read {
        _file: File,
        map: Mmap,
    },
    Bytes(Vec<u8>),
}

/// A medium of which the file has no name yet. Dropping it leaves nothing behind.
pub(crate) struct Unnamed {
    new: NewFile,
    pub medium: Medium,
}

impl Unnamed {
    /// The contents are whole: the file gets its name.
    pub fn publish(self) -> Result<Medium, Error> {
        let Unnamed { new, medium } = self;
        new.publish(Durability::Durable).map_err(|error| taken(&medium.path, "create", error))?;
        Ok(medium)
    }
}

fn taken(path: &Path, what: &'static str, error: IoError) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => Error::Exists { path: path.to_owned() },
        _ => Error::system(what, path, error),
    }
}

impl Medium {
    /// Plain bytes, for the interpreter.
    pub fn of_bytes(bytes: Vec<u8>) -> Medium {
        Medium { backing: Backing::Bytes(bytes), path: PathBuf::from("(in memory)") }
    }

    /// A memfd of `bytes` zeros: PM that ends with the process.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn memfd(bytes: u64) -> Result<Medium, Error> {
        let path = PathBuf::from("(memfd)");
        // SAFETY: the name is a string that ends in zero, and the result is checked.
        let descriptor = unsafe { libc::memfd_create(c"nearpm".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return Err(Error::system("create", &path, IoError::last_os_error()));
        }
        // SAFETY: the descriptor was made here, and nobody else has it.
        let file = unsafe { <File as std::os::fd::FromRawFd>::from_raw_fd(descriptor) };
        file.set_len(bytes).map_err(|error| Error::system("size", &path, error))?;
        Medium::mapped(file, path)
    }

    /// Begins a file of `bytes` zeros with room on its medium.
    pub(crate) fn create(path: &Path, bytes: u64) -> Result<Unnamed, Error> {
        let new = NewFile::create(path).map_err(|error| taken(path, "create", error))?;
        let refuse = |error| Error::system("make room for", path, error);
        new.file().set_len(bytes).map_err(refuse)?;
        take_room(new.file(), 0..bytes).map_err(refuse)?;
        let file = new.file().try_clone().map_err(refuse)?;
        Ok(Unnamed { medium: Medium::mapped(file, path.to_owned())?, new })
    }

    /// Opens and locks a file, or a devdax device.
    ///
    /// # Errors
    /// [`Error::InUse`]; what the system refuses.
    pub fn open(path: &Path) -> Result<Medium, Error> {
        let refuse = |error| Error::system("open", path, error);
        let kind = std::fs::metadata(path).map_err(refuse)?.file_type();
        if !kind.is_file() && !kind.is_char_device() {
            let why = "it is neither a file nor a device of persistent memory".to_owned();
            return Err(Error::Foreign { path: path.to_owned(), why });
        }
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(refuse)?;
        match file.try_lock() {
            Ok(()) => Medium::mapped(file, path.to_owned()),
            Err(TryLockError::WouldBlock) => Err(Error::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => Err(Error::system("lock", path, error)),
        }
    }

    /// Opens a file for reading, a disk's too: a device that only loads from pages does not keep
    /// them from being written back. Several may read it.
    ///
    /// # Errors
    /// As for [`Medium::open`].
    pub fn open_for_reading(path: &Path) -> Result<Medium, Error> {
        let refuse = |error| Error::system("open", path, error);
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(refuse)?;
        if !file.metadata().map_err(refuse)?.is_file() {
            return Err(Error::Foreign { path: path.to_owned(), why: "it is no file".to_owned() });
        }
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Error::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(Error::system("lock", path, error)),
        }
        let bytes = filled(&file, path)?;
        // SAFETY: the file is locked against writers of this library; what others do to it shows as
        // for `mapped`.
        let map = unsafe { MmapOptions::new().len(bytes as usize).map(&file) };
        let map = map.map_err(|error| Error::system("map", path, error))?;
        Ok(Medium { backing: Backing::Read { _file: file, map }, path: path.to_owned() })
    }

    /// Whether it was opened for reading alone.
    pub fn is_for_reading(&self) -> bool {
        matches!(self.backing, Backing::Read { .. })
    }

    fn mapped(file: File, path: PathBuf) -> Result<Medium, Error> {
        let bytes = filled(&file, &path)?;
        // SAFETY: the file is locked against other processes of this library. What others do to it
        // shows as changed bytes, or as a bus error where they cut it: PM that several processes
        // are to map can promise no more.
        let map = unsafe { MmapOptions::new().len(bytes as usize).map_mut(&file) };
        let map = map.map_err(|error| Error::system("map", &path, error))?;
        Ok(Medium { backing: Backing::File { file, map }, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes as the processor sees them.
    pub fn bytes(&self) -> &[u8] {
        match &self.backing {
            Backing::File { map, .. } => map,
            Backing::Read { map, .. } => map,
            Backing::Bytes(bytes) => bytes,
        }
    }

    /// The same, to store to.
    ///
    /// # Panics
    /// A medium that was opened for reading: who has it asks before ([`Medium::is_for_reading`]).
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.backing {
            Backing::File { map, .. } => map,
            Backing::Read { .. } => panic!("{} was opened for reading", self.path.display()),
            Backing::Bytes(bytes) => bytes,
        }
    }

    /// What a device that had a copy of the bytes leaves of them.
    ///
    /// # Errors
    /// It stored to a medium that was opened for reading, which stays as it was.
    pub(crate) fn give_back(&mut self, left: &[u8]) -> Result<(), Error> {
        match &mut self.backing {
            Backing::Read { map, .. } if &map[..] == left => Ok(()),
            Backing::Read { .. } => Err(self.refuse_store()),
            _ => {
                self.bytes_mut().copy_from_slice(left);
                Ok(())
            }
        }
    }

    /// The error of who would store to a medium that was opened for reading.
    pub(crate) fn refuse_store(&self) -> Error {
        Error::Invalid(format!("{} was opened for reading: nothing is stored there", self.path.display()))
    }

    /// Whether a GPU can store to it.
    pub fn pinnable(&self) -> Pinnable {
        match &self.backing {
            Backing::File { file, .. } => pinnable(file),
            Backing::Read { .. } => Pinnable::No("what was opened for reading".to_owned()),
            Backing::Bytes(_) => Pinnable::No("plain memory of this process".to_owned()),
        }
    }
}

/// Bytes of a file, or of a devdax device, which tells them in sysfs.
fn bytes_of(file: &File) -> std::io::Result<u64> {
    let metadata = file.metadata()?;
    if !metadata.file_type().is_char_device() {
        return Ok(metadata.len());
    }
    use std::os::unix::fs::MetadataExt;
    let device = metadata.rdev();
    let size = format!("/sys/dev/char/{}:{}/size", libc::major(device), libc::minor(device));
    let text = std::fs::read_to_string(size)?;
    text.trim().parse().map_err(|_| IoError::new(ErrorKind::InvalidData, "the device does not tell its size"))
}

/// The same; there are some.
fn filled(file: &File, path: &Path) -> Result<u64, Error> {
    match bytes_of(file).map_err(|error| Error::system("read the size of", path, error))? {
        0 => Err(Error::Foreign { path: path.to_owned(), why: "it is empty".to_owned() }),
        bytes => Ok(bytes),
    }
}

/// By the file system's magic number: the kernel lets devices pin pages for long only where no
/// write-back moves them.
fn pinnable(file: &File) -> Pinnable {
    if file.metadata().is_ok_and(|metadata| metadata.file_type().is_char_device()) {
        return Pinnable::Yes("devdax");
    }
    // SAFETY: the structure is plain integers, for which zeros are values, and the call fills it.
    let (outcome, found) = unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &mut found), found)
    };
    match (outcome, found.f_type) {
        (0, libc::TMPFS_MAGIC) => Pinnable::Yes("tmpfs"),
        (0, libc::HUGETLBFS_MAGIC) => Pinnable::Yes("hugetlbfs"),
        (0, libc::EXT4_SUPER_MAGIC) => Pinnable::No("ext4".to_owned()),
        (0, libc::XFS_SUPER_MAGIC) => Pinnable::No("xfs".to_owned()),
        (0, libc::BTRFS_SUPER_MAGIC) => Pinnable::No("btrfs".to_owned()),
        (0, libc::OVERLAYFS_SUPER_MAGIC) => Pinnable::No("overlayfs".to_owned()),
        (0, other) => Pinnable::No(format!("a file system of type {other:#x}")),
        _ => Pinnable::No("a file system that does not tell its type".to_owned()),
    }
}
