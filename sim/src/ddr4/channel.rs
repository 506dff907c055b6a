//! The controller: which command goes to the DRAM in each of its cycles.
//!
//! Row hits first, then oldest first (FR-FCFS), within the direction being served. Rows for the
//! other direction are opened ahead in banks that this direction does not use. Writes are served in
//! batches: from a high to a low mark, when reads have been absent for a while, or when a read
//! waits for a queued write of its line.

use super::bank::{Banks, Direction};
use super::config::{CLOCKS, Config, Controller};
use super::map::DramAddress;
use super::queue::{Need, Queue, Request};
use super::stats::Stats;

/// Added to an age: younger than everything without it.
const BEHIND: u64 = 1 << 63;

/// The oldest candidate for a command in this cycle.
struct Candidate {
    age: u64,
    bank: usize,
    at: u64,
}

impl Candidate {
    const NONE: Candidate = Candidate { age: u64::MAX, bank: 0, at: 0 };

    /// Takes an older candidate; whether it did.
    #[inline]
    fn offer(&mut self, age: u64, bank: usize, at: u64) -> bool {
        let older = age < self.age;
        if older {
            *self = Candidate { age, bank, at };
        }
        older
    }

    #[inline]
    fn exists(&self) -> bool {
        self.age != u64::MAX
    }
}

/// A column command that was issued to a read: its beat, and the controller cycle at which its data
/// is on the port.
pub struct ReadIssued {
    /// Number of the beat.
    pub beat: u64,
    /// Controller cycle.
    pub done: u64,
}

/// Controller and DRAM.
pub struct Channel {
    config: Config,
    banks: Banks,
    reads: Queue,
    writes: Queue,
    direction: Direction,
    /// Lines served since the direction changed.
    batch: u32,
    /// Queued writes that a read waits for.
    awaited: usize,
    /// Controller cycle of the last cycle with a queued read.
    last_read: u64,
    refresh_due: u64,
    age: u64,
    /// Controller cycles since power-up.
    pub now: u64,
    /// Counters.
    pub stats: Stats,
}

impl Channel {
    /// An idle channel.
    pub fn new(config: Config) -> Self {
        Channel {
            config,
            banks: Banks::new(config.timing),
            reads: Queue::new(config.controller.read_lines),
            writes: Queue::new(config.controller.write_lines),
            direction: Direction::Read,
            batch: 0,
            awaited: 0,
            last_read: 0,
            refresh_due: config.timing.refi,
            age: 0,
            now: 0,
            stats: Stats::default(),
        }
    }

    /// Whether no request waits.
    #[inline]
    pub fn is_idle(&self) -> bool {
        self.reads.is_empty() && self.writes.is_empty()
    }

    /// Queued writes.
    #[inline]
    pub fn queued_writes(&self) -> usize {
        self.writes.len()
    }

    /// Takes a read into the read queue.
    pub fn push_read(&mut self, place: DramAddress, beat: u64) {
        if self.writes.await_line(place) {
            self.awaited += 1;
        }
        let request = self.request(place, beat);
        self.reads.push(request);
    }

    /// Takes a write into the scheduler's write queue.
    pub fn push_write(&mut self, place: DramAddress) {
        let request = self.request(place, 0);
        self.writes.push(request);
    }

    fn request(&mut self, place: DramAddress, beat: u64) -> Request {
        self.age += 1;
        Request { place, age: self.age, arrived: self.now, beat, awaited: false }
    }

    /// Runs one controller cycle; gives the read that got its column command.
    #[inline]
    pub fn step(&mut self) -> Option<ReadIssued> {
        self.now += 1;
        if self.is_idle() {
            return None;
        }
        while self.now * CLOCKS >= self.refresh_due {
            self.banks.refresh(self.refresh_due);
            self.refresh_due += self.config.timing.refi;
            self.stats.refreshes += 1;
        }
        self.choose_direction();
        self.schedule()
    }

    fn choose_direction(&mut self) {
        let Controller { write_high, write_low, batch, idle_before_writes, .. } = self.config.controller;
        if !self.reads.is_empty() {
            self.last_read = self.now;
        }
        let change = match self.direction {
            Direction::Read if self.writes.is_empty() => false,
            Direction::Read => {
                let full = self.writes.len() >= write_high && self.batch >= (write_high - write_low) as u32;
                let absent = self.reads.is_empty() && self.now - self.last_read >= idle_before_writes;
                let must = self.writes.len() >= write_high && self.reads.is_empty();
                self.awaited > 0 || full || absent || must
            }
            Direction::Write if self.reads.is_empty() || self.awaited > 0 => false,
            Direction::Write => self.writes.len() <= write_low || self.batch >= batch,
        };
        if change {
            self.direction = self.direction.other();
            self.batch = 0;
            self.stats.switches += 1;
        }
    }

    /// Issues at most one column, one activate and one precharge command, each to the oldest that
    /// can take it.
    fn schedule(&mut self) -> Option<ReadIssued> {
        let start = self.now * CLOCKS;
        let end = start + CLOCKS;
        let old = self.now.saturating_sub(self.config.controller.age_limit);
        let (queue, other) = match self.direction {
            Direction::Read => (&self.reads, &self.writes),
            Direction::Write => (&self.writes, &self.reads),
        };
        let banks = &self.banks;
        let mut column = (Candidate::NONE, 0);
        let mut activate = Candidate::NONE;
        let mut precharge = Candidate::NONE;
        for bank in bits(queue.occupied()) {
            let first = queue.first(bank).age;
            match queue.need(bank, banks, old) {
                Need::Column(position) => {
                    let at = banks.column_at(bank, self.direction);
                    if at < end && column.0.offer(queue.get(bank, position).age, bank, at) {
                        column.1 = position;
                    }
                }
                Need::Activate if banks.activate_at(bank) < end => {
                    activate.offer(first, bank, banks.activate_at(bank));
                }
                Need::Precharge if banks.precharge_at(bank) < end => {
                    precharge.offer(first, bank, banks.precharge_at(bank));
                }
                Need::Activate | Need::Precharge => {}
            }
        }
        // Rows of the other direction come behind all of this one.
        for bank in bits(other.occupied() & !queue.occupied()) {
            let first = other.first(bank).age | BEHIND;
            match other.need(bank, banks, old) {
                Need::Activate if banks.activate_at(bank) < end => {
                    activate.offer(first, bank, banks.activate_at(bank));
                }
                Need::Precharge if banks.precharge_at(bank) < end => {
                    precharge.offer(first, bank, banks.precharge_at(bank));
                }
                Need::Column(_) | Need::Activate | Need::Precharge => {}
            }
        }
        if activate.exists() {
            let of = if activate.age & BEHIND == 0 { queue } else { other };
            let row = of.first(activate.bank).place.row;
            self.banks.activate(activate.bank, row, activate.at.max(start));
            self.stats.row_misses += 1;
        }
        if precharge.exists() {
            self.banks.precharge(precharge.bank, precharge.at.max(start));
            self.stats.row_conflicts += 1;
        }
        let (column, position) = column;
        column.exists().then(|| self.column(column.bank, position, column.at.max(start))).flatten()
    }

    fn column(&mut self, bank: usize, position: usize, at: u64) -> Option<ReadIssued> {
        self.banks.column(bank, self.direction, at);
        self.batch += 1;
        match self.direction {
            Direction::Read => {
                let request = self.reads.remove(bank, position);
                self.stats.read_lines += 1;
                let timing = &self.config.timing;
                let data = (at + timing.cl + timing.burst).div_ceil(CLOCKS);
                Some(ReadIssued { beat: request.beat, done: data + self.config.controller.read_back })
            }
            Direction::Write => {
                let request = self.writes.remove(bank, position);
                self.awaited -= request.awaited as usize;
                self.stats.write_lines += 1;
                None
            }
        }
    }

    /// Lets cycles pass without requests.
    pub fn skip(&mut self, cycles: u64) {
        debug_assert!(self.is_idle(), "requests wait");
        self.now += cycles;
    }
}

/// The set bits of a mask, lowest first.
#[inline]
fn bits(mut mask: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let bit = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            bit
        })
    })
}
