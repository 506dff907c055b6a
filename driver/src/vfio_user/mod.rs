//! A card in another process, over vfio-user: the simulated card's process, or whatever else serves
//! one.
//!
//! Accesses to registers and command pages are messages. So are those to the PM window, unless the
//! server hands out a descriptor for the part of it: then it is mapped, and nothing orders its
//! accesses with commands, as the card's capabilities say.
//!
//! Hand-written, since the client of the crate `vfio_user` (whose server the simulated card uses)
//! waits without end for a server that does not answer, and takes a message that went out in part
//! for a whole one.
//!
//! Nothing here waits longer than the time that [`open`] is given. A server that ends, does not
//! answer, or answers with something else is given up for good: memory and registers then read all
//! ones, everything else is an error that says what happened, and [`VfioUserFunction::failure`]
//! says it, too. A mapped part of the window stays readable then: it is memory of this process.

mod connection;
mod error;
pub(crate) mod wire;

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use memmap2::{MmapOptions, MmapRaw};
use nix::sys::memfd::{MFdFlags, memfd_create};

use crate::pci::{Caching, DmaBuffer, DmaPages, HandedOn, Mapping, PciError, PciFunction, check_range, check_vector};
use crate::vfio::dma::{Arena, Reach};
use crate::vfio::interrupts::Vectors;
use crate::vfio::iova::BusSpace;
use crate::vfio::this_boot;
use crate::vfio::window;
use connection::Connection;
use wire::Command;

pub use error::VfioUserError;

/// How long a server may take to answer, unless a test is in a hurry.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What mappings begin at multiples of.
const PAGE: u64 = 4096;
/// Bus addresses for buffers: what every IOMMU takes, above what a PC has below 4 GiB.
const BUS_ADDRESSES: Range<u64> = 0x1_0000_0000..0x10_0000_0000;
/// Most vectors of MSI-X that are asked for.
const MOST_VECTORS: u32 = 8;
/// How long the server may take to notice that the last client has gone.
const LEAVING: Duration = Duration::from_millis(500);
/// Waits that are shorter than this are spent in this thread.
const SLEEP_NS: u64 = 50_000;

struct Region {
    info: wire::RegionInfo,
    file: Option<File>,
}

/// A card that was opened over vfio-user. Hand it to [`crate::Card::open`].
pub struct VfioUserFunction {
    connection: Arc<Connection>,
    regions: Vec<Region>,
    resets: bool,
    vectors: Vectors,
    arena: Arena<Connection>,
    start: Instant,
}

impl std::fmt::Debug for VfioUserFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VfioUserFunction").field("path", &self.connection.path()).finish_non_exhaustive()
    }
}

/// Opens the card that a server has on a socket. Each answer has to come within `timeout`.
///
/// # Errors
/// One variant of [`VfioUserError`] for each thing that can be missing.
pub fn open(path: &Path, timeout: Duration) -> Result<VfioUserFunction, VfioUserError> {
    let start = Instant::now();
    loop {
        match open_once(path, timeout) {
            Err(VfioUserError::Busy { .. } | VfioUserError::Full { .. }) if start.elapsed() < LEAVING => {
                std::thread::sleep(LEAVING / 20)
            }
            other => return other,
        }
    }
}

fn open_once(path: &Path, timeout: Duration) -> Result<VfioUserFunction, VfioUserError> {
    let name = path.display().to_string();
    let connection = match Connection::new(path, timeout) {
        Ok(connection) => Arc::new(connection),
        Err(source) => return Err(VfioUserError::Absent { path: name, source }),
    };
    let failed = |what| {
        let path = name.clone();
        move |source| VfioUserError::Failed { path, what, source }
    };
    let foreign = |what| VfioUserError::NotACard { path: name.clone(), what };
    let version =
        connection.call(Command::Version, &wire::version(), &[]).map_err(|source| match source.raw_os_error() {
            Some(libc::EBUSY) => VfioUserError::Busy { path: name.clone() },
            Some(libc::EUSERS) => VfioUserError::Full { path: name.clone() },
            _ => failed("agree on a version")(source),
        })?;
    if version.payload.get(..2) != Some(&[0, 0]) {
        return Err(foreign("it speaks another version of the protocol"));
    }
    let device = connection.call(Command::DeviceInfo, &wire::device_info(), &[]).map_err(failed("ask what it is"))?;
    let of_device = |at| wire::word(&device.payload, at).ok_or_else(|| foreign("it does not say what it is"));
    let (flags, regions) = (of_device(4)?, of_device(8)?);
    if flags & wire::DEVICE_IS_PCI == 0 || regions <= wire::CONFIG_REGION {
        return Err(foreign("it serves no PCI function"));
    }
    let regions = (0..=wire::CONFIG_REGION).map(|index| {
        let reply = connection.call(Command::RegionInfo, &wire::region_info(index), &[]);
        let reply = reply.map_err(failed("ask for its regions"))?;
        let info =
            wire::parse_region(&reply.payload).ok_or_else(|| foreign("what it says of a region makes no sense"))?;
        Ok(Region { info, file: reply.descriptors.into_iter().next().map(File::from) })
    });
    let regions = regions.collect::<Result<_, _>>()?;
    let vectors = signal(&connection).map_err(failed("enable its interrupts"))?;
    let arena = Arena::new(connection.clone(), BusSpace::new(&[BUS_ADDRESSES], PAGE));
    let resets = flags & wire::DEVICE_RESETS != 0;
    Ok(VfioUserFunction { connection, regions, resets, vectors, arena, start: Instant::now() })
}

/// Has the MSI-X vectors signalled on event descriptors.
fn signal(connection: &Connection) -> std::io::Result<Vectors> {
    let reply = connection.call(Command::IrqInfo, &wire::irq_info(wire::MSIX), &[])?;
    let count = wire::word(&reply.payload, 12).unwrap_or(0).min(MOST_VECTORS);
    let vectors = Vectors::new(count as usize)?;
    if count > 0 {
        connection.call(Command::SetIrqs, &wire::set_irqs(wire::MSIX, count), &vectors.descriptors())?;
    }
    Ok(vectors)
}

impl VfioUserFunction {
    /// The socket.
    pub fn path(&self) -> &Path {
        self.connection.path()
    }

    /// Why the server was given up, if it was.
    pub fn failure(&self) -> Option<String> {
        self.connection.failure()
    }

    fn system(&self, what: &str) -> impl Fn(std::io::Error) -> PciError {
        let what = format!("{}: {what}", self.path().display());
        move |source| PciError::System { what: what.clone(), source }
    }

    fn bar(&self, bar: usize) -> Option<&Region> {
        let region = self.regions[..wire::CONFIG_REGION as usize].get(bar)?;
        (region.info.bytes > 0).then_some(region)
    }
}

/// Maps a range of a region whose file offset and start are whole pages, or none where the range is
/// not mappable as a whole.
fn map_region(region: &Region, range: &Range<u64>) -> std::io::Result<Option<Box<dyn Mapping>>> {
    let Some(file) = &region.file else { return Ok(None) };
    if !region.info.areas.iter().any(|area| area.start <= range.start && range.end <= area.end) {
        return Ok(None);
    }
    let start = region.info.file_offset + range.start;
    let bytes = range.end - range.start;
    // Beyond the end of its file, memory would be a signal.
    if file.metadata()?.len() < start + bytes {
        return Err(std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "the server's file is too short"));
    }
    // Memory of the two processes, which their caches keep coherent: nothing has to be written back
    // or dropped.
    window::map_file(file, start, bytes, Caching::Uncached, Caching::Uncached).map(Some)
}

impl PciFunction for VfioUserFunction {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        let read = self.connection.read(wire::CONFIG_REGION, offset.into(), data);
        read.map_err(self.system("read configuration space"))
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        let written = self.connection.write(wire::CONFIG_REGION, offset.into(), data);
        written.map_err(self.system("write configuration space"))
    }

    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.bar(bar).map(|region| region.info.bytes)
    }

    fn map(&self, bar: usize, range: Range<u64>, _: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let region = self.bar(bar).ok_or(PciError::NoBar { bar })?;
        check_range(bar, &range, region.info.bytes)?;
        let mapped =
            if range.is_empty() { None } else { map_region(region, &range).map_err(self.system("map a BAR"))? };
        Ok(match mapped {
            Some(window) => window,
            None => Box::new(Trap { connection: self.connection.clone(), region: bar as u32, range }),
        })
    }

    fn hand_on(&self, bar: usize) -> Option<HandedOn> {
        let region = self.bar(bar).filter(|region| !region.info.areas.is_empty())?;
        let file = region.file.as_ref()?.try_clone().ok()?;
        Some(HandedOn { file, offset: region.info.file_offset, areas: region.info.areas.clone() })
    }

    fn interrupt_vectors(&self) -> usize {
        self.vectors.count()
    }

    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        check_vector(vector, self.vectors.count())?;
        self.vectors.wait(vector, Duration::from_nanos(timeout_ns)).map_err(self.system("wait for an interrupt"))
    }

    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let buffer = self.arena.allocate(bytes);
        Ok(Box::new(buffer.map_err(self.system("share memory with the card"))?))
    }

    fn dma_pages(&self) -> Option<DmaPages> {
        self.arena.pages()
    }

    fn reset(&self) -> Result<(), PciError> {
        if !self.resets {
            return Err(PciError::Unsupported { what: "a function-level reset" });
        }
        self.connection.call(Command::Reset, &[], &[]).map(drop).map_err(self.system("reset"))
    }

    fn host_boot(&self) -> Option<u64> {
        this_boot()
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn relax(&self, ns: u64) {
        if ns >= SLEEP_NS {
            return std::thread::sleep(Duration::from_nanos(ns));
        }
        let start = Instant::now();
        // The server may need this processor.
        while start.elapsed().as_nanos() < ns.into() {
            std::thread::yield_now();
        }
    }

    fn contended(&self) -> bool {
        false
    }
}

impl Reach for Connection {
    /// A server writes into the file, which one of large pages does not take.
    const LARGE_PAGES: bool = false;

    fn allocate(&self, address: u64, bytes: usize, _: DmaPages) -> std::io::Result<MmapRaw> {
        let file = File::from(memfd_create(c"nearpm-dma", MFdFlags::MFD_CLOEXEC)?);
        file.set_len(bytes as u64)?;
        let map = MmapOptions::new().map_raw(&file)?;
        self.call(Command::DmaMap, &wire::dma_map(address, bytes as u64), &[file.as_raw_fd()])?;
        Ok(map)
    }

    fn release(&self, address: u64, bytes: usize) -> bool {
        // A server that has gone, and one that does not answer, writes to its own mapping of the
        // file.
        let _ = self.call(Command::DmaUnmap, &wire::dma_unmap(address, bytes as u64), &[]);
        true
    }
}

/// A window whose every access is a message. The answer to a store says that the card has it: there
/// is nothing to write back.
struct Trap {
    connection: Arc<Connection>,
    region: u32,
    range: Range<u64>,
}

impl Trap {
    /// Offset in the region of a part of the window.
    ///
    /// # Panics
    /// If the part leaves the window, as with a slice.
    fn place(&self, offset: u64, bytes: u64) -> u64 {
        let inside = offset.checked_add(bytes).is_some_and(|end| end <= self.bytes());
        assert!(inside, "an access of {bytes} bytes at {offset:#x} leaves its window of {:#x} bytes", self.bytes());
        self.range.start + offset
    }
}

impl Mapping for Trap {
    fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }

    fn load(&self, offset: u64, data: &mut [u8]) {
        let at = self.place(offset, data.len() as u64);
        if self.connection.read(self.region, at, data).is_err() {
            data.fill(0xff);
        }
    }

    fn store(&self, offset: u64, data: &[u8]) {
        let at = self.place(offset, data.len() as u64);
        // A card that has gone takes nothing, and reads all ones from now on.
        let _ = self.connection.write(self.region, at, data);
    }

    fn store_line(&self, offset: u64, line: &[u8; 64]) {
        self.store(offset, line);
    }

    fn write_back(&self, offset: u64, bytes: u64) {
        self.place(offset, bytes);
    }

    fn invalidate(&self, offset: u64, bytes: u64) {
        self.place(offset, bytes);
    }

    fn fence(&self) {}
}
