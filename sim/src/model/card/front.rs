//! CommandPort, HostPort and the front of the ordering point: arrivals, one after the other.

use nearpm_interface::command::{Command, FLAG_COMPLETE};
use nearpm_interface::completion::PageStatus;
use nearpm_interface::firmware::descriptor;
use nearpm_interface::geometry::{
    COMMAND_BAR_BYTES, COMMAND_PAGES, FIRMWARE_BASE, FIRMWARE_SLOT_BYTES, FIRMWARE_SLOTS, LINE, LINE_U64, SAVE_BASE,
    SAVE_BYTES,
};
use nearpm_interface::status::Status;

use super::entry::{Entered, Origin};
use super::parked::Parked;
use super::phase::Phase;
use super::{ModelCard, Signal};
use crate::core::{Access, Ticket};
use crate::model::decoder::{self, Decoded};
use crate::model::fault::Fault;
use crate::model::item::{Item, Ranges};
use crate::model::order::{HostLine, Slot};
use crate::model::pages::locate;
use crate::model::timing::Timing;
use crate::model::trace::What;

/// An access that has come over the link.
pub struct Arrival {
    pub ticket: Ticket,
    pub access: Access,
    /// Cycle of its coming.
    pub at: u64,
}

/// What the oldest arrival waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Obstacle {
    RequestSlot,
    HostLine,
    /// A drain, a firmware load or a save.
    Stop,
}

/// State of the ports.
#[derive(Default)]
pub struct Front {
    /// Cycle from which the next handshake can be: of a command or register access, of a store, of
    /// a load.
    free: u64,
    free_store: u64,
    free_load: u64,
    /// The oldest arrival has an event.
    scheduled: bool,
    /// The oldest arrival waits, since a cycle.
    blocked: Option<(Obstacle, u64)>,
    /// Cycles in which a complete command waited for a slot.
    pub stall_request: u64,
    /// Cycles in which a host access waited for a line.
    pub stall_host: u64,
}

impl ModelCard {
    /// Gives the oldest arrival its event.
    pub(in crate::model) fn schedule_front(&mut self) {
        if self.front.scheduled || self.front.blocked.is_some() {
            return;
        }
        let Some(head) = self.arrivals.front() else { return };
        let t = &self.timing;
        let latency = match head.access {
            Access::PmRead { .. } | Access::PmWrite { .. } => t.host_accept,
            Access::RegisterRead { .. } | Access::RegisterWrite { .. } => 0,
            Access::CommandRead { .. } => 1,
            Access::CommandWrite { offset, strobes, .. } => match locate(offset) {
                Some((_, slot)) if self.pages.would_fill(slot, strobes) => t.command_accept,
                _ => 1,
            },
        };
        let free = match head.access {
            Access::PmRead { .. } => self.front.free_load,
            Access::PmWrite { .. } => self.front.free_store,
            _ => self.front.free,
        };
        let due = (head.at.max(free) + latency).max(self.now);
        self.front.scheduled = true;
        self.wheel.push(due, Signal::Front);
    }

    /// Tries the oldest arrival again after something became free.
    pub(in crate::model) fn unblock_front(&mut self) {
        if let Some((obstacle, since)) = self.front.blocked.take() {
            let waited = self.now - since;
            match obstacle {
                Obstacle::RequestSlot => self.front.stall_request += waited,
                Obstacle::HostLine => self.front.stall_host += waited,
                Obstacle::Stop => {}
            }
            self.front.scheduled = true;
            self.wheel.push(self.now + 1, Signal::Front);
        }
    }

    pub(in crate::model) fn on_front(&mut self) {
        self.front.scheduled = false;
        if self.failing {
            return;
        }
        let Some(Arrival { ticket, access, .. }) = self.arrivals.pop_front() else { return };
        if let Err(obstacle) = self.deliver(ticket, &access) {
            self.front.blocked = Some((obstacle, self.now));
            self.arrivals.push_front(Arrival { ticket, access, at: self.now });
            return;
        }
        self.schedule_front();
    }

    fn deliver(&mut self, ticket: Ticket, access: &Access) -> Result<(), Obstacle> {
        let now = self.now;
        match *access {
            Access::RegisterRead { offset } => {
                let mut data = [0; LINE];
                data[..4].copy_from_slice(&self.read_register(offset).to_le_bytes());
                let cycle = self.leaves(now + self.timing.register);
                self.answers.data(ticket, cycle, data);
                self.front.free = now + 1;
            }
            Access::RegisterWrite { offset, value } => {
                let cycle = self.leaves(now + self.timing.register);
                self.answers.plain(ticket, cycle, false);
                self.front.free = now + 1;
                self.write_register(offset, value);
            }
            _ if self.stop => return Err(Obstacle::Stop),
            Access::CommandRead { page } => {
                let status = self.page_status(page, 0);
                self.answer_status(ticket, status);
                self.front.free = now;
            }
            Access::CommandWrite { offset, ref data, strobes } => self.command_write(ticket, offset, data, strobes)?,
            Access::PmRead { address } => {
                let line =
                    HostLine { ticket: Some(ticket), write: false, address, data: [0; LINE], strobes: 0, order: 0 };
                self.host_access(ticket, line)?;
            }
            Access::PmWrite { address, data, strobes } => {
                self.host_access(ticket, HostLine { ticket: None, write: true, address, data, strobes, order: 0 })?;
            }
        }
        Ok(())
    }

    /// The status line of a page, with `more` commands counted as accepted.
    pub(in crate::model) fn page_status(&self, page: usize, more: u32) -> Option<PageStatus> {
        let status = self.pages.status.get(page)?;
        let latched = self.map.mask(|m| m.latched) as u16;
        let parked = (self.parked.entries() | self.order.synchronising_entries()) as u16;
        let accepted = status.accepted.wrapping_add(more);
        Some(PageStatus { order: self.order.last, accepted, latched, parked, stores_lost: self.lost.count, ..*status })
    }

    pub(in crate::model) fn answer_status(&mut self, ticket: Ticket, status: Option<PageStatus>) {
        let cycle = self.leaves(self.now + self.timing.command_read);
        match status {
            Some(status) => self.answers.data(ticket, cycle, status.to_bytes()),
            None => self.answers.plain(ticket, cycle, true),
        }
    }

    fn command_write(&mut self, ticket: Ticket, offset: u64, data: &[u8; LINE], strobes: u64) -> Result<(), Obstacle> {
        let Some((page, slot)) = locate(offset) else {
            let cycle = self.leaves(self.now + self.timing.command_merge);
            self.answers.plain(ticket, cycle, offset >= COMMAND_BAR_BYTES as u64);
            self.front.free = self.now + 1;
            return Ok(());
        };
        self.front.free = self.now + 1;
        let latency = match self.pages.filled(slot, data, strobes) {
            None => self.timing.command_merge,
            Some(raw) => {
                let whole = Command::decode(&raw).is_some() || self.fault == Some(Fault::HalfCommandExecutes);
                if !whole || !self.window_open() {
                    self.pages.drop_slot(page);
                    self.counters.dropped += 1;
                } else if self.enter_command(page, raw, Origin::default()) == Entered::Full {
                    return Err(Obstacle::RequestSlot);
                }
                let handshake = self.now.saturating_sub(self.timing.command_accept);
                self.front.free = handshake + self.timing.command_gap;
                self.timing.command_answer
            }
        };
        self.pages.merge(slot, data, strobes);
        self.front.free_store = self.now + self.timing.command_to_host;
        self.front.free_load = self.front.free_store;
        let cycle = self.leaves(self.now + latency);
        self.answers.plain(ticket, cycle, false);
        Ok(())
    }

    /// Numbers a command, or refuses it.
    pub(in crate::model) fn enter_command(&mut self, page: u8, raw: [u8; LINE], origin: Origin) -> Entered {
        let Origin { resume, released, accepted } = origin;
        let command = Command::from_bytes(&raw);
        let context = decoder::Context {
            descriptor: self.firmware.descriptor(command.opcode),
            map: &self.map,
            page,
            device: self.device,
            reaches_others: self.peers.speaks || released || self.persistence.phase == Phase::Replay,
            released,
            pm_bytes: self.memory.bytes(),
            fault: self.fault,
        };
        let descriptor = context.descriptor;
        match decoder::decode(&command, &context) {
            Err(status) => self.refuse_command(page, &command, status),
            Ok(decoded) => {
                let Decoded { entry, ranges, .. } = decoded;
                let parks = !released && self.may_park(&command, descriptor, entry);
                if parks && !self.has_place() {
                    // Waiting for a place would be waiting for other devices, with what they wait
                    // for behind this command.
                    return match self.fault {
                        Some(Fault::FullTableStalls) => Entered::Full,
                        _ => self.refuse_command(page, &command, Status::ParkedFull),
                    };
                }
                let unmaps = descriptor.flag(descriptor::UNMAPS);
                if unmaps && self.order.free_slot().is_none() {
                    // What failed logs hold may be the slot that it waits for.
                    self.release_failed(Some(entry));
                }
                let Some(slot) = self.order.free_slot() else {
                    // Waiting would be for ever, with the unmap that frees slots behind this
                    // command.
                    let lost = self.order.slots_lost() && !unmaps;
                    return if lost { self.refuse_command(page, &command, Status::Latched) } else { Entered::Full };
                };
                let (order, failed, blocked) = (0, false, false);
                let contents = Slot {
                    raw,
                    command,
                    descriptor,
                    order,
                    accepted,
                    page,
                    entry,
                    resume,
                    failed,
                    blocked,
                    parks,
                    released,
                };
                self.number_command(slot, contents, &decoded, ranges);
                Entered::Numbered
            }
        }
    }

    /// Numbers a command that has waited for other devices, behind everything that was accepted
    /// meanwhile.
    pub(in crate::model) fn enter_released(&mut self, parked: &Parked) -> Entered {
        self.enter_command(parked.page, parked.raw, Origin { resume: 0, released: true, accepted: parked.order })
    }

    pub(in crate::model) fn refuse_command(&mut self, page: u8, command: &Command, status: Status) -> Entered {
        self.counters.refused += 1;
        self.pages.count(page, command, status.code());
        self.complete(page, command.tag, status.code(), 0);
        Entered::Refused
    }

    fn number_command(&mut self, slot: u8, contents: Slot, decoded: &Decoded, ranges: Ranges) {
        if let Some(mapping) = decoded.maps {
            self.map.set(decoded.entry, Some(mapping));
        }
        let item = Item::Slot(slot);
        let descriptor = contents.descriptor;
        let held = self.order.number_command(slot, contents, ranges, self.fault);
        if !contents.released {
            self.counters.accepted += 1;
            self.pages.accept(contents.page);
        }
        self.trace(What::Accepted {
            item,
            order: self.order.last,
            ranges,
            ordered: descriptor.flag(descriptor::ORDERED),
            entry: Some(contents.entry),
        });
        if held {
            self.counters.held += 1;
            self.trace(What::Held { item });
            self.hold_wanted();
        } else {
            self.wheel.push(self.now + self.timing.command_row, Signal::Ready(item));
        }
        if self.fault == Some(Fault::ReportsWhenAccepted) {
            self.reach(&contents.command, descriptor, decoded.entry);
        }
        if descriptor.flag(descriptor::UNMAPS) {
            if let Some(mapping) = self.map.get_mut(decoded.entry) {
                mapping.closing = true;
            }
            self.release_failed(Some(decoded.entry));
        }
    }

    /// Lets go of what failed logs hold.
    pub(in crate::model) fn release_failed(&mut self, entry: Option<u8>) {
        for slot in self.order.failed_slots(entry) {
            let item = Item::Slot(slot);
            self.trace(What::Retired { item, status: Status::MemoryError.code() });
            self.release(item);
        }
    }

    /// Queues a completion record, where the command asks for one or did not succeed.
    pub(in crate::model) fn complete_command(&mut self, slot: u8, status: u8) {
        let Slot { command, page, order, .. } = self.order.slots[slot as usize];
        if command.flags & FLAG_COMPLETE != 0 || status != Status::Ok.code() {
            self.complete(page, command.tag, status, order);
        }
    }

    fn host_access(&mut self, ticket: Ticket, line: HostLine) -> Result<(), Obstacle> {
        if self.is_refused(&line) {
            self.counters.host_refused += 1;
            let cycle = self.leaves(self.now + self.timing.host_refuse - self.timing.host_accept);
            self.answers.plain(ticket, cycle, true);
        } else {
            if !self.enter_host(line) {
                return Err(Obstacle::HostLine);
            }
            if line.write {
                let cycle = self.leaves(self.now + self.timing.host_answer);
                self.answers.plain(ticket, cycle, false);
            }
        }
        // Times count from this access' handshake.
        let handshake = self.now.saturating_sub(self.timing.host_accept);
        let Timing { write_to_write, write_to_read, read_gap, host_to_command, .. } = self.timing;
        let (store, load) = if line.write { (write_to_write, write_to_read) } else { (read_gap, read_gap) };
        self.front.free_store = handshake + store;
        self.front.free_load = handshake + load;
        self.front.free = handshake + host_to_command;
        Ok(())
    }

    /// Numbers a host access; false where every line is taken.
    pub(in crate::model) fn enter_host(&mut self, line: HostLine) -> bool {
        let Some(free) = self.order.free_line() else { return false };
        let item = Item::Line(free);
        let held = self.order.number_line(free, line, self.fault);
        if line.write {
            self.counters.host_writes += 1;
        } else {
            self.counters.host_reads += 1;
        }
        let ranges = Ranges::line(line.address, line.write);
        self.trace(What::Accepted { item, order: self.order.last, ranges, ordered: false, entry: None });
        if held {
            self.counters.host_held += 1;
            self.trace(What::Held { item });
            self.hold_wanted();
        } else {
            self.wheel.push(self.now + self.timing.host_row, Signal::Ready(item));
        }
        true
    }

    fn is_refused(&self, line: &HostLine) -> bool {
        let slots = FIRMWARE_SLOT_BYTES * FIRMWARE_SLOTS as u64;
        let in_force = FIRMWARE_BASE + self.firmware.slot as u64 * FIRMWARE_SLOT_BYTES;
        let at = line.address;
        let protected = (SAVE_BASE..SAVE_BASE + SAVE_BYTES).contains(&at)
            || (self.firmware.crc != 0 && (in_force..in_force + FIRMWARE_SLOT_BYTES).contains(&at))
            || (self.loader.is_some() && (FIRMWARE_BASE..FIRMWARE_BASE + slots).contains(&at));
        !self.window_open() || !at.is_multiple_of(LINE_U64) || at >= self.memory.bytes() || (line.write && protected)
    }

    /// Commands of a page that have arrived whole and are not numbered.
    pub(in crate::model) fn on_their_way(&self, page: usize) -> u32 {
        let whole = |a: &&Arrival| match a.access {
            Access::CommandWrite { offset, strobes, .. } => {
                strobes == u64::MAX && locate(offset).is_some_and(|(p, _)| p as usize == page)
            }
            _ => false,
        };
        debug_assert!(page < COMMAND_PAGES);
        self.arrivals.iter().filter(whole).count() as u32
    }
}
