//! Gives a card to vfio-pci and takes it away again, through sysfs.
//!
//! A device is bound by name (`driver_override`), so that no other device of the machine changes
//! its driver. Everything that can be known is checked before anything is written: a device that is
//! refused was left alone.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::error::VfioError;
use super::place::{self, Roots, check_group, driver_of, group_of};

/// The driver of the kernel that hands devices to processes.
const VFIO_PCI: &str = "vfio-pci";

/// What [`bind`] and [`unbind`] have done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Address of the card in full.
    pub address: String,
    /// The driver that it had before; `None` where it had none.
    pub before: Option<String>,
    /// The driver that it has now; `None` where it has none.
    pub now: Option<String>,
}

impl Change {
    /// Whether anything was changed.
    pub fn is_new(&self) -> bool {
        self.before != self.now
    }
}

/// Binds the card at a PCI address to vfio-pci, away from the driver that it has. Needs root, as a
/// rule.
///
/// # Errors
/// What is missing, one variant of [`VfioError`] each. Where the kernel does not bind it, the card
/// is given to the driver that the kernel finds for it.
pub fn bind(address: &str) -> Result<Change, VfioError> {
    bind_in(address, &Roots::default(), &Kernel)
}

/// Takes the card at a PCI address from vfio-pci and lets the kernel find the driver that it had by
/// nature, if there is one.
///
/// # Errors
/// [`VfioError::Busy`] where a process has the card: the kernel would wait for its end. A card of
/// another driver is left alone.
pub fn unbind(address: &str) -> Result<Change, VfioError> {
    unbind_in(address, &Roots::default(), &Kernel)
}

/// Who acts when a file of sysfs is written.
trait Sysfs {
    fn write(&self, path: &Path, text: &str) -> io::Result<()>;
    /// Whether a file can be opened for use, by this process, now.
    fn try_open(&self, path: &Path) -> io::Result<()>;
}

struct Kernel;

impl Sysfs for Kernel {
    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        fs::write(path, text)
    }

    fn try_open(&self, path: &Path) -> io::Result<()> {
        OpenOptions::new().read(true).write(true).open(path).map(drop)
    }
}

/// A card whose driver changes.
struct Device<'a> {
    address: String,
    path: PathBuf,
    roots: &'a Roots,
    sysfs: &'a dyn Sysfs,
}

impl<'a> Device<'a> {
    fn find(text: &str, roots: &'a Roots, sysfs: &'a dyn Sysfs) -> Result<Device<'a>, VfioError> {
        let (address, path) = place::find_card(text, roots)?;
        Ok(Device { address, path, roots, sysfs })
    }

    fn driver(&self) -> Option<String> {
        driver_of(&self.path)
    }

    fn write(&self, path: &Path, text: &str, what: &'static str) -> Result<(), VfioError> {
        self.sysfs.write(path, text).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                VfioError::NotAllowed { address: self.address.clone(), path: path.display().to_string() }
            }
            _ => VfioError::Refused { address: self.address.clone(), what, source },
        })
    }

    /// Names the only driver that may have the device; an empty name lets every driver that knows
    /// it.
    fn reserve_for(&self, driver: &str) -> Result<(), VfioError> {
        self.write(&self.path.join("driver_override"), &format!("{driver}\n"), "choose its driver")
    }

    fn detach(&self) -> Result<(), VfioError> {
        match self.driver() {
            Some(_) => self.write(&self.path.join("driver/unbind"), &self.address, "take it from its driver"),
            None => Ok(()),
        }
    }

    fn probe(&self) -> Result<(), VfioError> {
        self.write(&self.roots.sysfs.join("bus/pci/drivers_probe"), &self.address, "have a driver found for it")
    }

    /// Refuses a card that a process has open: to unbind it would wait until it is closed. One that
    /// opens it between this look and the change is waited for.
    fn check_unused(&self, group: u32) -> Result<(), VfioError> {
        match self.sysfs.try_open(&self.roots.dev.join("vfio").join(group.to_string())) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                Err(VfioError::Busy { address: self.address.clone(), group })
            }
            // Who may not open the group cannot write to sysfs either, and is told so there.
            _ => Ok(()),
        }
    }
}

fn bind_in(text: &str, roots: &Roots, sysfs: &dyn Sysfs) -> Result<Change, VfioError> {
    let device = Device::find(text, roots, sysfs)?;
    let before = device.driver();
    let group = group_of(&device.path).ok_or_else(|| VfioError::NoIommu { address: device.address.clone() })?;
    check_group(&device.path, &device.address, group)?;
    let driver = roots.sysfs.join("bus/pci/drivers").join(VFIO_PCI);
    if !driver.exists() {
        return Err(VfioError::NoVfio { address: device.address, path: driver.display().to_string() });
    }
    if before.as_deref() != Some(VFIO_PCI) {
        device.reserve_for(VFIO_PCI)?;
        let bound = device.detach().and_then(|()| device.probe());
        let now = device.driver();
        if bound.is_err() || now.as_deref() != Some(VFIO_PCI) {
            // What it had is better than nothing. That this fails, too, would not be news.
            let _ = device.reserve_for("").and_then(|()| device.probe());
            bound?;
            let source = io::Error::other(format!("it is bound to {}", now.as_deref().unwrap_or("no driver")));
            return Err(VfioError::Refused { address: device.address, what: "bind it to vfio-pci", source });
        }
    }
    Ok(Change { now: device.driver(), address: device.address, before })
}

fn unbind_in(text: &str, roots: &Roots, sysfs: &dyn Sysfs) -> Result<Change, VfioError> {
    let device = Device::find(text, roots, sysfs)?;
    let before = device.driver();
    match before.as_deref() {
        Some(VFIO_PCI) => {
            if let Some(group) = group_of(&device.path) {
                device.check_unused(group)?;
            }
            device.reserve_for("")?;
            device.detach()?;
            device.probe()?;
        }
        Some(other) => return Err(VfioError::NotOurs { address: device.address, driver: other.to_owned() }),
        None => {}
    }
    Ok(Change { now: device.driver(), address: device.address, before })
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::place::fixture::{CARD, Machine};
    use super::*;

    /// Does to the folder what Linux does when its files are written (drivers/base/bus.c,
    /// drivers/pci/pci-driver.c).
    struct FakeKernel<'a> {
        machine: &'a Machine,
        /// The driver that knows the card by its numbers.
        natural: Option<&'static str>,
        /// vfio-pci does not take the card.
        refuses: Cell<bool>,
        /// What opening the group answers, and what writing does.
        open: Cell<Option<io::ErrorKind>>,
        write: Cell<Option<io::ErrorKind>>,
        written: RefCell<Vec<String>>,
    }

    impl<'a> FakeKernel<'a> {
        fn new(machine: &'a Machine) -> FakeKernel<'a> {
            fs::create_dir_all(machine.path("sys/bus/pci/drivers/vfio-pci")).unwrap();
            fs::write(machine.device(CARD).join("driver_override"), "(null)\n").unwrap();
            let (refuses, open, write, written) = Default::default();
            FakeKernel { machine, natural: None, refuses, open, write, written }
        }

        fn bind(&self) -> Result<Change, VfioError> {
            bind_in(CARD, &self.machine.roots(), self)
        }

        fn unbind(&self) -> Result<Change, VfioError> {
            unbind_in("01:00.0", &self.machine.roots(), self)
        }

        fn probe(&self) {
            let reserved = fs::read_to_string(self.machine.device(CARD).join("driver_override")).unwrap();
            let driver = match reserved.trim() {
                "" | "(null)" => self.natural,
                "vfio-pci" if !self.refuses.get() => Some("vfio-pci"),
                _ => None,
            };
            if let Some(driver) = driver {
                self.machine.bind(CARD, driver);
            }
        }

        fn override_now(&self) -> String {
            fs::read_to_string(self.machine.device(CARD).join("driver_override")).unwrap()
        }
    }

    impl Sysfs for FakeKernel<'_> {
        fn write(&self, path: &Path, text: &str) -> io::Result<()> {
            if let Some(kind) = self.write.get() {
                return Err(kind.into());
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            self.written.borrow_mut().push(format!("{name}={}", text.trim()));
            match name {
                "driver_override" => fs::write(path, text),
                "unbind" if text == CARD => fs::remove_file(self.machine.device(CARD).join("driver")),
                "drivers_probe" if text == CARD => {
                    self.probe();
                    Ok(())
                }
                other => panic!("{other} is written with {text:?}"),
            }
        }

        fn try_open(&self, path: &Path) -> io::Result<()> {
            assert!(path.ends_with("dev/vfio/17"), "{}", path.display());
            self.open.get().map_or(Ok(()), |kind| Err(kind.into()))
        }
    }

    fn driver(name: &str) -> Option<String> {
        Some(name.to_owned())
    }

    #[test]
    fn a_card_goes_to_vfio_and_back_to_the_driver_that_it_had() {
        let machine = Machine::new();
        machine.bind(CARD, "xdma");
        let kernel = FakeKernel { natural: Some("xdma"), ..FakeKernel::new(&machine) };
        let change = kernel.bind().unwrap();
        assert_eq!((change.before.clone(), change.now.clone()), (driver("xdma"), driver("vfio-pci")));
        assert!(change.is_new() && change.address == CARD);
        let steps = ["driver_override=vfio-pci".to_owned(), format!("unbind={CARD}"), format!("drivers_probe={CARD}")];
        assert_eq!(*kernel.written.borrow(), steps);
        place::find(CARD, &machine.roots()).unwrap();
        assert!(!kernel.bind().unwrap().is_new(), "twice is once");
        assert_eq!(kernel.written.borrow().len(), 3, "nothing is written where nothing is to be done");
        assert_eq!(kernel.unbind().unwrap().now, driver("xdma"));
        assert_eq!(kernel.override_now().trim(), "");
    }

    #[test]
    fn a_card_without_a_driver_is_bound_and_has_none_again() {
        let machine = Machine::new();
        fs::remove_file(machine.device(CARD).join("driver")).unwrap();
        let kernel = FakeKernel::new(&machine);
        assert_eq!(kernel.bind().unwrap().before, None);
        assert_eq!(kernel.unbind().unwrap(), Change { address: CARD.into(), before: driver("vfio-pci"), now: None });
        assert!(!kernel.unbind().unwrap().is_new());
    }

    #[test]
    fn what_is_missing_is_said_before_anything_is_written() {
        let machine = Machine::new();
        machine.bind(CARD, "xdma");
        let kernel = FakeKernel::new(&machine);
        let refused = |remedy: &str| {
            let error = kernel.bind().unwrap_err();
            let text = error.to_string();
            assert!(text.contains(CARD) && text.contains(remedy), "{text}");
            assert!(kernel.written.borrow().is_empty(), "{text}");
            error
        };
        machine.plug("0000:01:00.1", 0x8086, 1, Some("nvme"));
        assert!(matches!(refused("unbind that device"), VfioError::NotViable { driver, .. } if driver == "nvme"));
        machine.bind("0000:01:00.1", "vfio-pci");
        fs::remove_dir(machine.path("sys/bus/pci/drivers/vfio-pci")).unwrap();
        assert!(matches!(refused("modprobe vfio-pci"), VfioError::NoVfio { .. }));
        fs::remove_file(machine.device(CARD).join("iommu_group")).unwrap();
        assert!(matches!(refused("intel_iommu=on"), VfioError::NoIommu { .. }));
        fs::write(machine.device(CARD).join("vendor"), "0x8086").unwrap();
        assert!(matches!(refused("left alone"), VfioError::Foreign { .. }));
        fs::remove_dir_all(machine.device(CARD)).unwrap();
        assert!(matches!(refused("lspci"), VfioError::Absent { .. }));
        assert!(matches!(bind_in("slot 3", &machine.roots(), &kernel), Err(VfioError::BadAddress { .. })));
    }

    #[test]
    fn a_user_without_the_right_is_told_which_file_it_is() {
        let machine = Machine::new();
        machine.bind(CARD, "xdma");
        let kernel = FakeKernel::new(&machine);
        for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
            kernel.write.set(Some(kind));
            let error = kernel.bind().unwrap_err();
            assert!(
                matches!(&error, VfioError::NotAllowed { path, .. } if path.ends_with("driver_override")),
                "{error}"
            );
            assert!(error.to_string().contains("root"), "{error}");
        }
        assert_eq!(driver_of(&machine.device(CARD)), driver("xdma"));
    }

    #[test]
    fn a_card_that_vfio_does_not_take_goes_back_to_its_driver() {
        let machine = Machine::new();
        machine.bind(CARD, "xdma");
        let kernel = FakeKernel { natural: Some("xdma"), ..FakeKernel::new(&machine) };
        kernel.refuses.set(true);
        let error = kernel.bind().unwrap_err();
        assert!(matches!(&error, VfioError::Refused { what: "bind it to vfio-pci", .. }), "{error}");
        assert!(error.to_string().contains("dmesg") && error.to_string().contains("no driver"), "{error}");
        assert_eq!(driver_of(&machine.device(CARD)), driver("xdma"));
        assert_eq!(kernel.override_now().trim(), "");
    }

    #[test]
    fn a_card_in_use_and_a_card_of_another_driver_are_not_unbound() {
        let machine = Machine::new();
        let kernel = FakeKernel::new(&machine);
        kernel.open.set(Some(io::ErrorKind::ResourceBusy));
        assert!(matches!(kernel.unbind(), Err(VfioError::Busy { group: 17, .. })));
        kernel.open.set(None);
        machine.bind(CARD, "xdma");
        assert!(matches!(kernel.unbind(), Err(VfioError::NotOurs { driver, .. }) if driver == "xdma"));
        assert!(kernel.written.borrow().is_empty());
    }
}
