//! The link to a card: first in, first out. What has not arrived at a power failure is lost.

use super::{GARBAGE, Model, Packet, State, with};
use crate::rules::Rule;

impl Model<'_> {
    pub(super) fn link_has_room(&self, state: &State, device: usize) -> bool {
        self.test.options.link.is_none_or(|bound| state.links[device].len() < bound)
    }

    /// The next packet arrives.
    pub(super) fn link_steps(&self, state: &State, device: usize, next: &mut Vec<State>) {
        let candidates = match self.keep(Rule::LinkKeepsOrder) {
            true => state.links[device].len().min(1),
            false => state.links[device].len(),
        };
        for index in 0..candidates {
            let mut arrived = state.clone();
            let packet = arrived.links[device].remove(index);
            if self.arrive(&mut arrived, device, packet) {
                next.push(arrived);
            }
        }
    }

    /// Takes a packet in; `false` if it has to wait for room.
    fn arrive(&self, state: &mut State, device: usize, packet: Packet) -> bool {
        match packet {
            Packet::Store(writes) => self.accept_store(state, device, writes),
            Packet::Load(thread, line) => self.accept_load(state, device, thread, line),
            Packet::ReadBack(thread) if state.cards[device].lost && self.keep(Rule::LostStoreIsTold) => {
                // The library gives an error, behind which the program does nothing more.
                self.unblock(state, thread);
                state.threads[thread].counter = self.test.threads[thread].program.len();
            }
            Packet::ReadBack(thread) if self.keep(Rule::ReadBackWaits) => self.unblock(state, thread),
            Packet::ReadBack(_) => {}
            Packet::Reset(_) => self.begin_reset(state, device),
            Packet::Whole(procedure) => return self.accept_command(state, device, procedure),
            Packet::Piece(procedure, half) => {
                let shift = 2 * procedure;
                let pieces = &mut state.cards[device].pieces;
                *pieces |= 1 << (shift + half as usize);
                if *pieces >> shift & 3 == 3 {
                    *pieces &= !(3 << shift);
                    return self.accept_command(state, device, procedure);
                }
                if !self.keep(Rule::WholeCommands) {
                    // Planted: it runs with what the slot held before in the place of the other
                    // half.
                    let lines = self.test.procedures[procedure].writes.iter();
                    let words = lines.flat_map(|line| &self.test.lines[*line].words);
                    self.accept_store(state, device, words.map(|word| (*word, GARBAGE)).collect());
                }
            }
        }
        true
    }

    fn begin_reset(&self, state: &mut State, device: usize) {
        let card = &mut state.cards[device];
        if self.keep(Rule::ResetForgetsParts) {
            card.pieces = 0;
        }
        if !self.keep(Rule::ResetDrains) {
            card.items.clear();
            card.parked.clear();
        }
    }

    /// A reset ends when the card has executed everything that it had accepted.
    pub(super) fn reset_steps(&self, state: &State, device: usize, next: &mut Vec<State>) {
        for (thread, me) in state.threads.iter().enumerate() {
            if me.blocked != super::Blocked::Reset {
                continue;
            }
            let instruction = &self.test.threads[thread].program[me.counter];
            let here = *instruction == crate::litmus::Instruction::Reset(device);
            let arrived = !state.links[device].contains(&Packet::Reset(thread));
            if here && arrived && state.cards[device].items.is_empty() {
                next.push(with(state, |s| self.unblock(s, thread)));
            }
        }
    }
}
