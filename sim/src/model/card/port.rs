//! MemoryPort: who gets the memory next, and for how long one direction goes on.

use super::{MOST_UNITS, ModelCard, Signal};
use crate::model::memory::WriteBeat;
use crate::model::timing::BATCH_BEATS;

/// Requesters of the port: units, then these.
pub const HOST: usize = MOST_UNITS;
/// Persistence and FirmwareStore.
pub const SYSTEM: usize = HOST + 1;
/// Number of requesters.
pub const REQUESTERS: usize = HOST + 2;

/// State of the arbiter.
pub struct Port {
    /// Cycle of the arbitration that counts; later or earlier wake-ups are stale.
    due: u64,
    /// Cycle from which a burst can be granted.
    free: u64,
    writing: bool,
    /// Beats granted since the direction changed.
    beats: u32,
    /// Requester that was served last, by direction.
    turn: [usize; 2],
    /// Cycle from which the host queue asks again, by direction.
    host_free: [u64; 2],
    /// Times that the direction changed.
    pub switches: u32,
    /// Data of the burst that is being granted.
    pub data: Vec<WriteBeat>,
}

impl Port {
    pub fn new() -> Self {
        Port {
            due: u64::MAX,
            free: 0,
            writing: false,
            beats: 0,
            turn: [0; 2],
            host_free: [0; 2],
            switches: 0,
            data: Vec::with_capacity(64),
        }
    }
}

impl ModelCard {
    /// Lets the port arbitrate at a cycle, or as soon as it is free.
    pub(in crate::model) fn wake_port(&mut self, at: u64) {
        let at = at.max(self.port.free).max(self.now);
        if at < self.port.due {
            self.port.due = at;
            self.wheel.push(at, Signal::Port);
        }
    }

    pub(in crate::model) fn on_port(&mut self) {
        if self.port.due != self.now {
            return;
        }
        self.port.due = u64::MAX;
        let (reads, writes) = self.requests();
        self.wake_for_host();
        if reads | writes == 0 {
            return;
        }
        let batch_over = self.port.beats >= BATCH_BEATS;
        let (own, other) = if self.port.writing { (writes, reads) } else { (reads, writes) };
        if own == 0 || (batch_over && other != 0) {
            self.port.writing = !self.port.writing;
            self.port.beats = 0;
            self.port.switches = self.port.switches.wrapping_add(1);
        }
        let write = self.port.writing;
        if !self.memory.has_room(write) {
            let retry = self.memory.retry(self.now, write);
            self.wake_port(retry);
            return;
        }
        let requester = self.choose(if write { writes } else { reads }, write);
        let beats = if write { self.grant_write(requester) } else { self.grant_read(requester) };
        self.port.beats += beats as u32;
        // Write data takes a cycle a line; read addresses take one a burst.
        self.port.free = self.now + if write { (u64::from(beats) * self.line_percent).div_ceil(100) } else { 1 };
        let (reads, writes) = self.requests();
        if reads | writes != 0 {
            self.wake_port(self.port.free);
        }
        self.wake_for_host();
    }

    /// Requesters with a read and with a write, one bit each.
    fn requests(&self) -> (u32, u32) {
        let system =
            ((!self.system.reads.is_empty() as u32) << SYSTEM, (!self.system.writes.is_empty() as u32) << SYSTEM);
        if self.quiesce {
            return system;
        }
        let [host_reads, host_writes] = self.host_asks().map(|due| due.is_some_and(|due| due <= self.now));
        let mut reads = system.0 | (host_reads as u32) << HOST;
        let mut writes = system.1 | (host_writes as u32) << HOST;
        for (u, unit) in self.units.iter().enumerate() {
            reads |= (unit.read_request.is_some() as u32) << u;
            writes |= (unit.write_request as u32) << u;
        }
        (reads, writes)
    }

    /// Cycles from which the host queue asks for a load and for a store, where it has one.
    fn host_asks(&self) -> [Option<u64>; 2] {
        let [load, store] = self.port.host_free;
        [(!self.host_reads.is_empty()).then_some(load), (!self.host_writes.is_empty()).then_some(store)]
    }

    /// Comes back when the host queue asks again.
    fn wake_for_host(&mut self) {
        if self.quiesce {
            return;
        }
        let later = self.host_asks().into_iter().flatten().filter(|&due| due > self.now).min();
        if let Some(due) = later {
            self.wake_port(due);
        }
    }

    /// `system` first, then the others in turn.
    fn choose(&mut self, requests: u32, write: bool) -> usize {
        if requests >> SYSTEM & 1 == 1 {
            return SYSTEM;
        }
        let turn = &mut self.port.turn[write as usize];
        let chosen = (1..=REQUESTERS).map(|step| (*turn + step) % REQUESTERS).find(|&r| requests >> r & 1 == 1);
        *turn = chosen.expect("somebody asks");
        *turn
    }

    fn grant_read(&mut self, requester: usize) -> u8 {
        let burst = match requester {
            HOST => {
                self.port.host_free[0] = self.now + self.timing.host_issue_gap;
                self.next_host_read()
            }
            SYSTEM => self.system.reads.pop_front().expect("it asks"),
            unit => self.unit_read_granted(unit),
        };
        self.memory.read(self.now, burst);
        burst.beats
    }

    fn grant_write(&mut self, requester: usize) -> u8 {
        let mut data = std::mem::take(&mut self.port.data);
        data.clear();
        let burst = match requester {
            HOST => {
                self.port.host_free[1] = self.now + self.timing.host_issue_gap;
                self.next_host_write(&mut data)
            }
            SYSTEM => {
                let (burst, beats) = self.system.writes.pop_front().expect("it asks");
                data.extend(beats);
                burst
            }
            unit => self.unit_write_granted(unit, &mut data),
        };
        self.memory.write(self.now, burst, &data);
        self.port.data = data;
        burst.beats
    }
}
