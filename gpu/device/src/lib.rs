//! Devices that run kernels on persistent memory (PM): a GPU through the CUDA driver, or the
//! interpreter of `nearpm-ptx`, which can be crashed.
//!
//! | module | holds |
//! |---|---|
//! | [`device`](Device) | what a device does: memory, PM, launches, times |
//! | [`kernel`](Kernel) | kernels as PTX text, and launches of them |
//! | `interpreted` | the interpreter as a device |
//! | `cuda` (feature) | a GPU as a device |
//! | `compiled` | the processor as a device, for kernels that g++ compiles: a second oracle |
//! | `medium` | files that PM is made of |
//! | `region` | a PM file with named objects, in the pool format's terms: sealed head, directory, offsets |
//! | `durability` | what "durable" means, by name, and the copy to a disk file |
//!
//! The same kernel text runs on both devices: `gpu/kernels/*.cu`, compiled to PTX and committed.

#![warn(missing_docs)]

mod buffer;
mod compiled;
#[cfg(feature = "cuda")]
mod cuda;
mod device;
mod durability;
mod error;
mod flush;
mod interpreted;
mod kernel;
mod medium;
mod region;

pub use buffer::Buffer;
pub use compiled::Compiled;
#[cfg(feature = "cuda")]
pub use cuda::Cuda;
pub use device::{Aside, Attached, Counts, Device, Elapsed, Measured};
pub use durability::{Drained, Durability, LinkState, link_state};
pub use error::Error;
pub use flush::{persist, persist_scattered, persist_with_threads, store_pieces};
pub use interpreted::{Changes, CrashPlan, Interpreted, Leaves, Moment, States, Survives, Watch, Watched};
pub use kernel::{Argument, Kernel, Launch, Module};
pub use medium::{Medium, Pinnable};
pub use nearpm_ptx::{Choice, Explored, Schedule, Stop, Visited, every_schedule};
pub use region::{Access, Object, ObjectKind, PmRegion};
