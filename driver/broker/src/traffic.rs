//! The command pages of one process: what is checked, posted for it and told to it.
//!
//! The process has four pages like those of a card. What it posts on them goes to the card's page
//! of its seat, with a tag of the broker's, and each is asked a completion record for. Mapping and
//! unmapping are carried out on page 0 of the card, one at a time, before the store that posts them
//! is answered.
//!
//! The counters of a page's status line are those of this process alone. A command counts as
//! accepted when the card's own line says so: the process is answered behind a load of that line,
//! so that its read-backs keep the contract's promise (C1, C4).

use std::collections::{BTreeMap, VecDeque};

use nearpm_driver::card::PoolMapping;
use nearpm_driver::{CardError, CommandError, Ended};
use nearpm_endpoint::bus::{Bus, HostWrite};
use nearpm_endpoint::slots::Slots;
use nearpm_interface::command::{Command, FLAG_COMPLETE, Opcode};
use nearpm_interface::completion::{Completion, PageStatus};
use nearpm_interface::geometry::{COMMAND_PAGES, LINE, LINE_U64};
use nearpm_interface::registers as reg;
use nearpm_interface::status::Status;

use crate::claims::Seat;
use crate::share::Share;

/// Nanoseconds between two looks for a record that is on its way.
const LOOK_NS: u64 = 1000;
/// How long a record may be on its way, in nanoseconds of the transport's clock.
const RECORD_NS: u64 = 20_000_000_000;
/// Largest completion ring: log2 of its records.
const MOST_RECORDS_LOG2: u32 = 12;

/// Where the records of a page go, as the process has set it.
#[derive(Clone, Copy, Default)]
struct Ring {
    address: u64,
    size_log2: u32,
    /// Records that were written, once the ring is enabled.
    written: Option<u64>,
}

#[derive(Default)]
struct Page {
    status: PageStatus,
    ring: Ring,
}

/// A command of the process that the card has.
#[derive(Clone, Copy)]
struct Posted {
    page: usize,
    tag: u32,
    notify: bool,
}

/// See the module.
pub struct Traffic {
    seat: Seat,
    slots: Slots,
    pages: [Page; COMMAND_PAGES],
    /// By their numbers on the card's page.
    under_way: BTreeMap<u64, Posted>,
    /// Numbers of those that are not known to be accepted, in their order.
    unaccepted: VecDeque<(u64, usize)>,
    /// The card's status line when this began, or when nothing was under way.
    base: PageStatus,
    /// Commands that the card's line counts as accepted since then and that are counted here.
    accepted: u32,
    /// Commands that the card did not carry out, since then.
    bad: u32,
    /// The process's memory and interrupts.
    pub bus: Bus,
}

impl Traffic {
    /// Of a process that has come: nothing is under way on the card's page.
    pub fn new(share: &Share, seat: Seat) -> Result<Traffic, CardError> {
        share.card.drain(seat.into())?;
        share.card.take_ended(seat.into())?;
        Ok(Traffic {
            seat,
            slots: Slots::default(),
            pages: Default::default(),
            under_way: BTreeMap::new(),
            unaccepted: VecDeque::new(),
            base: share.card.page_status(seat.into())?,
            accepted: 0,
            bad: 0,
            bus: Bus::default(),
        })
    }

    /// Whether the card has commands of the process.
    pub fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// A store to the command pages.
    pub fn store(&mut self, share: &Share, offset: u64, data: &[u8; LINE], strobes: u64) -> Result<(), CardError> {
        let Some((page, bytes)) = self.slots.store(offset, data, strobes) else { return Ok(()) };
        match Command::decode(&bytes) {
            Some(command) => self.execute(share, page, command),
            None => {
                self.drop_command(page);
                Ok(())
            }
        }
    }

    /// Counts a command that came damaged.
    fn drop_command(&mut self, page: usize) {
        let dropped = &mut self.pages[page].status.dropped;
        *dropped = dropped.wrapping_add(1);
    }

    fn execute(&mut self, share: &Share, page: usize, command: Command) -> Result<(), CardError> {
        let posted = Posted { page, tag: command.tag, notify: command.flags & FLAG_COMPLETE != 0 };
        let outcome = match Opcode::from_code(command.opcode) {
            Some(Opcode::Map | Opcode::Unmap) if page != 0 => Err(Status::NotPrivileged.code()),
            Some(Opcode::Map) => self.map(share, &command)?,
            Some(Opcode::Unmap) => self.unmap(share, &command)?,
            _ if !share.claims().has(self.seat, command.pool, command.thread) => Err(Status::Unmapped.code()),
            // Several cards work together only where one process has them.
            _ if command.participants != 0 => Err(Status::BadParticipants.code()),
            _ => {
                let ticket = share.card.post(self.seat.into(), command, true)?;
                self.under_way.insert(ticket.number, posted);
                self.unaccepted.push_back((ticket.number, page));
                return Ok(());
            }
        };
        if outcome.is_ok() {
            let accepted = &mut self.pages[page].status.accepted;
            *accepted = accepted.wrapping_add(1);
        }
        self.end(posted, outcome.err().unwrap_or(Status::Ok.code()), 0);
        Ok(())
    }

    fn map(&mut self, share: &Share, command: &Command) -> Result<Result<(), u8>, CardError> {
        let mapping = PoolMapping {
            pool: command.pool,
            thread: command.thread,
            base: command.source,
            bytes: command.destination,
            ring: command.auxiliary,
            ring_bytes: command.length,
            committed: command.sequence,
        };
        // Held until the card has the mapping: its bit is the one that is new.
        let mut claims = share.claims();
        if let Err(status) = claims.may_map(self.seat, &mapping, share.card.pm_bytes()) {
            return Ok(Err(status.code()));
        }
        let entries = || share.card.registers().read(reg::MAPPED) as u16;
        let before = entries();
        let outcome = told(share.card.map_pool(mapping))?;
        if outcome.is_ok() {
            claims.mapped(self.seat, &mapping, entries() & !before);
        }
        Ok(outcome)
    }

    fn unmap(&mut self, share: &Share, command: &Command) -> Result<Result<(), u8>, CardError> {
        // The card waits with it for all that was posted before: not while the others wait for
        // their claims.
        if share.claims().has(self.seat, command.pool, command.thread) {
            share.card.drain(self.seat.into())?;
        }
        let mut claims = share.claims();
        if !claims.has(self.seat, command.pool, command.thread) {
            return Ok(Err(Status::Unmapped.code()));
        }
        let outcome = told(share.card.unmap_pool(command.pool, command.thread))?;
        if outcome.is_ok() {
            claims.unmapped(command.pool, command.thread);
        }
        Ok(outcome)
    }

    /// Counts the end of a command, and writes its record.
    fn end(&mut self, posted: Posted, code: u8, order: u64) {
        let Posted { page: number, tag, notify } = posted;
        let page = &mut self.pages[number];
        let counter = match code {
            0 => &mut page.status.retired,
            1..0x80 => &mut page.status.refused,
            _ => &mut page.status.failed,
        };
        *counter = counter.wrapping_add(1);
        if code != 0 {
            (page.status.last_bad_tag, page.status.last_bad_status) = (tag, code);
        }
        let Some(written) = page.ring.written.filter(|_| notify || code != 0) else { return };
        page.ring.written = Some(written + 1);
        let lap = (written >> page.ring.size_log2) as u16 + 1;
        let record = Completion { tag, status: code, page: number as u8, lap, order };
        let index = written & ((1 << page.ring.size_log2) - 1);
        let address = page.ring.address + index * Completion::SIZE as u64;
        let inside = (address % LINE_U64) as usize;
        let mut data = [0; LINE];
        data[inside..inside + Completion::SIZE].copy_from_slice(&record.to_bytes());
        let strobes = ((1 << Completion::SIZE) - 1) << inside;
        self.bus.deliver(&HostWrite { address: address - inside as u64, data, strobes });
    }

    /// Tells the process of commands that have ended on the card.
    pub fn take_ended(&mut self, share: &Share) -> Result<(), CardError> {
        for Ended { number, error, order } in share.card.take_ended(self.seat.into())? {
            let Some(posted) = self.under_way.remove(&number) else { continue };
            let code = error.map_or(Some(Status::Ok.code()), CommandError::code);
            if code != Some(Status::Ok.code()) {
                self.bad = self.bad.wrapping_add(1);
            }
            if error.is_some_and(|error| !error.had_side_effects()) {
                // It was never accepted.
                self.unaccepted.retain(|&(there, _)| there != number);
            }
            match code {
                Some(code) => self.end(posted, code, order),
                None => self.drop_command(posted.page),
            }
        }
        Ok(())
    }

    /// The status line of a page, answered when everything that the process has posted is accepted.
    pub fn status(&mut self, share: &Share, page: usize) -> Result<PageStatus, CardError> {
        let line = share.card.page_status(self.seat.into())?;
        if line.dropped != self.base.dropped {
            // What came to the card damaged has no record: who waits for all finds it.
            share.card.drain(self.seat.into())?;
        }
        let since = |now: u32, then: u32| now.wrapping_sub(then);
        let base = &self.base;
        let bad = [(line.refused, base.refused), (line.failed, base.failed), (line.dropped, base.dropped)]
            .into_iter()
            .fold(0u32, |sum, (now, then)| sum.wrapping_add(since(now, then)));
        let accepted = since(line.accepted, base.accepted);
        let function = share.card.function();
        let start = function.now_ns();
        // The records of those that were refused say which they are.
        loop {
            self.take_ended(share)?;
            if since(bad, self.bad) as i32 <= 0 {
                break;
            }
            let waited_ns = function.now_ns().saturating_sub(start);
            if waited_ns > RECORD_NS {
                return Err(CardError::Timeout { what: "say which command it has refused", waited_ns });
            }
            function.relax(LOOK_NS);
        }
        while self.accepted != accepted
            && let Some((_, page)) = self.unaccepted.pop_front()
        {
            self.accepted = self.accepted.wrapping_add(1);
            let counter = &mut self.pages[page].status.accepted;
            *counter = counter.wrapping_add(1);
        }
        let latched = line.latched & share.claims().mask(self.seat);
        let (order, stores_lost) = (line.order, line.stores_lost);
        Ok(PageStatus { latched, parked: 0, order, stores_lost, ..self.pages[page].status })
    }

    /// Waits for the records of all that is under way: they travel behind the counters that a drain
    /// looks at.
    fn wait_for_records(&mut self, share: &Share) -> Result<(), CardError> {
        let function = share.card.function();
        let start = function.now_ns();
        loop {
            self.take_ended(share)?;
            if self.under_way.is_empty() {
                self.unaccepted.clear();
                return Ok(());
            }
            let waited_ns = function.now_ns().saturating_sub(start);
            if waited_ns > RECORD_NS {
                return Err(CardError::Timeout { what: "say how all commands have ended", waited_ns });
            }
            function.relax(LOOK_NS);
        }
    }

    /// A register of the completion rings.
    pub fn ring_register(&self, offset: u32) -> Option<u32> {
        let (page, word) = ring_of(offset)?;
        let ring = &self.pages[page].ring;
        Some([ring.address as u32, (ring.address >> 32) as u32, ring.size_log2][word])
    }

    /// Sets a register of the completion rings; false where it is none.
    pub fn set_ring_register(&mut self, offset: u32, value: u32) -> bool {
        let Some((page, word)) = ring_of(offset) else { return false };
        let ring = &mut self.pages[page].ring;
        match word {
            0 => ring.address = ring.address >> 32 << 32 | u64::from(value) & !(LINE_U64 - 1),
            1 => ring.address = ring.address & 0xffff_ffff | u64::from(value) << 32,
            _ => (ring.size_log2, ring.written) = (value.min(MOST_RECORDS_LOG2), Some(0)),
        }
        true
    }

    /// Waits until everything that was posted is done, and takes the mappings of the process from
    /// the card, and what it has claimed.
    pub fn forget(&mut self, share: &Share) -> Result<(), CardError> {
        self.slots.clear();
        share.card.drain(self.seat.into())?;
        self.wait_for_records(share)?;
        (self.base, self.accepted, self.bad) = (share.card.page_status(self.seat.into())?, 0, 0);
        let mut claims = share.claims();
        for (pool, thread) in claims.mappings(self.seat) {
            // A mapping that the card has not got needs no end.
            let _refused = told(share.card.unmap_pool(pool, thread))?;
            claims.unmapped(pool, thread);
        }
        claims.leave(self.seat);
        drop(claims);
        self.pages.iter_mut().for_each(|page| page.ring = Ring::default());
        self.bus.master = false;
        Ok(())
    }
}

/// Page and word of a register of the completion rings.
fn ring_of(offset: u32) -> Option<(usize, usize)> {
    let inside = offset.checked_sub(reg::completion_ring(0))?;
    let (page, word) = (inside as usize / 16, inside as usize % 16 / 4);
    (page < COMMAND_PAGES && word < 3).then_some((page, word))
}

/// The status of a refusal or failure; other errors are of the card.
fn told(done: Result<(), CardError>) -> Result<Result<(), u8>, CardError> {
    match done {
        Ok(()) => Ok(Ok(())),
        Err(CardError::Command(failure)) => match failure.error.code() {
            Some(code) => Ok(Err(code)),
            None => Err(CardError::Command(failure)),
        },
        Err(other) => Err(other),
    }
}
