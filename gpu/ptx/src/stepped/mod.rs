//! A launch that is driven from outside, one warp instruction at a time: for simulators that keep
//! their own time.

mod facts;

use std::sync::Arc;

use crate::code::{Address, Code, LOCAL_WINDOW, Op, PARAM_WINDOW, SHARED_WINDOW, Space};
use crate::exec::{End, Turn, complete_barriers};
use crate::lanes::WARP;
use crate::machine::{Block, Running, Warp};
use crate::memory::Kind;
use crate::{Fault, FaultKind, Gpu, spare};

pub use facts::{Instruction, Unit};

/// A launch under way whose blocks start, and whose warps step, when the caller says so. Blocks
/// have handles, from 0; the handle of a block that has ended is used again.
#[derive(Clone, Debug)]
pub struct Stepped {
    running: Running,
    facts: Arc<[Instruction]>,
    blocks: Vec<Option<Resident>>,
}

#[derive(Clone, Debug)]
struct Resident {
    block: Block,
    turns: Vec<WarpTurn>,
}

/// The part of a warp that has the turn.
#[derive(Clone, Copy, Debug, Default)]
struct WarpTurn {
    lane: Option<u32>,
    hold: bool,
}

/// What a warp does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Next {
    /// Index into [`Stepped::instructions`].
    pub instruction: u32,
    /// The lanes that execute it; none where its predicate holds for none.
    pub lanes: u32,
}

/// Where an access goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// Device memory, or persistent memory in the lanes of [`WarpAccess::persistent`].
    Global,
    /// Shared memory; addresses are offsets.
    Shared,
    /// Local memory of the threads; addresses are offsets.
    Local,
    /// Parameters.
    Parameter,
}

/// The access that a warp's next instruction makes.
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess {
    /// Where it goes: where its first lane's goes.
    pub place: Where,
    /// Each lane's address.
    pub addresses: [u64; WARP],
    /// Lanes that access.
    pub lanes: u32,
    /// Those of them that access persistent memory.
    pub persistent: u32,
    /// Bytes that each lane accesses.
    pub bytes: u64,
}

impl Stepped {
    pub(crate) fn new(running: Running) -> Self {
        let facts = facts::of(&running.shape.code);
        Self { running, facts, blocks: Vec::new() }
    }

    /// The kernel's instructions.
    pub fn instructions(&self) -> &Arc<[Instruction]> {
        &self.facts
    }

    /// Registers and predicates of a warp, as [`Instruction::reads`] and [`Instruction::writes`]
    /// number them.
    pub fn registers(&self) -> usize {
        let code: &Code = &self.running.shape.code;
        code.registers + code.predicates
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> u64 {
        self.running.shape.blocks()
    }

    /// Threads of a block.
    pub fn threads_a_block(&self) -> u64 {
        self.running.shape.threads_a_block()
    }

    /// Bytes of shared memory that a block takes.
    pub fn shared_bytes(&self) -> u64 {
        self.running.shape.shared_bytes
    }

    /// Instructions executed so far: of warps, and of threads.
    pub fn executed(&self) -> (u64, u64) {
        (self.running.counts.warp_instructions, self.running.counts.lane_instructions)
    }

    /// Starts the next block of the grid; None when all have started.
    pub fn start_block(&mut self) -> Option<usize> {
        let number = self.running.next_block;
        if number >= self.blocks() {
            return None;
        }
        self.running.next_block += 1;
        let block = self.running.shape.start_block(number);
        let turns = vec![WarpTurn::default(); block.warps.len()];
        let resident = Some(Resident { block, turns });
        let free = self.blocks.iter().position(Option::is_none);
        let handle = free.unwrap_or(self.blocks.len());
        match free {
            Some(free) => self.blocks[free] = resident,
            None => self.blocks.push(resident),
        }
        Some(handle)
    }

    /// Number in the grid of lane 0 of a warp.
    pub fn first_thread(&self, block: usize, warp: usize) -> u64 {
        let number = self.blocks[block].as_ref().map_or(0, |resident| resident.block.number);
        number * self.threads_a_block() + (warp * WARP) as u64
    }

    /// Number in the grid of a block.
    pub fn block_number(&self, block: usize) -> u64 {
        self.blocks[block].as_ref().map_or(0, |resident| resident.block.number)
    }

    /// What a warp does next; None where it waits for other threads, or has ended.
    pub fn next(&mut self, block: usize, warp: usize) -> Option<Next> {
        let resident = self.blocks[block].as_mut()?;
        let index = choose(&mut resident.block.warps[warp], &mut resident.turns[warp])?;
        let warp = &resident.block.warps[warp];
        let group = warp.groups[index];
        let lanes = match self.running.shape.code.instructions[group.pc as usize].guard {
            None => group.mask,
            Some((predicate, negated)) => {
                let bits = warp.predicates[predicate as usize];
                group.mask & if negated { !bits } else { bits }
            }
        };
        Some(Next { instruction: group.pc, lanes })
    }

    /// Whether all threads of a warp have ended.
    pub fn ended(&self, block: usize, warp: usize) -> bool {
        self.blocks[block].as_ref().is_none_or(|resident| resident.block.warps[warp].groups.is_empty())
    }

    /// The access that `next`, the warp's next instruction, makes; None where it makes none.
    pub fn access(&self, gpu: &Gpu, block: usize, warp: usize, next: Next) -> Option<WarpAccess> {
        let warp = &self.blocks[block].as_ref()?.block.warps[warp];
        let shape = &self.running.shape;
        let (at, bytes): (&Address, u64) = match &shape.code.instructions[next.instruction as usize].op {
            Op::Load(load) => (&load.at, u64::from(load.bytes) * u64::from(load.elements)),
            Op::Store(store) => (&store.at, u64::from(store.bytes) * u64::from(store.elements)),
            Op::Atomic(atomic) => (&atomic.at, u64::from(atomic.bytes)),
            _ => return None,
        };
        if next.lanes == 0 {
            return None;
        }
        let base = at.base.of(&warp.registers, &shape.constants);
        let mut addresses: [u64; WARP] = std::array::from_fn(|lane| base[lane].wrapping_add(at.offset as u64));
        let first = addresses[next.lanes.trailing_zeros() as usize];
        let place = match (at.space, first & !(SHARED_WINDOW - 1)) {
            (Space::Shared, _) | (Space::Generic, SHARED_WINDOW) => Where::Shared,
            (Space::Local, _) | (Space::Generic, LOCAL_WINDOW) => Where::Local,
            (Space::Param, _) | (Space::Generic, PARAM_WINDOW) => Where::Parameter,
            _ => Where::Global,
        };
        if at.space == Space::Generic && place != Where::Global {
            addresses.iter_mut().for_each(|address| *address &= SHARED_WINDOW - 1);
        }
        let mut persistent = 0;
        if place == Where::Global {
            let memory = gpu.memory();
            let of = |address: u64| memory.find(address).is_some_and(|at| memory.region(at).kind == Kind::Persistent);
            let (slot, is) = (first >> 32, of(first));
            for (lane, &address) in addresses.iter().enumerate() {
                let is = if address >> 32 == slot { is } else { of(address) };
                persistent |= u32::from(is) << lane;
            }
        }
        Some(WarpAccess { place, addresses, lanes: next.lanes, persistent: persistent & next.lanes, bytes })
    }

    /// Executes a warp's next instruction. Gives whether its block has ended, whose handle is free
    /// then.
    ///
    /// # Errors
    /// The kernel did what it must not.
    pub fn step(&mut self, gpu: &mut Gpu, block: usize, number: usize) -> Result<bool, Box<Fault>> {
        let Some(resident) = self.blocks[block].as_mut() else { return Ok(true) };
        let turn = &mut resident.turns[number];
        let mut warp = std::mem::replace(&mut resident.block.warps[number], Warp::empty());
        let Some(index) = choose(&mut warp, turn) else {
            resident.block.warps[number] = warp;
            return Ok(false);
        };
        let (pc, groups) = (warp.groups[index].pc, warp.groups.len());
        let running = &mut self.running;
        let ended = Turn {
            shape: &running.shape,
            memory: gpu.memory_mut(),
            block: &mut resident.block,
            warp: &mut warp,
            counts: &mut running.counts,
            translation: &mut running.translation,
            tracker: None,
            persistence: running.persistence,
            trace: None,
            left: 1,
            stopped_in: 0,
            stop_event: u64::MAX,
            until_visible: false,
            single: true,
            begun: false,
            hold: turn.hold,
            scratch: &mut running.scratch,
        }
        .run(index);
        if !matches!(ended, Ok(End::Steps)) || warp.groups.len() != groups {
            turn.lane = None;
        }
        resident.block.warps[number] = warp;
        if let Err(found) = ended {
            return Err(self.fault(block, number, pc, *found));
        }
        if matches!(running.shape.code.instructions[pc as usize].op, Op::Barrier { .. } | Op::Exit) {
            if resident.block.live == 0 {
                if let Some(resident) = self.blocks[block].take() {
                    spare::keep(resident.block);
                }
                return Ok(true);
            }
            let threads = running.shape.threads_a_block();
            complete_barriers(&running.shape.code, threads, &mut resident.block, None);
        }
        Ok(false)
    }

    fn fault(&self, block: usize, warp: usize, pc: u32, found: crate::exec::LaneFault) -> Box<Fault> {
        let shape = &self.running.shape;
        let thread = (warp * WARP + found.lane) as u64;
        Box::new(Fault {
            kind: found.kind,
            kernel: shape.code.name.clone(),
            line: self.facts[pc as usize].line,
            thread: shape.thread(self.block_number(block), thread),
            step: self.running.counts.warp_instructions,
            schedule: "driven from outside".into(),
        })
    }

    /// The fault of a launch in which nobody can go on, told by a thread of a warp that waits.
    pub fn stuck(&self) -> Box<Fault> {
        let waiting = self.blocks.iter().enumerate().find_map(|(handle, resident)| {
            let warps = &resident.as_ref()?.block.warps;
            let warp = warps.iter().position(|warp| !warp.groups.is_empty())?;
            Some((handle, warp, warps[warp].groups[0]))
        });
        let kind = FaultKind::Barrier { barrier: "the launch".into(), waits: "no thread can go on".into() };
        let (block, warp, pc, lane) = waiting.map_or((0, 0, 0, 0), |(block, warp, group)| {
            (block, warp, group.pc.saturating_sub(1), group.mask.trailing_zeros() as usize)
        });
        self.fault(block, warp, pc, crate::exec::LaneFault { lane, kind })
    }
}

/// The group that runs, joined with those that have come to the same instruction.
fn choose(warp: &mut Warp, turn: &mut WarpTurn) -> Option<usize> {
    let holds = |lane: u32| warp.groups.iter().position(|group| group.wait.ready() && group.mask >> lane & 1 == 1);
    let index = match turn.lane.and_then(holds) {
        Some(index) => index,
        None => {
            let index = warp.pick()?;
            turn.hold = std::mem::take(&mut warp.rotate);
            index
        }
    };
    turn.lane = Some(warp.groups[index].mask.trailing_zeros());
    Some(if warp.groups.len() > 1 { warp.merge(index) } else { index })
}
