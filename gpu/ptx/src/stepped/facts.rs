//! What is fixed about an instruction: which unit executes it, what it reads and writes.

use std::sync::Arc;

use crate::code::{Code, Ins, Op, Predicate, Register, Source, VoteMode};
use crate::{Access, Scope};

/// What executes an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Integers, moves, comparisons.
    Integer,
    /// Single precision.
    Float,
    /// Double precision.
    Double,
    /// Division, roots, transcendental functions.
    Special,
    /// Branches, and instructions that do nothing.
    Control,
    /// Shuffles, votes, barriers of a warp.
    Warp,
    /// A barrier of the block.
    Barrier,
    /// The end of threads.
    Exit,
    /// Loads, stores, atomics; with the scope of those that are `.relaxed` or stronger.
    Memory(Access, Option<Scope>),
    /// `membar` and `fence.sc`.
    Fence(Scope),
    /// `fence.acq_rel`.
    LightFence(Scope),
}

/// What is fixed about an instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Line of the PTX text.
    pub line: u32,
    /// What executes it.
    pub unit: Unit,
    /// Registers that it reads, its predicate among them.
    pub reads: Box<[u16]>,
    /// Registers that it writes.
    pub writes: Box<[u16]>,
}

pub(super) fn of(code: &Code) -> Arc<[Instruction]> {
    let lines: Vec<&str> = code.text.lines().collect();
    let line = |ins: &Ins| lines.get((ins.line as usize).wrapping_sub(1)).copied().unwrap_or("");
    code.instructions.iter().map(|ins| instruction(code, ins, line(ins))).collect()
}

fn instruction(code: &Code, ins: &Ins, text: &str) -> Instruction {
    let (reads, writes) = operands(code, ins);
    Instruction { line: ins.line, unit: unit(&ins.op, text), reads: reads.into(), writes: writes.into() }
}

/// Registers that an instruction reads, and that it writes; predicates are numbered behind them.
pub(crate) fn operands(code: &Code, ins: &Ins) -> (Vec<u16>, Vec<u16>) {
    let mut operands = Operands { registers: code.registers as u32, reads: Vec::new(), writes: Vec::new() };
    if let Some((predicate, _)) = ins.guard {
        operands.test(predicate);
    }
    operands.collect(&ins.op);
    (operands.reads, operands.writes)
}

/// The unit; of arithmetic by the instruction's name, which the decoded form no longer has.
fn unit(op: &Op, text: &str) -> Unit {
    let scope = |order: &crate::code::Order| order.strong.then_some(order.scope);
    match op {
        Op::Load(load) => Unit::Memory(Access::Load, scope(&load.order)),
        Op::Store(store) => Unit::Memory(Access::Store, scope(&store.order)),
        Op::Atomic(atomic) => Unit::Memory(Access::Atomic, scope(&atomic.order)),
        Op::Fence { scope, light: false } => Unit::Fence(*scope),
        Op::Fence { scope, light: true } => Unit::LightFence(*scope),
        Op::Branch { .. } | Op::BranchTable { .. } | Op::Nothing | Op::Yield | Op::Trap | Op::Assert { .. } => {
            Unit::Control
        }
        Op::Exit => Unit::Exit,
        Op::Barrier { .. } => Unit::Barrier,
        Op::WarpBarrier { .. }
        | Op::Shuffle { .. }
        | Op::Vote { .. }
        | Op::Match { .. }
        | Op::Reduce { .. }
        | Op::ActiveMask { .. } => Unit::Warp,
        _ => arithmetic(text),
    }
}

fn arithmetic(text: &str) -> Unit {
    let text = text.trim_start().trim_start_matches(['{', ' ', '\t']);
    let text =
        if text.starts_with('@') { text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest) } else { text };
    let mut parts = text.trim_start().split(|c: char| c.is_whitespace() || c == ';').next().unwrap_or("").split('.');
    let name = parts.next().unwrap_or("");
    let kind = parts.find(|part| matches!(*part, "f32" | "f64"));
    match (name, kind) {
        ("div" | "rem" | "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh", _) => Unit::Special,
        (_, Some("f64")) => Unit::Double,
        (_, Some(_)) => Unit::Float,
        _ => Unit::Integer,
    }
}

struct Operands {
    registers: u32,
    reads: Vec<u16>,
    writes: Vec<u16>,
}

impl Operands {
    fn read(&mut self, sources: &[Source]) {
        self.reads
            .extend(sources.iter().filter(|source| source.constant_index().is_none()).map(|source| source.0 as u16));
    }

    fn write(&mut self, register: Register) {
        self.writes.push(register as u16);
    }

    fn test(&mut self, predicate: Predicate) {
        self.reads.push((self.registers + predicate) as u16);
    }

    fn set(&mut self, predicate: Predicate) {
        self.writes.push((self.registers + predicate) as u16);
    }

    fn collect(&mut self, op: &Op) {
        match op {
            Op::Move { to, a } | Op::One { to, a, .. } => self.both(*to, &[*a]),
            Op::Two { to, a, b, .. } => self.both(*to, &[*a, *b]),
            Op::Three { to, a, b, c, .. } => self.both(*to, &[*a, *b, *c]),
            Op::Four { to, from, .. } => self.both(*to, from),
            Op::Compare(compare) => {
                self.read(&[compare.a, compare.b]);
                self.set(compare.to);
                compare.not.into_iter().for_each(|not| self.set(not));
                compare.join.into_iter().for_each(|(_, other, _)| self.test(other));
            }
            Op::Select { to, a, b, by } => {
                self.both(*to, &[*a, *b]);
                self.test(*by);
            }
            Op::PredicateLogic { to, a, b, .. } => {
                self.test(*a);
                self.test(*b);
                self.set(*to);
            }
            Op::PredicateNot { to, a } | Op::PredicateMove { to, a } => {
                self.test(*a);
                self.set(*to);
            }
            Op::PredicateSet { to, .. } => self.set(*to),
            Op::IsSpace { to, a, .. } => {
                self.read(&[*a]);
                self.set(*to);
            }
            _ => self.collect_memory(op),
        }
    }

    fn both(&mut self, to: Register, from: &[Source]) {
        self.read(from);
        self.write(to);
    }

    fn collect_memory(&mut self, op: &Op) {
        match op {
            Op::Load(load) => {
                self.read(&[load.at.base]);
                load.to[..usize::from(load.elements)].iter().for_each(|&to| self.write(to));
            }
            Op::Store(store) => {
                self.read(&[store.at.base]);
                self.read(&store.from[..usize::from(store.elements)]);
            }
            Op::Atomic(atomic) => {
                self.read(&[atomic.at.base, atomic.a, atomic.b]);
                atomic.to.into_iter().for_each(|to| self.write(to));
            }
            Op::BranchTable { index, .. } => self.read(&[*index]),
            Op::WarpBarrier { members } => self.read(&[*members]),
            Op::Shuffle { to, valid, a, b, c, members, .. } => {
                self.both(*to, &[*a, *b, *c, *members]);
                valid.iter().for_each(|&valid| self.set(valid));
            }
            Op::Vote { mode, to, a, members, .. } => {
                self.test(*a);
                self.read(&[*members]);
                if *mode == VoteMode::Ballot { self.write(*to) } else { self.set(*to) }
            }
            Op::Match { to, same, a, members, .. } => {
                self.both(*to, &[*a, *members]);
                same.iter().for_each(|&same| self.set(same));
            }
            Op::Reduce { to, a, members, .. } => self.both(*to, &[*a, *members]),
            Op::ActiveMask { to } | Op::Clock { to, .. } => self.write(*to),
            _ => {}
        }
    }
}
