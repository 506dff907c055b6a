//! A card in this machine, through Linux VFIO.
//!
//! The card must be bound to vfio-pci, behind an IOMMU; [`open`] says which of it is missing. The
//! kernel resets a function when its first user opens it and again after the last one has closed
//! it, and that is one more reason why a reset drains what was accepted and drops nothing
//! (contract, C8).
//!
//! BARs are mapped uncached, whatever caching is asked for: that is what VFIO grants on x86, and it
//! is correct in each case, only slower for large loads and for write-combining stores. The PM
//! window can be mapped otherwise, past VFIO, where the user chooses that ([`open_with`]) and the
//! machine offers it. A removal that the kernel carries out waits until the card is closed; a card
//! whose link has dropped reads all ones.
//!
//! **This transport has not met a board.** It has met Linux: in the guest test a kernel hands the
//! simulated card to it, with its reset, BARs, IOMMU and MSI-X.

mod bind;
pub(crate) mod dma;
mod error;
pub(crate) mod interrupts;
pub(crate) mod iova;
mod place;
pub(crate) mod window;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use nearpm_interface::geometry::PM_BAR;
use pci_driver::backends::vfio::VfioPciDevice;
use pci_driver::device::PciDevice;
use pci_driver::regions::PciRegion;

use crate::pci::{Caching, DmaBuffer, DmaPages, Mapping, PciError, PciFunction, check_range, check_vector};

pub use bind::{Change, bind, unbind};
pub use error::VfioError;

/// Windows begin at multiples of this, which is one of every page size in use.
const MAP_ALIGNMENT: u64 = 64 * 1024;

/// A card that was opened through VFIO. Hand it to [`crate::Card::open`].
pub struct VfioFunction {
    address: String,
    device: Arc<VfioPciDevice>,
    /// What the PM window is mapped from, other than from the device.
    window: Option<place::WindowFile>,
    arena: dma::Arena<VfioPciDevice>,
    vectors: interrupts::Vectors,
    start: Instant,
}

impl std::fmt::Debug for VfioFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VfioFunction").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Opens the card at a PCI address as `lspci -D` writes it (`0000:01:00.0`; the domain may be left
/// out). The kernel resets the function, which drains what the card had accepted.
///
/// # Errors
/// One variant of [`VfioError`] for each thing that can be missing. A device that is no NearPM card
/// is not touched.
pub fn open(address: &str) -> Result<VfioFunction, VfioError> {
    open_with(address, Caching::Uncached)
}

/// The same with the PM window mapped in a mode. Whatever the library asks for is then carried out
/// in that mode, with the flushes that it needs.
///
/// # Errors
/// [`VfioError::NoWindow`] where the machine does not offer the mode: nothing was opened then.
pub fn open_with(address: &str, window: Caching) -> Result<VfioFunction, VfioError> {
    let roots = place::Roots::default();
    let place = place::find(address, &roots)?;
    let window = place::window_file(&place, window, &roots)?;
    let refused = |what| {
        let address = place.address.clone();
        move |source| VfioError::Refused { address, what, source }
    };
    let device = VfioPciDevice::open(&place.path).map_err(|error| explain(&place, error))?;
    let vectors =
        interrupts::Vectors::new(device.interrupts().msi_x().max()).map_err(refused("make event descriptors"))?;
    if vectors.count() > 0 {
        device.interrupts().msi_x().enable(&vectors.descriptors()).map_err(refused("enable its interrupts"))?;
    }
    let space = iova::BusSpace::new(device.iommu().valid_iova_ranges(), device.iommu().alignment() as u64);
    let device = Arc::new(device);
    Ok(VfioFunction {
        address: place.address,
        arena: dma::Arena::new(device.clone(), space),
        device,
        window,
        vectors,
        start: Instant::now(),
    })
}

/// What the kernel meant when it refused a device that sysfs had found ready.
fn explain(place: &place::SysfsDevice, source: std::io::Error) -> VfioError {
    let (address, group) = (place.address.clone(), place.group);
    match source.raw_os_error() {
        Some(libc::EBUSY) => VfioError::Busy { address, group },
        Some(libc::EACCES | libc::EPERM) => VfioError::NoPermission { address, group },
        _ => VfioError::Refused { address, what: "open it through VFIO", source },
    }
}

impl VfioFunction {
    /// PCI address in full.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn system(&self, what: &str) -> impl Fn(std::io::Error) -> PciError {
        let what = format!("PCI device {}: {what}", self.address);
        move |source| PciError::System { what: what.clone(), source }
    }
}

/// Where Linux tells the identifier of this boot, a random UUID (random(4)).
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The number of this boot, as [`PciFunction::host_boot`] has it.
pub(crate) fn this_boot() -> Option<u64> {
    boot_number(&std::fs::read_to_string(BOOT_ID).ok()?)
}

/// The first 48 bits of a UUID.
fn boot_number(uuid: &str) -> Option<u64> {
    let digits: String = uuid.chars().filter(char::is_ascii_hexdigit).take(12).collect();
    if digits.len() < 12 { None } else { u64::from_str_radix(&digits, 16).ok() }
}

impl PciFunction for VfioFunction {
    fn config_read(&self, offset: u16, data: &mut [u8]) -> Result<(), PciError> {
        self.device.config().read_bytes(offset.into(), data).map_err(self.system("read configuration space"))
    }

    fn config_write(&self, offset: u16, data: &[u8]) -> Result<(), PciError> {
        let config = self.device.config();
        let offset = offset.into();
        let written = match *data {
            [a] => config.write_u8(offset, a),
            [a, b] => config.write_le_u16(offset, u16::from_le_bytes([a, b])),
            [a, b, c, d] => config.write_le_u32(offset, u32::from_le_bytes([a, b, c, d])),
            _ => return Err(PciError::Unsupported { what: "a configuration write of other than 1, 2 or 4 bytes" }),
        };
        written.map_err(self.system("write configuration space"))
    }

    fn bar_bytes(&self, bar: usize) -> Option<u64> {
        self.device.bar(bar).map(|bar| bar.len())
    }

    fn map(&self, bar: usize, range: Range<u64>, caching: Caching) -> Result<Box<dyn Mapping>, PciError> {
        let region = self.device.bar(bar).ok_or(PciError::NoBar { bar })?;
        check_range(bar, &range, region.len())?;
        // All of the window in one mode: the kernel gives a second mapping of the same memory the
        // caching of the first.
        if let Some(window) = self.window.as_ref().filter(|_| bar == PM_BAR && !range.is_empty()) {
            return window.map(range, caching).map_err(self.system("map the PM window"));
        }
        if !region.is_mappable() {
            return Err(PciError::Unsupported { what: "mapping this BAR into the process" });
        }
        window::map(&region, range).map_err(self.system("map a BAR"))
    }

    fn interrupt_vectors(&self) -> usize {
        self.vectors.count()
    }

    fn wait_interrupt(&self, vector: usize, timeout_ns: u64) -> Result<bool, PciError> {
        check_vector(vector, self.vectors.count())?;
        self.vectors.wait(vector, Duration::from_nanos(timeout_ns)).map_err(self.system("wait for an interrupt"))
    }

    fn allocate_dma(&self, bytes: usize) -> Result<Box<dyn DmaBuffer>, PciError> {
        let buffer = self.arena.allocate(bytes).map_err(
            self.system("map memory for the card (the limit of locked memory, `ulimit -l`, may be too low)"),
        )?;
        Ok(Box::new(buffer))
    }

    fn dma_pages(&self) -> Option<DmaPages> {
        self.arena.pages()
    }

    fn reset(&self) -> Result<(), PciError> {
        self.device.reset().map_err(|error| match error.raw_os_error() {
            // What the kernel answers where the function has no reset of its own.
            Some(libc::EINVAL | libc::ENOTTY) => PciError::Unsupported { what: "a function-level reset" },
            _ => self.system("reset")(error),
        })
    }

    fn host_boot(&self) -> Option<u64> {
        this_boot()
    }

    fn now_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn relax(&self, ns: u64) {
        let start = Instant::now();
        while start.elapsed().as_nanos() < ns.into() {
            std::hint::spin_loop();
        }
    }

    fn contended(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_named_by_the_first_48_bits_of_its_identifier() {
        assert_eq!(boot_number("12345678-9abc-4def-8000-000000000000\n"), Some(0x1234_5678_9abc));
        assert_eq!(boot_number(""), None);
    }

    #[test]
    fn an_address_without_a_device_is_refused() {
        // No machine has a bus 255 in the last domain.
        let error = open("ffff:ff:1f.7").unwrap_err();
        assert!(matches!(&error, VfioError::Absent { address, .. } if address == "ffff:ff:1f.7"), "{error}");
        assert!(matches!(open("card0"), Err(VfioError::BadAddress { .. })));
    }

    #[test]
    fn what_the_kernel_refuses_is_explained_with_what_to_do() {
        let place = place::SysfsDevice { address: "0000:01:00.0".into(), path: "/none".into(), group: 17 };
        for (code, part) in [
            (libc::EBUSY, "fuser -v /dev/vfio/17"),
            (libc::EACCES, "chown"),
            (libc::EPERM, "chown"),
            (libc::ENODEV, "dmesg"),
        ] {
            let text = explain(&place, std::io::Error::from_raw_os_error(code)).to_string();
            assert!(text.contains("0000:01:00.0") && text.contains(part), "{text}");
        }
    }
}
