//! Lives in which something comes at a certain time.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{ADDRESS_BITS, LINE_U64, MAP_ENTRIES, POOLS_BASE, SAVE_BASE};
use nearpm_interface::registers::{self, control, firmware_status, parked_action, state};
use nearpm_interface::save::MAX_ITEMS;

use super::super::foreign;
use super::super::session::{COMMANDS, CONTROL, Card, HANG_CYCLES, HOST, MEMORY_ANSWERS};
use super::super::slave::Transfer;
use super::super::traffic::{PRIVATE_LINES, write_register};
use super::{ANOTHER, PAGE_BYTES, stored};

/// Cycles between a command and a load of firmware, at most.
const APART: u64 = 40;
/// Boots without a power cut.
const BOOTS: usize = 40;
/// Boots that each replay a whole save.
const WHOLE_SAVES: u32 = 4;

impl Card<'_> {
    /// What was let go waits for a store that a failed log holds.
    pub(super) fn fail_what_waited(&mut self) {
        self.until_open();
        for number in 0..MAP_ENTRIES {
            self.map_in_order();
            self.set_register(registers::DEVICE_NUMBER, 0);
            let head = self.traffic.head(number, self.rng);
            let switch = Command { opcode: Opcode::Switch as u8, length: 8, participants: ANOTHER, ..head };
            self.post(switch);
            self.until_parked(1);
            let line = self.traffic.base(number) / LINE_U64 * LINE_U64;
            self.memory.contents.bad.push(line);
            let log = self.traffic.log(number, 0, 0..LINE_U64, self.rng);
            self.post(log);
            self.wait(1000);
            self.offer_soon(HOST, Transfer::write(line, vec![([0x5a; 64], u64::MAX)]));
            self.wait(200);
            self.decide_all(parked_action::RELEASE);
            self.wait(1000);
            self.memory.contents.bad.clear();
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            self.until_open();
            self.drain();
        }
    }

    /// What is in force is loaded again, beside a log that fails and stays.
    pub(super) fn load_beside_commands(&mut self) {
        self.until_open();
        let number = self.traffic.with_room(PAGE_BYTES, 2 * PAGE_BYTES)[0];
        self.memory.contents.bad.push(self.traffic.base(number) / LINE_U64 * LINE_U64);
        for cycles in 0..2 * APART {
            self.map_in_order();
            self.finish();
            let slot = self.register(registers::FIRMWARE_STATUS) >> 8;
            let log = self.traffic.log(number, 0, 0..PAGE_BYTES, self.rng);
            let load = |card: &mut Self| {
                card.offer_soon(CONTROL, write_register(registers::FIRMWARE_LOAD, slot, 0xf));
            };
            if cycles < APART {
                load(self);
            }
            self.wait(APART - cycles.abs_diff(APART));
            self.offer_soon(COMMANDS, stored(1, 0, log));
            if cycles >= APART {
                self.wait(2 * APART - cycles);
                load(self);
            }
            self.finish();
            while self.register(registers::FIRMWARE_STATUS) & 0xff == firmware_status::BUSY {}
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            self.until_open();
        }
        self.memory.contents.bad.clear();
    }

    /// The card has begun to restore a save that it has checked.
    pub(super) fn fade(&mut self, line: usize) {
        self.until(&[state::REPLAYING]);
        self.memory.contents.bad.push(SAVE_BASE + line as u64 * LINE_U64);
        self.until(&[state::LOSS]);
    }

    /// What is replayed is counted on, as far as the register's first bits go round.
    pub(super) fn replay_whole_saves(&mut self) {
        assert!(self.opens());
        let base = POOLS_BASE + PRIVATE_LINES * LINE_U64;
        let before = self.register(registers::REPLAYED);
        for boot in 1..=WHOLE_SAVES {
            self.boot_with_stores(base, boot);
            self.until(&[state::OPEN]);
            let replayed = self.register(registers::REPLAYED) - before;
            assert_eq!(replayed, boot * MAX_ITEMS as u32, "items that were replayed");
            for item in 0..MAX_ITEMS as u64 {
                let line = self.memory.contents.line(base + item * LINE_U64);
                assert_eq!(line, foreign::store_of(item + 1, boot.into()), "a store of the save");
            }
        }
        // The power goes while the card notes that an item is done.
        self.boot_with_stores(base, WHOLE_SAVES + 1);
        let before = self.register(registers::REPLAYED);
        let end = self.tally.cycles + HANG_CYCLES;
        while self.register(registers::REPLAYED) == before {
            assert!(self.tally.cycles < end, "nothing of the save is replayed");
        }
    }

    /// Shuts the card down and resets it on a save of stores, which it then replays.
    fn boot_with_stores(&mut self, base: u64, generation: u32) {
        self.set_register(registers::CONTROL, control::SHUT_DOWN);
        self.until(&[state::SAVED]);
        foreign::leave_stores(&mut self.memory.contents, base, u64::from(generation));
        self.set_register(registers::CONTROL, control::FUNCTION_RESET);
        self.until(&[state::REPLAYING]);
    }

    /// Some of the mappings have rings that end behind all addresses, and some commands operands.
    pub(super) fn inherit(&mut self) {
        // What is closed saves nothing.
        self.plan.energy = Some(1000);
        self.traffic.stretch_rings();
        for boot in 0..BOOTS {
            if !self.opens() {
                return;
            }
            self.keep_waiting(MEMORY_ANSWERS, 500);
            self.work();
            let head = self.traffic.head(0, self.rng);
            let destination = (1 << ADDRESS_BITS) - LINE_U64;
            self.post(Command { opcode: Opcode::ShadowCopy as u8, destination, length: PAGE_BYTES as u32, ..head });
            self.drain();
            self.memory.contents.bad.clear();
            if !self.begins_anew(boot % 2 == 0) {
                return;
            }
        }
        if !self.opens() {
            return;
        }
        foreign::leave_copies(&mut self.memory.contents, 0, self.rng);
        self.memory.contents.bad.clear();
        self.set_register(registers::CONTROL, control::FUNCTION_RESET);
        self.until_open();
        assert_eq!(self.load(0), firmware_status::OK);
        self.map();
        for _ in 0..4 {
            self.keep_waiting(MEMORY_ANSWERS, 1000);
            self.work();
        }
        self.drain();
    }
}
