//! Which registers a thread may still read: before its first instruction, only those have to be
//! zero; before any other, only those are part of its state.

use std::collections::BTreeMap;

use crate::code::{Code, Ins, Live, Op, Register, Source};
use crate::operands::operands;

/// Numbers of registers, and behind them of predicates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

    /// The numbers in it, rising.
    fn numbers(&self) -> impl Iterator<Item = u32> {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        self.0.iter().enumerate().flat_map(move |(at, &word)| bits(word).map(move |bit| at as u32 * 64 + bit))
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

/// What is live before each instruction. Lanes are looked at one by one: no instruction gives a
/// lane the value of one that does not execute it, too.
pub(crate) fn live_before_each(code: &Code) -> Box<[Live]> {
    let mut all = Vec::with_capacity(code.instructions.len());
    backward(code, |live| {
        let (registers, predicates) = live.numbers().partition(|&number| (number as usize) < code.registers);
        all.push((registers, predicates));
    });
    let of = |(registers, predicates): (Vec<u32>, Vec<u32>)| Live {
        registers: registers.into(),
        predicates: predicates.into_iter().map(|number| number - code.registers as u32).collect(),
    };
    all.into_iter().rev().map(of).collect()
}

/// Registers that a thread may read before it has written them.
pub(crate) fn read_before_written(code: &Code) -> Box<[Register]> {
    let mut first = Set::default();
    backward(code, |live| first.clone_from(live));
    first.numbers().take_while(|&number| (number as usize) < code.registers).collect()
}

/// Goes through the instructions from the last to the first, again and again, until what is live at
/// the targets of jumps does not change any more; then once more, with a look at what is live
/// before each.
fn backward(code: &Code, mut look: impl FnMut(&Set)) {
    let used: Vec<_> = code.instructions.iter().map(|ins| operands(code, ins)).collect();
    let jumps = code.instructions.iter().flat_map(|ins| targets(&ins.op));
    let mut at_target: BTreeMap<u32, Set> = jumps.map(|&target| (target, Set::default())).collect();
    let mut settled = false;
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
            if settled {
                look(&live);
            }
            if let Some(known) = at_target.get_mut(&(pc as u32))
                && *known != live
            {
                known.clone_from(&live);
                changed = true;
            }
        }
        if settled {
            return;
        }
        settled = !changed;
    }
}
