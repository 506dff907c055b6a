//! Files that are there whole or not at all, whatever ends the process that makes them.
//!
//! A file is made without a name (`O_TMPFILE`) in the folder that it is to lie in, and gets its
//! name when it is filled: what ends its creator before that leaves nothing. Where the file system
//! has no such files, or the new one takes the place of another, it has a name of its own
//! meanwhile, `.nearpm-new-*`, and is locked. Whoever makes the next one of that kind in the folder
//! removes those that nobody has locked, as their creators are gone.
//!
//! The name is durable when [`NewFile::publish`] has returned: contents are synchronised before it,
//! the folder after it.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{Error, ErrorKind, Result};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FallocateFlags, OFlags, fallocate, linkat};
use rustix::io::Errno;
use tempfile::TempPath;

/// What names of unfinished files begin with.
const PREFIX: &str = ".nearpm-new-";

/// Permission bits of a new file, less those of the umask: as of a file that is opened.
const MODE: u32 = 0o666;

/// Whether a file is to survive a crash of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// It is: what was written and its name are synchronised.
    Durable,
    /// It is to survive the end of its creator alone.
    ProcessCrash,
}

/// Where a file is that is being made.
enum Place {
    Nowhere,
    /// Under a name of its own. Dropping it removes the file.
    Beside(TempPath),
    /// The same, to take the place of another file.
    Instead(TempPath),
}

/// A file that is being made, open for reading and writing, and locked. Dropping it leaves nothing
/// behind.
pub struct NewFile {
    file: File,
    place: Place,
    path: PathBuf,
}

impl NewFile {
    /// Begins a file for a path at which there is nothing.
    ///
    /// # Errors
    /// What the system refuses: [`ErrorKind::AlreadyExists`] where something is at the path.
    pub fn create(path: &Path) -> Result<NewFile> {
        if path.symlink_metadata().is_ok() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        match nameless(folder_of(path))? {
            Some(file) => {
                lock(&file)?;
                Ok(NewFile { file, place: Place::Nowhere, path: path.to_owned() })
            }
            None => NewFile::named(path, Place::Beside),
        }
    }

    /// Begins a file that takes the place of the one at a path, if there is one.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn replace(path: &Path) -> Result<NewFile> {
        NewFile::named(path, Place::Instead)
    }

    fn named(path: &Path, place: fn(TempPath) -> Place) -> Result<NewFile> {
        let folder = folder_of(path);
        sweep(folder);
        loop {
            let mut builder = tempfile::Builder::new();
            let made = builder.prefix(PREFIX).permissions(Permissions::from_mode(MODE)).tempfile_in(folder)?;
            let (file, temporary) = made.into_parts();
            // Between its making and its lock another creator may have taken it for a leftover.
            match file.try_lock() {
                Ok(()) if is_at(&file, &temporary) => {
                    return Ok(NewFile { file, place: place(temporary), path: path.to_owned() });
                }
                Ok(()) | Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// The file. A copy of it (`try_clone`) goes on holding the lock.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// What the system refuses: [`ErrorKind::AlreadyExists`] where something came to be at the path
    /// meanwhile. Nothing is left behind then.
    pub fn publish(self, durability: Durability) -> Result<File> {
        let NewFile { file, place, path } = self;
        if durability == Durability::Durable {
            file.sync_all()?;
        }
        let replaces = matches!(place, Place::Instead(_));
        match place {
            Place::Nowhere => linkat(CWD, descriptor(&file), CWD, &path, AtFlags::SYMLINK_FOLLOW)?,
            Place::Beside(temporary) => temporary.persist_noclobber(&path).map_err(|failed| failed.error)?,
            Place::Instead(temporary) => temporary.persist(&path).map_err(|failed| failed.error)?,
        }
        if durability == Durability::Durable
            && let Err(error) = sync_folder(&path, &file)
        {
            if !replaces {
                // The error that led here is the one to report.
                let _ = std::fs::remove_file(&path);
            }
            return Err(error);
        }
        Ok(file)
    }
}

/// The folder of a path.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Makes the names in a folder durable, of which that of `file` has changed.
///
/// # Errors
/// What the system refuses.
pub fn sync_folder(path: &Path, file: &File) -> Result<()> {
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        // A folder may be written to by those who may not read it. The journals of file systems
        // take a new name with its file.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => file.sync_all(),
        // Not all file systems know this for folders.
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        done => done,
    }
}

/// Takes room on the medium for a range of a file, whose size stays: a store there does not find
/// the medium full. Where the file system cannot do that, nothing is promised.
///
/// # Errors
/// What the system refuses: [`ErrorKind::StorageFull`].
pub fn take_room(file: &File, range: Range<u64>) -> Result<()> {
    loop {
        match fallocate(file, FallocateFlags::KEEP_SIZE, range.start, range.end - range.start) {
            Err(Errno::INTR) => {}
            Ok(()) | Err(Errno::OPNOTSUPP) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

/// A file without a name; `None` where the system has none, or could not give it one.
fn nameless(folder: &Path) -> Result<Option<File>> {
    let flags = OFlags::TMPFILE.bits().cast_signed();
    match OpenOptions::new().read(true).write(true).mode(MODE).custom_flags(flags).open(folder) {
        Ok(file) => Ok(descriptor(&file).exists().then_some(file)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => Ok(None),
            _ => Err(error),
        },
    }
}

/// What names an open file for the system, where `/proc` is mounted.
fn descriptor(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn lock(file: &File) -> Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => Error::from(ErrorKind::WouldBlock),
    })
}

fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(ours), Ok(there)) => identity(ours) == identity(there),
        _ => false,
    }
}

/// Removes what creators left that are gone. What cannot be removed is nobody's error: it is looked
/// at again the next time.
fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let path = entry.path();
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file
            && let Ok(file) = File::open(&path)
            && file.try_lock().is_ok()
            && is_at(&file, &path)
        {
            let _ = std::fs::remove_file(&path);
        }
    }
}

#[cfg(test)]
mod tests;
