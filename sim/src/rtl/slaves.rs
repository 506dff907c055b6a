//! Delivers accesses to the card's slave ports in the order of their arrival.

use std::collections::VecDeque;

use nearpm_interface::geometry::{COMMAND_PAGE_BYTES, LINE};
use nearpm_verilate::Error;

use super::answers::Answers;
use super::initiator::{Initiator, Seen};
use super::pins::Pins;
use crate::core::{Access, Answer, Ticket};

const CONTROL: usize = 0;
const COMMANDS: usize = 1;
const HOST: usize = 2;

/// The three ports, what waits in front of them, and what they have answered.
pub struct Slaves {
    ports: [Initiator; 3],
    waiting: VecDeque<(Ticket, Access)>,
    /// Port at which an access was presented last.
    last: usize,
    open_writes: usize,
    answers: Answers,
}

impl Slaves {
    /// Resolves the ports.
    pub fn new(pins: &mut Pins) -> Result<Self, Error> {
        let mut port = |bus| Initiator::new(pins, bus);
        Ok(Slaves {
            ports: [port("s_axil_ctrl")?, port("s_axi_cmd")?, port("s_axi_host")?],
            waiting: VecDeque::new(),
            last: CONTROL,
            open_writes: 0,
            answers: Answers::default(),
        })
    }

    /// Queues an access.
    pub fn submit(&mut self, access: Access) -> Ticket {
        let ticket = self.answers.open();
        self.waiting.push_back((ticket, access));
        ticket
    }

    /// Takes an answer.
    pub fn take(&mut self, ticket: Ticket) -> Option<Answer> {
        self.answers.take(ticket)
    }

    /// Whether everything that was submitted has been answered.
    pub fn is_quiet(&self) -> bool {
        self.waiting.is_empty() && self.ports.iter().all(|port| !port.is_busy())
    }

    /// Forgets what has not been presented: the link is dead.
    pub fn cut(&mut self) {
        self.waiting.clear();
    }

    /// Before the cycle: presents the next access if its turn has come.
    #[inline]
    pub fn drive(&mut self, pins: &mut Pins) {
        let Some((ticket, access)) = self.waiting.front() else { return };
        if self.ports[self.last].is_presenting() {
            return;
        }
        let (at, is_write) = route(access);
        let port = &mut self.ports[at];
        let turn = if is_write { port.can_write() } else { self.open_writes == 0 && port.can_read() };
        if !turn {
            return;
        }
        match access {
            Access::RegisterRead { offset } => port.read(pins, *ticket, *offset as u64),
            Access::CommandRead { page } => port.read(pins, *ticket, (page * COMMAND_PAGE_BYTES) as u64),
            Access::PmRead { address } => port.read(pins, *ticket, *address),
            Access::RegisterWrite { offset, value } => {
                let mut data = [0; LINE];
                data[..4].copy_from_slice(&value.to_le_bytes());
                port.write(pins, *ticket, *offset as u64, &data, 0xf);
            }
            Access::CommandWrite { offset: address, data, strobes } | Access::PmWrite { address, data, strobes } => {
                port.write(pins, *ticket, *address, data, *strobes);
            }
        }
        self.open_writes += is_write as usize;
        self.last = at;
        self.waiting.pop_front();
    }

    /// Before the edge that ends cycle `cycle`: takes answers and sees handshakes.
    #[inline]
    pub fn sample(&mut self, pins: &Pins, cycle: u64) -> [Seen; 3] {
        let mut seen = [Seen::default(); 3];
        for (port, seen) in self.ports.iter_mut().zip(&mut seen) {
            if port.is_busy() {
                *seen = port.sample(pins, |response| {
                    self.open_writes -= response.is_write as usize;
                    self.answers.put(response.ticket, Answer { cycle, data: response.data, error: response.error });
                });
            }
        }
        seen
    }

    /// After the edge: ends the offers that were taken.
    #[inline]
    pub fn step(&mut self, pins: &mut Pins, seen: [Seen; 3]) {
        for (port, seen) in self.ports.iter_mut().zip(seen) {
            port.step(pins, seen);
        }
    }
}

/// The port of an access, and whether it writes.
fn route(access: &Access) -> (usize, bool) {
    match access {
        Access::RegisterRead { .. } => (CONTROL, false),
        Access::RegisterWrite { .. } => (CONTROL, true),
        Access::CommandRead { .. } => (COMMANDS, false),
        Access::CommandWrite { .. } => (COMMANDS, true),
        Access::PmRead { .. } => (HOST, false),
        Access::PmWrite { .. } => (HOST, true),
    }
}
