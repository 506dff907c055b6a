//! What accepted commands do, and what they answer.

use std::ops::Range;
use std::sync::PoisonError;

use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode};
use nearpm_interface::completion::Completion;
use nearpm_interface::effect::Effect;
use nearpm_interface::status::Status;

use super::{Accepted, MapEntry, Range64, State, overlap};

impl State {
    /// Executes a random pending command that waits for no earlier one.
    pub(super) fn execute_one(&mut self) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let at = self.next() as usize % self.pending.len();
        let ready = |i: usize| {
            let this = &self.pending[i];
            let opcode = Opcode::from_code(this.command.opcode);
            let ordered = matches!(
                opcode,
                Some(Opcode::Fence | Opcode::Commit | Opcode::Switch | Opcode::Recover | Opcode::Map | Opcode::Unmap)
            );
            self.pending[..i].iter().all(|earlier| {
                let same = earlier.command.pool == this.command.pool && earlier.command.thread == this.command.thread;
                let conflict =
                    this.writes.iter().any(|w| earlier.writes.iter().chain(&earlier.reads).any(|e| overlap(w, e)))
                        || this.reads.iter().any(|r| earlier.writes.iter().any(|e| overlap(r, e)));
                !(conflict || ordered && same)
            })
        };
        let at = if ready(at) { at } else { 0 };
        self.execute(at);
        true
    }

    /// Executes a pending command, which makes room for another.
    pub(super) fn execute(&mut self, at: usize) {
        let accepted = self.pending.remove(at);
        self.carry_out(accepted);
        self.take_full_slots();
    }

    fn carry_out(&mut self, accepted: Accepted) {
        let Accepted { command, page, order, reads, writes } = accepted;
        let opcode = Opcode::from_code(command.opcode).expect("only known opcodes are accepted");
        let base = self.mapping(&command).map_or(0, |m| m.base);
        if self.mapping(&command).is_some_and(|m| m.latched) && opcode != Opcode::Unmap {
            return self.answer(page, &command, Status::Latched, order);
        }
        let failed = self.broken.iter().any(|b| reads.iter().chain(&writes).any(|r| overlap(b, r)));
        if failed {
            for mapping in self.mappings.iter_mut().filter(|m| (m.pool, m.thread) == (command.pool, command.thread)) {
                mapping.latched |= matches!(opcode, Opcode::UndoLog | Opcode::Checkpoint);
            }
            return self.answer(page, &command, Status::MemoryError, order);
        }
        let load = |range: Range<u64>| self.medium[(base + range.start) as usize..(base + range.end) as usize].to_vec();
        if let Some(Effect { destination, bytes }) = Effect::of(&command, load) {
            self.medium[(base + destination) as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        match opcode {
            Opcode::Commit => {
                for mapping in self.mappings.iter_mut().filter(|m| (m.pool, m.thread) == (command.pool, command.thread))
                {
                    mapping.committed = command.txid;
                }
            }
            Opcode::Map => self.mappings.push(MapEntry {
                entry: (0..).find(|entry| self.mappings.iter().all(|m| m.entry != *entry)).expect("a free entry"),
                pool: command.pool,
                thread: command.thread,
                base: command.source,
                bytes: command.destination,
                ring: Range64 { start: command.auxiliary, bytes: command.length.into() },
                committed: command.sequence,
                latched: false,
            }),
            Opcode::Unmap => self.mappings.retain(|m| (m.pool, m.thread) != (command.pool, command.thread)),
            _ => {}
        }
        self.executed.push(command);
        self.answer(page, &command, Status::Ok, order);
    }

    pub(super) fn answer(&mut self, page: usize, command: &Command, status: Status, order: u64) {
        let number = page as u8;
        let page = &mut self.pages[page];
        match status {
            Status::Ok => page.status.retired += 1,
            bad => {
                if bad.had_side_effects() {
                    page.status.failed += 1;
                } else {
                    page.status.refused += 1;
                }
                page.status.last_bad_tag = command.tag;
                page.status.last_bad_status = bad.code();
            }
        }
        let (address, Some(log2)) = page.ring else { return };
        if status == Status::Ok && command.flags & FLAG_COMPLETE == 0 {
            return;
        }
        let records = 1u64 << log2;
        let lap = (page.records / records + 1) as u16;
        let record = Completion { tag: command.tag, status: status.code(), page: number, lap, order };
        let at = (page.records % records) as usize * Completion::SIZE;
        page.records += 1;
        let buffer = &self.dma[&address];
        buffer.lock().unwrap_or_else(PoisonError::into_inner)[at..at + Completion::SIZE]
            .copy_from_slice(&record.to_bytes());
        if !self.options.lose_interrupts {
            let only = self.signalled.len() == 1;
            if let Some(signalled) = self.signalled.get_mut(if only { 0 } else { number.into() }) {
                *signalled = true;
            }
        }
    }
}
