//! What is fixed about an instruction: which unit executes it, what it reads and writes.

use std::sync::Arc;

use crate::code::{Code, Ins, Op};
use crate::operands::operands;
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
