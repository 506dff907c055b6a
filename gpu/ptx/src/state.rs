//! What a launch's future depends on, and nothing else: of two launches with the same, each
//! schedule goes on alike.

use crate::code::{Code, Live, Op};
use crate::fingerprint::Fingerprint;
use crate::lanes::Lanes;
use crate::liveness;
use crate::machine::{Barrier, Block, Running, Wait, Warp};
use crate::memory::{Memory, Region};
use crate::persist::Tracker;
use crate::schedule::Picker;
use crate::{Counts, spare};

fn live(code: &Code) -> &[Live] {
    code.live.get_or_init(|| liveness::live_before_each(code))
}

/// A fingerprint of the state between two turns: memory, what of it has persisted and who has
/// observed what, threads with the registers that they may still read, and whose turn it was.
pub(crate) fn of(running: &Running, memory: &Memory) -> u128 {
    let mut all = Fingerprint::new();
    memory.regions().for_each(|region| take_region(region, &mut all));
    if let Some(tracker) = &running.tracker {
        tracker.take_into(&mut all);
    }
    let code = &running.shape.code;
    all.word(running.next_block);
    all.word(running.blocks.len() as u64);
    running.blocks.iter().for_each(|block| take_block(code, block, &mut all));
    let last = running.last;
    all.words([last.block, last.warp as u64, last.lane.into(), last.gave_way.into()].into_iter());
    if code.instructions.iter().any(|ins| matches!(ins.op, Op::Clock { .. })) {
        all.word(running.counts.warp_instructions);
    }
    all.finish()
}

/// A fingerprint of what a crash now may leave: persistent memory, and what of it pends.
pub(crate) fn of_persistent(running: &Running, memory: &Memory) -> u128 {
    let mut all = Fingerprint::new();
    memory.persistent().for_each(|region| take_region(region, &mut all));
    if let Some(tracker) = &running.tracker {
        tracker.take_pending_into(&mut all);
    }
    all.finish()
}

fn take_region(region: &Region, all: &mut Fingerprint) {
    all.word(region.base);
    all.bytes(&region.data);
}

fn take_block(code: &Code, block: &Block, all: &mut Fingerprint) {
    all.words([block.number, block.live.into()].into_iter());
    all.bytes(&block.shared);
    for barrier in &block.barriers {
        let Barrier { arrived, passed, count, expected, mode, line: _, ones } = barrier;
        let came = arrived.iter().chain(passed).flat_map(|&(warp, lanes)| [warp.into(), lanes.into()]);
        all.word(arrived.len() as u64);
        all.words(came.collect::<Vec<u64>>().into_iter());
        let expected = expected.map_or(u64::MAX, u64::from);
        all.words([(*count).into(), expected, mode.map_or(0, |mode| mode as u64 + 1), (*ones).into()].into_iter());
    }
    block.warps.iter().for_each(|warp| take_warp(code, warp, all));
}

fn take_warp(code: &Code, warp: &Warp, all: &mut Fingerprint) {
    all.words([warp.number.into(), warp.exited.into(), warp.rotate.into(), warp.groups.len() as u64].into_iter());
    for group in &warp.groups {
        let wait = match group.wait {
            Wait::Ready => [0, 0],
            Wait::Block(barrier) => [1, barrier as u64],
            Wait::Lanes(members) => [2, members.into()],
            Wait::Warp(members) => [3, members.into()],
        };
        all.words([group.pc.into(), group.mask.into(), wait[0], wait[1]].into_iter());
        let Live { registers, predicates } = &live(code)[group.pc as usize];
        for &register in registers {
            let values = &warp.registers[register as usize];
            (0..32).filter(|lane| group.mask >> lane & 1 == 1).for_each(|lane| all.word(values[lane as usize]));
        }
        predicates.iter().for_each(|&predicate| {
            all.word((warp.predicates[predicate as usize] & group.mask).into());
        });
    }
    all.bytes(&warp.local);
}

/// Registers of a warp, by their numbers.
type LiveRegisters = Vec<(u32, Lanes)>;

/// A launch between two turns, to go on from again: without the registers that nobody reads any
/// more, which are most of them.
pub(crate) struct Saved {
    memory: Memory,
    /// Without their registers, which come behind: those of each warp that it may still read.
    blocks: Vec<(Block, Vec<LiveRegisters>)>,
    next_block: u64,
    counts: Counts,
    tracker: Option<Tracker>,
    picker: Picker,
    last: crate::machine::Last,
}

impl Saved {
    pub fn new(running: &Running, memory: &Memory) -> Self {
        let code = &running.shape.code;
        Self {
            memory: memory.clone(),
            blocks: running.blocks.iter().map(|block| saved_block(code, block)).collect(),
            next_block: running.next_block,
            counts: running.counts,
            tracker: running.tracker.clone(),
            picker: running.picker.clone(),
            last: running.last,
        }
    }

    /// Makes a launch, of the same kernel with the same arguments, what this one was.
    pub fn restore(&self, running: &mut Running, memory: &mut Memory) {
        running.blocks.drain(..).for_each(spare::keep);
        let code = running.shape.code.clone();
        running.blocks.extend(self.blocks.iter().map(|(block, registers)| restored_block(&code, block, registers)));
        running.next_block = self.next_block;
        running.counts = self.counts;
        running.tracker.clone_from(&self.tracker);
        running.picker.clone_from(&self.picker);
        running.last = self.last;
        running.unfinished = None;
        memory.clone_from(&self.memory);
    }
}

fn saved_block(code: &Code, block: &Block) -> (Block, Vec<LiveRegisters>) {
    let without_registers = |warp: &Warp| Warp {
        registers: Vec::new(),
        groups: warp.groups.clone(),
        predicates: warp.predicates.clone(),
        local: warp.local.clone(),
        ..*warp
    };
    let registers_of = |warp: &Warp| {
        let mut numbers: Vec<u32> =
            warp.groups.iter().flat_map(|group| live(code)[group.pc as usize].registers.iter().copied()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.into_iter().map(|number| (number, *warp.registers[number as usize])).collect()
    };
    let saved = Block {
        shared: block.shared.clone(),
        warps: block.warps.iter().map(without_registers).collect(),
        barriers: block.barriers.clone(),
        ..*block
    };
    (saved, block.warps.iter().map(registers_of).collect())
}

fn restored_block(code: &Code, saved: &Block, registers: &[LiveRegisters]) -> Block {
    let mut block = spare::take_block().unwrap_or_else(|| Block { warps: Vec::new(), ..saved.clone() });
    block.shared.clone_from(&saved.shared);
    block.barriers.clone_from(&saved.barriers);
    (block.number, block.index, block.live) = (saved.number, saved.index, saved.live);
    let warps = saved.warps.iter().zip(registers).map(|(saved, registers)| {
        let mut warp = spare::take_warp();
        let count = warp.registers.len().max(code.registers);
        warp.registers.resize_with(count, || Box::new([0; crate::lanes::WARP]));
        registers.iter().for_each(|&(number, values)| *warp.registers[number as usize] = values);
        let registers = std::mem::take(&mut warp.registers);
        Warp { registers, ..saved.clone() }
    });
    block.warps.extend(warps);
    block
}
