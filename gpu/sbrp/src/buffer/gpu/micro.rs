//! What a warp does with the buffer for each instruction.

use super::{BufferGpu, GpuState};
use crate::Scope;
use crate::buffer::rules::BufferRule;
use crate::buffer::unit::{Answer, Kind};
use crate::litmus::{Action, Wanted};

/// How far an instruction is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Not begun.
    #[default]
    Start,
    /// Its ordering entry is there.
    Ordered,
    /// Its store is in L1, and not yet visible to others.
    Stored,
    /// Its store is durable next.
    Following,
}

impl BufferGpu<'_> {
    /// The next thing that a thread does, if it can.
    pub(super) fn execute(&self, state: &GpuState, thread: usize) -> Option<GpuState> {
        let (processor, warp) = self.place[thread];
        let running = &state.threads[thread];
        if running.at_barrier || state.buffers[processor].holds(warp) {
            return None;
        }
        let instruction = self.test.threads[thread].program.get(running.pc as usize)?;
        let mut after = state.clone();
        if instruction.guard.is_some_and(|(register, wanted)| state.registers[register] != wanted) {
            after.threads[thread].pc += 1;
            return Some(after);
        }
        self.perform(&mut after, thread, instruction.action);
        (after != *state).then_some(after)
    }

    fn perform(&self, state: &mut GpuState, thread: usize, action: Action) {
        match action {
            Action::Store { id, word, release, .. } => self.store(state, thread, id, word, release),
            Action::Load { word, wanted, acquire } => self.load(state, thread, word, wanted, acquire),
            Action::OFence | Action::Fence(Scope::Block) => self.order_then_next(state, thread, Kind::OFence),
            Action::Fence(_) => self.order_then_next(state, thread, Kind::ReleaseDevice),
            Action::DFence => self.order_then_next(state, thread, Kind::DFence),
            Action::Mark(mark) => {
                state.marks |= 1 << mark;
                self.next(state, thread);
            }
            Action::Barrier => self.come_to_barrier(state, thread),
        }
    }

    fn next(&self, state: &mut GpuState, thread: usize) {
        state.threads[thread].pc += 1;
        state.threads[thread].phase = Phase::Start;
    }

    /// Makes an ordering entry. Whether there is one now; a warp that is held does not come here
    /// before it goes on.
    fn order(&self, state: &mut GpuState, thread: usize, kind: Kind) -> bool {
        let (processor, warp) = self.place[thread];
        state.buffers[processor].order(warp, kind) != Answer::Refused
    }

    fn order_then_next(&self, state: &mut GpuState, thread: usize, kind: Kind) {
        if self.order(state, thread, kind) {
            self.next(state, thread);
        }
    }

    fn store(&self, state: &mut GpuState, thread: usize, id: usize, word: usize, release: Option<Scope>) {
        let persistent = self.test.words[word].persistent;
        let device = release >= Some(Scope::Device);
        match state.threads[thread].phase {
            Phase::Start if release.is_some() => {
                let kind = if device { Kind::ReleaseDevice } else { Kind::ReleaseBlock };
                if self.order(state, thread, kind) {
                    state.threads[thread].phase = Phase::Ordered;
                }
            }
            Phase::Start | Phase::Ordered => {
                if state.locked >> word & 1 == 1 || persistent && !self.dirty(state, thread, id, word) {
                    return;
                }
                if persistent && device && self.rules.keep(BufferRule::FlagDurableFirst) {
                    state.locked |= 1 << word;
                    state.threads[thread].phase = Phase::Stored;
                } else {
                    state.visible[word] = Some(id as u8);
                    self.next(state, thread);
                }
            }
            Phase::Stored => {
                if self.order(state, thread, Kind::ReleaseDevice) {
                    state.threads[thread].phase = Phase::Following;
                }
            }
            Phase::Following => {
                state.locked &= !(1 << word);
                state.visible[word] = Some(id as u8);
                self.next(state, thread);
            }
        }
    }

    /// Stores to a line of L1, if the buffer lets it.
    fn dirty(&self, state: &mut GpuState, thread: usize, id: usize, word: usize) -> bool {
        let (processor, warp) = self.place[thread];
        let accepted = state.buffers[processor].persist(warp, self.test.words[word].line) == Answer::Accepted;
        if accepted {
            state.dirty[processor][word] = Some(id as u8);
        }
        accepted
    }

    fn load(&self, state: &mut GpuState, thread: usize, word: usize, wanted: Wanted, acquire: Option<Scope>) {
        if state.threads[thread].phase == Phase::Start {
            let value = match state.visible[word] {
                Some(store) => self.stores[usize::from(store)].value,
                None => self.test.words[word].initial,
            };
            match wanted {
                Wanted::Register(register) => state.registers[register] = value,
                // A turn of a loop that waits makes no entry.
                Wanted::Until(wanted) if wanted != value => return,
                Wanted::Until(_) => {}
            }
            match acquire {
                None => self.next(state, thread),
                Some(_) => state.threads[thread].phase = Phase::Ordered,
            }
            return;
        }
        let kind = if acquire >= Some(Scope::Device) { Kind::AcquireDevice } else { Kind::AcquireBlock };
        self.order_then_next(state, thread, kind);
    }

    fn come_to_barrier(&self, state: &mut GpuState, thread: usize) {
        state.threads[thread].at_barrier = true;
        let processor = self.place[thread].0;
        let block: Vec<usize> = (0..self.place.len()).filter(|other| self.place[*other].0 == processor).collect();
        if block.iter().all(|other| state.threads[*other].at_barrier) {
            for other in block {
                state.threads[other].at_barrier = false;
                self.next(state, other);
            }
        }
    }
}
