//! Lives that chance does not bring: those in which a table or a counter fills ([`full`]), and
//! those in which something comes at a certain time ([`timely`]).

mod full;
mod timely;

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{
    COMMAND_PAGE_BYTES, COMMAND_PAGES, LINE_U64, MAP_ENTRIES, PARKED_COMMANDS, SLOTS_PER_PAGE,
};
use nearpm_interface::registers;
use rand::RngExt;

use super::life::Life;
use super::session::{COMMANDS, Card, HANG_CYCLES, Plan};
use super::slave::Transfer;

/// Bursts stay inside one.
const PAGE_BYTES: u64 = 4096;
/// This card, which is number 0, and another one, which says nothing.
const ANOTHER: u32 = 0b11;

/// A command as it is stored to a slot of a page.
fn stored(page: usize, slot: usize, command: Command) -> Transfer {
    let address = page * COMMAND_PAGE_BYTES + slot * LINE_U64 as usize;
    Transfer::write(address as u64, vec![(command.encode(), u64::MAX)])
}

impl Life {
    pub(super) fn plan(self) -> Plan {
        let calm = Plan {
            patience: 1000,
            sulks: false,
            gap: 1,
            silence: 20,
            configures: false,
            latency: 20,
            cycles: 0,
            peers: false,
            bad_lines: false,
            abrupt: false,
            shut_down: false,
            energy: None,
        };
        match self {
            Life::Long => Plan { cycles: full::LONG_CYCLES / 2, ..calm },
            Life::Forsaken => Plan { sulks: true, cycles: 4000, ..calm },
            Life::Heaped => Plan { latency: 400, ..calm },
            Life::Inherited => Plan { cycles: 2000, latency: 150, ..calm },
            _ => calm,
        }
    }
}

impl Card<'_> {
    pub(super) fn live(&mut self, life: Life, may_lose: bool) {
        match life {
            Life::Long => self.live_long(may_lose),
            Life::Crowded => self.crowd(),
            Life::Latched => self.latch(),
            Life::Unanswered => self.ask_for_all(),
            Life::Forsaken => self.take_away_what_waits(may_lose),
            Life::Longest => self.copy_the_longest(),
            Life::Failing => self.fail_what_waited(),
            Life::Overtaken => self.load_beside_commands(),
            Life::Blocked => self.block(),
            Life::Faded(line) => self.fade(line),
            Life::Heaped => self.replay_whole_saves(),
            Life::Inherited => self.inherit(),
        }
    }

    /// Long enough for a command to retire, for some.
    fn wait(&mut self, cycles: u64) {
        (0..cycles).for_each(|_| _ = self.cycle(false));
    }

    fn post(&mut self, command: Command) {
        let page = self.rng.random_range(0..COMMAND_PAGES + 2) % COMMAND_PAGES;
        let page = if [Opcode::Map as u8, Opcode::Unmap as u8].contains(&command.opcode) { 0 } else { page };
        let slot = self.rng.random_range(0..SLOTS_PER_PAGE);
        self.access(COMMANDS, stored(page, slot, command), false);
    }

    fn until_parked(&mut self, wanted: u32) {
        let end = self.tally.cycles + HANG_CYCLES;
        while self.register(registers::PARKED) != wanted {
            assert!(self.tally.cycles < end, "the places {wanted:#x} are not those that are in use");
        }
    }

    /// Lets as many commits wait.
    fn park(&mut self, number: usize, count: usize) {
        for _ in 0..count {
            let commit = self.traffic.commit(number, ANOTHER, self.rng);
            self.post(commit);
        }
    }

    fn unmap(&mut self, number: usize) {
        let head = self.traffic.head(number, self.rng);
        self.post(Command { opcode: Opcode::Unmap as u8, ..head });
    }

    /// Lets commits of a mapping wait in every place.
    fn fill_places(&mut self, number: usize) {
        self.park(number, PARKED_COMMANDS);
        self.until_parked(u32::MAX);
    }

    /// Decides about every place, the last one first.
    fn decide_all(&mut self, action: u32) {
        for place in (0..PARKED_COMMANDS as u32).rev() {
            self.set_register(registers::PARKED_SELECT, place);
            self.set_register(registers::PARKED_ACT, place | action << 8);
        }
        self.until_parked(0);
    }

    /// Maps as many pools as there are entries, in order.
    fn map_in_order(&mut self) {
        for number in 0..MAP_ENTRIES {
            let map = self.traffic.map(number);
            self.post(map);
        }
    }
}
