//! What the card knows beyond its memory, as far as what it was sent shows: filled slots, mappings,
//! its number.
//!
//! A memory that is put in force while the card runs lacks these; with [`Ledger::preamble`] in
//! front of what follows, the journal does again what the card did.

use std::collections::BTreeSet;
use std::ops::Range;

use nearpm_endpoint::slots::Slots;
use nearpm_interface::command::{Command, Opcode, slot_offset};
use nearpm_interface::geometry::{LINE, MAP_ENTRIES, SLOTS_PER_PAGE};
use nearpm_interface::registers::{self as reg, control};
use nearpm_sim::core::Access;

/// The account; the default is that of a card that has just powered up.
#[derive(Default)]
pub struct Ledger {
    slots: Slots,
    /// Map commands in force, in their order.
    mappings: Vec<Command>,
    device_number: Option<u32>,
}

fn same(a: &Command, b: &Command) -> bool {
    (a.pool, a.thread) == (b.pool, b.thread)
}

impl Ledger {
    /// Takes note of what the card is sent; says whether it fills a command slot.
    pub fn note(&mut self, access: &Access) -> bool {
        match access {
            Access::RegisterWrite { offset: reg::CONTROL, value } if value & control::FUNCTION_RESET != 0 => {
                self.mappings.clear();
                self.slots.clear();
                false
            }
            Access::RegisterWrite { offset: reg::DEVICE_NUMBER, value } => {
                self.device_number = Some(*value);
                false
            }
            Access::CommandWrite { offset, data, strobes } => self.note_command(*offset, data, *strobes),
            _ => false,
        }
    }

    fn note_command(&mut self, offset: u64, data: &[u8; LINE], strobes: u64) -> bool {
        let Some((page, bytes)) = self.slots.store(offset, data, strobes) else { return false };
        if let Some(command) = Command::decode(&bytes) {
            self.note_whole(page, command);
        }
        true
    }

    fn note_whole(&mut self, page: usize, command: Command) {
        let known = self.mappings.iter().position(|mapping| same(mapping, &command));
        match (Opcode::from_code(command.opcode), known) {
            (Some(Opcode::Map), None) if page == 0 && self.mappings.len() < MAP_ENTRIES => self.mappings.push(command),
            (Some(Opcode::Unmap), Some(known)) if page == 0 => drop(self.mappings.remove(known)),
            (Some(Opcode::Commit), Some(known)) => {
                let committed = &mut self.mappings[known].sequence;
                *committed = command.txid.max(*committed);
            }
            _ => {}
        }
    }

    /// Whether a slot holds part of a command, whose rest may still come.
    pub fn has_parts(&self) -> bool {
        self.slots.has_parts()
    }

    /// What a card on the memory of now has to be told first.
    pub fn preamble(&self) -> Vec<Access> {
        let number = self.device_number.map(|value| Access::RegisterWrite { offset: reg::DEVICE_NUMBER, value });
        let maps = self.mappings.iter().enumerate().map(|(n, mapping)| Access::CommandWrite {
            offset: slot_offset(0, n % SLOTS_PER_PAGE),
            data: mapping.encode(),
            strobes: u64::MAX,
        });
        number.into_iter().chain(maps).collect()
    }

    /// Device addresses that commands may reach.
    pub fn reach(&self, memory: u64) -> Vec<Range<u64>> {
        let ends = |mapping: &Command| (mapping.source, mapping.source.saturating_add(mapping.destination).min(memory));
        let pools: BTreeSet<_> = self.mappings.iter().map(ends).collect();
        pools.into_iter().filter(|(start, end)| start < end).map(|(start, end)| start..end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(ledger: &mut Ledger, page: usize, command: Command) -> bool {
        let data = command.encode();
        let offset = slot_offset(page, 3);
        let half = |strobes| Access::CommandWrite { offset, data, strobes };
        assert!(!ledger.note(&half(0xffff_ffff)) && ledger.has_parts());
        ledger.note(&half(0xffff_ffff << 32))
    }

    fn map(pool: u32) -> Command {
        let base = u64::from(pool) << 20;
        Command {
            opcode: Opcode::Map as u8,
            pool,
            source: base,
            destination: 1 << 20,
            sequence: 4,
            ..Command::default()
        }
    }

    #[test]
    fn the_preamble_makes_the_mappings_in_force_with_their_last_commits() {
        let mut ledger = Ledger::default();
        assert!(post(&mut ledger, 0, map(2)) && !ledger.has_parts());
        post(&mut ledger, 0, map(1));
        post(&mut ledger, 1, map(7));
        post(&mut ledger, 1, Command { opcode: Opcode::Commit as u8, pool: 2, txid: 9, ..Command::default() });
        ledger.note(&Access::RegisterWrite { offset: reg::DEVICE_NUMBER, value: 3 });
        let preamble = ledger.preamble();
        assert_eq!(preamble[0], Access::RegisterWrite { offset: reg::DEVICE_NUMBER, value: 3 });
        let commands: Vec<_> = preamble[1..]
            .iter()
            .map(|access| match access {
                Access::CommandWrite { data, .. } => Command::decode(data).unwrap(),
                other => panic!("{other:?}"),
            })
            .collect();
        let found: Vec<_> = commands.iter().map(|c| (c.pool, c.sequence)).collect();
        assert_eq!(found, [(2, 9), (1, 4)], "a map on another page is refused");
        assert_eq!(ledger.reach(0x28_0000), [0x10_0000..0x20_0000, 0x20_0000..0x28_0000]);
        post(&mut ledger, 0, Command { opcode: Opcode::Unmap as u8, pool: 2, ..Command::default() });
        assert_eq!(ledger.preamble().len(), 2);
        ledger.note(&Access::RegisterWrite { offset: reg::CONTROL, value: control::FUNCTION_RESET });
        assert_eq!(ledger.preamble().len(), 1);
    }
}
