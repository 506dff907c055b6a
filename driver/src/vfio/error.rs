//! Why a card cannot be reached through VFIO, and what to do about it.

use crate::pci::Caching;

nearpm_interface::debug_as_display!(VfioError);

/// Why [`super::open`] gave up. Nothing on the card was changed, unless the variant says so.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum VfioError {
    /// The text is no PCI address.
    #[error(
        "{text:?} is not a PCI address: write domain, bus, device and function as `lspci -D` does, such as 0000:01:00.0"
    )]
    BadAddress {
        /// What was given.
        text: String,
    },
    /// Nothing at this address.
    #[error(
        "there is no PCI device {address}: look for the card with `lspci -D -d {vendor:04x}:{device:04x}`, and check its slot and its bitstream"
    )]
    Absent {
        /// Where.
        address: String,
        /// Vendor of a NearPM card.
        vendor: u16,
        /// Device of a NearPM card.
        device: u16,
    },
    /// Another device, which was not touched.
    #[error(
        "PCI device {address} is {vendor:04x}:{device:04x} and not a NearPM card; it was left alone: give the card's address (`lspci -D`)"
    )]
    Foreign {
        /// Where.
        address: String,
        /// Vendor that was found.
        vendor: u16,
        /// Device that was found.
        device: u16,
    },
    /// The device belongs to another driver of the kernel, or to none.
    #[error(
        "PCI device {address} is bound to {driver} instead of vfio-pci: load vfio-pci (`modprobe vfio-pci`) and bind it (`nearpm card bind {address}`)"
    )]
    NotBound {
        /// Where.
        address: String,
        /// Its driver, or "no driver".
        driver: String,
    },
    /// The device was to be given back by vfio-pci, which has it not.
    #[error("PCI device {address} is bound to {driver} and not to vfio-pci: it was left alone")]
    NotOurs {
        /// Where.
        address: String,
        /// Its driver.
        driver: String,
    },
    /// The user may not change drivers.
    #[error(
        "no permission to write {path}, by which PCI device {address} changes its driver: run this as root; in a container, have it done outside"
    )]
    NotAllowed {
        /// Where.
        address: String,
        /// The file.
        path: String,
    },
    /// No IOMMU stands between the device and memory.
    #[error(
        "PCI device {address} has no IOMMU group: switch the IOMMU on in the machine's set-up (VT-d, AMD-Vi) and for the kernel (intel_iommu=on)"
    )]
    NoIommu {
        /// Where.
        address: String,
    },
    /// The kernel offers no VFIO.
    #[error(
        "{path} does not exist, so PCI device {address} cannot be reached through VFIO: load vfio-pci (`modprobe vfio-pci`); in a container, pass the file in"
    )]
    NoVfio {
        /// Where.
        address: String,
        /// The file that is missing.
        path: String,
    },
    /// Another device of the IOMMU group belongs to a driver of the kernel.
    #[error(
        "the IOMMU group {group} of PCI device {address} is not viable, because {other} in it is bound to {driver}: unbind that device or bind it to vfio-pci, or move the card to another slot"
    )]
    NotViable {
        /// Where.
        address: String,
        /// Number of the group.
        group: u32,
        /// Address of the other device.
        other: String,
        /// Its driver.
        driver: String,
    },
    /// Somebody else has the group open.
    #[error(
        "the IOMMU group {group} of PCI device {address} is open already: end the other user of the card (`fuser -v /dev/vfio/{group}`)"
    )]
    Busy {
        /// Where.
        address: String,
        /// Number of the group.
        group: u32,
    },
    /// The PM window cannot be mapped in the mode that was asked for.
    #[error(
        "the PM window of PCI device {address} cannot be mapped with window={caching} from {path} ({source}): take window=uncached, which every machine has, or see docs/board.md for what this mode needs"
    )]
    NoWindow {
        /// Where.
        address: String,
        /// The mode.
        caching: Caching,
        /// What it would be mapped from.
        path: String,
        /// Why it is not.
        source: std::io::Error,
    },
    /// The user may not open the group.
    #[error(
        "no permission for /dev/vfio/{group}, the IOMMU group of PCI device {address}: give the user the file (`chown`), or run as root"
    )]
    NoPermission {
        /// Where.
        address: String,
        /// Number of the group.
        group: u32,
    },
    /// The kernel refused something else.
    #[error(
        "PCI device {address}: cannot {what} ({source}): the kernel's log (`dmesg`) has the reason; then open it again"
    )]
    Refused {
        /// Where.
        address: String,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: std::io::Error,
    },
}
