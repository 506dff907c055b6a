//! The initramfs of the guest: process 1, the command-line program, their libraries, and modules of
//! the kernel.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cpio::newc::{Builder, trailer};

use crate::packages::Packages;

/// Folder of the modules in the image, with one for VFIO and one for CXL.
pub const MODULES: &str = "modules";
/// The command-line program in the image.
pub const NEARPM: &str = "bin/nearpm";

/// Modules by what they are for, in the order in which they need each other, by their place among
/// the kernel's.
const GROUPS: [(&str, &[&str]); 2] = [
    (
        "vfio",
        &[
            "virt/lib/irqbypass.ko.xz",
            "drivers/vfio/vfio.ko.xz",
            "drivers/vfio/vfio_iommu_type1.ko.xz",
            "drivers/vfio/pci/vfio-pci-core.ko.xz",
            "drivers/vfio/pci/vfio-pci.ko.xz",
        ],
    ),
    (
        "cxl",
        &[
            "drivers/nvdimm/libnvdimm.ko.xz",
            "drivers/nvdimm/nd_btt.ko.xz",
            "drivers/nvdimm/nd_pmem.ko.xz",
            "drivers/cxl/cxl_acpi.ko.xz",
            "drivers/cxl/cxl_pmem.ko.xz",
            "drivers/cxl/cxl_mem.ko.xz",
            "drivers/cxl/cxl_pci.ko.xz",
        ],
    ),
];

/// Mode bits of a directory, a program and a character device (stat(2)).
const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;
const CHARACTER_DEVICE: u32 = 0o020_600;
/// Numbers of the console.
const CONSOLE: (u32, u32) = (5, 1);

/// Writes the image for these programs.
///
/// # Errors
/// If a file is missing, or the image cannot be written.
pub fn write(to: &Path, packages: &Packages, init: &Path, nearpm: &Path) -> Result<()> {
    let mut archive = Archive::new(to)?;
    // The kernel opens it for process 1 before that can mount anything.
    archive.entry("dev/console", CHARACTER_DEVICE, &[], CONSOLE)?;
    for (path, name) in [(init, "init"), (nearpm, NEARPM)] {
        archive.entry(name, PROGRAM, &stripped(path)?, (0, 0))?;
        for library in libraries(path)? {
            let bytes = fs::read(&library).with_context(|| format!("cannot read {}", library.display()))?;
            archive.entry(library.to_string_lossy().trim_start_matches('/'), PROGRAM, &bytes, (0, 0))?;
        }
    }
    let modules = packages.modules()?;
    for (group, places) in GROUPS {
        for (number, place) in places.iter().enumerate() {
            let path = modules.join(place);
            let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let name = place.rsplit('/').next().unwrap_or(place);
            archive.entry(&format!("{MODULES}/{group}/{number:02}-{name}"), PROGRAM, &bytes, (0, 0))?;
        }
    }
    archive.finish()
}

/// An archive in which a directory stands before what lies in it, and nothing stands twice.
struct Archive {
    file: File,
    names: BTreeSet<String>,
}

impl Archive {
    fn new(path: &Path) -> Result<Archive> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Archive { file, names: BTreeSet::new() })
    }

    fn entry(&mut self, name: &str, mode: u32, data: &[u8], device: (u32, u32)) -> Result<()> {
        if !self.names.insert(name.to_owned()) {
            return Ok(());
        }
        if let Some((folder, _)) = name.rsplit_once('/') {
            self.entry(folder, DIRECTORY, &[], (0, 0))?;
        }
        let builder = Builder::new(name).mode(mode).rdev_major(device.0).rdev_minor(device.1);
        let mut writer = builder.write(&self.file, data.len() as u32);
        writer.write_all(data)?;
        writer.finish()?;
        Ok(())
    }

    fn finish(self) -> Result<()> {
        trailer(&self.file)?;
        Ok(())
    }
}

/// A program without what only debuggers read, which is most of it.
fn stripped(path: &Path) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let small = folder.path().join("program");
    let status = Command::new("strip").arg("-o").arg(&small).arg(path).status().context("cannot run strip")?;
    ensure!(status.success(), "strip {}: {status}", path.display());
    Ok(fs::read(small)?)
}

/// The libraries of a program, its loader among them, as `ldd` finds them.
fn libraries(program: &Path) -> Result<Vec<PathBuf>> {
    let output = Command::new("ldd").arg(program).output().context("cannot run ldd")?;
    ensure!(output.status.success(), "ldd {}: {}", program.display(), output.status);
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(!text.contains("not found"), "a library of {} is missing: {text}", program.display());
    Ok(text.lines().filter_map(library_of).collect())
}

/// `NAME => /PATH (0x...)` or `/PATH (0x...)`; the kernel's own has no path.
fn library_of(line: &str) -> Option<PathBuf> {
    line.split_whitespace().find(|word| word.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn libraries_are_read_from_what_ldd_prints() {
        let of = |line| library_of(line).map(|path| path.display().to_string());
        assert_eq!(of("\tlinux-vdso.so.1 (0x00007ffd)"), None);
        assert_eq!(
            of("\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00)").as_deref(),
            Some("/lib/x86_64-linux-gnu/libc.so.6")
        );
        assert_eq!(of("\t/lib64/ld-linux-x86-64.so.2 (0x00)").as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
    }

    #[test]
    fn an_archive_has_each_directory_once_and_before_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        let mut archive = Archive::new(&path).unwrap();
        archive.entry("dev/console", CHARACTER_DEVICE, &[], CONSOLE).unwrap();
        archive.entry("lib/x/a", PROGRAM, b"one", (0, 0)).unwrap();
        archive.entry("lib/x/b", PROGRAM, b"three", (0, 0)).unwrap();
        archive.entry("lib/x/a", PROGRAM, b"again", (0, 0)).unwrap();
        archive.finish().unwrap();
        let mut file = File::open(&path).unwrap();
        let mut found = Vec::new();
        loop {
            let mut reader = cpio::newc::Reader::new(file).unwrap();
            let entry = reader.entry();
            if entry.is_trailer() {
                break;
            }
            let (name, mode, major) = (entry.name().to_owned(), entry.mode(), entry.rdev_major());
            let mut data = String::new();
            reader.read_to_string(&mut data).unwrap();
            found.push((name, mode, major, data));
            file = reader.finish().unwrap();
        }
        let expected = [
            ("dev", DIRECTORY, 0, ""),
            ("dev/console", CHARACTER_DEVICE, 5, ""),
            ("lib", DIRECTORY, 0, ""),
            ("lib/x", DIRECTORY, 0, ""),
            ("lib/x/a", PROGRAM, 0, "one"),
            ("lib/x/b", PROGRAM, 0, "three"),
        ];
        let expected: Vec<_> = expected.map(|(name, mode, major, data)| (name.into(), mode, major, data.into())).into();
        assert_eq!(found, expected);
    }
}
