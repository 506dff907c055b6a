//! What to run, how, and how it ended.

use crate::{ArgumentError, Arguments, Counts, Fault, Schedule};

/// The shape and arguments of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Blocks: x, y, z, none zero.
    pub grid: [u32; 3],
    /// Threads of a block: x, y, z, none zero, at most 1024 in all.
    pub block: [u32; 3],
    /// Bytes of `extern __shared__` memory of each block.
    pub shared_bytes: u32,
    /// Values of the kernel's parameters.
    pub arguments: Arguments,
}

impl Launch {
    /// A one-dimensional launch without `extern __shared__` memory.
    pub fn linear(blocks: u32, threads: u32, arguments: Arguments) -> Self {
        Self { grid: [blocks, 1, 1], block: [threads, 1, 1], shared_bytes: 0, arguments }
    }
}

/// How closely persistent memory is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persistence {
    /// Memory only: the fastest.
    #[default]
    Off,
    /// Transactions with persistent memory are counted.
    Counted,
    /// Counted, and which stores have persisted is tracked: needed to crash.
    Tracked,
}

/// Where to stop before the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stop {
    /// Run to the end.
    #[default]
    Never,
    /// After this many steps (warp instructions) of the launch.
    Step(u64),
    /// After this many persist events: steps that store to persistent memory or fence at system
    /// scope. Between two of them what may have persisted does not change, so stopping after each
    /// visits every distinct crash state. Needs [`Persistence::Counted`] or
    /// [`Persistence::Tracked`].
    PersistEvent(u64),
}

/// Receives one line of text a step: step, warp, lanes, PTX line, instruction.
pub type Trace = Box<dyn FnMut(&str) + Send>;

/// How to run a launch.
pub struct Run {
    /// Which warp runs when. [`Schedule::Replay`] records its choices here.
    pub schedule: Schedule,
    /// Where to stop.
    pub stop_at: Stop,
    /// How closely persistent memory is followed.
    pub persistence: Persistence,
    /// Warp instructions after which the kernel is said not to end.
    pub budget: u64,
    /// Where to report each step.
    pub trace: Option<Trace>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            schedule: Schedule::RoundRobin,
            stop_at: Stop::Never,
            persistence: Persistence::Off,
            budget: 10_000_000_000,
            trace: None,
        }
    }
}

/// How a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// All threads ended; everything stored has persisted.
    Done,
    /// At [`Run::stop_at`]: crash it, look at it, or [`crate::Gpu::resume`] it.
    Stopped,
}

/// The end of a launch, or of a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How.
    pub ended: Ended,
    /// What was done since the launch began.
    pub counts: Counts,
}

/// A launch that was refused, or ended by a fault.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LaunchError {
    /// The arguments do not fit the kernel.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// The grid, block or shared memory cannot be had.
    #[error("launch of {kernel}: {reason}")]
    Shape { kernel: String, reason: String },
    /// Nothing to resume: no launch is stopped.
    #[error("no launch is stopped")]
    NotStopped,
    /// The device has no room for the module's variables.
    #[error("launch of {kernel}: {reason}")]
    Memory { kernel: String, reason: String },
    /// The kernel did what it must not.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}
