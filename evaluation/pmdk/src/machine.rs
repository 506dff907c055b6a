//! The machine that measures, so that every figure says where it comes from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What a figure depends on of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Processors that the system shows.
    pub processors: usize,
    /// Name and release of the kernel.
    pub kernel: String,
    /// Processes that ran or wanted to, averaged over the minute before: other work disturbs.
    pub load: Option<f64>,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let cpu_info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let of = |key: &str| {
            let line = cpu_info.lines().find(|line| line.split('\t').next().is_some_and(|name| name.trim() == key));
            line.and_then(|line| line.split_once(": ")).map_or("unknown", |(_, value)| value.trim()).to_string()
        };
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            cpu: format!("{} (family {}, model {})", of("model name"), of("cpu family"), of("model")),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: format!("Linux {}", release.trim()),
            load: load.split(' ').next().and_then(|load| load.parse().ok()),
        }
    }
}

/// The type of the file system that a folder lies on, `ext4` for example.
pub fn file_system(folder: &Path) -> Result<String> {
    let folder = folder.canonicalize().with_context(|| format!("there is no folder {}", folder.display()))?;
    let mounts = fs::read_to_string("/proc/self/mounts").context("the mounts cannot be read")?;
    let kind = file_system_in(&mounts, &folder);
    kind.with_context(|| format!("no mount holds {}", folder.display()))
}

/// The type in a table of mounts: that of the longest path above the folder, the last where two are
/// mounted on one.
fn file_system_in(mounts: &str, folder: &Path) -> Option<String> {
    let mounts = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        // A space in a path is written so in the table.
        let path = fields.next()?.replace("\\040", " ");
        folder.starts_with(&path).then_some((path.len(), fields.next()?))
    });
    mounts.max_by_key(|&(length, _)| length).map(|(_, kind)| kind.to_string())
}

/// A folder in memory for pools: `/dev/shm`, or where that is none, another tmpfs that can be
/// written.
pub fn memory_folder() -> Result<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").context("the mounts cannot be read")?;
    let others = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(PathBuf::from);
    std::iter::once(PathBuf::from("/dev/shm"))
        .chain(others)
        .find(|folder| file_system(folder).is_ok_and(|kind| kind == "tmpfs") && tempfile::tempfile_in(folder).is_ok())
        .context("there is no tmpfs that can be written: name a folder for the pools")
}

/// The version of an installed Debian package.
pub fn package_version(name: &str) -> Option<String> {
    let output = Command::new("dpkg-query").args(["-W", "-f=${Version}", name]).output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && !version.is_empty()).then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_system_is_that_of_the_nearest_mount() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\nb /mnt/a\\040disk xfs rw 0 0\n";
        let kind = |folder: &str| file_system_in(mounts, Path::new(folder));
        assert_eq!(kind("/dev/shm/pools").as_deref(), Some("tmpfs"));
        assert_eq!(kind("/dev/shmem").as_deref(), Some("ext4"), "names are compared as wholes");
        assert_eq!(kind("/mnt/a disk/x").as_deref(), Some("xfs"));
    }
}
