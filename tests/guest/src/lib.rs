//! The simulated card as a real PCI device: of a virtual machine, whose kernel hands it to the
//! driver through VFIO.
//!
//! | module | holds |
//! |---|---|
//! | [`packages`] | kernel and QEMU, from Debian's packages, unpacked and not installed |
//! | [`cxl`] | the second form: a pool on persistent memory that is no card |
//! | [`image`] | the initramfs: our programs, their libraries, the kernel's modules of VFIO |
//! | [`machine`] | QEMU, and its serial line |
//! | [`simulator`] | `nearpm-sim`, which is the card |
//! | [`trial`] | a life, a power cut, a second life, and the verdict |
//! | [`message`] | what the guest says on the serial line |
//! | [`task`] | what the guest is told on the kernel's command line |
//! | [`work`] | what the guest does with the card |
//!
//! **Who says what.** QEMU ends without an error whatever the guest did, so that only the serial
//! line counts. What was acknowledged is what stood there before the card had gone; the second
//! guest is told so from outside and has to find it.

#![deny(unsafe_code)]
#![warn(missing_docs)]

pub mod cxl;
pub mod image;
pub mod machine;
pub mod message;
pub mod packages;
pub mod simulator;
pub mod task;
pub mod trial;
pub mod work;
