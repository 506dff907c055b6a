//! Which registers a thread may read before it has written them: only those have to be zero when it starts.

use std::collections::BTreeMap;

use crate::code::{Code, Ins, Op, Register, Source};
use crate::operands::operands;

/// Numbers of registers, and behind them of predicates.
#[derive(Clone, Default, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn insert(&mut self, number: u16) {
        let word = usize::from(number) / 64;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (number % 64);
    }

    fn remove(&mut self, number: u16) {
        if let Some(word) = self.0.get_mut(usize::from(number) / 64) {
            *word &= !(1 << (number % 64));
        }
    }

    fn contains(&self, number: usize) -> bool {
        self.0.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }

    fn add(&mut self, other: &Set) {
        if self.0.len() < other.0.len() {
            self.0.resize(other.0.len(), 0);
        }
        self.0.iter_mut().zip(&other.0).for_each(|(word, more)| *word |= more);
    }
}

/// Where an instruction may go on besides the next one.
fn targets(op: &Op) -> &[u32] {
    match op {
        Op::Branch { target } => std::slice::from_ref(target),
        Op::BranchTable { targets, .. } => targets,
        _ => &[],
    }
}

/// Whether a lane that executes it comes to the next one.
fn goes_on(ins: &Ins) -> bool {
    ins.guard.is_some() || !matches!(ins.op, Op::Branch { .. } | Op::BranchTable { .. } | Op::Exit)
}

/// What [`operands`] does not tell: it is of no interest to what keeps time.
fn reads_besides(op: &Op) -> Vec<Source> {
    match op {
        Op::Barrier { id, count, .. } => count.iter().chain([id]).copied().collect(),
        Op::Assert { message, file, line, function } => vec![*message, *file, *line, *function],
        _ => Vec::new(),
    }
}

/// Registers that are read before they are written on some way through the kernel. Lanes are looked at one by one: no instruction gives a lane the value of
/// one that does not execute it, too.
pub(crate) fn read_before_written(code: &Code) -> Box<[Register]> {
    let used: Vec<_> = code.instructions.iter().map(|ins| operands(code, ins)).collect();
    let jumps = code.instructions.iter().flat_map(|ins| targets(&ins.op));
    let mut at_target: BTreeMap<u32, Set> = jumps.map(|&target| (target, Set::default())).collect();
    loop {
        let (mut live, mut changed) = (Set::default(), false);
        for (pc, (ins, (reads, writes))) in code.instructions.iter().zip(&used).enumerate().rev() {
            if !goes_on(ins) {
                live = Set::default();
            }
            targets(&ins.op).iter().for_each(|target| live.add(&at_target[target]));
            // What a predicate may keep it from writing may be read behind it as it was.
            if ins.guard.is_none() {
                writes.iter().for_each(|&register| live.remove(register));
            }
            reads.iter().for_each(|&register| live.insert(register));
            let besides = reads_besides(&ins.op).into_iter().filter(|source| source.constant_index().is_none());
            besides.for_each(|source| live.insert(source.0 as u16));
            if let Some(known) = at_target.get_mut(&(pc as u32))
                && *known != live
            {
                *known = live.clone();
                changed = true;
            }
        }
        if !changed {
            return (0..code.registers).filter(|&register| live.contains(register)).map(|at| at as Register).collect();
        }
    }
}
