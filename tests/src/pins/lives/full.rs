//! Lives in which a table fills, or a counter.

use nearpm_interface::geometry::{
    COMMAND_PAGES, CONTEXTS_PER_UNIT, HOST_QUEUE_LINES, LINE_U64, MAP_ENTRIES, MAX_COMMAND_BYTES, PARKED_COMMANDS,
    POOLS_BASE, REQUEST_SLOTS, UNITS,
};
use nearpm_interface::media::RING_HEAD_BYTES;
use nearpm_interface::registers::{self, control, firmware_status, parked_action};

use super::super::session::{COMMANDS, Card, HOST, MEMORY_ANSWERS, MEMORY_WRITE_ANSWERS};
use super::super::slave::Transfer;
use super::{PAGE_BYTES, stored};

/// Cycles of the long life: its counters of cycles have the bits below this one.
pub(super) const LONG_CYCLES: u64 = 1 << 21;
/// Slots that each of two mappings fills with its logs, and the room for one in its ring.
const SLOTS_EACH: u64 = REQUEST_SLOTS as u64 / 2;
const LOG_BYTES: u64 = 2 * LINE_U64;
/// Cycles for which the host queue stays full: the counter of these has the bits below this one.
const FULL_CYCLES: u64 = 1 << 18;
/// Commands that units carry out at a time, and bytes of the longer ones: more than as many bursts
/// as may be unanswered.
const COMMANDS_AT_WORK: u64 = (UNITS * CONTEXTS_PER_UNIT) as u64;
const LONG_BYTES: u64 = 128 << 10;
/// Cycles of a save: their counter has the bits below this one.
const SAVE_CYCLES: u64 = 1 << 16;

impl Card<'_> {
    /// Half of the pages have rings in which laps are long, the others such in which they are one
    /// record; then the other way round.
    pub(super) fn live_long(&mut self, may_lose: bool) {
        self.open(may_lose);
        for half in 0..2 {
            for page in 0..COMMAND_PAGES {
                let size = if page % 2 == half { 12 } else { 0 };
                self.set_register(registers::completion_ring(page) + 8, size);
            }
            self.work();
        }
        self.finish();
    }

    pub(super) fn crowd(&mut self) {
        self.until_open();
        self.map_in_order();
        for number in 0..MAP_ENTRIES {
            self.traffic.hurry(number, 1 << (63 - number / 2) | 1 << 63);
            self.set_register(registers::DEVICE_NUMBER, 0);
            self.fill_places(number);
            self.decide_all(parked_action::RELEASE);
            self.fill_places(number);
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            self.until_open();
            self.decide_all(parked_action::DISCARD);
            self.map_in_order();
        }
        self.set_register(registers::DEVICE_NUMBER, 0);
        self.park(0, PARKED_COMMANDS - 1);
        self.unmap(0);
        self.until_parked(u32::MAX);
        assert_eq!(self.load(0), firmware_status::NOT_IDLE, "commands wait that this firmware is to carry out");
    }

    /// The logs of a pair of mappings are in all slots before any of them hears from the memory.
    pub(super) fn latch(&mut self) {
        self.until_open();
        self.map_in_order();
        let roomy = self.traffic.with_room(LINE_U64, SLOTS_EACH * LOG_BYTES + RING_HEAD_BYTES);
        let pairs: Vec<[usize; 2]> = roomy.windows(2).map(|pair| [pair[0], pair[1]]).collect();
        for (turn, numbers) in pairs.into_iter().enumerate() {
            let lines = numbers.map(|number| self.traffic.base(number) / LINE_U64 * LINE_U64);
            self.memory.contents.bad.extend(lines);
            self.keep_waiting(MEMORY_ANSWERS, 8000);
            for slot in 0..SLOTS_EACH {
                for number in numbers {
                    let log = self.traffic.log(number, slot * LOG_BYTES, 0..LINE_U64, self.rng);
                    self.post(log);
                }
            }
            for number in 0..=HOST_QUEUE_LINES {
                let store = Transfer::write(lines[number % 2], vec![([number as u8; 64], u64::MAX)]);
                self.offer_soon(HOST, store);
            }
            // No slot is left for it.
            let log = self.traffic.log(numbers[0], 0, 0..LINE_U64, self.rng);
            self.offer_soon(COMMANDS, stored(1, 0, log));
            self.wait(if turn == 0 { FULL_CYCLES } else { 10_000 });
            self.memory.contents.bad.clear();
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            self.until_open();
            self.finish();
            self.map_in_order();
        }
    }

    /// Units read as many bursts as they have room for: two for two lines at the end of a page,
    /// beside a copy that begins there, too.
    pub(super) fn ask_for_all(&mut self) {
        self.until_open();
        self.map_in_order();
        let entry = LONG_BYTES + PAGE_BYTES;
        let roomy = self.traffic.with_room(entry, COMMANDS_AT_WORK * entry + RING_HEAD_BYTES);
        for number in roomy.into_iter().take(2) {
            let from = (2 * PAGE_BYTES - LINE_U64 - self.traffic.base(number) % PAGE_BYTES) % PAGE_BYTES;
            let post = |card: &mut Self, at: u64, bytes: u64| {
                let log = card.traffic.log(number, at * entry, from..from + bytes, card.rng);
                card.post(log);
            };
            self.keep_waiting(MEMORY_ANSWERS, 8000);
            (0..COMMANDS_AT_WORK).for_each(|at| {
                post(self, at, if at < COMMANDS_AT_WORK / 2 { 2 * LINE_U64 } else { LONG_BYTES });
            });
            for line in 0..HOST_QUEUE_LINES as u64 {
                self.offer_soon(HOST, Transfer::read(POOLS_BASE + line * LINE_U64, 1));
            }
            self.finish();
            self.keep_waiting(MEMORY_WRITE_ANSWERS, 12_000);
            (0..COMMANDS_AT_WORK).for_each(|at| post(self, at, LONG_BYTES));
            self.finish();
            self.wait(12_000);
        }
        self.keep_waiting(MEMORY_WRITE_ANSWERS, SAVE_CYCLES / 2);
    }

    pub(super) fn take_away_what_waits(&mut self, may_lose: bool) {
        self.until_open();
        assert!(!may_lose, "the save before had energy");
        self.until_parked(u32::MAX);
        self.decide_all(parked_action::DISCARD);
        self.map();
        self.work();
        self.finish();
    }

    /// Logs of the last byte of a page and those behind it: their source is a line longer than a
    /// command may be.
    pub(super) fn copy_the_longest(&mut self) {
        self.until_open();
        self.map_in_order();
        let most = u64::from(MAX_COMMAND_BYTES);
        let entry = most + PAGE_BYTES;
        let roomy = self.traffic.with_room(entry, COMMANDS_AT_WORK * entry + RING_HEAD_BYTES);
        for number in roomy.into_iter().take(2) {
            let from = PAGE_BYTES - 1 - self.traffic.base(number) % PAGE_BYTES;
            for at in 0..COMMANDS_AT_WORK {
                let log = self.traffic.log(number, at * entry, from..from + most, self.rng);
                self.post(log);
            }
            self.finish();
        }
    }

    /// A log that fails when the memory answers, a store that waits for it, and commands that wait
    /// for the store in all slots that are left.
    pub(super) fn block(&mut self) {
        self.until_open();
        self.map_in_order();
        let slots = REQUEST_SLOTS as u64;
        let number = self.traffic.with_room(LINE_U64, slots * LOG_BYTES + RING_HEAD_BYTES)[0];
        let line = self.traffic.base(number) / LINE_U64 * LINE_U64;
        let log = |card: &mut Self, at: u64| {
            let log = card.traffic.log(number, at * LOG_BYTES, 0..LINE_U64, card.rng);
            card.post(log);
        };
        self.memory.contents.bad.push(line);
        self.keep_waiting(MEMORY_ANSWERS, 8000);
        log(self, 0);
        self.offer_soon(HOST, Transfer::write(line, vec![([0x5a; 64], u64::MAX)]));
        self.wait(200);
        (1..slots).for_each(|at| log(self, at));
        self.wait(10_000);
    }
}
