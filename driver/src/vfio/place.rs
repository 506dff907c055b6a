//! Where a card is: its PCI address, and what sysfs says of it before anything is opened.
//!
//! Everything that can be known without opening the device is checked here, so that a foreign
//! device is never touched: opening one through VFIO would reset it.

use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use nearpm_interface::geometry::{PCI_DEVICE, PCI_VENDOR, PM_BAR};

use super::error::VfioError;
use super::window;
use crate::pci::{Caching, Mapping};

/// Drivers of the kernel that VFIO tolerates beside its own in a group (`vfio_dev_driver_allowed`).
const HARMLESS_DRIVERS: [&str; 2] = ["pci-stub", "pcieport"];

/// Folders of the kernel's, which tests replace.
pub(super) struct Roots {
    pub sysfs: PathBuf,
    pub dev: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Roots { sysfs: "/sys".into(), dev: "/dev".into() }
    }
}

/// A card that VFIO can open, as far as sysfs tells.
#[derive(Debug)]
pub(super) struct SysfsDevice {
    /// Address in full, such as 0000:01:00.0.
    pub address: String,
    /// Folder of the device in sysfs.
    pub path: PathBuf,
    /// Number of its IOMMU group.
    pub group: u32,
}

/// Brings an address into the form that sysfs uses; the domain may be left out.
pub(super) fn parse(text: &str) -> Result<String, VfioError> {
    let bad = || VfioError::BadAddress { text: text.to_owned() };
    let (rest, function) = text.rsplit_once('.').ok_or_else(bad)?;
    let fields: Vec<&str> = rest.split(':').collect();
    let (domain, bus, device) = match fields[..] {
        [domain, bus, device] => (domain, bus, device),
        [bus, device] => ("0000", bus, device),
        _ => return Err(bad()),
    };
    let number = |field: &str, digits: std::ops::RangeInclusive<usize>, most: u32| {
        let plain = digits.contains(&field.len()) && field.bytes().all(|b| b.is_ascii_hexdigit());
        plain.then(|| u32::from_str_radix(field, 16).ok()).flatten().filter(|&n| n <= most).ok_or_else(bad)
    };
    // Domains above 16 bits are those of bridges inside a processor (VMD).
    let domain = number(domain, 4..=8, u32::MAX)?;
    let bus = number(bus, 2..=2, 0xff)?;
    let device = number(device, 2..=2, 0x1f)?;
    let function = number(function, 1..=1, 7)?;
    Ok(format!("{domain:04x}:{bus:02x}:{device:02x}.{function}"))
}

/// Finds a NearPM card, whatever driver it has: its address in full, and its folder.
pub(super) fn find_card(text: &str, roots: &Roots) -> Result<(String, PathBuf), VfioError> {
    let address = parse(text)?;
    let path = roots.sysfs.join("bus/pci/devices").join(&address);
    if !path.exists() {
        return Err(VfioError::Absent { address, vendor: PCI_VENDOR, device: PCI_DEVICE });
    }
    let (vendor, device) = (identity(&path, &address, "vendor")?, identity(&path, &address, "device")?);
    if (vendor, device) != (PCI_VENDOR, PCI_DEVICE) {
        return Err(VfioError::Foreign { address, vendor, device });
    }
    Ok((address, path))
}

/// Finds a card and checks all that can be checked before it is opened.
pub(super) fn find(text: &str, roots: &Roots) -> Result<SysfsDevice, VfioError> {
    let (address, path) = find_card(text, roots)?;
    let driver = driver_of(&path);
    if driver.as_deref() != Some("vfio-pci") {
        return Err(VfioError::NotBound { address, driver: driver.unwrap_or_else(|| "no driver".into()) });
    }
    let Some(group) = group_of(&path) else { return Err(VfioError::NoIommu { address }) };
    check_group(&path, &address, group)?;
    for file in ["vfio".to_owned(), group.to_string()] {
        let file = roots.dev.join("vfio").join(file);
        if !file.exists() {
            return Err(VfioError::NoVfio { address, path: file.display().to_string() });
        }
    }
    Ok(SysfsDevice { address, path, group })
}

/// The vendor or the device number, which sysfs writes as 0x and four digits.
fn identity(path: &Path, address: &str, file: &str) -> Result<u16, VfioError> {
    let refused = |source| VfioError::Refused { address: address.to_owned(), what: "read its identity", source };
    let text = fs::read_to_string(path.join(file)).map_err(refused)?;
    u16::from_str_radix(text.trim().trim_start_matches("0x"), 16)
        .map_err(|error| refused(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
}

/// Name of what a link leads to.
fn target(link: PathBuf) -> Option<String> {
    Some(fs::canonicalize(link).ok()?.file_name()?.to_str()?.to_owned())
}

pub(super) fn driver_of(path: &Path) -> Option<String> {
    target(path.join("driver"))
}

pub(super) fn group_of(path: &Path) -> Option<u32> {
    target(path.join("iommu_group"))?.parse().ok()
}

/// A group can be used when no device in it belongs to a driver that may do DMA in the kernel's
/// name.
pub(super) fn check_group(path: &Path, address: &str, group: u32) -> Result<(), VfioError> {
    let refused = |source| VfioError::Refused { address: address.to_owned(), what: "read its IOMMU group", source };
    for entry in fs::read_dir(path.join("iommu_group/devices")).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        // Its own driver is for the caller to judge.
        if entry.file_name() == address {
            continue;
        }
        let Some(driver) = driver_of(&entry.path()) else { continue };
        if !driver.starts_with("vfio") && !HARMLESS_DRIVERS.contains(&driver.as_str()) {
            let other = entry.file_name().to_string_lossy().into_owned();
            return Err(VfioError::NotViable { address: address.to_owned(), group, other, driver });
        }
    }
    Ok(())
}

/// Where a process maps the PM window from, other than from VFIO.
#[derive(Debug)]
pub(super) struct WindowFile {
    pub file: fs::File,
    /// Where in the file the window begins.
    pub offset: u64,
    /// How the file is mapped.
    pub caching: Caching,
}

impl WindowFile {
    /// Maps a range of the window.
    pub fn map(&self, range: Range<u64>, asked: Caching) -> io::Result<Box<dyn Mapping>> {
        // A device's file has no length; a BAR's has that of the BAR.
        let metadata = self.file.metadata()?;
        if metadata.is_file() && metadata.len() < self.offset + range.end {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file of the window is shorter than the BAR"));
        }
        window::map_file(&self.file, self.offset + range.start, range.end - range.start, self.caching, asked)
    }
}

/// Opens what the PM window is mapped from in a mode; `None` where that is VFIO itself.
///
/// Write-combining is a file of sysfs beside the BAR's, which is there for a prefetchable BAR.
/// Write-back is the machine's memory at the addresses of the BAR: the kernel maps that as the
/// MTRRs say, and only where nothing forbids it.
pub(super) fn window_file(
    place: &SysfsDevice,
    caching: Caching,
    roots: &Roots,
) -> Result<Option<WindowFile>, VfioError> {
    let (path, offset) = match caching {
        Caching::Uncached => return Ok(None),
        Caching::WriteCombining => (place.path.join(format!("resource{PM_BAR}_wc")), Ok(0)),
        Caching::WriteBack => (roots.dev.join("mem"), bar_address(&place.path, PM_BAR)),
    };
    let open = |offset| {
        let file = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Some(WindowFile { file, offset, caching }))
    };
    offset.and_then(open).map_err(|source: io::Error| VfioError::NoWindow {
        address: place.address.clone(),
        caching,
        path: path.display().to_string(),
        source,
    })
}

/// Where a BAR lies: each line of the file `resource` has the first and the last address of one,
/// and its flags.
fn bar_address(path: &Path, bar: usize) -> io::Result<u64> {
    let text = fs::read_to_string(path.join("resource"))?;
    let word = text.lines().nth(bar).and_then(|line| line.split_whitespace().next());
    let address = word.and_then(|word| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok());
    address
        .filter(|&address| address != 0)
        .ok_or_else(|| io::Error::other("the kernel does not say where the BAR lies"))
}

/// A machine for tests, made of folders.
#[cfg(test)]
pub(super) mod fixture {
    use std::os::unix::fs::symlink;

    use super::*;

    pub(in crate::vfio) const CARD: &str = "0000:01:00.0";

    /// A folder that looks like the kernel's for one card, alone in its group and bound to
    /// vfio-pci.
    pub(in crate::vfio) struct Machine {
        folder: tempfile::TempDir,
    }

    impl Machine {
        pub(in crate::vfio) fn new() -> Machine {
            let machine = Machine { folder: tempfile::tempdir().unwrap() };
            for folder in
                ["sys/bus/pci/devices", "sys/bus/pci/drivers", "sys/kernel/iommu_groups/17/devices", "dev/vfio"]
            {
                fs::create_dir_all(machine.path(folder)).unwrap();
            }
            machine.plug(CARD, PCI_VENDOR, PCI_DEVICE, Some("vfio-pci"));
            for file in ["dev/vfio/vfio", "dev/vfio/17"] {
                fs::write(machine.path(file), []).unwrap();
            }
            machine
        }

        pub(in crate::vfio) fn path(&self, inside: &str) -> PathBuf {
            self.folder.path().join(inside)
        }

        pub(in crate::vfio) fn device(&self, address: &str) -> PathBuf {
            self.path("sys/bus/pci/devices").join(address)
        }

        pub(in crate::vfio) fn plug(&self, address: &str, vendor: u16, device: u16, driver: Option<&str>) {
            let path = self.device(address);
            let group = self.path("sys/kernel/iommu_groups/17");
            fs::create_dir(&path).unwrap();
            fs::write(path.join("vendor"), format!("{vendor:#06x}\n")).unwrap();
            fs::write(path.join("device"), format!("{device:#06x}\n")).unwrap();
            symlink(&group, path.join("iommu_group")).unwrap();
            symlink(&path, group.join("devices").join(address)).unwrap();
            if let Some(driver) = driver {
                self.bind(address, driver);
            }
        }

        pub(in crate::vfio) fn bind(&self, address: &str, driver: &str) {
            let folder = self.path("sys/bus/pci/drivers").join(driver);
            fs::create_dir_all(&folder).unwrap();
            let link = self.device(address).join("driver");
            let _ = fs::remove_file(&link);
            symlink(folder, link).unwrap();
        }

        pub(in crate::vfio) fn roots(&self) -> Roots {
            Roots { sysfs: self.path("sys"), dev: self.path("dev") }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fixture::{CARD, Machine};
    use super::*;

    #[test]
    fn addresses_are_read_as_lspci_writes_them() {
        for (text, full) in [
            (CARD, CARD),
            ("01:00.0", CARD),
            ("0000:AF:1f.7", "0000:af:1f.7"),
            ("10000:01:00.0", "10000:01:00.0"),
            ("0001:ff:00.1", "0001:ff:00.1"),
        ] {
            assert_eq!(parse(text).unwrap(), full);
        }
        for text in [
            "",
            "card",
            "01:00",
            "0000:01:00",
            "0000:01:20.0",
            "0000:01:00.8",
            "0000:1:00.0",
            "000:01:00.0",
            "0000:01:00.0 ",
            "0000:01:00.00",
            "0000:+1:00.0",
            "0:0:0:0.0",
            "0000:01:00.0/../x",
            "../../etc:00.0",
            "ｘ:00.0",
        ] {
            let error = parse(text).unwrap_err();
            assert!(matches!(&error, VfioError::BadAddress { text: said } if said == text), "{text:?}: {error}");
        }
    }

    impl Machine {
        fn find(&self) -> Result<SysfsDevice, VfioError> {
            find(CARD, &self.roots())
        }

        /// The refusal, whose text names the address and what to do.
        fn refusal(&self, remedy: &str) -> VfioError {
            let error = self.find().unwrap_err();
            let text = error.to_string();
            assert!(text.contains(CARD) && text.contains(remedy), "{text}");
            error
        }
    }

    #[test]
    fn a_card_that_is_ready_is_found_with_its_group() {
        let machine = Machine::new();
        let place = machine.find().unwrap();
        assert_eq!((place.address.as_str(), place.group), (CARD, 17));
        assert_eq!(place.path, machine.device(CARD));
    }

    #[test]
    fn an_absent_and_a_foreign_device_are_refused_before_anything_is_opened() {
        let machine = Machine::new();
        fs::remove_dir_all(machine.device(CARD)).unwrap();
        assert!(matches!(machine.refusal("lspci"), VfioError::Absent { .. }));
        let _ = fs::remove_file(machine.path("sys/kernel/iommu_groups/17/devices").join(CARD));
        machine.plug(CARD, 0x8086, 0x1533, Some("vfio-pci"));
        assert!(matches!(machine.refusal("lspci"), VfioError::Foreign { vendor: 0x8086, device: 0x1533, .. }));
        fs::write(machine.device(CARD).join("vendor"), "nonsense").unwrap();
        assert!(matches!(machine.refusal("dmesg"), VfioError::Refused { .. }));
    }

    #[test]
    fn a_card_of_another_driver_or_of_none_is_refused() {
        let machine = Machine::new();
        machine.bind(CARD, "xdma");
        assert!(matches!(machine.refusal("nearpm card bind"), VfioError::NotBound { driver, .. } if driver == "xdma"));
        fs::remove_file(machine.device(CARD).join("driver")).unwrap();
        assert!(
            matches!(machine.refusal("nearpm card bind"), VfioError::NotBound { driver, .. } if driver == "no driver")
        );
    }

    #[test]
    fn a_group_is_viable_without_drivers_of_the_kernel_in_it() {
        let machine = Machine::new();
        for (address, driver) in
            [("0000:00:01.0", Some("pcieport")), ("0000:01:00.1", None), ("0000:01:00.2", Some("vfio-pci"))]
        {
            machine.plug(address, 0x8086, 1, driver);
            machine.find().unwrap();
        }
        machine.plug("0000:01:00.3", 0x8086, 1, Some("nvme"));
        match machine.refusal("unbind") {
            VfioError::NotViable { group: 17, other, driver, .. } => {
                assert_eq!((other.as_str(), driver.as_str()), ("0000:01:00.3", "nvme"));
            }
            other => panic!("{other}"),
        }
        fs::remove_file(machine.device(CARD).join("iommu_group")).unwrap();
        assert!(matches!(machine.refusal("intel_iommu=on"), VfioError::NoIommu { .. }));
    }

    /// What a window of a mode has stored stands in the file that it was mapped from, at its place.
    fn stores_arrive(machine: &Machine, caching: Caching, file: &str, start: u64) {
        let place = machine.find().unwrap();
        let window = window_file(&place, caching, &machine.roots()).unwrap().unwrap();
        assert_eq!((window.caching, window.offset), (caching, start));
        for asked in [Caching::WriteBack, Caching::Uncached] {
            let mapping = window.map(8192..16384, asked).unwrap();
            let data = [asked as u8 + 1; 100];
            mapping.store(50, &data);
            mapping.write_back(50, 100);
            mapping.fence();
            let bytes = fs::read(machine.path(file)).unwrap();
            assert_eq!(bytes[start as usize + 8192 + 50..][..100], data);
        }
    }

    #[test]
    fn a_window_is_mapped_from_what_its_mode_needs() {
        let machine = Machine::new();
        let place = machine.find().unwrap();
        assert!(window_file(&place, Caching::Uncached, &machine.roots()).unwrap().is_none(), "VFIO maps it");
        let folder = format!("sys/bus/pci/devices/{CARD}");
        fs::write(machine.path(&folder).join("resource4_wc"), vec![0; 32768]).unwrap();
        stores_arrive(&machine, Caching::WriteCombining, &format!("{folder}/resource4_wc"), 0);
        let line = |start: u64| format!("{start:#018x} {:#018x} 0x000000000014220c\n", start + 0x7fff);
        let lines: String = [0xfe00_0000, 0, 0xfd00_0000, 0, 0x1_0000].map(line).concat();
        fs::write(machine.path(&folder).join("resource"), lines).unwrap();
        fs::write(machine.path("dev/mem"), vec![0; 0x1_8000]).unwrap();
        stores_arrive(&machine, Caching::WriteBack, "dev/mem", 0x1_0000);
    }

    #[test]
    fn a_mode_that_the_machine_does_not_offer_is_refused_with_what_to_take() {
        let machine = Machine::new();
        let place = machine.find().unwrap();
        let refusal = |caching| window_file(&place, caching, &machine.roots()).unwrap_err().to_string();
        let text = refusal(Caching::WriteCombining);
        assert!(text.contains("resource4_wc") && text.contains("window=uncached"), "{text}");
        assert!(refusal(Caching::WriteBack).contains("dev/mem"));
        fs::write(machine.device(CARD).join("resource"), "0x0 0x0 0x0\n").unwrap();
        assert!(refusal(Caching::WriteBack).contains("where the BAR lies"));
        // What is shorter than the card's window is not mapped: memory beyond its end would be a
        // signal.
        fs::write(machine.device(CARD).join("resource4_wc"), [0; 4096]).unwrap();
        let window = window_file(&place, Caching::WriteCombining, &machine.roots()).unwrap().unwrap();
        assert!(window.map(4096..8192, Caching::WriteBack).is_err());
    }

    #[test]
    fn a_kernel_without_vfio_is_said_with_the_file_that_is_missing() {
        for file in ["dev/vfio/17", "dev/vfio/vfio"] {
            let machine = Machine::new();
            fs::remove_file(machine.path(file)).unwrap();
            match machine.refusal("modprobe vfio-pci") {
                VfioError::NoVfio { path, .. } => assert!(path.ends_with(file), "{path}"),
                other => panic!("{other}"),
            }
        }
    }
}
