//! Lives that chance does not bring: a long one, and those in which one table fills.

use nearpm_interface::command::{Command, Opcode};
use nearpm_interface::geometry::{
    COMMAND_PAGE_BYTES, COMMAND_PAGES, CONTEXTS_PER_UNIT, HOST_QUEUE_LINES, LINE_U64, MAP_ENTRIES, PARKED_COMMANDS,
    POOLS_BASE, REQUEST_SLOTS, SLOTS_PER_PAGE, UNITS,
};
use nearpm_interface::media::RING_HEAD_BYTES;
use nearpm_interface::registers::{self, control, firmware_status, parked_action, state};
use rand::RngExt;

use super::session::{COMMANDS, Card, HANG_CYCLES, HOST, MEMORY_ANSWERS, MEMORY_WRITE_ANSWERS, Plan};
use super::slave::Transfer;

/// A life. They come one after the other, on one memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Counters and rings go round.
    Long,
    /// For each mapping entry, as many commands as there are places wait for other cards; software lets them go, or takes them away. The last ones
    /// still wait when the power goes.
    Crowded,
    /// Software takes away what the life before left.
    Forsaken,
    /// Logs fail in every slot, and stores to what they were to save are held in every line of the host queue.
    Latched,
    /// Memory answers no reads for a while, then no writes, and then not those of the save: everything asks for as much as it may.
    Unanswered,
}

/// All lives, in the order in which they come.
pub const LIVES: [Life; 5] = [Life::Crowded, Life::Forsaken, Life::Latched, Life::Unanswered, Life::Long];

/// Cycles of the long life: its counters of cycles have the bits below this one.
const LONG_CYCLES: u64 = 1 << 21;
/// Slots that each of two mappings fills with its logs, and the room for one in its ring.
const SLOTS_EACH: u64 = REQUEST_SLOTS as u64 / 2;
const LOG_BYTES: u64 = 2 * LINE_U64;
/// Cycles for which the host queue stays full: the counter of these has the bits below this one.
const FULL_CYCLES: u64 = 1 << 18;
/// Commands that units carry out at a time, and bytes of the longer ones: more than as many bursts as may be unanswered.
const COMMANDS_AT_WORK: u64 = (UNITS * CONTEXTS_PER_UNIT) as u64;
const LONG_BYTES: u64 = 128 << 10;
/// Cycles of a save: their counter has the bits below this one.
const SAVE_CYCLES: u64 = 1 << 16;
/// This card, which is number 0, and another one, which says nothing.
const ANOTHER: u32 = 0b11;

/// Bursts stay inside one.
const PAGE_BYTES: u64 = 4096;

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
            Life::Long => Plan { cycles: LONG_CYCLES / 2, ..calm },
            Life::Crowded | Life::Latched | Life::Unanswered => calm,
            Life::Forsaken => Plan { sulks: true, cycles: 4000, ..calm },
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
        }
    }

    /// Half of the pages have rings in which laps are long, the others such in which they are one record; then the other way round.
    fn live_long(&mut self, may_lose: bool) {
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

    fn crowd(&mut self) {
        self.until(&[state::OPEN]);
        self.map_in_order();
        for number in 0..MAP_ENTRIES {
            self.traffic.hurry(number, 1 << (63 - number / 2) | 1 << 63);
            self.set_register(registers::DEVICE_NUMBER, 0);
            self.fill_places(number);
            self.decide_all(parked_action::RELEASE);
            self.fill_places(number);
            self.set_register(registers::CONTROL, control::FUNCTION_RESET);
            self.until(&[state::OPEN]);
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
    fn latch(&mut self) {
        self.until(&[state::OPEN]);
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
            self.until(&[state::OPEN]);
            self.finish();
            self.map_in_order();
        }
    }

    /// Units read as many bursts as they have room for: two for two lines at the end of a page, beside a copy that begins there, too.
    fn ask_for_all(&mut self) {
        self.until(&[state::OPEN]);
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

    fn take_away_what_waits(&mut self, may_lose: bool) {
        self.until(&[state::OPEN]);
        assert!(!may_lose, "the save before had energy");
        self.until_parked(u32::MAX);
        self.decide_all(parked_action::DISCARD);
        self.map();
        self.work();
        self.finish();
    }
}
