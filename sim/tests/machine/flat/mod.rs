//! The smallest card: memory that answers, and commands that are done in the moment in which they
//! arrive.

use std::collections::{HashMap, VecDeque};

use nearpm_interface::command::Command;
use nearpm_interface::geometry::LINE;
use nearpm_interface::registers;
use nearpm_sim::core::{Access, Answer, CardCore, DmaWrite, Medium, Ticket};

/// Cycles of the flat card until it answers.
#[derive(Clone, Copy)]
pub struct Latency {
    pub read: u64,
    pub write: u64,
}

/// As the machine's parameters expect of an idle card: 123 ns at 300 MHz.
pub const IDLE: Latency = Latency { read: 40, write: 8 };

/// A card without order, units or firmware. A command copies `length` bytes (up to a line) from the
/// device address `source` to `destination` as soon as its slot is full, and then writes its tag to
/// the bus address `auxiliary`.
pub struct Flat {
    cycle: u64,
    latency: Latency,
    medium: Medium,
    /// Slots of the command BAR, with the bytes that they have.
    slots: HashMap<u64, ([u8; LINE], u64)>,
    answers: HashMap<Ticket, Answer>,
    next_ticket: u64,
    dma: VecDeque<DmaWrite>,
}

impl Flat {
    pub fn boxed(medium: Medium, latency: Latency) -> Box<dyn CardCore> {
        let (slots, answers, dma) = Default::default();
        Box::new(Flat { cycle: 0, latency, medium, slots, answers, next_ticket: 0, dma })
    }

    fn command_write(&mut self, offset: u64, data: &[u8; LINE], strobes: u64) {
        let (slot, held) = self.slots.entry(offset).or_insert(([0; LINE], 0));
        for i in (0..LINE).filter(|i| strobes >> i & 1 == 1) {
            slot[i] = data[i];
        }
        *held |= strobes;
        if *held == u64::MAX {
            let (bytes, _) = self.slots.remove(&offset).expect("just filled");
            if let Some(command) = Command::decode(&bytes) {
                self.execute(&command);
            }
        }
    }

    fn execute(&mut self, command: &Command) {
        let (from, to) = (command.source as usize, command.destination as usize);
        self.medium.bytes.copy_within(from..from + command.length as usize, to);
        if command.auxiliary != 0 {
            let mut data = [0; LINE];
            data[..4].copy_from_slice(&command.tag.to_le_bytes());
            let write = DmaWrite { bus_address: command.auxiliary, data, strobes: 0xf, cycle: self.cycle };
            self.dma.push_back(write);
        }
    }
}

impl CardCore for Flat {
    fn cycle(&self) -> u64 {
        self.cycle
    }
    fn period_ps(&self) -> u64 {
        3333
    }
    fn advance_to(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
    }
    fn submit(&mut self, access: Access) -> Ticket {
        let mut data = [0; LINE];
        let mut latency = self.latency.read;
        match access {
            Access::PmRead { address } => data.copy_from_slice(&self.medium.bytes[address as usize..][..LINE]),
            Access::RegisterRead { offset: registers::STATE } => {
                data[..4].copy_from_slice(&registers::state::OPEN.to_le_bytes())
            }
            Access::RegisterRead { .. } => {}
            Access::CommandRead { page } => data.fill(page as u8),
            Access::PmWrite { address, data, strobes } => {
                self.medium.write_line(address, &data, strobes);
                latency = self.latency.write;
            }
            Access::CommandWrite { offset, data, strobes } => {
                self.command_write(offset, &data, strobes);
                latency = self.latency.write;
            }
            Access::RegisterWrite { .. } => latency = self.latency.write,
        }
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.answers.insert(ticket, Answer { cycle: self.cycle + latency, data, error: false });
        ticket
    }
    fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        let ready = self.answers.get(&ticket).is_some_and(|a| a.cycle <= self.cycle);
        ready.then(|| self.answers.remove(&ticket)).flatten()
    }
    fn take_dma(&mut self) -> Option<DmaWrite> {
        self.dma.pop_front()
    }
    fn is_idle(&self) -> bool {
        self.answers.values().all(|a| a.cycle <= self.cycle)
    }
    fn power_fail(self: Box<Self>, _save_cycles: u64, _seed: u64) -> Medium {
        self.medium
    }
}
