//! The decoded form of a kernel: dense register numbers, resolved operands, branch targets as
//! indexes.

mod operation;

use crate::Parameter;
use crate::lanes::Lanes;
pub use operation::Scope;
pub(crate) use operation::{
    Address, Atomic, AtomicOp, BarrierMode, Compare, Load, Logic, Op, Order, ShuffleMode, Space, Store, VoteMode,
};

/// A source: a register of the warp, or (with the top bit) a constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source(pub u32);

impl Source {
    const CONSTANT: u32 = 1 << 31;

    pub fn constant(index: usize) -> Source {
        Source(index as u32 | Self::CONSTANT)
    }

    #[inline(always)]
    pub fn of<'a>(self, registers: &'a [Box<Lanes>], constants: &'a [Lanes]) -> &'a Lanes {
        if self.0 & Self::CONSTANT == 0 {
            &registers[self.0 as usize]
        } else {
            &constants[(self.0 & !Self::CONSTANT) as usize]
        }
    }

    /// The constant's index, if it is one.
    pub fn constant_index(self) -> Option<usize> {
        (self.0 & Self::CONSTANT != 0).then_some((self.0 & !Self::CONSTANT) as usize)
    }
}

/// A register that is written.
pub(crate) type Register = u32;
/// A predicate register: one bit a lane.
pub(crate) type Predicate = u32;

#[derive(Clone, Debug)]
pub(crate) struct Ins {
    pub op: Op,
    /// Executed by the lanes where the predicate is set, or with `true` where it is not.
    pub guard: Option<(Predicate, bool)>,
    pub line: u32,
}

/// What a register holds when a warp starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    ThreadIndex(usize),
    BlockSize(usize),
    BlockIndex(usize),
    GridSize(usize),
    Lane,
    Warp,
    Warps,
    LaneMask(LaneMask),
    /// `%smid`, `%nsmid`, `%gridid`: the resident slot, their number, the launch.
    Processor,
    Processors,
    Grid,
    DynamicShared,
    TotalShared,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum LaneMask {
    Equal,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
}

/// Where a constant's final value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Base {
    Global,
    Const,
    /// After the kernel's own shared variables.
    DynamicShared,
}

/// A variable's image in a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub bytes: Vec<u8>,
    /// Places that hold an address: offset here, base, offset from it.
    pub addresses: Vec<(usize, Base, u64)>,
}

/// Variables of a module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    pub global: Image,
    pub constant: Image,
    /// Name, base, offset, bytes.
    pub names: Vec<(String, Base, u64, u64)>,
}

/// Registers and predicates that are read on some way from an instruction on before they are
/// written.
#[derive(Clone, Debug)]
pub(crate) struct Live {
    pub registers: Box<[Register]>,
    pub predicates: Box<[Predicate]>,
}

/// A decoded kernel.
#[derive(Debug)]
pub(crate) struct Code {
    pub name: String,
    pub parameters: Vec<Parameter>,
    pub parameter_bytes: usize,
    pub most_threads: Option<u64>,
    pub instructions: Vec<Ins>,
    pub registers: usize,
    pub predicates: usize,
    /// Each constant: what it is relative to, and its value.
    pub constants: Vec<(Option<Base>, u64)>,
    pub specials: Vec<(Special, Register)>,
    /// [`crate::liveness::read_before_written`], when it was first asked for.
    pub zeroed: std::sync::OnceLock<Box<[Register]>>,
    /// [`crate::liveness::live_before_each`], likewise.
    pub live: std::sync::OnceLock<Box<[Live]>>,
    /// Bytes of the kernel's own shared variables.
    pub shared_bytes: u64,
    pub local_bytes: u64,
    pub variables: std::sync::Arc<Variables>,
    /// The text, for traces.
    pub text: std::sync::Arc<str>,
}

/// First byte of each window of generic addresses. The lowest 4 GiB are never mapped.
pub(crate) const SHARED_WINDOW: u64 = 1 << 32;
pub(crate) const LOCAL_WINDOW: u64 = 2 << 32;
pub(crate) const PARAM_WINDOW: u64 = 3 << 32;
