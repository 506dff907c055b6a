//! The decoded form of a kernel: dense register numbers, resolved operands, branch targets as indexes.

use crate::Parameter;
use crate::lanes::{Four, Lanes, One, Test, Three, Two};

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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// `.global` and `.const`
    Global,
    Generic,
    Shared,
    Local,
    /// Parameters of the kernel.
    Param,
}

/// The threads that an access or a fence is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// `.cta`
    Block,
    /// `.gpu`
    Device,
    /// `.sys`
    System,
}

/// How an access takes part in synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    /// `.volatile`, `.relaxed`, `.acquire`, `.release`, atomics: not `.weak`.
    pub strong: bool,
    pub acquire: bool,
    pub release: bool,
    pub scope: Scope,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exchange,
    CompareAndSwap,
    Increment,
    Decrement,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShuffleMode {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VoteMode {
    All,
    Any,
    Uniform,
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierMode {
    Sync,
    Arrive,
    Popc,
    And,
    Or,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub space: Space,
    pub base: Source,
    pub offset: i64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub at: Address,
    /// Bytes of one element.
    pub bytes: u8,
    pub elements: u8,
    /// Bits of a register, when the value is sign-extended to it.
    pub sign: Option<u8>,
    pub order: Order,
    pub to: [Register; 4],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub at: Address,
    pub bytes: u8,
    pub elements: u8,
    pub order: Order,
    pub from: [Source; 4],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Atomic {
    pub at: Address,
    pub op: AtomicOp,
    pub signed: bool,
    pub float: bool,
    pub bytes: u8,
    pub order: Order,
    pub to: Option<Register>,
    pub a: Source,
    pub b: Source,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Compare {
    pub test: Test,
    pub to: Predicate,
    /// `%p|%q`: what is not so.
    pub not: Option<Predicate>,
    pub a: Source,
    pub b: Source,
    pub join: Option<(Logic, Predicate, bool)>,
}

/// What an instruction does. Boxed variants are rare ones, so that an instruction stays small.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Move {
        to: Register,
        a: Source,
    },
    One {
        f: One,
        to: Register,
        a: Source,
    },
    Two {
        f: Two,
        to: Register,
        a: Source,
        b: Source,
    },
    Three {
        f: Three,
        to: Register,
        a: Source,
        b: Source,
        c: Source,
    },
    Four {
        f: Four,
        to: Register,
        from: [Source; 4],
    },
    Compare(Box<Compare>),
    Select {
        to: Register,
        a: Source,
        b: Source,
        by: Predicate,
    },
    PredicateLogic {
        logic: Logic,
        to: Predicate,
        a: Predicate,
        b: Predicate,
        not_b: bool,
    },
    PredicateNot {
        to: Predicate,
        a: Predicate,
    },
    PredicateMove {
        to: Predicate,
        a: Predicate,
    },
    PredicateSet {
        to: Predicate,
        value: bool,
    },
    IsSpace {
        to: Predicate,
        a: Source,
        space: Space,
    },
    Load(Box<Load>),
    Store(Box<Store>),
    Atomic(Box<Atomic>),
    Fence {
        scope: Scope,
        /// `fence.acq_rel` and its halves; not `fence.sc` or `membar`.
        light: bool,
    },
    Branch {
        target: u32,
    },
    BranchTable {
        index: Source,
        targets: Box<[u32]>,
    },
    Exit,
    Trap,
    Barrier {
        mode: BarrierMode,
        id: Source,
        count: Option<Source>,
        to: u32,
        a: Predicate,
        not: bool,
    },
    WarpBarrier {
        members: Source,
    },
    Shuffle {
        mode: ShuffleMode,
        to: Register,
        valid: Option<Predicate>,
        a: Source,
        b: Source,
        c: Source,
        members: Source,
    },
    Vote {
        mode: VoteMode,
        to: u32,
        a: Predicate,
        not: bool,
        members: Source,
    },
    Match {
        all: bool,
        to: Register,
        same: Option<Predicate>,
        a: Source,
        members: Source,
    },
    Reduce {
        op: AtomicOp,
        signed: bool,
        to: Register,
        a: Source,
        members: Source,
    },
    ActiveMask {
        to: Register,
    },
    Clock {
        to: Register,
        bits: u8,
    },
    /// `__assertfail`: addresses of message and file, line, address of the function's name.
    Assert {
        message: Source,
        file: Source,
        line: Source,
        function: Source,
    },
    /// `nanosleep`: the turn goes to another.
    Yield,
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Ins {
    pub op: Op,
    /// Executed by the lanes where the predicate is set, or with `true` where it is not.
    pub guard: Option<(Predicate, bool)>,
    pub line: u32,
}

impl Op {
    /// Whether other threads can notice it: where exhaustive schedules switch.
    pub fn visible(&self) -> bool {
        let shared = |space: Space| matches!(space, Space::Global | Space::Generic | Space::Shared);
        match self {
            Op::Load(load) => shared(load.at.space),
            Op::Store(store) => shared(store.at.space),
            Op::Atomic(_) | Op::Fence { .. } | Op::Barrier { .. } | Op::WarpBarrier { .. } | Op::Yield => true,
            _ => false,
        }
    }
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
