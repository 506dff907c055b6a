//! What an instruction reads and writes.

use crate::code::{Code, Ins, Op, Predicate, Register, Source, VoteMode};

/// Registers that an instruction reads, and that it writes; predicates are numbered behind them.
pub(crate) fn operands(code: &Code, ins: &Ins) -> (Vec<u16>, Vec<u16>) {
    let mut operands = Operands { registers: code.registers as u32, reads: Vec::new(), writes: Vec::new() };
    if let Some((predicate, _)) = ins.guard {
        operands.test(predicate);
    }
    operands.collect(&ins.op);
    (operands.reads, operands.writes)
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
