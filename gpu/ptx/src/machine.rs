//! A launch under way: its blocks, warps, and diverged parts of warps.

use std::sync::Arc;

use crate::code::{BarrierMode, Base, Code, PARAM_WINDOW};
use crate::counting::Translation;
use crate::lanes::{Lanes, WARP};
use crate::persist::Tracker;
use crate::schedule::Picker;
use crate::{Counts, Persistence, ThreadId};

/// Why a group does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Ready,
    /// At a block barrier, past the instruction.
    Block(usize),
    /// Before an instruction that all of these lanes execute together.
    Lanes(u32),
    /// Before `bar.warp.sync` with these members.
    Warp(u32),
}

/// Lanes of a warp that are at the same instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group {
    pub pc: u32,
    pub mask: u32,
    pub wait: Wait,
}

#[derive(Clone, Debug)]
pub(crate) struct Warp {
    pub number: u32,
    pub groups: Vec<Group>,
    /// Boxed, so that a result takes the place of a register by exchanging pointers.
    #[expect(clippy::vec_box)]
    pub registers: Vec<Box<Lanes>>,
    pub predicates: Vec<u32>,
    /// Local memory, lane by lane.
    pub local: Vec<u8>,
    pub exited: u32,
    /// The first group that is ready has the turn: another went backward.
    pub rotate: bool,
}

impl Warp {
    /// What stands in a block for a warp that has the turn.
    pub fn empty() -> Self {
        Self {
            number: 0,
            groups: Vec::new(),
            registers: Vec::new(),
            predicates: Vec::new(),
            local: Vec::new(),
            exited: 0,
            rotate: false,
        }
    }
}

/// One of a block's 16 barriers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Barrier {
    /// Who waits there: warp, lanes.
    pub arrived: Vec<(u32, u32)>,
    /// Who came by `bar.arrive` and went on.
    pub passed: Vec<(u32, u32)>,
    pub count: u32,
    /// The number of threads that the instruction names.
    pub expected: Option<u32>,
    pub mode: Option<BarrierMode>,
    pub line: u32,
    pub ones: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub number: u64,
    pub index: [u32; 3],
    pub shared: Vec<u8>,
    pub warps: Vec<Warp>,
    pub barriers: Vec<Barrier>,
    /// Threads that have not ended.
    pub live: u32,
}

/// The parts of a launch that stay the same.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub code: Arc<Code>,
    pub constants: Vec<Lanes>,
    pub parameters: Vec<u8>,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u64,
    pub dynamic_bytes: u32,
    pub resident: u32,
    pub launch_number: u64,
}

impl Shape {
    pub fn threads_a_block(&self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product()
    }

    pub fn thread(&self, block: u64, in_block: u64) -> ThreadId {
        ThreadId {
            block: coordinates(block, self.grid),
            thread: coordinates(in_block, self.block),
            linear: block * self.threads_a_block() + in_block,
        }
    }

    pub fn thread_of_linear(&self, linear: u64) -> ThreadId {
        let threads = self.threads_a_block();
        self.thread(linear / threads, linear % threads)
    }

    /// Constants with the addresses that this launch's variables have.
    pub fn constants(code: &Code, global: u64, constant: u64) -> Vec<Lanes> {
        let of = |&(base, value): &(Option<Base>, u64)| {
            let base = match base {
                None => 0,
                Some(Base::Global) => global,
                Some(Base::Const) => constant,
                Some(Base::DynamicShared) => code.shared_bytes,
            };
            [value.wrapping_add(base); WARP]
        };
        code.constants.iter().map(of).collect()
    }

    /// The bytes of a kernel parameter's address, generic or not.
    pub fn parameter(&self, address: u64, bytes: u64) -> Option<&[u8]> {
        let start = if address >= PARAM_WINDOW { address - PARAM_WINDOW } else { address };
        self.parameters.get(usize::try_from(start).ok()?..usize::try_from(start.checked_add(bytes)?).ok()?)
    }
}

/// x, y, z of a number, x fastest.
pub(crate) fn coordinates(number: u64, size: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(size[0].max(1)), u64::from(size[1].max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}

/// Who ran last: a lane (32 where none did) of a warp of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Last {
    pub block: u64,
    pub warp: usize,
    pub lane: u32,
    pub gave_way: bool,
}

/// The rest of a turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfinished {
    pub steps: u64,
    pub until_visible: bool,
    pub hold: bool,
}

/// A launch that has begun.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub shape: Shape,
    pub blocks: Vec<Block>,
    pub next_block: u64,
    pub counts: Counts,
    pub persistence: Persistence,
    pub tracker: Option<Tracker>,
    pub translation: Translation,
    pub picker: Picker,
    pub last: Last,
    /// Slot and warp that round robin looked at last.
    pub cursor: (usize, usize),
    /// A turn that a stop interrupted: a launch does the same whether it is stopped in between or
    /// not.
    pub unfinished: Option<Unfinished>,
    /// Where results are computed before they take a register's place.
    pub scratch: Box<Lanes>,
    /// A fault ended it: it can be crashed, not resumed.
    pub faulted: bool,
}
