#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod arguments;
mod code;
mod counts;
mod crash;
mod decode;
mod fault;
mod gpu;
mod lanes;
mod launch;
mod module;
mod schedule;
mod syntax;

pub use arguments::{ArgumentError, Arguments};
pub use counts::{CostModel, Counts, FenceCounts, TransactionCounts};
pub use crash::{Choice, Crash, CrashError, Images, PendingStore};
pub use fault::{Access, Fault, FaultKind, ThreadId};
pub use gpu::{Config, Gpu, MemoryError, PmRange};
pub use launch::{Ended, Launch, LaunchError, Outcome, Persistence, Run, Stop, Trace};
pub use module::{Entry, Module, NoSuchEntry, Parameter, ParseError};
pub use schedule::{Explored, Schedule, every_schedule};
