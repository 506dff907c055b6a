//! What instructions do.

use super::{Predicate, Register, Source};
use crate::lanes::{Four, One, Test, Three, Two};

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
