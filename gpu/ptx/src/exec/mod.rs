//! The interpreter's loop: one part of a warp runs until its turn ends.

mod atomic;
mod barrier;
mod groups;
mod load;
mod observe;
mod place;
mod rare;
mod store;
mod together;

use crate::code::{Ins, Op, Predicate, Register, Scope, Source};
use crate::counting::Translation;
use crate::lanes::{Lanes, WARP};
use crate::machine::{Block, Group, Shape, Wait, Warp};
use crate::memory::Memory;
use crate::persist::Tracker;
use crate::{Counts, FaultKind, Persistence, Trace};

pub(crate) use barrier::complete_barriers;
use rare::combine;

/// What went wrong, and in which lane.
pub(crate) struct LaneFault {
    pub lane: usize,
    pub kind: FaultKind,
}

pub(crate) type Executed = Result<(), Box<LaneFault>>;

pub(crate) fn lane_fault<T>(lane: usize, kind: FaultKind) -> Result<T, Box<LaneFault>> {
    Err(Box::new(LaneFault { lane, kind }))
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// It gives way, or is at the end that the schedule sets.
    Turn,
    /// Its steps are used up.
    Steps,
    /// The group waits, or its lanes have ended.
    Waits,
}

/// Everything that one turn works on.
pub(crate) struct Turn<'t> {
    pub shape: &'t Shape,
    pub memory: &'t mut Memory,
    pub block: &'t mut Block,
    /// Taken out of `block` for the turn.
    pub warp: &'t mut Warp,
    pub counts: &'t mut Counts,
    pub translation: &'t mut Translation,
    pub tracker: Option<&'t mut Tracker>,
    pub persistence: Persistence,
    pub trace: Option<&'t mut Trace>,
    /// Steps that may still be taken.
    pub left: u64,
    /// The group that the turn stopped in, when its steps were used up.
    pub stopped_in: usize,
    /// The turn ends when this many persist events were counted.
    pub stop_event: u64,
    /// The turn ends before the next instruction that others can notice.
    pub until_visible: bool,
    /// The turn is one instruction, of the group it began with.
    pub single: bool,
    /// An instruction was executed in this turn.
    pub begun: bool,
    /// The group runs on though others of its warp are behind: it was their turn before, or the
    /// schedule says so.
    pub hold: bool,
    pub scratch: &'t mut Box<Lanes>,
}

/// What an instruction did to the group that ran it.
enum Flow {
    Next,
    Jump(u32),
    /// The group is no longer as it was: its state in `warp.groups` is up to date.
    Regroup,
    /// The same, and another gets the turn.
    Wait,
    /// Goes on at the next instruction in a later turn.
    GiveWay,
}

impl Turn<'_> {
    /// Runs group `index` of the warp. On a fault the group's `pc` is at the instruction.
    pub fn run(&mut self, mut index: usize) -> Result<End, Box<LaneFault>> {
        let shape = self.shape;
        let code = &shape.code.instructions[..];
        'group: loop {
            index = self.warp.merge(index);
            let Group { mut pc, mut mask, .. } = self.warp.groups[index];
            // The others stand still meanwhile: up to there they need not be looked at.
            let mut meeting = self.warp.next_meeting(index, self.hold);
            loop {
                let ins = &code[pc as usize];
                let boundary = self.until_visible && self.begun && ins.op.visible();
                if self.left == 0 || boundary {
                    self.warp.groups[index].pc = pc;
                    self.stopped_in = index;
                    return Ok(if boundary { End::Turn } else { End::Steps });
                }
                let exec = match ins.guard {
                    None => mask,
                    Some((predicate, negated)) => {
                        let bits = self.warp.predicates[predicate as usize];
                        mask & if negated { !bits } else { bits }
                    }
                };
                self.left -= 1;
                self.begun = true;
                self.counts.warp_instructions += 1;
                self.counts.lane_instructions += u64::from(exec.count_ones());
                if self.trace.is_some() {
                    self.report(pc, exec);
                }
                let flow = match self.step(ins, index, pc, mask, exec) {
                    Ok(flow) => flow,
                    Err(fault) => {
                        self.warp.groups[index].pc = pc;
                        return Err(fault);
                    }
                };
                match flow {
                    Flow::Next => pc += 1,
                    Flow::Jump(target) => {
                        let backward = target <= pc;
                        pc = target;
                        if backward && (self.until_visible || self.warp.groups.len() > 1) {
                            self.warp.groups[index].pc = pc;
                            self.warp.give_way(index);
                            return Ok(End::Turn);
                        }
                    }
                    Flow::Regroup => match self.warp.pick() {
                        Some(_) if self.single => return Ok(End::Turn),
                        Some(next) => {
                            index = next;
                            continue 'group;
                        }
                        None => return Ok(End::Waits),
                    },
                    Flow::Wait => return Ok(End::Waits),
                    Flow::GiveWay => {
                        self.warp.groups[index].pc = pc + 1;
                        self.warp.give_way(index);
                        return Ok(End::Turn);
                    }
                }
                if pc >= meeting {
                    self.warp.groups[index].pc = pc;
                    index = self.warp.merge(index);
                    mask = self.warp.groups[index].mask;
                    if !self.hold && self.warp.overtaken(index) {
                        return Ok(End::Turn);
                    }
                    meeting = self.warp.next_meeting(index, self.hold);
                }
            }
        }
    }

    #[inline(always)]
    fn source(&self, source: Source) -> &Lanes {
        source.of(&self.warp.registers, &self.shape.constants)
    }

    /// Keeps the results of the lanes in `mask`.
    #[inline(always)]
    fn put(&mut self, to: Register, mask: u32) {
        let register = &mut self.warp.registers[to as usize];
        if mask == u32::MAX {
            std::mem::swap(register, self.scratch);
        } else {
            for lane in 0..WARP {
                // All ones where the lane is active: no branch, so that this is vectorised.
                let keep = u64::from(mask >> lane & 1).wrapping_neg();
                register[lane] = register[lane] & !keep | self.scratch[lane] & keep;
            }
        }
    }

    #[inline(always)]
    fn put_predicate(&mut self, to: Predicate, bits: u32, mask: u32) {
        let predicate = &mut self.warp.predicates[to as usize];
        *predicate = *predicate & !mask | bits & mask;
    }

    #[inline(always)]
    fn step(&mut self, ins: &Ins, index: usize, pc: u32, mask: u32, exec: u32) -> Result<Flow, Box<LaneFault>> {
        let constants = &self.shape.constants;
        match &ins.op {
            Op::Move { to, a } => {
                **self.scratch = *a.of(&self.warp.registers, constants);
                self.put(*to, exec);
            }
            Op::One { f, to, a } => {
                f(a.of(&self.warp.registers, constants), self.scratch);
                self.put(*to, exec);
            }
            Op::Two { f, to, a, b } => {
                let registers = &self.warp.registers;
                f(a.of(registers, constants), b.of(registers, constants), self.scratch);
                self.put(*to, exec);
            }
            Op::Three { f, to, a, b, c } => {
                let registers = &self.warp.registers;
                let (a, b, c) = (a.of(registers, constants), b.of(registers, constants), c.of(registers, constants));
                f(a, b, c, self.scratch);
                self.put(*to, exec);
            }
            Op::Four { f, to, from } => {
                let [a, b, c, d] = from.map(|source| source.of(&self.warp.registers, constants));
                f(a, b, c, d, self.scratch);
                self.put(*to, exec);
            }
            Op::Compare(compare) => {
                let bits = (compare.test)(self.source(compare.a), self.source(compare.b));
                let (with, inverse) = match compare.join {
                    None => (bits, !bits),
                    Some((logic, other, negated)) => {
                        let other = self.warp.predicates[other as usize] ^ if negated { u32::MAX } else { 0 };
                        (combine(logic, bits, other), combine(logic, !bits, other))
                    }
                };
                self.put_predicate(compare.to, with, exec);
                if let Some(not) = compare.not {
                    self.put_predicate(not, inverse, exec);
                }
            }
            Op::Select { to, a, b, by } => {
                let bits = self.warp.predicates[*by as usize];
                let (a, b) = (a.of(&self.warp.registers, constants), b.of(&self.warp.registers, constants));
                for lane in 0..WARP {
                    let keep = u64::from(bits >> lane & 1).wrapping_neg();
                    self.scratch[lane] = a[lane] & keep | b[lane] & !keep;
                }
                self.put(*to, exec);
            }
            Op::Branch { target } => return Ok(self.branch(index, pc, mask, exec, *target)),
            Op::Load(load) => self.load(load, exec)?,
            Op::Store(store) => self.store(store, exec, ins.line)?,
            Op::Exit => return Ok(self.exit(index, pc, mask, exec)),
            Op::Fence { scope, .. } => self.fence(*scope, exec),
            _ => return self.rare(ins, index, pc, mask, exec),
        }
        Ok(Flow::Next)
    }

    fn fence(&mut self, scope: Scope, exec: u32) {
        let threads = u64::from(exec.count_ones());
        match scope {
            Scope::Block => self.counts.fences.block += threads,
            Scope::Device => self.counts.fences.device += threads,
            Scope::System => self.counts.fences.system += threads,
        }
        let first = self.first_thread();
        if let Some(tracker) = &mut self.tracker {
            for lane in lanes(exec) {
                tracker.fence(first + lane as u64, scope);
            }
        }
        if scope == Scope::System && exec != 0 {
            self.persist_event();
        }
    }

    /// What may have persisted has changed.
    fn persist_event(&mut self) {
        if self.persistence == Persistence::Off {
            return;
        }
        self.counts.persist_events += 1;
        if self.counts.persist_events >= self.stop_event {
            self.left = 0;
        }
    }

    /// Number in the grid of the warp's lane 0.
    fn first_thread(&self) -> u64 {
        self.block.number * self.shape.threads_a_block() + u64::from(self.warp.number) * WARP as u64
    }

    fn report(&mut self, pc: u32, exec: u32) {
        let code = &self.shape.code;
        let line = code.instructions[pc as usize].line;
        let text = code.text.lines().nth(line as usize - 1).unwrap_or("").trim();
        let step = self.counts.warp_instructions;
        let [x, y, z] = self.block.index;
        let entry =
            format!("step {step} block ({x},{y},{z}) warp {} lanes {exec:#010x} line {line}: {text}", self.warp.number);
        if let Some(trace) = &mut self.trace {
            trace(&entry);
        }
    }
}

/// The lowest lane of a mask.
fn first(mask: u32) -> Option<usize> {
    (mask != 0).then(|| mask.trailing_zeros() as usize)
}

/// The lanes of a mask.
fn lanes(mut mask: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = first(mask)?;
        mask &= mask - 1;
        Some(lane)
    })
}

impl Wait {
    pub fn ready(self) -> bool {
        self == Wait::Ready
    }
}
