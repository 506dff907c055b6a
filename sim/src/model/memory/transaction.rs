//! The DDR4 channel as a computation per burst.
//!
//! It keeps what decides the time of a burst: the open row of each bank and when the bank is free,
//! the data bus and its direction, refresh, and the writes that the controller has taken and not
//! yet drained. Writes are answered when they stand in the queue and drain in gaps between reads
//! or, at the high mark, before the next read. What it leaves out is reordering of single lines, so
//! that single bursts differ from the channel by some cycles; a test bounds the difference.

use std::collections::VecDeque;

use nearpm_interface::geometry::LINE;

use super::{Burst, Finished, Harvest, WriteBeat};
use crate::core::Medium;
use crate::ddr4::{self, CLOCKS, CONTROLLER_MHZ, Controller, DramAddress, Timing};
use crate::rng::Rng;

const CLOSED: u32 = u32::MAX;

/// One bank. Times are DRAM clocks.
#[derive(Clone, Copy)]
struct Bank {
    row: u32,
    /// Earliest column command to the open row.
    column: u64,
    /// Earliest precharge.
    precharge: u64,
}

struct Outstanding {
    burst: Burst,
    /// Card cycle of the end.
    done: u64,
}

/// Contents, and the times that bursts will end at.
pub struct TransactionMemory {
    timing: Timing,
    controller: Controller,
    card_mhz: u64,
    medium: Medium,
    banks: [Bank; ddr4::BANKS],
    /// Earliest column command on the bus, in DRAM clocks, and the direction of the last one.
    bus: u64,
    bus_writes: bool,
    /// Clock of the latest column command.
    last: u64,
    refresh_due: u64,
    /// Taken writes that the DRAM has not got yet, with the clock of their arrival.
    queued: VecDeque<(DramAddress, u64)>,
    reads: VecDeque<Outstanding>,
    read_lines: usize,
    writes: VecDeque<Outstanding>,
    data: VecDeque<WriteBeat>,
    /// Card cycle from which the next line of write data enters.
    enter: u64,
}

impl TransactionMemory {
    pub fn new(config: ddr4::Config, card_mhz: u64, medium: Medium) -> Self {
        TransactionMemory {
            timing: config.timing,
            controller: config.controller,
            card_mhz,
            medium,
            banks: [Bank { row: CLOSED, column: 0, precharge: 0 }; ddr4::BANKS],
            bus: 0,
            bus_writes: false,
            last: 0,
            refresh_due: config.timing.refi,
            queued: VecDeque::new(),
            reads: VecDeque::new(),
            read_lines: 0,
            writes: VecDeque::new(),
            data: VecDeque::new(),
            enter: 0,
        }
    }

    pub fn medium(&self) -> &Medium {
        &self.medium
    }

    pub fn has_room(&self, write: bool) -> bool {
        match write {
            true => self.writes.len() < self.controller.bursts,
            false => self.reads.len() < self.controller.bursts || self.read_lines < self.controller.read_lines,
        }
    }

    /// The cycle at which the oldest burst of a direction ends and makes room.
    pub fn retry(&self, write: bool) -> u64 {
        let of = if write { &self.writes } else { &self.reads };
        of.front().map_or(0, |oldest| oldest.done)
    }

    pub fn next(&self) -> Option<u64> {
        let read = self.reads.front().map_or(u64::MAX, |r| r.done);
        let write = self.writes.front().map_or(u64::MAX, |w| w.done);
        let next = read.min(write);
        (next != u64::MAX).then_some(next)
    }

    pub fn is_quiet(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Card cycles to controller cycles, rounded down.
    fn controller(&self, card: u64) -> u64 {
        match self.card_mhz {
            CONTROLLER_MHZ => card,
            mhz => card * CONTROLLER_MHZ / mhz,
        }
    }

    /// Controller cycles to card cycles, rounded up.
    fn card(&self, controller: u64) -> u64 {
        match self.card_mhz {
            CONTROLLER_MHZ => controller,
            mhz => (controller * mhz).div_ceil(CONTROLLER_MHZ),
        }
    }

    fn crossing(&self) -> u64 {
        if self.card_mhz == CONTROLLER_MHZ { 0 } else { self.controller.crossing }
    }

    pub fn read(&mut self, now: u64, burst: Burst) {
        // A line that enters the queue in one cycle can be scheduled in the next.
        let arrived = (self.controller(now) + self.crossing() + self.controller.read_front + 1) * CLOCKS;
        self.make_way(arrived, burst);
        let mut end = 0;
        for beat in 0..burst.beats as u64 {
            let place = DramAddress::of(burst.address + beat * LINE as u64);
            // One line a cycle enters the queue.
            let at = self.column(place, arrived + beat * CLOCKS, false);
            end = at + self.timing.cl + self.timing.burst;
        }
        let done = self.card(end.div_ceil(CLOCKS) + self.controller.read_back) + self.crossing();
        // Data returns in the order of the requests, one line a cycle.
        let after = self.reads.back().map_or(0, |last| last.done + burst.beats as u64);
        self.read_lines += burst.beats as usize;
        self.reads.push_back(Outstanding { burst, done: done.max(after) });
    }

    pub fn write(&mut self, now: u64, burst: Burst, beats: &[WriteBeat]) {
        let enter = self.enter.max(now);
        self.enter = enter + burst.beats as u64;
        let last = self.controller(self.enter - 1) + self.crossing();
        for beat in 0..burst.beats as u64 {
            let place = DramAddress::of(burst.address + beat * LINE as u64);
            let arrived = (self.controller(enter + beat) + self.controller.write_front) * CLOCKS;
            self.queued.push_back((place, arrived));
        }
        let mut answer = last + self.controller.write_answer;
        // A full queue takes the burst only when enough has drained.
        let now_clock = self.controller(now) * CLOCKS;
        self.drain_until(now_clock);
        if self.queued.len() > self.controller.write_lines {
            while self.queued.len() > self.controller.write_lines {
                self.drain_one();
            }
            answer = answer.max(self.bus / CLOCKS + self.controller.write_answer);
        }
        let done = self.card(answer + self.crossing());
        let after = self.writes.back().map_or(0, |w| w.done + 1);
        self.writes.push_back(Outstanding { burst, done: done.max(after) });
        self.data.extend(beats);
    }

    /// Serves writes that come before a read: those for which there was time, those above the high
    /// mark, and the ones of its own lines.
    fn make_way(&mut self, arrived: u64, burst: Burst) {
        self.drain_until(arrived);
        if self.queued.len() >= self.controller.write_high {
            while self.queued.len() > self.controller.write_low {
                self.drain_one();
            }
        }
        let end = burst.address + burst.beats as u64 * LINE as u64;
        let awaited = self.queued.iter().rposition(|&(place, _)| {
            (burst.address..end).step_by(LINE).any(|address| DramAddress::of(address) == place)
        });
        for _ in 0..awaited.map_or(0, |position| position + 1) {
            self.drain_one();
        }
    }

    /// Serves queued writes while reads are absent, up to a clock.
    fn drain_until(&mut self, clock: u64) {
        let idle = self.controller.idle_before_writes * CLOCKS;
        while let Some(&(_, arrived)) = self.queued.front() {
            let start = if self.bus_writes { self.bus } else { self.bus + idle };
            if start.max(arrived) + self.timing.burst > clock {
                break;
            }
            if !self.bus_writes {
                self.bus = self.bus.max(start);
            }
            self.drain_one();
        }
    }

    fn drain_one(&mut self) {
        if let Some((place, arrived)) = self.queued.pop_front() {
            self.column(place, arrived, true);
        }
    }

    /// Places one column command at or after `arrived`; gives its clock.
    fn column(&mut self, place: DramAddress, arrived: u64, write: bool) -> u64 {
        let t = self.timing;
        while arrived.max(self.bus) >= self.refresh_due {
            self.refresh();
        }
        let bank = &mut self.banks[place.bank as usize];
        if bank.row != place.row {
            // Rows are opened ahead, while the bus serves others.
            let activate = match bank.row {
                CLOSED => arrived.max(bank.precharge),
                _ => arrived.max(bank.precharge) + t.rp,
            };
            *bank = Bank { row: place.row, column: activate + t.rcd, precharge: activate + t.ras };
        }
        if write != self.bus_writes {
            let turn = if write { t.rtw } else { t.cwl + t.burst + t.wtr_s };
            self.bus = self.bus.max(self.last + turn);
            self.bus_writes = write;
        }
        // A command that waits for its bank lets others use the bus before it.
        let slot = arrived.max(self.bus);
        self.bus = slot + t.ccd_s;
        let at = slot.max(bank.column);
        self.last = self.last.max(at);
        bank.column = at + t.ccd_l;
        let precharge = if write { at + t.cwl + t.burst + t.wr } else { at + t.rtp };
        bank.precharge = bank.precharge.max(precharge);
        at
    }

    fn refresh(&mut self) {
        let t = self.timing;
        let start = self.banks.iter().fold(self.refresh_due, |at, bank| match bank.row {
            CLOSED => at,
            _ => at.max(bank.precharge + t.rp),
        });
        for bank in &mut self.banks {
            *bank = Bank { row: CLOSED, column: 0, precharge: start + t.rfc };
        }
        self.refresh_due += t.refi;
    }

    pub fn run(&mut self, cycle: u64, harvest: &mut Harvest) {
        while let Some(oldest) = self.reads.front().filter(|r| r.done <= cycle) {
            let burst = oldest.burst;
            self.reads.pop_front();
            self.read_lines -= burst.beats as usize;
            let first = harvest.lines.len();
            let mut error = false;
            for beat in 0..burst.beats as usize {
                let address = burst.address as usize + beat * LINE;
                let line = self.medium.bytes.get(address..address + LINE);
                error |= line.is_none();
                harvest.lines.push(line.map_or([0; LINE], |l| l.try_into().expect("a line")));
            }
            harvest.bursts.push(Finished { burst, read: true, first, error });
        }
        while let Some(oldest) = self.writes.front().filter(|w| w.done <= cycle) {
            let burst = oldest.burst;
            self.writes.pop_front();
            let error = !in_memory(&self.medium, burst);
            for beat in 0..burst.beats as u64 {
                let WriteBeat { data, strobes } = self.data.pop_front().expect("one a beat");
                if !error {
                    self.medium.write_line(burst.address + beat * LINE as u64, &data, strobes);
                }
            }
            harvest.bursts.push(Finished { burst, read: false, first: 0, error });
        }
    }

    pub fn power_fail(mut self, seed: u64) -> Medium {
        let mut rng = Rng::new(seed);
        for Outstanding { burst, .. } in &self.writes {
            for beat in 0..burst.beats as u64 {
                let WriteBeat { data, strobes } = self.data.pop_front().expect("one a beat");
                let kept = match rng.below(3) {
                    0 => 0,
                    1 => u64::MAX,
                    _ => words(rng.bits() as u8),
                };
                if in_memory(&self.medium, *burst) {
                    self.medium.write_line(burst.address + beat * LINE as u64, &data, strobes & kept);
                }
            }
        }
        self.medium
    }
}

fn in_memory(medium: &Medium, burst: Burst) -> bool {
    burst.address + burst.beats as u64 * LINE as u64 <= medium.bytes.len() as u64
}

/// Eight bits to the strobes of eight 8-byte words, at which a write can tear.
fn words(bits: u8) -> u64 {
    (0..8).filter(|i| bits >> i & 1 == 1).fold(0, |mask, i| mask | 0xff << (8 * i))
}
