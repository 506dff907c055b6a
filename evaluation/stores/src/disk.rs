//! What a disk counts.

use std::fs::{self, File};
use std::ops::{AddAssign, Sub};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::fs::{major, minor};

/// Bytes of a sector, as Linux counts them whatever the disk has.
const SECTOR: u64 = 512;

/// The disk that the file system of a folder lies on.
pub struct Disk {
    folder: File,
    counters: PathBuf,
}

/// Requests since the system began, or between two moments (`Documentation/block/stat.rst`). They
/// are those of the whole disk: of whoever writes to it.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    /// Writes that the disk was given, neighbours merged into one.
    pub writes: u64,
    /// Bytes of these.
    pub bytes: u64,
    /// Flushes of its cache, several that come together counted once.
    pub flushes: u64,
}

impl AddAssign for Counters {
    fn add_assign(&mut self, more: Counters) {
        self.writes += more.writes;
        self.bytes += more.bytes;
        self.flushes += more.flushes;
    }
}

impl Sub for Counters {
    type Output = Counters;
    fn sub(self, less: Counters) -> Counters {
        Counters {
            writes: self.writes - less.writes,
            bytes: self.bytes - less.bytes,
            flushes: self.flushes - less.flushes,
        }
    }
}

impl Disk {
    /// The disk under a folder; `None` where its file system has none of its own, as tmpfs and
    /// overlays.
    ///
    /// # Errors
    /// The folder cannot be opened, or the system counts something else.
    pub fn under(folder: &Path) -> Result<Option<Disk>> {
        let folder = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
        let device = rustix::fs::fstat(&folder)?.st_dev;
        let known = PathBuf::from(format!("/sys/dev/block/{}:{}", major(device), minor(device)));
        let Ok(mut place) = fs::canonicalize(known) else { return Ok(None) };
        // Flushes are counted for the whole disk alone.
        if place.join("partition").exists() {
            place.pop();
        }
        let disk = Disk { folder, counters: place.join("stat") };
        disk.settled().map(|_| Some(disk))
    }

    /// Its name.
    pub fn name(&self) -> String {
        let disk = self.counters.parent().and_then(Path::file_name).unwrap_or_default();
        disk.to_string_lossy().into_owned()
    }

    /// The counters when everything that was written to the file system is on the disk.
    ///
    /// # Errors
    /// The file system cannot write it, or the system counts something else.
    pub fn settled(&self) -> Result<Counters> {
        rustix::fs::syncfs(&self.folder)?;
        let text = fs::read_to_string(&self.counters)?;
        let read = || {
            let numbers = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
            Some(Counters { writes: *numbers.get(4)?, bytes: numbers.get(6)? * SECTOR, flushes: *numbers.get(15)? })
        };
        read().with_context(|| format!("{} counts no flushes: Linux 5.5 or newer is needed", self.counters.display()))
    }
}
