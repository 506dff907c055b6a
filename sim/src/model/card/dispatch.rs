//! Dispatcher, HostQueue and CompletionWriter: issue and retirement.

use nearpm_interface::completion::Completion;
use nearpm_interface::firmware::descriptor;
use nearpm_interface::geometry::{CONTEXTS_PER_UNIT, LINE, REQUEST_SLOTS};
use nearpm_interface::status::Status;

use super::port::HOST;
use super::{ModelCard, Signal};
use crate::core::DmaWrite;
use crate::model::fault::Fault;
use crate::model::item::Item;
use crate::model::memory::{Burst, Token, WriteBeat};
use crate::model::order::HostLine;
use crate::model::trace::What;

/// State of the dispatcher.
#[derive(Default)]
pub struct Dispatcher {
    /// Slots that wait for nothing and were not issued, one bit each.
    pub ready: u32,
    /// Slot and unit that were served last.
    slot_turn: u32,
    unit_turn: usize,
    /// Cycle of the next issue that is scheduled.
    due: Option<u64>,
    /// Cycle from which something can be issued.
    free: u64,
}

impl ModelCard {
    /// Nothing more holds an item.
    pub(in crate::model) fn on_ready(&mut self, item: Item) {
        match item {
            Item::Slot(slot) => {
                self.dispatcher.ready |= 1 << slot;
                self.dispatch_wanted(self.now);
            }
            Item::Line(line) => {
                let queue = match self.order.lines[line as usize].write {
                    true => &mut self.host_writes,
                    false => &mut self.host_reads,
                };
                queue.push_back(line);
                self.wake_port(self.now);
            }
        }
    }

    /// Asks for an issue at a cycle.
    pub(in crate::model) fn dispatch_wanted(&mut self, at: u64) {
        let at = at.max(self.dispatcher.free);
        if self.dispatcher.due.is_none_or(|due| due > at) {
            self.dispatcher.due = Some(at);
            self.wheel.push(at, Signal::Dispatch);
        }
    }

    pub(in crate::model) fn on_dispatch(&mut self) {
        if self.dispatcher.due != Some(self.now) {
            return;
        }
        self.dispatcher.due = None;
        if self.dispatcher.ready == 0 || self.quiesce {
            return;
        }
        let slot = self.next_ready();
        let mapping = self.map.get(self.order.slots[slot as usize].entry);
        let descriptor = self.order.slots[slot as usize].descriptor;
        let released = self.order.slots[slot as usize].released;
        let latched = mapping.is_some_and(|m| m.latched) && !descriptor.flag(descriptor::UNMAPS) && !released;
        let let_through = self.fault == Some(Fault::CommitAfterFailedLog) && descriptor.flag(descriptor::COMMITS);
        if latched && !let_through {
            self.dispatcher.ready &= !(1 << slot);
            self.order.issue(Item::Slot(slot));
            self.wheel.push(self.now + self.timing.retire, Signal::Retire { slot, status: Status::Latched.code() });
        } else if self.must_park(slot) {
            self.dispatcher.ready &= !(1 << slot);
            self.park(slot);
        } else {
            let Some(unit) = self.free_unit() else { return };
            self.dispatcher.ready &= !(1 << slot);
            self.dispatcher.unit_turn = unit;
            self.order.issue(Item::Slot(slot));
            self.trace(What::Issued { item: Item::Slot(slot) });
            self.unit_issue(unit, slot);
        }
        self.dispatcher.slot_turn = slot as u32;
        self.dispatcher.free = self.now + self.timing.issue_gap;
        if self.dispatcher.ready != 0 {
            self.dispatch_wanted(self.dispatcher.free);
        }
    }

    /// The next ready slot in turn.
    fn next_ready(&self) -> u8 {
        let ready = self.dispatcher.ready;
        if self.fault == Some(Fault::FloodStarves) {
            let slots = (0..REQUEST_SLOTS as u8).filter(|&slot| ready >> slot & 1 == 1);
            return slots.min_by_key(|&slot| self.order.slots[slot as usize].page).expect("some slot is ready");
        }
        let start = (self.dispatcher.slot_turn + 1) % REQUEST_SLOTS as u32;
        let turned = ready.rotate_right(start);
        ((turned.trailing_zeros() + start) % REQUEST_SLOTS as u32) as u8
    }

    /// A unit with a free context: an idle one before one that runs a command, in turn.
    fn free_unit(&self) -> Option<usize> {
        let turn = |free: usize| {
            (1..=self.units.len())
                .map(|step| (self.dispatcher.unit_turn + step) % self.units.len())
                .find(|&u| self.units[u].free_contexts() == free)
        };
        (1..=CONTEXTS_PER_UNIT).rev().find_map(turn)
    }

    /// A unit is done with a command.
    pub(in crate::model) fn on_done(&mut self, slot: u8, status: u8) {
        let at = self.retire_free.max(self.now + self.timing.retire);
        self.retire_free = at + self.timing.retire_gap;
        self.wheel.push(at, Signal::Retire { slot, status });
    }

    pub(in crate::model) fn on_retire(&mut self, slot: u8, status: u8) {
        let item = Item::Slot(slot);
        if !self.order.is_live(item) {
            // Only a reset that drops work does this.
            debug_assert_eq!(self.fault, Some(Fault::ResetDropsWork));
            return;
        }
        let contents = self.order.slots[slot as usize];
        let descriptor = contents.descriptor;
        let ok = status == Status::Ok.code();
        self.pages.count(contents.page, &contents.command, status);
        match status {
            0 => self.counters.retired += 1,
            1..0x80 => self.counters.refused += 1,
            _ => self.counters.failed += 1,
        }
        self.complete_command(slot, status);
        if ok
            && descriptor.flag(descriptor::COMMITS)
            && let Some(mapping) = self.map.get_mut(contents.entry)
        {
            mapping.committed = contents.command.txid;
        }
        if ok && descriptor.flag(descriptor::UNMAPS) {
            self.map.set(contents.entry, None);
        }
        let logs = descriptor.flag(descriptor::LOGS);
        let mut closing = false;
        if let Some(mapping) = self.map.get_mut(contents.entry) {
            // What comes behind a blocked command in its thread may rely on it.
            mapping.latched |= (logs && status >= 0x80) || contents.blocked;
            closing = mapping.closing;
        }
        // A log that the latch refused after it was accepted has logged as little as the one that
        // failed.
        let lost = logs && (status >= 0x80 || status == Status::Latched.code());
        let stays = (lost || contents.blocked) && !closing;
        if stays && self.fault != Some(Fault::FailedLogReleasesStores) {
            self.trace(What::Latched { item });
            for woken in self.order.fail(slot) {
                self.wake(woken);
            }
            self.hold_wanted();
            // What waits for a slot may find that none becomes free, or be the unmap that frees
            // this one.
            self.unblock_front();
            self.after_retirement(status);
            return;
        }
        self.trace(What::Retired { item, status });
        self.release(item);
        self.drop_orphan(contents.entry);
        self.after_retirement(status);
    }

    /// Frees the place of an item and wakes what waited for it.
    pub(in crate::model) fn release(&mut self, item: Item) {
        for woken in self.order.retire(item) {
            self.wake(woken);
        }
        // What has waited for other devices goes before what has not been accepted yet.
        self.release_parked();
        self.unblock_front();
    }

    fn wake(&mut self, item: Item) {
        let latency = match item {
            Item::Slot(_) => self.timing.command_wake,
            Item::Line(_) => self.timing.host_wake,
        };
        self.wheel.push(self.now + latency, Signal::Ready(item));
    }

    /// The next host read goes to memory.
    pub(in crate::model) fn next_host_read(&mut self) -> Burst {
        let line = self.host_reads.pop_front().expect("it asks");
        self.issue_line(line)
    }

    /// The next host write goes to memory.
    pub(in crate::model) fn next_host_write(&mut self, data: &mut Vec<WriteBeat>) -> Burst {
        let line = self.host_writes.pop_front().expect("it asks");
        let HostLine { data: bytes, strobes, .. } = self.order.lines[line as usize];
        data.push(WriteBeat { data: bytes, strobes });
        self.issue_line(line)
    }

    fn issue_line(&mut self, line: u8) -> Burst {
        let item = Item::Line(line);
        self.order.issue(item);
        self.trace(What::Issued { item });
        let token = Token { requester: HOST as u8, tag: line };
        Burst { token, address: self.order.lines[line as usize].address, beats: 1 }
    }

    /// The memory has done a host access.
    pub(in crate::model) fn host_done(&mut self, line: u8, data: Option<&[u8; LINE]>, error: bool) {
        if let Some(ticket) = self.order.lines[line as usize].ticket.take() {
            let cycle = self.leaves(self.now + self.timing.host_return);
            match data {
                Some(data) if !error => self.answers.data(ticket, cycle, *data),
                _ => self.answers.plain(ticket, cycle, true),
            }
        }
        let item = Item::Line(line);
        if error && self.order.lines[line as usize].write {
            self.store_lost(self.order.lines[line as usize].address);
        }
        self.trace(What::Retired { item, status: 0 });
        self.release(item);
        self.after_retirement(0);
    }

    /// Sends a completion record where the page has a ring.
    pub(in crate::model) fn complete(&mut self, page: u8, tag: u32, status: u8, order: u64) {
        let ring = &mut self.rings[page as usize];
        if !ring.enabled {
            return;
        }
        let records = 1 << ring.log2;
        let index = ring.next % records;
        let lap = (ring.next / records + 1) as u16;
        ring.next += 1;
        let record = Completion { tag, status, page, lap, order }.to_bytes();
        let address = ring.base + index * Completion::SIZE as u64;
        let at = (address % LINE as u64) as usize;
        let mut data = [0; LINE];
        data[at..at + Completion::SIZE].copy_from_slice(&record);
        let cycle = (self.now + self.timing.completion).max(self.completion_free);
        self.completion_free = cycle + self.timing.completion_gap;
        let cycle = self.leaves(cycle);
        let bus_address = address / LINE as u64 * LINE as u64;
        self.dma.push_back(DmaWrite { bus_address, data, strobes: 0xffff << at, cycle });
    }
}
