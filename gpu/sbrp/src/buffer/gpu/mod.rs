//! A GPU of buffers: each block on a multiprocessor of its own, each thread a warp. What is flushed
//! is acknowledged in any order.

mod micro;

use micro::Phase;

use super::rules::{BufferRule, BufferRules};
use super::unit::{Flush, PersistBuffer, Sizes};
use crate::litmus::{Action, NOT_LOADED, StoreSite, Test, Wanted};
use crate::outcome::{Outcome, observe};

/// A test on such a GPU.
pub struct BufferGpu<'t> {
    test: &'t Test,
    stores: Vec<StoreSite>,
    rules: BufferRules,
    sizes: Sizes,
    /// Of each thread: its multiprocessor, and its warp there.
    place: Vec<(usize, usize)>,
    processors: usize,
}

/// A line on its way to memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Flight {
    processor: usize,
    line: usize,
    /// The words that were dirty, with their stores.
    stores: Vec<(usize, u8)>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Running {
    pub pc: u8,
    pub phase: Phase,
    pub at_barrier: bool,
}

/// The state of the GPU.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GpuState {
    threads: Vec<Running>,
    buffers: Vec<PersistBuffer>,
    /// Of each word: the store that is visible.
    visible: Vec<Option<u8>>,
    /// Of each multiprocessor and word: the dirty store in its L1.
    dirty: Vec<Vec<Option<u8>>>,
    /// Words whose device release is under way: other stores to them wait.
    locked: u32,
    flights: Vec<Flight>,
    durable: Vec<Option<u8>>,
    registers: Vec<u8>,
    marks: u16,
    ended: u8,
}

impl<'t> BufferGpu<'t> {
    /// A GPU for a test.
    pub fn new(test: &'t Test, rules: BufferRules, sizes: Sizes) -> BufferGpu<'t> {
        let mut blocks: Vec<(usize, usize)> = Vec::new();
        let mut warps: Vec<usize> = Vec::new();
        let mut place = Vec::new();
        for thread in &test.threads {
            let block = (thread.launch, thread.block);
            let processor = blocks.iter().position(|b| *b == block).unwrap_or_else(|| {
                blocks.push(block);
                warps.push(0);
                blocks.len() - 1
            });
            place.push((processor, warps[processor]));
            warps[processor] += 1;
        }
        BufferGpu { test, stores: test.stores(), rules, sizes, place, processors: blocks.len() }
    }

    /// The state before the first instruction.
    pub fn start(&self) -> GpuState {
        let words = self.test.words.len();
        GpuState {
            threads: vec![Running::default(); self.test.threads.len()],
            buffers: vec![PersistBuffer::new(self.rules, self.sizes); self.processors],
            visible: vec![None; words],
            dirty: vec![vec![None; words]; self.processors],
            locked: 0,
            flights: Vec::new(),
            durable: vec![None; words],
            registers: vec![NOT_LOADED; self.test.registers.len()],
            marks: 0,
            ended: 0,
        }
    }

    /// What is left when the power fails.
    pub fn observe(&self, state: &GpuState) -> Outcome {
        let word = |word: usize| match state.durable[word] {
            Some(store) => self.stores[usize::from(store)].value,
            None => self.test.words[word].initial,
        };
        observe(self.test, word, &state.registers, state.marks, state.ended)
    }

    /// Whether the last launch has ended.
    pub fn has_ended(&self, state: &GpuState) -> bool {
        usize::from(state.ended) == self.test.launches()
    }

    /// Whether the buffers are to blame that nothing goes on: they are not empty, or a thread waits
    /// for something else than for another thread's store or arrival at a barrier.
    pub(super) fn is_stuck(&self, state: &GpuState) -> bool {
        let waits_for_others = |index: usize| {
            let (program, running) = (&self.test.threads[index].program, &state.threads[index]);
            let action = program.get(running.pc as usize).map(|instruction| instruction.action);
            let later = self.test.threads[index].launch > usize::from(state.ended);
            later
                || running.at_barrier
                || running.phase == Phase::Start
                    && matches!(action, None | Some(Action::Load { wanted: Wanted::Until(_), .. }))
        };
        let drained = state.buffers.iter().all(PersistBuffer::is_drained);
        !(self.has_ended(state) || drained && (0..self.place.len()).all(waits_for_others))
    }

    /// All states that follow.
    pub fn steps(&self, state: &GpuState) -> Vec<GpuState> {
        let mut next = Vec::new();
        for (index, thread) in self.test.threads.iter().enumerate() {
            if thread.launch == usize::from(state.ended) {
                next.extend(self.execute(state, index));
            }
        }
        for processor in 0..self.processors {
            self.flush_steps(state, processor, &mut next);
        }
        for flight in 0..state.flights.len() {
            next.extend(self.arrive(state, flight));
        }
        next.extend(self.end(state));
        next
    }

    fn flush_steps(&self, state: &GpuState, processor: usize, next: &mut Vec<GpuState>) {
        let mut after = state.clone();
        match after.buffers[processor].flush() {
            Flush::Line(line) => next.push(self.depart(after, processor, line)),
            Flush::Left => next.push(after),
            Flush::Nothing => {}
        }
        for line in 0..=self.test.words.last().map_or(0, |word| word.line) {
            let mut after = state.clone();
            if after.buffers[processor].evict(line) {
                next.push(self.depart(after, processor, line));
            }
        }
    }

    fn depart(&self, mut state: GpuState, processor: usize, line: usize) -> GpuState {
        let words = (0..self.test.words.len()).filter(|word| self.test.words[*word].line == line);
        let stores = words.filter_map(|word| Some((word, state.dirty[processor][word].take()?))).collect();
        state.flights.push(Flight { processor, line, stores });
        state
    }

    /// A line reaches memory; an older one of the same line of the same multiprocessor reaches it
    /// first.
    fn arrive(&self, state: &GpuState, index: usize) -> Option<GpuState> {
        let flight = &state.flights[index];
        let same = |other: &Flight| (other.processor, other.line) == (flight.processor, flight.line);
        if state.flights[..index].iter().any(same) {
            return None;
        }
        let mut after = state.clone();
        let flight = after.flights.remove(index);
        flight.stores.iter().for_each(|(word, store)| after.durable[*word] = Some(*store));
        after.buffers[flight.processor].acknowledge();
        Some(after)
    }

    fn end(&self, state: &GpuState) -> Option<GpuState> {
        let launch = usize::from(state.ended);
        let all = self.test.threads.iter().zip(&state.threads);
        let done = all.filter(|(t, _)| t.launch == launch).all(|(t, running)| running.pc as usize == t.program.len());
        let drained = state.flights.is_empty() && state.buffers.iter().all(PersistBuffer::is_drained);
        if self.has_ended(state) || !done || !drained && self.rules.keep(BufferRule::EndDrains) {
            return None;
        }
        let mut after = state.clone();
        after.ended += 1;
        Some(after)
    }
}
