#![forbid(unsafe_code)]
#![doc = include_str!("../README.md")]

mod arguments;
mod blocks;
mod code;
mod counting;
mod counts;
mod crash;
mod decode;
mod drive;
mod exec;
mod explore;
mod fault;
mod fingerprint;
mod gpu;
mod lanes;
mod launch;
mod liveness;
mod machine;
mod memory;
mod module;
mod operands;
mod persist;
mod pick;
mod schedule;
mod spare;
mod start;
mod state;
mod stepped;
mod syntax;
mod word;

pub use arguments::{ArgumentError, Arguments};
pub use code::Scope;
pub use counting::Translation;
pub use counts::{CostModel, Counts, FenceCounts, TransactionCounts};
pub use crash::{Choice, Crash, CrashError, Images, PendingStore};
pub use explore::{Reached, Visited, every_state};
pub use fault::{Access, Fault, FaultKind, ThreadId};
pub use gpu::{Config, Gpu};
pub use launch::{Ended, Launch, LaunchError, Outcome, Persistence, Run, Stop, Trace};
pub use memory::{MemoryError, PmRange};
pub use module::{Entry, Module, NoSuchEntry, Parameter, ParseError};
pub use schedule::{Choices, Explored, Schedule, every_schedule};
pub use stepped::{Instruction, Next, Stepped, Unit, WarpAccess, Where};
