//! The memory behind the card's port, in bursts.
//!
//! Two forms answer the same questions: [`cycle::CycleMemory`] runs the shared DDR4 channel cycle
//! by cycle;
//! [`transaction::TransactionMemory`] computes the time of each burst when it comes, and so costs
//! nothing while time passes. Both have the fault model of [`crate::ddr4`]: a write is durable when
//! it is answered, and what is not answered when the power goes is kept, dropped or torn at 8
//! bytes, by seed.

mod cycle;
mod transaction;

use nearpm_interface::geometry::LINE;

use crate::core::Medium;
use crate::ddr4;
pub use crate::ddr4::WriteBeat;
use cycle::CycleMemory;
use transaction::TransactionMemory;

/// Who asked, and what the requester needs to know the burst again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Requester of the memory port.
    pub requester: u8,
    /// The requester's own.
    pub tag: u8,
}

/// Longest burst of units and system, in lines.
const BURST_LINES: u64 = 16;

/// Lines of the next burst: it stays inside 4 KiB, as AXI4 wants it.
pub fn burst_lines(address: u64, left: u64) -> u64 {
    let page = (4096 - address % 4096) / LINE as u64;
    left.min(BURST_LINES).min(page)
}

/// A burst inside 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Who asked.
    pub token: Token,
    /// Device address of the first line.
    pub address: u64,
    /// Lines.
    pub beats: u8,
}

/// A finished burst.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// The burst.
    pub burst: Burst,
    /// A read, whose lines start at [`Finished::first`] of the lines handed out with it.
    pub read: bool,
    /// First line of a read.
    pub first: usize,
    /// The memory could not do it.
    pub error: bool,
}

/// Finished bursts with the lines of the reads among them.
#[derive(Debug, Default)]
pub struct Harvest {
    /// In the order of their ends.
    pub bursts: Vec<Finished>,
    /// Lines that were read.
    pub lines: Vec<[u8; LINE]>,
}

impl Harvest {
    fn clear(&mut self) {
        self.bursts.clear();
        self.lines.clear();
    }
}

/// Which form of the memory a card has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The DDR4 channel cycle by cycle.
    Cycle,
    /// One computation a burst.
    Transaction,
}

enum Form {
    Cycle(Box<CycleMemory>),
    Transaction(Box<TransactionMemory>),
}

/// The memory.
pub struct Memory {
    form: Form,
    /// Device addresses of lines that answer with an error, as a test plants them.
    bad: Vec<u64>,
}

impl Memory {
    /// A memory with contents, for a card at `card_mhz`.
    pub fn new(kind: Kind, config: ddr4::Config, card_mhz: u64, medium: Medium) -> Self {
        let form = match kind {
            Kind::Cycle => Form::Cycle(Box::new(CycleMemory::new(config, card_mhz, medium))),
            Kind::Transaction => Form::Transaction(Box::new(TransactionMemory::new(config, card_mhz, medium))),
        };
        Memory { form, bad: Vec::new() }
    }

    /// Makes a line answer with an error from now on.
    pub fn plant_error(&mut self, address: u64) {
        self.bad.push(address);
    }

    /// Bytes of the memory.
    pub fn bytes(&self) -> u64 {
        self.medium().bytes.len() as u64
    }

    /// The contents that are durable now.
    pub fn medium(&self) -> &Medium {
        match &self.form {
            Form::Cycle(m) => m.medium(),
            Form::Transaction(m) => m.medium(),
        }
    }

    /// Whether a burst would be taken in this cycle.
    pub fn has_room(&self, write: bool) -> bool {
        match &self.form {
            Form::Cycle(m) => m.has_room(write),
            Form::Transaction(m) => m.has_room(write),
        }
    }

    /// The next cycle in which there may be room where there was none at `now`.
    pub fn retry(&self, now: u64, write: bool) -> u64 {
        match &self.form {
            Form::Cycle(_) => now + 1,
            Form::Transaction(m) => m.retry(write).max(now + 1),
        }
    }

    /// Takes a read burst at cycle `now`.
    pub fn read(&mut self, now: u64, burst: Burst) {
        match &mut self.form {
            Form::Cycle(m) => m.read(burst),
            Form::Transaction(m) => m.read(now, burst),
        }
    }

    /// Takes a write burst at cycle `now`; its data enters one line a cycle.
    pub fn write(&mut self, now: u64, burst: Burst, beats: &[WriteBeat]) {
        match &mut self.form {
            Form::Cycle(m) => m.write(burst, beats),
            Form::Transaction(m) => m.write(now, burst, beats),
        }
    }

    /// The next cycle at which a burst may finish.
    pub fn next(&self) -> Option<u64> {
        match &self.form {
            Form::Cycle(m) => m.next(),
            Form::Transaction(m) => m.next(),
        }
    }

    /// Whether [`Memory::run`] has to be called at a cycle before anything else happens there.
    #[inline]
    pub fn must_run(&self, cycle: u64) -> bool {
        match &self.form {
            Form::Cycle(_) => true,
            Form::Transaction(m) => m.next().is_some_and(|next| next <= cycle),
        }
    }

    /// Runs to a cycle, which is not beyond [`Memory::next`], and hands out what finishes there.
    pub fn run(&mut self, cycle: u64, harvest: &mut Harvest) {
        harvest.clear();
        match &mut self.form {
            Form::Cycle(m) => m.run(cycle, harvest),
            Form::Transaction(m) => m.run(cycle, harvest),
        }
        if !self.bad.is_empty() {
            for done in &mut harvest.bursts {
                let end = done.burst.address + done.burst.beats as u64 * LINE as u64;
                done.error |= self.bad.iter().any(|bad| (done.burst.address..end).contains(bad));
            }
        }
    }

    /// Whether every burst has been answered.
    pub fn is_quiet(&self) -> bool {
        match &self.form {
            Form::Cycle(m) => m.is_quiet(),
            Form::Transaction(m) => m.is_quiet(),
        }
    }

    /// Cuts the power.
    pub fn power_fail(self, seed: u64) -> Medium {
        match self.form {
            Form::Cycle(m) => m.power_fail(seed),
            Form::Transaction(m) => m.power_fail(seed),
        }
    }
}
