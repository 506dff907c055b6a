//! What arrives on the command pages: commands are put together, checked and accepted.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{
    COMMAND_PAGE_BYTES, LINE, LINE_U64, MAP_ENTRIES, MAX_COMMAND_BYTES, POOLS_BASE, SLOTS_PER_PAGE,
};
use nearpm_interface::media::entry_bytes;
use nearpm_interface::registers::state;
use nearpm_interface::status::Status;

use super::{Accepted, Access, MapEntry, Range64, State, lines, overlap};

impl State {
    pub(super) fn command_bytes(&mut self, offset: u64, bytes: &[u8]) {
        let page = offset as usize / COMMAND_PAGE_BYTES;
        let inside = offset as usize % COMMAND_PAGE_BYTES;
        let slot = inside / LINE;
        if slot >= SLOTS_PER_PAGE {
            return;
        }
        if self.full_slots.contains(&(page, slot)) {
            self.full_slots.retain(|&full| full != (page, slot));
            self.pages[page].status.dropped += 1;
        }
        let (line, filled) = &mut self.pages[page].slots[slot];
        let mask = (u64::MAX >> (LINE - bytes.len())) << (inside % LINE);
        if *filled & mask != 0 {
            *filled = 0;
        }
        line[inside % LINE..][..bytes.len()].copy_from_slice(bytes);
        *filled |= mask;
        if *filled == u64::MAX {
            *filled = 0;
            self.full_slots.push_back((page, slot));
            self.take_full_slots();
        }
    }

    /// Takes commands out of their slots, as far as there is room.
    pub(super) fn take_full_slots(&mut self) {
        while self.pending.len() < self.options.request_slots {
            let Some((page, slot)) = self.full_slots.pop_front() else { return };
            let line = self.pages[page].slots[slot].0;
            self.accept(page, &line);
        }
    }

    /// Takes all of them, for something that arrived later.
    pub(super) fn empty_slots(&mut self) {
        while !self.full_slots.is_empty() {
            self.execute_one();
        }
    }

    pub(super) fn accept(&mut self, page: usize, line: &[u8; LINE]) {
        let Some(command) = Command::decode(line) else {
            self.pages[page].status.dropped += 1;
            return;
        };
        match self.admit(page, &command) {
            Ok((reads, writes)) => {
                self.order += 1;
                self.pages[page].status.accepted += 1;
                self.pages[page].status.order = self.order;
                let whole = |ranges: Vec<_>| ranges.into_iter().map(lines).collect();
                let (reads, writes) = (whole(reads), whole(writes));
                self.pending.push(Accepted { command, page, order: self.order, reads, writes });
            }
            Err(status) => self.answer(page, &command, status, 0),
        }
    }

    /// Checks a command as the decoder does, and gives what it reads and writes.
    pub(super) fn admit(&self, page: usize, command: &Command) -> Result<Access, Status> {
        let opcode = Opcode::from_code(command.opcode).ok_or(Status::BadOpcode)?;
        if self.card_state != state::OPEN {
            return Err(Status::BadOpcode);
        }
        if matches!(opcode, Opcode::Map | Opcode::Unmap) && page != 0 {
            return Err(Status::NotPrivileged);
        }
        if command.participants > 1 {
            return Err(Status::BadParticipants);
        }
        if opcode == Opcode::Map {
            self.admit_map(command)?;
            return Ok((vec![], vec![]));
        }
        let mapping = self.mapping(command).ok_or(Status::Unmapped)?;
        if mapping.latched && opcode != Opcode::Unmap {
            return Err(Status::Latched);
        }
        let length = u64::from(command.length);
        let uses_length = !matches!(opcode, Opcode::Fence | Opcode::Unmap | Opcode::Commit | Opcode::Switch);
        if uses_length && (length == 0 || length > MAX_COMMAND_BYTES.into()) {
            return Err(Status::BadLength);
        }
        let place = |offset: u64, bytes: u64, ring: bool| {
            let limit = if ring { mapping.ring } else { Range64 { start: 0, bytes: mapping.bytes } };
            let end = offset.checked_add(bytes).ok_or(Status::OutOfRange)?;
            if offset < limit.start || end > limit.start + limit.bytes {
                return Err(Status::OutOfRange);
            }
            Ok(mapping.base + offset..mapping.base + end)
        };
        let congruent = command.source % LINE_U64 == command.destination % LINE_U64;
        let (reads, writes) = match opcode {
            Opcode::Fence | Opcode::Unmap => (vec![], vec![]),
            Opcode::UndoLog | Opcode::Checkpoint => {
                if !command.destination.is_multiple_of(LINE_U64) {
                    return Err(Status::Misaligned);
                }
                let bytes = entry_bytes(command.source, command.length);
                (vec![place(command.source, length, false)?], vec![place(command.destination, bytes, true)?])
            }
            Opcode::Apply | Opcode::Recover | Opcode::ShadowCopy => {
                if !congruent {
                    return Err(Status::Misaligned);
                }
                let in_ring = opcode != Opcode::ShadowCopy;
                (vec![place(command.source, length, in_ring)?], vec![place(command.destination, length, false)?])
            }
            Opcode::Commit | Opcode::Switch => {
                if !command.destination.is_multiple_of(8) {
                    return Err(Status::Misaligned);
                }
                (vec![], vec![place(command.destination, 8, false)?])
            }
            // The library does not use these.
            Opcode::UndoRedo | Opcode::MirrorLog | Opcode::Map => return Err(Status::BadOpcode),
        };
        if matches!(opcode, Opcode::UndoLog | Opcode::Checkpoint) && command.txid <= mapping.committed {
            return Err(Status::StaleTransaction);
        }
        if reads.iter().any(|r| writes.iter().any(|w| overlap(&lines(r.clone()), &lines(w.clone())))) {
            return Err(Status::Overlap);
        }
        Ok((reads, writes))
    }

    pub(super) fn admit_map(&self, command: &Command) -> Result<(), Status> {
        // Maps take effect at once in this model, so that pending ones cannot exceed the table.
        if self.mapping(command).is_some() {
            return Err(Status::MapExists);
        }
        if self.mappings.len() + self.pending.iter().filter(|a| a.command.opcode == Opcode::Map as u8).count()
            >= MAP_ENTRIES
        {
            return Err(Status::MapFull);
        }
        if !command.source.is_multiple_of(LINE_U64) || !command.auxiliary.is_multiple_of(LINE_U64) {
            return Err(Status::Misaligned);
        }
        let end = command.source.checked_add(command.destination).ok_or(Status::OutOfRange)?;
        let ring_end = command.auxiliary.checked_add(command.length.into()).ok_or(Status::OutOfRange)?;
        if command.source < POOLS_BASE || end > self.options.pm_bytes as u64 || ring_end > command.destination {
            return Err(Status::OutOfRange);
        }
        Ok(())
    }

    pub(super) fn mapping(&self, command: &Command) -> Option<&MapEntry> {
        self.mappings.iter().find(|m| m.pool == command.pool && m.thread == command.thread)
    }
}
