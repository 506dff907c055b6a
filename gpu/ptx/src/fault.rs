//! Why a kernel was ended by the interpreter.

use std::fmt;

/// Which thread of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadId {
    /// `blockIdx`: x, y, z.
    pub block: [u32; 3],
    /// `threadIdx`: x, y, z.
    pub thread: [u32; 3],
    /// Number in the grid: `block number * threads a block + thread number`, x fastest.
    pub linear: u64,
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([a, b, c], [x, y, z]) = (self.block, self.thread);
        write!(f, "block ({a},{b},{c}) thread ({x},{y},{z})")
    }
}

/// What an access was to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Load,
    Store,
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Load => "load",
            Access::Store => "store",
            Access::Atomic => "atomic",
        })
    }
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// No allocation holds the whole access.
    #[error("{access} of {bytes} bytes at {address:#x}, which is outside: {near}")]
    Outside { access: Access, address: u64, bytes: u64, near: String },
    /// The address is not a multiple of the size of the access.
    #[error("{access} of {bytes} bytes at {address:#x}, which is not a multiple of {bytes}")]
    Misaligned { access: Access, address: u64, bytes: u64 },
    /// A store to constant memory or to a parameter.
    #[error("{access} at {address:#x} in constant memory")]
    ReadOnly { access: Access, address: u64 },
    /// The kernel called `__assertfail`.
    #[error("assertion `{message}` failed at {file}:{line} in {function}")]
    Assertion { message: String, file: String, line: u32, function: String },
    /// `trap`
    #[error("trap")]
    Trap,
    /// Threads wait for others that ended or wait elsewhere.
    #[error("{barrier} can never complete: {waits}")]
    Barrier { barrier: String, waits: String },
    /// A `brx.idx` with a number that its list does not have.
    #[error("branch number {number} of a list of {targets}")]
    Branch { number: u32, targets: usize },
    /// A barrier, or an instruction of several lanes, with operands that it cannot have.
    #[error("{reason}")]
    BarrierUse { reason: String },
    /// The instruction budget is used up.
    #[error("the kernel did not end within {budget} warp instructions")]
    DoesNotEnd { budget: u64 },
}

/// A kernel that was ended, with what is needed to find and replay it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kernel {kernel}, PTX line {line}, {thread}, step {step} ({schedule}): {kind}")]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// Name of the kernel.
    pub kernel: String,
    /// Line in the PTX text.
    pub line: u32,
    /// The first thread that it happened to.
    pub thread: ThreadId,
    /// Number of the warp instruction in this launch.
    pub step: u64,
    /// The schedule that leads here, e.g. `seed 7`.
    pub schedule: String,
}
