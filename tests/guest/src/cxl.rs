//! Persistent memory on CXL: made a disk of, with a file system whose files are mapped straight
//! from it (DAX).
//!
//! The steps are those of `cxl create-region`, `ndctl create-namespace --mode fsdax` and
//! `mount -o dax`, by the files of sysfs that those programs write
//! (Documentation/ABI/testing/sysfs-bus-cxl, sysfs-bus-nvdimm). The region is made on every boot,
//! as nothing of it survives; the namespace is found again by the labels in the memory device.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::mount::{MsFlags, mount};

/// Bytes of the memory: the least that an address window of CXL has.
pub const BYTES: u64 = 256 << 20;
/// Bytes of its labels.
pub const LABEL_BYTES: u64 = 1 << 20;
/// Bytes of the namespace; labels of others would have room.
const NAMESPACE_BYTES: u64 = 240 << 20;
/// Where the file system begins in the memory, behind the block that tells that it is mapped by
/// pages of this size.
const ALIGNMENT: u64 = 2 << 20;
/// Blocks of 4 KiB of the file system, somewhat less than what is left.
const BLOCKS: u64 = 224 << 8;
/// Where it is mounted.
pub const FOLDER: &str = "/pmem";
/// How long the kernel may take for a step.
const STEP: Duration = Duration::from_secs(30);

const CXL: &str = "/sys/bus/cxl/devices";
const ND: &str = "/sys/bus/nd/devices";
/// Names of region, namespace and page map; any will do.
const NAMES: [&str; 3] = [
    "6e656172-706d-4d00-8000-000000000001",
    "6e656172-706d-4d00-8000-000000000002",
    "6e656172-706d-4d00-8000-000000000003",
];

/// Makes the files that are the memory and its labels, on the host, with an empty file system in
/// the former.
///
/// # Errors
/// If they cannot be written.
pub fn make(memory: &Path, labels: &Path) -> Result<()> {
    for (path, bytes) in [(memory, BYTES), (labels, LABEL_BYTES)] {
        fs::File::create(path)?.set_len(bytes)?;
    }
    let mut command = Command::new("/sbin/mkfs.ext4");
    command.args(["-q", "-F", "-b", "4096", "-E", &format!("offset={ALIGNMENT}")]).arg(memory).arg(BLOCKS.to_string());
    let output = command.output().context("cannot run mkfs.ext4")?;
    ensure!(output.status.success(), "mkfs.ext4: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// Writes a line: some of the files want its end.
fn write(path: PathBuf, text: &str) -> Result<()> {
    fs::write(&path, format!("{text}\n")).with_context(|| format!("cannot write {text:?} to {}", path.display()))
}

fn read(path: PathBuf) -> Result<String> {
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.trim().to_owned())
}

/// Waits until a file is there.
fn wait_for(path: &Path) -> Result<()> {
    let end = Instant::now() + STEP;
    while !path.exists() {
        ensure!(Instant::now() < end, "{} does not come", path.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// In the guest: makes region, namespace and page map, where they are missing, and mounts the file
/// system.
///
/// # Errors
/// If the kernel refuses a step.
pub fn mount_dax() -> Result<()> {
    make_region().context("the CXL region cannot be made")?;
    let disk = Path::new("/dev/pmem0");
    let namespace = Path::new(ND).join("namespace0.0");
    wait_for(&namespace)?;
    if read(namespace.join("size"))? == "0" {
        make_namespace(&namespace).context("the namespace cannot be made")?;
    }
    wait_for(disk)?;
    fs::create_dir_all(FOLDER)?;
    mount(Some(disk), FOLDER, Some("ext4"), MsFlags::empty(), Some("dax=always")).context("cannot mount with DAX")
}

/// Maps the memory device's bytes into the address window of its root.
fn make_region() -> Result<()> {
    let (root, decoder) = (Path::new(CXL).join("decoder0.0"), Path::new(CXL).join("decoder2.0"));
    wait_for(&decoder)?;
    wait_for(&Path::new(CXL).join("mem0"))?;
    let name = read(root.join("create_pmem_region"))?;
    write(root.join("create_pmem_region"), &name)?;
    let region = Path::new(CXL).join(&name);
    let granularity = read(root.join("interleave_granularity"))?;
    write(region.join("uuid"), NAMES[0])?;
    write(region.join("interleave_ways"), "1")?;
    write(region.join("interleave_granularity"), &granularity)?;
    write(decoder.join("mode"), "pmem")?;
    write(decoder.join("dpa_size"), &format!("{BYTES:#x}"))?;
    write(region.join("size"), &format!("{BYTES:#x}"))?;
    write(region.join("target0"), "decoder2.0")?;
    write(region.join("commit"), "1")?;
    write(PathBuf::from("/sys/bus/cxl/drivers/cxl_region/bind"), &name)
}

/// Makes a namespace whose pages the kernel can map into processes.
fn make_namespace(namespace: &Path) -> Result<()> {
    let map = Path::new(ND).join("pfn0.0");
    write(namespace.join("uuid"), NAMES[1])?;
    write(namespace.join("size"), &format!("{NAMESPACE_BYTES:#x}"))?;
    write(map.join("namespace"), "namespace0.0")?;
    write(map.join("uuid"), NAMES[2])?;
    write(map.join("align"), &ALIGNMENT.to_string())?;
    write(map.join("mode"), "ram")?;
    write(PathBuf::from("/sys/bus/nd/drivers/nd_pmem/bind"), "pfn0.0")
}

/// Unmounts the file system.
///
/// # Errors
/// If somebody has a file of it.
pub fn unmount() -> Result<()> {
    match nix::mount::umount(FOLDER) {
        Ok(()) => Ok(()),
        Err(error) => bail!("cannot unmount {FOLDER}: {}", io::Error::from(error)),
    }
}
