//! Threads of the processor, and their write-combining buffers.
//!
//! Stores become visible to the other threads in program order and at once: the store buffers of
//! x86 are left out, because programs here hand data over by marks. What matters is when things
//! leave the processor.

use super::{Blocked, Buffered, Model, Packet, State, bit, with};
use crate::litmus::{Instruction, Posting};
use crate::rules::Rule;

impl Model<'_> {
    /// The next instruction of a thread, if it can be executed.
    pub(super) fn thread_steps(&self, state: &State, thread: usize, next: &mut Vec<State>) {
        let me = &state.threads[thread];
        let Some(instruction) = self.test.threads[thread].program.get(me.counter) else { return };
        if me.blocked != Blocked::No {
            return;
        }
        match *instruction {
            Instruction::Store(word, value) => self.cached_access(state, thread, word, next, |model, state| {
                model.write_cached(state, word, value);
                true
            }),
            Instruction::Load(word, register) => self.cached_access(state, thread, word, next, |model, state| {
                state.registers[register] = model.read_cached(state, word);
                true
            }),
            Instruction::NonTemporal(word, value) => self.non_temporal(state, thread, word, value, next),
            Instruction::WriteBack(line) => next.push(with(state, |s| {
                if s.cache[line].as_ref().is_some_and(|c| c.dirty) {
                    s.threads[thread].write_backs |= bit(line);
                }
                s.threads[thread].counter += 1;
            })),
            Instruction::Invalidate(line) => next.push(with(state, |s| {
                if s.cache[line].is_some() || self.in_flight(s, line) {
                    s.threads[thread].invalidations |= bit(line);
                }
                s.threads[thread].counter += 1;
            })),
            Instruction::Fence => {
                let written_back = me.write_backs | me.invalidations == 0 || !self.keep(Rule::FenceWaitsForWriteBacks);
                let drained = me.combining.is_empty() || !self.keep(Rule::FenceDrainsStores);
                if written_back && drained {
                    next.push(with(state, |s| s.threads[thread].counter += 1));
                }
            }
            Instruction::Post(procedure, posting) => next.push(with(state, |s| {
                let buffers = &mut s.threads[thread].combining;
                match posting {
                    Posting::Whole => buffers.push(Buffered::Whole(procedure)),
                    _ => buffers.extend([0, 1].map(|half| Buffered::Piece(procedure, half, posting))),
                }
                s.threads[thread].counter += 1;
            })),
            Instruction::ReadBack(card) => {
                self.ask(state, thread, card, Packet::ReadBack(thread), Blocked::ReadBack, next)
            }
            Instruction::Reset(card) => self.ask(state, thread, card, Packet::Reset(thread), Blocked::Reset, next),
            Instruction::Finish(procedure) => {
                if state.completed & bit(procedure) != 0 {
                    next.push(with(state, |s| s.threads[thread].counter += 1));
                }
            }
            Instruction::Mark(mark) => next.push(with(state, |s| {
                s.marks |= bit(mark);
                s.threads[thread].counter += 1;
            })),
            Instruction::Await(mark) => {
                if state.marks & bit(mark) != 0 {
                    next.push(with(state, |s| s.threads[thread].counter += 1));
                }
            }
        }
    }

    /// Sends a packet that the thread waits for.
    pub(super) fn ask(
        &self,
        state: &State,
        thread: usize,
        device: usize,
        packet: Packet,
        blocked: Blocked,
        next: &mut Vec<State>,
    ) {
        if self.link_has_room(state, device) {
            next.push(with(state, |s| {
                s.links[device].push(packet);
                s.threads[thread].blocked = blocked;
                if blocked == Blocked::ReadBack && !self.keep(Rule::ReadBackWaits) {
                    self.unblock(s, thread);
                }
            }));
        }
    }

    /// Ends the instruction that a thread waits in.
    pub(super) fn unblock(&self, state: &mut State, thread: usize) {
        state.threads[thread].counter += 1;
        state.threads[thread].blocked = Blocked::No;
    }

    /// A store around the caches drives the line out of them first.
    fn non_temporal(&self, state: &State, thread: usize, word: usize, value: u8, next: &mut Vec<State>) {
        let line = self.line_of(word);
        if !self.may_bypass(state, line) {
            return;
        }
        next.push(with(state, |s| {
            self.drop_line(s, line);
            let buffers = &mut s.threads[thread].combining;
            buffers.retain(|b| !matches!(b, Buffered::Word(w, _) if *w == word));
            buffers.push(Buffered::Word(word, value));
            s.threads[thread].counter += 1;
        }));
    }

    /// Whether the caches are rid of a line but for a clean copy, so that a store may go around
    /// them.
    fn may_bypass(&self, state: &State, line: usize) -> bool {
        !state.cache[line].as_ref().is_some_and(|c| c.dirty) && !self.in_flight(state, line)
    }

    /// Whether a thread has a word of a line in its write-combining buffers.
    pub(super) fn combines(&self, state: &State, thread: usize, line: usize) -> bool {
        state.threads[thread]
            .combining
            .iter()
            .any(|b| matches!(b, Buffered::Word(word, _) if self.line_of(*word) == line))
    }

    /// A buffer drains: any of them, at any time. Only uncached stores keep their order.
    pub(super) fn drain_steps(&self, state: &State, thread: usize, next: &mut Vec<State>) {
        let buffers = &state.threads[thread].combining;
        let uncached = |b: &Buffered| matches!(b, Buffered::Piece(_, _, Posting::Uncached));
        let first_uncached = buffers.iter().position(uncached);
        for (index, buffered) in buffers.iter().enumerate() {
            if uncached(buffered) && first_uncached != Some(index) && self.keep(Rule::UncachedKeepsOrder) {
                continue;
            }
            let (device, packet) = match *buffered {
                Buffered::Word(word, value) => (self.device_of(self.line_of(word)), Packet::Store(vec![(word, value)])),
                Buffered::Whole(procedure) => (self.test.procedures[procedure].device, Packet::Whole(procedure)),
                Buffered::Piece(procedure, half, _) => {
                    (self.test.procedures[procedure].device, Packet::Piece(procedure, half))
                }
            };
            let bypassed = match *buffered {
                Buffered::Word(word, _) => Some(self.line_of(word)),
                _ => None,
            };
            if self.link_has_room(state, device) && bypassed.is_none_or(|line| self.may_bypass(state, line)) {
                next.push(with(state, |s| {
                    if let Some(line) = bypassed {
                        self.drop_line(s, line);
                    }
                    s.threads[thread].combining.remove(index);
                    s.links[device].push(packet);
                }));
            }
        }
    }
}
